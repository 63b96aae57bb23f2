import Foundation
import Testing

@testable import Scenario

/// `rouse chat` as two people use it, each at a terminal, against a real server.
@Suite(.enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
struct TerminalChatTests {
    private static let hasTerminal = FileManager.default.fileExists(
        atPath: "/usr/lib/python3/dist-packages/pyte")

    @Test(
        "two people chat, and what becomes of their phones' apps stands on the screens",
        .enabled(if: hasTerminal, "python3-pyte is not installed"))
    func chats() throws {
        let server = try RealServer()
        let (output, status) = try server.runPeer(
            "chat.py", ["--rouse", Program.path])
        #expect(status == 0 && output.contains("chat: ok"), "\(output)\n\(server.log)")
    }

    @Test(
        "with an APNs simulator the server's pushes wake the app and stand on the phone",
        .enabled(if: hasTerminal, "python3-pyte is not installed"))
    func pushes() throws {
        let server = try RealServer()
        let simulator = try SimulatorProcess(
            executable: URL(fileURLWithPath: Program.path), folder: server.folder)
        try simulator.start()
        defer {
            simulator.kill()
            server.stop()
        }
        _ = try server.addPush(simulator)
        let (output, status) = try server.runPeer(
            "chat.py",
            [
                "--rouse", Program.path, "--apns", simulator.control, "--topic",
                RealServer.topic,
            ])
        #expect(status == 0 && output.contains("chat: ok"), "\(output)\n\(server.log)")
    }

    @Test("without a terminal it says so")
    func noTerminal() throws {
        let server = try RealServer()
        let outcome = try Program.run([
            "chat", "--user", "anna", "--app", RealServer.app, "--key", server.path("issuer.pem"),
            "--folder", server.path("anna"),
        ])
        #expect(outcome.status == 69 && outcome.errors.contains("needs a terminal"))
    }
}
