import Foundation

/// A server of our own as a child process, in a folder of its own: started, killed, started again
/// on the same files and ports.
final class ServerProcess {
    let folder: URL
    private(set) var devicePort: UInt16 = 0
    private(set) var apiPort: UInt16 = 0
    var adminSocket: String { folder.appendingPathComponent("rouse.db.admin").path }
    private let executable: URL
    private var process: Process?
    private let logFile: URL

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

    /// Returns when it serves.
    func start() throws {
        let process = Process()
        process.executableURL = executable
        var arguments = ["serve", "--json"]
        for (key, value) in [
            ("store.path", folder.appendingPathComponent("rouse.db").path),
            ("tls.certificate_file", folder.appendingPathComponent("server.pem").path),
            ("tls.key_file", folder.appendingPathComponent("server.key").path),
            ("listen.port", "\(devicePort)"), ("api.port", "\(apiPort)"),
        ] {
            arguments += ["--set", "\(key)=\(value)"]
        }
        process.arguments = arguments
        var environment = ProcessInfo.processInfo.environment
        for key in environment.keys where key.hasPrefix("ROUSE_") { environment[key] = nil }
        process.environment = environment
        if !FileManager.default.fileExists(atPath: logFile.path) {
            FileManager.default.createFile(atPath: logFile.path, contents: nil)
        }
        let log = try FileHandle(forWritingTo: logFile)
        try log.seekToEnd()
        process.standardError = log
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        self.process = process
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let chunk = output.fileHandleForReading.availableData
            if chunk.isEmpty {
                process.waitUntilExit()
                throw ScenarioError("the server did not start:\n\(lastLogLines())")
            }
            line += chunk
        }
        let addresses = try JSONDecoder().decode(Addresses.self, from: line)
        devicePort = addresses.devicePort
        apiPort = addresses.apiPort
    }

    /// kill -9: no good-bye, nothing flushed.
    func kill() {
        guard let process, process.isRunning else { return }
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        self.process = nil
    }

    func stop() {
        guard let process, process.isRunning else { return }
        process.terminate()
        process.terminate()
        process.waitUntilExit()
        self.process = nil
    }

    var isRunning: Bool { process?.isRunning ?? false }

    func lastLogLines(_ count: Int = 5) -> String {
        let text = (try? String(contentsOf: logFile, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").suffix(count).joined(separator: "\n")
    }
}
