import APNsSimulator
import Crypto
import EventLoop
import FoundationEssentials
import Wire

/// What a device of a measured server tells.
enum TargetEvent {
    /// Logged in, and nothing is due to it.
    case ready
    /// A message has come; its text.
    case message([UInt8])
    case ended(String)
}

/// A connected device of a measured server.
protocol TargetDevice: AnyObject {
    /// The socket just goes.
    func vanish()
}

/// Whom a message is for.
enum Recipient {
    case device(Int)
    /// The first so many devices, in one conversation.
    case group(Int)
}

/// A server that is measured: what is its own in a run that is else the same for each.
protocol PublishTarget: AnyObject {
    var name: String { get }
    /// Its processes, with those of the database it needs; `nil`: one of them has ended.
    var processes: [Int32]? { get }
    /// Where a backend publishes, of each node one, and what it speaks there.
    var apiPorts: [UInt16] { get }
    var dialect: BackendDialect { get }
    /// The requests that make the conversation for the messages, each once the one before it is
    /// answered.
    func preparation(for recipient: Recipient) -> [[UInt8]]
    /// Connects a device: at first as a new one, later as the one it was.
    func connect(
        _ device: Int, from source: String, handler: @escaping (TargetEvent) -> Void
    ) -> any TargetDevice
    /// A request that is answered once the message is on disk, by a server that keeps any.
    func publish(_ text: String, number: UInt64, to recipient: Recipient) -> [UInt8]
    /// Whether what came while a device was away waits for it.
    var keepsFeeds: Bool { get }
    /// Whether `/metrics` is there.
    var tellsMetrics: Bool { get }
    func lastLogLines() -> String
    /// Ends it at once.
    func stop()
}

extension PublishTarget {
    var dialect: BackendDialect { .http }
    var keepsFeeds: Bool { false }
}

/// Requests to a backend API, HTTP/1.1 in bytes.
enum BackendRequest {
    static func get(_ path: String) -> [UInt8] {
        Array("GET \(path) HTTP/1.1\r\nhost: localhost\r\n\r\n".utf8)
    }

    static func post(_ path: String, headers: String, body: String) -> [UInt8] {
        Array(
            """
            POST \(path) HTTP/1.1\r
            host: localhost\r
            content-type: application/json\r
            \(headers)content-length: \(body.utf8.count)\r
            \r
            \(body)
            """.utf8)
    }

    /// A message to one device: a part of text and what an alert shows.
    static func message(_ text: String) -> String {
        #"{"parts":[{"mime_type":"text/plain","text":"\#(text)"}],"#
            + #""push":{"title":"bench","body":"A message"}}"#
    }
}

/// `rouse serve`, the same program as a child, with an app and a conversation for each device,
/// which the backend alone writes to: one on SQLite, or so many nodes on PostgreSQL, to which
/// devices and backend connections go in turn.
final class RouseTarget: PublishTarget {
    static let app = "bench"
    static let keyID = "bench"
    /// By it a node is seen to know the app.
    private static let firstConversation = "0190a1b2-c3d4-7123-8458-000000000000"
    /// The backend API takes no more.
    private static let usersPerRequest = 256
    let name: String
    let tellsMetrics = true
    let keepsFeeds = true
    private let loop: Loop
    /// Never none.
    private let nodes: [ServerProcess]
    private let database: PostgresProgram?
    private let tls: TLSContext
    private let issuer: IdentityIssuer
    private let apiKey: String
    /// Each device's last connection, which holds what it keeps.
    private var last: [Int: LoadDevice] = [:]
    /// The part of idempotency keys that differs from run to run.
    private let run = UUID().uuidString.lowercased()

