import Crypto
import Feed
import Foundation
import Model
import SQLiteStore
import Testing

@testable import Scenario

/// `rouse push check` and `rouse explain` as an operator runs them, beside a running server with
/// the simulator as its APNs.
@Suite struct PushCommandTests {
    private struct Check: Decodable {
        struct Finding: Decodable {
            let check: String
            let isGood: Bool
            let text: String
        }

        let app: String
        let isGood: Bool
        let findings: [Finding]
    }

    private struct Explained: Decodable {
        struct Subject: Decodable {
            struct Step: Decodable { let reason: String }
            let user: String
            let device: String?
            let steps: [Step]
        }

        let message: String
        let subjects: [Subject]
    }

    private func decode<Value: Decodable>(_ text: String) throws -> Value {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Value.self, from: Data(text.utf8))
    }

    private func simulator(of server: RealServer) throws -> SimulatorProcess {
        let simulator = try SimulatorProcess(
            executable: URL(fileURLWithPath: Program.path), folder: server.folder)
        try simulator.start()
        return simulator
    }

    @Test("push check says what is right and wrong, with a status for scripts")
    func check() throws {
        let server = try RealServer()
        let simulator = try simulator(of: server)
        defer {
            simulator.kill()
            server.stop()
        }
        _ = try server.addPush(simulator)
        func check(_ words: String...) throws -> Program.Outcome {
            try Program.run(["push", "check", "--store", server.path("rouse.db")] + words)
        }
        let good = try check()
        #expect(good.status == 0, "\(good)")
        #expect(good.output.contains("chat, production, default: good"))
        #expect(good.output.contains("ok    topic: APNs takes pushes of key ABC1234567"))
        let json: [Check] = try decode(try check("--json", "--app", "chat").output)
        #expect(json.map(\.app) == ["chat"] && json.allSatisfy(\.isGood))
        #expect(json.first?.findings.last?.check == "topic")
        // Another key file under the same key id.
        let key = server.path("other.pem")
        try Data(PrivateKey.generate(.p256).pem.utf8).write(to: URL(fileURLWithPath: key))
        try server.rouse([
            "app", "push", "set", RealServer.app, "--environment", "production", "--key", key,
            "--key-id", "ABC1234567", "--team", "TEAM123456", "--topic", RealServer.topic,
            "--host", "localhost", "--port", "\(simulator.port)", "--trust",
            server.path("ca.pem"),
        ])
        let bad = try check()
        #expect(bad.status == 1 && bad.output.contains("WRONG key: APNs does not believe"))
        let told: [Check] = try decode(try check("--json").output)
        #expect(told.count == 1 && told.allSatisfy { !$0.isGood })
        let none = try check("--app", "shop")
        #expect(none.status == 1 && none.errors.contains("no such push credential"))
        #expect(none.output.isEmpty)
    }

    private func tokens(in path: String) throws -> [String] {
        var tokens: [String] = []
        try SQLiteStore.read(path: path, tables: Schema.tables) { snapshot throws(StoreError) in
            tokens = try snapshot.records(ProviderTokenRecord.self, Scan(limit: 9)).map(\.token)
        }
        return tokens
    }

    @Test(
        "the provider token that push check sends is kept for the server that is started after it")
    func checkKeepsItsToken() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-check-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("rouse.db").path
        let now = Timestamp(milliseconds: UInt64(Date().timeIntervalSince1970 * 1_000))
        let credential = PushCredentialRecord(
            app: AppID("chat"), environment: .production, keyID: "ABC1234567",
            team: "TEAM123456", privateKeyPEM: PrivateKey.generate(.p256).pem,
            topics: "org.example.chat", host: "localhost", port: 1, changedAt: now)
        let store = try SQLiteStore(path: path, tables: Schema.tables)
        _ = try store.commit([
            .administer(.putApp(AppRecord(app: AppID("chat"), createdAt: now))),
            .administer(.putPushCredential(credential)),
        ])
        store.close()
        for _ in 0..<2 { _ = try Program.run(["push", "check", "--store", path]) }
        #expect(try tokens(in: path).count == 1)
        // A server that runs has one as soon as it knows the credential.
        let server = try RealServer()
        defer { server.stop() }
        try server.addKey(credential.privateKeyPEM)
        for _ in 0..<200 where try tokens(in: server.path("rouse.db")).isEmpty { usleep(50_000) }
        #expect(try tokens(in: server.path("rouse.db")).count == 1)
    }

    @Test("push check says what to do about a store that is not there, or is none")
    func noStore() throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("rouse-check-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = folder.appendingPathComponent("rouse.db").path
        let missing = try Program.run(["push", "check", "--store", path])
        #expect(missing.status == 69)
        #expect(
            missing.errors.contains("there is no store at \(path); give --store, or --config"),
            "\(missing.errors)")
        #expect(!FileManager.default.fileExists(atPath: path), "it was made by looking")
        try Data("no database".utf8).write(to: URL(fileURLWithPath: path))
        let broken = try Program.run(["push", "check", "--store", path])
        #expect(broken.status == 69 && broken.errors.contains("\(path) cannot be read: "))
        #expect(broken.errors.contains("is it the store of a server of this version"))
        #expect(!broken.errors.contains("unavailable("), "\(broken.errors)")
    }

    /// Until it is so, half a minute at most.
    private func wait(_ isSo: () throws -> Bool) throws {
        for _ in 0..<600 {
            if try isSo() { return }
            usleep(50_000)
        }
        Issue.record("it did not come to that")
    }

    /// The state and the reason in the line of the only credential.
    private func status(of server: RealServer) throws -> (state: String, reason: String) {
        let lines = try server.rouse(["push", "status"]).split(separator: "\n")
        let words = lines.last?.split(separator: " ", omittingEmptySubsequences: true) ?? []
        guard lines.count == 2, words.prefix(4) == ["chat", "production", "default", "key"],
            words.count > 4
        else { return ("", "") }
        return (String(words[4]), words.dropFirst(5).joined(separator: " "))
    }

    @Test(
        "push status names the topic that rests, and says when it is tried again",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func restingTopic() throws {
        let server = try RealServer()
        let simulator = try simulator(of: server)
        defer {
            simulator.kill()
            server.stop()
        }
        try server.addPush(simulator)
        // The app is another team's by now: APNs refuses the topic, and not the key.
        try simulator.tell(["cmd": "app_add", "topic": RealServer.topic, "team": "TEAM999999"])
        let (output, code) = try server.runPeer("unreached.py")
        try #require(code == 0, "\(output)\n\(server.log.suffix(2000))")
        let rests = "\(RealServer.topic) rests: TopicDisallowed, tried again in "
        try wait { try status(of: server).reason.hasPrefix(rests) }
        let (state, reason) = try status(of: server)
        #expect(state == "sending" && reason.hasPrefix(rests), "\(state): \(reason)")
    }

    @Test(
        "push status says that no connection to APNs comes about, and why",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func unreachable() throws {
        let server = try RealServer()
        defer { server.stop() }
        func status() throws -> (state: String, reason: String) { try self.status(of: server) }
        #expect(try server.rouse(["push", "status"]) == "no push credentials in use")
        // Nothing listens there; nobody has tried.
        try server.addKey(PrivateKey.generate(.p256).pem)
        try wait { try status().state == "sending" }
        let (output, code) = try server.runPeer("unreached.py")
        try #require(code == 0, "\(output)\n\(server.log.suffix(2000))")
        try wait { try status().state == "unreachable" }
        let (state, reason) = try status()
        #expect(state == "unreachable" && reason.contains("ECONNREFUSED"), "\(state): \(reason)")
    }

    @Test(
        "explain says why a device was pushed to",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func explain() throws {
        let server = try RealServer()
        let simulator = try simulator(of: server)
        defer {
            simulator.kill()
            server.stop()
        }
        let token = try server.addPush(simulator)
        let (output, status) = try server.runPeer("explained.py", [token])
        try #require(status == 0, "\(output)\n\(server.log.suffix(2000))")
        let words = output.split(whereSeparator: \.isWhitespace).map(String.init)
        try #require(words.count == 2, "\(output)")
        let (message, device) = (words[0], words[1])
        func explain(_ words: String...) throws -> Program.Outcome {
            try Program.run(["explain", "--socket", server.path("admin")] + words)
        }
        let told = try explain("--app", "chat", "--message", message)
        #expect(told.status == 0, "\(told)")
        #expect(told.output.hasPrefix("message \(message), normal, sent "), "\(told.output)")
        #expect(told.output.contains("carol, device \(device)\n"), "\(told.output)")
        #expect(told.output.contains("wake-"), "\(told.output)")
        #expect(told.output.contains("anna\n"), "\(told.output)")
        let json: Explained = try decode(
            try explain("--app", "chat", "--message", message, "--user", "carol", "--json")
                .output)
        #expect(json.message == message && json.subjects.map(\.user) == ["carol"])
        #expect(json.subjects.first?.device == device)
        #expect(json.subjects.first?.steps.contains { $0.reason.hasPrefix("wake-") } == true)
        let unknown = try explain("--app", "chat", "--message", device)
        #expect(unknown.status == 1 && unknown.errors.contains("message"), "\(unknown)")
        let half = try explain("--app", "chat")
        #expect(half.status == 64 && half.errors.contains("--message"), "\(half)")
    }
}
