import Failpoints
public import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The `Store` contract in one SQLite file: write-ahead journal, synced at every commit, one
/// connection for all writes, readers beside it, and where there is a thread for it, one more that
/// moves the journal meanwhile.
///
/// Files: `path` (mode 0600), `path-wal`, `path-shm`, and `path.lock`. One process holds a lock on
/// that, and on Linux on the database (`LockPlan`), while it has the store open. No other program
/// writes the file meanwhile; one that deletes or replaces it makes every write fail.
public final class SQLiteStore: Store {
    public let path: String
    private let tables: [Table]
    let options: SQLiteOptions
    var lock: FileLock?
    private var databaseLock: FileLock?
    var files: StoreFiles
    private(set) var current: (connection: Connection, statements: TableStatements)?
    /// Why nothing helps but a restore, or a new start of the process.
    private var damage: StoreError?
    private var isClosed = false
    private(set) var isBusy = false
    /// Why the file could not be opened anew, and when that is tried again.
    private var reopening: (error: StoreError, until: UInt64)?
    private let pageSize: Int
    /// Pages of the journal that a checkpoint has seen since the journal was last empty.
    var checkpointedPages = 0
    /// Whether the last checkpoint left pages behind that a later one can move.
    var isJournalUnmoved = false
    /// The journal's file may hold more than the journal does, and that is to be cut off.
    private var hasTail = false
    /// What moves parts of the journal on another thread; `nil`: nobody has asked for it, or the
    /// next turn makes a new one.
    var side: SideCheckpoint?
    /// The last part was not moved as a whole, for somebody held an older snapshot.
    var isMoveHindered = false

    /// What went wrong when a write moved the journal after its commit, which is no fault of the
    /// write; `nil` once it went well. The journal grows until it does.
    public internal(set) var checkpointError: StoreError?

    /// Opens the file, or creates it, and brings it to the newest schema.
    ///
    /// - Parameters:
    ///   - path: of the database; its directory exists and can be written.
    ///   - migrations: how the schema came about, from the first; `nil`: as the
    ///     columns of `tables` tell. The result must be `tables`, or opening fails.
    ///   - before: is told what becomes of a file that is new or of an older schema, before it
    ///     does; if it throws, the tables stay as they are.
    /// - Throws: `.unavailable` if another process has it open, it is of a newer or another
    ///   schema, or it is damaged; `.full`.
    public init(
        path: String, tables: [Table], migrations: [Migration]? = nil,
        options: SQLiteOptions = SQLiteOptions(),
        before: (StoreUpgrade) throws(StoreError) -> Void = { _ in }
    ) throws(StoreError) {
        for table in tables {
            if let problem = table.problem() { preconditionFailure(problem) }
        }
        self.path = path
        self.tables = tables
        self.options = options
        files = StoreFiles(path)
        let lockFile = options.locks.lockFile(of: path)
        try FileLock.refuseStranger(path, lockFile: lockFile)
        lock = try FileLock(path: lockFile, of: path)
        Failpoint.hit(.storeLocked)
        try StagedStore.finish(path, locks: options.locks)
        try StagedStore.refuseJournalAlone(path)
        let check =
            switch options.check {
            case .never: false
            case .afterUncleanStop: WriterConnection.wasLeftUncleanly(path)
            case .always: true
            }
        try WriterConnection.createFile(path)
        Failpoint.hit(.storeFileMade)
        databaseLock = try FileLock.database(path, options.locks)
        files = StoreFiles(path)
        if lock?.saysUnsynced == true, FileLock.isShared(database: path) {
            throw Self.unsynced("another process has \(path) open")
        }
        var isUnsynced = false
        let connection: Connection
        let saidUnsynced = lock?.saysUnsynced == true
        lock?.saysUnsynced = options.syncs
        do throws(StoreError) {
            connection = try WriterConnection.open(
                path: path, options: options, check: check, isUnsynced: &isUnsynced)
        } catch {
            lock?.saysUnsynced = isUnsynced || saidUnsynced
            throw error
        }
        lock?.saysUnsynced = false
        do throws(StoreError) {
            let migrator = Migrator(connection, tables, migrations)
            try migrator.run(now: Self.wallClock(), before: before)
            try migrator.check(tables)
            let size = try connection.texts("PRAGMA page_size").first?.first.flatMap { Int($0) }
            pageSize = size ?? 4096
        } catch {
            connection.close()
            throw error
        }
        current = (connection, TableStatements(tables, on: connection))
    }

