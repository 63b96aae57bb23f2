import APNsSimulator
import Client
import Crypto
import EventLoop
import FoundationEssentials
import Model
import SQLiteStore
import SyncClient
import Wire

/// How a first sync is measured.
public struct FirstSyncOptions: Sendable {
    /// Messages of history: one user is made for each.
    public var histories = [10, 10_000]
    /// That the history is spread over, the oldest message of each beside the oldest of the others.
    public var conversations = 20
    /// New devices that sync one after the other; the median is told.
    public var runs = 5
    public var keepsFolder = false
    /// The `rouse` executable that runs the server.
    public var executable = ""
    public var progress: @Sendable (String) -> Void = { _ in }

    public init() {}
}

/// What a new device of a user with a history pays until it is usable and until it is whole: bytes
/// of the socket, TLS and all, and time. With a server of its own and the real client on a file.
/// Lives on the calling thread.
public final class FirstSyncLoad {
    static let app = "load"
    static let keyID = "load"
    /// Publishes under way at once.
    static let publishesInFlight = 32
    /// Text of a message, in bytes.
    static let textBytes = 100
    /// A first sync that takes longer has failed.
    static let patience: UInt64 = 120_000

    let options: FirstSyncOptions
    let loop: Loop
    let folder: URL
    let server: ServerProcess
    private let key = PrivateKey.generate(.p256)
    let issuer: IdentityIssuer
    private var apiKey = ""
    private var failure: String?

    public static func run(_ options: FirstSyncOptions) throws -> FirstSyncReport {
        let load = try FirstSyncLoad(options)
        defer { load.tidy() }
        return try load.measure()
    }

    private init(_ options: FirstSyncOptions) throws {
        self.options = options
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-load-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        loop = try Loop()
        issuer = IdentityIssuer(
            issuer: "rouse-scenario", keyID: Self.keyID, key: key, app: Self.app)
        server = ServerProcess(
            executable: URL(fileURLWithPath: options.executable), folder: folder)
    }

    private func tidy() {
        server.kill()
        loop.close()
        if options.keepsFolder {
            options.progress("kept \(folder.path)")
        } else {
            try? FileManager.default.removeItem(at: folder)
        }
    }

    private func measure() throws -> FirstSyncReport {
        let made = try DevelopmentCertificates(names: ["localhost"])
        try Data(made.server.certificatePEM.utf8)
            .write(to: folder.appendingPathComponent("server.pem"))
        try Data(made.server.privateKeyPEM.utf8)
            .write(to: folder.appendingPathComponent("server.key"))
        try server.start()
        let backend = AppBackend(loop: loop, app: Self.app, server: server)
        try backend.setUp(issuer: key.publicKey, issuerKeyID: Self.keyID)
        apiKey = backend.apiKey
        let tls = try TLSContext.client(
            trustedCertificates: Array(made.authorityPEM.utf8), protocols: ["rouse/1"],
            minimumVersion: .tls13)
        var report = FirstSyncReport(conversations: options.conversations, runs: options.runs)
        for history in options.histories {
            let user = "reader-\(history)"
            try publish(history, to: user, backend)
            for isSnapshot in [true, false] {
                var syncs: [FirstSync] = []
                for run in 0..<options.runs {
                    syncs.append(
                        try sync(user, tls, isSnapshot: isSnapshot, number: run))
                }
                let median = FirstSyncReport.Row(
                    history: history, isSnapshot: isSnapshot, of: syncs)
                report.rows.append(median)
                options.progress(median.text)
            }
        }
        return report
    }

    // MARK: - The history

    private func publish(
        _ history: Int, to user: String, _ backend: AppBackend
    ) throws(ScenarioError) {
        var conversations: [String] = []
        for _ in 0..<options.conversations {
            let id = UUID().uuidString.lowercased()
            try backend.createConversation(id, participants: [user, "writer"])
            conversations.append(id)
        }
        options.progress("publishing \(history) messages for \(user)")
        var next = 0
        var answered = 0
        func publishNext() {
            guard next < history, failure == nil else { return }
            let place = conversations[next % conversations.count]
            next += 1
            publish(to: place) { [unowned self] problem in
                if let problem { self.failure = problem }
                answered += 1
                if answered == history || self.failure != nil { self.loop.stop() }
                publishNext()
            }
        }
        loop.updateNow()
        for _ in 0..<Self.publishesInFlight { publishNext() }
        if answered < history { loop.run() }
        if let failure { throw ScenarioError(failure) }
    }

    private func publish(to conversation: String, then: @escaping (String?) -> Void) {
        struct New: Encodable {
            struct Part: Encodable {
                let mimeType = "text/plain"
                let text: String

                enum CodingKeys: String, CodingKey {
                    case mimeType = "mime_type"
                    case text
                }
            }
            let sender = "writer"
            let parts: [Part]
            let push = ["title": "writer", "body": "A message"]
        }
        let text = String(repeating: "A", count: Self.textBytes)
        let body = (try? JSONEncoder().encode(New(parts: [New.Part(text: text)]))).map(Array.init)
        HTTPCall(
            loop: loop, place: .tcp(host: "127.0.0.1", port: server.apiPort), method: "POST",
            path: "/v1/conversations/\(conversation)/messages",
            headers: [("authorization", "Bearer \(apiKey)")], body: body ?? []
        ) { result in
            switch result {
            case .success(let answer) where answer.status < 300: then(nil)
            case .success(let answer):
                then("publishing: \(answer.status) " + String(decoding: answer.body, as: UTF8.self))
            case .failure(let error): then("publishing: \(error)")
            }
        }
    }

