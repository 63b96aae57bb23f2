import MemoryStore
import Model
import Testing
import WorkingSet

/// What is known of rows where each read is a round trip.
@Suite struct FetchedRowsTests {
    private let thing = Sample.thing
    private let memory = MemoryStore(tables: Sample.tables)
    private let engine: DistantEngine

    init() throws {
        engine = DistantEngine(memory, lockRanks: ["thing": 0, "order": 1])
        for number in Int64(1)...5 {
            try memory.put(thing, Sample.row("a", [UInt8(number)], number: number))
        }
    }

    private func key(_ id: UInt8) -> [ColumnValue] { [.text("a"), .blob([id])] }

    private func transaction(
        guardedBy guardOf: @escaping (Table) -> RowGuard? = { _ in nil },
        _ body: (FetchedRows) throws(StoreError) -> Void
    ) throws(StoreError) {
        try engine.writeFetching({ transaction throws(StoreError) in
            let rows = FetchedRows(transaction, guardedBy: guardOf)
            try body(rows)
            try rows.flush()
        })
    }

    private func number(
        _ rows: FetchedRows, _ id: UInt8, lock: RowLock = .none
    ) throws(StoreError) -> ColumnValue? {
        try rows.row(thing, key: key(id), lock: lock)?[2]
    }

