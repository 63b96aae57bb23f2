import Foundation
import Testing

/// A machine whose name servers say nothing.
@Suite(.serialized) struct NameServerTests {
    @Test(
        "a webhook whose name is not resolved holds up no other app's, nor the server's end",
        .enabled(if: Namespaces.work, "this user may not make namespaces here"))
    func silent() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-names-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (output, status) = try Namespaces.run([
            "/usr/bin/python3",
            ChatLog.root.appendingPathComponent("Tests/peers/silent_names.py").path,
            "--rouse", Program.path, "--folder", folder.path,
        ])
        let log = try? String(
            contentsOf: folder.appendingPathComponent("log"), encoding: .utf8)
        #expect(
            status == 0 && output.contains("silent names: ok"),
            "\(output)\n\(log?.suffix(2000) ?? "")")
    }
}

/// A network and mounts of one's own, for a program and those it starts.
private enum Namespaces {
    static let work = (try? run(["true"]))?.status == 0

    static func run(_ words: [String]) throws -> (output: String, status: Int32) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments =
            ["unshare", "--map-root-user", "--mount", "--net", "--"] + words
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (String(decoding: output, as: UTF8.self), process.terminationStatus)
    }
}
