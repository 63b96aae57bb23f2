import APNsSimulator
import Crypto
import EventLoop
import FoundationEssentials
import Glibc
import Model

/// How the memory of idle connections is measured.
public struct IdleLoadOptions: Sendable {
    public var connections = 5_000
    /// From the last login to the measurement, in seconds.
    public var idleSeconds = 10
    /// Logins under way at once.
    public var loginsInFlight = 32
    public var keepsFolder = false
    /// The `rouse` executable that runs the server.
    public var executable = ""
    public var progress: @Sendable (String) -> Void = { _ in }

    public init() {}
}

/// Logs many devices in to a server of its own, each over a TLS connection and as a user of its
/// own, leaves them idle, and says what the server's process holds for each. Lives on the calling
/// thread.
public final class IdleLoad {
    static let app = "load"
    static let keyID = "load"
    /// Connections of one source address, far from the ports it has.
    static let connectionsPerAddress = 250
    /// Logged in and gone before the first look at the memory: what the server makes once is not
    /// counted as a connection's.
    static let warmUps = 20

    private let options: IdleLoadOptions
    private let loop: Loop
    private let folder: URL
    private let server: ServerProcess
    private let key = PrivateKey.generate(.p256)
    private let issuer: IdentityIssuer
    private var devices: [LoadDevice] = []
    private var waiting = 0
    private var ready = 0
    private var failure: String?

    public static func run(_ options: IdleLoadOptions) throws -> IdleLoadReport {
        let descriptors = Descriptors.raiseLimit()
        // The server keeps 256 for other things (`limits.connections`).
        guard options.connections + 256 <= descriptors else {
            throw ScenarioError(
                "\(options.connections) connections do not fit the descriptor limit of "
                    + "\(descriptors); raise it (ulimit -n) or ask for fewer")
        }
        let load = try IdleLoad(options)
        defer { load.tidy() }
        return try load.measure()
    }

    private init(_ options: IdleLoadOptions) throws {
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
        for device in devices { device.vanish() }
        server.kill()
        loop.close()
        if options.keepsFolder {
            options.progress("kept \(folder.path)")
        } else {
            try? FileManager.default.removeItem(at: folder)
        }
    }

    private func measure() throws -> IdleLoadReport {
        let made = try DevelopmentCertificates(names: ["localhost"])
        try Data(made.server.certificatePEM.utf8)
            .write(to: folder.appendingPathComponent("server.pem"))
        try Data(made.server.privateKeyPEM.utf8)
            .write(to: folder.appendingPathComponent("server.key"))
        try server.start()
        let backend = AppBackend(loop: loop, app: Self.app, server: server)
        try backend.setUp(issuer: key.publicKey, issuerKeyID: Self.keyID)
        let tls = try TLSContext.client(
            trustedCertificates: Array(made.authorityPEM.utf8), protocols: ["rouse/1"],
            minimumVersion: .tls13)

        try logIn(Self.warmUps, tls: tls, name: "warm-up")
        for device in devices { device.leave() }
        devices = []
        rest(seconds: 3)
        var report = IdleLoadReport(connections: options.connections)
        report.before = try memory()
        let started = SystemClock.monotonicMilliseconds()
        try logIn(options.connections, tls: tls, name: "device")
        report.loginSeconds =
            Double(SystemClock.monotonicMilliseconds() - started) / 1000
        report.afterLogin = try memory()
        options.progress("all logged in; idle for \(options.idleSeconds) s")
        rest(seconds: options.idleSeconds)
        if let failure { throw ScenarioError(failure) }
        report.after = try memory()
        return report
    }

    /// Runs the loop: what the server asks of idle devices is answered.
    private func rest(seconds: Int) {
        let timer = loop.timer { [loop] in loop.stop() }
        timer.start(afterMilliseconds: UInt64(clamping: seconds) * 1000)
        loop.run()
        timer.close()
    }

    private func memory() throws(ScenarioError) -> ProcessMemory {
        guard let identifier = server.identifier, let memory = ProcessMemory(of: identifier) else {
            throw ScenarioError("the server has ended:\n\(server.lastLogLines())")
        }
        return memory
    }

    // MARK: - Logging in

