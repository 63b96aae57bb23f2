import Feed
import Model
import Wake

/// All that goes out with one credential: a lane for each class of pushes, and what APNs says of
/// the credential as a whole.
///
/// The first push binds a connection to its key, so no connection is shared with another
/// credential.
struct CredentialPool {
    /// Names it in the ids of its connections.
    let serial: UInt64
    let credential: PushCredentialRecord
    let key: CredentialKey
    /// `nil`: it is a certificate.
    let provider: ProviderKey?
    var lanes: [Lane]
    private(set) var pause: Pause?
    private var pauseCount = 0
    /// After a pause one push shows whether APNs accepts again.
    var isProbing = false
    var connectRate: ConnectRate
    var breaker: TokenBreaker
    var verdicts: Verdicts
    var topics: TopicPauses
    var lastNumber: UInt64 = 0
    /// APNs' reason in the last GOAWAY.
    var lastGoAway = ""
    private(set) var isRetired = false

    struct Pause {
        let until: Instant
        let isOfKey: Bool
        let reason: String
        /// The provider token that was refused: another one may end the pause.
        let token: String?
    }

    init(
        _ credential: PushCredentialRecord, serial: UInt64,
        _ configuration: PushGatewayConfiguration
    ) {
        self.serial = serial
        self.credential = credential
        key = CredentialKey(credential)
        provider =
            credential.certificatePEM == nil
            ? ProviderKey(
                team: credential.team, keyID: credential.keyID, pem: credential.privateKeyPEM)
            : nil
        connectRate = ConnectRate(
            burst: configuration.connectsBurst, every: configuration.connectSpacing)
        breaker = TokenBreaker(
            count: configuration.breakerCount, share: configuration.breakerShare,
            window: configuration.breakerWindow)
        verdicts = Verdicts(
            share: configuration.breakerShare, delay: configuration.verdictDelay)
        topics = TopicPauses(pause: configuration.pause, pauseMax: configuration.pauseMax)
        lanes = PushClass.allCases.map { Lane($0, configuration) }
    }

    /// Where a class stands in `lanes`.
    static func index(of lane: PushClass) -> Int { Int(lane.rawValue) - 1 }

    // MARK: - How it stands

    /// What can be claimed for it now.
    func room(_ turn: PushTurn) -> PushRoom {
        PushRoom(key, topics: topics.limits(now: turn.now)) { freeStreams($0, turn) }
    }

    private func freeStreams(_ kind: PushClass, _ turn: PushTurn) -> Int {
        guard pause == nil, !isRetired else { return 0 }
        let lane = lanes[Self.index(of: kind)]
        // While no connection comes about, pushes wait in the store.
        guard
            lane.isUsable || mayConnect(lane, now: turn.now)
                || lane.redial.failures < turn.configuration.reconnectPatience
                    && connectRate.nextAt(kind, now: turn.now) == nil
        else { return 0 }
        if isProbing { return isIdle ? 1 : 0 }
        return lane.freeStreams(waitingMax: turn.configuration.waitingMax, now: turn.now)
    }

    var openStreams: Int { lanes.reduce(0) { $0 + $1.openStreams } }
    var hasWaiting: Bool { lanes.contains { !$0.waiting.isEmpty } }
    private var isIdle: Bool { openStreams == 0 && !hasWaiting }
    /// Retired, and nothing is open any more.
    var isGone: Bool {
        isRetired && verdicts.isEmpty && lanes.allSatisfy(\.connections.isEmpty)
    }

    func status(_ now: Instant) -> PushCredentialStatus {
        PushCredentialStatus(
            credential: key, isCertificate: provider == nil,
            pausedFor: pause.map { $0.until.since(now) }, pauseReason: pause?.reason ?? "",
            isTripped: breaker.isTripped, failures: lanes.map(\.redial.failures).max() ?? 0,
            lastGoAway: lastGoAway,
            topics: topics.resting(now: now).map {
                PushTopicStatus(topic: $0.topic, pausedFor: $0.wait, reason: $0.reason)
            },
            lanes: lanes.map { $0.status(now, nextTry: nextConnect($0, now: now)) })
    }

    func place(_ lane: PushClass? = nil) -> PushPlace {
        PushPlace(
            credential: key, host: credential.host, port: credential.port, lane: lane)
    }

    // MARK: - Pushes

    /// A push was claimed for it; `pump` sends it.
    mutating func take(_ push: HeldPush, _ turn: inout PushTurn) {
        guard !isRetired, pause == nil, topics.take(push.job.request.topic, now: turn.now) else {
            return turn.finish(push, .notSent)
        }
        lanes[Self.index(of: push.job.lane)].waiting.append(push)
    }

    /// What waits for these devices is not sent, and what is under way not again.
    mutating func withdraw(_ gone: Set<DetachedDevice>, _ turn: inout PushTurn) {
        for index in lanes.indices {
            let withdrawn = lanes[index].waiting.take {
                gone.contains(DetachedDevice($0.job.key))
            }
            for push in withdrawn { finish(push, .notSent, &turn) }
            for number in lanes[index].connections.indices {
                lanes[index].connections[number].withdraw(gone)
            }
        }
    }

