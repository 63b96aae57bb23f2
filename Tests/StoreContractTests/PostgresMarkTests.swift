import Foundation
import Model
import PostgresPeer
import Testing

@testable import PostgresStore

/// The row by which a writer finds out what came of its last transaction.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct PostgresMarkTests {
    private static let owner = Table(
        "owner", key: [Column("owner", .text)], values: [Column("number", .integer)])

    private static func options(_ schema: String) throws -> PostgresOptions {
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        options.schema = schema
        return options
    }

    private static func open(
        _ schema: String, at address: String? = nil
    ) throws -> PostgresStore {
        var options = try options(schema)
        if let address { options.address = address }
        return try PostgresStore(tables: [owner.guarded(by: owner)], options: options)
    }

    private static func row(_ name: String) -> [ColumnValue] { [.text(name), .integer(1)] }

    /// What somebody else does, beside the stores.
    private static func run(_ sql: String) throws {
        let failure = try PostgresPeer.shared().psql(sql)
        #expect(failure == "", "\(failure)")
    }

    @Test("a writer whose row was deleted while it was idle makes it anew, and finds out by it")
    func madeAnew() throws {
        let relay = try PostgresRelay(to: try PostgresPeer.shared())
        defer { relay.stop() }
        let store = try Self.open("mark_anew", at: relay.address)
        defer { store.close() }
        for name in ["a", "b"] {
            try store.put(Self.owner, Self.row(name))
            try Self.run("DELETE FROM mark_anew.commit_mark")
            let failure = caught { () throws(StoreError) in
                try store.put(Self.owner, Self.row("c"))
            }
            #expect(failure == PostgresCommitMark.isGone)
        }
        relay.swallowsNextAnswer()
        try store.put(Self.owner, Self.row("c"))
        #expect(relay.cuts == 1)
        #expect(try store.rows(Self.owner) == ["a", "b", "c"].map(Self.row))
    }

    @Test("so does one that does not wait for its commits")
    func madeAnewAhead() throws {
        let store = try Self.open("mark_ahead")
        defer { store.close() }
        var told: [StoreError?] = []
        func put(_ name: String) throws(StoreError) {
            try store.writeAhead { transaction throws(StoreError) in
                try transaction.put(Self.owner, Self.row(name))
            } ended: {
                told.append($0)
            }
        }
        try put("a")
        store.settle()
        try Self.run("DELETE FROM mark_ahead.commit_mark")
        try put("b")
        // What was begun behind one that has failed fails, too.
        #expect(caught { () throws(StoreError) in try put("c") } != nil)
        try put("b")
        try put("c")
        store.settle()
        #expect(told == [nil, PostgresCommitMark.isGone, nil, nil])
        #expect(try store.rows(Self.owner) == ["a", "b", "c"].map(Self.row))
    }

    @Test(
        "what was given up and comes late stays shut out, though the row was made anew",
        arguments: [false, true])
    func late(isAsked: Bool) throws {
        let schema = "mark_late_\(isAsked)"
        try Self.open(schema).close()
        let session = PostgresSession(options: try Self.options(schema))
        let (lost, fresh) = (try session.connect("writer"), try session.connect("writer"))
        defer { (lost.close(), fresh.close()) }
        var mark = PostgresCommitMark()
        try mark.make(on: lost)
        // These statements are still on their way when the connection is given up.
        try lost.run("BEGIN")
        try lost.run("INSERT INTO owner VALUES ('late', 1)")
        try mark.write(on: lost)
        try lost.run("COMMIT")
        if isAsked { #expect(try !mark.isCommitted(on: fresh)) }
        try Self.run("DELETE FROM \(schema).commit_mark")
        try mark.make(on: fresh)
        // One more of the same writer that fails takes its own number back, and no other.
        try fresh.run("BEGIN")
        try mark.write(on: fresh)
        mark.takeBack()
        try fresh.rollBack()
        try mark.make(on: fresh)
        let failure = caught { () throws(StoreError) in try lost.synchronize() }
        #expect(failure == PostgresCommitMark.isGone)
        let rows = try fresh.rows(
            "SELECT count(*)::bigint FROM owner", columns: [Column("count", .integer)])
        #expect(rows == [[.integer(0)]])
    }

    @Test("rows of writers that may still be there stay, and old ones go")
    func cleared() throws {
        try Self.open("mark_old").close()
        try Self.run(
            """
            INSERT INTO mark_old.commit_mark (writer, number, written_at) VALUES
                ('a day', 1, now() - interval '25 hours'),
                ('weeks', 1, now() - interval '15 days')
            """)
        let store = try Self.open("mark_old")
        defer { store.close() }
        let names = try PostgresSession(options: try Self.options("mark_old")).connect("writer")
        defer { names.close() }
        let left = try names.rows(
            "SELECT writer FROM commit_mark WHERE length(writer) < 16",
            columns: [Column("writer", .text)])
        #expect(left == [[.text("a day")]])
    }

    @Test("a row that is held while an answer is found out is asked for again")
    func held() throws {
        let relay = try PostgresRelay(to: try PostgresPeer.shared())
        defer { relay.stop() }
        let store = try Self.open("mark_held", at: relay.address)
        defer { store.close() }
        try store.put(Self.owner, Self.row("a"))
        // Somebody holds the row until the store has waited for it in vain.
        nonisolated(unsafe) let holder = try PostgresSession(options: Self.options("mark_held"))
            .connect("holder", isPatient: true)
        let ended = DispatchSemaphore(value: 0)
        relay.swallowsNextAnswer {
            _ = try? holder.run("SET statement_timeout = 0")
            _ = try? holder.run("BEGIN")
            _ = try? holder.run("SELECT 1 FROM commit_mark FOR UPDATE")
            _ = try? holder.synchronize()
            Thread.detachNewThread {
                _ = try? holder.run(
                    """
                    DO $$ DECLARE waiter integer; BEGIN
                        LOOP
                            SELECT pid INTO waiter FROM pg_locks WHERE NOT granted
                                AND pg_backend_pid() = ANY (pg_blocking_pids(pid));
                            EXIT WHEN waiter IS NOT NULL;
                        END LOOP;
                        WHILE EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid = waiter)
                        LOOP END LOOP;
                    END $$
                    """)
                _ = try? holder.run("COMMIT")
                _ = try? holder.synchronize()
                holder.close()
                ended.signal()
            }
        }
        try store.put(Self.owner, Self.row("b"))
        ended.wait()
        #expect(relay.cuts == 1)
        #expect(try store.rows(Self.owner) == [Self.row("a"), Self.row("b")])
    }
}