    private func logIn(_ count: Int, tls: TLSContext, name: String) throws(ScenarioError) {
        waiting = count
        ready = 0
        devices.reserveCapacity(devices.count + count)
        for _ in 0..<min(options.loginsInFlight, count) { startNext(tls, name) }
        loop.run()
        if let failure { throw ScenarioError(failure) }
    }

    private func startNext(_ tls: TLSContext, _ name: String) {
        guard waiting > 0, failure == nil else { return }
        waiting -= 1
        let number = devices.count
        let address = number / Self.connectionsPerAddress
        devices.append(
            LoadDevice(
                loop: loop, port: server.devicePort,
                source: "127.0.\(1 + address / 250).\(1 + address % 250)", tls: tls,
                app: Self.app, user: "\(name)-\(number)", issuer: issuer
            ) { [unowned self] event in
                switch event {
                case .ready: self.loggedIn(tls, name)
                case .entries: break
                case .ended(let why): self.fail("\(name) \(number): \(why)")
                }
            })
    }

    private func loggedIn(_ tls: TLSContext, _ name: String) {
        ready += 1
        if ready % 1000 == 0 { options.progress("\(ready) logged in") }
        if waiting > 0 {
            startNext(tls, name)
        } else if ready == devices.count {
            loop.stop()
        }
    }

    private func fail(_ why: String) {
        if failure == nil { failure = "\(why)\n\(server.lastLogLines())" }
        loop.stop()
    }
}

/// What a process holds, in bytes.
public struct ProcessMemory: Codable, Equatable, Sendable {
    /// Pages in memory: those of its own and those of files it shares.
    public var resident = 0
    /// The same, with each shared page divided by the number of its users.
    public var proportional = 0
    /// Pages that no file stands behind: heap and stacks. Growth here is what connections cost.
    public var anonymous = 0

    init?(of process: Int32) {
        guard
            let text = try? String(
                contentsOfFile: "/proc/\(process)/smaps_rollup", encoding: .utf8)
        else { return nil }
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            guard words.count == 3, let kibibytes = Int(words[1]) else { continue }
            switch words[0] {
            case "Rss:": resident = kibibytes << 10
            case "Pss:": proportional = kibibytes << 10
            case "Anonymous:": anonymous = kibibytes << 10
            default: break
            }
        }
    }

    init() {}
}

/// What came of it.
public struct IdleLoadReport: Equatable, Sendable {
    public var connections: Int
    /// From the first login's start to the last one's end, in seconds.
    public var loginSeconds = 0.0
    public var before = ProcessMemory()
    public var afterLogin = ProcessMemory()
    public var after = ProcessMemory()

    init(connections: Int) { self.connections = connections }

    /// Resident bytes a connection.
    public var bytesPerConnection: Int { (after.resident - before.resident) / connections }
    /// Bytes of heap and stacks a connection.
    public var anonymousBytesPerConnection: Int {
        (after.anonymous - before.anonymous) / connections
    }

    public var text: String {
        func line(_ name: String, _ memory: ProcessMemory) -> String {
            "\(name) \(memory.resident >> 10) KiB resident, "
                + "\(memory.proportional >> 10) KiB proportional, "
                + "\(memory.anonymous >> 10) KiB anonymous"
        }
        return """
            connections   \(connections), each TLS, logged in, synced, idle; logins took \
            \(loginSeconds) s
            \(line("before       ", before))
            \(line("after logins ", afterLogin))
            \(line("idle         ", after))
            a connection  \(bytesPerConnection) bytes resident, \
            \(anonymousBytesPerConnection) bytes anonymous
            """
    }

    /// One JSON object, in one line.
    public var json: String {
        struct Line: Encodable {
            let connections: Int
            let loginSeconds: Double
            let before: ProcessMemory
            let afterLogin: ProcessMemory
            let after: ProcessMemory
            let bytesPerConnection: Int
            let anonymousBytesPerConnection: Int
        }
        return Line(
            connections: connections, loginSeconds: loginSeconds, before: before,
            afterLogin: afterLogin, after: after, bytesPerConnection: bytesPerConnection,
            anonymousBytesPerConnection: anonymousBytesPerConnection
        ).reportLine
    }
}
