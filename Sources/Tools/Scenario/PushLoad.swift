import APNsSimulator
import Crypto
import EventLoop
import Feed
import FoundationEssentials
import Glibc
import Model
import PushGateway
import StoreService
import Telemetry
import Wake

/// How the gateway's transport is measured.
public struct PushLoadOptions: Sendable {
    public var pushes = 15_000
    public var payloadBytes = 150
    /// The `rouse` executable that runs the simulator.
    public var executable = ""
    /// Wakes that are sent alone and beside a campaign; 0: that is not measured.
    public var wakes = 0
    /// Debian's nghttp2-client; empty: it is not measured.
    public var h2load = "/usr/bin/h2load"
    public var keepsFolder = false
    public var progress: @Sendable (String) -> Void = { _ in }

    public init() {}
}

/// Sends the pushes of one campaign through the real gateway, with a provider token and with a
/// client certificate, and the same requests with h2load, to one simulator in a process of its
/// own. The pushes come from memory: the store is not part of it.
public final class PushLoad {
    private static let topic = "org.example.load"
    private static let team = "TEAM000001"
    private static let keyID = "KEY0000001"
    private static let collapseID = "0190a1b2-c3d4-7123-8456-789abcdef012"
    private static let expiration: UInt64 = 4_000_000_000

    private let options: PushLoadOptions
    private let folder: URL
    private let simulator: SimulatorProcess
    private let certificates: DevelopmentCertificates
    private let key = PrivateKey.generate(.p256)
    private var tokens: [String] = []

    public static func run(_ options: PushLoadOptions) throws -> PushLoadReport {
        let load = try PushLoad(options)
        defer { load.tidy() }
        return try load.measure()
    }

    private init(_ options: PushLoadOptions) throws {
        self.options = options
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-push-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        certificates = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        try Data(certificates.server.certificatePEM.utf8)
            .write(to: folder.appendingPathComponent("server.pem"))
        try Data(certificates.server.privateKeyPEM.utf8)
            .write(to: folder.appendingPathComponent("server.key"))
        simulator = try SimulatorProcess(
            executable: URL(fileURLWithPath: options.executable), folder: folder)
    }

    private func tidy() {
        simulator.kill()
        if options.keepsFolder {
            options.progress("kept \(folder.path)")
        } else {
            try? FileManager.default.removeItem(at: folder)
        }
    }

    private func measure() throws -> PushLoadReport {
        try simulator.start()
        try setUp()
        var report = PushLoadReport(pushes: options.pushes, payloadBytes: payload.count)
        options.progress("\(options.pushes) pushes through the gateway")
        report.gateway = try gateway(credential)
        options.progress("the same with a client certificate")
        report.certificate = try gateway(try certificate())
        if !options.h2load.isEmpty, FileManager.default.isExecutableFile(atPath: options.h2load) {
            options.progress("\(options.pushes) requests with h2load")
            report.h2load = try h2load()
        }
        if options.wakes > 0 {
            options.progress("\(options.wakes) wakes, alone and beside the campaign")
            let wakes = (0..<options.wakes).map { index in
                job(index, tokens[index % tokens.count], lane: .wake, credential)
            }
            report.wakes = try WakeLoad(wakes: wakes, campaign: campaign(credential))
                .measure(credential)
        }
        return report
    }

    /// The app, its key, and a token for each push.
    private func setUp() throws {
        let client = try SimulatorClient(path: simulator.control)
        var app = ControlRequest(.appAdd)
        (app.topic, app.team) = (Self.topic, Self.team)
        try client.call(app)
        var signing = ControlRequest(.keyAdd)
        (signing.kid, signing.team) = (Self.keyID, Self.team)
        signing.publicKey = key.publicKeyPEM
        try client.call(signing)
        var issue = ControlRequest(.tokenIssue)
        issue.topic = Self.topic
        issue.environment = .production
        options.progress("issuing \(options.pushes) tokens")
        let answers = try client.calls(Array(repeating: issue, count: options.pushes))
        tokens = answers.compactMap(\.token)
        guard tokens.count == options.pushes else {
            throw ScenarioError(
                "the simulator issued \(tokens.count) tokens: \(answers.first?.error ?? "")")
        }
    }

