import Crypto
import Foundation
import PostgresPeer
import Testing

/// The way to the database as Deploy/README.md asks for it: TLS with a checked certificate, and the
/// password in a file.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct DatabaseTLSTests {
    @Test("all connections of a node are over TLS, and a certificate of somebody else is refused")
    func encrypted() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-pg-tls-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // The database's own user has to get at its folder.
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755], ofItemAtPath: folder.path)
        defer { try? FileManager.default.removeItem(at: folder) }
        func write(_ text: String, _ name: String, mode: Int = 0o600) throws -> String {
            let file = folder.appendingPathComponent(name)
            try Data(text.utf8).write(to: file)
            try FileManager.default.setAttributes(
                [.posixPermissions: mode], ofItemAtPath: file.path)
            return file.path
        }
        let certificates = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        let others = try DevelopmentCertificates(names: ["localhost", "127.0.0.1"])
        let authority = try write(certificates.authorityPEM, "ca.pem")
        let otherAuthority = try write(others.authorityPEM, "other-ca.pem")
        let port = try NodeFaultStage.freePort()
        let machine = PostgresMachine(
            folder: folder.appendingPathComponent("database").path, port: port)
        try machine.create()
        try machine.secure(
            "secured", certificate: write(certificates.server.certificatePEM, "database.pem"),
            key: write(certificates.server.privateKeyPEM, "database.key"))
        try machine.start()
        defer { try? machine.stop() }
        _ = try machine.query("CREATE ROLE secured LOGIN PASSWORD 'open sesame'")
        _ = try machine.query("GRANT CREATE ON DATABASE postgres TO secured")
        let passwords = try write("127.0.0.1:\(port):*:secured:open sesame\n", "pgpass")

        func address(_ mode: String, _ authority: String) -> String {
            "store.postgres=host=127.0.0.1 port=\(port) user=secured dbname=postgres "
                + "sslmode=\(mode) sslrootcert=\(authority) passfile=\(passwords)"
        }
        func refusal(_ address: String) throws -> String {
            let outcome = try Program.run(["migrate", "--set", address])
            #expect(outcome.status != 0)
            #expect(!outcome.errors.contains("unavailable("))
            #expect(!outcome.errors.contains("open sesame"))
            return outcome.errors
        }
        let untrusted = try refusal(address("verify-full", otherAuthority))
        #expect(untrusted.contains("certificate verify failed"), "\(untrusted)")
        let plain = try refusal(address("disable", authority))
        #expect(plain.contains("pg_hba.conf rejects"), "\(plain)")

        let server = try RealServer(settings: [address("verify-full", authority)])
        defer { server.stop() }
        #expect(try server.rouse(["app", "list"]).contains(RealServer.app))
        let connections = """
            SELECT count(*) FILTER (WHERE ssl) || ' ' || count(*) FILTER (WHERE NOT ssl) \
            FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'secured'
            """
        let counts = try machine.query(connections).split(separator: " ").compactMap { Int($0) }
        // Two writers and a reader, and the hints as soon as they are there.
        #expect(counts.count == 2 && counts[0] >= 3 && counts[1] == 0, "\(counts)")
        #expect(!server.log.contains("open sesame"))
    }
}
