import Foundation

/// This program as a child process: started, its first line of output awaited, ended by signal.
final class ChildProgram {
    private let process = Process()
    private let name: String

    /// The child ends when this end is gone, also if this process is killed.
    private let input = Pipe()

    /// Starts `executable` with `arguments`; standard error is appended to `logFile`. Settings in
    /// the environment are not passed on, a scenario is not to be changed by them; `settings` are
    /// the variables it has itself. `isRouse`: it has to be told to end with its standard input;
    /// another program does so by itself.
    init(
        executable: URL, arguments: [String], logFile: URL, settings: [String: String] = [:],
        isRouse: Bool = true
    ) throws {
        name = isRouse ? "rouse \(arguments.first ?? "")" : executable.lastPathComponent
        process.executableURL = executable
        process.arguments = arguments + (isRouse ? ["--with-parent"] : [])
        process.standardInput = input
        var environment = ProcessInfo.processInfo.environment
        for key in environment.keys where key.hasPrefix("ROUSE_") { environment[key] = nil }
        environment.merge(settings) { _, ours in ours }
        process.environment = environment
        if !FileManager.default.fileExists(atPath: logFile.path) {
            _ = FileManager.default.createFile(atPath: logFile.path, contents: nil)
        }
        let log = try FileHandle(forWritingTo: logFile)
        try log.seekToEnd()
        process.standardError = log
    }

    /// Starts it and gives the first line it prints: where it listens.
    func start() throws -> Data {
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        var line = Data()
        while !line.contains(UInt8(ascii: "\n")) {
            let chunk = output.fileHandleForReading.availableData
            if chunk.isEmpty {
                process.waitUntilExit()
                throw ScenarioError("\(name) ended before it was ready")
            }
            line += chunk
        }
        return line
    }

    /// Starts it; what it prints goes where its complaints go.
    func startSilent() throws {
        process.standardOutput = process.standardError
        try process.run()
    }

    var isRunning: Bool { process.isRunning }

    /// Its process; `nil`: it does not run.
    var identifier: Int32? { process.isRunning ? process.processIdentifier : nil }

    /// kill -9: no good-bye, nothing flushed.
    func kill() {
        guard process.isRunning else { return }
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Whether it was ended by kill -9, of ours or its own.
    var wasKilled: Bool {
        !process.isRunning && process.terminationReason == .uncaughtSignal
            && process.terminationStatus == SIGKILL
    }

    /// SIGTERM: it ends when it has said good-bye to everybody.
    func drain() {
        guard process.isRunning else { return }
        Foundation.kill(process.processIdentifier, SIGTERM)
        process.waitUntilExit()
    }

    /// Ends it at once, but orderly: its standard input ends.
    func stop() {
        guard process.isRunning else { return }
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
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
