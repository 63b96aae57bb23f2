import Foundation
import Glibc
import Testing

/// What Wireshark says of a real conversation with the server, captured on a plain listener.
@Suite struct CaptureTests {
    static let hasWireshark =
        RealServer.hasPeers && FileManager.default.isExecutableFile(atPath: "/usr/bin/tshark")
        && geteuid() == 0

    @Test(
        "every frame of a captured session is named, none is malformed",
        .enabled(if: hasWireshark, "needs tshark and the right to capture"))
    func capture() throws {
        let port = try NodeFaultStage.freePort()
        let server = try RealServer(settings: ["listen.plain_port=\(port)"])
        defer { server.stop() }
        let file = server.path("capture.pcapng")
        let shark = Process()
        // A child of the test runner may inherit blocked signals, and tshark ends by one.
        let unblocked = """
            import os, signal, sys
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            os.execv(sys.argv[1], sys.argv[1:])
            """
        shark.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        shark.arguments = [
            "-c", unblocked, "/usr/bin/tshark", "-q", "-i", "lo", "-f", "tcp port \(port)", "-w",
            file,
        ]
        let words = Pipe()
        shark.standardOutput = words
        shark.standardError = words
        try shark.run()
        defer { if shark.isRunning { kill(shark.processIdentifier, SIGKILL) } }
        // It says so once it captures.
        var said = Data()
        while !said.contains("Capture started".utf8) {
            let chunk = words.fileHandleForReading.availableData
            try #require(!chunk.isEmpty, "\(String(decoding: said, as: UTF8.self))")
            said += chunk
        }
        let (output, status) = try server.runPeer(
            "client.py", ["--plain"], port: port)
        #expect(status == 0, "\(output)")
        try Self.waitForEverything(in: file, port)
        kill(shark.processIdentifier, SIGINT)
        shark.waitUntilExit()
        let (found, verdict) = try Self.dissect(file, port)
        #expect(verdict == 0, "\(found)")
        #expect(found.hasSuffix(" frames, 0 wrong\n"), "\(found)")
        for name in ["HELLO", "CHALLENGE", "AUTHENTICATE", "WELCOME", "DELTA", "ACK", "MUTATE"] {
            #expect(found.contains("\(name) "), "\(found)")
        }
    }

    /// Packets reach the file in their order: once one of a last connection is there, all are. It
    /// is known by its ports, which begin its TCP header.
    private static func waitForEverything(in file: String, _ port: Int) throws {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            }
        }
        try #require(isConnected)
        let own = Int(UInt16(bigEndian: address.sin_port))
        let head = Data([own >> 8, own & 255, port >> 8, port & 255].map { UInt8($0) })
        let limit = Date().addingTimeInterval(60)
        while try Data(contentsOf: URL(fileURLWithPath: file)).range(of: head) == nil {
            try #require(Date() < limit, "the capture misses its last connection")
            usleep(5_000)
        }
    }

    private static func dissect(
        _ file: String, _ port: Int
    ) throws -> (output: String, status: Int32) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = [
            ChatLog.root.appendingPathComponent("Tests/vectors/dissect.py").path, file, "\(port)",
        ]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (String(decoding: output, as: UTF8.self), process.terminationStatus)
    }
}

extension Data {
    fileprivate func contains(_ bytes: String.UTF8View) -> Bool {
        range(of: Data(bytes)) != nil
    }
}
