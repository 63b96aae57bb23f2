import MemoryStore
import Model
import Testing
@testable import WorkingSet

/// What a working set spares the engine, and what it must not. What it answers is held by the
/// suites of the contract, which run on it too.
@Suite struct WorkingSetTests {
    private let thing = Sample.thing
    private let memory = MemoryStore(tables: Sample.tables)
    private let known = WorkingSet(carrying: 1 << 20)

    init() throws {
        memory.isSoleWriter = true
        for id in UInt8(1)...3 {
            try memory.put(thing, Sample.row("a", [id], number: Int64(id), due: Int64(id)))
        }
    }

    private func key(_ id: UInt8) -> [ColumnValue] { [.text("a"), .blob([id])] }

    /// What one transaction costs the engine.
    private func cost(
        of body: (any StoreTransaction) throws(StoreError) -> Void
    ) throws -> WorkingSet.Effort {
        let before = known.effort
        try known.write(in: memory, body)
        var after = known.effort
        after.answered -= before.answered
        after.reads -= before.reads
        after.scans -= before.scans
        after.writes -= before.writes
        after.evicted -= before.evicted
        return after
    }

    @Test("a row is read once, also over transactions, and so is that there is none")
    func readOnce() throws {
        for reads in [UInt64(2), 0] {
            let cost = try cost { transaction throws(StoreError) in
                for _ in 0..<5 {
                    _ = try transaction.row(thing, key: key(1), lock: .wait)
                    _ = try transaction.row(thing, key: key(9), lock: .none)
                }
            }
            #expect(cost.reads == reads && cost.answered == 10 - reads)
        }
    }

    @Test("a row that many steps change is written once; one that ends as it was, not at all")
    func writtenOnce() throws {
        let cost = try cost { transaction throws(StoreError) in
            for number in Int64(10)..<20 {
                try transaction.savepoint { () throws(StoreError) in
                    _ = try transaction.row(thing, key: key(1), lock: .wait)
                    try transaction.put(thing, Sample.row("a", [1], number: number, due: 1))
                }
            }
        }
        #expect(cost.writes == 1)
        #expect(try memory.row(thing, key(1)) == Sample.row("a", [1], number: 19, due: 1))
    }

    @Test("what a step wrote is gone when it fails, read or not, also where a scan wrote it before")
    func undone() throws {
        let before = try memory.rows(thing)
        _ = try cost { transaction throws(StoreError) in
            _ = try transaction.row(thing, key: key(1), lock: .none)
            do throws(StoreError) {
                try transaction.savepoint { () throws(StoreError) in
                    for id in UInt8(1)...4 {
                        try transaction.put(thing, Sample.row("a", [id], number: 99))
                    }
                    try transaction.delete(thing, key: key(3))
                    let seen = try transaction.rows(thing, Scan(limit: 9))
                    #expect(seen.count == 3 && seen.allSatisfy { $0[2] == .integer(99) })
                    throw .conflict("on purpose")
                }
            } catch {}
            #expect(try transaction.row(thing, key: key(4), lock: .none) == nil)
            #expect(try transaction.rows(thing, Scan(limit: 9)) == before)
        }
        #expect(try memory.rows(thing) == before)
    }

    @Test("rows that are taken back before they were written or read do not heap up")
    func takenBack() throws {
        let small = WorkingSet(carrying: 16 << 10)
        for number in UInt64(0)..<1_000 {
            try small.write(in: memory) { transaction throws(StoreError) in
                do throws(StoreError) {
                    try transaction.savepoint { () throws(StoreError) in
                        let id = MessageID(high: 7, low: number).bytes
                        try transaction.put(thing, Sample.row("a", id, number: 1))
                        throw .conflict("on purpose")
                    }
                } catch {}
            }
        }
        // More than 800 of them do not fit.
        #expect(small.effort.evicted > 800)
        #expect(small.bytes <= 16 << 10)
    }

    @Test("a scan that was whole is answered from memory, and follows every change")
    func knownRange() throws {
        let scan = Scan(index: "thing_by_number", prefix: [.text("a")], limit: 9)
        let first = try cost { transaction throws(StoreError) in
            #expect(try transaction.rows(thing, scan).count == 3)
        }
        #expect(first.scans == 1)
        let second = try cost { transaction throws(StoreError) in
            try transaction.put(thing, Sample.row("a", [7], number: 0))
            try transaction.put(thing, Sample.row("a", [1], number: 8, due: 1))
            try transaction.delete(thing, key: key(2))
            try transaction.put(thing, Sample.row("b", [1], number: 1))
            let numbers = try transaction.rows(thing, scan).map { $0[2] }
            #expect(numbers == [.integer(0), .integer(3), .integer(8)])
            var part = scan
            part.after = [.integer(0)]
            part.descending = true
            part.limit = 1
            #expect(try transaction.rows(thing, part).map { $0[2] } == [.integer(8)])
        }
        #expect(second.scans == 0)
        #expect(second.writes == 4)
    }

