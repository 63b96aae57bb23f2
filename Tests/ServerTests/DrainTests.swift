import APNsSimulator
import Client
import Crypto
import EventLoop
import Foundation
import Glibc
import Model
import SQLiteStore
import SyncClient
import Testing
import Wire

@testable import Scenario

/// A server is replaced by its successor on the same machine while a backend publishes and phones
/// look on: what a drain promises (connection.md, CON-8).
@Suite(.serialized) struct DrainTests {
    @Test("through a drain and a restart nothing is lost, doubled or later than the way back")
    func drainAndRestart() throws {
        let stage = try DrainStage(devices: 8)
        defer { stage.end() }
        try stage.play()

        #expect(stage.published.count > 110, "\(stage.published.count) messages")
        for phone in stage.phones {
            let ids = phone.applied.map(\.message)
            #expect(ids == stage.published.map(\.message), "\(phone.name): lost, doubled or moved")
            // One end, by the drain's deadline, and one attempt: nobody came before the next
            // server listened.
            #expect(phone.closes == [Code.drainDeadline.rawValue], "\(phone.name)")
            #expect(phone.attempts == 2, "\(phone.name)")
            let gap = phone.gap ?? 0
            #expect(gap > 0, "\(phone.name) never came back")
            var latest: UInt64 = 0
            for (held, sent) in zip(phone.applied, stage.published) {
                latest = max(latest, held.at > sent.at ? held.at - sent.at : 0)
            }
            #expect(
                latest <= gap + DrainStage.slack, "\(phone.name): \(latest) ms late in \(gap) ms")
            print("\(phone.name): \(latest) ms late at most, \(gap) ms without the server")
        }
        print(
            "\(stage.published.count) messages, \(stage.repeated) sent again, "
                + "\(stage.restart) ms from the end of one server to the next")
    }
}

/// One loop with the phones and the backend; the server is ended and started by a thread.
private final class DrainStage {
    /// What a loaded machine may add to a delivery, in milliseconds.
    static let slack: UInt64 = 1_500
    static let room = "0190a1b2-c3d4-7000-8000-0000000000a0"

    struct Published {
        let message: MessageID
        /// When it was answered.
        let at: UInt64
    }

    let folder: URL
    let server: ServerProcess
    /// Of both servers; `server` is the `Successor`'s while that is at work.
    private let apiPort: UInt16
    private(set) var phones: [DrainPhone] = []
    private(set) var published: [Published] = []
    private(set) var repeated = 0
    private(set) var restart: UInt64 = 0
    private let loop: Loop
    private let backend: AppBackend
    private let issuer = PrivateKey.generate(.p256)
    private let authorityPEM: String

    init(devices: Int) throws {
        signal(SIGPIPE, SIG_IGN)
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-drain-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let made = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        authorityPEM = made.authorityPEM
        for (name, text) in [
            ("server.pem", made.server.certificatePEM), ("server.key", made.server.privateKeyPEM),
        ] {
            try Data(text.utf8).write(to: folder.appendingPathComponent(name))
        }
        server = ServerProcess(
            executable: URL(fileURLWithPath: Program.path), folder: folder)
        server.drainSeconds = 1
        try server.start()
        apiPort = server.apiPort
        loop = try Loop()
        backend = AppBackend(loop: loop, app: "drain", server: server)
        try backend.setUp(issuer: issuer.publicKey, issuerKeyID: "k")
        let names = (0..<devices).map { "user\($0)" }
        try backend.createConversation(Self.room, participants: names)
        for (number, name) in names.enumerated() {
            phones.append(try phone(name, number: UInt64(number)))
        }
    }

    private func phone(_ name: String, number: UInt64) throws -> DrainPhone {
        let phone = DrainPhone(name: name)
        let tokens = IdentityIssuer(issuer: "drain", keyID: "k", key: issuer, app: "drain")
        var events = SyncClientEvents { nonce, answer in
            let now = SystemClock.wallMilliseconds() / 1_000
            answer(tokens.token(for: name, nonce: nonce, now: now))
        }
        events.reported = { [unowned phone] in phone.reported($0) }
        events.applied = { [unowned phone] in phone.applied($0) }
        var options = SQLiteOptions()
        options.syncs = false
        let file = folder.appendingPathComponent("\(name).db").path
        phone.client = try SyncClient(
            loop: loop,
            endpoint: SyncEndpoint(
                host: "127.0.0.1", port: server.devicePort, serverName: "localhost"),
            tls: try TLSContext.client(
                trustedCertificates: Array(authorityPEM.utf8), protocols: ["rouse/1"]),
            store: TableLocalStore(
                store: try SQLiteStore(
                    path: file, tables: LocalSchema.tables, options: options)),
            configuration: ClientConfiguration(
                app: "drain", device: DeviceID(high: 0xD0, low: number), clientName: "drain",
                clientVersion: "1"), seed: number + 1, events: events)
        return phone
    }

    func end() {
        for phone in phones { phone.client?.terminate() }
        loop.close()
        server.kill()
        try? FileManager.default.removeItem(at: folder)
    }

    // MARK: The story