    /// Sends what waits, on the connections there are, or has one made.
    mutating func pump(_ turn: inout PushTurn, _ tokens: inout ProviderTokens) {
        for index in lanes.indices where !lanes[index].waiting.isEmpty {
            guard pause == nil, !isRetired else { return }
            guard lanes[index].isUsable else {
                connect(index, &turn, &tokens)
                continue
            }
            let token: String?
            switch authority(&turn, &tokens) {
            case nil: token = nil
            case .token(let text): token = text
            case .awaited: continue
            case .unusable(let problem): return rest(.max, reason: problem, &turn)
            }
            // While one push probes for all, the others wait for it.
            let most = isProbing ? (openStreams == 0 ? 1 : 0) : Int.max
            for push in lanes[index].fill(token: token, most: most, &turn) {
                unsent(push, &turn)
            }
        }
    }

    /// Has a token fetched that is missing or due.
    func renewToken(_ turn: inout PushTurn, _ tokens: inout ProviderTokens) {
        if pause == nil, !isRetired { _ = authority(&turn, &tokens) }
    }

    /// `nil`: the certificate of the connection.
    func authority(
        _ turn: inout PushTurn, _ tokens: inout ProviderTokens
    ) -> ProviderTokens.Authority? {
        provider.map { tokens.current($0, &turn) }
    }

    /// A push comes back that never left.
    mutating func unsent(_ push: HeldPush, _ turn: inout PushTurn) {
        turn.tell(place(push.job.lane), .push(push, .unsent))
        finish(push, .notSent, &turn)
    }

    /// A push comes back without an answer of APNs.
    mutating func finish(_ push: HeldPush, _ reply: PushReply, _ turn: inout PushTurn) {
        topics.cameBack(push.job.request.topic)
        turn.finish(push, reply)
    }

    // MARK: - Time

    /// - Parameter blocked: more of these waits in the store.
    mutating func tick(
        blocked: Set<PushLane>, _ turn: inout PushTurn, _ tokens: inout ProviderTokens
    ) {
        if let pause, pause.until <= turn.now || isOver(pause, turn, &tokens) {
            self.pause = nil
            isProbing = !pause.isOfKey
            turn.tell(.resumed, of: self)
        }
        // Who tries the key out beside this server sends the store's token too.
        renewToken(&turn, &tokens)
        for index in lanes.indices {
            let tooLate = lanes[index].waiting.take {
                $0.sendBefore(turn.configuration) <= turn.now
            }
            for push in tooLate { unsent(push, &turn) }
            tickConnections(index, &turn, &tokens)
            giveUpShut(index, blocked, &turn)
            renew(index, &turn, &tokens)
            grow(index, blocked, &turn, &tokens)
        }
        let due = verdicts.due(reserve: turn.configuration.leaseReserve, now: turn.now)
        judge(due, &turn)
    }

    /// The credential was changed or removed: what is under way ends.
    ///
    /// - Returns: what waits.
    mutating func retire(_ turn: inout PushTurn) -> [HeldPush] {
        isRetired = true
        judge(verdicts.takeAll(), &turn)
        for index in lanes.indices {
            for number in lanes[index].connections.indices {
                lanes[index].connections[number].retire()
            }
            closeFinished(index, &turn)
        }
        return lanes.indices.flatMap { lanes[$0].waiting.takeAll() }
    }

    // MARK: - Pauses

    /// Nothing is sent for so long.
    ///
    /// - Parameters:
    ///   - pause: `.max`: until the credential is changed.
    ///   - isOfKey: the key, which other credentials may have too, must not be used.
    ///   - token: the provider token, if that is what was refused.
    mutating func rest(
        _ pause: Milliseconds, reason: String, isOfKey: Bool = false, token: String? = nil,
        _ turn: inout PushTurn
    ) {
        guard self.pause == nil, !isRetired else { return }
        let until = pause == .max ? Instant(milliseconds: .max) : turn.now + pause
        self.pause = Pause(until: until, isOfKey: isOfKey, reason: reason, token: token)
        turn.tell(.paused(reason: reason, pause == .max ? nil : pause), of: self)
        for index in lanes.indices {
            for push in lanes[index].waiting.takeAll() { unsent(push, &turn) }
        }
    }

    /// APNs accepts no push of this credential as it is configured.
    mutating func refused(_ reason: String, token: String? = nil, _ turn: inout PushTurn) {
        let wait = min(
            turn.configuration.pause << UInt64(min(pauseCount, 8)), turn.configuration.pauseMax)
        if pause == nil { pauseCount += 1 }
        rest(wait, reason: reason, token: token, &turn)
    }

    /// APNs takes pushes again, or finds fault with something that it looks at later.
    mutating func trusted() {
        isProbing = false
        pauseCount = 0
    }

    /// A clock was put right: there will be another token.
    private mutating func isOver(
        _ pause: Pause, _ turn: PushTurn, _ tokens: inout ProviderTokens
    ) -> Bool {
        guard let token = pause.token, let provider,
            tokens.isGivenUp(token, of: provider, turn.moment)
        else { return false }
        pauseCount = 0
        return true
    }

    /// APNs takes no push of this credential to one of its topics. What it looks at before that,
    /// it has taken.
    mutating func refusedTopic(_ topic: String, _ reason: String, _ turn: inout PushTurn) {
        if !breaker.isTripped { trusted() }
        guard let wait = topics.refused(topic, reason: reason, now: turn.now) else { return }
        turn.tell(.topicPaused(topic, reason: reason, wait), of: self)
        for index in lanes.indices {
            let resting = lanes[index].waiting.take { $0.job.request.topic == topic }
            for push in resting { unsent(push, &turn) }
        }
    }
}