    /// Reads what is committed in a file, without opening it as a store: another process may
    /// have it open meanwhile.
    ///
    /// - Parameter before: is told of a file that is empty or of an older schema, which stays so;
    ///   it throws unless `body` can do with that.
    /// - Throws: `.unavailable` if there is no such file, or it holds other tables.
    public static func read(
        path: String, tables: [Table],
        before: (StoreUpgrade) throws(StoreError) -> Void = { _ in },
        _ body: (any StoreSnapshot) throws(StoreError) -> Void
    ) throws(StoreError) {
        let reader = try SQLiteReader(path: path, tables: tables, options: SQLiteOptions())
        defer { reader.close() }
        try reader.announce(before)
        try reader.read(body)
    }

    deinit { close() }

    public var isDamaged: Bool {
        !isClosed && (damage ?? reopening?.error)?.isDamage ?? false
    }

    /// Bytes in the journal after the last commit.
    public var journalSize: Int { (current?.connection.journalPages ?? 0) * pageSize }

    /// What writing has taken since the connection was opened: statements, those that begin and
    /// end transactions among them, and bytes of journal.
    public var effort: StoreEffort {
        StoreEffort(
            statements: current?.connection.statementsRun ?? 0,
            journalBytes: (current?.connection.journalPagesWritten ?? 0)
                * UInt64(pageSize + Self.frameHeader),
            journalSize: journalSize)
    }

    /// Bytes before each page of the journal, and before all (sqlite.org/fileformat2.html, 4.1).
    private static let (frameHeader, journalHeader) = (24, 32)

    /// Bytes of its file that the journal takes.
    private var journalFileSize: Int {
        let pages = current?.connection.journalPages ?? 0
        return Self.journalHeader + pages * (pageSize + Self.frameHeader)
    }

    // MARK: Transactions

    /// The lock on the file keeps other processes out, and this object has the only connection
    /// that writes.
    public var isSoleWriter: Bool { true }

    public func write(_ body: (any StoreTransaction) throws(StoreError) -> Void)
        throws(StoreError)
    {
        let (connection, statements) = try begin()
        defer { isBusy = false }
        do throws(StoreError) {
            try statements.execute("BEGIN IMMEDIATE")
            let transaction = SQLiteTransaction(connection, statements, isWriting: true)
            defer { transaction.end() }
            try body(transaction)
            if let failure = transaction.failure { throw failure }
            try files.check()
            do throws(StoreError) {
                try statements.execute("COMMIT")
            } catch {
                throw connection.noteUnknownCommit(error) ?? error
            }
        } catch {
            // If even this fails, the handle is not used again.
            do { try statements.rollBack(on: connection) } catch { drop(connection) }
            noteDamage(connection)
            throw error
        }
        trimJournal(connection)
    }

