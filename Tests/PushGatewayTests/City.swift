import Crypto
import EventLoop
import Foundation
import Model
import PushPool
import SQLiteStore
import StoreService
import Telemetry
import Testing
import Wake
import Wire

@testable import APNsSimulator
@testable import Feed
@testable import PushGateway

/// A store in a temporary folder, a gateway, and the simulator as its APNs.
final class City {
    static let app = AppID("chat")
    static let topic = "com.example.chat"
    private let directory: URL
    private let store: StoreService
    private var gateway: PushGateway
    private let doorbell = PushGateway.Doorbell()
    private let simulator: (thread: LoopThread, value: SimulatorBox)
    private let desk: StoreDesk
    private let key: PrivateKey
    private let authority: DevelopmentCertificates
    private var certificate: IssuedCertificate?
    let credential: PushCredentialRecord
    private var tokens: [String: String] = [:]
    private var devices: [String: DeviceID] = [:]
    private var lastNumber: UInt64 = 0
    private let offset = ClockOffset()
    private let configuration: PushGatewayConfiguration

    private final class SimulatorBox: @unchecked Sendable {
        // @unchecked: used on its loop only, but for `port`, which is set before it is shared.
        var simulator: Simulator?
        var port: UInt16 = 0
    }

    init(
        grace: Milliseconds, configuration: PushGatewayConfiguration = PushGatewayConfiguration()
    ) throws {
        self.configuration = configuration
        directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-push-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let certificates = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        authority = certificates
        let key = PrivateKey.generate(.p256)
        self.key = key
        simulator = try LoopThread.startReturning(name: "apns") { loop in
            let box = SimulatorBox()
            var options = SimulatorOptions(
                certificateChain: Array(certificates.server.certificatePEM.utf8),
                privateKey: Array(certificates.server.privateKeyPEM.utf8))
            options.controlPort = 0
            let simulator = try Simulator(loop: loop, options: options)
            try simulator.state.add(
                SimulatorState.App(topic: Self.topic, team: "TEAM000001"))
            try simulator.state.add(
                SimulatorState.SigningKey(team: "TEAM000001", key: key.publicKey),
                id: "KEY0000001")
            box.simulator = simulator
            box.port = simulator.ports.development
            return box
        }
        let time = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        credential = PushCredentialRecord(
            app: Self.app, environment: .development, keyID: "KEY0000001", team: "TEAM000001",
            privateKeyPEM: key.pem, topics: Self.topic, host: "localhost",
            port: UInt64(simulator.value.port),
            trustedCertificatesPEM: certificates.authorityPEM, changedAt: time)
        let boot = BootID(high: 1, low: 2)
        let doorbell = self.doorbell
        let path = directory.appendingPathComponent("rouse.db").path
        let offset = self.offset
        store = try StoreService.start(
            duties: [
                StoreDuty(
                    name: "fan-out", request: .continueFanOut(recipients: 64), interval: 1_000,
                    follows: .fanOut),
                StoreDuty(
                    name: "sweep", request: .sweepWakes(rows: 64), interval: 50),
                StoreDuty(
                    name: "alive", request: .keepAlive, interval: 2_000),
            ], boot: boot, epochHalf: 77,
            open: { ShiftedStore(try SQLiteStore(path: path, tables: Schema.tables), offset) },
            onCommit: { if $0.background.contains(.pushes) { doorbell.ring() } })
        desk = try StoreDesk(store)
        gateway = try Self.start(over: store, doorbell, configuration)
        // A push whose stream died unanswered is sent again within the budget: the default 60 s
        // between two would be longer than a test waits.
        _ = try commit(
            .administer(
                .putApp(
                    AppRecord(
                        app: Self.app, createdAt: time, grace: grace, silentBudget: 32,
                        silentSpacing: 500))))
        _ = try commit(.administer(.putPushCredential(credential)))
    }

    private static func start(
        over store: StoreService, _ doorbell: PushGateway.Doorbell,
        _ configuration: PushGatewayConfiguration
    ) throws -> PushGateway {
        try PushGateway.start(
            store: store, boot: BootID(high: 1, low: 2), doorbell: doorbell,
            log: Log(level: .error), metrics: Metrics(), configuration: configuration)
    }

