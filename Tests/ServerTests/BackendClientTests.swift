import Foundation
import Testing

/// Clients of the backend API that are made from its description, against a real server.
/// Deploy/peers makes the environment they run in.
@Suite(.serialized) struct BackendClientTests {
    static let interpreter = ChatLog.root.appendingPathComponent(".build/peers/bin/python").path
    static let hasGenerators =
        has(interpreter) && has("/usr/bin/java")
        && !folders("openapi_generator_cli").isEmpty && !folders("openapi_python_client").isEmpty

    static func has(_ path: String) -> Bool { FileManager.default.isExecutableFile(atPath: path) }

    private static func folders(_ package: String) -> [URL] {
        let place = ChatLog.root.appendingPathComponent(".build/peers/lib")
        let versions = try? FileManager.default.contentsOfDirectory(
            at: place, includingPropertiesForKeys: nil)
        return (versions ?? []).map { $0.appendingPathComponent("site-packages/\(package)") }
            .filter { FileManager.default.fileExists(atPath: $0.path) }
    }

    private static func isInstalled(_ programs: String...) -> Bool {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
        return programs.allSatisfy { program in
            path.split(separator: ":").contains { has("\($0)/\(program)") }
        }
    }

    /// All languages at once: most of the time is the start of Java.
    private static let generated = Result { () throws -> URL in
        let folder = ChatLog.root.appendingPathComponent(".build/clients")
        try? FileManager.default.removeItem(at: folder)
        let languages = ["python", "pydantic", "typescript", "go", "swift", "kotlin"]
        let made = try run(peer("clients/generate.py"), [folder.path] + languages)
        guard made.status == 0 else { throw ProgramFailure("generate.py: \(made.output)") }
        return folder
    }

    static func peer(_ name: String) -> String {
        ChatLog.root.appendingPathComponent("Tests/peers/\(name)").path
    }

    /// Runs a program in the environment of Deploy/peers; its output and exit status.
    static func run(
        _ program: String, _ words: [String], _ variables: [String: String] = [:]
    ) throws -> (output: String, status: Int32) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: interpreter)
        process.arguments = [program] + words
        process.environment = ProcessInfo.processInfo.environment.merging(variables) { $1 }
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (String(decoding: output, as: UTF8.self), process.terminationStatus)
    }

    /// What a client of each language does, and what is there when it has.
    private func publish(_ language: String) throws {
        let folder = try Self.generated.get()
        let server = try RealServer()
        defer { server.stop() }
        let ran = try Self.run(
            Self.peer("clients/publish.py"),
            [folder.path, language, "http://127.0.0.1:\(server.apiPort)", server.apiKey])
        try #require(ran.status == 0, "\(ran.output)")
        var told: [String: String] = [:]
        for line in ran.output.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 1)
            told[String(words[0])] = words.count == 2 ? String(words[1]) : ""
        }
        let message = try #require(told["message"])
        #expect(told["again"] == message, "the same key has one effect")
        #expect(told["listed"] == "1 Dinner at eight?")
        #expect(told["inbox"] == "1 Dinner at eight?")
        #expect(told["refused"] == "404 4004")
        let stored = try server.shown("/v1/messages/\(message)")
        #expect(stored.contains(#""body":"Dinner at eight?""#), "\(stored)")
        #expect(stored.contains(#""sender":"anna""#) && stored.contains(#""title":"Anna""#))
    }

    static let noGenerators: Comment = "Deploy/peers could not install the generators from PyPI"

    @Test(
        "Python, by openapi-python-client: generated, and it publishes",
        .enabled(if: hasGenerators, noGenerators))
    func python() throws { try publish("python") }

    @Test(
        "Python, by openapi-generator: generated, and it publishes",
        .enabled(if: hasGenerators, noGenerators))
    func pydantic() throws { try publish("pydantic") }

    @Test(
        "TypeScript: generated, compiled, and it publishes",
        .enabled(if: hasGenerators, noGenerators),
        .enabled(if: isInstalled("node", "tsc"), "there is no nodejs or node-typescript"))
    func typescript() throws { try publish("typescript") }

    @Test(
        "Go: generated, compiled, and it publishes",
        .enabled(if: hasGenerators, noGenerators),
        .enabled(if: isInstalled("go"), "there is no golang-go"))
    func go() throws { try publish("go") }

    @Test(
        "Swift: generated, compiled, and it publishes",
        .enabled(if: hasGenerators, noGenerators),
        .enabled(if: isInstalled("swiftc"), "there is no swiftc"))
    func swift() throws { try publish("swift") }

    /// Debian has Kotlin 1.3 and not Vert.x. With Kotlin 2.3 and Vert.x 4.5 what is generated here
    /// compiles, and has been made to publish by hand.
    @Test(
        "Kotlin: generated, and nothing here compiles it",
        .enabled(if: hasGenerators, noGenerators))
    func kotlin() throws {
        let folder = try Self.generated.get().appendingPathComponent("kotlin")
        let walk = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
        let files = (walk?.allObjects ?? []).compactMap { $0 as? URL }
        for name in ["ConversationsApi.kt", "MessageInput.kt", "Push.kt"] {
            #expect(files.contains { $0.lastPathComponent == name }, "\(name)")
        }
        let part = try #require(files.first { $0.lastPathComponent == "PartInput.kt" })
        let text = try String(contentsOf: part, encoding: .utf8)
        for field in ["mimeType", "text", "content", "reference"] {
            #expect(text.contains("val \(field): "), "\(field)")
        }
    }
}

extension RealServer {
    /// What the backend API answers to a GET.
    func shown(_ path: String) throws -> String { try asked(path, []) }

    /// What it answers to a POST of this JSON.
    func posted(_ path: String, _ body: String) throws -> String {
        try asked(path, ["-H", "Content-Type: application/json", "-d", body])
    }

    private func asked(_ path: String, _ more: [String]) throws -> String {
        let curl = Process()
        curl.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        curl.arguments =
            [
                "curl", "-sS", "-H", "Authorization: Bearer \(apiKey)",
                "http://127.0.0.1:\(apiPort)\(path)",
            ] + more
        let pipe = Pipe()
        curl.standardOutput = pipe
        try curl.run()
        let text = pipe.fileHandleForReading.readDataToEndOfFile()
        curl.waitUntilExit()
        return String(decoding: text, as: UTF8.self)
    }
}
