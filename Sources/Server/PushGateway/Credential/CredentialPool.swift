import Crypto
import EventLoop
import Feed
import Model
import Telemetry
import Wake

/// What a pool needs of the gateway.
protocol CredentialPoolOwner: AnyObject {
    var tokens: ProviderTokens { get }
    /// An engine that trusts what the credential says, with its certificate if it has one.
    func makeTLS(_ credential: PushCredentialRecord) throws(TLSError) -> TLSEngine
    func finish(_ push: HeldPush, _ reply: PushReply, keepsToken: Bool)
    func isBlocked(_ lane: PushLane) -> Bool
    /// Streams have become free.
    func poolHasRoom(_ lane: PushLane)
    /// APNs wants fewer provider tokens of this key: all of its pools rest.
    func rest(_ key: ProviderKey, for pause: Milliseconds, reason: String)
}

/// All that goes out with one credential: a lane for each class of pushes, and what APNs says of
/// the credential as a whole. Loop-confined.
///
/// The first push binds a connection to its key, so no connection is shared with another
/// credential.
final class CredentialPool {
    let key: CredentialKey
    let credential: PushCredentialRecord
    /// `nil`: it is a certificate.
    let provider: ProviderKey?
    private unowned let owner: any CredentialPoolOwner
    private let loop: Loop
    private let configuration: PushGatewayConfiguration
    private let log: Log
    private let metrics: GatewayMetrics
    private var lanes: [Lane] = []
    private var lastNumber: UInt64 = 0
    private var redial: Redial
    private var pause: Pause?
    private var pauseCount = 0
    /// After a pause one push shows whether APNs accepts again.
    private var isProbing = false
    private var breaker: TokenBreaker
    private var verdicts: Verdicts
    private var topics: TopicPauses
    /// APNs' reason in the last GOAWAY.
    private var lastGoAway = ""
    /// Why the last connection could not be made; empty: it could.
    private var lastFailure = ""
    private var isKeySound = true
    private(set) var isRetired = false

    private struct Pause {
        let until: Instant
        let isOfKey: Bool
        let reason: String
        /// The provider token that was refused: another one may end the pause.
        let token: String?
    }

    init(
        _ credential: PushCredentialRecord, owner: any CredentialPoolOwner, loop: Loop,
        configuration: PushGatewayConfiguration, log: Log, metrics: GatewayMetrics
    ) {
        key = CredentialKey(credential)
        provider =
            credential.certificatePEM == nil
            ? ProviderKey(
                team: credential.team, keyID: credential.keyID, pem: credential.privateKeyPEM)
            : nil
        self.credential = credential
        self.owner = owner
        self.loop = loop
        self.configuration = configuration
        self.log = log
        self.metrics = metrics
        redial = Redial(
            delay: configuration.reconnectDelay, delayMax: configuration.reconnectDelayMax,
            soundAge: configuration.soundAge)
        breaker = TokenBreaker(
            count: configuration.breakerCount, share: configuration.breakerShare,
            window: configuration.breakerWindow)
        verdicts = Verdicts(
            share: configuration.breakerShare, delay: configuration.verdictDelay)
        topics = TopicPauses(pause: configuration.pause, pauseMax: configuration.pauseMax)
        lanes = PushClass.allCases.map {
            Lane(
                $0, owner: self, loop: loop, configuration: configuration, log: log,
                metrics: metrics)
        }
    }

    private var now: Instant { Instant(milliseconds: loop.now) }

    private func lane(_ kind: PushClass) -> Lane { lanes[Int(kind.rawValue) - 1] }

    // MARK: - For the gateway

    /// What can be claimed for it now.
    var room: PushRoom {
        PushRoom(key, topics: topics.limits(now: now)) { freeStreams($0) }
    }

    func freeStreams(_ kind: PushClass) -> Int {
        guard pause == nil, !isRetired else { return 0 }
        let lane = lane(kind)
        // While no connection comes about, pushes wait in the store.
        guard
            lane.isUsable || redial.failures < configuration.reconnectPatience
                || redial.mayConnect(now: now)
        else { return 0 }
        if isProbing { return openStreams + waitingCount == 0 ? 1 : 0 }
        return lane.freeStreams
    }

