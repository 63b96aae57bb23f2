import Feed
import Foundation
import Model
import PostgresPeer
import Testing

@testable import PostgresStore

/// What only PostgreSQL does: several connections at once, and connections that are lost.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct PostgresTests {
    private static let owner = Table(
        "owner", key: [Column("owner", .text)], values: [Column("number", .integer)])

    private static let tables = [owner.guarded(by: owner)]

    private static func options(_ schema: String) throws -> PostgresOptions {
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        options.schema = schema
        return options
    }

    private static func open(
        _ schema: String, _ change: (inout PostgresOptions) -> Void = { _ in }
    ) throws -> PostgresStore {
        var options = try options(schema)
        change(&options)
        return try PostgresStore(tables: tables, options: options)
    }

    private static func row(_ name: String, _ number: Int64) -> [ColumnValue] {
        [.text(name), .integer(number)]
    }

    /// A statement of somebody else, beside the stores.
    private static func ask(_ sql: String) throws -> [Int64] {
        let connection = try PostgresConnection(
            try PostgresPeer.shared().address, options: [], silence: 7_000)
        defer { connection.close() }
        return try connection.rows(sql, columns: [Column("number", .integer)]).compactMap {
            if case .integer(let number) = $0[0] { number } else { nil }
        }
    }

    // MARK: Locks

    @Test("a key is held for its holder, whether or not it has a row", arguments: [false, true])
    func keysAreHeld(isThere: Bool) throws {
        let schema = "held_\(isThere)"
        let (one, other) = (
            try Self.open(schema), try Self.open(schema) { $0.lockTimeout = 50 }
        )
        defer { (one.close(), other.close()) }
        if isThere { try one.put(Self.owner, Self.row("a", 1)) }
        try one.write { transaction throws(StoreError) in
            _ = try transaction.row(Self.owner, key: [.text("a")], lock: .wait)
            let refused = isConflict { () throws(StoreError) in
                try other.write { transaction throws(StoreError) in
                    _ = try transaction.row(Self.owner, key: [.text("a")], lock: .wait)
                }
            }
            #expect(refused)
            try other.write { transaction throws(StoreError) in
                _ = try transaction.row(Self.owner, key: [.text("b")], lock: .wait)
                #expect(
                    try transaction.rows(Self.owner, Scan(limit: 9, lock: .skip)).isEmpty)
            }
        }
        try other.write { transaction throws(StoreError) in
            let found = try transaction.row(Self.owner, key: [.text("a")], lock: .wait)
            #expect((found != nil) == isThere)
        }
    }

    @Test("whoever waits for nothing is told at once of a row that somebody holds by hand")
    func heldByHand() throws {
        let store = try Self.open("by_hand")
        defer { store.close() }
        for name in ["a", "b"] { try store.put(Self.owner, Self.row(name, 1)) }
        let hand = try PostgresConnection(
            try PostgresPeer.shared().address, options: [], silence: 7_000)
        defer { hand.close() }
        try hand.run("BEGIN")
        _ = try hand.rows(
            "SELECT number FROM by_hand.owner WHERE owner = 'a' FOR UPDATE",
            columns: [Column("number", .integer)])
        try store.writeFetching { transaction throws(StoreError) in
            transaction.waitForNothing()
            let reads = ["a", "b", "c"].map {
                Read.row(Self.owner, key: [.text($0)], lock: .wait)
            }
            #expect(
                try transaction.fetch(reads) == [.busy, .row(Self.row("b", 1)), .row(nil)])
            try transaction.put(Self.owner, Self.row("b", 2))
        }
        #expect(try Self.ask("SELECT number FROM by_hand.owner WHERE owner = 'b'") == [2])
    }

    @Test("two hold a key in common, and nobody writes it meanwhile")
    func sharedKeys() throws {
        let (one, other) = (
            try Self.open("shared"), try Self.open("shared") { $0.lockTimeout = 50 }
        )
        defer { (one.close(), other.close()) }
        try one.put(Self.owner, Self.row("a", 1))
        for key in ["a", "absent"] {
            try one.write { transaction throws(StoreError) in
                _ = try transaction.row(Self.owner, key: [.text(key)], lock: .share)
                try other.write { transaction throws(StoreError) in
                    _ = try transaction.row(Self.owner, key: [.text(key)], lock: .share)
                }
                let refused = isConflict { () throws(StoreError) in
                    try other.write { transaction throws(StoreError) in
                        _ = try transaction.row(Self.owner, key: [.text(key)], lock: .wait)
                    }
                }
                #expect(refused)
            }
        }
    }

    @Test("of two that wait for each other one meets a conflict, and both can go on")
    func deadlock() async throws {
        let schema = "deadlock"
        let first = try Self.open(schema)
        try first.put(Self.owner, Self.row("a", 0), Self.row("b", 0))
        first.close()
        // Each adds one to both, in its own order, until it has gone well.
        let conflicts = try await withThrowingTaskGroup(of: Int.self) { group in
            for order in [["a", "b"], ["b", "a"]] {
                group.addTask {
                    let store = try Self.open(schema)
                    defer { store.close() }
                    var conflicts = 0
                    for _ in 0..<50 {
                        while !(try Self.add(to: order, in: store)) { conflicts += 1 }
                    }
                    return conflicts
                }
            }
            return try await group.reduce(0, +)
        }
        let store = try Self.open(schema)
        defer { store.close() }
        #expect(try store.rows(Self.owner) == [Self.row("a", 100), Self.row("b", 100)])
        // How often they met is the machine's; that it ends is the test.
        #expect(conflicts >= 0)
    }

    private static func add(to names: [String], in store: PostgresStore) throws -> Bool {
        do throws(StoreError) {
            try store.write { transaction throws(StoreError) in
                for name in names {
                    let key: [ColumnValue] = [.text(name)]
                    guard
                        case .integer(let number)? = try transaction.row(
                            owner, key: key, lock: .wait)?[1]
                    else { throw .corrupt("no \(name)") }
                    try transaction.update(owner, row(name, number + 1), columns: [1])
                }
            }
            return true
        } catch {
            guard case .conflict = error else { throw error }
            return false
        }
    }

    // MARK: Connections that are lost

    /// The server's processes of writers that are within a transaction on this schema.
    private static func writers(_ schema: String) throws -> [Int64] {
        try ask(
            "SELECT DISTINCT a.pid::bigint FROM pg_stat_activity a JOIN pg_locks l USING (pid) "
                + "JOIN pg_class c ON l.relation = c.oid JOIN pg_namespace n ON c.relnamespace = "
                + "n.oid WHERE application_name = 'rouse writer' AND nspname = '\(schema)'")
    }

    /// Ends the server's end of them, and says how many there were. Other tests' are left alone:
    /// they run at the same time.
    static func cut(_ schema: String) throws -> [Int64] {
        let writers = try writers(schema)
        for writer in writers { try end(writer) }
        return [Int64(writers.count)]
    }

    /// Ends a process of the server and waits until it has ended.
    private static func end(_ process: Int64) throws {
        #expect(try ask("SELECT pg_terminate_backend(\(process), 5000)::int::bigint") == [1])
    }

    @Test("a connection lost within a transaction loses the transaction, and the next goes well")
    func lostInside() throws {
        let store = try Self.open("lost_inside")
        defer { store.close() }
        let failure = caught { () throws(StoreError) in
            try store.write { transaction throws(StoreError) in
                try transaction.put(Self.owner, Self.row("a", 1))
                _ = try transaction.rows(Self.owner, Scan(limit: 1))
                #expect((try? Self.cut("lost_inside")) == [1])
                _ = try transaction.rows(Self.owner, Scan(limit: 1))
            }
        }
        guard case .unavailable? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(try store.rows(Self.owner).isEmpty)
        try store.put(Self.owner, Self.row("b", 1))
        #expect(try store.rows(Self.owner).count == 1)
    }

    @Test("a connection lost before COMMIT: nothing was committed, and it is known")
    func lostBeforeCommit() throws {
        let store = try Self.open("lost_before")
        defer { store.close() }
        let failure = caught { () throws(StoreError) in
            try store.write { transaction throws(StoreError) in
                try transaction.put(Self.owner, Self.row("a", 1))
                _ = try transaction.rows(Self.owner, Scan(limit: 1))
                #expect((try? Self.cut("lost_before")) == [1])
            }
        }
        guard case .conflict? = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        #expect(try store.rows(Self.owner).isEmpty)
    }

    @Test("an answer to COMMIT that is lost is found out")
    func lostAnswer() throws {
        let relay = try PostgresRelay(to: try PostgresPeer.shared())
        defer { relay.stop() }
        let store = try Self.open("lost_answer") { $0.address = relay.address }
        defer { store.close() }
        // The relay passes COMMIT on and cuts the connection instead of bringing its answer.
        relay.swallowsNextAnswer()
        try store.put(Self.owner, Self.row("a", 1))
        #expect(relay.cuts == 1)
        #expect(try store.rows(Self.owner) == [Self.row("a", 1)])
    }

    @Test("a server that hangs is given up before others take the node for gone")
    func silence() throws {
        #expect(
            (PostgresOptions(address: "").silence ?? .max / 2) + 4_000
                < Int(RuleLimits().nodeLease),
            "a beat that is 2 s old, and the next one in 2 s")
        let relay = try PostgresRelay(to: try PostgresPeer.shared())
        defer { relay.stop() }
        let store = try Self.open("silence") {
            $0.address = relay.address
            $0.statementTimeout = 1_000
        }
        defer { store.close() }
        try store.put(Self.owner, Self.row("a", 1))
        relay.isMute = true
        var failure: StoreError?
        do { try store.put(Self.owner, Self.row("b", 2)) } catch { failure = error }
        #expect("\(String(describing: failure))".contains("it has said nothing for 2 s"))
        relay.isMute = false
        // It is not connected to again at once (`ConnectPause`).
        var isBack = false
        for _ in 0..<200 where !isBack {
            isBack = (try? store.put(Self.owner, Self.row("c", 3))) != nil
            if !isBack { Thread.sleep(forTimeInterval: 0.1) }
        }
        // The server has heard the second one, and what became of it is not known.
        let rows = try store.rows(Self.owner).filter { $0 != Self.row("b", 2) }
        #expect(rows == [Self.row("a", 1), Self.row("c", 3)])
    }

    @Test("one that may take as long as it takes is not given up for a silence")
    func patience() throws {
        let relay = try PostgresRelay(to: try PostgresPeer.shared())
        defer { relay.stop() }
        let store = try Self.open("patience") {
            $0.address = relay.address
            ($0.statementTimeout, $0.idleTransactionTimeout) = (0, 0)
        }
        defer { store.close() }
        relay.isHeld = true
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: 1.6)
            relay.isHeld = false
        }
        try store.put(Self.owner, Self.row("a", 1))
        #expect(try store.rows(Self.owner) == [Self.row("a", 1)])
    }

    @Test("that an answer means the disk is a session's own setting, which no reload takes away")
    func synchronousCommit() throws {
        let connection = try PostgresSession(options: try Self.options("synchronous"))
            .connect("writer")
        defer { connection.close() }
        let own = try connection.rows(
            "SELECT count(*)::bigint FROM pg_settings WHERE name = 'synchronous_commit' "
                + "AND source = 'session' AND setting <> 'off'",
            columns: [Column("count", .integer)])
        #expect(own == [[.integer(1)]])
    }

    @Test("the time within a transaction is the server's, whatever this machine's clock says")
    func clock() throws {
        let store = try Self.open("clock") {
            $0.machineClock = { Int64(Date.now.timeIntervalSince1970 * 1000) - 3_600_000 }
        }
        defer { store.close() }
        var now = Timestamp(milliseconds: 0)
        try store.write { _ in now = store.now() }
        let off = Date.now.timeIntervalSince1970 * 1000 - Double(now.milliseconds)
        #expect(abs(off) < 60_000, "\(off) ms")
    }

    @Test("what was closed while nobody wrote is opened anew without an error")
    func lostWhileIdle() throws {
        let store = try Self.open("lost_idle")
        defer { store.close() }
        // A writer that is idle holds nothing of its schema, so it is asked for before.
        var writers: [Int64] = []
        try store.write { transaction throws(StoreError) in
            try transaction.put(Self.owner, Self.row("a", 1))
            _ = try transaction.rows(Self.owner, Scan(limit: 1))
            writers = (try? Self.writers("lost_idle")) ?? []
        }
        #expect(writers.count == 1)
        try Self.end(try #require(writers.first))
        try store.put(Self.owner, Self.row("b", 1))
        #expect(try store.rows(Self.owner).count == 2)
    }

    // MARK: Schemas

    @Test("a newer schema is refused in words, and a store that only checks says what to do")
    func schemas() throws {
        var unmade = try Self.options("unmade")
        unmade.migrates = false
        #expect(try Self.refusal(unmade).contains("store.migrate = on"))
        try Self.open("newer").close()
        _ = try Self.ask(
            "INSERT INTO newer.schema_migration (number) VALUES (99) RETURNING number")
        #expect(
            try Self.refusal(try Self.options("newer")).contains("a newer program has used it"))
    }

    /// Why a store does not open.
    private static func refusal(_ options: PostgresOptions) throws -> String {
        let failure = caught { () throws(StoreError) in
            _ = try PostgresStore(tables: tables, options: options)
        }
        guard case .unavailable(let text)? = failure else {
            throw StoreError.corrupt("opened, or \(String(describing: failure))")
        }
        return text
    }

    @Test("an address without a server is told as it was given, in one line")
    func nobody() throws {
        let text = try Self.refusal(PostgresOptions(address: "host=127.0.0.1 port=1 user=rouse"))
        #expect(text.contains("127.0.0.1:1") && !text.contains("\n"))
    }

    @Test("dead rows go early: of new tables, of those that were there, and as an operator says")
    func autovacuum() throws {
        let schema = "autovacuum"
        /// How many of its tables have the setting.
        func tables(at scale: String) throws -> [Int64] {
            try Self.ask(
                "SELECT count(*)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = "
                    + "c.relnamespace WHERE nspname = '\(schema)' AND relkind = 'r' AND "
                    + "'autovacuum_vacuum_scale_factor=\(scale)' = ANY (reloptions)")
        }
        func alter(_ change: String) throws {
            let problem = try PostgresPeer.shared().psql(
                "ALTER TABLE \(schema).owner \(change)")
            #expect(problem == "")
        }
        try Self.open(schema).close()
        #expect(try tables(at: "0.02") == [1])
        try alter("RESET (autovacuum_vacuum_scale_factor)")
        #expect(try tables(at: "0.02") == [0])
        try Self.open(schema).close()
        #expect(try tables(at: "0.02") == [1])
        try alter("SET (autovacuum_vacuum_scale_factor = 0.5, fillfactor = 80)")
        try Self.open(schema).close()
        #expect(try tables(at: "0.5") == [1])
        // Nobody who only checks changes anything, and a role that may not is not refused.
        try alter("RESET (autovacuum_vacuum_scale_factor)")
        try Self.open(schema) { $0.migrates = false }.close()
        #expect(try tables(at: "0.02") == [0])
        let problem = try PostgresPeer.shared().psql(
            """
            CREATE ROLE autovacuum_node LOGIN; GRANT USAGE ON SCHEMA \(schema) TO autovacuum_node;
            GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \(schema) \
            TO autovacuum_node
            """)
        #expect(problem == "")
        let folder = try PostgresPeer.shared().folder
        try Self.open(schema) {
            $0.address = "host=\(folder) user=autovacuum_node dbname=postgres"
        }.close()
        #expect(try tables(at: "0.02") == [0])
    }

    @Test("the hash of a key is the same in every version of the program")
    func hashes() {
        let tables = PostgresTables(Self.tables, schema: "rouse")
        #expect(
            tables.hash(of: [.text("a")], in: Self.owner)
                == .integer(-2_111_488_604_783_633_250))
    }

    private func isConflict(_ body: () throws(StoreError) -> Void) -> Bool {
        if case .conflict? = caught(body) { true } else { false }
    }
}