    /// A new client certificate takes the place of the credential; no new connection is taken with
    /// the one before it.
    func useCertificate() throws {
        let made = try authority.issuePushClient(topics: [Self.topic])
        let old = try certificate.map {
            try TLSContext.certificateDigest(pem: Array($0.certificatePEM.utf8))
        }
        let new = try TLSContext.certificateDigest(pem: Array(made.certificatePEM.utf8))
        certificate = made
        _ = onSimulator { simulator in
            try simulator.state.add(
                SimulatorState.Certificate(topics: [Self.topic]), digest: new)
            if let old { try simulator.state.revokeCertificate(digest: old) }
        }
        var record = credential
        record.certificatePEM = made.certificatePEM
        record.privateKeyPEM = made.privateKeyPEM
        _ = try commit(.administer(.putPushCredential(record)))
    }

    /// So many streams on a connection, each answered so late.
    func slow(streams: UInt32, milliseconds: UInt64) {
        _ = onSimulator { simulator in
            simulator.state.limits.streams = streams
            simulator.faults.delay(milliseconds: milliseconds)
        }
    }

    /// APNs' clock is ahead of this machine's by so much, and its answers say so.
    func setTrueTime(ahead milliseconds: Int64) {
        _ = onSimulator { simulator in
            simulator.setClock(offset: milliseconds)
            simulator.faults.dateSkewMilliseconds = 0
        }
    }

    func isClosed(_ connection: UInt64) -> Bool {
        let events = onSimulator { Array($0.log.events(after: 0, limit: 10_000).events) } ?? []
        return events.contains {
            $0.kind == .connection && $0.connection == connection
                && $0.text?.hasPrefix("closed") == true
        }
    }

    func restartGateway() throws {
        gateway.stop()
        gateway = try Self.start(over: store, doorbell, configuration)
    }

    /// The key was made for one environment only.
    func bindKey(to environment: APNsEnvironment) {
        let key = self.key.publicKey
        _ = onSimulator { simulator in
            try simulator.state.add(
                SimulatorState.SigningKey(
                    team: "TEAM000001", key: key, environment: environment), id: "KEY0000001")
        }
    }

    func stop() {
        gateway.stop()
        desk.stop()
        store.stop()
        _ = onSimulator { $0.close() }
        simulator.thread.stop()
        simulator.thread.join()
        try? FileManager.default.removeItem(at: directory)
    }

    @discardableResult
    func commit(_ request: StoreRequest) throws -> StoreAnswer {
        guard case .committed(let outcome) = desk.ask({ $0.commit(request) }) else {
            throw StoreError.unavailable("no answer")
        }
        return outcome.answer
    }

    private func fresh<Noun>() -> Identifier<Noun> {
        lastNumber += 1
        return Identifier(high: 1, low: lastNumber)
    }

    /// Logs a user in on a device whose token the simulator knows.
    func login(_ user: String) throws -> SessionKey {
        let added = onSimulator { simulator in
            try simulator.addDevice(
                user, topic: Self.topic, environment: .development
            ) { _, _ in nil }
        }
        let token = try #require(added)
        tokens[user] = token
        let device: DeviceID = fresh()
        devices[user] = device
        let answer = try commit(
            .openSession(
                OpenSession(
                    app: Self.app, device: device, role: .app,
                    credential: .identity(UserID(user)), newTokenHash: device.bytes,
                    freshEpochHalf: 5, boot: BootID(high: 1, low: 2),
                    push: PushRegistration(
                        token: try #require(Hex.decode(token)), environment: .development,
                        topic: Self.topic))))
        guard case .opened(let opened) = answer else { throw StoreError.unavailable("\(answer)") }
        return opened.session
    }

    func converse(_ users: [String]) throws -> ConversationID {
        let id: ConversationID = fresh()
        try commit(
            .createConversation(
                app: Self.app, CreateConversation(conversation: id, participants: users),
                idempotency: nil))
        return id
    }

    func publish(
        _ text: String, to conversation: ConversationID, from sender: String,
        urgency: Urgency = .normal
    ) throws {
        var options = PushOptions()
        options.urgency = urgency
        try commit(
            .publish(
                app: Self.app,
                Publication(
                    message: SendMessage(
                        conversation: conversation, message: fresh(),
                        parts: [Part(mimeType: "text/plain", content: Array(text.utf8))],
                        push: PushText(title: sender, body: text)), sender: sender, options: options
                ),
                idempotency: nil))
    }

