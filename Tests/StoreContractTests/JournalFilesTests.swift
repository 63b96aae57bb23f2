import CSQLite
import Model
import Testing

@testable import SQLiteStore

/// What a commit appends to the journal is held back until its sync; nobody must miss it.
@Suite struct JournalFilesTests {
    private let heap = Sample.heap

    private func row(_ number: Int64, _ round: UInt8) -> [ColumnValue] {
        [.integer(number), .blob([UInt8](repeating: round, count: 3_000))]
    }

    @Test("a transaction larger than the page cache reads what it has written itself")
    func largerThanTheCache() throws {
        #expect(JournalFiles.name != nil)
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            var options = SQLiteOptions()
            options.cacheSize = 64
            options.check = .always
            var store = try SQLiteStore(path: path, tables: Sample.tables, options: options)
            let reader = try store.reader()
            try store.put(heap, row(0, 1))
            for round in UInt8(2)...4 {
                try store.write { transaction throws(StoreError) in
                    for number in Int64(0)..<200 {
                        try transaction.put(heap, row(number, round))
                        // From the other end of the table: pages that have left the cache.
                        let earlier = try transaction.row(
                            heap, key: [.integer(number / 2)], lock: .none)
                        #expect(earlier == row(number / 2, round))
                    }
                    // Pages of this transaction that are in the journal are written once more.
                    try? transaction.savepoint { () throws(StoreError) in
                        for number in Int64(0)..<200 {
                            try transaction.put(heap, row(number, 0))
                        }
                        throw .conflict("taken back")
                    }
                    let others = try reader.rows(heap, Scan(limit: .max))
                    #expect(others.count == (round == 2 ? 1 : 200))
                    #expect(others.allSatisfy { $0[1] == row(0, round - 1)[1] })
                }
                let all = (Int64(0)..<200).map { row($0, round) }
                #expect(try reader.rows(heap, Scan(limit: .max)) == all)
            }
            reader.close()
            store.close()
            store = try SQLiteStore(path: path, tables: Sample.tables, options: options)
            #expect(try store.rows(heap) == (Int64(0)..<200).map { row($0, 4) })
            store.close()
        }
    }

    @Test("a reader of its own sees each commit as soon as it has returned")
    func eachCommitIsSeen() throws {
        try withFolder { folder throws in
            var options = SQLiteOptions()
            options.journalStep = 128 << 10
            let store = try SQLiteStore(
                path: "\(folder)/store.db", tables: Sample.tables, options: options)
            defer { store.close() }
            let reader = try store.reader()
            defer { reader.close() }
            // From one page of a commit to more than is held back, while the journal begins anew.
            for round in UInt8(1)...60 {
                let count = Int64(round % 5) * 20 + 1
                try store.write { transaction throws(StoreError) in
                    for number in 0..<count { try transaction.put(heap, row(number, round)) }
                }
                let seen = try reader.rows(heap, Scan(through: [.integer(count - 1)], limit: .max))
                #expect(seen == (0..<count).map { row($0, round) })
            }
        }
    }

    /// In a process of its own: SQLite takes settings only before anything else is asked of it.
    @Test("SQLite does not count memory, for which threads would wait, once a store is opened")
    func countsNoMemory() async {
        await #expect(processExitsWith: .success) {
            try withFolder { folder throws in
                let store = try SQLiteStore(path: "\(folder)/store.db", tables: Sample.tables)
                try store.put(Sample.heap, [.integer(1), .blob([1, 2, 3])])
                precondition(JournalFiles.name != nil)
                let counted = sqlite3_memory_used()
                precondition(counted == 0, "\(counted) bytes are counted")
                store.close()
            }
        }
    }
}
