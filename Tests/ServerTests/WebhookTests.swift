import Foundation
import Testing

@testable import Scenario

/// Webhooks of a real server, to a receiver in Python that fails, hangs, dies and comes back,
/// while the server is killed with kill -9.
@Suite struct WebhookTests {
    @Test(
        "every event arrives at least once, in order, signed; secrets rotate; failure ends it",
        .enabled(
            if: FileManager.default.fileExists(atPath: "/usr/bin/python3"),
            "python3 is not installed"))
    func story() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-webhooks-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let peer = Process()
        peer.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        peer.arguments = [
            ChatLog.root.appendingPathComponent("Tests/peers/webhooks.py").path,
            "--rouse", Program.path, "--folder", folder.path,
        ]
        let pipe = Pipe()
        peer.standardOutput = pipe
        peer.standardError = pipe
        try peer.run()
        let output = String(
            decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        peer.waitUntilExit()
        let log = try? String(
            contentsOf: folder.appendingPathComponent("server.log"), encoding: .utf8)
        #expect(
            peer.terminationStatus == 0 && output.contains("webhooks: ok"),
            "\(output)\n\(log?.suffix(3000) ?? "no log")")
    }

    @Test(
        "a push token that APNs calls wrong is told, and never the token itself",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func droppedTokens() throws {
        let server = try RealServer(settings: ["webhooks.allow_networks=127.0.0.1/32"])
        let simulator = try SimulatorProcess(
            executable: URL(fileURLWithPath: Program.path), folder: server.folder)
        try simulator.start()
        defer {
            simulator.kill()
            server.stop()
        }
        _ = try server.addPush(simulator)
        let (output, status) = try server.runPeer("dropped.py")
        #expect(
            status == 0 && output.contains("told what was dropped: ok"),
            "\(output)\n\(server.log.suffix(3000))")
    }
}
