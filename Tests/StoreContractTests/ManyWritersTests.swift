import MemoryStore
import Model
import Testing

/// What the contract says of several writers: as far as one writer can show it on every engine,
/// and the rest on the one whose transactions can be open at once.
@Suite struct ManyWritersTests {
    private static let owner = Table(
        "owner", key: [Column("owner", .integer)], values: [Column("name", .text)])
    private static let card = Table(
        "card", key: [Column("card", .integer)],
        values: [Column("owner", .integer), Column("number", .integer, optional: true)],
        indexes: [TableIndex("card_by_number", on: "number", present: "number", unique: true)])
    private static let tables = [
        owner.guarded(by: owner), card.guarded(by: owner),
    ]
    private static let ranks = ["owner": 0]

    private static func card(_ id: Int64, of owner: Int64 = 1, _ number: Int64?) -> [ColumnValue] {
        [.integer(id), .integer(owner), number.map { .integer($0) } ?? .null]
    }

    private static func isConflict(_ body: () throws(StoreError) -> Void) -> Bool {
        do throws(StoreError) {
            try body()
            return false
        } catch {
            if case .conflict = error { return true }
            return false
        }
    }

    // MARK: every engine

    @Test("a second row under a key is refused to an insert", arguments: engines)
    func insertRefuses(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Self.tables) { store throws in
            try store.write { transaction throws(StoreError) in
                try transaction.insert(Self.card, Self.card(1, 7))
            }
            let refused = Self.isConflict { () throws(StoreError) in
                try store.write { transaction throws(StoreError) in
                    try transaction.insert(Self.card, Self.card(2, 8))
                    try transaction.insert(Self.card, Self.card(1, 9))
                }
            }
            #expect(refused)
            #expect(try store.rows(Self.card) == [Self.card(1, 7)])
        }
    }

    @Test("a second row with a value that one may have is refused", arguments: engines)
    func uniqueRefuses(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Self.tables) { store throws in
            try store.put(Self.card, Self.card(1, 7), Self.card(2, nil), Self.card(3, nil))
            let refused = Self.isConflict { () throws(StoreError) in
                try store.write { transaction throws(StoreError) in
                    _ = try transaction.row(Self.card, key: [.integer(2)], lock: .none)
                    try transaction.put(Self.card, Self.card(2, 7))
                }
            }
            #expect(refused)
            #expect(try store.row(Self.card, [.integer(2)]) == Self.card(2, nil))
        }
    }

    @Test("what one row gives up another may have, in one transaction", arguments: engines)
    func uniqueMoves(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Self.tables) { store throws in
            try store.put(Self.card, Self.card(1, 7), Self.card(2, 8))
            try store.write { transaction throws(StoreError) in
                for id in [1, 2] as [Int64] {
                    _ = try transaction.row(Self.card, key: [.integer(id)], lock: .none)
                }
                try transaction.put(Self.card, Self.card(1, nil))
                try transaction.put(Self.card, Self.card(2, 7))
                try transaction.put(Self.card, Self.card(1, 8))
            }
            #expect(try store.rows(Self.card) == [Self.card(1, 8), Self.card(2, 7)])
        }
    }

    // MARK: two transactions at once

    private let store = MemoryStore(tables: tables, lockRanks: ranks)

    /// Runs `body` in one transaction, and `other` in another before its read of this number.
    private func meet(
        before read: Int = 2,
        _ other: (any StoreTransaction) throws(StoreError) -> Void,
        _ body: (any StoreTransaction) throws(StoreError) -> Void
    ) throws -> Bool {
        let view = store.view()
        var reads = 0
        var isRefused = false
        try withoutActuallyEscaping(other) { other in
            store.betweenReads = {
                reads += 1
                guard reads == read else { return }
                isRefused = Self.isConflict { () throws(StoreError) in try view.write(other) }
            }
            defer { store.betweenReads = nil }
            try store.write(body)
        }
        return isRefused
    }

    private func lock(
        _ id: Int64, _ lock: RowLock = .wait
    ) -> (any StoreTransaction) throws(StoreError) -> Void {
        { transaction throws(StoreError) in
            _ = try transaction.row(Self.owner, key: [.integer(id)], lock: lock)
        }
    }

    @Test("a lock of a key holds it, whether or not a row is there")
    func locksHold() throws {
        for isThere in [false, true] {
            if isThere {
                try store.arrange { transaction throws(StoreError) in
                    try transaction.put(Self.owner, [.integer(1), .text("a")])
                }
            }
            for (held, asked, isRefused) in [
                (RowLock.wait, RowLock.wait, true), (.share, .wait, true), (.wait, .share, true),
                (.share, .share, false), (.skip, .wait, true), (.none, .wait, false),
            ] {
                let met = try meet(lock(1, asked)) { transaction throws(StoreError) in
                    try self.lock(1, held)(transaction)
                    try self.lock(2, .none)(transaction)
                }
                #expect(met == isRefused, "\(asked) beside \(held)")
            }
            let insert = { (transaction: any StoreTransaction) throws(StoreError) in
                try transaction.insert(Self.owner, [.integer(1), .text("b")])
            }
            store.breach = { _ in }
            #expect(
                try meet(insert) { transaction throws(StoreError) in
                    try self.lock(1)(transaction)
                    try self.lock(2, .none)(transaction)
                })
        }
    }

    @Test("a row that another transaction holds is left out where that is asked for")
    func skips() throws {
        try store.arrange { transaction throws(StoreError) in
            for id in [1, 2] as [Int64] {
                try transaction.put(Self.owner, [.integer(id), .text("a")])
            }
        }
        var seen: [[ColumnValue]] = []
        let look = { (transaction: any StoreTransaction) throws(StoreError) in
            seen = try transaction.rows(Self.owner, Scan(limit: 9, lock: .skip))
        }
        #expect(
            try !meet(look) { transaction throws(StoreError) in
                try self.lock(1)(transaction)
                try self.lock(3, .none)(transaction)
            })
        #expect(seen == [[.integer(2), .text("a")]])
    }

    @Test("a transaction sees what others commit, and keeps its own writes")
    func seesOthers() throws {
        let other = { (transaction: any StoreTransaction) throws(StoreError) in
            try self.lock(2)(transaction)
            try transaction.insert(Self.owner, [.integer(2), .text("b")])
        }
        var seen: [[ColumnValue]] = []
        let isRefused = try meet(other) { transaction throws(StoreError) in
            try self.lock(1)(transaction)
            try transaction.insert(Self.owner, [.integer(1), .text("a")])
            seen = try transaction.rows(Self.owner, Scan(limit: 9))
        }
        #expect(!isRefused)
        #expect(seen == [[.integer(1), .text("a")], [.integer(2), .text("b")]])
        #expect(try store.rows(Self.owner) == seen)
    }

    // MARK: what a rule forgot

    private func breaches(
        _ body: (any StoreTransaction) throws(StoreError) -> Void
    ) throws -> [String] {
        var found: [String] = []
        try store.arrange { transaction throws(StoreError) in
            for id in [1, 2] as [Int64] {
                _ = try transaction.row(Self.card, key: [.integer(id)], lock: .none)
                try transaction.put(Self.card, Self.card(id, id))
            }
        }
        store.breach = { found.append($0) }
        try store.write(body)
        return found
    }

    @Test("a row is not written without its guard")
    func unguarded() throws {
        let found = try breaches { transaction throws(StoreError) in
            try self.lock(2)(transaction)
            _ = try transaction.row(Self.card, key: [.integer(1)], lock: .none)
            try transaction.put(Self.card, Self.card(1, 9))
        }
        #expect(found.count == 1)
        #expect(found.first?.contains("is written, and owner[") == true)
    }

    @Test("a row is not written over as it was before its guard was locked")
    func stale() throws {
        let found = try breaches { transaction throws(StoreError) in
            _ = try transaction.row(Self.card, key: [.integer(1)], lock: .none)
            try self.lock(1)(transaction)
            try transaction.put(Self.card, Self.card(1, 9))
            _ = try transaction.row(Self.card, key: [.integer(2)], lock: .none)
            try transaction.delete(Self.card, key: [.integer(2)])
        }
        #expect(found.count == 1)
        #expect(found.first?.contains("as it was before owner was locked") == true)
    }

    @Test("a row is not written over that was not read")
    func unread() throws {
        let found = try breaches { transaction throws(StoreError) in
            try self.lock(1)(transaction)
            try transaction.put(Self.card, Self.card(1, 9))
            try transaction.insert(Self.card, Self.card(3, 3))
            try transaction.delete(Self.card, key: [.integer(2)])
        }
        #expect(found.count == 1)
        #expect(found.first?.contains("was not read") == true)
    }
}
