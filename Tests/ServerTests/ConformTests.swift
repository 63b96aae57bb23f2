import Crypto
import Foundation
import Glibc
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

    @Test(
        "servers with a defect are caught by the cases that must, and by no others",
        arguments: [
            "doubled-entry", "peek-moves-the-cursor", "sync-request-twice", "expired-accepted",
            "too-large-as-malformed", "unread-off-unasked", "snapshot-complete-low",
        ])
    func mutants(_ name: String) throws {
        let run = try Program.run(["conform", "--mutants", "--only", name])
        #expect(run.status == 0, "\(run.output)\(run.errors)")
        #expect(run.output.hasSuffix("1 mutants, 1 caught as they must be, 0 not\n"))
    }

    @Test("an unknown mutant is a mistake, not a pass")
    func unknownMutant() throws {
        let run = try Program.run(["conform", "--mutants", "--only", "no such mutant"])
        #expect(run.status == 1)
    }

    @Test("reports are written for machines", arguments: ["tap", "junit"])
    func formats(_ format: String) throws {
        let run = try Program.run([
            "conform", "--self", "--only", "framing.empty-body", "--format", format,
        ])
        #expect(run.status == 0)
        switch format {
        case "tap":
            let lines = run.output.split(separator: "\n")
            #expect(lines.prefix(2) == ["TAP version 14", "1..3"])
            #expect(lines.count { $0.hasPrefix("ok ") } == 3)
        default:
            #expect(run.output.hasPrefix("<?xml"))
            #expect(run.output.split(separator: "<testcase ").count - 1 == 3)
            #expect(run.output.contains("tests=\"3\" failures=\"0\" errors=\"0\""))
        }
    }
}

/// Two halves written from Protocol/ alone: the harness and a server in Python.
@Suite struct OtherServerTests {
    @Test(
        "a server in Python passes, or skips what it says it lacks",
        .enabled(if: RealServer.hasPeers))
    func pythonServer() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-other-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let certificates = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        for (name, text) in [
            ("ca.pem", certificates.authorityPEM),
            ("server.pem", certificates.server.certificatePEM),
            ("server.key", certificates.server.privateKeyPEM),
            ("issuer.pem", PrivateKey.generate(.p256).pem),
        ] {
            try Data(text.utf8).write(to: folder.appendingPathComponent(name))
        }
        let server = Process()
        server.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        server.arguments = [
            ChatLog.root.appendingPathComponent("Tests/peers/server.py").path, "--folder",
            folder.path,
        ]
        let (input, output) = (Pipe(), Pipe())
        server.standardInput = input
        server.standardOutput = output
        try server.run()
        defer {
            // A child of this process may have its signals blocked: only this one comes through.
            kill(server.processIdentifier, SIGKILL)
            server.waitUntilExit()
        }
        let said = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        let port = said.trimmingCharacters(in: .whitespacesAndNewlines)
        let run = try Program.run([
            "conform", "--port", port, "--ca", folder.appendingPathComponent("ca.pem").path,
            "--credentials", folder.appendingPathComponent("credentials.json").path, "--strict",
            "--format", "json",
        ])
        let report = try JSONDecoder().decode(ConformTests.Report.self, from: Data(run.output.utf8))
        for one in report.cases where one.verdict != "pass" && one.verdict != "skip" {
            let text = one.transcript.joined(separator: "\n")
            Issue.record("\(one.verdict): \(one.name): \(one.reason ?? "")\n\(text)")
        }
        #expect(report.cases.allSatisfy { $0.verdict != "skip" || $0.reason != nil })
        #expect(report.counts["pass", default: 0] > 240)
        #expect(run.status == 0)
    }
}
