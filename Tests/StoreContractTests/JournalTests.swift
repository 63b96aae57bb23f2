import Foundation
import Model
import Testing

@testable import SQLiteStore

/// The write-ahead journal stays small, and is moved by the writer alone.
@Suite struct JournalTests {
    let thing = Sample.thing

    private func size(_ path: String) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.size] as? Int) ?? -1
    }

    private func smallJournal() -> SQLiteOptions {
        var options = SQLiteOptions()
        options.journalStep = 128 << 10
        options.journalLimit = 512 << 10
        options.busyTimeout = 20
        return options
    }

    @Test("under load the journal keeps its limit, though nobody calls checkpoint")
    func limit() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(
                path: path, tables: Sample.tables, options: smallJournal())
            defer { store.close() }
            let reader = try store.reader()
            defer { reader.close() }
            var most = 0
            for round in 0..<200 {
                try Sample.fill(store, round)
                _ = try reader.rows(thing, Scan(limit: 5))
                most = max(most, size("\(path)-wal"))
            }
            #expect(most > 100 << 10, "the load is too small to prove anything")
            #expect(most <= 512 << 10)
            #expect(store.checkpointError == nil)
        }
    }

    @Test("the bytes written to the journal are counted, also where it begins anew")
    func counted() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(path: path, tables: Sample.tables)
            defer { store.close() }
            let before = store.effort
            try Sample.fill(store, 0)
            let filled = store.effort
            // The file begins with a header of 32 bytes; the schema is in it, too.
            #expect(before.journalBytes > 0)
            #expect(filled.journalBytes == UInt64(size("\(path)-wal") - 32))
            // Eight rows, BEGIN and COMMIT.
            #expect(filled.statements - before.statements == 10)
            #expect(filled.journalSize == store.journalSize && filled.journalSize > 0)
            try store.checkpoint()
            // The journal is moved: the next write begins it anew, with fewer pages.
            try store.write { transaction throws(StoreError) in
                try transaction.put(thing, Sample.row("a", [9], due: 1, data: []))
            }
            let again = store.effort.journalBytes - filled.journalBytes
            #expect(again == UInt64(store.journalSize / 4_096 * 4_120))
            #expect(again > 0 && again < filled.journalBytes - before.journalBytes)
            // What writes nothing leaves the journal as it is.
            try store.write { transaction throws(StoreError) in
                _ = try transaction.row(thing, key: [.text("a"), .blob([9])], lock: .none)
            }
            #expect(store.effort.journalBytes - filled.journalBytes == again)
        }
    }

    @Test("a reader that holds its snapshot makes the journal grow, and nothing fails")
    func heldSnapshot() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(
                path: path, tables: Sample.tables, options: smallJournal())
            defer { store.close() }
            let reader = try store.reader()
            defer { reader.close() }
            try store.put(thing, Sample.row("b", [1]))
            try reader.read { snapshot throws(StoreError) in
                for round in 0..<40 { try Sample.fill(store, round) }
                let rows = try snapshot.rows(thing, Scan(limit: .max))
                #expect(rows == [Sample.row("b", [1])])
            }
            #expect(size("\(path)-wal") > 512 << 10)
            // Not later than two steps further.
            for round in 41..<52 { try Sample.fill(store, round) }
            #expect(size("\(path)-wal") <= 512 << 10, "not trimmed after the reader")
            #expect(store.journalSize <= 512 << 10)
            #expect(store.lockWaits == 0, "a commit waited for the reader")
        }
    }

    @Test("commits beside a backup wait for nobody, and the journal shrinks after it")
    func backup() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(
                path: path, tables: Sample.tables, options: smallJournal())
            defer { store.close() }
            let data = [UInt8](repeating: 7, count: 100_000)
            for number in UInt8(0)..<60 {
                try store.put(thing, Sample.row("b", [number], data: data))
            }
            try store.checkpoint()
            var (rounds, steps, most) = (0, 0, 0)
            try SQLiteBackup.copy(store: path, to: "\(folder)/copy", replaces: false) { _ in
                steps += 1
                for _ in 0..<20 {
                    #expect(throws: Never.self) { try Sample.fill(store, rounds) }
                    if store.isCheckpointDue {
                        #expect(throws: Never.self) { try store.checkpoint() }
                    }
                    rounds += 1
                }
                most = max(most, size("\(path)-wal"))
            } check: { copy throws(StoreError) in
                try copy.verify(tables: Sample.tables, rules: [])
                let count = try copy.count(thing)
                #expect(count == 60)
            }
            #expect(steps > 1 && most > 512 << 10, "the load is too small to prove anything")
            #expect(store.isJournalFull && store.lockWaits == 0)
            try store.checkpoint()
            #expect(!store.isJournalFull)
            for round in rounds..<rounds + 10 { try Sample.fill(store, round) }
            #expect(size("\(path)-wal") <= 512 << 10 && store.lockWaits == 0)
        }
    }

    @Test("a backup gives up beside which the journal grows too much, and leaves nothing")
    func backupGivesUp() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(
                path: path, tables: Sample.tables, options: smallJournal())
            defer { store.close() }
            #expect {
                try SQLiteBackup.copy(
                    store: path, to: "\(folder)/copy", replaces: false, journalMax: 100_000
                ) { _ in
                    for round in 0..<20 {
                        #expect(throws: Never.self) { try Sample.fill(store, round) }
                    }
                } check: { _ in
                }
            } throws: { "\($0)".contains("copy when less is written") }
            #expect(size("\(folder)/copy") == -1 && size("\(folder)/copy.partial") == -1)
            try store.checkpoint()
            #expect(!store.isJournalFull)
        }
    }

    @Test("checkpoint moves everything; then the next write starts the journal anew")
    func checkpoint() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(path: path, tables: Sample.tables)
            defer { store.close() }
            let before = size(path)
            try Sample.fill(store, 1)
            #expect(size(path) == before)
            try store.checkpoint()
            #expect(size(path) > before)
            let journal = store.journalSize
            try store.put(thing, Sample.row("b", [1]))
            #expect(store.journalSize < journal)
            try store.checkpoint()
            #expect(try store.rows(thing).count == 9)
        }
    }

    @Test("a reader that closes last leaves the journal to the next writer")
    func readerLeavesJournal() throws {
        try withFolder { folder throws in
            let store = try SQLiteStore(path: "\(folder)/store.db", tables: Sample.tables)
            defer { store.close() }
            try Sample.fill(store, 1)
            // As a killed process leaves it.
            try FileManager.default.copyItem(
                atPath: "\(folder)/store.db", toPath: "\(folder)/copy.db")
            try FileManager.default.copyItem(
                atPath: "\(folder)/store.db-wal", toPath: "\(folder)/copy.db-wal")
            let journal = size("\(folder)/copy.db-wal")
            let reader = try SQLiteReader(
                path: "\(folder)/copy.db", tables: Sample.tables, options: SQLiteOptions())
            #expect(try reader.rows(thing).count == 8)
            reader.close()
            #expect(size("\(folder)/copy.db-wal") == journal)
            #expect(WriterConnection.wasLeftUncleanly("\(folder)/copy.db"))
            let copy = try SQLiteStore(path: "\(folder)/copy.db", tables: Sample.tables)
            defer { copy.close() }
            #expect(try copy.rows(thing).count == 8)
            #expect(size("\(folder)/copy.db-wal") == 0, "opening moves what the last one left")
        }
    }
}
