import MemoryStore
import Model
import Testing

/// What only the engine in memory does: a clock that is set, faults on demand, and the checks
/// that an engine with one writer would not need.
@Suite struct MemoryStoreTests {
    let thing = Sample.thing

    @Test("its clock is what it is set to, in every view")
    func clock() throws {
        let store = MemoryStore(tables: Sample.tables, clock: Timestamp(milliseconds: 5))
        #expect(store.now() == Timestamp(milliseconds: 5))
        let view = store.view()
        store.clock = Timestamp(milliseconds: 9)
        #expect(view.now() == Timestamp(milliseconds: 9))
    }

    @Test("a view is another store over the same data, and outlives the first")
    func views() throws {
        let store = MemoryStore(tables: Sample.tables)
        let view = store.view()
        try store.put(thing, Sample.row("a", [1]))
        store.close()
        #expect(try view.rows(thing).count == 1)
    }

    @Test("commits fail as told, each once; lost after the commit is committed")
    func faults() throws {
        let store = MemoryStore(tables: Sample.tables)
        store.faults = [.full, nil, .conflict, .lostBeforeCommit, .lostAfterCommit]
        var outcomes: [String] = []
        for id in UInt8(1)...6 {
            let error = caught { () throws(StoreError) in
                try store.put(thing, Sample.row("a", [id]))
            }
            let isThere = try store.row(thing, [.text("a"), .blob([id])]) != nil
            let name = error?.kind ?? "committed"
            outcomes.append("\(name) \(isThere)")
        }
        #expect(
            outcomes == [
                "full false", "committed true", "conflict false", "unavailable false",
                "unavailable true", "committed true",
            ])
        store.faults = [.full]
        #expect(
            caught { () throws(StoreError) in
                try store.write { _ throws(StoreError) in throw .conflict("body") }
            } == .conflict("body"))
        #expect(store.faults == [.full], "a body that throws has no commit to fail")
    }

    @Test("an outage stops every call, and ends")
    func outage() throws {
        let store = MemoryStore(tables: Sample.tables)
        let reader = try store.reader()
        store.outage = "gone"
        #expect(isUnavailable { try store.write { _ in } })
        #expect(isUnavailable { try reader.read { _ in } })
        #expect(isUnavailable { try store.checkpoint() })
        store.outage = nil
        try store.put(thing, Sample.row("a", [1]))
        #expect(try reader.rows(thing).count == 1)
    }

    @Test("many rows: inserted in every order, found, scanned, deleted")
    func manyRows() throws {
        var random = SeededRandom(7)
        for order in 0..<3 {
            let store = MemoryStore(tables: Sample.tables)
            var numbers = (0..<5_000).map { Int64($0) }
            if order == 1 { numbers.reverse() }
            if order == 2 {
                for i in numbers.indices { numbers.swapAt(i, random.below(numbers.count)) }
            }
            try store.write { transaction throws(StoreError) in
                for number in numbers {
                    try transaction.put(Sample.order, [.integer(number), .text("")])
                }
            }
            let all = (0..<5_000).map { [ColumnValue.integer($0), .text("")] }
            #expect(try store.rows(Sample.order) == all)
            let before = try store.reader()
            try before.read { snapshot throws(StoreError) in
                try store.write { transaction throws(StoreError) in
                    for number in numbers where number % 5 != 0 {
                        try transaction.delete(Sample.order, key: [.integer(number), .text("")])
                    }
                }
                #expect(try snapshot.rows(Sample.order, Scan(limit: .max)) == all)
            }
            let left = all.enumerated().filter { $0.offset % 5 == 0 }.map(\.element)
            #expect(try store.rows(Sample.order) == left)
            let back = try store.rows(Sample.order, Scan(descending: true, limit: .max))
            #expect(back == left.reversed())
            try store.write { transaction throws(StoreError) in
                for row in left { try transaction.delete(Sample.order, key: row) }
            }
            #expect(try store.rows(Sample.order).isEmpty)
            try store.put(Sample.order, all[3])
            #expect(try store.rows(Sample.order) == [all[3]])
        }
    }

    // MARK: Faults of the calling code

    private static let ranks = ["order": 0, "thing": 1]
    private static func lock(
        _ steps: (any StoreTransaction) throws(StoreError) -> Void
    ) throws {
        try MemoryStore(tables: Sample.tables + [Sample.late], lockRanks: ranks).write(steps)
    }

    @Test("rows locked by rank and key, ascending, again, or in a new savepoint, are in order")
    func lockOrderKept() throws {
        try Self.lock { transaction throws(StoreError) in
            try transaction.put(Sample.thing, Sample.row("a", [7]))
            for round in 0..<2 {
                try transaction.savepoint { () throws(StoreError) in
                    let group = ColumnValue.integer(Int64(1 - round))
                    _ = try transaction.row(
                        Sample.order, key: [group, .text("")], lock: .wait)
                    _ = try transaction.row(
                        Sample.thing, key: [.text("a"), .blob([1])], lock: .wait)
                    _ = try transaction.rows(Sample.thing, Scan(limit: 9, lock: .wait))
                    _ = try transaction.row(Sample.late, key: [.integer(2)], lock: .wait)
                    _ = try transaction.row(Sample.late, key: [.integer(1)], lock: .wait)
                    _ = try transaction.row(
                        Sample.thing, key: [.text("a"), .blob([1])], lock: .wait)
                    _ = try transaction.row(
                        Sample.thing, key: [.text("a"), .blob([0])], lock: .skip)
                }
            }
        }
    }

    @Test("a key below the last one locked stops the program, naming both")
    func lockOrderOfKeys() async throws {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            try MemoryStoreTests.lock { transaction throws(StoreError) in
                _ = try transaction.row(
                    Sample.thing, key: [.text("b"), .blob([1])], lock: .wait)
                _ = try transaction.row(
                    Sample.thing, key: [.text("a"), .blob([2])], lock: .wait)
            }
        }
        #expect(said(result, "lock order: thing"))
        #expect(said(result, "text(\"a\")") && said(result, "text(\"b\")"))
    }

    @Test("a table of a lower rank after a higher one stops the program")
    func lockOrderOfTables() async throws {
        let result1 = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            try MemoryStoreTests.lock { transaction throws(StoreError) in
                _ = try transaction.row(
                    Sample.thing, key: [.text("a"), .blob([1])], lock: .wait)
                _ = try transaction.row(
                    Sample.order, key: [.integer(1), .text("")], lock: .wait)
            }
        }
        let result2 = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            try MemoryStoreTests.lock { transaction throws(StoreError) in
                _ = try transaction.row(Sample.late, key: [.integer(1)], lock: .wait)
                _ = try transaction.row(
                    Sample.order, key: [.integer(1), .text("")], lock: .wait)
            }
        }
        #expect(said(result1, "lock order: "))
        #expect(said(result2, "lock order: "))
    }

    @Test("after a savepoint the order goes on where it was before")
    func lockOrderAfterSavepoint() async throws {
        let result = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            try MemoryStoreTests.lock { transaction throws(StoreError) in
                _ = try transaction.row(
                    Sample.thing, key: [.text("b"), .blob([1])], lock: .wait)
                try transaction.savepoint { () throws(StoreError) in
                    _ = try transaction.row(
                        Sample.thing, key: [.text("a"), .blob([1])], lock: .wait)
                }
                _ = try transaction.row(
                    Sample.thing, key: [.text("a"), .blob([2])], lock: .wait)
            }
        }
        #expect(said(result, "text(\"b\")"))
    }

    @Test("a scan that locks against the order stops the program")
    func lockOrderOfScans() async throws {
        let result1 = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            try MemoryStoreTests.lock { transaction throws(StoreError) in
                try transaction.put(Sample.thing, Sample.row("a", [1]))
                try transaction.put(Sample.thing, Sample.row("a", [2]))
                _ = try transaction.rows(
                    Sample.thing, Scan(descending: true, limit: 9, lock: .wait))
            }
        }
        #expect(said(result1, "lock order: "))
    }

    @Test("a lock in a snapshot stops the program")
    func lockInSnapshot() async throws {
        let result1 = await #expect(
            processExitsWith: .failure, observing: [\.standardErrorContent]
        ) {
            try MemoryStore(tables: Sample.tables).read { snapshot throws(StoreError) in
                _ = try snapshot.rows(Sample.thing, Scan(limit: 1, lock: .wait))
            }
        }
        #expect(said(result1, "a lock in a snapshot"))
    }
}