    var openStreams: Int { lanes.reduce(0) { $0 + $1.openStreams } }
    var waitingCount: Int { lanes.reduce(0) { $0 + $1.waitingCount } }
    var isPaused: Bool { pause != nil }
    var isTripped: Bool { breaker.isTripped }
    /// Retired, and nothing is open any more.
    var isGone: Bool { isRetired && verdicts.isEmpty && lanes.allSatisfy(\.isGone) }

    var status: PushCredentialStatus {
        PushCredentialStatus(
            credential: key, isCertificate: provider == nil,
            pausedFor: pause.map { $0.until.since(now) }, pauseReason: pause?.reason ?? "",
            isTripped: breaker.isTripped, failures: redial.failures, lastGoAway: lastGoAway,
            lastFailure: lastFailure,
            topics: topics.resting(now: now).map {
                PushTopicStatus(topic: $0.topic, pausedFor: $0.wait, reason: $0.reason)
            },
            lanes: lanes.map {
                PushLaneStatus(
                    lane: $0.kind, connections: $0.connectionCount, open: $0.openStreams,
                    allowed: $0.streamsAllowed, waiting: $0.waitingCount,
                    oldestStream: $0.oldestStream)
            })
    }

    func take(_ push: HeldPush) {
        guard !isRetired, pause == nil, topics.take(push.job.request.topic, now: now) else {
            return owner.finish(push, .notSent, keepsToken: false)
        }
        lane(push.job.lane).take(push)
    }

    func tick() {
        if let pause, pause.until <= now || isOver(pause) {
            self.pause = nil
            isProbing = !pause.isOfKey
            log.info("push.resumed", place)
        }
        keepToken()
        for lane in lanes { lane.tick() }
        judge(verdicts.due(reserve: configuration.leaseReserve, now: now))
    }

    /// The store always has a token of the key that can be sent: who tries the key out beside this
    /// server sends that one too.
    private func keepToken() {
        guard let provider, pause == nil, !isRetired, isKeySound else { return }
        do throws(UnusableKey) {
            _ = try owner.tokens.current(provider)
        } catch {
            // The first push will tell.
            isKeySound = false
        }
    }

    /// A clock was put right: there will be another token.
    private func isOver(_ pause: Pause) -> Bool {
        guard let token = pause.token, let provider,
            owner.tokens.isGivenUp(token, of: provider)
        else { return false }
        pauseCount = 0
        return true
    }

    /// The credential was changed or removed: what waits is given back, what is under way ends.
    func retire() -> [HeldPush] {
        isRetired = true
        judge(verdicts.takeAll())
        return lanes.flatMap { $0.retire() }
    }

    /// Ends at once.
    func stop() {
        isRetired = true
        judge(verdicts.takeAll())
        for lane in lanes { lane.stop() }
    }

    /// What waited for a provider token can go.
    func tokenCame() {
        for lane in lanes { lane.pump() }
    }

    // MARK: - Pauses

    private func rest(
        _ pause: Milliseconds, reason: String, isOfKey: Bool, token: String? = nil
    ) {
        guard self.pause == nil, !isRetired else { return }
        let until = pause == .max ? Instant(milliseconds: .max) : now + pause
        self.pause = Pause(
            until: until, isOfKey: isOfKey, reason: reason, token: token)
        log.error(
            "push.paused",
            place + [
                LogField("reason", reason),
                LogField("seconds", pause == .max ? "until changed" : "\(pause / 1000)"),
            ])
        for lane in lanes { lane.giveUpWaiting() }
    }

    /// APNs accepts no push of this credential as it is configured.
    ///
    /// - Parameter token: the provider token, if that is what was refused.
    private func refused(_ reason: String, token: String? = nil) {
        let wait = min(configuration.pause << UInt64(min(pauseCount, 8)), configuration.pauseMax)
        if pause == nil { pauseCount += 1 }
        rest(wait, reason: reason, isOfKey: false, token: token)
    }

    /// APNs takes no push of this credential to one of its topics. What it looks at before that,
    /// it has taken.
    private func refusedTopic(_ topic: String, _ reason: String) {
        if !breaker.isTripped {
            isProbing = false
            pauseCount = 0
        }
        guard let wait = topics.refused(topic, reason: reason, now: now) else { return }
        log.error(
            "push.topic_paused",
            place + [
                LogField("topic", topic), LogField("reason", reason),
                LogField("seconds", wait / 1000),
            ])
        for lane in lanes { lane.giveUpWaiting(topic) }
    }