    private lazy var payload: [UInt8] = {
        let (head, tail) = (#"{"aps":{"alert":""#, #""}}"#)
        let fill = max(1, options.payloadBytes - head.utf8.count - tail.utf8.count)
        return Array((head + String(repeating: "x", count: fill) + tail).utf8)
    }()

    // MARK: - The gateway

    private var credential: PushCredentialRecord {
        PushCredentialRecord(
            app: AppID("load"), environment: .production, keyID: Self.keyID, team: Self.team,
            privateKeyPEM: key.pem, topics: Self.topic, host: "localhost",
            port: UInt64(simulator.port), trustedCertificatesPEM: certificates.authorityPEM,
            changedAt: Timestamp(milliseconds: 1))
    }

    /// The same with a client certificate, which the simulator is told of.
    private func certificate() throws -> PushCredentialRecord {
        let issued = try certificates.issuePushClient(topics: [Self.topic])
        var known = ControlRequest(.certificateAdd)
        known.certificate = issued.certificatePEM
        try SimulatorClient(path: simulator.control).call(known)
        var record = credential
        record.certificatePEM = issued.certificatePEM
        record.privateKeyPEM = issued.privateKeyPEM
        return record
    }

    private func campaign(_ credential: PushCredentialRecord) -> [PushJob] {
        tokens.enumerated().map { job($0.offset, $0.element, lane: .campaign, credential) }
    }

    private func job(
        _ index: Int, _ token: String, lane: PushClass, _ credential: PushCredentialRecord
    ) -> PushJob {
        let key = PushJobKey(
            app: AppID("load"), user: UserID("load"),
            device: DeviceID(high: 1, low: UInt64(index)), owner: BootID(high: 1, low: 1),
            attempt: 1)
        let id = WakeID(high: lane == .wake ? 8 : 7, low: UInt64(index))
        let request =
            lane == .wake
            ? PushRequest.silent(
                PushPayload.Subject(event: "message", wake: id),
                to: PushRequest.Destination(token: Hex.decode(token) ?? [], topic: Self.topic))
            : PushRequest(
                token: Hex.decode(token) ?? [], topic: Self.topic, pushType: .alert,
                priority: 10, expiration: Self.expiration, collapseID: Self.collapseID,
                id: id, payload: payload)
        return PushJob(
            key: key, kind: lane == .wake ? .silent : .alert, lane: lane,
            credential: CredentialKey(credential), request: request,
            lease: Timestamp(milliseconds: .max))
    }

    private func gateway(_ credential: PushCredentialRecord) throws -> PushLoadReport.Run {
        let jobs = campaign(credential)
        let desk = LoadDesk(jobs)
        let metrics = Metrics()
        let before = ProcessorTime(of: RUSAGE_SELF)
        let started = SystemClock.monotonicMilliseconds()
        let gateway = try PushGateway.start(
            credentials: [credential], queue: { LoadQueue(desk, on: $0) },
            boot: BootID(high: 1, low: 1), doorbell: PushGateway.Doorbell(),
            log: Log(level: .error), metrics: metrics)
        let isDone = desk.ended.wait(seconds: 300)
        let seconds = Double(SystemClock.monotonicMilliseconds() - started) / 1000
        let processor = ProcessorTime(of: RUSAGE_SELF) - before
        gateway.stop()
        guard isDone else {
            throw ScenarioError("\(desk.left) of \(jobs.count) pushes have no answer")
        }
        let sent = metrics.text.split(separator: "\n")
            .first { $0.hasPrefix("rouse_push_sent_bytes_total ") }
            .flatMap { Int($0.split(separator: " ")[1]) }
        return PushLoadReport.Run(
            seconds: seconds, processor: processor.seconds, accepted: desk.accepted,
            retried: desk.retried, refused: jobs.count - desk.accepted, refusal: desk.refusal,
            sentBytes: sent)
    }

    // MARK: - h2load

    /// The same requests: the same headers but for `apns-id`, which the gateway leaves out too.
    private func h2load() throws -> PushLoadReport.Run {
        let base = "https://localhost:\(simulator.port)/3/device/"
        let list = folder.appendingPathComponent("uris")
        try Data(tokens.map { base + $0 + "\n" }.joined().utf8).write(to: list)
        let body = folder.appendingPathComponent("payload")
        try Data(payload).write(to: body)
        let claims = #"{"iss":"\#(Self.team)","iat":\#(SystemClock.wallMilliseconds() / 1000)}"#
        let token = try CompactToken.sign(
            headerJSON: Array(#"{"alg":"ES256","kid":"\#(Self.keyID)"}"#.utf8),
            payloadJSON: Array(claims.utf8), with: key)
        let words = [
            options.h2load, "-n", "\(options.pushes)", "-c", "1", "-m", "1000", "-i", list.path,
            "-d", body.path,
            "-H", "authorization: bearer \(token)", "-H", "apns-topic: \(Self.topic)",
            "-H", "apns-push-type: alert", "-H", "apns-priority: 10",
            "-H", "apns-expiration: \(Self.expiration)",
            "-H", "apns-collapse-id: \(Self.collapseID)",
        ]
        let before = ProcessorTime(of: RUSAGE_CHILDREN)
        let started = SystemClock.monotonicMilliseconds()
        let process = try ChildProcess(words, output: .pipe, errors: .nothing)
        let text = String(decoding: process.readToEnd(), as: UTF8.self)
        process.waitForEnd()
        let seconds = Double(SystemClock.monotonicMilliseconds() - started) / 1000
        let processor = ProcessorTime(of: RUSAGE_CHILDREN) - before
        func line(_ start: String) -> [Substring]? {
            text.split(separator: "\n").first { $0.hasPrefix(start) }?.split(separator: " ")
        }
        // `status codes: 15000 2xx, 0 3xx, ...`
        let accepted = line("status codes:").flatMap { Int($0[2]) }
        // `requests: 15000 total, 15000 started, 15000 done, 15000 succeeded, 0 failed, ...`
        let failed = line("requests:").flatMap { words in
            words.firstIndex(of: "failed,").flatMap { Int(words[$0 - 1]) }
        }
        guard let accepted, let failed else {
            throw ScenarioError("h2load said:\n\(text.suffix(2_000))")
        }
        return PushLoadReport.Run(
            seconds: seconds, processor: processor.seconds, accepted: accepted, retried: 0,
            refused: failed, sentBytes: nil)
    }
}

/// The jobs of a load, in memory. From any thread.
private final class LoadDesk: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var due: [PushJob]  // guarded by `lock`
    private nonisolated(unsafe) var open: Int  // guarded by `lock`
    private nonisolated(unsafe) var taken: [WakeID: PushJob] = [:]  // guarded by `lock`
    private nonisolated(unsafe) var yes = 0  // guarded by `lock`
    private nonisolated(unsafe) var again = 0  // guarded by `lock`
    private nonisolated(unsafe) var no: String?  // guarded by `lock`
    let ended = Latch()

    init(_ jobs: [PushJob]) {
        due = jobs.reversed()
        open = jobs.count
    }

    var left: Int { lock.withLock { open } }
    var accepted: Int { lock.withLock { yes } }
    var retried: Int { lock.withLock { again } }
    /// What was answered to the first push that was not accepted.
    var refusal: String? { lock.withLock { no } }

    func claim(_ request: ClaimPushes) -> ClaimedPushes {
        lock.withLock {
            var jobs: [PushJob] = []
            let room = request.rooms.first?[.campaign] ?? 0
            while jobs.count < min(request.streams, room), let job = due.popLast() {
                taken[job.request.id] = job
                jobs.append(job)
            }
            let lane = due.last.map { PushLane($0.credential, .campaign) }
            return ClaimedPushes(
                jobs: jobs, more: lane != nil && jobs.count < room,
                blocked: jobs.count == room ? [lane].compactMap { $0 } : [], nextDue: nil)
        }
    }

    func finish(_ request: FinishPush) {
        let isOver = lock.withLock {
            guard let job = taken.removeValue(forKey: request.id) else { return false }
            switch request.reply {
            case .answered(200, _, _, _):
                yes += 1
                open -= 1
            case .answered(let status, let reason, _, _):
                if no == nil { no = reason.isEmpty ? "\(status)" : "\(status) \(reason)" }
                open -= 1
            case .unanswered, .notSent, .lost:
                again += 1
                due.append(job)
            }
            return open == 0
        }
        if isOver { ended.arrive() }
    }
}

private final class LoadQueue: PushQueue {
    private let desk: LoadDesk
    private let loop: Loop