    @Test("a scan that was cut, or bounded, is no knowledge of the rest")
    func cutScan() throws {
        for scan in [
            Scan(index: "thing_by_number", prefix: [.text("a")], limit: 3),
            Scan(index: "thing_by_number", prefix: [.text("a")], after: [.integer(1)], limit: 9),
        ] {
            let cost = try cost { transaction throws(StoreError) in
                _ = try transaction.rows(thing, scan)
                _ = try transaction.rows(thing, scan)
            }
            #expect(cost.scans == 2)
        }
    }

    @Test("a scan over a few numbers that are known needs no engine, and over others does")
    func consecutive() throws {
        let log = Table(
            "log", key: [Column("app", .text), Column("number", .integer)],
            values: [Column("text", .text)])
        let memory = MemoryStore(tables: [log])
        memory.isSoleWriter = true
        func row(_ number: Int64) -> [ColumnValue] {
            [.text("a"), .integer(number), .text("n\(number)")]
        }
        func scan(_ after: Int64, _ through: Int64, limit: Int = 9) -> Scan {
            Scan(
                prefix: [.text("a")], after: [.integer(after)], through: [.integer(through)],
                limit: limit)
        }
        try memory.put(log, row(1))
        let known = WorkingSet(carrying: 1 << 20)
        func rows(_ scan: Scan) throws -> (rows: [[ColumnValue]], scans: UInt64) {
            let before = known.effort.scans
            var found: [[ColumnValue]] = []
            try known.write(in: memory) { transaction throws(StoreError) in
                found = try transaction.rows(log, scan)
            }
            return (found, known.effort.scans - before)
        }
        try known.write(in: memory) { transaction throws(StoreError) in
            for number in Int64(2)...30 { try transaction.insert(log, row(number)) }
            try transaction.delete(log, key: [.text("a"), .integer(4)])
        }
        #expect(try rows(scan(1, 3)) == ([row(2), row(3)], 0))
        var backwards = scan(1, 3)
        backwards.descending = true
        #expect(try rows(backwards) == ([row(3), row(2)], 1))
        // One of them is known not to be there.
        #expect(try rows(scan(2, 5)) == ([row(3), row(5)], 0))
        // The first is nobody's that is known.
        #expect(try rows(scan(0, 2)) == ([row(1), row(2)], 1))
        // What was read by that scan is known now.
        #expect(try rows(scan(0, 2)) == ([row(1), row(2)], 0))
        // More than the scan asks for, or than are looked for one by one.
        #expect(try rows(scan(4, 8, limit: 2)) == ([row(5), row(6)], 1))
        #expect(try rows(scan(5, 25, limit: 99)).scans == 1)
        #expect(try rows(scan(8, 8)) == ([], 1))
        #expect(try rows(scan(.min, .max)).scans == 1)
    }

    @Test("a change that a scan cannot show waits for the commit")
    func unrelatedChange() throws {
        let cost = try cost { transaction throws(StoreError) in
            for number in Int64(1)...5 {
                try transaction.put(thing, Sample.row("b", [1], number: number))
                let app = Scan(prefix: [.text("c")], after: [.blob([0])], limit: 9)
                _ = try transaction.rows(thing, app)
            }
        }
        #expect(cost.scans == 5)
        #expect(cost.writes == 1)
    }

    @Test("what is kept stays near its bound, and what goes is read again")
    func bound() throws {
        let small = WorkingSet(carrying: 64 * 1024)
        for round in 0..<50 {
            try small.write(in: memory) { transaction throws(StoreError) in
                for id in 0..<20 {
                    let row = Sample.row(
                        "x\(round)", [UInt8(id)], note: String(repeating: "n", count: 400))
                    try transaction.put(thing, row)
                }
            }
            #expect(small.bytes < 96 * 1024)
        }
        #expect(small.effort.evicted > 700)
        let reads = small.effort.reads
        try small.write(in: memory) { transaction throws(StoreError) in
            let row = try transaction.row(thing, key: [.text("x0"), .blob([0])], lock: .none)
            #expect(row != nil)
        }
        #expect(small.effort.reads == reads + 1)
    }

    @Test("ranges count with their rows, and one that is over holds none")
    func rangesCount() throws {
        let counted = RangeBytes()
        let rows = TableRows(thing, counting: counted)
        let scan = Scan(prefix: [.text("a")], limit: 99)
        weak var gone: Slot?
        let range = try {
            let slots = (0..<50).map { id in
                let row = Sample.row("a", [UInt8(id)])
                let key = Array(row[..<thing.keyCount])
                let slot = Slot(key, at: SortKey(key), in: rows)
                slot.become(row)
                rows.slots.set(slot)
                return slot
            }
            let range = rows.know(scan, slots)
            #expect(counted.total > 50 * 64)
            gone = slots[7]
            rows.forget(slots[7])
            // Known anew, as by each turn over the same rows.
            let rest = Array(slots[..<7] + slots[8...])
            let again = rows.know(scan, rest)
            #expect(again.rows.count == 49 && range.rows.isEmpty)
            for slot in rest { rows.forget(slot) }
            #expect(again.isGone)
            return again
        }()
        #expect(gone == nil)
        #expect(range.rows.isEmpty)
        #expect(counted.total == 0)
    }