    /// - Parameters:
    ///   - folder: holds `server.pem` and `server.key`; the store comes into it.
    ///   - database: where the store is instead.
    ///   - nodes: how many share it, above 0; without a database 1.
    init(
        loop: Loop, executable: String, folder: URL, tls: TLSContext,
        database: PostgresProgram? = nil, nodes count: Int = 1
    ) throws {
        precondition(count > 0 && (count == 1 || database != nil), "\(count) nodes")
        self.loop = loop
        self.tls = tls
        self.database = database
        name = database == nil ? "rouse" : "\(count) on postgres"
        let key = PrivateKey.generate(.p256)
        issuer = IdentityIssuer(
            issuer: "rouse-scenario", keyID: Self.keyID, key: key, app: Self.app)
        nodes = try (1...count).map { number in
            let place = database == nil ? folder : try Self.place("\(count)-\(number)", in: folder)
            return ServerProcess(executable: URL(fileURLWithPath: executable), folder: place)
        }
        do {
            for (index, node) in nodes.enumerated() {
                if let database {
                    node.settings = database.settings(schema: "bench_\(count)")
                    node.settings["node.name"] = "bench-\(index + 1)"
                }
                try node.start()
            }
            let backend = AppBackend(loop: loop, app: Self.app, server: nodes[0])
            try backend.setUp(issuer: key.publicKey, issuerKeyID: Self.keyID)
            apiKey = backend.apiKey
            try backend.createConversation(Self.firstConversation, participants: ["nobody"])
            try backend.wait(
                untilKnownAt: nodes.map { .tcp(host: "127.0.0.1", port: $0.apiPort) },
                Self.firstConversation)
        } catch {
            for node in nodes { node.kill() }
            throw error
        }
    }

    /// A node's folder: its admin socket and its log are its own, the certificate is everybody's.
    private static func place(_ name: String, in folder: URL) throws -> URL {
        let place = folder.appendingPathComponent("node-\(name)")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        for file in ["server.pem", "server.key"] {
            try FileManager.default.copyItem(
                at: folder.appendingPathComponent(file), to: place.appendingPathComponent(file))
        }
        return place
    }

    var processes: [Int32]? {
        let running = nodes.compactMap(\.identifier)
        guard running.count == nodes.count else { return nil }
        guard let database else { return running }
        return database.processes.map { running + $0 }
    }
    var apiPorts: [UInt16] { nodes.map(\.apiPort) }
    func lastLogLines() -> String { nodes.map { $0.lastLogLines() }.joined(separator: "\n") }
    func stop() { for node in nodes { node.kill() } }

    private func user(_ device: Int) -> String { "device-\(device)" }

    private func conversation(_ recipient: Recipient) -> String {
        let (kind, number) =
            switch recipient {
            case .device(let number): ("8456", number)
            case .group(let members): ("8457", members)
            }
        let hex = String(number, radix: 16)
        return "0190a1b2-c3d4-7123-\(kind)-"
            + String(repeating: "0", count: 12 - hex.count) + hex
    }

    private var authorization: String { "authorization: Bearer \(apiKey)\r\n" }

    func preparation(for recipient: Recipient) -> [[UInt8]] {
        let members =
            switch recipient {
            case .device(let number): [user(number)]
            case .group(let members): (0..<members).map { user($0) }
            }
        let id = conversation(recipient)
        return stride(from: 0, to: members.count, by: Self.usersPerRequest).map { first in
            let names = members[first...].prefix(Self.usersPerRequest)
                .map { #""\#($0)""# }.joined(separator: ",")
            return first == 0
                ? BackendRequest.post(
                    "/v1/conversations", headers: authorization,
                    body: #"{"id":"\#(id)","participants":[\#(names)]}"#)
                : BackendRequest.post(
                    "/v1/conversations/\(id)/participants", headers: authorization,
                    body: #"{"users":[\#(names)]}"#)
        }
    }

    func publish(_ text: String, number: UInt64, to recipient: Recipient) -> [UInt8] {
        BackendRequest.post(
            "/v1/conversations/\(conversation(recipient))/messages",
            headers: authorization + "idempotency-key: \(run)-\(number)\r\n",
            body: BackendRequest.message(text))
    }

    func connect(
        _ device: Int, from source: String, handler: @escaping (TargetEvent) -> Void
    ) -> any TargetDevice {
        let connected = LoadDevice(
            loop: loop, port: nodes[device % nodes.count].devicePort, source: source, tls: tls,
            app: Self.app,
            user: user(device), issuer: issuer, standing: last[device]?.standing
        ) { event in
            switch event {
            case .ready: handler(.ready)
            case .ended(let why): handler(.ended(why))
            case .entries(let entries):
                for entry in entries {
                    if case .message(let message) = entry.body, let part = message.parts.first {
                        handler(.message(part.content))
                    }
                }
            }
        }
        last[device] = connected
        return connected
    }
}

extension LoadDevice: TargetDevice {}