    init(_ desk: LoadDesk, on loop: Loop) {
        self.desk = desk
        self.loop = loop
    }

    func claim(
        _ request: ClaimPushes, reply: @escaping (Result<ClaimedPushes, StoreError>) -> Void
    ) {
        let claimed = desk.claim(request)
        loop.nextTurn { reply(.success(claimed)) }
    }

    func finish(
        _ request: FinishPush, reply: @escaping (Result<Void, StoreError>) -> Void
    ) {
        desk.finish(request)
        loop.nextTurn { reply(.success(())) }
    }
}

/// User and system time of a process, or of its children that have ended.
private struct ProcessorTime {
    var seconds: Double

    init(of whose: __rusage_who) {
        var usage = rusage()
        getrusage(whose.rawValue, &usage)
        func time(_ value: timeval) -> Double {
            Double(value.tv_sec) + Double(value.tv_usec) / 1_000_000
        }
        seconds = time(usage.ru_utime) + time(usage.ru_stime)
    }

    static func - (left: Self, right: Self) -> Self {
        var rest = left
        rest.seconds -= right.seconds
        return rest
    }
}

/// What came of it.
public struct PushLoadReport: Codable, Equatable, Sendable {
    /// One sender's figures.
    public struct Run: Codable, Equatable, Sendable {
        /// From the start, connection included, to the last answer.
        public var seconds: Double
        /// Processor time of the sender.
        public var processor: Double
        public var accepted: Int
        public var retried: Int
        /// Pushes that were answered otherwise; of h2load, requests that it gave up. It opens up
        /// to 100 streams before it has read the SETTINGS that allow one until a token is
        /// accepted, where the gateway waits for them.
        public var refused: Int?
        /// The first of these answers.
        public var refusal: String?
        /// Written to sockets, TLS included; `nil`: not known.
        public var sentBytes: Int?
    }