    // MARK: - A new device

    private func sync(
        _ user: String, _ tls: TLSContext, isSnapshot: Bool, number: Int
    ) throws -> FirstSync {
        let file = folder.appendingPathComponent("\(user)-\(isSnapshot)-\(number).db").path
        let store = TableLocalStore(
            store: try SQLiteStore(path: file, tables: LocalSchema.tables))
        var outcome = FirstSync()
        var problem: String?
        var client: SyncClient?
        var events = SyncClientEvents { [issuer] nonce, answer in
            let now = SystemClock.wallMilliseconds() / 1_000
            answer(issuer.token(for: user, nonce: nonce, now: now))
        }
        let started = SystemClock.monotonicMilliseconds()
        func cost() -> FirstSync.Cost? {
            guard let traffic = client?.traffic else { return nil }
            return FirstSync.Cost(
                bytesReceived: traffic.received, bytesSent: traffic.sent,
                milliseconds: SystemClock.monotonicMilliseconds() - started)
        }
        events.applied = { _ in if outcome.usable == nil { outcome.usable = cost() } }
        events.reported = { [loop] event in
            guard let cost = cost() else { return }
            switch event {
            case .opened: outcome.loggedIn = cost
            case .snapshot(_, true, _): outcome.usable = cost
            case .synced:
                outcome.whole = cost
                loop.stop()
            case .refused, .loginRefused, .otherUser, .storeFailed, .closed:
                problem = "\(event)"
                loop.stop()
            default: break
            }
        }
        guard let device = DeviceID(Random.bytes(16)) else { throw ScenarioError("no id") }
        client = try SyncClient(
            loop: loop,
            endpoint: SyncEndpoint(
                host: "127.0.0.1", port: server.devicePort, serverName: "localhost"),
            tls: tls, store: store,
            configuration: ClientConfiguration(
                app: Self.app, device: device, clientName: "rouse load", clientVersion: "1",
                wantsSnapshots: isSnapshot),
            seed: UInt64(number), events: events)
        loop.updateNow()
        let limit = loop.timer { [loop] in
            problem = "no first sync within \(Self.patience / 1000) s"
            loop.stop()
        }
        limit.start(afterMilliseconds: Self.patience)
        client?.start(AppState(phase: .foreground))
        loop.run()
        limit.close()
        client?.terminate()
        client = nil
        outcome.messages = try store.counts().messages
        store.close()
        if let problem { throw ScenarioError("\(problem)\n\(server.lastLogLines())") }
        return outcome
    }
}

/// What one new device paid.
struct FirstSync {
    struct Cost: Codable, Equatable, Sendable {
        var bytesReceived: UInt64 = 0
        var bytesSent: UInt64 = 0
        /// Since the device began to dial.
        var milliseconds: UInt64 = 0
    }

    /// Until WELCOME.
    var loggedIn: Cost?
    /// The first page is durable on the device.
    var usable: Cost?
    /// In sync with the head of the feed.
    var whole: Cost?
    /// Stored on the device at the end.
    var messages = 0
}

/// What came of it: medians.
public struct FirstSyncReport: Encodable, Sendable {
    /// One history, by snapshot or by the feed from its start.
    public struct Row: Encodable, Sendable {
        let history: Int
        let isSnapshot: Bool
        let loggedIn: FirstSync.Cost
        let usable: FirstSync.Cost
        let whole: FirstSync.Cost
        let messagesOnDevice: Int

        enum CodingKeys: String, CodingKey {
            case history
            case isSnapshot = "by_snapshot"
            case loggedIn, usable, whole, messagesOnDevice
        }

        init(history: Int, isSnapshot: Bool, of syncs: [FirstSync]) {
            self.history = history
            self.isSnapshot = isSnapshot
            func median(_ cost: (FirstSync) -> FirstSync.Cost?) -> FirstSync.Cost {
                let costs = syncs.compactMap(cost)
                func middle(_ value: (FirstSync.Cost) -> UInt64) -> UInt64 {
                    let sorted = costs.map(value).sorted()
                    return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
                }
                return FirstSync.Cost(
                    bytesReceived: middle { $0.bytesReceived },
                    bytesSent: middle { $0.bytesSent },
                    milliseconds: middle { $0.milliseconds })
            }
            loggedIn = median { $0.loggedIn }
            usable = median { $0.usable }
            whole = median { $0.whole }
            messagesOnDevice = syncs.map(\.messages).max() ?? 0
        }

        var text: String {
            func cost(_ cost: FirstSync.Cost) -> String {
                "\(cost.bytesReceived) bytes in, \(cost.bytesSent) out, \(cost.milliseconds) ms"
            }
            return "\(history) messages by \(isSnapshot ? "snapshot" : "the feed"): "
                + "logged in \(cost(loggedIn)); usable \(cost(usable)); whole \(cost(whole)); "
                + "\(messagesOnDevice) messages on the device"
        }
    }

    public let conversations: Int
    public let runs: Int
    public internal(set) var rows: [Row] = []

    init(conversations: Int, runs: Int) {
        self.conversations = conversations
        self.runs = runs
    }

    /// For people.
    public var text: String {
        "first sync of a new device, \(conversations) conversations, median of \(runs):\n"
            + rows.map { "  " + $0.text }.joined(separator: "\n")
    }

    /// One JSON object, in one line.
    public var json: String { reportLine }
}
