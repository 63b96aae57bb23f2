import Crypto
import Feed
import Foundation
import Model
import SQLiteStore
import Testing

@testable import Scenario

/// Database, logs and metrics of a real server are searched for every secret that passed through
/// it.
@Suite struct SecretTests {
    /// What stands where in clear, and why. Everything else must be found nowhere.
    struct Exception {
        let kind: String
        let place: Place
        let reason: String
    }

    enum Place: String, CaseIterable { case database, log, metrics }

    static let exceptions = [
        Exception(
            kind: "push credential", place: .database,
            reason: "the server signs provider tokens with it; the file is the owner's alone"),
        Exception(
            kind: "provider token", place: .database,
            reason: "every start sends the same one; it is good for an hour at most"),
        Exception(
            kind: "webhook secret", place: .database,
            reason: "deliveries are signed with it; the file is the owner's alone"),
        Exception(
            kind: "push token", place: .database,
            reason: "the server pushes to it; without the push credential it is of no use"),
        Exception(
            kind: "message text", place: .database,
            reason: "the feed is what the server keeps; the file is the owner's alone"),
    ]

    struct Secret: Decodable {
        let kind: String
        let name: String
        let hex: String

        var bytes: [UInt8] {
            let digits = Array(hex.utf8).map { Int($0) }.map { $0 > 57 ? $0 - 87 : $0 - 48 }
            return stride(from: 0, to: digits.count - 1, by: 2).map {
                UInt8(truncatingIfNeeded: digits[$0] << 4 | digits[$0 + 1])
            }
        }
    }

    @Test(
        "no token, key or text in clear where it does not belong; files are the owner's alone",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func search() throws {
        let server = try RealServer(settings: [
            "log.level=debug", "webhooks.allow_networks=127.0.0.1/32",
        ])
        let simulator = try SimulatorProcess(
            executable: URL(fileURLWithPath: Program.path), folder: server.folder)
        try simulator.start()
        defer {
            simulator.kill()
            server.stop()
        }
        let credential = PrivateKey.generate(.p256)
        let token = try server.addPush(simulator, credential)
        let (output, status) = try server.runPeer(
            "secrets.py", [token, "--folder", server.folder.path])
        try #require(
            status == 0 && output.contains("passed through: ok"),
            "\(output)\n\(server.log.suffix(1500))")
        let list = try Data(contentsOf: URL(fileURLWithPath: server.path("secrets.json")))
        var secrets = try JSONDecoder().decode([Secret].self, from: list)
        secrets += Self.parts(of: credential)
        let kinds = Set(secrets.map(\.kind))
        #expect(
            kinds == [
                "identity token", "session token", "API key", "push token", "push credential",
                "message text", "webhook secret",
            ])

        let metrics = try server.metrics()
        var database: [[UInt8]] = []
        for name in ["rouse.db", "rouse.db-wal", "rouse.db-shm", "rouse.db.lock"] {
            database.append(try file(server.path(name)))
            let attributes = try FileManager.default.attributesOfItem(atPath: server.path(name))
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
        }
        server.stop()
        let kept = try Self.providerTokens(in: server.path("rouse.db"))
        #expect(kept.count == 2, "no provider token, or more than one, is kept")
        secrets += kept
        // Once more as it is left behind.
        database.append(try file(server.path("rouse.db")))
        let log = try file(server.path("server.log"))
        let text = String(decoding: log, as: UTF8.self)
        for event in [
            "session.opened", "session.login_refused", "api.answered", "push.refused",
            "webhook.delivered", "webhook.failed",
        ] {
            #expect(text.contains("event=\(event)"), "the story did not come to \(event)")
        }
        let places: [(Place, [[UInt8]])] = [
            (.database, database), (.log, [log]), (.metrics, [metrics]),
        ]
        for (place, files) in places {
            var seen: Set<String> = []
            for secret in secrets where Self.isFound(secret.bytes, in: files) {
                seen.insert(secret.kind)
                let isKnown = Self.exceptions.contains {
                    $0.kind == secret.kind && $0.place == place
                }
                #expect(isKnown, "\(secret.kind) (\(secret.name)) stands in the \(place)")
            }
            // An exception nothing is found of is out of date, or the search is blind.
            for exception in Self.exceptions where exception.place == place {
                #expect(seen.contains(exception.kind), "\(exception.kind): \(exception.reason)")
            }
        }
        // Provider tokens are made inside the server: nothing like a JWT may be there at all.
        for bytes in [log, metrics] {
            #expect(!Self.holds(bytes, Array("eyJ".utf8)), "something like a JWT")
        }
    }

    @Test("the search finds a secret in each of its forms")
    func forms() {
        let secret: [UInt8] = (0..<32).map { $0 &* 37 &+ 250 }
        for form in Self.forms(of: secret) {
            #expect(Self.isFound(secret, in: [Array("before ".utf8) + form + Array(" after".utf8)]))
        }
        #expect(!Self.isFound(secret, in: [Array("before after".utf8)]))
    }

    // MARK: - The search

    /// Raw, hex in both cases, base64, base64url with and without padding.
    static func forms(of secret: [UInt8]) -> [[UInt8]] {
        let hex = secret.map { byte in
            String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
        }.joined()
        let base64 = Data(secret).base64EncodedString()
        let url = base64.replacingOccurrences(of: "+", with: "-")
            .replacingOccurrences(of: "/", with: "_")
        let texts = [hex, hex.uppercased(), base64, url].flatMap { text in
            [text, text.replacingOccurrences(of: "=", with: "")]
        }
        return [secret] + texts.map { Array($0.utf8) }
    }

    static func isFound(_ secret: [UInt8], in files: [[UInt8]]) -> Bool {
        forms(of: secret).contains { form in files.contains { holds($0, form) } }
    }

    static func holds(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        !part.isEmpty && Data(bytes).range(of: Data(part)) != nil
    }

    // MARK: - The story's parts

    /// Signed inside the server: each part but the header, which says nothing secret.
    private static func providerTokens(in store: String) throws -> [Secret] {
        var kept: [ProviderTokenRecord] = []
        try SQLiteStore.read(path: store, tables: Schema.tables) { snapshot throws(StoreError) in
            kept = try snapshot.records(ProviderTokenRecord.self, Scan(limit: 100))
        }
        return kept.flatMap { $0.token.split(separator: ".").dropFirst() }.map {
            Secret(kind: "provider token", name: "a part", hex: hex($0.utf8))
        }
    }

    private static func hex(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }

    /// The credential as it could stand anywhere: each line of its PEM.
    private static func parts(of credential: PrivateKey) -> [Secret] {
        credential.pem.split(separator: "\n").filter { !$0.hasPrefix("-") }.enumerated().map {
            Secret(
                kind: "push credential", name: "line \($0.offset + 1) of the PEM",
                hex: hex($0.element.utf8))
        }
    }

    private func file(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }
}
