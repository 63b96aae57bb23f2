import Crypto
import EventLoop
import FoundationEssentials

/// A server of our own with an app set up on it, for tools that only speak to it from outside.
public final class PreparedServer {
    /// Of the app: identity tokens name it as audience.
    public let app = "conform"
    /// `kid` of the key that signs identity tokens.
    public let keyID = "conform"
    /// A topic the app's pushes are configured for, in the production environment.
    public let pushTopic = "com.example.conform"
    /// Signs identity tokens; PEM.
    public let issuerKeyPEM: String
    /// What signed the server's certificate, which names `localhost`; PEM.
    public let authorityPEM: String
    /// Where devices connect to on 127.0.0.1.
    public var devicePort: UInt16 { server.devicePort }
    /// Where the backend API is on 127.0.0.1.
    public var apiPort: UInt16 { server.apiPort }
    /// Of the backend API.
    public let apiKey: String
    private let server: ServerProcess
    private let folder: URL

    /// Starts `rouse serve` in a temporary folder with free ports, and makes the app.
    ///
    /// - Parameter settings: by the names of the server's configuration.
    /// - Throws: why it does not serve; nothing is left behind.
    public init(executable: String, settings: [String: String] = [:]) throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-conform-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        server = ServerProcess(executable: URL(fileURLWithPath: executable), folder: folder)
        do {
            let made = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
            try Data(made.server.certificatePEM.utf8)
                .write(to: folder.appendingPathComponent("server.pem"))
            try Data(made.server.privateKeyPEM.utf8)
                .write(to: folder.appendingPathComponent("server.key"))
            authorityPEM = made.authorityPEM
            let key = PrivateKey.generate(.p256)
            issuerKeyPEM = key.pem
            var variables: [String: String] = [:]
            for (name, value) in settings {
                let variable = name.uppercased().replacing(".", with: "_")
                variables["ROUSE_\(variable)"] = value
            }
            server.drainSeconds = 6
            try server.start(settings: variables)
            let loop = try Loop()
            defer { loop.close() }
            let backend = AppBackend(loop: loop, app: app, server: server)
            try backend.setUp(issuer: key.publicKey, issuerKeyID: keyID)
            // Nothing listens there: no push of a conformance run goes anywhere.
            try backend.setPush(
                AppBackend.Push(
                    keyID: "CONFORM000", team: "CONFORM000",
                    privateKeyPEM: PrivateKey.generate(.p256).pem, topics: [pushTopic],
                    host: "localhost", port: 9, trustedCertificatesPEM: made.authorityPEM))
            apiKey = backend.apiKey
        } catch {
            server.kill()
            try? FileManager.default.removeItem(at: folder)
            throw error
        }
    }

    /// The last lines of its log.
    public var log: String { server.lastLogLines(20) }

    /// Whether it still runs.
    public var isRunning: Bool { server.isRunning }

    /// Its process, to be told to drain (SIGTERM); it takes 6 s. `nil`: it has ended.
    public var identifier: Int32? { server.identifier }

    /// Ends it and removes its files.
    public func stop() {
        server.kill()
        try? FileManager.default.removeItem(at: folder)
    }
}
