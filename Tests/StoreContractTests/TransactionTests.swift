import Model
import Testing

/// What a transaction promises, on every engine.
@Suite struct TransactionTests {
    let thing = Sample.thing

    @Test("what is written is there, and replaced as a whole", arguments: engines)
    func putReplaces(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            let first = Sample.row("a", [1], number: 1, note: "x", due: 5, data: [9])
            try store.put(thing, first)
            #expect(try store.row(thing, [.text("a"), .blob([1])]) == first)
            let second = Sample.row("a", [1], number: 2)
            try store.put(thing, second, Sample.row("a", [2]))
            #expect(try store.row(thing, [.text("a"), .blob([1])]) == second)
            #expect(try store.rows(thing).count == 2)
            let due = try store.rows(thing, Scan(index: "thing_by_due", limit: 9))
            #expect(due.isEmpty, "the old row is still in an index")
            try store.put(Sample.order, [.integer(1), .text("k")])
            try store.put(Sample.order, [.integer(1), .text("k")])
            #expect(try store.rows(Sample.order) == [[.integer(1), .text("k")]])
        }
    }

    @Test("a deleted row is in no index; deleting nothing is nothing", arguments: engines)
    func delete(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            try store.put(
                thing, Sample.row("a", [1], due: 5, data: [1]), Sample.row("a", [2], due: 5))
            try store.write { transaction throws(StoreError) in
                try transaction.delete(thing, key: [.text("a"), .blob([1])])
                try transaction.delete(thing, key: [.text("b"), .blob([1])])
            }
            for index in [nil] + thing.indexes.map(\.name) {
                let rows = try store.rows(thing, Scan(index: index, limit: 9))
                #expect(!exact(rows).contains { $0.contains("b01") }, "\(index ?? "key")")
            }
            #expect(try store.rows(thing, Scan(index: "thing_by_due", limit: 9)).count == 1)
        }
    }

    @Test("what was deleted unread is inserted anew", arguments: engines)
    func deletedUnread(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            try store.put(thing, Sample.row("a", [1], number: 1, due: 5))
            try store.write { transaction throws(StoreError) in
                try transaction.delete(thing, key: [.text("a"), .blob([1])])
                try transaction.insert(thing, Sample.row("a", [1], number: 2))
            }
            #expect(try store.rows(thing) == [Sample.row("a", [1], number: 2)])
        }
    }

    @Test("a body that throws has written nothing, and the store goes on", arguments: engines)
    func atomicity(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            try store.put(thing, Sample.row("a", [1], number: 1))
            for error in [
                StoreError.conflict("c"), .corrupt("d"), .full("f"), .unavailable("u"),
            ] {
                #expect(throws: error) {
                    try store.write { transaction throws(StoreError) in
                        try transaction.put(thing, Sample.row("a", [1], number: 2))
                        try transaction.put(thing, Sample.row("a", [2]))
                        try transaction.delete(thing, key: [.text("a"), .blob([1])])
                        throw error
                    }
                }
                #expect(try store.rows(thing) == [Sample.row("a", [1], number: 1)])
            }
            try store.put(thing, Sample.row("a", [3]))
            #expect(try store.rows(thing).count == 2)
        }
    }

    @Test("a transaction sees what it wrote", arguments: engines)
    func ownWrites(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            try store.put(thing, Sample.row("a", [1], due: 1), Sample.row("a", [2], due: 2))
            let key: [ColumnValue] = [.text("a"), .blob([3])]
            let seen = try store.write { transaction throws(StoreError) in
                try transaction.put(thing, Sample.row("a", [3], due: 0))
                try transaction.delete(thing, key: [.text("a"), .blob([2])])
                let rows = try transaction.rows(thing, Scan(index: "thing_by_due", limit: 9))
                return (rows, try transaction.row(thing, key: key, lock: .wait))
            }
            #expect(seen.0 == [Sample.row("a", [3], due: 0), Sample.row("a", [1], due: 1)])
            #expect(seen.1 == Sample.row("a", [3], due: 0))
        }
    }

    @Test("a savepoint undoes what it wrote and no more; they nest", arguments: engines)
    func savepoints(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            try store.write { transaction throws(StoreError) in
                try transaction.put(thing, Sample.row("a", [1], number: 1))
                try transaction.savepoint { () throws(StoreError) in
                    try transaction.put(thing, Sample.row("a", [2], number: 1))
                    undone(transaction) { () throws(StoreError) in
                        try transaction.put(thing, Sample.row("a", [1], number: 9))
                        try transaction.savepoint { () throws(StoreError) in
                            try transaction.put(thing, Sample.row("a", [8]))
                        }
                        try transaction.delete(thing, key: [.text("a"), .blob([2])])
                    }
                    try transaction.put(thing, Sample.row("a", [3], number: 1))
                }
                undone(transaction) { () throws(StoreError) in
                    try transaction.put(thing, Sample.row("a", [9]))
                }
                let rows = try transaction.rows(thing, Scan(limit: 9))
                #expect(rows == [1, 2, 3].map { Sample.row("a", [$0], number: 1) })
            }
            let rows = try store.rows(thing)
            #expect(rows == [1, 2, 3].map { Sample.row("a", [$0], number: 1) })
        }
    }

    /// Runs `body` in a savepoint that fails.
    private func undone(
        _ transaction: any StoreTransaction, _ body: () throws(StoreError) -> Void
    ) {
        #expect(throws: StoreError.conflict("undo")) {
            try transaction.savepoint { () throws(StoreError) in
                try body()
                throw .conflict("undo")
            }
        }
    }

    @Test(
        "full and unavailable end the transaction even if the body goes on", arguments: engines,
        [StoreError.full("f"), .unavailable("u")])
    func endingErrors(_ engine: EngineFactory, _ error: StoreError) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            let ending = caught { () throws(StoreError) in
                try store.write { transaction throws(StoreError) in
                    try transaction.put(thing, Sample.row("a", [1]))
                    let errors = [
                        caught { () throws(StoreError) in
                            try transaction.savepoint { () throws(StoreError) in throw error }
                        },
                        caught { () throws(StoreError) in
                            try transaction.put(thing, Sample.row("a", [2]))
                        },
                        caught { () throws(StoreError) in
                            _ = try transaction.rows(thing, Scan(limit: 1))
                        },
                    ]
                    #expect(errors == [error, error, error])
                }
            }
            #expect(ending == error)
            #expect(try store.rows(thing).isEmpty)
            try store.put(thing, Sample.row("a", [3]))
        }
    }

    @Test("a reader keeps its snapshot while the writer commits", arguments: engines)
    func snapshots(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            let reader = try store.reader()
            defer { reader.close() }
            try store.put(thing, Sample.row("a", [1], number: 1))
            try reader.read { snapshot throws(StoreError) in
                try store.put(thing, Sample.row("a", [1], number: 2), Sample.row("a", [2]))
                let rows = try snapshot.rows(thing, Scan(limit: 9))
                #expect(rows == [Sample.row("a", [1], number: 1)])
            }
            #expect(try reader.rows(thing).count == 2)
        }
    }

    @Test("a reader never sees an open transaction", arguments: engines)
    func isolation(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            let readers = [try store.reader(), try store.reader()]
            defer { for reader in readers { reader.close() } }
            try store.write { transaction throws(StoreError) in
                try transaction.put(thing, Sample.row("a", [1]))
                for reader in readers { #expect(try reader.rows(thing).isEmpty) }
                try transaction.savepoint { () throws(StoreError) in
                    try transaction.put(thing, Sample.row("a", [2]))
                }
                for reader in readers { #expect(try reader.rows(thing).isEmpty) }
            }
            for reader in readers { #expect(try reader.rows(thing).count == 2) }
        }
    }

    @Test("a closed store says so", arguments: engines)
    func closed(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            let reader = try store.reader()
            reader.close()
            #expect(isUnavailable { try reader.read { _ in } })
            store.close()
            store.close()
            #expect(isUnavailable { try store.write { _ in } })
            #expect(isUnavailable { try store.read { _ in } })
            #expect(isUnavailable { try store.checkpoint() })
            #expect(isUnavailable { _ = try store.reader() })
        }
    }

    @Test("an empty transaction and a checkpoint with nothing to do are fine", arguments: engines)
    func nothing(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            try store.write { _ in }
            try store.checkpoint()
            try store.put(thing, Sample.row("a", [1]))
            try store.checkpoint()
            try store.checkpoint()
            #expect(try store.rows(thing).count == 1)
        }
    }
}

/// What `body` throws.
func caught(_ body: () throws(StoreError) -> Void) -> StoreError? {
    do {
        try body()
        return nil
    } catch {
        return error
    }
}

/// Whether `body` throws `.unavailable`.
func isUnavailable(_ body: () throws -> Void) -> Bool {
    do {
        try body()
    } catch StoreError.unavailable {
        return true
    } catch {
        return false
    }
    return false
}