    /// The key, which other credentials may have too, must not be used for a while.
    func restKey(for pause: Milliseconds, reason: String) {
        rest(pause, reason: reason, isOfKey: true)
    }

    private var place: [LogField] {
        [
            LogField("app", key.app.name), LogField("environment", "\(key.environment)"),
            LogField("credential", key.name), LogField("host", credential.host),
        ]
    }

    // MARK: - Answers

    private func act(
        on answer: PushAnswer, to push: HeldPush, _ response: PushResponse, _ lane: Lane,
        _ connection: APNsConnection
    ) {
        switch answer {
        case .accepted:
            isProbing = false
            pauseCount = 0
            takenTopic(push)
            if breaker.isTripped { log.info("push.breaker_reset", place) }
            if breaker.isTripped { breaker.reset() }
        case .deadToken: takenTopic(push)
        case .ourBug: break
        case .pauseCredential:
            let isOfToken = response.reason == "InvalidProviderToken"
            refused(response.reason, token: isOfToken ? push.providerToken : nil)
        case .pauseTopic: refusedTopic(push.job.request.topic, response.reason)
        case .retryLater(let after, let step):
            switch step {
            case .none: break
            case .reconnect: lane.replace(connection, reason: response.reason)
            case .reconnectNow:
                lane.replace(connection, reason: response.reason, isUrgent: true)
            case .keepToken:
                if let provider {
                    owner.rest(provider, for: after, reason: response.reason)
                } else {
                    refused(response.reason)
                }
            case .renewToken: renewToken(after: push, lane, connection, response.reason)
            }
        }
    }

    private func takenTopic(_ push: HeldPush) {
        guard topics.taken(push.job.request.topic) else { return }
        log.info("push.topic_resumed", place + [LogField("topic", push.job.request.topic)])
    }

    private func renewToken(
        after push: HeldPush, _ lane: Lane, _ connection: APNsConnection, _ reason: String
    ) {
        guard let provider else { return refused(reason) }
        switch owner.tokens.expired(provider, sent: push.providerToken) {
        case .goOn:
            // APNs may go on refusing on the connection that carried the expired one.
            lane.replace(connection, reason: reason, isUrgent: true)
        case .rest(let wait):
            log.error(
                "push.token_refused_young",
                place + [LogField("hint", "is this host's clock right?")])
            owner.rest(provider, for: wait, reason: reason)
        }
    }

    /// Writes an answer down: that a token is wrong only once it is clear that it is not the
    /// credential.
    private func settle(_ push: HeldPush, _ response: PushResponse, _ answer: PushAnswer) {
        let reply = PushReply.answered(
            status: response.status, reason: response.reason, timestamp: response.timestamp,
            retryAfter: response.retryAfter)
        let isProven = push.job.lane != .probe
        // 410 comes with a time, and means the one token.
        let isRefusal = answer == .deadToken(since: nil) && response.status == 400
        var isTripping = false
        if isProven, answer == .accepted || isRefusal || response.status == 410 {
            isTripping = breaker.answered(isRefusal: isRefusal, now: now)
        }
        if isTripping {
            metrics.breakerTrips.add()
            log.error(
                "push.breaker_tripped",
                place + [
                    LogField("reason", response.reason),
                    LogField(
                        "hint",
                        "tokens that APNs accepted before are called wrong all at once: is the "
                            + "credential's environment, topic or host another one now? No "
                            + "token is dropped"),
                ])
        }
        guard isRefusal else {
            owner.finish(push, reply, keepsToken: false)
            if isProven, answer == .accepted,
                let cleared = verdicts.taken(push.job.request.topic)
            {
                judge([cleared])
            }
            return
        }
        if breaker.isTripped {
            owner.finish(push, reply, keepsToken: true)
            judge(verdicts.takeAll())
            refused(response.reason)
        } else if isProven, configuration.verdictDelay > 0, !isRetired {
            verdicts.add(push, reply, now: now)
        } else {
            owner.finish(push, reply, keepsToken: false)
        }
    }

