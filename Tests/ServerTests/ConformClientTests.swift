import Foundation
import Testing

/// Clients keep the protocol: ours, and one in Python.
@Suite(.serialized) struct ConformClientTests {
    /// Judges a run's report: everything passes, or is skipped where that is said.
    private func judge(_ words: [String], skipped: Set<String>) throws {
        let run = try Program.run(["conform", "client", "--strict", "--format", "json"] + words)
        let report = try JSONDecoder().decode(ConformTests.Report.self, from: Data(run.output.utf8))
        for one in report.cases where one.verdict != "pass" {
            if one.verdict == "skip", skipped.contains(one.name) { continue }
            let text = one.transcript.joined(separator: "\n")
            Issue.record("\(one.verdict): \(one.name): \(one.reason ?? "")\n\(text)")
        }
        #expect(report.counts["pass", default: 0] > 60)
        #expect(run.status == 0, "\(run.errors)")
    }

    @Test("our client passes every case")
    func own() throws { try judge(["--self"], skipped: []) }

    @Test(
        "a client in Python passes, but for what it does not have",
        .enabled(if: RealServer.hasPeers))
    func python() throws {
        let program = ChatLog.root.appendingPathComponent("Tests/peers/driver.py").path
        let words = ["host", "port", "name", "ca", "app", "user", "key", "kid", "dir"]
            .map { "--\($0) {\($0)}" }.joined(separator: " ")
        try judge(
            ["--client", "/usr/bin/python3 \(program) \(words)"],
            skipped: ["sync.client-peek", "history.client-snapshot", "history.client-digest"])
    }

    @Test(
        "clients with a defect are caught by the cases that must, and by no others",
        .enabled(if: RealServer.hasPeers))
    func mutants() throws {
        let names = ["gap-applied", "outbox-in-memory", "two-syncs"]
        let run = try Program.run(
            ["conform", "client", "--mutants"] + names.flatMap { ["--only", $0] }, seconds: 900)
        #expect(run.status == 0, "\(run.output)\(run.errors)")
        #expect(run.output.hasSuffix("3 mutants, 3 caught as they must be, 0 not\n"))
    }

    @Test("a driver that does not run makes no case pass")
    func nobody() throws {
        let run = try Program.run([
            "conform", "client", "--client", "false", "--only", "framing", "--format", "json",
        ])
        let report = try JSONDecoder().decode(ConformTests.Report.self, from: Data(run.output.utf8))
        #expect(report.counts["pass"] == 0)
        #expect(report.counts["inconclusive", default: 0] > 5)
        #expect(run.status == 1)
    }
}
