import Feed
import Model
import Testing
import Wake

@testable import PushPool

/// A pool whose store and APNs are played by a test. What it does is read as lines.
struct Stage {
    private(set) var pool: PushPool
    /// The loop's milliseconds, and those of the tokens.
    private(set) var now: UInt64 = 10_000_000
    /// What people were told.
    private(set) var told: [String] = []
    /// Hosts that were named when a credential was changed or removed.
    private(set) var changedAt: [String] = []
    /// The store takes no answers.
    var storeFails = false
    /// Another number after each change of what may be claimed.
    var changes: UInt64?
    private var claim: PushClaim?
    private var tags: [UInt64: (connection: ConnectionID, tag: UInt64)] = [:]
    private var connections: [UInt64: ConnectionID] = [:]
    private var tokensMade = 0
    private var records: [PushCredentialRecord] = []

    /// - Parameter names: of the credentials; those of one name before a `/` share a key, and a
    ///   name that begins with "cert" has a certificate.
    init(
        _ names: [String] = ["chat"], change: (inout PushGatewayConfiguration) -> Void = { _ in }
    ) {
        var configuration = PushGatewayConfiguration()
        configuration.verdictDelay = 0
        change(&configuration)
        pool = PushPool(configuration: configuration, seed: 1)
        _ = use(names)
    }

    static func credential(_ name: String) -> PushCredentialRecord {
        let isCertificate = name.hasPrefix("cert")
        return PushCredentialRecord(
            app: AppID(name), environment: .production, keyID: isCertificate ? "" : "KEY",
            team: isCertificate ? "" : "TEAM", privateKeyPEM: String(name.split(separator: "/")[0]),
            topics: "com.\(name)", host: "push.example", port: 443,
            changedAt: Timestamp(milliseconds: 1), certificatePEM: isCertificate ? "c" : nil)
    }

    // MARK: - The store

    mutating func use(_ names: [String], host: String = "push.example") -> [String] {
        records = names.map { Self.credential($0) }
        for index in records.indices { records[index].host = host }
        return handle(.credentials(records))
    }

    /// So much time passes, and the timer rings.
    mutating func wait(_ milliseconds: UInt64 = 500) -> [String] {
        now += milliseconds
        return handle(.tick)
    }

    /// Answers the claim that is open with these pushes.
    mutating func give(
        _ numbers: [UInt64], app: String = "chat", kind: PushKind = .silent,
        lane: PushClass? = nil, more: Bool = false, nextIn: UInt64? = nil,
        blocked: [PushClass] = []
    ) -> [String] {
        guard let claim else { return ["no claim is open"] }
        self.claim = nil
        let jobs = numbers.map { job($0, app: app, kind: kind, lane: lane) }
        let next = nextIn.map { Timestamp(milliseconds: wall + $0) }
        return handle(
            .claimed(
                claim,
                .success(
                    ClaimedPushes(
                        jobs: jobs, more: more,
                        blocked: blocked.map {
                            PushLane(
                                CredentialKey(app: AppID(app), environment: .production), $0)
                        }, nextDue: next))))
    }

    /// Whether the last claim asks how much waits.
    var counts: Bool? { claim?.countsQueues }

    /// The devices of these pushes have lost their tokens.
    mutating func detach(_ numbers: [UInt64], app: String = "chat") -> [String] {
        handle(.detached(numbers.map { DetachedDevice(job($0, app: app).key) }))
    }

    /// How many pushes of a class the last claim takes; 0: none is open.
    func room(_ lane: PushClass) -> Int { claim?.rooms.first?[lane] ?? 0 }

    /// How many pushes the last claim asks for.
    var asked: Int? { claim?.streams }

    /// The store keeps the token that was signed last.
    mutating func keep(_ token: String? = nil, key: String = "chat") -> [String] {
        tokensMade += 1
        let kept = KeptProviderToken(token: token ?? "t\(tokensMade)", age: 0)
        let key = ProviderKey(team: "TEAM", keyID: "KEY", pem: key)
        return handle(.token(key, .kept(kept, issuedAt: wall)))
    }

    mutating func cannotSign(key: String = "chat") -> [String] {
        let key = ProviderKey(team: "TEAM", keyID: "KEY", pem: key)
        return handle(.token(key, .unusable("no key")))
    }

    mutating func stop() -> [String] { handle(.stop) }

    // MARK: - APNs

    mutating func on(_ connection: UInt64, _ events: ConnectionEvent...) -> [String] {
        guard let id = connections[connection] else { return ["no connection \(connection)"] }
        return handle(.connection(id, events))
    }

    /// The answer to a push, where it was sent last.
    mutating func answer(
        _ push: UInt64, _ status: UInt64 = 200, _ reason: String = "",
        retryAfter: Milliseconds? = nil
    ) -> [String] {
        guard let (id, tag) = tags[push] else { return ["push \(push) was not sent"] }
        var response = PushResponse(status: status, reason: reason)
        response.retryAfter = retryAfter
        return handle(.connection(id, [.heard, .answered(tag: tag, response)]))
    }

