import Crypto
import EventLoop
public import Feed
import Glibc
import HTTP2
import Model
import Telemetry
import Wake

/// Finds out whether a push credential would work: reads it, connects, and sends a push for each
/// of its topics to a token that cannot exist. APNs looks at the token last, so that being
/// refused for the token means that all else is right.
public enum CredentialDoctor {
    /// Waits for what APNs says, half a minute at most. A few refusals do no harm; it should not
    /// run in a loop.
    ///
    /// - Parameter kept: provider tokens that the store keeps: that of the key is sent, so that a
    ///   server beside it is not punished for a second one.
    /// - Returns: at least one finding; the credential is good if all of them are.
    /// - Throws: a `StreamError` when the process has no thread or descriptor left.
    public static func examine(
        _ credential: PushCredentialRecord, kept: [ProviderTokenRecord] = []
    ) throws -> [CredentialFinding] {
        try examine(credential, kept: kept, wall: SystemClock.wallMilliseconds())
    }

    /// Asks the store for the provider token of a credential's key, with one signed now in case it
    /// keeps none; `nil`: the credential is a certificate, or its key cannot sign.
    public static func tokenRequest(for credential: PushCredentialRecord) -> KeepProviderToken? {
        guard credential.certificatePEM == nil else { return nil }
        let key = ProviderKey(
            team: credential.team, keyID: credential.keyID, pem: credential.privateKeyPEM)
        guard let token = try? ProviderSigner(key).sign(wall: SystemClock.wallMilliseconds())
        else { return nil }
        return KeepProviderToken(
            team: key.team, keyID: key.keyID, fingerprint: key.fingerprint, token: token)
    }

    static func examine(
        _ credential: PushCredentialRecord, kept: [ProviderTokenRecord] = [], wall: UInt64,
        configuration: PushGatewayConfiguration = PushGatewayConfiguration()
    ) throws -> [CredentialFinding] {
        let read = CredentialReading(credential: credential, wall: wall).findings
        // With a key that does not sign there is nothing to connect with.
        guard read.allSatisfy({ $0.isGood || $0.check == "endpoint" }) else { return read }
        let result = Result()
        let thread = try LoopThread.start(name: "doctor") { loop in
            result.visit = DoctorVisit(
                credential, kept: kept, wall: wall, loop: loop, configuration: configuration
            ) { findings in
                result.findings = findings
                result.ended.arrive()
            }
        }
        _ = result.ended.wait(seconds: 30)
        thread.stop()
        thread.join()
        let told = result.findings
        return read
            + (told.isEmpty
                ? [CredentialFinding("connection", false, "no answer in half a minute")] : told)
    }

    private final class Result: @unchecked Sendable {
        // @unchecked: `visit` is the loop's, `findings` is written before the latch opens.
        let ended = Latch()
        var visit: DoctorVisit?
        var findings: [CredentialFinding] = []
    }
}

/// One connection of the doctor. Loop-confined.
private final class DoctorVisit: APNsConnectionOwner {
    private let credential: PushCredentialRecord
    private let kept: [ProviderTokenRecord]
    private let wall: UInt64
    private let configuration: PushGatewayConfiguration
    private let loop: Loop
    private var topics: [String]
    private var findings: [CredentialFinding] = []
    private var done: (([CredentialFinding]) -> Void)?
    private var connection: APNsConnection?
    private var context: TLSContext?
    private var token: String?
    private var timer: LoopTimer?
    private var goAwayReason = ""

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

    private func tick() {
        if connection == nil { start() }
        connection?.tick()
        if done != nil { timer?.start(afterMilliseconds: 100) }
    }

