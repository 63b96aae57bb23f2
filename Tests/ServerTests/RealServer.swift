import Crypto
import Foundation
import Glibc
import Testing

/// `rouse serve` as an operator runs it, in a folder of its own, with one app `chat`, its issuer
/// key and an API key. Its log (standard error) is the folder's `server.log`.
final class RealServer {
    static let app = "chat"
    static let keyID = "k1"

    let folder: URL
    private(set) var apiKey = ""
    private(set) var devicePort = 0
    private(set) var apiPort = 0
    /// Of a server with `console.port`.
    private(set) var consolePort = 0
    /// Of a server with `node.agent_port`.
    private(set) var agentPort = 0
    private let process = Process()
    /// The server ends when this end is gone.
    private let input = Pipe()
    private var isTraced = false

    private struct Addresses: Decodable {
        let devicePort: Int
        let apiPort: Int
        let consolePort: Int?
        let agentPort: Int?
    }

    /// - Parameters:
    ///   - tracer: a program and its arguments that runs the server, such as strace.
    ///   - storePath: where the store goes; `nil`: into the folder.
    ///   - settings: `key=value`, as `--set` takes them.
    ///   - node: A server on the same store, whose app, keys and certificates are its own, too.
    init(
        tracer: (URL) -> [String] = { _ in [] }, storePath: String? = nil,
        settings: [String] = [], besides node: RealServer? = nil
    ) throws {
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-real-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let certificates = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        let issuer = PrivateKey.generate(.p256)
        let issuerPEM = try node.map {
            try String(contentsOfFile: $0.path("issuer.pem"), encoding: .utf8)
        }
        if let node { apiKey = node.apiKey }
        try write(certificates.authorityPEM, "ca.pem")
        try write(certificates.server.certificatePEM, "server.pem")
        try write(certificates.server.privateKeyPEM, "server.key")
        try write(issuerPEM ?? issuer.pem, "issuer.pem")
        try write(issuer.publicKeyPEM, "issuer.pub.pem")
        let prefix = tracer(folder)
        isTraced = !prefix.isEmpty
        var words = prefix + [Program.path, "serve", "--json", "--with-parent"]
        let socket = folder.appendingPathComponent("admin").path
        for setting in [
            "store.path=\(storePath ?? folder.appendingPathComponent("rouse.db").path)",
            "tls.certificate_file=\(path("server.pem"))", "tls.key_file=\(path("server.key"))",
            "listen.port=0", "api.port=0", "admin.socket=\(socket)",
        ] + settings {
            words += ["--set", setting]
        }
        try start(words)
        if node != nil { return }
        try rouse(["app", "create", Self.app, "--grace", "5"])
        try rouse([
            "app", "issuer-key", "add", Self.app, "--kid", Self.keyID, "--key",
            path("issuer.pub.pem"),
        ])
        apiKey = try rouse(["app", "api-key", "create", Self.app])
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(at: folder)
    }

    private func start(_ words: [String]) throws {
        process.executableURL = URL(fileURLWithPath: words[0])
        process.arguments = Array(words.dropFirst())
        process.standardInput = input
        let output = Pipe()
        process.standardOutput = output
        FileManager.default.createFile(atPath: path("server.log"), contents: nil)
        process.standardError = try FileHandle(
            forWritingTo: URL(fileURLWithPath: path("server.log")))
        try process.run()
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let chunk = output.fileHandleForReading.availableData
            if chunk.isEmpty {
                throw ProgramFailure("the server did not start: \(log.suffix(500))")
            }
            line += chunk
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let addresses = try decoder.decode(Addresses.self, from: line)
        devicePort = addresses.devicePort
        apiPort = addresses.apiPort
        consolePort = addresses.consolePort ?? 0
        agentPort = addresses.agentPort ?? 0
    }

    /// A file of the folder.
    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    private func write(_ text: String, _ name: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
    }

    /// Everything the server has logged so far.
    var log: String { (try? String(contentsOfFile: path("server.log"), encoding: .utf8)) ?? "" }

