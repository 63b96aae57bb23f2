import APNsSimulator
import Crypto
import EventLoop
import Feed
import Foundation
import Model
import SQLiteStore
import StoreService
import Telemetry
import Testing
import Wake
import Wire

@testable import PushGateway

/// The gateway between a real store and the simulator, which checks each request as Apple does.
extension GatewayTests {
    @Test("a message wakes, then alerts a device that stays away; a dead token is dropped")
    func overTheStore() throws {
        let city = try City(grace: 300)
        defer { city.stop() }
        let session = try city.login("anna")
        _ = try city.commit(
            .endSession(EndSession(session: session, applied: 0, expectedWithin: 0)))
        let conversation = try city.converse(["anna", "bob"])
        try city.publish("Shall we?", to: conversation, from: "bob")
        eventually("no wake and no alert") { city.pushes.count >= 2 }
        let pushes = city.pushes
        #expect(pushes.map(\.pushType) == ["background", "alert"])
        #expect(pushes.map(\.status) == [200, 200])
        #expect(pushes.map(\.priority) == [5, 10])
        #expect(pushes.allSatisfy { $0.lints == nil })
        eventually("the answers were not written down") {
            city.history().map(\.acceptedAt).filter { $0 != nil }.count == 2
        }
        let history = city.history()
        #expect(Set(history.map(\.wake.description)) == Set(pushes.compactMap(\.apnsId)))
        #expect(history.map(\.outcome) == [.accepted, .noShow])

        try city.killToken()
        try city.publish("Hello?", to: conversation, from: "bob")
        eventually("the dead token was not told") { city.pushes.last?.status == 410 }
        eventually("the dead token was kept") { city.device()?.device.pushToken == nil }
        #expect(city.device()?.reachability == .tokenless)
        #expect(city.history().first?.status == 410)
        #expect(city.history().first?.reason == "Unregistered")
    }

    @Test("after a restart the provider token that is kept is sent: APNs punishes another one")
    func keptToken() throws {
        let city = try City(grace: 60_000)
        defer { city.stop() }
        for user in ["anna", "carl", "dora"] {
            if user != "anna" { try city.restartGateway() }
            let session = try city.login(user)
            _ = try city.commit(
                .endSession(EndSession(session: session, applied: 0, expectedWithin: 0)))
            let conversation = try city.converse([user, "bob"])
            try city.publish("Hello", to: conversation, from: "bob")
            eventually("nobody was woken") { city.history(user).first?.acceptedAt != nil }
        }
        let pushes = city.pushes
        #expect(pushes.count == 3 && Set(pushes.map(\.connection)).count == 3)
        #expect(pushes.allSatisfy { $0.lints == nil }, "\(pushes.compactMap(\.lints))")
    }

