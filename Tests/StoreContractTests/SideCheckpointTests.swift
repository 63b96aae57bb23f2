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

    /// About 70 KiB of journal.
    private func fill(_ store: SQLiteStore, _ round: Int) throws(StoreError) {
        try store.write { transaction throws(StoreError) in
            for part in UInt8(0)..<8 {
                let id = [UInt8(truncatingIfNeeded: round), part]
                try transaction.put(thing, Sample.row("a", id, due: 1, data: data(round)))
            }
        }
    }

    private func data(_ round: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: 2000)
    }

    /// Writes until a move can be taken.
    private func move(of store: SQLiteStore, from round: Int = 0) throws -> any JournalMove {
        for round in round..<round + 40 {
            try fill(store, round)
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
            #expect(row == Sample.row("a", id, due: 1, data: data(round)), "round \(round)")
        }
    }

    @Test("under load the journal begins anew again and again, and nothing is lost")
    func load() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(path: path, tables: Sample.tables, options: options())
            let reader = try store.reader()
            defer { reader.close() }
            var moved: Latch?
            var (moves, beginnings, checkpoints, most, last) = (0, 0, 0, 0, 0)
            for round in 0..<1500 {
                try fill(store, round)
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
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(path: path, tables: Sample.tables, options: options())
            defer { store.close() }
            try fill(store, 0)
            let (connection, _) = try store.usable()
            let side = try SideCheckpoint(beside: connection, options: options())
            defer { side.close() }
            try side.hold()
            let held = connection.journalPages
            try fill(store, 1)
            side.taken()
            let most = connection.journalPages
            side.run()
            #expect(try side.ended() == held)
            // Not all is moved: the next write does not begin the journal anew.
            try fill(store, 2)
            #expect(connection.journalPages > most && most > held)
            try check(store, rounds: 3)
        }
    }

    @Test("while a move is under way the store moves nothing itself")
    func alone() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(path: path, tables: Sample.tables, options: options())
            defer { store.close() }
            let move = try move(of: store)
            let before = size(path)
            // Two steps and more: without a move a write would see to it.
            for round in 0..<40 { try fill(store, round) }
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
            try fill(store, 40)
            #expect(store.journalSize < 256 << 10)
            try check(store, rounds: 41)
        }
    }

    @Test("what a reader keeps from being moved is not tried again at once")
    func hindered() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(path: path, tables: Sample.tables, options: options())
            defer { store.close() }
            let reader = try store.reader()
            defer { reader.close() }
            try store.put(thing, Sample.row("b", [1]))
            var moves = 0
            try reader.read { snapshot throws(StoreError) in
                _ = try snapshot.rows(thing, Scan(limit: 1))
                for round in 0..<30 {
                    try fill(store, round)
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
            try fill(store, 0)
            #expect(store.journalSize < 256 << 10, "not moved after the reader")
        }
    }

    @Test("a store is closed whose move was taken and never run, and opened with everything")
    func neverRun() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(path: path, tables: Sample.tables, options: options())
            _ = try move(of: store)
            try fill(store, 0)
            store.close()
            #expect(size("\(path)-wal") <= 0, "the snapshot was still held")
            let again = try SQLiteStore(path: path, tables: Sample.tables, options: options())
            defer { again.close() }
            try check(again, rounds: 1)
        }
    }

    @Test("a store that can have no connection beside moves its journal itself")
    func noConnection() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            let store = try SQLiteStore(path: path, tables: Sample.tables, options: options())
            defer { store.close() }
            // The connection that the store has goes on, and there is no other.
            try FileManager.default.moveItem(atPath: path, toPath: "\(path).away")
            defer { try? FileManager.default.moveItem(atPath: "\(path).away", toPath: path) }
            var turns = 0
            for round in 0..<20 {
                try FileManager.default.moveItem(atPath: "\(path).away", toPath: path)
                try fill(store, round)
                try FileManager.default.moveItem(atPath: path, toPath: "\(path).away")
                guard case .checkpoint = try store.journalTurn() else { continue }
                turns += 1
                try store.checkpoint()
            }
            #expect(turns > 0 && store.journalSize < 1 << 20, "\(turns), \(store.journalSize)")
        }
    }
}