    private func judge(_ ready: [Verdicts.Verdict]) {
        for verdict in ready {
            owner.finish(verdict.push, verdict.reply, keepsToken: breaker.isTripped)
        }
    }

    private func tell(_ push: HeldPush, _ response: PushResponse, _ answer: PushAnswer) {
        let fields = {
            self.place + [
                LogField("class", push.job.lane.name), LogField("kind", "\(push.job.kind)"),
                LogField("push", push.job.request.id), LogField("device", push.job.key.device),
                LogField("status", response.status), LogField("reason", response.reason),
            ]
        }
        switch answer {
        case .accepted: log.debug("push.accepted", fields())
        case .deadToken, .retryLater: log.info("push.refused", fields())
        case .pauseCredential, .pauseTopic: log.warning("push.refused", fields())
        case .ourBug: log.error("push.wrong", fields())
        }
    }
}

// MARK: - From the lanes

extension CredentialPool: LaneOwner {
    var isBusyProbing: Bool { isProbing && openStreams > 0 }
    var mayConnect: Bool { redial.mayConnect(now: now) }

    func isBlocked(_ lane: PushClass) -> Bool { owner.isBlocked(PushLane(key, lane)) }

    func nextConnectionNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    func makeTLS() throws(TLSError) -> TLSEngine { try owner.makeTLS(credential) }

    func authority() throws(UnusableKey) -> PushAuthority {
        guard let provider else { return .certificate }
        return try owner.tokens.current(provider).map { .token($0) } ?? .awaited
    }

    func unusable(_ reason: String) { rest(.max, reason: reason, isOfKey: false) }

    func connectFailed(_ reason: String) { lastFailure = reason }

    func connectionWorked(_ connection: APNsConnection) {
        lastFailure = ""
        if redial.failures > 0, connection.age >= configuration.soundAge { redial.worked() }
    }

    func connectionLost(_ connection: APNsConnection) -> Milliseconds {
        redial.lost(
            age: connection.age, hasAnswered: connection.hasAnswered,
            chance: UInt64.random(in: 0...UInt64.max), now: now)
        return redial.nextAt.map { $0.since(now) } ?? 0
    }

    func answered(
        _ push: HeldPush, _ response: PushResponse, lane: Lane, connection: APNsConnection
    ) {
        let answer = PushAnswer(
            status: response.status, reason: response.reason, timestamp: response.timestamp,
            failures: 0, kind: push.job.kind, retryAfter: response.retryAfter)
        tell(push, response, answer)
        topics.cameBack(push.job.request.topic)
        noteToken(push, response)
        var push = push
        if push.job.lane == .campaign { push.answeredID = response.id }
        settle(push, response, answer)
        act(on: answer, to: push, response, lane, connection)
    }

    /// What an answer says of the provider token and of the time.
    private func noteToken(_ push: HeldPush, _ response: PushResponse) {
        guard let provider else { return }
        // 403 is about the token, 429 may be.
        if response.status != 403, response.status != 429 {
            owner.tokens.believed(provider, sent: push.providerToken)
        }
        guard let date = response.date,
            let ahead = owner.tokens.heard(provider, seconds: date)
        else { return }
        log.error(
            "push.clock_wrong",
            place + [
                LogField("minutes_ahead", ahead / 60),
                LogField("hint", "set this host's clock; provider tokens go by APNs' meanwhile"),
            ])
    }

    func finish(_ push: HeldPush, _ reply: PushReply) {
        topics.cameBack(push.job.request.topic)
        owner.finish(push, reply, keepsToken: false)
    }

    func goneAway(reason: String) {
        lastGoAway = reason
        guard !reason.isEmpty else { return }
        let answer = PushAnswer(status: 0, reason: reason, timestamp: nil, failures: 0)
        if answer == .pauseCredential { refused(reason) }
    }

    func laneHasRoom(_ lane: PushClass) {
        owner.poolHasRoom(PushLane(key, lane))
        // While one push probes for all, the others wait for it.
        if lanes.contains(where: { $0.waitingCount > 0 && $0.kind != lane }), !isBusyProbing {
            for other in lanes where other.kind != lane { other.pump() }
        }
    }
}