    @Test("large ranges go before their bound is passed, however few they are")
    func fewLargeRanges() throws {
        for group in UInt8(0)..<60 {
            for id in UInt8(0)..<100 {
                try memory.put(thing, Sample.row("g\(group)", [id]))
            }
        }
        let small = WorkingSet(carrying: 256 << 10)
        for group in UInt8(0)..<60 {
            try small.write(in: memory) { transaction throws(StoreError) in
                let scan = Scan(prefix: [.text("g\(group)")], limit: 200)
                #expect(try transaction.rows(thing, scan).count == 100)
            }
            #expect(small.bytes <= 320 << 10)
        }
    }

    @Test("rows that are written and not asked for again do not drive out those that are")
    func seldomRead() throws {
        let log = Table(
            "log", key: [Column("number", .integer)], values: [Column("text", .text)],
            seldomRead: true)
        let memory = MemoryStore(tables: [thing, log])
        memory.isSoleWriter = true
        try memory.put(thing, Sample.row("a", [1], number: 1, due: 1))
        let small = WorkingSet(carrying: 64 * 1024)
        for round in Int64(0)..<50 {
            let reads = small.effort.reads
            try small.write(in: memory) { transaction throws(StoreError) in
                // Once in so many rounds, as somebody who is there, and not busy.
                if round % 10 == 0 {
                    _ = try transaction.row(thing, key: key(1), lock: .none)
                }
                for number in 0..<Int64(20) {
                    let text = String(repeating: "n", count: 400)
                    try transaction.insert(log, [.integer(20 * round + number), .text(text)])
                }
            }
            #expect(small.effort.reads == reads + (round == 0 ? 1 : 0))
            #expect(small.bytes < 96 * 1024)
        }
        #expect(small.effort.evicted > 700)
    }

    @Test(
        "after a transaction that failed nothing is known",
        arguments: [
            MemoryStore.CommitFault.full, .conflict, .lostBeforeCommit, .lostAfterCommit,
        ])
    func failure(_ fault: MemoryStore.CommitFault) throws {
        memory.faults = [fault]
        #expect(throws: StoreError.self) {
            try known.write(in: memory) { transaction throws(StoreError) in
                _ = try transaction.row(thing, key: key(1), lock: .wait)
                try transaction.put(thing, Sample.row("a", [1], number: 77))
            }
        }
        let isCommitted = fault == .lostAfterCommit
        let cost = try cost { transaction throws(StoreError) in
            let row = try transaction.row(thing, key: key(1), lock: .none)
            #expect(row?[2] == .integer(isCommitted ? 77 : 1))
        }
        #expect(cost.reads == 1)
    }

    @Test("a row that went behind its back is a conflict, and the next try reads anew")
    func changedBehind() throws {
        _ = try cost { transaction throws(StoreError) in
            _ = try transaction.row(thing, key: key(1), lock: .none)
        }
        try memory.write { transaction throws(StoreError) in
            try transaction.delete(thing, key: key(1))
        }
        func change(_ number: Int64 = 5) throws {
            try known.write(in: memory) { transaction throws(StoreError) in
                _ = try transaction.row(thing, key: key(1), lock: .wait)
                try transaction.put(thing, Sample.row("a", [1], number: number))
            }
        }
        // A step that fails by it is not the only one: all of the transaction does.
        #expect(throws: StoreError.self) {
            try known.write(in: memory) { transaction throws(StoreError) in
                do throws(StoreError) {
                    try transaction.savepoint { () throws(StoreError) in
                        try transaction.put(thing, Sample.row("a", [1], number: 5))
                        _ = try transaction.rows(thing, Scan(limit: 9))
                    }
                } catch {}
            }
        }
        try change()
        try memory.write { transaction throws(StoreError) in
            try transaction.delete(thing, key: key(1))
        }
        #expect(throws: StoreError.self) { try change(6) }
        try change(6)
        #expect(try memory.row(thing, key(1))?[2] == .integer(6))
    }

    @Test("where others write too, a row is read again unless it is held, and nothing is carried")
    func otherWriters() throws {
        memory.isSoleWriter = false
        for _ in 0..<2 {
            let cost = try cost { transaction throws(StoreError) in
                for lock in [RowLock.none, .none, .wait, .none, .wait] {
                    _ = try transaction.row(thing, key: key(1), lock: lock)
                }
                _ = try transaction.rows(thing, Scan(prefix: [.text("a")], limit: 9))
                _ = try transaction.rows(thing, Scan(prefix: [.text("a")], limit: 9))
            }
            #expect(cost.reads == 3)
            #expect(cost.scans == 2)
        }
    }
}
