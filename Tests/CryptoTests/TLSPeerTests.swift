import Foundation
import Testing

@testable import Crypto

/// Connections with the `openssl` program.
@Suite(.enabled(if: Child.hasOpenSSL, "needs /usr/bin/openssl"))
struct TLSPeerTests {
    /// An engine joined to a socket; every step blocks until it has what it waits for.
    private final class Connection {
        let engine: TLSEngine
        let socket: Socket
        var received: [UInt8] = []
        var ended = false

        init(engine: TLSEngine, socket: Socket) {
            self.engine = engine
            self.socket = socket
        }

        func flush() throws {
            try socket.send(engine.output())
        }

        /// Reads until the condition holds or the stream ends.
        func read(until condition: () -> Bool) throws {
            while !condition(), !ended {
                let bytes = try socket.receive()
                ended = bytes.isEmpty
                defer { try? flush() }
                received += try engine.receive(bytes)
            }
        }
    }

    /// A child whose standard input stays open.
    private final class Running {
        let process = Process()
        let input = Pipe()
        let output = Pipe()

        init(_ arguments: [String]) throws {
            process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
            process.arguments = arguments
            process.standardInput = input
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            try process.run()
        }

        func write(_ text: String) throws {
            try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        }

        func readAll() throws -> String {
            let data = try output.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            return String(decoding: data, as: UTF8.self)
        }

        deinit {
            if process.isRunning { process.terminate() }
        }
    }

    private func withFiles<T>(
        _ texts: [String], _ body: ([String]) throws -> T
    ) throws -> T {
        let directory = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-crypto-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        var paths: [String] = []
        for (index, text) in texts.enumerated() {
            let file = directory.appendingPathComponent("\(index).pem")
            try Data(text.utf8).write(to: file)
            paths.append(file.path)
        }
        return try body(paths)
    }

    @Test(arguments: ["-tls1_3", "-tls1_2"])
    func serves(version: String) throws {
        let fixture = try Fixture()
        let (listener, port) = try Socket.listening()
        try withFiles([fixture.certificates.authorityPEM]) { files in
            let child = try Running([
                "s_client", "-connect", "127.0.0.1:\(port)", "-servername", "localhost", version,
                "-alpn", "h2,rouse/1", "-CAfile", files[0], "-verify_return_error",
                "-verify_hostname", "localhost",
            ])
            let context = try fixture.server(minimumVersion: .tls12, tickets: 1)
            let connection = Connection(
                engine: context.makeEngine(), socket: try listener.accepted())
            try connection.read { connection.engine.isHandshakeComplete }
            #expect(connection.engine.negotiatedProtocol == "rouse/1")
            try child.write("hello\n")
            try connection.read { connection.received == Array("hello\n".utf8) }
            try connection.engine.sendBytes(Array("world\n".utf8))
            try connection.flush()
            if version == "-tls1_3" {
                try updateKeys(connection, child)
                try child.write("Q\n")
                try connection.read { connection.engine.peerClosed }
                #expect(connection.engine.peerClosed && connection.engine.failure == nil)
            } else {
                // A renegotiation: refused by a warning, upon which s_client gives up.
                try child.write("R\n")
                #expect(throws: TLSError.alertReceived(40)) { try connection.read { false } }
            }
            let text = try child.readAll()
            #expect(text.contains("Verification: OK"))
            #expect(text.contains("ALPN protocol: rouse/1"))
            #expect(text.contains("world"))
        }
    }

    /// "K" makes s_client renew its keys and ask for ours, "k" only its own. The answer goes out
    /// just before the next data (RFC 8446 section 4.6.3), so asking often costs nothing more.
    private func updateKeys(_ connection: Connection, _ child: Running) throws {
        for (command, update) in [("K\n", 27), ("k\n", 0), ("K\n", 27)] {
            let before = connection.received.count
            try child.write(command)
            #expect(try connection.engine.receive(connection.socket.receive()).isEmpty)
            #expect(connection.engine.pendingOutput == 0)
            try child.write("after\n")
            try connection.read { connection.received.count >= before + 6 }
            try connection.engine.sendBytes(Array("answer\n".utf8))
            let output = connection.engine.output()
            #expect(output.count == update + 22 + 7)
            try connection.socket.send(output)
        }
        #expect(connection.received == Array("hello\nafter\nafter\nafter\n".utf8))
    }

    @Test(arguments: ["-tls1_3", "-tls1_2"])
    func connects(version: String) throws {
        let fixture = try Fixture()
        let server = fixture.certificates.server
        try withFiles([server.certificatePEM, server.privateKeyPEM]) { files in
            let child = try Running([
                "s_server", "-accept", "127.0.0.1:0", "-cert", files[0], "-key", files[1], version,
                "-alpn", "rouse/1", "-rev", "-naccept", "1",
            ])
            let connection = Connection(
                engine: try fixture.client().makeEngine(serverName: "localhost"),
                socket: try Socket.connected(port: try port(of: child)))
            try connection.engine.startHandshake()
            try connection.flush()
            try connection.read { connection.engine.isHandshakeComplete }
            #expect(connection.engine.negotiatedProtocol == "rouse/1")
            #expect(connection.engine.peerCertificateSubject == "CN=localhost")
            try connection.engine.sendBytes(Array("abcdef\n".utf8))
            try connection.flush()
            try connection.read { connection.received.count >= 7 }
            #expect(connection.received == Array("fedcba\n".utf8))
            connection.engine.close()
            try connection.flush()
            try connection.read { false }
            #expect(connection.engine.failure == nil)
            _ = try child.readAll()
        }
    }

    /// s_server says "ACCEPT 127.0.0.1:port" once it listens.
    private func port(of child: Running) throws -> UInt16 {
        var line: [UInt8] = []
        while let byte = try child.output.fileHandleForReading.read(upToCount: 1)?.first {
            line.append(byte)
            guard byte == UInt8(ascii: "\n") else { continue }
            let text = String(decoding: line.dropLast(), as: UTF8.self)
            line = []
            guard text.hasPrefix("ACCEPT") else { continue }
            return try #require(text.split(separator: ":").last.flatMap { UInt16($0) })
        }
        throw Socket.Failed(what: "s_server does not listen", code: 0)
    }
}