    @Test("what was flushed between two requests stays when the second misses something")
    func flushedBetween() throws {
        try transaction { rows throws(StoreError) in
            #expect(
                try rows.run { () throws(StoreError) in
                    try rows.insert(thing, Sample.row("a", [9], number: 9))
                })
            try rows.flush(isSent: true)
            #expect(engine.spent.writes == 1)
            func request() throws(StoreError) {
                let seen = try number(rows, 9)
                #expect(seen == .integer(9))
                try rows.put(thing, Sample.row("a", [9], number: 10))
                _ = try number(rows, 1)
            }
            #expect(try !rows.run(request))
            try rows.flush(isSent: true)
            #expect(engine.spent.writes == 1)
            try rows.fetchMissing()
            #expect(try rows.run(request))
        }
        #expect(engine.spent.writes == 2)
        #expect(try memory.row(thing, key(9))?[2] == .integer(10))
    }

    @Test("a request that misses leaves nothing but what it missed, and runs again")
    func unwinding() throws {
        var seen: [ColumnValue?] = []
        try transaction { rows throws(StoreError) in
            func request() throws(StoreError) {
                try rows.put(thing, Sample.row("a", [9], number: 9))
                do throws(StoreError) {
                    try rows.savepoint { () throws(StoreError) in
                        seen.append(try number(rows, 1))
                    }
                } catch {
                    // It goes on as if nothing were: nothing of that counts.
                    try rows.put(thing, Sample.row("a", [8], number: 8))
                }
            }
            #expect(try !rows.run(request))
            #expect(rows.missing == [.row(thing, key: key(1), lock: .none)])
            try rows.fetchMissing()
            #expect(try rows.run(request))
        }
        #expect(seen == [.integer(1)])
        #expect(try memory.row(thing, key(9)) != nil)
        #expect(try memory.row(thing, key(8)) == nil)
        #expect(engine.spent == .init(rounds: 1, reads: 1, rows: 1, writes: 1))
    }

    @Test("several requests miss together: one fetch for all")
    func together() throws {
        try transaction { rows throws(StoreError) in
            for id in UInt8(1)...5 {
                let isDone = try rows.run { () throws(StoreError) in
                    _ = try number(rows, id, lock: .wait)
                }
                #expect(!isDone)
            }
            try rows.fetchMissing()
            for id in UInt8(1)...5 {
                let isDone = try rows.run { () throws(StoreError) in
                    #expect(try number(rows, id) == .integer(Int64(id)))
                }
                #expect(isDone)
            }
        }
        #expect(engine.spent.rounds == 1)
    }

    @Test("a scan shows what was written since, and asks for as many more as may be gone")
    func scans() throws {
        let scan = Scan(index: "thing_by_number", prefix: [.text("a")], limit: 2)
        try transaction { rows throws(StoreError) in
            rows.fetchesInPlace = true
            #expect(try rows.rows(thing, scan).map { $0[2] } == [.integer(1), .integer(2)])
            try rows.delete(thing, key: key(1))
            try rows.put(thing, Sample.row("a", [7], number: 0))
            // Behind what was fetched there may be others before it.
            try rows.put(thing, Sample.row("a", [2], number: 9))
            #expect(try rows.rows(thing, scan).map { $0[2] } == [.integer(0), .integer(3)])
            var last = scan
            last.descending = true
            #expect(try rows.rows(thing, last).map { $0[2] } == [.integer(9), .integer(5)])
        }
        #expect(engine.spent.rounds == 3)
    }

    @Test("what was fetched before a lock is fetched again after it")
    func staleness() throws {
        let key = key(1)
        for (rowGuard, rounds) in [
            (nil, 3), (.itself, 2), (.row(of: thing, columns: [0, 1]), 3),
            (.either(.itself, .row(of: thing, columns: [0, 1])), 3),
        ] as [(RowGuard?, Int)] {
            engine.spent = .init()
            func guardOf(_ table: Table) -> RowGuard? { table == thing ? .itself : rowGuard }
            try transaction(guardedBy: guardOf) { rows throws(StoreError) in
                let order = Read.row(
                    Sample.order, key: [.integer(1), .text("k")], lock: .none)
                func request() throws(StoreError) {
                    _ = try rows.row(thing, key: key, lock: .wait)
                    _ = try rows.row(order.table, key: [.integer(1), .text("k")], lock: .none)
                }
                // As a plan that lies would have it.
                _ = rows.hint(order.table, key: [.integer(1), .text("k")], lock: .none)
                try rows.fetchMissing()
                var runs = 1
                while try !rows.run(request) {
                    try rows.fetchMissing()
                    runs += 1
                }
                #expect(runs == rounds, "\(String(describing: rowGuard))")
            }
            #expect(engine.spent.rounds == rounds)
        }
    }

    @Test("a row that another transaction holds is a conflict for who needs it")
    func busy() throws {
        engine.isHeldElsewhere = { $0 == .row(self.thing, key: self.key(1), lock: .wait) }
        try transaction { rows throws(StoreError) in
            for (id, outcome) in [(UInt8(1), false), (2, true)] {
                func request() throws(StoreError) {
                    do throws(StoreError) {
                        let found = try number(rows, id, lock: .wait)
                        #expect(outcome && found != nil)
                    } catch {
                        if rows.missing.isEmpty {
                            #expect(!outcome)
                            guard case .conflict = error else { throw error }
                        } else {
                            throw error
                        }
                    }
                }
                #expect(try !rows.run(request))
                try rows.fetchMissing()
                #expect(try rows.run(request))
            }
        }
    }

    @Test("a fetch locks in the order of ranks, whatever the order of the reads")
    func lockOrder() throws {
        let ranks = ["order": 0, "thing": 1]
        let strict = MemoryStore(tables: Sample.tables, lockRanks: ranks)
        let engine = DistantEngine(strict, lockRanks: ranks)
        try engine.writeFetching({ transaction throws(StoreError) in
            let answers = try transaction.fetch([
                .row(thing, key: key(2), lock: .wait), .row(thing, key: key(1), lock: .wait),
                .rows(thing, Scan(limit: 3)),
                .row(Sample.order, key: [.integer(1), .text("k")], lock: .wait),
            ])
            #expect(answers == [.row(nil), .row(nil), .rows([]), .row(nil)])
        })
    }

    // MARK: What others write meanwhile

    private func twice(_ table: Table) -> RowGuard? { .either(.itself, .itself) }

    /// A transaction of another node, while one of the engine's is open.
    private func another(
        _ body: (any StoreTransaction) throws(StoreError) -> Void
    ) throws(StoreError) { try memory.view().write(body) }

    @Test("of a row of two guards what another wrote of it meanwhile stays")
    func columnsOfOthers() throws {
        memory.betweenReads = {}
        try transaction(guardedBy: twice) { rows throws(StoreError) in
            rows.fetchesInPlace = true
            _ = try rows.row(thing, key: key(1), lock: .none)
            try rows.put(thing, Sample.row("a", [1], number: 7))
            try another { transaction throws(StoreError) in
                try transaction.put(thing, Sample.row("a", [1], number: 1, note: "theirs"))
            }
            _ = try rows.row(thing, key: key(2), lock: .wait)
            let again = try rows.row(thing, key: key(1), lock: .none)
            #expect(again == Sample.row("a", [1], number: 7, note: "theirs"))
        }
        let stored = try memory.row(thing, key(1))
        #expect(stored == Sample.row("a", [1], number: 7, note: "theirs"))
    }

    @Test("what another was first with is a conflict, and nothing is written")
    func firstWins() throws {
        memory.betweenReads = {}
        for theirs in [nil, Sample.row("a", [9], number: 9)] {
            let id: UInt8 = theirs == nil ? 1 : 9
            #expect(throws: StoreError.self) {
                try transaction(guardedBy: twice) {
                    rows throws(StoreError) in
                    rows.fetchesInPlace = true
                    _ = try rows.row(thing, key: key(id), lock: .none)
                    try rows.put(thing, Sample.row("a", [id], number: 7))
                    try another { transaction throws(StoreError) in
                        if let theirs {
                            try transaction.insert(thing, theirs)
                        } else {
                            try transaction.delete(thing, key: key(id))
                        }
                    }
                    _ = try rows.row(thing, key: key(2), lock: .wait)
                    _ = try rows.row(thing, key: key(id), lock: .none)
                    Issue.record("goes on")
                }
            }
            #expect(try memory.row(thing, key(id)) == theirs)
        }
    }

    @Test("what an unwound request inserted without looking is not known")
    func unwoundInsert() throws {
        try transaction { rows throws(StoreError) in
            let isDone = try rows.run { () throws(StoreError) in
                try rows.insert(thing, Sample.row("a", [1], number: 9))
                _ = try number(rows, 2)
            }
            #expect(!isDone)
            var seen: ColumnValue?
            while try !rows.run({ () throws(StoreError) in seen = try number(rows, 1) }) {
                try rows.fetchMissing()
            }
            #expect(seen == .integer(1))
        }
    }

    @Test("a row that is passed over is passed over once, and an own one never")
    func passedOver() throws {
        try transaction { rows throws(StoreError) in
            func request() throws(StoreError) {
                #expect(try number(rows, 8, lock: .skip) == nil)
                try rows.insert(thing, Sample.row("a", [8], number: 8))
                #expect(try number(rows, 8, lock: .skip) == .integer(8))
            }
            #expect(try !rows.run(request))
            try rows.fetchMissing()
            #expect(try rows.run(request))
        }
        #expect(engine.spent == .init(rounds: 1, reads: 1, rows: 1, writes: 1))
    }

    @Test("what was read while its guard was held stays good when other guards are locked")
    func protection() throws {
        let order: [ColumnValue] = [.integer(1), .text("k")]
        // The first column of the key is that of the guard.
        let holder = Table("holder", key: [Column("holder", .integer)], values: [])
        let memory = MemoryStore(tables: [holder, Sample.order])
        let engine = DistantEngine(memory, lockRanks: ["holder": 0])
        try engine.writeFetching { transaction throws(StoreError) in
            let rows = FetchedRows(transaction) { table in
                table == holder ? .itself : .row(of: holder, columns: [0])
            }
            rows.fetchesInPlace = true
            _ = try rows.row(holder, key: [.integer(1)], lock: .wait)
            _ = try rows.row(Sample.order, key: order, lock: .none)
            _ = try rows.rows(Sample.order, Scan(prefix: [.integer(1)], limit: 9))
            _ = try rows.row(holder, key: [.integer(2)], lock: .wait)
            #expect(rows.effort.rounds == 4)
            _ = try rows.row(Sample.order, key: order, lock: .none)
            _ = try rows.rows(Sample.order, Scan(prefix: [.integer(1)], limit: 9))
            #expect(rows.effort.rounds == 4)
            // Nothing is known that was read before its own guard was locked.
            _ = try rows.rows(Sample.order, Scan(prefix: [.integer(3)], limit: 9))
            _ = try rows.row(holder, key: [.integer(3)], lock: .wait)
            _ = try rows.rows(Sample.order, Scan(prefix: [.integer(3)], limit: 9))
            #expect(rows.effort.rounds == 7)
        }
    }
}
