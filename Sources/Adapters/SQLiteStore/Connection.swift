import CSQLite
import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// One open database handle: its only owner. Used by one thread at a time.
final class Connection {
    enum Mode {
        /// Writes and checkpoints: one per database file.
        case writer
        /// Reads only, and never moves the journal: closing it last must not checkpoint, because
        /// SQLite before 3.51.3 can corrupt the file when two connections do.
        case reader
        /// Moves parts of the journal beside the writer, as `SideCheckpoint` has it, and nothing
        /// when it is closed.
        case mover
    }

    let path: String
    private var handle: OpaquePointer?
    private var statements: [ObjectIdentifier: Statement] = [:]
    /// What is bound to the statement that runs.
    let boundBytes = BoundBytes()
    /// Pages in the journal after the last commit; written by the C callback below.
    private let journal: UnsafeMutablePointer<JournalCount>
    /// How long a statement waits for a lock; used by the C callback below.
    private let lockWait: UnsafeMutablePointer<LockWait>
    /// The failure after which the handle is not used again.
    private(set) var distrust: Failure?
    /// SQLite's code of the last failure.
    private(set) var lastFailure: Int32 = SQLITE_OK
    /// A part of the journal is in the database that the disk may not have taken.
    private(set) var isUnsynced = false
    /// Statements that were run.
    var statementsRun: UInt64 = 0

    /// The library's settings for the whole process, made once before anything else is asked of
    /// it: nobody reads its counts of memory, and each allocation would take a mutex for them that
    /// all threads share. Where something else in the process has used the library before, it
    /// goes on counting.
    static let isConfigured = rouse_sqlite_count_no_memory() == SQLITE_OK

