import Foundation
import Testing

@testable import Scenario

/// Sources/RouseClient/README.md: its Swift is typechecked by Deploy/check-apple, its Python is run
/// here.
@Suite struct ClientGuideTests {
    private static let hasJWT = FileManager.default.fileExists(
        atPath: "/usr/lib/python3/dist-packages/jwt")

    private struct Answer: Decodable {
        struct Status: Decodable {
            struct App: Decodable { let isOnline: Bool }
            let app: App?
        }

        let status: Status?
    }

    @Test(
        "the endpoint of ten lines vouches for a user, whom the server then lets in",
        .enabled(if: hasJWT, "python3-jwt is not installed"))
    func identity() throws {
        let guide = ChatLog.root.appendingPathComponent("Sources/RouseClient/README.md")
        let blocks = GuideTests.blocks(in: try String(contentsOf: guide, encoding: .utf8))
        let python = blocks.filter { $0.language == "python" }
        #expect(python.count == 1)
        let program = try #require(python.first?.text)
        let lines = program.split(separator: "\n")
        #expect(lines.count - lines.count { $0.contains("import") } <= 10)
        let server = try RealServer()
        let simulator = try SimulatorProcess(
            executable: URL(fileURLWithPath: Program.path), folder: server.folder)
        try simulator.start()
        let port = try #require(try GuideTests.freePorts(1).first)
        let endpoint = Process()
        endpoint.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        endpoint.arguments = [
            "-c",
            program.replacingOccurrences(of: #""chess""#, with: "\"\(RealServer.app)\"")
                .replacingOccurrences(of: "keys/issuer.pem", with: server.path("issuer.pem"))
                .replacingOccurrences(of: #""main""#, with: "\"\(RealServer.keyID)\"")
                .replacingOccurrences(of: "8700", with: "\(port)"),
        ]
        let log = Pipe()
        endpoint.standardError = log
        try endpoint.run()
        defer {
            endpoint.terminate()
            simulator.kill()
            server.stop()
        }
        try simulator.tell(["cmd": "app_add", "topic": RealServer.topic, "team": "TEAM123456"])
        let device =
            #"{"cmd":"device_create","device":"anna","topic":"\#(RealServer.topic)","user":"anna","#
            + #""app":"\#(RealServer.app)","host":"127.0.0.1","serverName":"localhost","#
            + #""port":\#(server.devicePort),"trust":"\#(server.path("ca.pem"))","#
            + #""identityURL":"http://127.0.0.1:\#(port)/identity"}"#
        let made = try Program.run([
            "apns-simulator", "tell", "--control", simulator.control, device,
        ])
        #expect(made.status == 0, "\(made.output)\(made.errors)")
        try simulator.tell(["cmd": "device_open", "device": "anna"])
        var isOnline = false
        for _ in 0..<400 where !isOnline {
            let text = try simulator.tell(["cmd": "device_status", "device": "anna"])
            let answer = try JSONDecoder().decode(Answer.self, from: Data(text.utf8))
            isOnline = answer.status?.app?.isOnline ?? false
            if !isOnline { Thread.sleep(forTimeInterval: 0.05) }
        }
        #expect(isOnline, "\(server.log)")
    }
}
