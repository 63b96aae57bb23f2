import Foundation
import Model
import PostgresPeer
import Testing

@testable import PostgresStore

/// Commits that are not waited for.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct PostgresAheadTests {
    private static let owner = Table(
        "owner", key: [Column("owner", .text)], values: [Column("number", .integer)])

    private static func open(
        _ schema: String, at address: String? = nil
    ) throws -> PostgresStore {
        var options = PostgresOptions(address: try address ?? PostgresPeer.shared().address)
        options.schema = schema
        return try PostgresStore(tables: [owner.guarded(by: owner)], options: options)
    }

    private static func row(_ name: String) -> [ColumnValue] { [.text(name), .integer(1)] }

    /// A store, and what its commits came to in the order in which they were told.
    private final class Log {
        let store: PostgresStore
        var told: [String] = []

        init(_ store: PostgresStore) { self.store = store }

        /// Puts a row and does not wait; `beside` runs in the transaction.
        func put(
            _ name: String, inserts: Bool = false,
            beside: (any FetchingTransaction) throws(StoreError) -> Void = { _ in }
        ) throws(StoreError) {
            try store.writeAhead { transaction throws(StoreError) in
                try beside(transaction)
                if inserts {
                    try transaction.insert(owner, row(name))
                } else {
                    try transaction.put(owner, row(name))
                }
            } ended: { error in
                self.told.append("\(name): \(Self.word(error))")
            }
        }

        private static func word(_ error: StoreError?) -> String {
            switch error {
            case nil: "committed"
            case .conflict?: "conflict"
            case .unavailable?: "unknown"
            default: "\(String(describing: error))"
            }
        }

        func names() throws(StoreError) -> [ColumnValue] {
            try store.rows(owner).map { $0[0] }
        }
    }

    @Test("writes that were sent and failed are told as the commit's failure, and undone with it")
    func sentAndFailed() throws {
        let log = Log(try Self.open("ahead_sent"))
        defer { log.store.close() }
        try log.put("a")
        log.store.settle()
        try log.put("b") { transaction throws(StoreError) in
            try transaction.insert(Self.owner, Self.row("a"))
            try transaction.sendWrites()
        }
        log.store.settle()
        #expect(log.told == ["a: committed", "b: conflict"])
        #expect(try log.names() == [.text("a")])
    }

    @Test("what came of a commit is told while what the next transaction reads is waited for")
    func told() throws {
        let log = Log(try Self.open("ahead"))
        defer { log.store.close() }
        try log.put("a")
        #expect(log.told.isEmpty)
        let before = log.store.effort.roundTrips
        try log.put("b") { transaction throws(StoreError) in
            #expect(log.told.isEmpty)
            let found = try transaction.fetch([
                .row(Self.owner, key: [.text("a")], lock: .wait)
            ])
            #expect(found == [.row(Self.row("a"))])
            #expect(log.told == ["a: committed"])
        }
        // The read of the second; nothing else was waited for.
        #expect(log.store.effort.roundTrips == before + 1)
        log.store.settle()
        #expect(log.told == ["a: committed", "b: committed"])
        #expect(log.store.effort.roundTrips == before + 2)
        log.store.settle()
        #expect(log.told.count == 2)
    }

    @Test("one that reads nothing, a read, a time, and the end wait for it")
    func others() throws {
        let log = Log(try Self.open("ahead_others"))
        try log.put("a")
        try log.put("b")
        #expect(log.told == ["a: committed"])
        #expect(try log.names() == [.text("a"), .text("b")])
        #expect(log.told == ["a: committed", "b: committed"])
        try log.put("c")
        #expect(log.store.now() > Timestamp(milliseconds: 0))
        try log.store.put(Self.owner, Self.row("d"))
        #expect(log.told.last == "c: committed")
        try log.put("e")
        log.store.close()
        #expect(log.told.last == "e: committed")
    }

    @Test("where a commit fails, what was begun behind it fails too, and both go well again")
    func failing() throws {
        let log = Log(try Self.open("ahead_failing"))
        defer { log.store.close() }
        try log.store.put(Self.owner, Self.row("a"))
        // The server finds it out when COMMIT is on its way.
        try log.put("a", inserts: true)
        let failure = caught { () throws(StoreError) in
            try log.put("b") { transaction throws(StoreError) in
                _ = try transaction.fetch([.row(Self.owner, key: [.text("b")], lock: .wait)])
            }
        }
        #expect(failure != nil)
        #expect(log.told == ["a: conflict"])
        try log.put("b")
        try log.put("a")
        log.store.settle()
        #expect(log.told == ["a: conflict", "b: committed", "a: committed"])
        #expect(try log.names() == [.text("a"), .text("b")])
        // Nothing is behind it.
        try log.put("a", inserts: true)
        log.store.settle()
        #expect(log.told.last == "a: conflict")
        try log.put("c")
        log.store.settle()
        #expect(log.told.last == "c: committed")
    }

    @Test("a transaction that comes to nothing leaves the one ahead of it alone")
    func givenUp() throws {
        let log = Log(try Self.open("ahead_given_up"))
        defer { log.store.close() }
        try log.put("a")
        for reads in [false, true] {
            let failure = caught { () throws(StoreError) in
                try log.put("b") { transaction throws(StoreError) in
                    if reads { _ = try transaction.fetch([.rows(Self.owner, Scan(limit: 1))]) }
                    throw .corrupt("as the test wants it")
                }
            }
            #expect(failure == .corrupt("as the test wants it"))
        }
        #expect(log.told == ["a: committed"])
        #expect(try log.names() == [.text("a")])
    }

    @Test(
        "an answer to COMMIT that is lost is found out, and nothing is done twice",
        arguments: [false, true])
    func lostAnswer(hasNext: Bool) throws {
        let relay = try PostgresRelay(to: try PostgresPeer.shared())
        defer { relay.stop() }
        let log = Log(try Self.open("ahead_lost_\(hasNext)", at: relay.address))
        defer { log.store.close() }
        try log.store.put(Self.owner, Self.row("z"))
        relay.swallowsNextAnswer()
        try log.put("a")
        if hasNext {
            let failure = caught { () throws(StoreError) in
                try log.put("b") { transaction throws(StoreError) in
                    _ = try transaction.fetch([.rows(Self.owner, Scan(limit: 1))])
                }
            }
            // Either what was sent is lost with the connection, or it was seen to be lost before.
            #expect(failure != nil || log.told.first == "a: committed")
        }
        log.store.settle()
        #expect(relay.cuts == 1)
        #expect(log.told.first == "a: committed")
        try log.put("c")
        log.store.settle()
        #expect(log.told.last == "c: committed")
        let names = try log.names()
        #expect(names.contains(.text("a")))
    }

    @Test("a connection lost before COMMIT: nothing was committed, and it is known")
    func lostBeforeCommit() throws {
        let schema = "ahead_cut"
        let log = Log(try Self.open(schema))
        defer { log.store.close() }
        try log.put("a") { transaction throws(StoreError) in
            _ = try transaction.fetch([.rows(Self.owner, Scan(limit: 1))])
            #expect((try? PostgresTests.cut(schema)) == [1])
        }
        log.store.settle()
        #expect(log.told == ["a: conflict"])
        try log.put("b")
        log.store.settle()
        #expect(log.told.last == "b: committed")
        #expect(try log.names() == [.text("b")])
    }
}
