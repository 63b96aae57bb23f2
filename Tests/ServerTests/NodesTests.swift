import Foundation
import PostgresPeer
import Testing

/// Several servers on one store in PostgreSQL.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct NodesTests {
    private func settings(_ schema: String) throws -> [String] {
        [
            "store.postgres=\(try PostgresPeer.shared().address)", "store.schema=\(schema)",
        ]
    }

    @Test(
        "a device hears at once of what happens through another node",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func hears() throws {
        let settings = try settings("nodes_hear")
        let first = try RealServer(settings: settings)
        let second = try RealServer(settings: settings, besides: first)
        let (output, status) = try first.runPeer(
            "two_nodes.py",
            [
                "--other-port", "\(second.devicePort)", "--other-api", "\(second.apiPort)",
                "--other-ca", second.path("ca.pem"),
            ])
        #expect(status == 0 && output.contains("two nodes: ok"), "\(output)\n\(second.log)")
    }

    @Test("a second server on the store leaves the first one's sessions, and says where it is")
    func starts() throws {
        let settings = try settings("nodes_start")
        let first = try RealServer(settings: settings)
        let second = try RealServer(settings: settings, besides: first)
        // The first node's app is the second's, too.
        #expect(try second.rouse(["app", "list"]).contains(RealServer.app))
        second.stop()
        #expect(second.log.contains("PostgreSQL, schema nodes_start"))
    }

    @Test("without a server at the address the start says so in words")
    func nobody() throws {
        let outcome = try Program.run([
            "serve", "--set", "store.postgres=host=127.0.0.1 port=1 user=rouse", "--set",
            "tls.certificate_file=/dev/null", "--set", "tls.key_file=/dev/null",
        ])
        #expect(outcome.status != 0)
        #expect(!outcome.errors.contains("unavailable("), "\(outcome.errors)")
    }
}
