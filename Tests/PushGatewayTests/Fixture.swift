import Crypto
import EventLoop
import Feed
import Foundation
import Model
import PushPool
import Telemetry
import Testing
import Wake

@testable import PushGateway

/// A queue without a store: gives the jobs a test puts in, takes back what came of them.
final class PushDesk: @unchecked Sendable {
    // @unchecked: everything is under `lock`.
    struct Finish: Equatable {
        let id: WakeID
        let attempt: UInt64
        let reply: PushReply
        var keepsToken = false
    }

    private let lock = Lock()
    private var due: [PushJob] = []
    private var claimed: [WakeID: PushJob] = [:]
    private var finishedSoFar: [Finish] = []
    private var lastRooms: [PushRoom] = []
    private var claims = 0
    private var failing = 0
    private var tokenFailures: Int?
    /// Pushes that came back unanswered or unsent are due again at once, as another attempt.
    private let retries: Bool

    /// - Parameter tokenFailures: The number of failures before provider tokens come, each on a
    ///   later turn; `nil`: they come at once.
    init(retries: Bool, tokenFailures: Int?) {
        self.retries = retries
        self.tokenFailures = tokenFailures
    }

    var finished: [Finish] { lock.withLock { finishedSoFar } }
    var accepted: [WakeID] { finished.filter { $0.reply == .accepted }.map(\.id) }
    /// What the last claim said can send nothing.
    var paused: [CredentialKey] {
        lock.withLock { lastRooms }.filter { room in
            PushClass.allCases.allSatisfy { room[$0] == 0 }
        }.map(\.credential)
    }
    /// Forgets what was finished so far.
    func forget() { lock.withLock { finishedSoFar = [] } }
    var claimCount: Int { lock.withLock { claims } }
    /// Pushes neither claimed nor finished.
    var dueCount: Int { lock.withLock { due.count } }

    func add(_ jobs: [PushJob]) { lock.withLock { due += jobs } }
    func failFinishes(_ count: Int) { lock.withLock { failing = count } }
    /// Failures that are still to come; `nil`: tokens come at once.
    var failingTokens: Int? { lock.withLock { tokenFailures } }
    /// One of the failures has come.
    fileprivate func tokenFailed() { lock.withLock { tokenFailures = (tokenFailures ?? 1) - 1 } }

    fileprivate func claim(_ request: ClaimPushes) -> ClaimedPushes {
        lock.withLock {
            claims += 1
            lastRooms = request.rooms
            var rooms: [CredentialKey: PushRoom] = [:]
            for room in request.rooms { rooms[room.credential] = room }
            var given: [PushJob] = []
            var left: [PushJob] = []
            var blocked: Set<PushLane> = []
            for job in due.sorted(by: { $0.lane < $1.lane }) {
                let topic = job.request.topic
                if given.count < request.streams,
                    rooms[job.credential]?.free(job.lane, topic) ?? 0 > 0
                {
                    rooms[job.credential]?.take(1, job.lane, topic)
                    given.append(job)
                    claimed[job.request.id] = job
                } else {
                    left.append(job)
                    if rooms[job.credential]?[job.lane] == 0 {
                        blocked.insert(PushLane(job.credential, job.lane))
                    }
                }
            }
            due = left
            return ClaimedPushes(
                jobs: given, more: given.count == request.streams, blocked: blocked.sorted(),
                nextDue: nil)
        }
    }

    fileprivate func finish(_ request: FinishPush) -> Result<Void, StoreError> {
        lock.withLock {
            if failing > 0 {
                failing -= 1
                return .failure(.unavailable("test"))
            }
            finishedSoFar.append(
                Finish(
                    id: request.id, attempt: request.key.attempt, reply: request.reply,
                    keepsToken: request.keepsToken))
            guard var job = claimed.removeValue(forKey: request.id) else { return .success(()) }
            if retries, request.reply == .unanswered || request.reply == .notSent {
                job.key.attempt += 1
                due.append(job)
            }
            return .success(())
        }
    }
}

