import APNsSimulator
import FoundationEssentials

/// A server of our own as a child process, in a folder of its own: started, killed, started again
/// on the same files and ports.
final class ServerProcess {
    let folder: URL
    private(set) var devicePort: UInt16 = 0
    private(set) var apiPort: UInt16 = 0
    var storePath: String { folder.appendingPathComponent("rouse.db").path }
    var adminSocket: String { storePath + ".admin" }
    private let executable: URL
    private var program: ChildProgram?
    let logFile: URL
    /// Seconds a drain may take.
    var drainSeconds = 30
    /// Settings beside those that every such server has, which they replace.
    var settings: [String: String] = [:]

    struct Addresses: Decodable {
        let devicePort: UInt16
        let apiPort: UInt16

        enum CodingKeys: String, CodingKey {
            case devicePort = "device_port"
            case apiPort = "api_port"
        }
    }

    /// `folder` holds `server.pem` and `server.key`.
    init(executable: URL, folder: URL) {
        self.executable = executable
        self.folder = folder
        logFile = folder.appendingPathComponent("server.log")
    }

    /// Returns when it serves. `settings`: variables of its environment.
    func start(settings: [String: String] = [:]) throws {
        var arguments = ["serve", "--json"]
        for (key, value) in [
            ("store.path", storePath),
            ("tls.certificate_file", folder.appendingPathComponent("server.pem").path),
            ("tls.key_file", folder.appendingPathComponent("server.key").path),
            ("listen.port", "\(devicePort)"), ("api.port", "\(apiPort)"),
            ("timers.drain", "\(drainSeconds)"), ("admin.socket", adminSocket),
        ] + self.settings.sorted(by: { $0.key < $1.key }) {
            arguments += ["--set", "\(key)=\(value)"]
        }
        let program = try ChildProgram(
            executable: executable, arguments: arguments, logFile: logFile, settings: settings)
        self.program = program
        do {
            let addresses = try JSONDecoder().decode(Addresses.self, from: try program.start())
            devicePort = addresses.devicePort
            apiPort = addresses.apiPort
        } catch {
            throw ScenarioError(
                "the server did not start: \(ErrorWords.of(error))\n\(lastLogLines())")
        }
    }

    /// kill -9: no good-bye, nothing flushed.
    func kill() {
        program?.kill()
        program = nil
    }

    /// SIGTERM, and waits for the end.
    func drain() { program?.drain() }

    /// Whether it was ended by kill -9.
    var wasKilled: Bool { program?.wasKilled ?? false }

    func stop() {
        program?.stop()
        program = nil
    }

    var isRunning: Bool { program?.isRunning ?? false }

    /// Its process; `nil`: it does not run.
    var identifier: Int32? { program?.identifier }

    /// Of what went wrong: what a server says of its everyday is left out.
    func lastLogLines(_ count: Int = 5) -> String {
        Self.troubles(in: (try? String(contentsOf: logFile, encoding: .utf8)) ?? "", count)
    }

    static func troubles(in log: String, _ count: Int) -> String {
        let lines = log.split(separator: "\n").filter {
            !$0.contains(" level=info ") && !$0.contains(" level=debug ")
        }
        guard !lines.isEmpty else { return "(its log holds no warning)" }
        return lines.suffix(count).joined(separator: "\n")
    }
}
