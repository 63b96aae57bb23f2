internal import Crypto
internal import EventLoop
internal import FoundationEssentials

/// The simulator as a program of its own.
public enum SimulatorProgram {
    /// What is in a directory of development certificates.
    private enum File: String {
        case authority = "authority.pem"
        case certificate = "apns.pem"
        case key = "apns-key.pem"
    }

    /// What the command is given that cannot be used.
    public struct Problem: Error, CustomStringConvertible {
        public let description: String
    }

    /// A file or a folder of the simulator's cannot be made.
    public struct CannotWrite: Error, CustomStringConvertible {
        public let description: String
    }

    /// The certificate and key of a directory; made there, with their authority, if they are
    /// missing or have expired. For a host on this machine only.
    ///
    /// - Returns: chain and key as PEM, and the path of the authority that providers must trust.
    public static func developmentCertificates(
        in directory: String
    ) throws -> (chain: [UInt8], key: [UInt8], authority: String) {
        let folder = URL(fileURLWithPath: directory, isDirectory: true)
        try writing(folder) {
            try FileManager.default.createDirectory(at: $0, withIntermediateDirectories: true)
        }
        func url(_ file: File) -> URL { folder.appendingPathComponent(file.rawValue) }
        if let chain = try? Data(contentsOf: url(.certificate)),
            let key = try? Data(contentsOf: url(.key)),
            FileManager.default.fileExists(atPath: url(.authority).path),
            (try? TLSContext.server(
                certificateChain: Array(chain), privateKey: Array(key), protocols: ["h2"])) != nil
        {
            return (Array(chain), Array(key), url(.authority).path)
        }
        let made = try DevelopmentCertificates(names: ["localhost", "127.0.0.1", "::1"])
        let owner: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        // The key first and not readable by others at any time.
        let keyPath = url(.key).path
        try? FileManager.default.removeItem(atPath: keyPath)
        guard
            FileManager.default.createFile(
                atPath: keyPath, contents: Data(made.server.privateKeyPEM.utf8),
                attributes: owner)
        else { throw CannotWrite(description: "cannot write \(keyPath)") }
        try writing(url(.certificate)) { try Data(made.server.certificatePEM.utf8).write(to: $0) }
        try writing(url(.authority)) { try Data(made.authorityPEM.utf8).write(to: $0) }
        return (
            Array(made.server.certificatePEM.utf8), Array(made.server.privateKeyPEM.utf8),
            url(.authority).path
        )
    }

    private static func writing(_ url: URL, _ body: (URL) throws -> Void) throws(CannotWrite) {
        do {
            try body(url)
        } catch {
            throw CannotWrite(description: "cannot write \(url.path): \(ErrorWords.reason(error))")
        }
    }

    /// The bytes of a file the command was given.
    public static func read(_ path: String) throws -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw Problem(description: "cannot read \(path)")
        }
        return Array(data)
    }

    /// Runs a simulator on the calling thread until SIGTERM or SIGINT, or until standard input
    /// ends if it is to end with its parent.
    ///
    /// - Parameter ready: called once, when everything listens.
    public static func run(
        _ options: SimulatorOptions, withParent: Bool = false, ready: (SimulatorPorts) -> Void
    ) throws {
        if let directory = options.directory {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true)
        }
        let loop = try Loop()
        defer { loop.close() }
        let simulator = try Simulator(loop: loop, options: options)
        for kind in [Signals.Kind.terminate, .interrupt] {
            _ = try Signals.watch(kind, on: loop) { loop.stop() }
        }
        let parent = withParent ? ParentWatch(loop: loop) { loop.stop() } : nil
        defer { withExtendedLifetime(parent) {} }
        ready(simulator.ports)
        loop.updateNow()
        loop.run()
        simulator.close()
    }

    /// The line that tells a program where the simulator listens.
    public static func json(_ ports: SimulatorPorts) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(ports) else { return "{}" }
        return String(decoding: data, as: UTF8.self)
    }
}
