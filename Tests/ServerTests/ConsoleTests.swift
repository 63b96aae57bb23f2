import Crypto
import Foundation
import PostgresPeer
import Testing

@testable import Scenario

/// The console in a real browser: Tests/peers/console.py visits each page and changes something.
@Suite(.serialized) struct ConsoleTests {
    static let hasBrowser = FileManager.default.isExecutableFile(atPath: "/usr/bin/chromium")

    /// axe-core, from a package that Deploy/peers fetches; `nil`: it is not there, and the pages
    /// are looked at by the rules of console.py alone.
    static let axe: String? = {
        let place = ChatLog.root.appendingPathComponent(".build/peers/lib")
        let versions = try? FileManager.default.contentsOfDirectory(atPath: place.path)
        let file = "site-packages/axe_playwright_python/axe.min.js"
        return versions?.map { "\(place.path)/\($0)/\(file)" }
            .first { FileManager.default.fileExists(atPath: $0) }
    }()

    @Test(
        "an operator sees and changes everything, with eyes, keyboard and screen reader",
        .enabled(if: hasBrowser, "chromium is not installed"),
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func browser() throws {
        let server = try RealServer(settings: ["console.port=0"])
        let simulator = try SimulatorProcess(
            executable: URL(fileURLWithPath: Program.path), folder: server.folder)
        try simulator.start()
        defer {
            simulator.kill()
            server.stop()
        }
        let token = try server.addPush(simulator)
        let (output, status) = try server.runPeer("explained.py", [token])
        try #require(status == 0, "\(output)\n\(server.log.suffix(2000))")
        let words = output.split(whereSeparator: \.isWhitespace).map(String.init)
        try #require(words.count == 2, "\(output)")
        let tokens = try ["admin", "read-only"].map { role in
            try server.rouse([
                "console", "token", "--role", role, "--expires", "1h", "--label", "anna",
            ])
        }
        // It names a folder for pictures of every page. (A setting of a server begins with ROUSE_.)
        let pictures = ProcessInfo.processInfo.environment["CONSOLE_PICTURES"]
        let visit = try server.runPeer(
            "console.py",
            [
                "--console", "\(server.consolePort)", "--admin-token", tokens[0],
                "--reader-token", tokens[1], "--message", words[0], "--device", words[1],
                "--user", "carol", "--push-key", server.path("push.pem"), "--push-port",
                "\(simulator.port)", "--push-trust", server.path("ca.pem"),
            ] + (pictures.map { ["--pictures", $0] } ?? [])
                + (Self.axe.map { ["--axe", $0] } ?? []))
        #expect(
            visit.status == 0 && visit.output.contains("the console: ok"),
            "\(visit.output)\n\(server.log.suffix(3000))")
        // Fourteen pages: on a desk and a phone as either role, and in the dark.
        let looked = Self.axe == nil ? 0 : 70
        #expect(visit.output.contains("looked at \(looked) pages"), "\(visit.output)")
        let audit = try server.rouse(["console", "audit"])
        #expect(audit.contains("PATCH /apps/chat") && audit.contains("(anna)"), "\(audit)")
        #expect(audit.contains("admin socket"), "\(audit)")
        let list = try server.rouse(["console", "token", "list"])
        #expect(list.contains("read-only") && !list.contains(tokens[0]), "\(list)")
        let id = try #require(list.split(separator: "\n").last?.split(separator: " ").first)
        _ = try server.rouse(["console", "token", "revoke", String(id)])
        #expect(try !server.rouse(["console", "token", "list"]).contains(id))
    }

    @Test(
        "late answers, a silent server, another login, odd names: an operator sees what is so",
        .enabled(if: hasBrowser, "chromium is not installed"),
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func mishaps() throws {
        let server = try RealServer(settings: ["console.port=0"])
        defer { server.stop() }
        let tokens = try [("admin", "anna"), ("read-only", "ben")].map { role, label in
            try server.rouse([
                "console", "token", "--role", role, "--expires", "1h", "--label", label,
            ])
        }
        try Data(PrivateKey.generate(.p256).pem.utf8)
            .write(to: URL(fileURLWithPath: server.path("push.pem")))
        let pictures = ProcessInfo.processInfo.environment["CONSOLE_PICTURES"]
        let visit = try server.runPeer(
            "console_mishaps.py",
            [
                "--console", "\(server.consolePort)", "--admin-token", tokens[0],
                "--reader-token", tokens[1], "--push-key", server.path("push.pem"),
            ] + (pictures.map { ["--pictures", $0] } ?? []))
        #expect(
            visit.status == 0 && visit.output.contains("the mishaps: ok"),
            "\(visit.output)\n\(server.log.suffix(3000))")
    }

    @Test(
        "several nodes are watched, drained and set to work again from one node's console",
        .enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"),
        .enabled(if: hasBrowser, "chromium is not installed"),
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func nodes() throws {
        let (database, schema) = (try PostgresPeer.shared().address, "console_nodes")
        let settings = ["store.postgres=\(database)", "store.schema=\(schema)"]
        let first = try RealServer(settings: settings + ["node.name=one", "console.port=0"])
        let second = try RealServer(settings: settings + ["node.name=two"], besides: first)
        defer { second.stop() }
        let tokens = try ["admin", "read-only"].map {
            try first.rouse([
                "console", "token", "--role", $0, "--expires", "1h", "--label", "anna",
            ])
        }
        let pictures = ProcessInfo.processInfo.environment["CONSOLE_PICTURES"]
        let visit = try first.runPeer(
            "console_nodes.py",
            [
                "--console", "\(first.consolePort)", "--admin-token", tokens[0],
                "--reader-token", tokens[1], "--second", "\(second.identifier)",
                "--apis", "\(first.apiPort),\(second.apiPort)", "--database", database,
                "--schema", schema, "--second-ca", second.path("ca.pem"),
            ] + (pictures.map { ["--pictures", $0] } ?? [])
                + (Self.axe.map { ["--axe", $0] } ?? []),
            port: second.devicePort)
        #expect(
            visit.status == 0 && visit.output.contains("the console of nodes: ok"),
            "\(visit.output)\n\(first.log.suffix(3000))")
        let audit = try first.rouse(["console", "audit"])
        for change in ["POST /nodes/two/drain", "POST /nodes/two/resume", "POST /nodes/rebalance"] {
            #expect(audit.contains(change), "\(audit)")
        }
    }
}
