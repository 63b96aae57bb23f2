import EventLoop
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

    @Test(
        "a device that is revoked through a node its own does not hear is told so when it writes",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func unheard() throws {
        let settings = try settings("nodes_unheard")
        let first = try RealServer(settings: settings)
        let second = try RealServer(settings: settings, besides: first)
        let isOver = Latch()
        let cut = Thread {
            // Each connection that carries hints is ended as soon as it is there.
            while !isOver.wait(seconds: 0) {
                _ = try? PostgresPeer.shared().psql(
                    """
                    DO $$ BEGIN FOR turn IN 1..100 LOOP
                        PERFORM pg_stat_clear_snapshot();
                        PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
                            WHERE application_name = 'rouse hints'
                                AND query LIKE '%nodes_unheard%';
                        PERFORM pg_sleep(0.005);
                    END LOOP; END $$
                    """)
            }
        }
        cut.start()
        defer { isOver.arrive() }
        let (output, status) = try first.runPeer(
            "two_nodes.py",
            [
                "--other-port", "\(second.devicePort)", "--other-api", "\(second.apiPort)",
                "--other-ca", second.path("ca.pem"), "--unheard",
            ])
        #expect(status == 0 && output.contains("unheard: ok"), "\(output)\n\(second.log)")
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

    @Test(
        "a TLS session goes on on any node, for as long as a key of theirs opens its ticket",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func resumes() throws {
        let settings = try settings("nodes_resume")
        /// The keys become older, as over a night without a node.
        func age(hours: Int) throws {
            let done = try PostgresPeer.shared().psql(
                "UPDATE nodes_resume.meta SET number = number - \(hours * 3_600_000) "
                    + "WHERE name LIKE 'ticket_key_%'")
            #expect(done == "", "\(done)")
        }
        let first = try RealServer(settings: settings)
        let second = try RealServer(settings: settings, besides: first)
        try first.resumes("wrrr", at: [first, second, first, second])
        for node in [first, second] { node.stop() }
        try age(hours: 13)
        let third = try RealServer(settings: settings, besides: first)
        try first.resumes("rr", at: [third, third])
        third.stop()
        try age(hours: 24)
        let fourth = try RealServer(settings: settings, besides: first)
        // Another certificate, which a session that went on would not have shown.
        try first.resumes("wr", at: [fourth, fourth], authority: fourth)
        let metrics = String(decoding: try fourth.metrics(), as: UTF8.self)
        #expect(metrics.contains("rouse_tls_resumed_total 1"))
    }

    @Test(
        "a TLS session goes on over a restart of a server on a file",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func resumesOnAFile() throws {
        let first = try RealServer()
        try first.resumes("wr", at: [first, first])
        first.stop()
        let second = try RealServer(storePath: first.path("rouse.db"), besides: first)
        try first.resumes("rr", at: [second, second])
    }

    @Test(
        "a node is drained without its end, goes on, and gives a surplus to another",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func drains() throws {
        let settings = try settings("nodes_drain")
        let first = try RealServer(settings: settings + ["node.name=one"])
        let second = try RealServer(settings: settings + ["node.name=two"], besides: first)
        let nodes = [first, second]
        let (output, status) = try first.runPeer(
            "drained.py",
            [
                "--rouse", Program.path, "--names", "one,two",
                "--ports", nodes.map { "\($0.devicePort)" }.joined(separator: ","),
                "--apis", nodes.map { "\($0.apiPort)" }.joined(separator: ","),
                "--cas", nodes.map { $0.path("ca.pem") }.joined(separator: ","),
            ] + settings.flatMap { ["--set", $0] })
        #expect(status == 0 && output.contains("drained.py: ok"), "\(output)\n\(first.log)")
        let nobody = try Program.run(
            ["node", "drain", "three"] + settings.flatMap { ["--set", $0] })
        #expect(nobody.status == 69 && nobody.errors.contains("no node three is there"))
        let log = try second.rouse(["console", "audit"])
        for line in [
            "POST /nodes/one/drain", "POST /nodes/one/resume", "POST /nodes/rebalance",
            "POST /nodes/three/drain",
        ] {
            #expect(log.contains(line), "\(log)")
        }
        #expect(log.contains("404") && log.contains("command on the store"), "\(log)")
    }

    @Test("a node that nobody would relieve keeps its devices, and the drain says so")
    func drainsAlone() throws {
        let settings = try settings("nodes_drain_alone")
        let named = settings.flatMap { ["--set", $0] }
        let server = try RealServer(settings: settings + ["node.name=one"])
        let waits = "one: keeps its devices until another node takes some; none does now"
        let told = try Program.run(["node", "drain", "one"] + named)
        #expect(told.status == 0 && told.output.contains(waits), "\(told)")
        #expect(server.comesToLog("node.drain_waits"))
        let list = try Program.run(["node", "list"] + named).output
        #expect(list.contains("one: to drain once another node takes devices"), "\(list)")
        // Somebody else has come.
        let other = try RealServer(settings: settings + ["node.name=two"], besides: server)
        #expect(server.comesToLog("node.draining"))
        #expect(try Program.run(["node", "list"] + named).output.contains("one: draining"))
        let both = try Program.run(["node", "drain", "two"] + named)
        #expect(both.output.contains("two: keeps its devices"), "\(both)")
        _ = other
    }

    @Test(
        "nodes that are told to end together send nobody to each other, and leave no row",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"),
        arguments: ["one", "both"])
    func endsTogether(_ how: String) throws {
        let settings = try settings("nodes_end_\(how)") + ["timers.drain=6s"]
        let first = try RealServer(settings: settings + ["node.name=one"])
        let second = try RealServer(settings: settings + ["node.name=two"], besides: first)
        // Each knows of the other with its next beat.
        Thread.sleep(forTimeInterval: 3)
        let (output, status) = try first.runPeer(
            "ended.py",
            [
                "--other-port", "\(second.devicePort)", "--other-ca", second.path("ca.pem"),
                "--other-server", "\(second.identifier)", "--how", how,
            ])
        #expect(status == 0 && output.contains("ended \(how): ok"), "\(output)\n\(first.log)")
        first.stop()
        let words = ["node", "list"] + settings.flatMap { ["--set", $0] }
        if how == "one" {
            let left = try Program.run(words)
            #expect(left.output.contains("two: there") && !left.output.contains("one:"), "\(left)")
        }
        second.stop()
        let nobody = try Program.run(words)
        #expect(nobody.output.contains("no node is there"), "\(nobody)")
    }

    @Test(
        "a server on a file is replaced behind a held socket, and no attempt to connect fails",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func handsOver() throws {
        let first = try RealServer()
        first.stop()
        let settings = [
            "store.path=\(first.path("rouse.db"))", "api.port=0", "listen.port=1",
            "tls.certificate_file=\(first.path("server.pem"))", "timers.drain=6s",
            "tls.key_file=\(first.path("server.key"))", "log.level=error",
        ]
        let (output, status) = try first.runPeer(
            "handover.py", [],
            after: ["--", Program.path, "serve"]
                + settings.flatMap { ["--set", $0] })
        #expect(status == 0 && output.contains("handover: ok"), "\(output)")
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

    @Test(
        "a store goes from a file to PostgreSQL and back, and a device goes on where it was",
        .enabled(if: RealServer.hasPeers, "python3-protobuf or python3-jwt is not installed"))
    func moves() throws {
        let first = try RealServer()
        func step(_ step: String, on server: RealServer) throws {
            let (output, status) = try server.runPeer(
                "kept.py", [step, "--folder", first.folder.path])
            #expect(status == 0 && output.contains("\(step): ok"), "\(output)")
        }
        try step("begin", on: first)
        let file = first.path("rouse.db")
        let database = try settings("moved")
        let named = database.flatMap { ["--set", $0] }
        let early = try Program.run(["import", file] + named)
        #expect(early.status == 69, "\(early.errors)")
        first.stop()
        // Whoever looks at the new database leaves it as good as empty.
        let settings = first.path("moved.conf")
        try database.joined(separator: "\n").write(
            toFile: settings, atomically: true, encoding: .utf8)
        #expect(try Program.run(["migrate"] + named).status == 0)
        let looked = try Program.run(["app", "list", "--config", settings])
        #expect(looked.output.contains("no apps"), "\(looked)")
        let imported = try Program.run(["import", file] + named)
        try #require(imported.status == 0, "\(imported.errors)")
        let twice = try Program.run(["import", file] + named)
        #expect(twice.status == 69 && twice.errors.contains("only an empty store"))
        let second = try RealServer(settings: database, besides: first)
        try step("go-on", on: second)
        let nodes = try Program.run(["node", "list"] + named)
        #expect(nodes.output.contains(": there since "), "\(nodes)")
        let back = first.path("back.db")
        let served = try Program.run(["export", back] + named)
        #expect(served.status == 69 && served.errors.contains("stop the nodes first"))
        second.stop()
        // The journal of a database that was there would be taken for the new one's.
        #expect(FileManager.default.createFile(atPath: "\(back)-wal", contents: nil))
        let beside = try Program.run(["export", back] + named)
        #expect(beside.status == 69 && beside.errors.contains("move it away"), "\(beside)")
        try FileManager.default.removeItem(atPath: "\(back)-wal")
        // A node that ended in order is not waited for.
        let exported = try Program.run(["export", back] + named)
        try #require(exported.status == 0, "\(exported.errors)")
        let third = try RealServer(storePath: back, besides: first)
        try step("go-on", on: third)
        third.stop()
    }

    @Test("a row that somebody holds by hand keeps what is done in the background from nobody else")
    func heldByHand() throws {
        let peer = try PostgresPeer.shared()
        let server = try RealServer(settings: try settings("held_by_hand"))
        let people = #"{"participants":["anna","ben"]}"#
        #expect(try server.ask("POST", "/v1/conversations", people) == 201)
        /// Changes in the user's feed.
        func head(_ user: String) throws -> String {
            struct User: Decodable {
                struct Feed: Decodable { let head: UInt64 }
                let feed: Feed
            }
            let body = try server.shown("/v1/users/\(user)")
            return "\(try JSONDecoder().decode(User.self, from: Data(body.utf8)).feed.head)"
        }
        let before = (try head("anna"), try head("ben"))
        let ended = Latch()
        let holder = Thread {
            // Ended below, by its name.
            _ = try? peer.psql(
                """
                SET application_name = 'by hand'; BEGIN;
                SELECT * FROM held_by_hand."user" WHERE "user" = 'anna' FOR UPDATE;
                SELECT pg_sleep(120);
                """)
            ended.arrive()
        }
        holder.start()
        let end = """
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE application_name = 'by hand'
            """
        defer { _ = try? peer.psql(end) }
        let isHeld = """
            DO $$ BEGIN LOOP
                PERFORM pg_stat_clear_snapshot();
                EXIT WHEN EXISTS (SELECT 1 FROM pg_stat_activity
                    WHERE application_name = 'by hand' AND wait_event = 'PgSleep');
                PERFORM pg_sleep(0.01);
            END LOOP; END $$
            """
        #expect(try peer.psql(isHeld) == "")
        // More than are told in the request itself.
        let users = (["anna", "ben"] + (0..<300).map { "u\($0)" }).map { "\"\($0)\"" }
        let announcement =
            #"{"users":["# + users.joined(separator: ",")
            + #"],"parts":[{"mime_type":"text/plain","text":"hi"}]}"#
        #expect(try server.ask("POST", "/v1/announcements", announcement) == 201)
        // A broken server's never does: psql's sleep ends.
        while try head("ben") == before.1, !ended.wait(seconds: 0) {}
        #expect(try head("anna") == before.0)
        #expect(try peer.psql(end) == "")
        for _ in 0..<5_000 where try head("anna") == before.0 {}
        #expect(try head("anna") != before.0)
    }

    @Test("a database without tables is told what makes them, and `migrate` does")
    func migrates() throws {
        let named = try settings("unmigrated").flatMap { ["--set", $0] }
        let list = try Program.run(["node", "list"] + named)
        #expect(list.status == 69 && list.errors.contains("store.migrate = on"))
        let made = try Program.run(["migrate"] + named)
        #expect(made.status == 0, "\(made.errors)")
        let told = try Program.run(["migrate", "--json"] + named)
        let place = #"{"change":"none","store":"PostgreSQL, schema unmigrated"}"#
        #expect(told.output == "\(place)\n", "\(told.output)")
        let empty = try Program.run(["node", "list"] + named)
        #expect(empty.status == 0 && empty.output.contains("no node is there"))
        let nowhere = try Program.run(["migrate"])
        #expect(nowhere.status == 78 && nowhere.errors.contains("store.postgres"))
    }

    @Test("a lane whose mark somebody has cleared away goes on with its next request")
    func markCleared() throws {
        let settings = try settings("nodes_mark")
        let server = try RealServer(settings: settings + ["store.lanes=2"])
        for number in 1...6 {
            // As a node of an earlier version does for lanes that were idle for a day. The first
            // writer, which is never idle, has by far the most transactions.
            let done = try PostgresPeer.shared().psql(
                "DELETE FROM nodes_mark.commit_mark WHERE number < "
                    + "(SELECT max(number) FROM nodes_mark.commit_mark)")
            #expect(done == "", "\(done)")
            let made = try server.posted(
                "/v1/conversations", #"{"participants": ["anna", "ben-\#(number)"]}"#)
            #expect(made.contains(#""id""#), "\(made)")
        }
        #expect(try !server.shown("/readyz").contains("cannot"))
    }

    @Test("a node whose reader cannot connect is not ready, says why, and is ready again with it")
    func unreadable() throws {
        let peer = try PostgresPeer.shared()
        let role = "nodes_unreadable"
        for statement in [
            "CREATE ROLE \(role) LOGIN", "GRANT CREATE ON DATABASE postgres TO \(role)",
        ] { #expect(try peer.psql(statement) == "") }
        let address = peer.address.replacingOccurrences(of: "user=rouse", with: "user=\(role)")
        let server = try RealServer(
            settings: ["store.postgres=\(address)", "store.schema=\(role)"])
        #expect(try !server.shown("/readyz").contains("cannot"))
        for statement in [
            "ALTER ROLE \(role) CONNECTION LIMIT 1",
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                + "WHERE usename = '\(role)' AND application_name = 'rouse reader'",
        ] { #expect(try peer.psql(statement) == "") }
        // Somebody asks once; that it goes on failing the node finds out by itself.
        _ = try server.shown("/v1/conversations/00000000-0000-0000-0000-000000000001")
        #expect(server.comesToLog("store.failed"))
        #expect(server.log.contains("reading: "), "\(server.log)")
        #expect(try server.shown("/readyz").contains("the store cannot be read"))
        #expect(
            try String(decoding: server.metrics(), as: UTF8.self)
                .contains("rouse_store_readable 0"))
        #expect(try peer.psql("ALTER ROLE \(role) CONNECTION LIMIT -1") == "")
        #expect(server.comesToLog("store.works"))
        #expect(try !server.shown("/readyz").contains("cannot"))
    }

    @Test("a node whose hints cannot get through says so, and that they can again")
    func hintsLost() throws {
        let settings = try settings("nodes_hints")
        let server = try RealServer(settings: settings)
        let other = try RealServer(settings: settings, besides: server)
        #expect(!server.log.contains("node.hints_lost"))
        // Until each connection has been ended once.
        for _ in 0..<300
        where ![server, other].allSatisfy({ $0.log.contains("node.hints_lost") }) {
            let done = try PostgresPeer.shared().psql(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE "
                    + "application_name = 'rouse hints' AND query LIKE '%nodes_hints%'")
            #expect(done == "", "\(done)")
        }
        #expect(server.comesToLog("node.hints_back"))
        #expect(other.comesToLog("node.hints_back"))
        let metrics = String(decoding: try server.metrics(), as: UTF8.self)
        #expect(metrics.contains("rouse_node_hints_connection_losses_total"))
        #expect(!metrics.contains("rouse_node_hints_connection_losses_total 0"))
    }

    @Test("a node serves with a role that may write rows and nothing else")
    func leastRights() throws {
        let peer = try PostgresPeer.shared()
        for statement in [
            "CREATE ROLE least_owner LOGIN", "CREATE ROLE least LOGIN",
            "GRANT CREATE ON DATABASE postgres TO least_owner",
            "CREATE SCHEMA rights AUTHORIZATION least_owner",
            "GRANT USAGE ON SCHEMA rights TO least",
            "ALTER DEFAULT PRIVILEGES FOR ROLE least_owner IN SCHEMA rights "
                + "GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO least",
        ] {
            #expect(try peer.psql(statement) == "", "\(statement)")
        }
        func settings(_ role: String, migrate: String) -> [String] {
            let address = peer.address.replacingOccurrences(of: "user=rouse", with: "user=\(role)")
            return [
                "store.postgres=\(address)", "store.schema=rights", "store.migrate=\(migrate)",
            ]
        }
        let made = try Program.run(
            ["migrate"] + settings("least_owner", migrate: "off").flatMap { ["--set", $0] })
        try #require(made.status == 0, "\(made.errors)")
        let server = try RealServer(settings: settings("least", migrate: "off"))
        #expect(try server.rouse(["app", "list"]).contains(RealServer.app))
        server.stop()
        let refused = try peer.psql("SET ROLE least; DROP TABLE rights.message")
        #expect(refused.contains("must be owner"), "\(refused)")
    }
}

extension RealServer {
    /// The status of the backend API's answer.
    func ask(_ method: String, _ path: String, _ body: String) throws -> Int {
        let curl = Process()
        curl.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        curl.arguments = [
            "curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-X", method,
            "-H", "Authorization: Bearer \(apiKey)", "-H", "Content-Type: application/json",
            "-d", body, "http://127.0.0.1:\(apiPort)\(path)",
        ]
        let pipe = Pipe()
        curl.standardOutput = pipe
        try curl.run()
        let text = pipe.fileHandleForReading.readDataToEndOfFile()
        curl.waitUntilExit()
        return Int(String(decoding: text, as: UTF8.self)) ?? 0
    }
}
