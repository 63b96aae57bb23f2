import Crypto
import EventLoop
import Feed
import Model
import PushPool
import Telemetry
import Wake

/// One connection of the doctor: a push for each topic, one after the other. Loop-confined.
final class DoctorVisit {
    private let credential: PushCredentialRecord
    private let kept: [ProviderTokenRecord]
    private let wall: UInt64
    private let configuration: PushGatewayConfiguration
    private let loop: Loop
    /// Those that are still to be tried, the next one last.
    private var topics: [String]
    private var findings: [CredentialFinding] = []
    private var done: (([CredentialFinding]) -> Void)?
    private var connection: APNsConnection?
    private var contexts = TLSContexts()
    private var token: String?
    private var timer: LoopTimer?
    /// What is waited for must come before.
    private var deadline: Instant?
    private var isUp = false
    private var lastTag: UInt64 = 0
    private var isAsking = false

    init(
        _ credential: PushCredentialRecord, kept: [ProviderTokenRecord], wall: UInt64, loop: Loop,
        configuration: PushGatewayConfiguration, done: @escaping ([CredentialFinding]) -> Void
    ) {
        self.credential = credential
        self.kept = kept
        self.wall = wall
        self.configuration = configuration
        self.loop = loop
        self.done = done
        topics = credential.topicsByUse.sent.reversed()
        // Not from inside the start of the thread.
        timer = loop.timer { [unowned self] in self.tick() }
        timer?.start(afterMilliseconds: 1)
    }

    private var now: Instant { Instant(milliseconds: loop.now) }

    private func tick() {
        if connection == nil { start() }
        if let deadline, deadline <= now {
            finish(
                CredentialFinding(
                    "connection", false,
                    isUp
                        ? "APNs does not answer a push"
                        : "no connection to \(credential.host):\(credential.port) in time"))
        }
        if done != nil { timer?.start(afterMilliseconds: 100) }
    }

    private func start() {
        do {
            if credential.certificatePEM == nil { token = try providerToken() }
            let made = APNsConnection(
                endpoint: APNsEndpoint(
                    host: credential.host, port: UInt16(clamping: credential.port)),
                tls: try contexts.makeEngine(credential), loop: loop, bytesSent: Counter()
            ) { [unowned self] events in self.take(events) }
            connection = made
            deadline = now + configuration.connectDeadline
            made.start(timeout: configuration.connectDeadline)
        } catch {
            finish(CredentialFinding("connection", false, "\(error)"))
        }
    }

    private func providerToken() throws(UnusableKey) -> String {
        let key = ProviderKey(
            team: credential.team, keyID: credential.keyID, pem: credential.privateKeyPEM)
        let fingerprint = key.fingerprint
        let now = Timestamp(milliseconds: wall)
        let known = kept.first { record in
            record.team.isExactly(key.team) && record.keyID.isExactly(key.keyID)
                && record.fingerprint == fingerprint
                && now.since(record.madeAt) < ProviderTokenRecord.renewAfter
        }
        if let known { return known.token }
        return try ProviderSigner(key).sign(wall: wall)
    }

    /// Sends a push for the next topic unless one is under way.
    private func ask() {
        guard done != nil, isUp, !isAsking, let topic = topics.last, let connection else { return }
        let id = WakeID(high: 0x7000, low: 0x8000_0000_0000_0000)
        let request = PushRequest.silent(
            PushPayload.Subject(event: "check", wake: id),
            to: PushRequest.Destination(token: [UInt8](repeating: 0, count: 32), topic: topic))
        let job = PushJob(
            key: PushJobKey(
                app: credential.app, user: UserID("doctor"), device: DeviceID(high: 0, low: 0),
                owner: BootID(high: 0, low: 0), attempt: 1),
            kind: .silent, lane: .probe, credential: CredentialKey(credential),
            request: request, lease: Timestamp(milliseconds: .max))
        lastTag += 1
        isAsking = true
        deadline = now + configuration.streamDeadline
        connection.submit(HeldPush(job: job, claimedAt: now), tag: lastTag, token: token)
        connection.flush()
    }

    private func finish(_ last: CredentialFinding?) {
        guard let done else { return }
        self.done = nil
        if let last { findings.append(last) }
        connection?.close(saysGoodbye: false)
        timer?.close()
        timer = nil
        done(findings)
    }

    private var verdict: CredentialVerdict {
        CredentialVerdict(credential: credential, topic: topics.last ?? "")
    }

    // MARK: - From the connection

    private func take(_ events: [ConnectionEvent]) {
        for event in events where done != nil { take(event) }
        if isUp, topics.isEmpty { finish(nil) }
        // What could not be sent is tried again when something has come.
        if events.contains(.heard) { ask() }
    }

    private func take(_ event: ConnectionEvent) {
        switch event {
        case .up:
            isUp = true
            findings.append(
                CredentialFinding(
                    "connection", true,
                    "TLS and HTTP/2 with \(credential.host):\(credential.port)"))
        case .answered(_, let response?): answered(response)
        case .answered(_, nil), .reset:
            finish(CredentialFinding("connection", false, "APNs does not answer a push"))
        case .refused:
            finish(CredentialFinding("connection", false, "APNs refuses the stream of a push"))
        case .goAway(let reason, let code):
            let told = reason.isEmpty ? "GOAWAY \(code)" : reason
            finish(verdict.finding(PushResponse(status: 403, reason: told)))
        case .notTaken: isAsking = false
        case .impossible(_, let text): finish(CredentialFinding("topic", false, text))
        case .unusable(let problem), .untimely(let problem):
            finish(CredentialFinding("connection", false, problem))
        case .ended: if let end = connection?.end { finish(verdict.finding(end)) }
        case .heard, .allows, .pingAnswered, .behind, .caughtUp: break
        }
    }

    private func answered(_ response: PushResponse) {
        isAsking = false
        if let date = response.date, !findings.contains(where: { $0.check == "clock" }) {
            findings.append(CredentialVerdict.clock(skew: Int64(clamping: wall / 1000) - date))
        }
        findings.append(verdict.finding(response))
        _ = topics.popLast()
    }
}
