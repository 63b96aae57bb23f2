import Foundation
import Testing

/// The server keeps its own protocol.
@Suite struct ConformTests {
    struct Report: Decodable {
        struct Case: Decodable {
            let name: String
            let verdict: String
            let reason: String?
            let transcript: [String]
        }
        let conforms: Bool
        let counts: [String: Int]
        let cases: [Case]
    }

    @Test("rouse conform --self: every case passes, none is skipped")
    func conforms() throws {
        let run = try Program.run(["conform", "--self", "--strict", "--format", "json"])
        let report = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8))
        for one in report.cases where one.verdict != "pass" {
            let text = one.transcript.joined(separator: "\n")
            Issue.record("\(one.verdict): \(one.name): \(one.reason ?? "")\n\(text)")
        }
        #expect(report.conforms)
        #expect(report.counts["pass", default: 0] > 100)
        #expect(run.status == 0)
    }

    @Test("a server that is not there makes no case pass")
    func nobodyThere() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-conform-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("shop.json")
        try #"{"app": "shop", "tokens": {"command": ["false"]}}"#
            .write(to: file, atomically: true, encoding: .utf8)
        // Port 1 is nobody's.
        let run = try Program.run([
            "conform", "--port", "1", "--credentials", file.path, "--only", "framing",
            "--format", "json",
        ])
        let report = try JSONDecoder().decode(Report.self, from: Data(run.output.utf8))
        #expect(report.counts["pass"] == 0)
        #expect(report.counts["inconclusive", default: 0] > 10)
        #expect(!report.conforms)
        #expect(run.status == 1)
    }
}