    /// The store's clock goes ahead of this machine's.
    func advance(milliseconds: UInt64) { offset.advance(milliseconds) }

    /// Happens to the next pushes.
    func script(_ fault: FaultScript.Fault, count: Int, skip: Int = 0, topic: String? = nil) {
        let match = FaultScript.Match(topic: topic, skip: skip)
        _ = onSimulator { $0.faults.add(fault, count: count, match: match) }
    }

    /// What the user's device shows.
    func screen(_ user: String) -> [ScreenNotification] {
        (onSimulator { try $0.device(user).device.screen }) ?? []
    }

    /// Newest first.
    func history(_ user: String = "anna") -> [WakeHistoryRecord] {
        guard let device = devices[user],
            case .read(.wakes(let wakes)) = desk.ask({
                $0.read(.wakes(Self.app, device, limit: 50))
            })
        else { return [] }
        return wakes
    }

    func device(_ user: String = "anna") -> DeviceView? {
        guard let device = devices[user],
            case .read(.device(let view)) = desk.ask({ $0.read(.device(Self.app, device)) })
        else { return nil }
        return view
    }

    var pushes: [SimulatorEvent] {
        let events = onSimulator { Array($0.log.events(after: 0, limit: 10_000).events) } ?? []
        return events.filter { $0.kind == .push }
    }

    func goAway(unprocessed: Int) {
        _ = onSimulator { $0.goAway(nil, unprocessed: unprocessed, code: 0, reason: nil) }
    }

    func killToken(of user: String = "anna") throws {
        let token = tokens[user] ?? ""
        let now = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        _ = onSimulator { try $0.state.kill(token: token, since: now, toldFrom: now) }
    }

    /// Runs `body` on the simulator's loop and gives back what it made; the test fails if it throws.
    private func onSimulator<Value: Sendable>(
        _ body: @escaping @Sendable (Simulator) throws -> Value
    ) -> Value? {
        let box = simulator.value
        let made = Made<Value>()
        simulator.thread.perform { _ in
            made.value = box.simulator.map { simulator in Result { try body(simulator) } }
            made.done.arrive()
        }
        made.done.wait()
        do {
            return try made.value?.get()
        } catch {
            Issue.record(error)
            return nil
        }
    }

    private final class Made<Value: Sendable>: @unchecked Sendable {
        // @unchecked: written before the latch opens, read after.
        let done = Latch()
        var value: Result<Value, any Error>?
    }
}

/// Asks the store from a test's thread.
private final class StoreDesk: Sendable {
    private let thread: LoopThread
    private let box = Box()

    private final class Box: @unchecked Sendable {
        // @unchecked: used on the loop only.
        var client: StoreClient?
        var waiting: [UInt64: Question] = [:]
    }

    private final class Question: @unchecked Sendable {
        // @unchecked: written before the latch opens, read after.
        let done = Latch()
        var result: StoreResult?
    }

    init(_ store: StoreService) throws {
        let box = self.box
        thread = try LoopThread.start(name: "desk") { loop in
            box.client = store.client(on: loop) { reply in
                guard let question = box.waiting.removeValue(forKey: reply.ticket) else { return }
                question.result = reply.result
                question.done.arrive()
            }
        }
    }

    func ask(_ body: @escaping @Sendable (StoreClient) -> UInt64) -> StoreResult? {
        let question = Question()
        let box = self.box
        thread.perform { _ in
            guard let client = box.client else { return question.done.arrive() }
            box.waiting[body(client)] = question
        }
        question.done.wait()
        return question.result
    }

    func stop() {
        thread.stop()
        thread.join()
    }
}

/// By how much a store's clock is ahead. From any thread.
private final class ClockOffset: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var milliseconds: UInt64 = 0  // guarded by `lock`

    func advance(_ by: UInt64) { lock.withLock { milliseconds += by } }
    var now: UInt64 { lock.withLock { milliseconds } }
}

/// A store whose clock is ahead.
private final class ShiftedStore: Store {
    private let inner: any Store
    private let offset: ClockOffset

    init(_ inner: any Store, _ offset: ClockOffset) {
        self.inner = inner
        self.offset = offset
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try inner.write(body)
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try inner.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try inner.reader() }
    func now() -> Timestamp { inner.now() + offset.now }
    func checkpoint() throws(StoreError) { try inner.checkpoint() }
    func close() { inner.close() }
}