/// The desk's counter on the gateway's loop.
final class DeskQueue: PushQueue {
    private let desk: PushDesk
    private let loop: Loop

    init(_ desk: PushDesk, on loop: Loop) {
        self.desk = desk
        self.loop = loop
    }

    func claim(
        _ request: ClaimPushes, reply: @escaping (Result<ClaimedPushes, StoreError>) -> Void
    ) {
        let claimed = desk.claim(request)
        loop.nextTurn { reply(.success(claimed)) }
    }

    func finish(_ request: FinishPush, reply: @escaping (Result<Void, StoreError>) -> Void) {
        let result = desk.finish(request)
        loop.nextTurn { reply(result) }
    }

    func keepProviderToken(
        _ request: KeepProviderToken,
        reply: @escaping (Result<KeptProviderToken, StoreError>) -> Void
    ) {
        let kept = KeptProviderToken(token: request.token, age: 0)
        guard let failures = desk.failingTokens else { return reply(.success(kept)) }
        if failures > 0 { desk.tokenFailed() }
        let result: Result<KeptProviderToken, StoreError> =
            failures > 0 ? .failure(.unavailable("test")) : .success(kept)
        loop.nextTurn { reply(result) }
    }
}

/// Credentials that a test changes.
final class TestCredentials: @unchecked Sendable {
    // @unchecked: everything is under `lock`.
    private let lock = Lock()
    private var records: [PushCredentialRecord]
    private var count: UInt64 = 1

    init(_ records: [PushCredentialRecord]) { self.records = records }

    func set(_ records: [PushCredentialRecord]) {
        lock.withLock {
            self.records = records
            count += 1
        }
    }

    var source: CredentialSource {
        CredentialSource(
            generation: { self.lock.withLock { self.count } },
            all: { self.lock.withLock { self.records } })
    }
}

/// Clocks that a test moves.
final class TestClocks: @unchecked Sendable {
    // @unchecked: under `lock`.
    private let lock = Lock()
    private var milliseconds: UInt64 = 1_000_000
    /// By how many minutes the wall clock is ahead of the truth.
    private var error: Int64 = 0

    func advance(minutes: UInt64) { lock.withLock { milliseconds += minutes * 60_000 } }
    /// Sets the wall clock wrong, or right with 0.
    func setWall(minutesAhead: Int64) { lock.withLock { error = minutesAhead * 60_000 } }

    /// Milliseconds since 1970, in truth: what APNs goes by.
    var truth: UInt64 { 1_700_000_000_000 + lock.withLock { milliseconds } }

    var clocks: GatewayClocks {
        GatewayClocks(
            wall: {
                UInt64(Int64(self.truth) + self.lock.withLock { self.error })
            }, monotonic: { self.lock.withLock { self.milliseconds } })
    }
}

/// A gateway over a desk, with the log in a file.
final class Fixture {
    static let certificates = Result {
        try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
    }

    let desk: PushDesk
    let credentials: TestCredentials
    let clocks: TestClocks
    let gateway: PushGateway
    let doorbell = PushGateway.Doorbell()
    let metrics = Metrics()
    private let logPath: String
    private let logger: Log
    private let logDescriptor: Int32

    /// - Parameter tokenFailures: The number of times the store fails to keep a provider token.
    ///   The gateway asks for one as soon as it runs: a failure set later could come too late.
    init(
        _ records: [PushCredentialRecord], retries: Bool = true, tokenFailures: Int? = nil,
        board: PushStatusBoard = PushStatusBoard(), clocks: TestClocks = TestClocks(),
        change: (inout PushGatewayConfiguration) -> Void = { _ in }
    ) throws {
        desk = PushDesk(retries: retries, tokenFailures: tokenFailures)
        self.clocks = clocks
        credentials = TestCredentials(records)
        logPath =
            FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-push-\(UUID().uuidString).log").path
        logDescriptor = open(logPath, O_CREAT | O_RDWR | O_APPEND, 0o600)
        logger = Log(level: .debug, descriptor: logDescriptor)
        var configuration = PushGatewayConfiguration()
        configuration.tick = 10
        configuration.reconnectDelay = 20
        configuration.reconnectDelayMax = 50
        configuration.verdictDelay = 0
        configuration.lateDeadline = 0
        configuration.stopDeadline = 2_000
        change(&configuration)
        let desk = self.desk
        gateway = try PushGateway.start(
            GatewayParts(
                boot: BootID(high: 1, low: 2), configuration: configuration,
                credentials: credentials.source,
                log: logger,
                metrics: GatewayMetrics(metrics), clocks: clocks.clocks, board: board,
                makeQueue: { DeskQueue(desk, on: $0) }), doorbell: doorbell)
    }

