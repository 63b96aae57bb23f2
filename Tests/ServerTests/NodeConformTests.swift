import Crypto
import Foundation
import PostgresPeer
import Testing

/// Several nodes behind a balancer keep the protocol as one server does.
@Suite(
    .enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"),
    .enabled(if: Balancer.isInstalled, "haproxy is not installed"))
struct NodeConformTests {
    @Test("rouse conform through a balancer before three nodes: every case passes, none is skipped")
    func conforms() throws {
        let settings = [
            "store.postgres=\(try PostgresPeer.shared().address)", "store.schema=conform_nodes",
            "listen.proxy_networks=\(Balancer.source)", "timers.drain=6s",
        ]
        let first = try RealServer(settings: settings)
        let certificate = [
            "tls.certificate_file=\(first.path("server.pem"))",
            "tls.key_file=\(first.path("server.key"))",
        ]
        let others = try (0..<2).map { _ in
            try RealServer(settings: settings + certificate, besides: first)
        }
        let nodes = [first] + others
        try first.addKey(PrivateKey.generate(.p256).pem)
        let balancer = try Balancer(
            nodes.map { (UInt16($0.devicePort), UInt16($0.apiPort)) }, folder: first.folder,
            connections: 2_000)
        defer { balancer.stop() }
        let processes = nodes.map { "\($0.identifier)" }.joined(separator: " ")
        let credentials: [String: Any] = [
            "app": RealServer.app,
            "tokens": ["key_file": "issuer.pem", "kid": RealServer.keyID],
            // Devices are at all three: what the backend does comes to them by this one.
            "publish": ["api": "127.0.0.1:\(nodes[1].apiPort)", "key": first.apiKey],
            "push": ["environment": "production", "topic": RealServer.topic],
            "drain": ["/bin/sh", "-c", "kill -TERM \(processes)"], "server_name": "localhost",
        ]
        try JSONSerialization.data(withJSONObject: credentials)
            .write(to: URL(fileURLWithPath: first.path("credentials.json")))
        let run = try Program.run([
            "conform", "--host", balancer.address, "--port", "\(Balancer.port)", "--ca",
            first.path("ca.pem"), "--credentials", first.path("credentials.json"), "--strict",
            "--format", "json",
        ])
        let report = try JSONDecoder().decode(ConformTests.Report.self, from: Data(run.output.utf8))
        for one in report.cases where one.verdict != "pass" {
            let text = one.transcript.joined(separator: "\n").prefix(4_000)
            Issue.record("\(one.verdict): \(one.name): \(one.reason ?? "")\n\(text)")
        }
        #expect(run.status == 0)
        // The same cases, each as on one server.
        let alone = try Program.run(["conform", "--self", "--strict", "--format", "json"])
        let one = try JSONDecoder().decode(ConformTests.Report.self, from: Data(alone.output.utf8))
        func verdicts(_ report: ConformTests.Report) -> [String] {
            report.cases.map { "\($0.name): \($0.verdict)" }.sorted()
        }
        #expect(one.cases.count > 100)
        #expect(verdicts(report) == verdicts(one))
    }
}
