import CSQLite
import EventLoop
import Foundation
import Model
import Testing

@testable import SQLiteStore

/// Parts of the journal are moved on another thread while the store writes on.
@Suite struct SideCheckpointTests {
    let thing = Sample.thing

    private func options() -> SQLiteOptions {
        var options = SQLiteOptions()
        options.journalStep = 512 << 10
        options.journalLimit = 8 << 20
        options.journalRest = 384 << 10
        options.busyTimeout = 20
        return options
    }

    /// A store of its own, closed when the body ends, and the path of its database.
    private func withStore(
        _ options: SQLiteOptions? = nil, _ body: (SQLiteStore, String) throws -> Void
    ) throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(
                path: path, tables: Sample.tables, options: options ?? self.options())
            defer { store.close() }
            try body(store, path)
        }
    }

    /// Writes until a move can be taken.
    private func move(of store: SQLiteStore, from round: Int = 0) throws -> any JournalMove {
        for round in round..<round + 40 {
            try Sample.fill(store, round)
            if case .move(let move) = try store.journalTurn() { return move }
        }
        throw StoreError.unavailable("the load is too small to prove anything")
    }

    private func size(_ path: String) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.size] as? Int) ?? -1
    }

    private func check(_ store: SQLiteStore, rounds: Int) throws {
        for round in max(0, rounds - 256)..<rounds {
            let id = [UInt8(truncatingIfNeeded: round), 7]
            let row = try store.row(thing, [.text("a"), .blob(id)])
            #expect(row == Sample.row("a", id, due: 1, data: Sample.data(round)), "\(round)")
        }
    }

    @Test("under load the journal begins anew again and again, and nothing is lost")
    func load() throws {
        try withStore { store, path throws in
            let reader = try store.reader()
            defer { reader.close() }
            var moved: Latch?
            var (moves, beginnings, checkpoints, most, last) = (0, 0, 0, 0, 0)
            for round in 0..<1500 {
                try Sample.fill(store, round)
                _ = try reader.rows(thing, Scan(limit: 5))
                if store.journalSize < last { beginnings += 1 }
                last = store.journalSize
                most = max(most, last)
                if let latch = moved {
                    // One that has only this to write is too fast: it waits for the disk.
                    let patience = last > 1 << 20 ? 60 : 0
                    guard latch.wait(seconds: patience) else { continue }
                    moved = nil
                    try store.journalMoved()
                }
                switch try store.journalTurn() {
                case .nothing: break
                case .checkpoint:
                    checkpoints += 1
                    try store.checkpoint()
                case .move(let move):
                    moves += 1
                    let latch = Latch()
                    WorkThread.start("move") {
                        move.run()
                        latch.arrive()
                    }
                    moved = latch
                }
            }
            moved?.wait()
            #expect(moves > 20 && beginnings > 5, "\(moves) moves, \(beginnings) beginnings")
            #expect(checkpoints == 0 && most <= 8 << 20, "\(checkpoints), \(most)")
            #expect(store.lockWaits == 0 && store.checkpointError == nil)
            try check(store, rounds: 1500)
            store.close()
            #expect(size("\(path)-wal") <= 0)
            var always = options()
            always.check = .always
            let again = try SQLiteStore(path: path, tables: Sample.tables, options: always)
            defer { again.close() }
            try check(again, rounds: 1500)
        }
    }

    @Test("a move ends below what the journal held before it began")
    func end() throws {
        try withStore { store, path throws in
            try Sample.fill(store, 0)
            let (connection, _) = try store.usable()
            let side = try SideCheckpoint(beside: connection, options: options())
            defer { side.close() }
            try side.hold()
            let held = connection.journalPages
            try Sample.fill(store, 1)
            side.taken()
            let most = connection.journalPages
            side.run()
            #expect(try side.ended() == held)
            // Not all is moved: the next write does not begin the journal anew.
            try Sample.fill(store, 2)
            #expect(connection.journalPages > most && most > held)
            try check(store, rounds: 3)
        }
    }

    @Test("while a move is under way the store moves nothing itself")
    func alone() throws {
        try withStore { store, path throws in
            let move = try move(of: store)
            let before = size(path)
            // Two steps and more: without a move a write would see to it.
            for round in 0..<40 { try Sample.fill(store, round) }
            try store.checkpoint()
            #expect(store.journalSize > 1 << 20 && size(path) == before)
            guard case .nothing = try store.journalTurn() else {
                Issue.record("two moves at once")
                return
            }
            move.run()
            #expect(size(path) > before)
            // It is the store's again: the rest is moved, and the journal begins anew.
            try store.journalMoved()
            try store.checkpoint()
            try Sample.fill(store, 40)
            #expect(store.journalSize < 256 << 10)
            try check(store, rounds: 41)
        }
    }

    @Test("what a reader keeps from being moved is not tried again at once")
    func hindered() throws {
        try withStore { store, path throws in
            let reader = try store.reader()
            defer { reader.close() }
            try store.put(thing, Sample.row("b", [1]))
            var moves = 0
            try reader.read { snapshot throws(StoreError) in
                _ = try snapshot.rows(thing, Scan(limit: 1))
                for round in 0..<30 {
                    try Sample.fill(store, round)
                    guard case .move(let move) = try store.journalTurn() else { continue }
                    moves += 1
                    move.run()
                    try store.journalMoved()
                }
            }
            let steps = store.journalSize / options().journalStep
            #expect(moves > 1 && moves <= steps, "\(moves) in \(steps) steps")
            #expect(store.lockWaits == 0)
            let move = try move(of: store, from: 30)
            move.run()
            try store.journalMoved()
            try store.checkpoint()
            try Sample.fill(store, 0)
            #expect(store.journalSize < 256 << 10, "not moved after the reader")
        }
    }

    @Test("a store is closed whose move was taken and never run, and opened with everything")
    func neverRun() throws {
        try withStore { store, path throws in
            _ = try move(of: store)
            try Sample.fill(store, 0)
            store.close()
            #expect(size("\(path)-wal") <= 0, "the snapshot was still held")
            let again = try SQLiteStore(path: path, tables: Sample.tables, options: options())
            defer { again.close() }
            try check(again, rounds: 1)
        }
    }

    @Test(
        "a store that can have no connection beside moves its journal itself",
        arguments: [false, true])
    func noConnection(isReplaced: Bool) throws {
        try withStore { store, path throws in
            var turns = 0
            for round in 0..<20 {
                try Sample.fill(store, round)
                // The connection that the store has goes on; another one would find no file, or
                // one that is not the store's.
                try FileManager.default.moveItem(atPath: path, toPath: "\(path).away")
                if isReplaced {
                    try FileManager.default.copyItem(atPath: "\(path).away", toPath: path)
                }
                if case .checkpoint = try store.journalTurn() {
                    turns += 1
                    try store.checkpoint()
                }
                #expect(store.side == nil)
                try? FileManager.default.removeItem(atPath: path)
                try FileManager.default.moveItem(atPath: "\(path).away", toPath: path)
            }
            #expect(turns > 0 && store.journalSize < 1 << 20, "\(turns), \(store.journalSize)")
        }
    }

    // MARK: A journal that has grown long

    /// A store whose journal a reader has kept from being moved for so many rounds.
    private func withLongJournal(
        rounds: Int, _ body: (SQLiteStore, String) throws -> Void
    ) throws {
        var short = options()
        (short.journalLimit, short.journalCut) = (1 << 20, 128 << 10)
        try withStore(short) { store, path throws in
            let reader = try store.reader()
            defer { reader.close() }
            try Sample.fill(store, 0)
            try reader.read { snapshot throws(StoreError) in
                _ = try snapshot.rows(thing, Scan(limit: 1))
                for round in 0..<rounds {
                    try Sample.fill(store, round)
                    guard case .move(let move) = try store.journalTurn() else { continue }
                    move.run()
                    try store.journalMoved()
                }
            }
            #expect(size("\(path)-wal") > 3 << 20, "the load is too small to prove anything")
            try body(store, path)
        }
    }

    /// What a loss of power would leave of a store now is opened: all rounds are there.
    private func checkCopy(of path: String, rounds: Int) throws {
        for part in ["", "-wal"] {
            try? FileManager.default.removeItem(atPath: "\(path).copy\(part)")
            try FileManager.default.copyItem(
                atPath: path + part, toPath: "\(path).copy\(part)")
        }
        var always = options()
        always.check = .always
        let copy = try SQLiteStore(
            path: "\(path).copy", tables: Sample.tables, options: always)
        defer { copy.close() }
        try check(copy, rounds: rounds)
    }

    @Test("after a long reader the store goes on, and its journal is cut a piece at a time")
    func longJournal() throws {
        try withLongJournal(rounds: 80) { store, path throws in
            var (checkpoints, cuts, largest) = (0, 0, 0)
            var last = size("\(path)-wal")
            for round in 80..<200 {
                try Sample.fill(store, round)
                let now = size("\(path)-wal")
                if now < last {
                    cuts += 1
                    largest = max(largest, last - now)
                    if cuts % 8 == 1 { try checkCopy(of: path, rounds: round + 1) }
                }
                last = now
                switch try store.journalTurn() {
                case .nothing: break
                case .checkpoint:
                    checkpoints += 1
                    try store.checkpoint()
                case .move(let move):
                    move.run()
                    try store.journalMoved()
                }
            }
            #expect(checkpoints == 0, "the store moved the long journal itself")
            #expect(cuts > 16 && largest == 128 << 10, "\(cuts), \(largest)")
            #expect(last == 1 << 20 && !store.isJournalFull && store.lockWaits == 0)
            try check(store, rounds: 200)
        }
    }

    @Test("nothing is cut off a journal before a commit has begun the next one")
    func uncut() throws {
        try withLongJournal(rounds: 80) { store, path throws in
            let long = size("\(path)-wal")
            try store.checkpoint()
            #expect(!store.isJournalFull)
            // Neither by a transaction that writes nothing, nor by another checkpoint.
            _ = try store.rows(thing, Scan(limit: 1))
            try store.write { transaction throws(StoreError) in
                _ = try transaction.rows(thing, Scan(limit: 1))
            }
            try store.checkpoint()
            #expect(size("\(path)-wal") == long)
            try checkCopy(of: path, rounds: 80)
            try Sample.fill(store, 80)
            #expect(size("\(path)-wal") == long - 128 << 10)
            try checkCopy(of: path, rounds: 81)
        }
    }

    // MARK: What fails

    @Test("a file is not opened anew before it is known what became of the move")
    func reopened() throws {
        try withStore { store, path throws in
            let move = try move(of: store)
            let journal = size("\(path)-wal")
            store.drop(try store.usable().0)
            #expect(throws: StoreError.self) { try Sample.fill(store, 50) }
            move.run()
            #expect(throws: StoreError.self) { try Sample.fill(store, 50) }
            #expect(size("\(path)-wal") == journal, "the journal was emptied beside the move")
            try store.journalMoved()
            try Sample.fill(store, 0)
            try check(store, rounds: 1)
            // The next move is of the new connection's journal.
            let next = try self.move(of: store, from: 1)
            next.run()
            try store.journalMoved()
            #expect(store.side?.writer === (try store.usable().0))
        }
    }

    @Test("a move that failed beside a connection that is gone is not used for the next one")
    func failedBesideAnother() throws {
        try withStore { store, path throws in
            let move = try move(of: store)
            for round in 0..<4 { try Sample.fill(store, round) }
            let side = try #require(store.side)
            store.drop(try store.usable().0)
            DatabaseFile.failsToWrite(side.mover)
            move.run()
            #expect(throws: StoreError.self) { try store.journalMoved() }
            // More than the old journal had.
            for round in 0..<60 {
                try Sample.fill(store, round)
                guard case .move(let move) = try store.journalTurn() else { continue }
                move.run()
                try store.journalMoved()
            }
            try check(store, rounds: 60)
        }
    }

    @Test("where the disk does not take a move, nothing is written and the journal is kept")
    func failedSync() throws {
        try withStore { store, path throws in
            let move = try move(of: store)
            try Sample.fill(store, 0)
            let journal = size("\(path)-wal")
            DatabaseFile.failsToSync(try #require(store.side).mover)
            move.run()
            #expect(throws: StoreError.self) { try store.journalMoved() }
            #expect(throws: StoreError.self) { try Sample.fill(store, 1) }
            store.close()
            #expect(size("\(path)-wal") == journal)
            let again = try SQLiteStore(path: path, tables: Sample.tables, options: options())
            defer { again.close() }
            try check(again, rounds: 1)
        }
    }

    @Test("the journal is kept at the end, too, where nobody told of the move that failed")
    func failedAtEnd() throws {
        try withStore { store, path throws in
            let move = try move(of: store)
            let journal = size("\(path)-wal")
            DatabaseFile.failsToSync(try #require(store.side).mover)
            move.run()
            store.close()
            #expect(size("\(path)-wal") == journal)
        }
    }

    @Test("a part that the store moves itself is synced, and the journal kept where that fails")
    func failedPart() throws {
        try withStore { store, path throws in
            let reader = try store.reader()
            defer { reader.close() }
            try Sample.fill(store, 0)
            try reader.read { snapshot throws(StoreError) in
                _ = try snapshot.rows(thing, Scan(limit: 1))
                try Sample.fill(store, 1)
                DatabaseFile.failsToSync(try store.usable().0)
                #expect(throws: StoreError.self) { try store.checkpoint() }
            }
            let journal = size("\(path)-wal")
            #expect(throws: StoreError.self) { try Sample.fill(store, 2) }
            store.close()
            #expect(size("\(path)-wal") == journal && journal > 0)
        }
    }

    @Test("the same for a part that is moved when the store is closed")
    func failedPartAtEnd() throws {
        try withStore { store, path throws in
            let reader = try store.reader()
            defer { reader.close() }
            try Sample.fill(store, 0)
            var connection: Connection?
            try reader.read { snapshot throws(StoreError) in
                _ = try snapshot.rows(thing, Scan(limit: 1))
                try Sample.fill(store, 1)
                connection = try store.usable().0
                if let connection { DatabaseFile.failsToSync(connection) }
                store.close()
            }
            #expect(connection?.isUnsynced == true)
            #expect(size("\(path)-wal") > 0)
        }
    }
}