    public var pushes: Int
    public var payloadBytes: Int
    /// With a provider token; h2load has one too, for it has no client certificates.
    public var gateway: Run?
    public var certificate: Run?
    public var h2load: Run?
    public var wakes: Wakes?

    /// Every push that the gateway sent was accepted. What h2load gives up is its own affair.
    public var isGood: Bool {
        [gateway, certificate].allSatisfy { $0.map { $0.accepted == pushes } ?? true }
    }

    public var text: String {
        func line(_ name: String, _ run: Run?) -> String {
            guard let run else { return "\(name) not measured" }
            // What was refused at once was not sent fast.
            let rate = Int(Double(run.accepted) / max(run.seconds, 0.001))
            let cost = (run.processor * 1e6 / Double(max(1, run.accepted)) * 10).rounded() / 10
            var text = "\(name) \(run.accepted) accepted in \(run.seconds) s: \(rate)/s, "
            text += "\(cost) us of processor a push"
            if run.retried > 0 { text += ", \(run.retried) retried" }
            if let refused = run.refused, refused > 0 {
                text += ", \(refused) refused" + (run.refusal.map { " (\($0))" } ?? "")
            }
            if let bytes = run.sentBytes { text += ", \(bytes) bytes sent" }
            return text
        }
        return """
            \(pushes) pushes of \(payloadBytes) bytes, one campaign
            \(line("gateway, token      ", gateway))
            \(line("gateway, certificate", certificate))
            \(line("h2load, token       ", h2load))
            """ + (wakes.map { "\n" + $0.text } ?? "")
                + (isGood ? "" : "\nfailed: not every push of the gateway was accepted")
    }

    /// One JSON object, in one line.
    public var json: String { reportLine }
}