    /// - Parameter files: how SQLite comes to the files (`JournalFiles.name`); `nil`: as it does.
    init(path: String, mode: Mode, busyTimeout: Int32, files: String? = nil) throws(StoreError) {
        _ = Self.isConfigured
        self.path = path
        journal = .allocate(capacity: 1)
        journal.initialize(to: JournalCount())
        lockWait = .allocate(capacity: 1)
        lockWait.initialize(to: LockWait(timeout: UInt64(max(0, busyTimeout))))
        let flags =
            switch mode {
            case .writer: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            case .reader: SQLITE_OPEN_READONLY
            case .mover: SQLITE_OPEN_READWRITE
            }
        let code = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX, files)
        guard code == SQLITE_OK, let handle else {
            let failure = failure(code)
            close()
            throw failure.error
        }
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_handler(handle, lockIsHeld, lockWait)
        _ = rouse_sqlite_set(handle, SQLITE_DBCONFIG_DEFENSIVE, 1)
        _ = rouse_sqlite_set(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        if mode != .writer {
            _ = rouse_sqlite_set(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        }
    }

    deinit {
        close()
        journal.deinitialize(count: 1)
        journal.deallocate()
        lockWait.deinitialize(count: 1)
        lockWait.deallocate()
    }

    var isOpen: Bool { handle != nil }

    /// Whether a transaction is open.
    var isInTransaction: Bool { handle.map { sqlite3_get_autocommit($0) == 0 } ?? false }

    /// Rows that the last INSERT, UPDATE or DELETE changed.
    var rowsChanged: Int32 { handle.map { sqlite3_changes($0) } ?? 0 }

    /// Pages in the journal after this connection's last commit, moved or not.
    var journalPages: Int { Int(journal.pointee.pages) }

    /// Pages that this connection has ever written to the journal.
    var journalPagesWritten: UInt64 { journal.pointee.written }

    /// How often a statement found a lock held and slept.
    var lockWaits: UInt64 { lockWait.pointee.waits }

    /// Calls nothing at commit but counts the journal's pages, instead of the checkpoint that
    /// SQLite would run inside a commit.
    func countJournal() {
        sqlite3_wal_hook(handle, journalGrew, journal)
    }

    /// Leaves the journal as it is when this handle closes.
    func leaveJournal() {
        if let handle { _ = rouse_sqlite_set(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1) }
    }

    func close() {
        for statement in statements.values { statement.finalize() }
        statements = [:]
        guard let handle else { return }
        let code = sqlite3_close(handle)
        precondition(code == SQLITE_OK, "a statement outlives its connection")
        self.handle = nil
    }

    /// Compiles one statement; it is kept until `discard` or `close`.
    func prepare(_ sql: String) throws(StoreError) -> Statement {
        guard let handle else { throw .unavailable("\(path) is closed") }
        var compiled: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        let code = sqlite3_prepare_v3(handle, sql, -1, flags, &compiled, nil)
        guard code == SQLITE_OK, let compiled else { throw note(code) }
        let statement = Statement(compiled, of: self)
        statements[ObjectIdentifier(statement)] = statement
        return statement
    }

    func discard(_ statement: Statement) {
        statement.finalize()
        statements[ObjectIdentifier(statement)] = nil
    }

    /// Runs one statement that gives no rows.
    func execute(_ sql: String) throws(StoreError) {
        let statement = try prepare(sql)
        defer { discard(statement) }
        try statement.run()
    }

    /// The rows of one statement, each column as text; for pragmas and the schema.
    func texts(_ sql: String) throws(StoreError) -> [[String]] {
        let statement = try prepare(sql)
        defer { discard(statement) }
        return try statement.texts()
    }

    /// Copies every page of this database, as of the snapshot that is open, into `destination`.
    ///
    /// - Parameter progress: called after each step; the copy ends with what it throws.
    func copyPages(
        to destination: Connection, step: Int32,
        progress: (SQLiteBackup.Progress) throws(StoreError) -> Void
    ) throws(StoreError) {
        guard let handle, let target = destination.handle else {
            throw .unavailable("\(path) is closed")
        }
        let pageSize = try texts("PRAGMA page_size").first?.first.flatMap { UInt64($0) } ?? 4096
        guard let backup = sqlite3_backup_init(target, "main", handle, "main") else {
            throw destination.note(sqlite3_errcode(target))
        }
        var code: Int32
        do throws(StoreError) {
            repeat {
                code = sqlite3_backup_step(backup, step)
                let total = UInt64(clamping: sqlite3_backup_pagecount(backup))
                let left = UInt64(clamping: sqlite3_backup_remaining(backup))
                try progress(
                    SQLiteBackup.Progress(
                        copied: (total - left) * pageSize, total: total * pageSize))
            } while code == SQLITE_OK
        } catch {
            sqlite3_backup_finish(backup)
            throw error
        }
        let ended = sqlite3_backup_finish(backup)
        guard code == SQLITE_DONE, ended == SQLITE_OK else {
            throw destination.note(code == SQLITE_DONE ? ended : code)
        }
    }

    /// Moves what the journal holds into the database.
    ///
    /// SQLite itself has the disk take what it has moved only when that is everything, and does
    /// not move a page again as long as any process has the file open. Were a part not synced, and
    /// the disk dropped it, a later sync could succeed, and the journal would begin anew without
    /// it. So a part is synced here, and where that fails the journal must be kept (`isUnsynced`).
    ///
    /// - Returns: whether everything was moved, which somebody in the way prevents, and how many
    ///   pages of the journal, from the first, are in the database now, as far as that is known.
    func checkpoint(
        _ mode: Checkpoint, syncs: Bool
    ) throws(StoreError) -> (isWhole: Bool, pages: Int) {
        guard let handle else { throw .unavailable("\(path) is closed") }
        var (pages, moved): (Int32, Int32) = (0, 0)
        let raw: Int32 =
            switch mode {
            case .passive: SQLITE_CHECKPOINT_PASSIVE
            case .restart: SQLITE_CHECKPOINT_RESTART
            case .truncate, .truncateWaiting: SQLITE_CHECKPOINT_TRUNCATE
            }
        lockWait.pointee.isPatient = mode == .truncateWaiting
        defer { lockWait.pointee.isPatient = true }
        let code = sqlite3_wal_checkpoint_v2(handle, nil, raw, &pages, &moved)
        // One that empties the journal is busy, too, when it has moved a part.
        let isBusy = code & 0xff == SQLITE_BUSY
        if code != SQLITE_OK, !isBusy { throw note(code) }
        let isWhole = !isBusy && pages == moved
        if !isWhole, syncs {
            isUnsynced = true
            try syncDatabase()
            isUnsynced = false
        }
        if !isBusy, mode != .passive { journal.pointee.pages = 0 }
        return (isWhole, isBusy ? 0 : Int(moved))
    }

    private func syncDatabase() throws(StoreError) {
        guard let file = databaseFile, let methods = file.pointee.pMethods else {
            throw note(SQLITE_MISUSE)
        }
        let code = methods.pointee.xSync(file, SQLITE_SYNC_NORMAL)
        if code != SQLITE_OK { throw note(code) }
    }

    /// Has the disk take the whole journal, where it cannot be emptied.
    ///
    /// After a sync that failed the kernel may take pages for written that are in its cache alone,
    /// and the next sync for a success. Each byte is written over itself, so that they are written
    /// out again. Where the kernel has dropped them, what was on the disk is read and stays.
    ///
    /// - Precondition: no transaction is open. The lock on writing is held meanwhile, for a journal
    ///   that somebody else began anew would be damaged.
    func renewJournal() throws(StoreError) {
        try execute("BEGIN IMMEDIATE")
        var outcome = SQLITE_MISUSE
        if let file = journalFile { outcome = writtenOver(file) }
        try execute("ROLLBACK")
        if outcome != SQLITE_OK { throw note(outcome) }
    }

    private func writtenOver(_ file: UnsafeMutablePointer<sqlite3_file>) -> Int32 {
        guard let methods = file.pointee.pMethods?.pointee else { return SQLITE_MISUSE }
        // SQLite's own file takes less than 128 KiB at once.
        let piece = 64 << 10
        let bytes = UnsafeMutableRawPointer.allocate(byteCount: piece, alignment: 16)
        defer { bytes.deallocate() }
        var length: Int64 = 0
        var code = methods.xFileSize(file, &length)
        var start: Int64 = 0
        while code == SQLITE_OK, start < length {
            let count = Int32(min(Int64(piece), length - start))
            code = methods.xRead(file, bytes, count, start)
            if code == SQLITE_OK { code = methods.xWrite(file, bytes, count, start) }
            start += Int64(count)
        }
        return code == SQLITE_OK ? methods.xSync(file, SQLITE_SYNC_NORMAL) : code
    }

    /// The journal's file may be longer than the journal: that has begun anew with a commit since
    /// this was last asked.
    func journalBeganAnew() -> Bool {
        defer { journal.pointee.isAnew = false }
        return journal.pointee.isAnew
    }

    /// Cuts a piece off the journal's file, of what lies behind the last commit there: pages of an
    /// earlier journal, which are in the database. Only after a commit with which the journal began
    /// anew: until then those pages are valid, and were a part of them found after a loss of power,
    /// it would be taken for the newest.
    ///
    /// - Parameters:
    ///   - size: nothing below is cut, in bytes.
    ///   - step: the most to be cut, in bytes. The file system takes about a millisecond for three
    ///     megabytes, and who writes to the file waits for it.
    /// - Returns: whether there is more to cut. Where the file cannot be cut, it stays as it is.
    func cutJournal(to size: Int64, step: Int64) -> Bool {
        guard let file = journalFile, let methods = file.pointee.pMethods else { return false }
        var length: Int64 = 0
        guard methods.pointee.xFileSize(file, &length) == SQLITE_OK, length > size else {
            return false
        }
        let rest = max(size, length - step)
        return methods.pointee.xTruncate(file, rest) == SQLITE_OK && rest > size
    }

    /// How SQLite comes to the database; `nil`: the handle is closed.
    var databaseFile: UnsafeMutablePointer<sqlite3_file>? { file(SQLITE_FCNTL_FILE_POINTER) }

    /// How SQLite comes to the journal; `nil`: the handle is closed.
    var journalFile: UnsafeMutablePointer<sqlite3_file>? { file(SQLITE_FCNTL_JOURNAL_POINTER) }

    private func file(_ which: Int32) -> UnsafeMutablePointer<sqlite3_file>? {
        var file: UnsafeMutablePointer<sqlite3_file>?
        guard let handle, sqlite3_file_control(handle, "main", which, &file) == SQLITE_OK
        else { return nil }
        return file
    }

    enum Checkpoint {
        /// Moves what no reader is in the way of; waits for nobody.
        case passive
        /// Moves what no reader is in the way of; if that is everything and nobody reads from
        /// the journal, the next commit begins it anew. Waits for nobody.
        case restart
        /// Moves what no reader is in the way of; if that is everything and nobody reads from
        /// the journal, it is emptied, which takes long if it is large. Waits for nobody.
        case truncate
        /// The same, but waits for readers up to the busy timeout: at closing only, when nothing
        /// waits for the writer.
        case truncateWaiting
    }

    /// The error for `code`; remembers it if the handle cannot be trusted after it.
    func note(_ code: Int32) -> StoreError {
        let failure = failure(code)
        lastFailure = failure.code
        if failure.distrusts, distrust == nil { distrust = failure }
        return failure.error
    }

    /// A failed COMMIT may stand all the same: the memory that SQLite shares with readers grows
    /// after the journal is written and synced. Whether it does shows when the file is opened anew.
    ///
    /// - Returns: what to tell; the handle is not used again. `nil`: nothing has been committed.
    func noteUnknownCommit(_ error: StoreError) -> StoreError? {
        guard lastFailure == rouse_sqlite_ioerr_shmsize, case .full(let words) = error else {
            return nil
        }
        let failure = Failure(unknown: "not known whether it is committed: \(words)", lastFailure)
        if distrust == nil { distrust = failure }
        return failure.error
    }

    private func failure(_ code: Int32) -> Failure {
        guard let handle else {
            return Failure(code: code, errno: 0, text: "cannot open", path: path)
        }
        let extended = sqlite3_extended_errcode(handle)
        let isSame = extended & 0xff == code & 0xff
        let written = JournalFiles.takeFailure(of: journalFile)
        return Failure(
            code: isSame ? extended : code,
            errno: written != 0 ? written : sqlite3_system_errno(handle),
            text: String(cString: sqlite3_errmsg(handle)), path: path)
    }
}

private func journalGrew(
    _ context: UnsafeMutableRawPointer?, _ database: OpaquePointer?,
    _ name: UnsafePointer<CChar>?, _ pages: Int32
) -> Int32 {
    context?.assumingMemoryBound(to: JournalCount.self).pointee.grew(to: pages)
    return SQLITE_OK
}

private struct JournalCount {
    var pages: Int32 = 0
    var written: UInt64 = 0
    var isAnew = false

