import Foundation
import Testing

/// The client of Deploy/sdk/python, as the wheel that is published.
@Suite struct PythonClientTests {
    @Test(
        "the kept client in Python repeats what failed, and each message is there once",
        .enabled(
            if: BackendClientTests.has(BackendClientTests.interpreter),
            "Deploy/peers could not install flit-core from PyPI"))
    func kept() throws {
        let server = try RealServer()
        defer { server.stop() }
        let wheels = server.path("wheels")
        let build = Process()
        build.executableURL = ChatLog.root.appendingPathComponent("Deploy/sdk/python/wheel")
        build.arguments = [wheels]
        build.standardOutput = FileHandle.nullDevice
        try build.run()
        build.waitUntilExit()
        try #require(build.terminationStatus == 0, "the wheel was not built")
        let wheel = try #require(
            try FileManager.default.contentsOfDirectory(atPath: wheels).first)
        // A wheel of Python alone runs where it lies.
        let ran = try BackendClientTests.run(
            BackendClientTests.peer("sdk.py"),
            ["--api", "\(server.apiPort)", "--api-key", server.apiKey],
            ["PYTHONPATH": "\(wheels)/\(wheel)"])
        #expect(ran.status == 0 && ran.output.hasSuffix("all is well\n"), "\(ran.output)")
    }

    static let mypy = "/usr/bin/mypy"

    private func check(_ text: String) throws -> String {
        let place = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-mypy-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: place) }
        let program = place.appendingPathComponent("program.py")
        try text.write(to: program, atomically: true, encoding: .utf8)
        let sources = ChatLog.root.appendingPathComponent("Deploy/sdk/python")
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Self.mypy)
        process.arguments = [
            "--strict", "--no-error-summary", "--cache-dir", place.path + "/cache",
            sources.appendingPathComponent("rouse_backend").path, program.path,
        ]
        process.currentDirectoryURL = place
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: output, as: UTF8.self)
    }

    @Test(
        "a misspelt field, a wrong type and a missing field are found before anything is sent",
        .enabled(
            if: FileManager.default.isExecutableFile(atPath: mypy),
            "mypy is not installed: Deploy/install test"))
    func typed() throws {
        let begin = """
            from rouse_backend import Client
            client = Client("http://127.0.0.1", "rk")
            room = client.create_conversation({"participants": ["anna"]})

            """
        let right =
            begin + """
                client.publish_message(
                    room["id"], {"parts": [{"mime_type": "text/plain", "text": "hi"}]})
                unread: int = client.list_user_conversations("anna")["conversations"][0]["unread"]

                """
        #expect(try check(right) == "")
        let wrong = try check(
            begin + """
                client.publish_message(room["id"], {"parts": [{"text": "hi"}]})
                client.publish_message(room["id"], {"parts": [{"mime_type": "a/b", "txt": "hi"}]})
                client.publish_message(room["id"], {"parts": [{"mime_type": "a/b", "text": 1}]})

                """)
        for word in [
            #"program.py:4: error: Missing key "mime_type""#,
            #"program.py:5: error: Extra key "txt""#,
            #"program.py:6: error: Incompatible types"#,
        ] {
            #expect(wrong.contains(word), "\(wrong)")
        }
    }
}
