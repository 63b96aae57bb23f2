import Foundation
import PostgresPeer
import Testing

/// Commands on a store that fail on the way: the audit log tells of each what is known of it, and
/// no more was done than that.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct OrderFailureTests {
    /// A schema of one node, whose database does as it is told.
    private final class Database {
        let schema: String
        let settings: [String]
        private let folder: URL

        init(_ schema: String) throws {
            self.schema = schema
            settings = [
                "store.postgres=\(try PostgresPeer.shared().address)", "store.schema=\(schema)",
            ]
            folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("rouse-orders-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: true)
            try settings.map { $0.replacing("=", with: " = ", maxReplacements: 1) + "\n" }.joined()
                .write(
                    to: folder.appendingPathComponent("rouse.conf"), atomically: true,
                    encoding: .utf8)
        }

        deinit { try? FileManager.default.removeItem(at: folder) }

        func rouse(_ command: String...) throws -> Program.Outcome {
            try Program.run(
                command + ["--config", folder.appendingPathComponent("rouse.conf").path])
        }

        func query(_ statements: String...) throws {
            for statement in statements {
                let done = try PostgresPeer.shared().psql(statement)
                try #require(done == "", "\(statement): \(done)")
            }
        }

        /// From now on each change of a row that fits does this.
        func trap(_ table: String, _ event: String, when: String, _ body: String) throws {
            let isAtCommit = body.contains("terminate")
            try query(
                "CREATE FUNCTION \(schema).trap() RETURNS trigger LANGUAGE plpgsql AS "
                    + "$$ BEGIN \(body); RETURN NEW; END $$",
                "CREATE \(isAtCommit ? "CONSTRAINT" : "") TRIGGER trap "
                    + "\(isAtCommit ? "AFTER" : "BEFORE") \(event) ON \(schema).\(table) "
                    + "\(isAtCommit ? "DEFERRABLE INITIALLY DEFERRED" : "") "
                    + "FOR EACH ROW WHEN (\(when)) EXECUTE FUNCTION \(schema).trap()")
        }

        func untrap() throws { try query("DROP FUNCTION \(schema).trap() CASCADE") }

        static let noRoom = "RAISE EXCEPTION 'the disk is full' USING ERRCODE = '53100'"
        /// At its commit: the store then looks whether it was committed.
        static let dies = "PERFORM pg_terminate_backend(pg_backend_pid())"
        /// What it means for the commit is not said.
        static let unclear = "RAISE EXCEPTION 'no'"

        /// The newest change: what, and what came of it.
        func newest() throws -> (action: String, status: String) {
            let log = try rouse("console", "audit", "--json")
            let tree = try JSONSerialization.jsonObject(with: Data(log.output.utf8))
            let changes = (tree as? [String: Any])?["changes"] as? [[String: Any]]
            let first = try #require(changes?.first, "\(log)")
            return (
                try #require(first["action"] as? String),
                (first["status"] as? Int).map { "\($0)" } ?? "under way"
            )
        }
    }

    private func isDraining(_ database: Database) throws -> Bool {
        try database.rouse("node", "list").output.contains("to drain once")
    }

    @Test("an order that finds no room is none, and the audit log says so")
    func orderWithoutRoom() throws {
        let database = try Database("order_full")
        let node = try RealServer(settings: database.settings + ["node.name=one"])
        defer { node.stop() }
        try database.trap("node", "INSERT OR UPDATE", when: "NEW.drains = 1", Database.noRoom)
        let full = try database.rouse("node", "drain", "one")
        #expect(full.status == 69 && full.errors.contains("no space"), "\(full)")
        #expect(try database.newest() == ("POST /nodes/one/drain", "503"))
        #expect(try !isDraining(database))
        try database.untrap()
        #expect(try database.rouse("node", "drain", "one").status == 0)
        #expect(try database.newest() == ("POST /nodes/one/drain", "200"))
        #expect(try isDraining(database))
    }

    @Test(
        "of an order that was lost the audit log says what is known: that it is none, or nothing",
        arguments: [(Database.dies, "503"), (Database.unclear, "under way")])
    func orderWithoutAnswer(_ body: String, _ status: String) throws {
        let database = try Database("order_lost_\(status.prefix(3))")
        let node = try RealServer(settings: database.settings + ["node.name=one"])
        defer { node.stop() }
        try database.trap("node", "INSERT OR UPDATE", when: "NEW.drains = 1", body)
        let lost = try database.rouse("node", "drain", "one")
        #expect(lost.status == 69, "\(lost)")
        #expect(try database.newest() == ("POST /nodes/one/drain", status))
        #expect(try !isDraining(database))
    }

    @Test("what cannot be written down is not ordered; what is done stands without its answer")
    func orderWithoutLog() throws {
        let database = try Database("order_unwritten")
        let node = try RealServer(settings: database.settings + ["node.name=one"])
        defer { node.stop() }
        let before = try database.newest()
        try database.trap("audit", "INSERT", when: "true", Database.noRoom)
        let unwritten = try database.rouse("node", "drain", "one")
        #expect(unwritten.status == 69 && unwritten.errors.contains("no space"), "\(unwritten)")
        #expect(try database.newest() == before)
        #expect(try !isDraining(database))
        try database.untrap()
        try database.trap("audit", "INSERT OR UPDATE", when: "NEW.status <> 0", Database.noRoom)
        let done = try database.rouse("node", "drain", "one")
        #expect(done.status == 0 && done.output.contains("one: keeps its devices"), "\(done)")
        #expect(try database.newest() == ("POST /nodes/one/drain", "under way"))
        #expect(try isDraining(database))
    }

    @Test("a node of a version that takes no orders is told of, and nobody of its name drains")
    func orderToOld() throws {
        let database = try Database("order_old")
        let node = try RealServer(settings: database.settings + ["node.name=one"])
        defer { node.stop() }
        try database.query(
            "INSERT INTO order_old.node (boot, name, started_at, there_since, until) SELECT "
                + "set_byte(boot, 0, 255 - get_byte(boot, 0)), name, started_at, there_since, "
                + "until + 3600000 FROM order_old.node")
        let refused = try database.rouse("node", "drain", "one")
        #expect(
            refused.status == 69 && refused.errors.contains("stop its process instead"),
            "\(refused)")
        #expect(try database.newest() == ("POST /nodes/one/drain", "409"))
        let list = try database.rouse("node", "list").output
        #expect(list.contains("version ?") && !list.contains("draining"), "\(list)")
    }

    @Test("a new epoch that finds no room is none, and the audit log says so")
    func epoch() throws {
        let database = try Database("epoch_full")
        let node = try RealServer(settings: database.settings)
        node.stop()
        try database.trap(
            "meta", "INSERT OR UPDATE", when: "NEW.name = 'epoch'", Database.noRoom)
        let full = try database.rouse("epoch", "new")
        #expect(full.status == 69 && full.errors.contains("no space"), "\(full)")
        #expect(try database.newest() == ("POST /epoch", "503"))
        try database.untrap()
        try database.trap("audit", "INSERT", when: "true", Database.noRoom)
        let unwritten = try database.rouse("epoch", "new")
        #expect(unwritten.status == 69 && unwritten.errors.contains("no space"), "\(unwritten)")
        #expect(try database.newest() == ("POST /epoch", "503"))
        try database.untrap()
        #expect(try database.rouse("epoch", "new").status == 0)
        #expect(try database.newest() == ("POST /epoch", "200"))
    }

    @Test(
        "of a new epoch that was lost the audit log says what is known: that it is none, or nothing",
        arguments: [(Database.dies, "503"), (Database.unclear, "under way")])
    func epochWithoutAnswer(_ body: String, _ status: String) throws {
        let database = try Database("epoch_lost_\(status.prefix(3))")
        let node = try RealServer(settings: database.settings)
        node.stop()
        try database.trap("meta", "INSERT OR UPDATE", when: "NEW.name = 'epoch'", body)
        #expect(try database.rouse("epoch", "new").status == 69)
        #expect(try database.newest() == ("POST /epoch", status))
    }

    @Test("there is no new epoch of a store that is not there")
    func epochOfNothing() throws {
        let nowhere = try Program.run(["epoch", "new", "--set", "store.path=/nowhere/rouse.db"])
        #expect(nowhere.status == 69 && nowhere.errors.contains("no store"), "\(nowhere)")
    }
}