    /// Waits until a text stands in the log, and not for ever.
    func comesToLog(_ text: String) -> Bool {
        for _ in 0..<300 where !log.contains(text) { Thread.sleep(forTimeInterval: 0.1) }
        return log.contains(text)
    }

    /// The server's process, also under a tracer.
    var identifier: Int32 {
        let own = process.processIdentifier
        guard isTraced else { return own }
        let children = try? String(
            contentsOfFile: "/proc/\(own)/task/\(own)/children", encoding: .utf8)
        return children?.split(separator: " ").first.flatMap { Int32($0) } ?? own
    }

    /// An operator's command on the running server; what it printed.
    @discardableResult
    func rouse(_ words: [String]) throws -> String {
        let outcome = try Program.run(words + ["--socket", path("admin")])
        guard outcome.status == 0 else {
            throw ProgramFailure("rouse \(words.joined(separator: " ")): \(outcome.errors)")
        }
        return outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// What `/metrics` says.
    func metrics() throws -> [UInt8] {
        let curl = Process()
        curl.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        curl.arguments = ["curl", "-fsS", "http://127.0.0.1:\(apiPort)/metrics"]
        let pipe = Pipe()
        curl.standardOutput = pipe
        try curl.run()
        let text = pipe.fileHandleForReading.readDataToEndOfFile()
        curl.waitUntilExit()
        guard curl.terminationStatus == 0 else { throw ProgramFailure("/metrics: no answer") }
        return Array(text)
    }

    /// Runs a Python program of Tests/peers against the server; its output and exit status.
    func runPeer(
        _ name: String, _ words: [String] = [], port: Int? = nil, after: [String] = []
    ) throws -> (output: String, status: Int32) {
        let peer = Process()
        peer.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        peer.arguments =
            [ChatLog.root.appendingPathComponent("Tests/peers/\(name)").path] + words + [
                "--port", "\(port ?? devicePort)", "--ca", path("ca.pem"), "--app", Self.app,
                "--key", path("issuer.pem"), "--kid", Self.keyID,
                "--api", "\(apiPort)", "--api-key", apiKey, "--server", "\(identifier)",
            ] + after
        let pipe = Pipe()
        peer.standardOutput = pipe
        peer.standardError = pipe
        try peer.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        peer.waitUntilExit()
        return (String(decoding: output, as: UTF8.self), peer.terminationStatus)
    }

    /// Connects to each of the servers in turn with the TLS session of the connection before, which
    /// lies in this one's folder.
    ///
    /// - Parameters:
    ///   - how: `w` for each that is to be a whole handshake, `r` for one that goes on.
    ///   - authority: whose certificate is expected of a whole one; `nil`: this server's.
    func resumes(_ how: String, at servers: [RealServer], authority: RealServer? = nil) throws {
        for server in servers {
            // A server listens a moment before the store has told it the keys.
            for _ in 0..<600 where !server.log.contains("tls.ticket_keys") {
                Thread.sleep(forTimeInterval: 0.05)
            }
        }
        let (output, status) = try (authority ?? self).runPeer(
            "resumed.py",
            [how, "--session", path("session.pem")]
                + servers.flatMap { ["--to", "\($0.devicePort)"] })
        #expect(status == 0 && output.contains("resumed \(how): ok"), "\(output)")
    }

    /// Ends the server, orderly and at once; one that hangs is killed, and the test that made it
    /// hang has failed by then.
    func stop() {
        guard process.isRunning else { return }
        let server = identifier
        try? input.fileHandleForWriting.close()
        for _ in 0..<600 where process.isRunning { Thread.sleep(forTimeInterval: 0.05) }
        if process.isRunning { kill(server, SIGKILL) }
        process.waitUntilExit()
    }

    /// What the Python peers need of Debian.
    static let hasPeers = [
        "/usr/bin/python3", "/usr/lib/python3/dist-packages/google/protobuf",
        "/usr/lib/python3/dist-packages/jwt",
    ].allSatisfy { FileManager.default.fileExists(atPath: $0) }
}

/// A program of a test did not do what it was started for.
struct ProgramFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
