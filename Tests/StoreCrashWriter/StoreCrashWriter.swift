import EventLoop
import Glibc
import Model
import SQLiteStore

/// A process for tests to kill: writes numbered transactions into a store and says after each
/// what became of it.
///
/// `StoreCrashWriter <path> <count> [moves]` prints `ack n`, `full n`, `unavailable n` or
/// `other n`, each with one write; transaction n puts `pieces` rows of number n and sets the
/// counter to n. With `moves` another thread moves the journal meanwhile, as the server has it.
///
/// `StoreCrashWriter <path> reads` holds a snapshot of any SQLite file, says `reads 0`, and ends
/// when its standard input does.
@main
struct StoreCrashWriter {
    static let pieces: Int64 = 5
    static let piece = Table(
        "piece", key: [Column("number", .integer), Column("part", .integer)],
        values: [Column("bytes", .blob)], indexes: [TableIndex("piece_by_part", on: "part")])
    static let counter = Table(
        "counter", key: [Column("name", .text)], values: [Column("number", .integer)])

    static func main() {
        let words = CommandLine.arguments
        Signals.ignoreFailedWrites()
        if words.count == 3, words[2] == "reads" { return reads(words[1]) }
        guard 3...4 ~= words.count, let count = Int64(words[2]),
            words.count == 3 || words[3] == "moves"
        else {
            say("usage: StoreCrashWriter <path> <count> [moves]")
            exit(2)
        }
        do {
            var options = SQLiteOptions()
            options.journalStep = 64 << 10
            options.journalLimit = 256 << 10
            let store = try SQLiteStore(
                path: words[1], tables: [piece, counter], options: options)
            let first = try last(in: store) + 1
            let mover = words.count == 4 ? try Mover() : nil
            for number in first..<first + count {
                say("\(outcome(of: number, in: store)) \(number)")
                if number % (mover == nil ? 7 : 61) == 0 { try? store.checkpoint() }
                try? mover?.turn(of: store)
            }
            mover?.stop()
            store.close()
        } catch {
            say("closed \(error)")
            exit(3)
        }
    }

    private static func reads(_ path: String) {
        do {
            try SQLiteStore.read(path: path, tables: []) { _ throws(StoreError) in
                say("reads 0")
                while readLine() != nil {}
            }
        } catch {
            say("closed \(error)")
            exit(3)
        }
    }

    /// The highest number used. A number whose fate is unknown is not used again.
    private static func last(in store: SQLiteStore) throws(StoreError) -> Int64 {
        var highest: Int64 = 0
        try store.read { snapshot throws(StoreError) in
            let rows = try snapshot.rows(piece, Scan(descending: true, limit: 1))
            if case .integer(let number)? = rows.first?.first { highest = number }
        }
        return highest
    }

    private static func outcome(of number: Int64, in store: SQLiteStore) -> String {
        do {
            try store.write { transaction throws(StoreError) in
                for part in 0..<pieces {
                    let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 900)
                    try transaction.put(
                        piece, [.integer(number), .integer(part), .blob(bytes)])
                    try? transaction.savepoint { () throws(StoreError) in
                        try transaction.put(
                            piece, [.integer(number), .integer(pieces), .blob([])])
                        throw .conflict("undone")
                    }
                }
                try transaction.put(counter, [.text("last"), .integer(number)])
            }
            return "ack"
        } catch {
            switch error {
            case .full: return "full"
            case .unavailable: return "unavailable"
            case .conflict, .corrupt: return "other"
            }
        }
    }

    /// One write for each line: what is said has been said when the process dies.
    private static func say(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        _ = bytes.withUnsafeBytes { Glibc.write(1, $0.baseAddress, $0.count) }
    }
}

/// Moves the journal on a thread of its own.
private final class Mover {
    private let thread: LoopThread
    /// Opens when the move has been run that is on its way.
    private var moved: Latch?

    init() throws { thread = try LoopThread.start(name: "mover") { _ in } }

    func turn(of store: SQLiteStore) throws(StoreError) {
        if let moved {
            guard moved.wait(seconds: 0) else { return }
            self.moved = nil
            try store.journalMoved()
        }
        switch try store.journalTurn() {
        case .nothing: break
        case .checkpoint: try store.checkpoint()
        case .move(let move):
            let latch = Latch()
            moved = latch
            thread.perform { _ in
                move.run()
                latch.arrive()
            }
        }
    }

    func stop() {
        thread.stop()
        thread.join()
    }
}