    /// The stream of a push, where it was sent last.
    func tag(_ push: UInt64) -> UInt64 { tags[push]?.tag ?? 0 }

    /// A connection that APNs trusts, with so many streams.
    mutating func warmUp(streams: Int = 100) {
        _ = wait()
        _ = keep()
        _ = give([999])
        _ = on(1, .up, .heard, .allows(streams: streams))
        _ = answer(999)
        _ = wait()
    }

    // MARK: - Reading

    private var wall: UInt64 { 1_700_000_000_000 + now }

    private mutating func handle(_ input: PushInput) -> [String] {
        let moment = PushMoment(
            now: Instant(milliseconds: now), uptime: Instant(milliseconds: now), wall: wall,
            changes: changes)
        var lines: [String] = []
        var finishes: [PushFinish] = []
        for action in pool.handle(input, at: moment) {
            if let line = read(action) { lines.append(line) }
            if case .finish(let finish) = action { finishes.append(finish) }
        }
        for finish in finishes {
            lines += handle(.finished(finish, storeFails ? .unavailable("test") : nil))
        }
        return lines
    }

    private mutating func read(_ action: PushAction) -> String? {
        switch action {
        case .claim(let claim):
            self.claim = claim
            return nil
        case .finish(let finish): return "\(finish.push.number) \(word(finish))"
        case .keepToken(let request):
            let after = request.refused.map { " after \($0)" } ?? ""
            return "sign\(after)"
        case .dial(let id, _):
            connections[id.number] = id
            return "dial \(id.number)"
        case .send(let id, let tag, let push):
            tags[push.number] = (id, tag)
            let token = push.providerToken.map { " with \($0)" } ?? ""
            return "send \(push.number) on \(id.number)\(token)"
        case .cancel(let id, let tag): return "cancel stream \(tag) of \(id.number)"
        case .ping(let id): return "ping \(id.number)"
        case .close(let id, let saysGoodbye):
            return "close \(id.number)\(saysGoodbye ? "" : " at once")"
        case .wait: return nil
        case .tell(let place, let report):
            if case .credential(.changed) = report { changedAt.append(place.host) }
            if let line = read(report) { told.append(line) }
            return nil
        case .ended(let left): return "ended, \(left) left"
        }
    }

    private func word(_ finish: PushFinish) -> String {
        let kept = finish.keepsToken ? ", token kept" : ""
        switch finish.reply {
        case .answered(200, _, _, _): return "taken"
        case .answered(let status, let reason, _, let retryAfter):
            let after = retryAfter.map { " after \($0)" } ?? ""
            return "\(status) \(reason)\(after)\(kept)"
        case .unanswered: return "unanswered"
        case .notSent: return "not sent"
        case .lost: return "lost"
        }
    }

    private func read(_ report: PushReport) -> String? {
        switch report {
        case .credential(.paused(let reason, let pause)):
            "paused \(pause.map { "\($0 / 1_000) s" } ?? "until changed"): \(reason)"
        case .credential(.resumed): "resumed"
        case .credential(.topicPaused(let topic, let reason, let pause)):
            "topic \(topic) rests \(pause / 1_000) s: \(reason)"
        case .credential(.breakerTripped): "breaker tripped"
        case .credential(.tokenRefusedYoung): "token refused young"
        case .credential(.connectionAdded(let count)): "\(count) connections"
        case .connection(let number, .replaced(let reason)): "\(number) replaced: \(reason)"
        case .connection(let number, .lost(let loss, _, let retry)):
            "\(number) lost: \(loss.label), retry \(retry > 0 ? "later" : "now")"
        case .connection(let number, .refused(let streams, let wait?)):
            "\(number) refuses \(streams), waits \(wait) ms"
        case .connection(let number, .notMade(let loss, _)): "\(number) not made: \(loss.label)"
        case .connection(let number, .left(let loss)): "\(number) left: \(loss.label)"
        default: nil
        }
    }

    mutating func forgetTold() { told = [] }
}

/// A push for the device of this number.
func job(
    _ number: UInt64, app: String = "chat", kind: PushKind = .silent, lane: PushClass? = nil,
    topic: String? = nil, attempt: UInt64 = 1
) -> PushJob {
    let id = WakeID(high: 7, low: number)
    return PushJob(
        key: PushJobKey(
            app: AppID(app), user: UserID("anna"), device: DeviceID(high: 9, low: number),
            owner: BootID(high: 1, low: 2), attempt: attempt),
        kind: kind, lane: lane,
        credential: CredentialKey(app: AppID(app), environment: .production),
        request: .silent(
            PushPayload.Subject(event: "message", wake: id),
            to: PushRequest.Destination(
                token: Array("\(number)".utf8), topic: topic ?? "com.\(app)")),
        lease: Timestamp(milliseconds: .max))
}

extension HeldPush {
    var number: UInt64 { job.key.device.low }
}

extension ConnectionLoss {
    static let cut = Self(label: "socket", explanation: "cut")
}
