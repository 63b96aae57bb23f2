import CSQLite
import Foundation
import Model
import Testing

@testable import SQLiteStore

/// A store is opened while somebody else reads it: a backup, or the server's own readers after an
/// error of the disk.
@Suite(.serialized) struct ReopeningTests {
    private let thing = Sample.thing

    private func withPath(_ body: (String) throws -> Void) throws {
        try withFolder { folder throws in try body("\(folder)/store.db") }
    }

    private func open(_ path: String) throws -> SQLiteStore {
        // Long enough to be noticed, where anything waits for the reader.
        var options = SQLiteOptions()
        options.busyTimeout = 3_000
        return try SQLiteStore(path: path, tables: Sample.tables, options: options)
    }

    /// Runs the body while another process holds a snapshot of the file.
    private func besideReader(_ path: String, _ body: () throws -> Void) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: CrashWriter.path)
        process.arguments = [path, "reads"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        defer {
            try? input.fileHandleForWriting.close()
            process.waitUntilExit()
        }
        let said = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        try #require(said == "reads 0\n")
        try body()
    }

    private func lastWrite(_ path: String) throws -> timespec {
        var status = stat()
        try #require(stat(path, &status) == 0)
        return status.st_mtim
    }

    private func count(_ path: String) throws -> Int {
        let store = try open(path)
        defer { store.close() }
        return try store.rows(thing).count
    }

    @Test("a store opens beside a backup, and has the disk take what its journal holds")
    func besideBackup() throws {
        try withPath { path throws in
            let store = try open(path)
            try store.put(thing, Sample.row("a", [1]))
            try besideReader(path) {
                try store.put(thing, Sample.row("a", [2]))
                // As one that is killed leaves it.
                let (connection, _) = try store.usable()
                store.drop(connection)
                store.close()
                let before = try lastWrite("\(path)-wal")
                let again = try open(path)
                let after = try lastWrite("\(path)-wal")
                #expect((before.tv_sec, before.tv_nsec) != (after.tv_sec, after.tv_nsec))
                #expect(again.lockWaits == 0, "it waited for the reader")
                try again.put(thing, Sample.row("a", [3]))
                again.drop(try again.usable().0)
                again.close()
            }
            #expect(try count(path) == 3)
        }
    }

    @Test("after a failed sync a store goes on beside a reader, and waits for nobody")
    func afterFailedSync() throws {
        try withPath { path throws in
            let store = try open(path)
            defer { store.close() }
            try store.put(thing, Sample.row("a", [1]))
            try besideReader(path) {
                try store.put(thing, Sample.row("a", [2]))
                DatabaseFile.failsToSyncJournal(try store.usable().0)
                #expect(throws: StoreError.self) {
                    try store.put(thing, Sample.row("a", [3]))
                }
                try store.put(thing, Sample.row("a", [4]))
                #expect(store.lockWaits == 0, "it waited for the reader")
            }
            let rows = try store.rows(thing)
            #expect(rows.contains(Sample.row("a", [2])) && rows.contains(Sample.row("a", [4])))
        }
    }

    @Test("of a commit whose readers could not be told it is not said that nothing was changed")
    func unknownCommit() throws {
        try withPath { path throws in
            var options = SQLiteOptions()
            options.syncs = false
            options.journalStep = 1 << 30
            let store = try SQLiteStore(path: path, tables: Sample.tables, options: options)
            defer { store.close() }
            DatabaseFile.failsToShareMore(try store.usable().0)
            // The memory is made longer at the 4,063rd page of the journal.
            var (written, failure) = (0, StoreError?.none)
            let data = [UInt8](repeating: 7, count: 120_000)
            while failure == nil, written < 250 {
                do throws(StoreError) {
                    try store.put(
                        thing, Sample.row("b", [UInt8(written)], data: data))
                    written += 1
                } catch {
                    failure = error
                }
            }
            guard case .unavailable(let words)? = failure else {
                Issue.record("\(written) written, then \(String(describing: failure))")
                return
            }
            #expect(words.contains("not known whether"), "\(words)")
            try store.put(thing, Sample.row("a", [1]))
            let rows = try store.rows(thing).count
            #expect(rows == written + 1 || rows == written + 2, "\(rows) of \(written)")
        }
    }

    @Test(
        "the file is not opened anew before its pause is over, and then it is",
        arguments: [3_600_000, 0] as [Milliseconds])
    func pause(_ pause: Milliseconds) throws {
        try withPath { path throws in
            var options = SQLiteOptions()
            options.reopeningPause = pause
            let store = try SQLiteStore(path: path, tables: Sample.tables, options: options)
            defer { store.close() }
            try store.put(thing, Sample.row("a", [1]))
            store.drop(try store.usable().0)
            // Nothing can be opened there.
            let files = FileManager.default
            try files.removeItem(atPath: "\(path)-shm")
            try files.createDirectory(atPath: "\(path)-shm", withIntermediateDirectories: false)
            func put() -> StoreError? {
                caught { () throws(StoreError) in try store.put(thing, Sample.row("a", [2])) }
            }
            let first = try #require(put())
            try files.removeItem(atPath: "\(path)-shm")
            guard pause == 0 else {
                #expect(put() == first, "opened at once")
                return
            }
            // It is at least twice as long as the attempt took.
            var attempts = 0
            while put() != nil, attempts < 1_000_000 { attempts += 1 }
            #expect(try store.rows(thing).count == 2)
        }
    }

    @Test("the journal is made durable by writing each byte of it over itself")
    func renewed() throws {
        try withPath { path throws in
            let store = try open(path)
            defer { store.close() }
            let data = [UInt8](repeating: 7, count: 700_000)
            for number in UInt8(0)..<3 {
                try store.put(thing, Sample.row("b", [number], data: data))
            }
            let before = try Data(contentsOf: URL(fileURLWithPath: "\(path)-wal"))
            let (connection, _) = try store.usable()
            let calls = DatabaseFile.recordsJournal(connection)
            try connection.renewJournal()
            #expect(try Data(contentsOf: URL(fileURLWithPath: "\(path)-wal")) == before)
            #expect(before.count > 2 << 20)
            #expect(calls.writes.map(\.lowerBound).first == 0)
            #expect(
                zip(calls.writes, calls.writes.dropFirst()).allSatisfy {
                    $0.upperBound == $1.lowerBound
                })
            #expect(calls.writes.last?.upperBound == Int64(before.count))
            #expect(calls.syncsAfter == [calls.writes.count])
            #expect(!connection.isInTransaction)
            DatabaseFile.failsToSyncJournal(connection)
            #expect(throws: StoreError.self) { try connection.renewJournal() }
            #expect(connection.distrust != nil && !connection.isInTransaction)
        }
    }

    @Test("a process that ends while a part that it moved is synced has said so before")
    func killedInSync() throws {
        try withPath { path throws in
            let store = try open(path)
            try store.put(thing, Sample.row("a", [1]))
            func word() throws -> String {
                try String(contentsOfFile: "\(path).lock", encoding: .utf8)
            }
            #expect(try word() == "synced  \n")
            try besideReader(path) {
                try store.put(thing, Sample.row("a", [2]))
                let (connection, _) = try store.usable()
                let calls = DatabaseFile.recordsDatabase(connection) { (try? word()) ?? "" }
                try store.checkpoint()
                #expect(calls.seen == ["unsynced\n"])
                #expect(try word() == "synced  \n")
                // As a process that was killed there leaves it.
                store.drop(connection)
                store.close()
                try "unsynced\n".write(toFile: "\(path).lock", atomically: false, encoding: .utf8)
                #expect(throws: StoreError.self) { try open(path).close() }
                #expect(try word() == "unsynced\n")
            }
            #expect(try count(path) == 2)
            #expect(try word() == "synced  \n")
        }
    }

    @Test("pages that the disk did not take are moved by a start with nobody else in the file")
    func unsyncedBesideReader() throws {
        try withPath { path throws in
            let store = try open(path)
            try store.put(thing, Sample.row("a", [1]))
            try besideReader(path) {
                try store.put(thing, Sample.row("a", [2]))
                DatabaseFile.failsToSync(try store.usable().0)
                #expect(throws: StoreError.self) { try store.checkpoint() }
                store.close()
                do {
                    try open(path).close()
                    Issue.record("opened, though pages may be missing")
                } catch {
                    #expect("\(error)".contains("end the server and everything else"), "\(error)")
                }
            }
            #expect(try count(path) == 2)
            // Once they are moved nothing is in the way any more.
            try besideReader(path) { try open(path).close() }
        }
    }
}
