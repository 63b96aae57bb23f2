import Crypto
import Foundation
import PostgresPeer
import Testing

/// Apps that share servers and a store see nothing of each other (P6).
@Suite(
    .enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"),
    .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
struct TenantTests {
    private static let rival = "rival"

    @Test(
        "two apps played at random through two nodes, each with what is the other's mixed in")
    func apart() throws {
        let settings = [
            "store.postgres=\(try PostgresPeer.shared().address)", "store.schema=tenants",
        ]
        let first = try RealServer(settings: settings)
        let second = try RealServer(settings: settings, besides: first)
        let issuer = PrivateKey.generate(.p256)
        try Data(issuer.pem.utf8).write(to: URL(fileURLWithPath: first.path("rival.pem")))
        try Data(issuer.publicKeyPEM.utf8)
            .write(to: URL(fileURLWithPath: first.path("rival.pub.pem")))
        try first.rouse(["app", "create", Self.rival, "--grace", "5"])
        // A key of the same name as the other app's.
        try first.rouse([
            "app", "issuer-key", "add", Self.rival, "--kid", RealServer.keyID, "--key",
            first.path("rival.pub.pem"),
        ])
        let key = try first.rouse(["app", "api-key", "create", Self.rival])
        // An app is known to every node within 2 s.
        Thread.sleep(forTimeInterval: 3)
        for seed in 1...4 {
            let (output, status) = try first.runPeer(
                "tenants.py",
                [
                    "--other-port", "\(second.devicePort)", "--other-api", "\(second.apiPort)",
                    "--other-ca", second.path("ca.pem"), "--other-app", Self.rival,
                    "--other-api-key", key, "--other-key", first.path("rival.pem"), "--seed",
                    "\(seed)",
                ])
            #expect(
                status == 0 && output.contains("tenants \(seed): ok"),
                "\(output.suffix(3_000))")
        }
        for server in [first, second] { server.stop() }
    }
}