    public func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void)
        throws(StoreError)
    {
        let (connection, statements) = try begin()
        defer { isBusy = false }
        do throws(StoreError) {
            try statements.snapshot(on: connection, body)
        } catch {
            noteDamage(connection)
            throw error
        }
    }

    private func begin() throws(StoreError) -> (Connection, TableStatements) {
        precondition(!isBusy, "write or read inside a body of the same store")
        let opened = try usable()
        isBusy = true
        return opened
    }

    /// The connection; a new one if the last cannot be trusted.
    func usable() throws(StoreError) -> (Connection, TableStatements) {
        if isClosed { throw .unavailable("\(path) is closed") }
        if let damage { throw damage }
        if let current, current.connection.distrust == nil { return current }
        if let current { drop(current.connection) }
        // Opening empties the journal. Whether the disk takes what is being moved is not known yet.
        if side?.isTaken == true {
            throw .unavailable("\(path) is opened anew once a part of the journal is moved")
        }
        let began = Self.monotonic()
        if let pause = reopening, began < pause.until { throw pause.error }
        files.reopened()
        try files.check()
        var isUnsynced = false
        lock?.saysUnsynced = options.syncs
        defer { lock?.saysUnsynced = isUnsynced }
        do throws(StoreError) {
            let connection = try WriterConnection.open(
                path: path, options: options, check: false, isUnsynced: &isUnsynced)
            let opened = (connection, TableStatements(tables, on: connection))
            current = opened
            reopening = nil
            return opened
        } catch {
            let now = Self.monotonic()
            reopening = (error, now + max(options.reopeningPause, 2 * (now - began)))
            throw isUnsynced ? noteUnsynced(error) : error
        }
    }

    private static func monotonic() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000 + UInt64(time.tv_nsec) / 1_000_000
    }

    func drop(_ connection: Connection) {
        // One that was taken goes on, and is heard of before the file is opened anew.
        if side?.isTaken == false { closeSide() }
        connection.leaveJournal()
        connection.close()
        current = nil
        checkpointedPages = 0
        isJournalUnmoved = false
    }

    private func noteDamage(_ connection: Connection) {
        if let distrust = connection.distrust { noteDamage(distrust) }
    }

    func noteDamage(_ failure: Failure) {
        if failure.isDamage { damage = failure.error }
    }

    func noteDamage(_ error: StoreError) { damage = error }

    public func reader() throws(StoreError) -> any StoreReader {
        _ = try usable()
        return try SQLiteReader(path: path, tables: tables, options: options)
    }

    // MARK: The journal

    public func checkpoint() throws(StoreError) {
        precondition(!isBusy, "checkpoint inside a body of the same store")
        let (connection, _) = try usable()
        // Two connections must not; and what is being moved need not be moved twice.
        if side?.isTaken == true { return }
        side?.release()
        let isDone = connection.journalPages == checkpointedPages && !isJournalUnmoved
        // The next write starts a journal anew that was moved, but not one that is still read.
        if isJournalFull {
            try move(connection, .restart)
        } else if !isDone {
            try move(connection, .passive)
        }
        checkpointError = nil
    }

    public var isCheckpointDue: Bool { unmovedBytes > options.journalStep }

    public var isJournalFull: Bool { journalSize > options.journalLimit }

    /// Bytes that the journal grew by since the last checkpoint.
    var unmovedBytes: Int {
        let pages = current?.connection.journalPages ?? 0
        // The journal starts anew at the write after everything was moved.
        return (pages < checkpointedPages ? pages : pages - checkpointedPages) * pageSize
    }

    /// How often a write or a checkpoint slept because somebody held a lock.
    var lockWaits: UInt64 { current?.connection.lockWaits ?? 0 }

    private func move(_ connection: Connection, _ mode: Connection.Checkpoint)
        throws(StoreError)
    {
        Failpoint.hit(.checkpointBegun)
        lock?.saysUnsynced = options.syncs
        defer { lock?.saysUnsynced = connection.isUnsynced }
        do throws(StoreError) {
            isJournalUnmoved = try !connection.checkpoint(mode, syncs: options.syncs).isWhole
            Failpoint.hit(.checkpointDone)
            checkpointedPages = connection.journalPages
        } catch {
            let failure = connection.isUnsynced ? noteUnsynced(error) : error
            checkpointError = failure
            noteDamage(connection)
            throw failure
        }
    }

    /// Keeps the journal small where nobody calls `checkpoint`; what a reader is in the way of
    /// stays. The transaction is committed: an error here is kept, not thrown.
    private func trimJournal(_ connection: Connection) {
        if connection.journalBeganAnew() { hasTail = true }
        if hasTail {
            hasTail = connection.cutJournal(
                to: Int64(max(journalFileSize, options.journalLimit)),
                step: Int64(options.journalCut))
        }
        if connection.journalPages < checkpointedPages { checkpointedPages = 0 }
        guard unmovedBytes > 2 * options.journalStep, side == nil else { return }
        do throws(StoreError) {
            try move(connection, .passive)
            checkpointError = nil
        } catch {
            checkpointError = error
        }
    }

    // MARK: The rest

    public func now() -> Timestamp { Self.wallClock() }

    private static func wallClock() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        let milliseconds = Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
        return Timestamp(milliseconds: UInt64(max(0, milliseconds)))
    }

    /// Empties the journal, if no reader is in the way, and closes the file. Readers are closed
    /// before. What cannot be moved is moved at the next opening.
    public func close() {
        precondition(!isBusy, "close inside a body of the same store")
        if isClosed { return }
        isClosed = true
        defer {
            databaseLock = nil
            lock = nil
        }
        // A move may have been run whose end nobody told.
        var keepsJournal = side?.isUnsynced == true
        closeSide()
        guard let (connection, _) = current else { return }
        Failpoint.hit(.storeClosing)
        keepsJournal = keepsJournal || connection.distrust != nil
        lock?.saysUnsynced = options.syncs
        if !keepsJournal {
            _ = try? connection.checkpoint(.truncateWaiting, syncs: options.syncs)
        }
        lock?.saysUnsynced = keepsJournal || connection.isUnsynced
        if keepsJournal || connection.distrust != nil { connection.leaveJournal() }
        connection.close()
        current = nil
        Failpoint.hit(.storeClosed)
    }
}