    func play() throws {
        for phone in phones { phone.client?.start(AppState(phase: .foreground)) }
        try wait("everybody is in sync") { phones.allSatisfy { $0.isSynced } }
        try publish(until: { published.count >= 50 })
        let successor = Successor(server)
        successor.begin()
        try publish(until: { successor.hasEnded && phones.allSatisfy { $0.gap != nil } })
        if let problem = successor.problem { throw ScenarioError(problem) }
        restart = successor.milliseconds
        let last = published.count + 50
        try publish(until: { published.count >= last })
        try wait("everybody has everything") {
            phones.allSatisfy { $0.applied.count >= published.count }
        }
    }

    /// One message after the other, 20 ms apart, each until it is answered: the same bytes under
    /// the same key.
    private func publish(until isDone: () -> Bool) throws {
        let limit = SystemClock.monotonicMilliseconds() + 90_000
        while !isDone() {
            try checkTime(limit, "published through the drain")
            let number = published.count
            let body = Array(
                #"{"parts":[{"mime_type":"text/plain","text":"message \#(number)"}]}"#.utf8)
            var answer: PublishedMessage?
            while answer == nil {
                try checkTime(limit, "message \(number)")
                answer = try once(body, key: "key-\(number)")
                if answer == nil {
                    repeated += 1
                    pass(20)
                }
            }
            guard let answer, let id = MessageID(text: answer.id) else { continue }
            // In order: a repetition whose first answer was lost has the first one's place.
            guard answer.position == UInt64(number) + 1 else {
                throw ScenarioError("message \(number) stands at \(answer.position)")
            }
            published.append(
                Published(message: id, at: SystemClock.monotonicMilliseconds()))
            pass(20)
        }
    }

    /// `nil`: no answer, or not now.
    private func once(_ body: [UInt8], key: String) throws -> PublishedMessage? {
        var outcome: Result<HTTPCall.Answer, ScenarioError>?
        loop.updateNow()
        HTTPCall(
            loop: loop, place: .tcp(host: "127.0.0.1", port: apiPort), method: "POST",
            path: "/v1/conversations/\(Self.room)/messages",
            headers: [
                ("authorization", "Bearer \(backend.apiKey)"), ("idempotency-key", key),
            ], body: body, milliseconds: 5_000
        ) { [loop] result in
            outcome = result
            loop.stop()
        }
        if outcome == nil { loop.run() }
        guard case .success(let answer)? = outcome, answer.status != 503 else { return nil }
        guard answer.status == 201 || answer.status == 200 else {
            throw ScenarioError("\(answer.status) \(String(decoding: answer.body, as: UTF8.self))")
        }
        return try JSONDecoder().decode(PublishedMessage.self, from: Data(answer.body))
    }

    private func pass(_ milliseconds: UInt64) {
        loop.updateNow()
        let timer = loop.timer { [loop] in loop.stop() }
        timer.start(afterMilliseconds: milliseconds)
        loop.run()
        timer.close()
    }

    private func wait(_ what: String, until isSo: () -> Bool) throws {
        let limit = SystemClock.monotonicMilliseconds() + 60_000
        while !isSo() {
            try checkTime(limit, what)
            pass(10)
        }
    }

    private func checkTime(_ limit: UInt64, _ what: String) throws {
        guard SystemClock.monotonicMilliseconds() < limit else {
            throw ScenarioError("not in time: \(what)\n\(server.lastLogLines(8))")
        }
    }
}

/// What a phone lived through.
private final class DrainPhone {
    let name: String
    var client: SyncClient?
    private(set) var applied: [(message: MessageID, at: UInt64)] = []
    private(set) var closes: [UInt32?] = []
    /// Connections that were opened, and attempts at one that failed.
    private(set) var attempts = 0
    private(set) var isSynced = false
    private var lostAt: UInt64?
    /// From the end of its connection to the first sync on the next one.
    private(set) var gap: UInt64?
    private var isOpen = false

    init(name: String) { self.name = name }

    func reported(_ event: ClientEvent) {
        let now = SystemClock.monotonicMilliseconds()
        switch event {
        case .opened:
            attempts += 1
            isOpen = true
        case .synced:
            isSynced = true
            if let lostAt, gap == nil, isOpen { gap = now - lostAt }
        case .closed(let code):
            if isOpen {
                closes.append(code)
                lostAt = lostAt ?? now
            } else {
                attempts += 1
            }
            isOpen = false
        default: break
        }
    }

    func applied(_ entries: [Entry]) {
        let now = SystemClock.monotonicMilliseconds()
        for entry in entries {
            guard case .message = entry.body, let id = MessageID(entry.object) else { continue }
            applied.append((id, now))
        }
    }
}

/// Ends the server as an operator does, and starts the next one when it is gone.
private final class Successor: @unchecked Sendable {
    // @unchecked: `server` is the thread's until `hasEnded`; the rest is guarded by `lock`.
    private let server: ServerProcess
    private let lock = NSLock()
    private var ended = false
    private var trouble: String?
    private var took: UInt64 = 0

    init(_ server: ServerProcess) { self.server = server }

    var hasEnded: Bool { lock.withLock { ended } }
    var problem: String? { lock.withLock { trouble } }
    /// From the end of the one to the other's first breath.
    var milliseconds: UInt64 { lock.withLock { took } }

    func begin() {
        Thread { [self] in
            var problem: String?
            server.drain()
            let gone = SystemClock.monotonicMilliseconds()
            do {
                try server.start()
            } catch {
                problem = "\(error)"
            }
            let now = SystemClock.monotonicMilliseconds()
            lock.withLock {
                (ended, trouble, took) = (true, problem, now - gone)
            }
        }.start()
    }
}
