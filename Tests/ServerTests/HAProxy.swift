import Foundation

/// A real HAProxy. It can be stopped and started again.
final class HAProxy {
    static let path = "/usr/sbin/haproxy"

    private let files: [String]
    private let environment: [String: String]
    private let address: String
    private let port: Int
    private var process = Process()

    /// - Parameters:
    ///   - files: Of its configuration.
    ///   - environment: What the configuration asks for, beside what this process has.
    ///   - address: Where it listens.
    init(
        _ files: [String], environment: [String: String] = [:], address: String, port: Int
    ) {
        self.files = files
        self.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        (self.address, self.port) = (address, port)
    }

    /// Returns when it listens.
    func start() throws {
        process = Process()
        process.executableURL = URL(fileURLWithPath: Self.path)
        process.arguments = ["-db"] + files.flatMap { ["-f", $0] }
        process.environment = environment
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        for _ in 0..<200 {
            let probe = Process()
            probe.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
            probe.arguments = [
                "-c", "import socket; socket.create_connection(('\(address)', \(port)), 1).close()",
            ]
            probe.standardError = FileHandle.nullDevice
            try probe.run()
            probe.waitUntilExit()
            if probe.terminationStatus == 0 { return }
            guard process.isRunning else { throw ProgramFailure("haproxy ended") }
            Thread.sleep(forTimeInterval: 0.05)
        }
        throw ProgramFailure("haproxy does not listen")
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
    }
}
