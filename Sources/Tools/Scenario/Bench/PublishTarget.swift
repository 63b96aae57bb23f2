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
    /// Its process; `nil`: it has ended.
    var process: Int32? { get }
    /// Where a backend publishes, and what it speaks there.
    var apiPort: UInt16 { get }
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
/// which the backend alone writes to.
final class RouseTarget: PublishTarget {
    static let app = "bench"
    static let keyID = "bench"
    /// The backend API takes no more.
    private static let usersPerRequest = 256
    let name = "rouse"
    let tellsMetrics = true
    let keepsFeeds = true
    private let loop: Loop
    private let server: ServerProcess
    private let tls: TLSContext
    private let issuer: IdentityIssuer
    private let apiKey: String
    /// Each device's last connection, which holds what it keeps.
    private var last: [Int: LoadDevice] = [:]
    /// The part of idempotency keys that differs from run to run.
    private let run = UUID().uuidString.lowercased()

    /// - Parameter folder: holds `server.pem` and `server.key`; the store comes into it.
    init(loop: Loop, executable: String, folder: URL, tls: TLSContext) throws {
        self.loop = loop
        self.tls = tls
        let key = PrivateKey.generate(.p256)
        issuer = IdentityIssuer(
            issuer: "rouse-scenario", keyID: Self.keyID, key: key, app: Self.app)
        server = ServerProcess(executable: URL(fileURLWithPath: executable), folder: folder)
        do {
            try server.start()
            let backend = AppBackend(loop: loop, app: Self.app, server: server)
            try backend.setUp(issuer: key.publicKey, issuerKeyID: Self.keyID)
            apiKey = backend.apiKey
        } catch {
            server.kill()
            throw error
        }
    }

    var process: Int32? { server.identifier }
    var apiPort: UInt16 { server.apiPort }
    func lastLogLines() -> String { server.lastLogLines() }
    func stop() { server.kill() }

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
            loop: loop, port: server.devicePort, source: source, tls: tls, app: Self.app,
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
