import Foundation
import Testing

@testable import Scenario

/// `rouse demo` as a person runs it: the real program with its own server and simulator.
@Suite(.serialized) struct DemoTests {
    struct Run {
        let status: Int32
        let output: String
        let complaint: String
    }

    /// After so long it is ended; a run takes some ten seconds.
    static let deadlineSeconds = 300.0

    private func demo(_ arguments: String...) throws -> Run {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: CommandLine.arguments[0])
            .deletingLastPathComponent().appendingPathComponent("rouse")
        process.arguments = ["demo", "--once"] + arguments
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("demo-test-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // Files and no pipes: nobody has to read while it runs.
        let output = folder.appendingPathComponent("output")
        let complaint = folder.appendingPathComponent("complaint")
        try Data().write(to: output)
        try Data().write(to: complaint)
        process.standardOutput = try FileHandle(forWritingTo: output)
        process.standardError = try FileHandle(forWritingTo: complaint)
        try process.run()
        let deadline = Date(timeIntervalSinceNow: Self.deadlineSeconds)
        while process.isRunning {
            // SIGTERM: it takes its children along.
            if Date() > deadline { process.terminate() }
            Thread.sleep(forTimeInterval: 0.1)
        }
        return Run(
            status: process.terminationStatus,
            output: try String(contentsOf: output, encoding: .utf8),
            complaint: try String(contentsOf: complaint, encoding: .utf8))
    }

    @Test("the whole story happens over real sockets")
    func story() throws {
        let run = try demo("--json")
        #expect(run.status == 0, "\(run.output)\n\(run.complaint)")
        let lines = run.output.split(separator: "\n").map { Data($0.utf8) }
        let steps = try lines.dropLast().map { try JSONDecoder().decode(DemoStep.self, from: $0) }
        #expect(
            steps.map(\.step) == [
                "set-up", "online", "sleeping", "three", "read-elsewhere", "tap", "force-quit",
                "alerted-at-once", "badge", "alerted-again", "recovery",
            ])
        #expect(steps.allSatisfy { $0.ok && !$0.facts.isEmpty })
        let end = try JSONDecoder().decode(DemoReport.self, from: try #require(lines.last))
        #expect(end.ok && end.steps == 11 && end.failedStep == nil)
    }

    @Test("with a revoked key it fails and names the step that did not happen")
    func revokedKey() throws {
        let run = try demo("--revoke-key", "--patience", "5")
        #expect(run.status == 1)
        #expect(run.complaint.contains("the step `sleeping` did not happen"))
        #expect(run.output.contains("2 of 11 steps happened; `sleeping` did not"))
        // Not on a terminal: no colour.
        #expect(!run.output.contains("\u{1B}"))
    }

    @Test("times are seconds with milliseconds, and colour is a choice")
    func text() {
        let moment = DemoMoment.saw(DemoFact(atMs: 61_007, who: "server", what: "is up"))
        #expect(moment.text(colour: false) == "    61.007  server        is up")
        #expect(moment.text(colour: true).contains("\u{1B}[36mserver\u{1B}[0m"))
        #expect(moment.json == nil)
    }
}