    private func start() {
        do {
            let certificate = credential.certificatePEM
            let context = try TLSContext.client(
                trustedCertificates: credential.trustedCertificatesPEM.map { Array($0.utf8) },
                protocols: ["h2"], certificateChain: certificate.map { Array($0.utf8) },
                privateKey: certificate == nil ? nil : Array(credential.privateKeyPEM.utf8))
            self.context = context
            if certificate == nil { token = try providerToken() }
            let made = APNsConnection(
                number: 1,
                endpoint: APNsEndpoint(
                    host: credential.host, port: UInt16(clamping: credential.port)),
                tls: try context.makeEngine(serverName: credential.host),
                usesTokens: certificate == nil, loop: loop, configuration: configuration,
                metrics: GatewayMetrics(Metrics()), owner: self)
            connection = made
            made.start()
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

    private func send(_ topic: String) {
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
        guard let connection else { return }
        let push = HeldPush(job: job, claimedAt: Instant(milliseconds: loop.now))
        switch connection.submit(push, token: token) {
        case .sent: connection.flush()
        case .full: break
        case .ending: break
        case .impossible(let text): finish(CredentialFinding("topic", false, text))
        }
    }

    private func next() {
        guard let topic = topics.last else { return finish(nil) }
        send(topic)
    }

    private func finish(_ last: CredentialFinding?) {
        guard let done else { return }
        self.done = nil
        if let last { findings.append(last) }
        connection?.stop()
        timer?.close()
        timer = nil
        done(findings)
    }

    private func verdict(_ topic: String) -> CredentialVerdict {
        CredentialVerdict(credential: credential, topic: topic)
    }

    // MARK: From the connection

    func connectionReady(_ connection: APNsConnection) {
        findings.append(
            CredentialFinding(
                "connection", true, "TLS and HTTP/2 with \(credential.host):\(credential.port)"))
        next()
    }

    func connectionHasRoom(_ connection: APNsConnection) {
        if connection.openStreams == 0, !topics.isEmpty { next() }
    }

    func connection(
        _ connection: APNsConnection, answered push: HeldPush, _ response: PushResponse
    ) {
        guard let topic = topics.popLast() else { return }
        if let date = response.date, !findings.contains(where: { $0.check == "clock" }) {
            findings.append(CredentialVerdict.clock(skew: Int64(clamping: wall / 1000) - date))
        }
        findings.append(verdict(topic).finding(response))
        if topics.isEmpty { finish(nil) }
    }

    func connection(_ connection: APNsConnection, leftUnanswered push: HeldPush) {
        guard done != nil, goAwayReason.isEmpty else { return }
        finish(CredentialFinding("connection", false, "APNs does not answer a push"))
    }

    func connection(_ connection: APNsConnection, returned pushes: [HeldPush]) {
        guard goAwayReason.isEmpty else { return }
        finish(CredentialFinding("connection", false, "APNs refuses the stream of a push"))
    }

    func connection(_ connection: APNsConnection, goAway reason: String, code: HTTP2ErrorCode) {
        goAwayReason = reason.isEmpty ? "GOAWAY \(code.rawValue)" : reason
        finish(
            verdict(topics.last ?? "").finding(PushResponse(status: 403, reason: goAwayReason)))
    }

    func connectionIsSuspect(_ connection: APNsConnection) {}

    func connection(_ connection: APNsConnection, ended end: ConnectionEnd) {
        guard end != .stopped, end != .retired else { return }
        finish(verdict(topics.last ?? "").finding(end))
    }
}

extension PushResponse {
    /// Seconds since 1970 of an HTTP date (RFC 9110 5.6.7).
    static func seconds(httpDate text: String) -> Int64? {
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let words = text.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let day = Int32(words[1]),
            let month = months.firstIndex(of: String(words[2])), let year = Int32(words[3]),
            (1970...9999).contains(year)
        else { return nil }
        let time = words[4].split(separator: ":").compactMap { Int32($0) }
        guard time.count == 3, (1...31).contains(day), time.allSatisfy({ (0...60).contains($0) })
        else { return nil }
        var parts = tm()
        parts.tm_year = year - 1900
        parts.tm_mon = Int32(month)
        parts.tm_mday = day
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (time[0], time[1], time[2])
        return Int64(timegm(&parts))
    }
}
