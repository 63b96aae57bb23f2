import Foundation
import Testing

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