    /// Called only for a commit that wrote something: one that leaves no more pages than there
    /// were has begun the journal anew.
    mutating func grew(to newest: Int32) {
        written += UInt64(max(0, newest > pages ? newest - pages : newest))
        if newest <= pages || pages == 0 { isAnew = true }
        pages = newest
    }
}

/// What a connection does about locks that others hold.
private struct LockWait {
    let timeout: UInt64
    /// Off while a checkpoint runs that must not wait.
    var isPatient = true
    var waits: UInt64 = 0
    /// Milliseconds slept for the lock at hand.
    var slept: UInt64 = 0

    init(timeout: UInt64) { self.timeout = timeout }
}

/// The busy handler: sleeps a little longer each time, up to the timeout. 0: give up.
private func lockIsHeld(_ context: UnsafeMutableRawPointer?, _ earlier: Int32) -> Int32 {
    guard let wait = context?.assumingMemoryBound(to: LockWait.self) else { return 0 }
    guard wait.pointee.isPatient else { return 0 }
    if earlier == 0 { wait.pointee.slept = 0 }
    let left = wait.pointee.timeout - min(wait.pointee.timeout, wait.pointee.slept)
    let pause = min(left, UInt64(1) << UInt64(min(max(earlier, 0), 6)))
    guard pause > 0 else { return 0 }
    wait.pointee.waits += 1
    wait.pointee.slept += pause
    usleep(UInt32(pause * 1_000))
    return 1
}
