import Model
import PostgresPeer
import Testing

@testable import PostgresStore

/// Rows that one statement reads, locks or writes: what came of them is as if each had one.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct PostgresBatchTests {
    private static let thing = Table(
        "thing", key: [Column("place", .integer), Column("name", .text)],
        values: [
            Column("note", .text, optional: true), Column("blob", .blob, optional: true),
            Column("number", .integer),
        ])

    /// Guarded by itself, and in the order of locks behind `thing`.
    private static let trace = Table(
        "trace", key: [Column("number", .integer)], values: [Column("note", .text)])

    private static func open(_ schema: String) throws -> PostgresStore {
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        options.schema = schema
        return try PostgresStore(
            tables: [thing.guarded(by: thing), trace.guarded(by: trace)], options: options)
    }

    private static func key(_ number: Int) -> [ColumnValue] {
        [.integer(Int64(number)), .text("n\(number % 7)\u{0}")]
    }

    private static func row(_ number: Int) -> [ColumnValue] {
        key(number) + [
            number % 3 == 0 ? .null : .text(number % 5 == 0 ? "" : "note \(number)"),
            number % 4 == 0 ? .null : .blob(number % 5 == 0 ? [] : [0, UInt8(number % 256)]),
            .integer(Int64(-number)),
        ]
    }

    /// More than two statements' worth, every third of them is no row, in no order.
    private static let numbers = (0..<1_300).map { ($0 * 7) % 1_300 }

    @Test("each answer is its key's, also of keys without a row, whatever the lock")
    func answers() throws {
        let store = try Self.open("batch_answers")
        defer { store.close() }
        let there = Self.numbers.filter { $0 % 3 != 1 }
        try store.write { transaction throws(StoreError) in
            for number in there { try transaction.insert(Self.thing, Self.row(number)) }
        }
        for lock in [RowLock.none, .wait, .share, .skip] {
            let before = store.effort.statements
            try store.writeFetching { transaction throws(StoreError) in
                let answers = try transaction.fetch(
                    Self.numbers.map { .row(Self.thing, key: Self.key($0), lock: lock) })
                for (number, answer) in zip(Self.numbers, answers) {
                    let row = number % 3 == 1 ? nil : Self.row(number)
                    #expect(answer == .row(row), "\(number) with \(lock)")
                }
            }
            // Not one for each of 1,300 keys.
            #expect(store.effort.statements - before < 100, "\(lock)")
        }
    }

    @Test("reads of several kinds and locks in one fetch keep their places")
    func mixed() throws {
        let store = try Self.open("batch_mixed")
        defer { store.close() }
        try store.write { transaction throws(StoreError) in
            for number in 0..<20 { try transaction.put(Self.thing, Self.row(number)) }
        }
        try store.writeFetching { transaction throws(StoreError) in
            let answers = try transaction.fetch([
                .row(Self.thing, key: Self.key(9), lock: .none),
                .rows(Self.thing, Scan(limit: 2)),
                .row(Self.thing, key: Self.key(3), lock: .wait),
                .row(Self.thing, key: Self.key(99), lock: .none),
                .row(Self.thing, key: Self.key(4), lock: .share),
                .row(Self.thing, key: Self.key(5), lock: .wait),
                .rows(Self.thing, Scan(limit: 0)),
            ])
            #expect(
                answers == [
                    .row(Self.row(9)), .rows([Self.row(0), Self.row(1)]), .row(Self.row(3)),
                    .row(nil), .row(Self.row(4)), .row(Self.row(5)), .rows([]),
                ])
            // Below what is held, and free.
            #expect(
                try transaction.fetch([
                    .row(Self.thing, key: Self.key(1), lock: .wait),
                    .row(Self.thing, key: Self.key(2), lock: .wait),
                ]) == [.row(Self.row(1)), .row(Self.row(2))])
        }
    }

    @Test("writes that are sent are carried out while the transaction goes on, and undone with it")
    func sent() throws {
        let store = try Self.open("batch_sent")
        defer { store.close() }
        // Whoever has written has a number as a writer.
        let writers = """
            SELECT count(DISTINCT pid)::bigint FROM pg_stat_activity JOIN pg_locks USING (pid)
            WHERE backend_xid IS NOT NULL AND relation = 'batch_sent.thing'::regclass
            """
        let other = try PostgresConnection(
            try PostgresPeer.shared().address, options: [], silence: 7_000)
        func hasWritten() throws(StoreError) -> Bool {
            try other.rows(writers, columns: [Column("writers", .integer)]) == [[.integer(1)]]
        }
        #expect(throws: StoreError.corrupt("enough")) {
            try store.writeFetching { transaction throws(StoreError) in
                for number in 0..<3 { try transaction.insert(Self.thing, Self.row(number)) }
                var isSeen = try hasWritten()
                #expect(!isSeen)
                let before = store.effort.roundTrips
                try transaction.sendWrites()
                for _ in 0..<10_000 where !isSeen { isSeen = try hasWritten() }
                #expect(isSeen)
                #expect(store.effort.roundTrips == before)
                try transaction.insert(Self.thing, Self.row(3))
                #expect(
                    try transaction.fetch([.rows(Self.thing, Scan(limit: 9))])
                        == [.rows((0..<4).map(Self.row))])
                throw .corrupt("enough")
            }
        }
        #expect(try store.rows(Self.thing).isEmpty)
        // What is wrong with them shows with the next answer.
        #expect {
            try store.writeFetching { transaction throws(StoreError) in
                for _ in 0..<2 { try transaction.insert(Self.thing, Self.row(1)) }
                try transaction.sendWrites()
                _ = try transaction.fetch([.rows(Self.thing, Scan(limit: 9))])
            }
        } throws: { error in
            if case .conflict = error as? StoreError { true } else { false }
        }
        #expect(try store.rows(Self.thing).isEmpty)
    }

    @Test("a lock is not waited for when writes were sent, whose rows its holder may wait for")
    func noWaitBehindSentWrites() throws {
        let (one, two) = (try Self.open("batch_no_wait"), try Self.open("batch_no_wait"))
        defer { for store in [one, two] { store.close() } }
        let held = Read.row(Self.trace, key: [.integer(9)], lock: .wait)
        try two.writeFetching { holder throws(StoreError) in
            #expect(try holder.fetch([held]) == [.row(nil)])
            try one.writeFetching { transaction throws(StoreError) in
                try transaction.insert(Self.thing, Self.row(1))
                try transaction.sendWrites()
                #expect(try transaction.fetch([held]) == [.busy])
            }
        }
        #expect(try one.rows(Self.thing) == [Self.row(1)])
    }

    @Test("the keys of several tables are held by one statement, beside those that read the rows")
    func heldTogether() throws {
        let store = try Self.open("batch_held_together")
        defer { store.close() }
        try store.write { transaction throws(StoreError) in
            for number in 0..<5 {
                try transaction.insert(Self.thing, Self.row(number))
                try transaction.insert(Self.trace, [.integer(Int64(number)), .text("\(number)")])
            }
        }
        func statements(_ lock: RowLock) throws -> UInt64 {
            let before = store.effort.statements
            try store.writeFetching { transaction throws(StoreError) in
                let numbers = [4, 0, 9, 2]
                let answers = try transaction.fetch(
                    numbers.flatMap { number -> [Read] in
                        [
                            .row(Self.trace, key: [.integer(Int64(number))], lock: lock),
                            .row(Self.thing, key: Self.key(number), lock: lock),
                        ]
                    })
                let expected = numbers.flatMap { number -> [ReadAnswer] in
                    if number > 4 { return [.row(nil), .row(nil)] }
                    let trace: [ColumnValue] = [.integer(Int64(number)), .text("\(number)")]
                    return [.row(trace), .row(Self.row(number))]
                }
                #expect(answers == expected, "\(lock)")
            }
            return store.effort.statements - before
        }
        let unlocked = try statements(.none)
        #expect(try statements(.wait) == unlocked + 1)
        #expect(try statements(.share) == unlocked + 1)
    }

    @Test("the last of several writes of one row counts, and reads see what was written")
    func written() throws {
        let store = try Self.open("batch_written")
        defer { store.close() }
        try store.write { transaction throws(StoreError) in
            for number in Self.numbers { try transaction.put(Self.thing, Self.row(number)) }
            var changed = Self.row(5)
            changed[4] = .integer(1)
            try transaction.put(Self.thing, changed)
            #expect(try transaction.row(Self.thing, key: Self.key(5), lock: .none) == changed)
            changed[4] = .integer(2)
            try transaction.put(Self.thing, Self.row(6))
            try transaction.put(Self.thing, changed)
            try transaction.delete(Self.thing, key: Self.key(7))
            try transaction.insert(Self.thing, Self.row(7))
            try transaction.insert(Self.thing, Self.row(2_000))
        }
        var rows: [[ColumnValue]] = []
        try store.read { view throws(StoreError) in
            rows = try view.rows(Self.thing, Scan(limit: 2_000))
        }
        var expected = (0..<1_300).map(Self.row) + [Self.row(2_000)]
        expected[5][4] = .integer(2)
        #expect(rows == expected)
    }

    private static let things = (0..<40).map { number -> [ColumnValue] in
        [.integer(Int64(number % 4)), .text("n\(number)"), .null, .null, .integer(Int64(number))]
    }

    @Test("scans that are alike give each its own rows, in its order and as many as it asks for")
    func scans() throws {
        let store = try Self.open("batch_scans")
        defer { store.close() }
        try store.write { transaction throws(StoreError) in
            for row in Self.things { try transaction.insert(Self.thing, row) }
        }
        var reads: [Read] = []
        var expected: [ReadAnswer] = []
        for place in [3, 9, 0, 1, 2] as [Int64] {
            for (limit, isDown) in [(0, false), (1, false), (3, true), (99, false), (99, true)] {
                for after in [nil, "n2", "n7"] as [String?] {
                    reads.append(
                        .rows(
                            Self.thing,
                            Scan(
                                prefix: [.integer(place)], after: after.map { [.text($0)] },
                                descending: isDown, limit: limit)))
                    var rows = Self.things.filter { row in
                        guard case .text(let name) = row[1] else { return false }
                        return row[0] == .integer(place) && after.map { $0 < name } ?? true
                    }
                    rows.sort { left, right in
                        guard case .text(let one) = left[1], case .text(let other) = right[1]
                        else { return false }
                        return isDown ? other < one : one < other
                    }
                    expected.append(.rows(Array(rows.prefix(limit))))
                }
            }
        }
        let before = store.effort
        try store.writeFetching { transaction throws(StoreError) in
            #expect(try transaction.fetch(reads) == expected)
        }
        // Four shapes, and what begins and ends a transaction.
        #expect(store.effort.statements - before.statements < 10)
        #expect(store.effort.roundTrips - before.roundTrips == 2)
    }

    @Test("rows of which the same columns changed are one statement, and so are those that go")
    func changed() throws {
        let store = try Self.open("batch_changed")
        defer { store.close() }
        try store.write { transaction throws(StoreError) in
            for row in Self.things { try transaction.insert(Self.thing, row) }
        }
        let before = store.effort.statements
        var expected = Self.things
        try store.write { transaction throws(StoreError) in
            for (number, row) in Self.things.enumerated() {
                if number % 5 == 0 {
                    try transaction.delete(Self.thing, key: Array(row[..<2]))
                    continue
                }
                let columns = number % 2 == 0 ? [4] : [2, 3]
                expected[number][2] = columns == [4] ? .null : .text("changed \(number)")
                expected[number][3] = columns == [4] || number % 3 == 0 ? .null : .blob([])
                if columns == [4] { expected[number][4] = .integer(Int64(-number)) }
                try transaction.update(Self.thing, expected[number], columns: columns)
            }
            try transaction.insert(Self.thing, Self.row(9_000))
        }
        #expect(store.effort.statements - before < 10)
        var rows: [[ColumnValue]] = []
        try store.read { view throws(StoreError) in
            rows = try view.rows(Self.thing, Scan(limit: 2_000))
        }
        let left = expected.enumerated().filter { $0.offset % 5 != 0 }.map(\.element)
        #expect(Set(rows) == Set(left + [Self.row(9_000)]))
        #expect(rows.count == left.count + 1)
    }

    @Test("where one of many rows to change is not there, nothing is written", arguments: [1, 5])
    func changedNothing(_ count: Int) throws {
        let store = try Self.open("batch_absent_\(count)")
        defer { store.close() }
        try store.write { transaction throws(StoreError) in
            for number in 1..<count { try transaction.insert(Self.thing, Self.row(number)) }
        }
        let refused = isConflict { () throws(StoreError) in
            try store.write { transaction throws(StoreError) in
                for number in 0..<count {
                    var row = Self.row(number)
                    row[4] = .integer(77)
                    try transaction.update(Self.thing, row, columns: [4])
                }
            }
        }
        #expect(refused)
        var rows: [[ColumnValue]] = []
        try store.read { view throws(StoreError) in
            rows = try view.rows(Self.thing, Scan(limit: 2_000))
        }
        #expect(Set(rows) == Set((1..<count).map(Self.row)))
    }

    @Test("of keys below what is held those are busy that another holds, and no others")
    func busy() throws {
        let (one, other) = (try Self.open("batch_busy"), try Self.open("batch_busy"))
        defer { (one.close(), other.close()) }
        try one.write { transaction throws(StoreError) in
            for number in [1, 2, 3, 4, 5, 8, 9] {
                try transaction.insert(Self.thing, Self.row(number))
            }
        }
        try other.write { transaction throws(StoreError) in
            // Rows, and keys of rows that are not there.
            for number in [2, 4, 6] {
                _ = try transaction.row(Self.thing, key: Self.key(number), lock: .wait)
            }
            // A scan holds the row, and not its key.
            let scanned = try transaction.rows(
                Self.thing,
                Scan(after: Self.key(7), through: Self.key(8), limit: 9, lock: .skip))
            #expect(scanned == [Self.row(8)])
            try one.writeFetching { transaction throws(StoreError) in
                func fetch(_ numbers: [Int]) throws(StoreError) -> [ReadAnswer] {
                    try transaction.fetch(
                        numbers.map { .row(Self.thing, key: Self.key($0), lock: .wait) })
                }
                #expect(try fetch([9]) == [.row(Self.row(9))])
                #expect(
                    try fetch([8, 7, 6, 5, 4, 3, 2, 1]) == [
                        .busy, .row(nil), .busy, .row(Self.row(5)), .busy, .row(Self.row(3)), .busy,
                        .row(Self.row(1)),
                    ])
            }
        }
    }

    @Test("a row that is there already undoes all of its savepoint, and nothing before it")
    func undone() throws {
        let store = try Self.open("batch_undone")
        defer { store.close() }
        try store.write { transaction throws(StoreError) in
            for number in 0..<3 { try transaction.insert(Self.thing, Self.row(number)) }
            #expect(throws: StoreError.self) {
                try transaction.savepoint { () throws(StoreError) in
                    for number in [10, 11, 2, 12] {
                        try transaction.insert(Self.thing, Self.row(number))
                    }
                }
            }
            try transaction.insert(Self.thing, Self.row(20))
        }
        var rows: [[ColumnValue]] = []
        try store.read { view throws(StoreError) in
            rows = try view.rows(Self.thing, Scan(limit: 100))
        }
        #expect(rows == [0, 1, 2, 20].map(Self.row))
    }

    private func isConflict(_ body: () throws(StoreError) -> Void) -> Bool {
        do throws(StoreError) {
            try body()
            return false
        } catch {
            if case .conflict = error { return true }
            return false
        }
    }
}
