import CSQLite
import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Opens the one connection for all writes, and for each checkpoint after which the journal may
/// begin anew; what moves parts of it meanwhile is `SideCheckpoint`.
///
/// One, because SQLite 3.7.0 to 3.51.2 can corrupt the file when a checkpoint of one connection
/// meets the journal's restart by another (sqlite.org/wal.html, "WAL-reset bug").
enum WriterConnection {
    /// - Parameter isUnsynced: set where it fails as `Connection.isUnsynced` says.
    static func open(
        path: String, options: SQLiteOptions, check: Bool, isUnsynced: inout Bool
    ) throws(StoreError) -> Connection {
        let timeout = Int32(clamping: options.busyTimeout)
        let connection = try Connection(
            path: path, mode: .writer, busyTimeout: timeout,
            files: options.syncs ? JournalFiles.name : nil)
        do {
            try prepare(connection, options)
            if check { try quickCheck(connection) }
        } catch {
            isUnsynced = connection.isUnsynced
            connection.leaveJournal()
            connection.close()
            throw error
        }
        return connection
    }

    private static func prepare(_ connection: Connection, _ options: SQLiteOptions)
        throws(StoreError)
    {
        if try SQLiteBackup.isMarked(connection) {
            throw .unavailable(
                "\(connection.path) is a backup: `rouse restore` makes a store of it; served as "
                    + "it is, devices would take it for the history they know")
        }
        let mode = try connection.texts("PRAGMA journal_mode = WAL")
        if mode != [["wal"]] {
            throw .unavailable("\(connection.path): no write-ahead journal on this file system")
        }
        for pragma in [
            "synchronous = \(options.syncs ? "FULL" : "OFF")",
            "wal_autocheckpoint = 0", "cell_size_check = ON",
            // What is deleted is overwritten: an erased name must not stay in free space.
            "secure_delete = ON",
            "cache_size = -\(options.cacheSize)",
        ] {
            _ = try connection.texts("PRAGMA \(pragma)")
        }
        connection.countJournal()
        // What the last owner left in the journal may be in the page cache alone, if its sync
        // failed: copying it into the database and syncing that makes it durable. After this the
        // journal starts anew, so that nothing lost lies before what is appended. Beside a reader
        // that holds its snapshot, as a backup does, the journal itself is made durable.
        if try !connection.checkpoint(.truncate, syncs: options.syncs).isWhole, options.syncs {
            try connection.renewJournal()
        }
    }

    private static func quickCheck(_ connection: Connection) throws(StoreError) {
        let findings = try connection.texts("PRAGMA quick_check(3)")
        if findings != [["ok"]] {
            throw .unavailable(
                "\(connection.path) is damaged, \(Failure.remedy): "
                    + findings.joined().joined(separator: "; "))
        }
    }

    /// Creates the file with a mode that keeps others out; SQLite gives the journal the same.
    static func createFile(_ path: String) throws(StoreError) {
        let descriptor = SystemCalls.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 {
            FileOwner.hand(descriptor, at: path)
            close(descriptor)
        } else if errno != EEXIST {
            throw .unavailable("\(path): cannot create: \(FileOwner.reason(errno, path))")
        }
    }

    /// Whether the last owner left without emptying the journal.
    static func wasLeftUncleanly(_ path: String) -> Bool {
        var status = stat()
        return stat("\(path)-wal", &status) == 0 && status.st_size > 0
    }
}