    /// How often something was logged.
    func count(_ event: String) -> Int {
        log.split(separator: "\n").count { $0.contains("event=\(event) ") }
    }

    func push(_ jobs: [PushJob]) {
        desk.add(jobs)
        doorbell.ring()
    }

    /// Has a first push accepted, so that as many streams are open as the server allows, and
    /// forgets it.
    func warmUp(_ server: ScriptedServer, kind: PushKind = .silent) {
        push(Self.jobs(1, from: 9_999, kind: kind))
        eventually("the first push was not accepted") { desk.accepted.count == 1 }
        desk.forget()
        server.forget()
    }

    /// What was logged so far.
    var log: String {
        logger.flush()
        return (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? ""
    }

    func stop() {
        gateway.stop()
        // Before the descriptor is another file's.
        logger.flush()
        close(logDescriptor)
        unlink(logPath)
    }

    static func server(
        names: [String]? = nil, port: UInt16 = 0, streams: UInt32 = 100,
        script: @escaping ScriptedServer.Script = { _ in .answer(200) }
    ) throws -> ScriptedServer {
        let certificates = try certificates.get()
        let certificate =
            try names.map { try certificates.issueServer(names: $0) } ?? certificates.server
        return try ScriptedServer(certificate, port: port, streams: streams, script: script)
    }

    static func credential(
        _ app: String, port: UInt16, key: PrivateKey = PrivateKey.generate(.p256),
        keyID: String = "KEY0000001", authority: String? = nil
    ) throws -> PushCredentialRecord {
        PushCredentialRecord(
            app: AppID(app), environment: .development, keyID: keyID, team: "TEAM000001",
            privateKeyPEM: key.pem, topics: "com.example.\(app)", host: "localhost",
            port: UInt64(port),
            trustedCertificatesPEM: try authority ?? certificates.get().authorityPEM,
            changedAt: Timestamp(milliseconds: 1))
    }

    static func jobs(
        _ count: Int, app: String = "chat", from first: UInt64 = 1, kind: PushKind = .silent,
        lane: PushClass? = nil, topic: String? = nil
    ) -> [PushJob] {
        (0..<UInt64(count)).map { offset in
            let number = first + offset
            let id = WakeID(high: 7, low: number)
            let subject = PushPayload.Subject(event: "message", wake: id)
            return PushJob(
                key: PushJobKey(
                    app: AppID(app), user: UserID("anna"),
                    device: DeviceID(high: 9, low: number), owner: BootID(high: 1, low: 2),
                    attempt: 1),
                kind: kind, lane: lane,
                credential: CredentialKey(app: AppID(app), environment: .development),
                request: .silent(
                    subject,
                    to: PushRequest.Destination(
                        token: [0xAB, UInt8(truncatingIfNeeded: number)],
                        topic: topic ?? "com.example.\(app)")),
                lease: Timestamp(milliseconds: .max))
        }
    }
}

/// Waits until `condition` holds; a test that waits in vain fails.
func eventually(
    _ what: Comment, at location: SourceLocation = #_sourceLocation,
    _ condition: () -> Bool
) {
    for _ in 0..<6_000 {
        if condition() { return }
        usleep(5_000)
    }
    Issue.record(what, sourceLocation: location)
}

extension PushReply {
    static let accepted = PushReply.answered(status: 200, reason: "", timestamp: nil)

    static func refused(_ status: UInt64, _ reason: String) -> PushReply {
        .answered(status: status, reason: reason, timestamp: nil)
    }
}