    @Test("another certificate while pushes flow: nothing is lost, old connections end in peace")
    func swappedCertificate() throws {
        let city = try City(grace: 60_000)
        defer { city.stop() }
        try city.useCertificate()
        let users = (0..<120).map { "user\($0)" }
        for user in users {
            let session = try city.login(user)
            _ = try city.commit(
                .endSession(EndSession(session: session, applied: 0, expectedWithin: 0)))
        }
        let conversation = try city.converse(users + ["bob"])
        // A few at a time, each answered late, so that the change comes in the middle.
        city.slow(streams: 4, milliseconds: 50)
        try city.publish("Everybody!", to: conversation, from: "bob")
        eventually("nothing flows") { city.pushes.count >= 20 }
        try city.useCertificate()
        eventually("not everybody was woken") {
            Set(city.pushes.filter { $0.status == 200 }.compactMap(\.token)).count == 120
        }
        eventually("the answers were not written down") {
            users.allSatisfy { city.history($0).first?.acceptedAt != nil }
        }
        // Each once, and each at the first try: no stream was cut.
        #expect(city.pushes.count == 120)
        for user in users { #expect(city.history(user).count == 1) }
        let connections = Set(city.pushes.compactMap(\.connection))
        #expect(connections.count == 2, "\(connections)")
        let old = try #require(connections.min())
        eventually("the old connection stays") { city.isClosed(old) }
    }

    @Test("faults of APNs between a real store and the simulator: everybody is woken, once")
    func faults() throws {
        let city = try City(grace: 60_000)
        defer { city.stop() }
        let users = (0..<20).map { "user\($0)" }
        for user in users {
            let session = try city.login(user)
            _ = try city.commit(
                .endSession(EndSession(session: session, applied: 0, expectedWithin: 0)))
        }
        let conversation = try city.converse(users + ["bob"])
        try city.publish("Everybody!", to: conversation, from: "bob")
        for _ in 0..<5 {
            shortly()
            city.goAway(unprocessed: 2)
        }
        eventually("not everybody was woken") {
            Set(city.pushes.filter { $0.status == 200 }.compactMap(\.token)).count == 20
        }
        eventually("the answers were not written down") {
            users.allSatisfy { city.history($0).first?.acceptedAt != nil }
        }
        for user in users { #expect(city.history(user).count == 1) }
    }
}

extension GatewayTests {
    @Test("the doctor finds in the simulator's answers what is wrong with a credential")
    func doctor() throws {
        let city = try City(grace: 60_000)
        defer { city.stop() }
        let now = SystemClock.wallMilliseconds()
        func bad(
            wall: UInt64 = SystemClock.wallMilliseconds(),
            _ change: (inout PushCredentialRecord) -> Void
        ) throws -> [String] {
            var credential = city.credential
            change(&credential)
            return try CredentialDoctor.examine(credential, wall: wall)
                .filter { !$0.isGood }.map(\.check)
        }
        #expect(try bad { _ in } == [])
        #expect(try bad { $0.keyID = "KEY0000002" } == ["key"])
        #expect(try bad { $0.team = "TEAM000002" } == ["key"])
        #expect(try bad { $0.privateKeyPEM = PrivateKey.generate(.p256).pem } == ["key"])
        #expect(try bad { $0.topics = "com.example.other" } == ["topic"])
        #expect(try bad(wall: now - 2 * 3_600_000) { _ in } == ["clock"])
        city.bindKey(to: .production)
        #expect(try bad { _ in } == ["endpoint"])
        // Nobody was pushed to.
        #expect(city.pushes.allSatisfy { $0.status != 200 })
    }
}

/// A store in a temporary folder, a gateway, and the simulator as its APNs.
private final class City {
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

    private final class SimulatorBox: @unchecked Sendable {
        // @unchecked: used on its loop only, but for `port`, which is set before it is shared.
        var simulator: Simulator?
        var port: UInt16 = 0
    }

    init(grace: Milliseconds) throws {
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
        store = try StoreService.start(
            duties: [
                StoreDuty(
                    name: "fan-out", request: .continueFanOut(recipients: 64), interval: 1_000,
                    followsCommits: true),
                StoreDuty(
                    name: "sweep", request: .sweepWakes(rows: 64), interval: 50,
                    followsCommits: false),
                StoreDuty(
                    name: "alive", request: .keepAlive, interval: 2_000, followsCommits: false),
            ], boot: boot, epochHalf: 77,
            open: { try SQLiteStore(path: path, tables: Schema.tables) },
            onCommit: { if $0.hasBackgroundWork { doorbell.ring() } })
        desk = try StoreDesk(store)
        gateway = try Self.start(over: store, doorbell)
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
        over store: StoreService, _ doorbell: PushGateway.Doorbell
    ) throws -> PushGateway {
        try PushGateway.start(
            store: store, boot: BootID(high: 1, low: 2), doorbell: doorbell,
            log: Log(level: .error), metrics: Metrics())
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
            try? simulator.state.add(
                SimulatorState.Certificate(topics: [Self.topic]), digest: new)
            if let old { try? simulator.state.revokeCertificate(digest: old) }
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

    func isClosed(_ connection: UInt64) -> Bool {
        let events = onSimulator { Array($0.log.events(after: 0, limit: 10_000).events) } ?? []
        return events.contains {
            $0.kind == .connection && $0.connection == connection
                && $0.text?.hasPrefix("closed") == true
        }
    }

    func restartGateway() throws {
        gateway.stop()
        gateway = try Self.start(over: store, doorbell)
    }

    /// The key was made for one environment only.
    func bindKey(to environment: APNsEnvironment) {
        let key = self.key.publicKey
        _ = onSimulator { simulator in
            try? simulator.state.add(
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
            try? simulator.addDevice(
                user, topic: Self.topic, environment: .development
            ) { _, _ in nil }
        }
        let token = try #require(added ?? nil)
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

    func publish(_ text: String, to conversation: ConversationID, from sender: String) throws {
        try commit(
            .publish(
                app: Self.app,
                Publication(
                    message: SendMessage(
                        conversation: conversation, message: fresh(),
                        parts: [Part(mimeType: "text/plain", content: Array(text.utf8))],
                        push: PushText(title: sender, body: text)), sender: sender),
                idempotency: nil))
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
        _ = onSimulator { try? $0.state.kill(token: token, since: now, toldFrom: now) }
    }

    /// Runs `body` on the simulator's loop and gives back what it made.
    private func onSimulator<Value: Sendable>(
        _ body: @escaping @Sendable (Simulator) -> Value
    ) -> Value? {
        let box = simulator.value
        let made = Made<Value>()
        simulator.thread.perform { _ in
            made.value = box.simulator.map(body)
            made.done.arrive()
        }
        made.done.wait()
        return made.value
    }

    private final class Made<Value: Sendable>: @unchecked Sendable {
        // @unchecked: written before the latch opens, read after.
        let done = Latch()
        var value: Value?
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
