import APNsSimulator
import Client
import Crypto
import EventLoop
import Foundation
import Model
import SQLiteStore
import SyncClient
import Wire

@testable import Scenario

/// A server with an app, its backend, and devices with stores of their own on one loop: for what
/// happens when the server's history changes.
final class BackupStage {
    static let app = "chat"
    static let talk = ConversationID(high: 0x0198_0000_0000_7000, low: 0x8000_0000_0000_0001)

    let folder: URL
    let loop: Loop
    let server: ServerProcess
    private(set) var backend: AppBackend
    private let issuer = PrivateKey.generate(.p256)
    private let tls: TLSContext
    private(set) var phones: [Phone] = []

    /// A device and what it was told.
    final class Phone {
        let user: String
        let store: TableLocalStore
        let client: SyncClient
        let heard: Heard

        init(user: String, store: TableLocalStore, client: SyncClient, heard: Heard) {
            self.user = user
            self.store = store
            self.client = client
            self.heard = heard
        }

        /// Texts of the conversation as this device shows them, by position.
        func texts() throws -> [String] {
            try store.messages(of: BackupStage.talk, limit: 10_000).compactMap { entry in
                guard case .message(let state) = entry.body else { return nil }
                return state.parts.first.map { String(decoding: $0.content, as: UTF8.self) }
            }
        }
    }

    final class Heard {
        var resets: [ResetReason] = []
        var results: [UInt64: UInt32] = [:]
        var digests: [(isComparable: Bool, isEqual: Bool, objects: UInt64)] = []
    }

    /// - Parameter settings: of the server, as it takes them from its environment.
    init(settings: [String: String] = [:]) throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-backup-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let made = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        try Data(made.server.certificatePEM.utf8)
            .write(to: folder.appendingPathComponent("server.pem"))
        try Data(made.server.privateKeyPEM.utf8)
            .write(to: folder.appendingPathComponent("server.key"))
        tls = try TLSContext.client(
            trustedCertificates: Array(made.authorityPEM.utf8), protocols: ["rouse/1"])
        loop = try Loop()
        server = ServerProcess(executable: URL(fileURLWithPath: Program.path), folder: folder)
        try server.start(settings: Self.settings(settings, of: server))
        backend = AppBackend(loop: loop, app: Self.app, server: server)
        try backend.setUp(issuer: issuer.publicKey, issuerKeyID: "k1")
        try backend.createConversation(
            Self.talk.description, participants: ["alice", "bob", "carol"])
    }

    deinit {
        for phone in phones { phone.client.terminate() }
        server.kill()
        loop.close()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Starts the server again, with these settings.
    func start(settings: [String: String]) throws {
        try server.start(settings: Self.settings(settings, of: server))
    }

    /// The socket's place goes by the store's, which may be none of this machine.
    private static func settings(
        _ settings: [String: String], of server: ServerProcess
    ) -> [String: String] {
        settings.merging(["ROUSE_ADMIN_SOCKET": server.adminSocket]) { $1 }
    }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    @discardableResult
    func addPhone(_ user: String, snapshots: Bool) throws -> Phone {
        let number = phones.count
        var options = SQLiteOptions()
        options.syncs = false
        let store = TableLocalStore(
            store: try SQLiteStore(
                path: path("phone-\(number).db"), tables: LocalSchema.tables, options: options))
        let signer = IdentityIssuer(
            issuer: Self.app, keyID: "k1", key: issuer, app: Self.app)
        var events = SyncClientEvents { nonce, answer in
            let now = SystemClock.wallMilliseconds() / 1_000
            answer(signer.token(for: user, nonce: nonce, now: now))
        }
        let heard = Heard()
        events.reported = { event in
            switch event {
            case .reset(let reason): heard.resets.append(reason)
            case .digest(let isComparable, let isEqual, let objects):
                heard.digests.append((isComparable, isEqual, objects))
            default: break
            }
        }
        events.results = { results in
            for result in results { heard.results[result.number] = result.code }
        }
        var limits = ClientLimits()
        limits.backoffFirst = 50
        limits.backoffForeground = 200
        limits.backoffHealthy = 100
        let client = try SyncClient(
            loop: loop,
            endpoint: SyncEndpoint(
                host: "127.0.0.1", port: server.devicePort, serverName: "localhost"),
            tls: tls, store: store,
            configuration: ClientConfiguration(
                app: Self.app, device: DeviceID(high: 7, low: UInt64(number) + 1),
                clientName: "backup", clientVersion: "1", wantsSnapshots: snapshots,
                limits: limits),
            seed: UInt64(number) + 1, events: events)
        let phone = Phone(user: user, store: store, client: client, heard: heard)
        phones.append(phone)
        client.start(AppState(phase: .foreground))
        return phone
    }

    /// Queues a text on a phone; its mutation's number.
    func send(_ text: String, from phone: Phone) throws -> UInt64 {
        try phone.client.mutate(
            .sendMessage(
                SendMessage(
                    conversation: Self.talk, message: MessageID(Random.bytes(16)),
                    parts: [Part(mimeType: "text/plain", content: Array(text.utf8))])))
    }

    func publish(_ text: String) throws {
        _ = try backend.publish(text, from: "carol", to: Self.talk.description)
    }

    /// Runs the loop until it is so.
    ///
    /// - Throws: after a minute.
    func wait(_ what: String, until isSo: () throws -> Bool) throws {
        let end = SystemClock.monotonicMilliseconds() + 60_000
        while try !isSo() {
            guard SystemClock.monotonicMilliseconds() < end else {
                throw ProgramFailure("not within a minute: \(what)\n\(server.lastLogLines(20))")
            }
            let timer = loop.timer { [loop] in loop.stop() }
            loop.updateNow()
            timer.start(afterMilliseconds: 10)
            loop.run()
            timer.close()
        }
    }
}
