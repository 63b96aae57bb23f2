import Foundation
import Testing

/// Failpoints are for tests: a release build has none.
@Suite struct BuildTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// Arms a point, comes by it, and tells that it lives.
    private static let program = """
        @main enum Probe {
            static func main() {
                do {
                    try Failpoint.arm("storeLocked")
                } catch {
                    print(error)
                }
                Failpoint.hit(.storeLocked)
                print("alive")
            }
        }
        """

    private struct Ran {
        let output: String
        let wasKilled: Bool
    }

    /// The target's sources, compiled with `flags`, and run.
    private func run(_ flags: [String]) throws -> Ran {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-probe-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let probe = folder.appendingPathComponent("Probe.swift")
        try Data(Self.program.utf8).write(to: probe)
        let sources = Self.root.appendingPathComponent("Sources/Adapters/Failpoints")
        let files = try FileManager.default.contentsOfDirectory(atPath: sources.path)
            .map { sources.appendingPathComponent($0).path }
        let binary = folder.appendingPathComponent("probe").path
        let compiled = try execute(
            "/usr/bin/env",
            ["swiftc", "-parse-as-library", "-o", binary, probe.path] + files + flags)
        try #require(!compiled.wasKilled, "\(compiled.output)")
        return try execute(binary, [])
    }

    private func execute(_ path: String, _ arguments: [String]) throws -> Ran {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let told = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Ran(
            output: String(decoding: told, as: UTF8.self),
            wasKilled: process.terminationReason == .uncaughtSignal
                && process.terminationStatus == SIGKILL)
    }

    @Test("compiled as for release nothing can be armed and nothing dies; with the flag it does")
    func onlyWithTheFlag() throws {
        let without = try run(["-O"])
        #expect(without.output == "this build has no failpoints\nalive\n" && !without.wasKilled)
        let with = try run(["-D", "FAILPOINTS"])
        #expect(with.output == "failpoint storeLocked: killed\n" && with.wasKilled)
    }

    @Test("the flag is set for debug builds only, and used in one target")
    func flagIsForDebug() throws {
        let package = try String(
            contentsOf: Self.root.appendingPathComponent("Package.swift"), encoding: .utf8)
        let flagged = package.split(separator: "\n").filter { $0.contains("FAILPOINTS") }
        #expect(flagged.count == 1)
        let condition = #".define("FAILPOINTS", .when(platforms: [.linux], configuration: .debug))"#
        #expect(flagged.allSatisfy { $0.contains(condition) })
    }
}
