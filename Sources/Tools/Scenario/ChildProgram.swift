import EventLoop
import FoundationEssentials
import Glibc

/// This program as a child process: started, its first line of output awaited, ended by signal.
final class ChildProgram {
    private let words: [String]
    private let environment: [String]
    private let logFile: URL
    private let name: String

    /// Its standard input is a pipe: the child ends when this end is gone, also if this process is
    /// killed.
    private var process: ChildProcess?

    /// Starts `executable` with `arguments`; standard error is appended to `logFile`. Settings in
    /// the environment are not passed on, a scenario is not to be changed by them; `settings` are
    /// the variables it has itself. `isRouse`: it has to be told to end with its standard input;
    /// another program does so by itself.
    init(
        executable: URL, arguments: [String], logFile: URL, settings: [String: String] = [:],
        isRouse: Bool = true
    ) throws {
        name = isRouse ? "rouse \(arguments.first ?? "")" : executable.lastPathComponent
        words = [executable.path] + arguments + (isRouse ? ["--with-parent"] : [])
        var environment = ProcessInfo.processInfo.environment
        for key in environment.keys where key.hasPrefix("ROUSE_") { environment[key] = nil }
        environment.merge(settings) { _, ours in ours }
        self.environment = environment.map { "\($0.key)=\($0.value)" }
        self.logFile = logFile
    }

    /// Starts it and gives the first line it prints: where it listens.
    func start() throws -> Data {
        let process = try ChildProcess(
            words, environment: environment, input: .pipe, output: .pipe,
            errors: .file(logFile.path))
        self.process = process
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let chunk = process.read()
            if chunk.isEmpty {
                process.waitForEnd()
                throw ScenarioError("\(name) ended before it was ready")
            }
            line += chunk
        }
        return line
    }

    /// Starts it; what it prints goes where its complaints go.
    func startSilent() throws {
        let log = ChildProcess.Place.file(logFile.path)
        process = try ChildProcess(
            words, environment: environment, input: .pipe, output: log, errors: log)
    }

    var isRunning: Bool { process?.isRunning ?? false }

    /// Its process; `nil`: it does not run.
    var identifier: Int32? { isRunning ? process?.identifier : nil }

    /// kill -9: no good-bye, nothing flushed.
    func kill() { process?.kill() }

    /// Whether it was ended by kill -9, of ours or its own.
    var wasKilled: Bool { process?.end == .signal(SIGKILL) }

    /// SIGTERM: it ends when it has said good-bye to everybody.
    func drain() {
        process?.signal(SIGTERM)
        process?.waitForEnd()
    }

    /// Ends it at once, but orderly: its standard input ends.
    func stop() {
        process?.closeInput()
        process?.waitForEnd()
    }
}

/// The simulator as a child process.
final class SimulatorProcess {
    let control: String
    private(set) var port: UInt16 = 0
    private let program: ChildProgram

    private struct Ports: Decodable { let production: UInt16 }

    /// `folder` holds `server.pem` and `server.key`; the simulated devices' stores come into it.
    init(executable: URL, folder: URL) throws {
        control = folder.appendingPathComponent("sim").path
        let devices = folder.appendingPathComponent("devices")
        try FileManager.default.createDirectory(at: devices, withIntermediateDirectories: true)
        program = try ChildProgram(
            executable: executable,
            arguments: [
                "apns-simulator", "--json", "--control", control, "--directory", devices.path,
                "--certificate", folder.appendingPathComponent("server.pem").path,
                "--key", folder.appendingPathComponent("server.key").path,
            ], logFile: folder.appendingPathComponent("simulator.log"))
    }

    func start() throws {
        port = try JSONDecoder().decode(Ports.self, from: try program.start()).production
    }

    func kill() { program.kill() }

    /// Its process; `nil`: it does not run.
    var identifier: Int32? { program.identifier }
}
