import CSQLite
import Testing

@testable import SQLiteStore

/// Has what SQLite asks of a connection's database fail, as a sick disk would.
enum DatabaseFile {
    static func failsToSync(_ connection: Connection) {
        change(connection) { $0.xSync = { _, _ in SQLITE_IOERR | 4 << 8 } }
    }

    static func failsToWrite(_ connection: Connection) {
        change(connection) { $0.xWrite = { _, _, _, _ in SQLITE_FULL } }
    }

    /// The memory that is shared with readers cannot be made longer, as on a full disk.
    static func failsToShareMore(_ connection: Connection) {
        change(connection) {
            Calls.current = Calls()
            Calls.current.real = $0
            $0.xShmMap = { file, region, size, extends, memory in
                if region > 0 { return rouse_sqlite_ioerr_shmsize }
                return Calls.current.real.xShmMap(file, region, size, extends, memory)
            }
        }
    }

    static func failsToSyncJournal(_ connection: Connection) {
        change(connection, connection.journalFile) { $0.xSync = { _, _ in SQLITE_IOERR | 4 << 8 } }
    }

    /// What was asked of a journal. One at a time: C functions have no context.
    final class Calls {
        var writes: [Range<Int64>] = []
        /// How many writes there had been at each sync.
        var syncsAfter: [Int] = []
        var seen: [String] = []
        fileprivate var look: () -> String = { "" }
        fileprivate var real = sqlite3_io_methods()
        nonisolated(unsafe) fileprivate static var current = Calls()
    }

    static func recordsJournal(_ connection: Connection) -> Calls {
        Calls.current = Calls()
        change(connection, connection.journalFile) {
            Calls.current.real = $0
            $0.xWrite = { file, bytes, count, offset in
                Calls.current.writes.append(offset..<offset + Int64(count))
                return Calls.current.real.xWrite(file, bytes, count, offset)
            }
            $0.xSync = { file, flags in
                Calls.current.syncsAfter.append(Calls.current.writes.count)
                return Calls.current.real.xSync(file, flags)
            }
        }
        return Calls.current
    }

    /// What is seen whenever a connection's database is to be synced.
    static func recordsDatabase(
        _ connection: Connection, _ look: @escaping () -> String
    ) -> Calls {
        Calls.current = Calls()
        Calls.current.look = look
        change(connection) {
            Calls.current.real = $0
            $0.xSync = { file, flags in
                Calls.current.seen.append(Calls.current.look())
                return Calls.current.real.xSync(file, flags)
            }
        }
        return Calls.current
    }

    private static func change(
        _ connection: Connection, _ file: UnsafeMutablePointer<sqlite3_file>? = nil,
        _ body: (inout sqlite3_io_methods) -> Void
    ) {
        guard let file = file ?? connection.databaseFile, let methods = file.pointee.pMethods else {
            Issue.record("the connection has no file")
            return
        }
        var own = methods.pointee
        body(&own)
        // Never freed: SQLite may ask for it until the process ends.
        let kept = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        kept.initialize(to: own)
        file.pointee.pMethods = UnsafePointer(kept)
    }
}
