import CSQLite
public import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Copies of a store's file: made beside a server that goes on writing, checked, and put in a
/// store's place.
///
/// A backup is one file of its own, without a journal, and marked as a backup: no program opens
/// it as a store before it has been restored.
public enum SQLiteBackup {
    /// How much of a copy is done, in bytes.
    public struct Progress: Equatable, Sendable {
        public let copied: UInt64
        public let total: UInt64
    }

    /// In the file's header (`PRAGMA application_id`): it is a backup.
    static let mark: Int32 = 0x5273_4270
    /// Pages copied between two calls of `progress`.
    private static let step: Int32 = 1_024

    /// Whether the file has the mark of a backup.
    static func isMarked(_ connection: Connection) throws(StoreError) -> Bool {
        try connection.texts("PRAGMA application_id") == [[String(mark)]]
    }

    /// How far the store's journal may grow beside a copy of a small store.
    static let journalMin: UInt64 = 1 << 30

    /// Copies what is committed at this moment to `path`, a new file with mode 0600. Others go on
    /// writing and wait for nothing; their journal grows meanwhile, because the copy holds its
    /// snapshot, and shrinks after. A copy beside which it grows by more than the store's size (1
    /// GiB at least) gives up: it must not fill the disk of the server.
    ///
    /// The copy is written beside `path` (`path.partial`), synced, checked by `check`, and only
    /// then gets its name. A copy that was broken off, and not removed, is overwritten by the next.
    ///
    /// - Parameters:
    ///   - replaces: an existing plain file of this name is replaced; nothing else ever is.
    ///   - journalMax: how far the journal may grow instead.
    ///   - making: told the files that are in the making, once nobody else makes them, and none
    ///     before the copy gets its name.
    ///   - check: throws if the copy, under its name of the moment, is not good.
    /// - Throws: `.unavailable`, `.full`: nothing has changed.
    public static func copy(
        store: String, to path: String, replaces: Bool, journalMax: UInt64? = nil,
        progress: (Progress) -> Void = { _ in }, making: ([String]) -> Void = { _ in },
        check: (SQLiteBackupFile) throws(StoreError) -> Void
    ) throws(StoreError) {
        guard FileSteps.exists(store) else { throw .unavailable("there is no store at \(store)") }
        guard try !StagedStore.isWaiting(for: store) else {
            throw .unavailable("a restore of \(store) was broken off; open the store to end it")
        }
        try refuseStore(store, as: path)
        try refuseTarget(path)
        if !replaces, FileSteps.exists(path) { throw .unavailable("\(path) exists") }
        let partial = "\(path).partial"
        let hold = try PartialFile(partial)
        defer { withExtendedLifetime(hold) {} }
        making([partial] + ["-journal", "-wal", "-shm"].map { partial + $0 })
        do throws(StoreError) {
            let size = UInt64(try FileSteps.size(of: store))
            try copy(
                store: store, into: partial, journalMax: journalMax ?? max(size, journalMin),
                progress: progress)
            try FileSteps.sync(partial)
            do {
                let file = try SQLiteBackupFile(path: partial)
                defer { file.close() }
                try check(file)
            }
            // It may have come while the copy was made.
            try refuseTarget(path)
            making([])
            try FileSteps.rename(partial, to: path, replaces: replaces)
        } catch {
            FileSteps.remove(partial)
            making([])
            throw error
        }
    }

    /// Why a store's file is none that this program can make a backup of; `nil`: it is one. Nothing
    /// of it is changed.
    ///
    /// - Throws: it cannot be looked at.
    public static func problem(
        ofStore store: String, tables: [Table]
    ) throws(StoreError) -> String? {
        guard try !StagedStore.isWaiting(for: store) else {
            throw .unavailable("a restore of \(store) was broken off; open the store to end it")
        }
        let header = try FileSteps.beginning(of: store, bytes: 16)
        if header.isEmpty { return "\(store) is empty: there is no store in it" }
        guard header == Array("SQLite format 3\0".utf8) else {
            return "\(store) is no SQLite database"
        }
        let timeout = Int32(clamping: SQLiteOptions().busyTimeout)
        let connection = try Connection(path: store, mode: .reader, busyTimeout: timeout)
        defer { connection.close() }
        do throws(StoreError) {
            if try isMarked(connection) { return "\(store) is itself a backup" }
            _ = try Migrator(connection, tables).knownVersion()
            return nil
        } catch {
            // What the file says is no fault of its disk.
            guard case .unavailable(let words) = error else { throw error }
            return words
        }
    }

    /// Neither a file of the store is written over, by whatever name, nor is a file made that
    /// SQLite would take for what belongs to a database beside it.
    private static func refuseStore(_ store: String, as path: String) throws(StoreError) {
        for part in ["", "-wal", "-shm", ".lock"] {
            // The copy is made under the second name.
            for name in [path, "\(path).partial"] where FileSteps.isSame(store + part, name) {
                throw .unavailable("\(name) is a file of the store itself: name another one")
            }
        }
        for ending in ["-wal", "-shm", "-journal", ".lock"] where path.hasSuffix(ending) {
            throw .unavailable(
                "\(path): a file of this name belongs to a database beside it: name another one")
        }
        if StagedStore.isReserved(path) {
            throw .unavailable(
                "\(path): a file of this name belongs to a restore beside it: name another one")
        }
    }

    /// Why a backup does not take the place of what is at `path`; `nil`: there is nothing or a
    /// plain file. A device or a pipe of this name is the system's or another program's; and of a
    /// symbolic link nobody knows whether it or the file that it leads to was meant.
    public static func problem(ofTarget path: String) -> String? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        let kind: String
        switch status.st_mode & S_IFMT {
        case S_IFREG: return nil
        case S_IFLNK: kind = "a symbolic link"
        case S_IFDIR: kind = "a directory"
        case S_IFIFO: kind = "a named pipe"
        case S_IFSOCK: kind = "a socket"
        default: kind = "a device"
        }
        return "\(path) is \(kind), and a backup only replaces a plain file: name another one"
            + (kind == "a symbolic link" ? ", or the file that it leads to" : "")
    }

    private static func refuseTarget(_ path: String) throws(StoreError) {
        if let problem = problem(ofTarget: path) { throw .unavailable(problem) }
    }

    private static func copy(
        store: String, into path: String, journalMax: UInt64, progress: (Progress) -> Void
    ) throws(StoreError) {
        let timeout = Int32(clamping: SQLiteOptions().busyTimeout)
        let source = try Connection(path: store, mode: .reader, busyTimeout: timeout)
        defer { source.close() }
        if try isMarked(source) { throw .unavailable("\(store) is itself a backup") }
        // A snapshot held over all steps: without it each commit of the server's would begin
        // the copy anew.
        try source.execute("BEGIN")
        _ = try source.texts("SELECT 1 FROM sqlite_schema LIMIT 1")
        let target = try Connection(path: path, mode: .writer, busyTimeout: timeout)
        defer { target.close() }
        // Synced as a whole, at the end.
        try target.execute("PRAGMA synchronous = OFF")
        let journal = journalSize(of: store)
        try source.copyPages(to: target, step: step) { done throws(StoreError) in
            progress(done)
            let grown = journalSize(of: store)
            guard grown <= journal + journalMax else {
                throw .unavailable(
                    "the journal of \(store) grew to \(grown) bytes beside the copy, which would "
                        + "fill the disk; copy when less is written")
            }
        }
        try source.execute("ROLLBACK")
        guard try target.texts("PRAGMA journal_mode = DELETE") == [["delete"]] else {
            throw .unavailable("\(path): cannot be made a file without a journal")
        }
        try target.execute("PRAGMA application_id = \(mark)")
    }

    /// 0: there is none, or it cannot be looked at; then the copy goes on without this limit.
    private static func journalSize(of store: String) -> UInt64 {
        let size = try? FileSteps.size(of: "\(store)-wal")
        return UInt64(max(0, size ?? 0))
    }

    /// Takes a store's place with a backup. Nobody else may have the store open.
    ///
    /// A kill at any moment leaves the old store or the new one: the new one is made beside it,
    /// whole and synced; the old one's files get a second name; then one rename decides, and what
    /// is left to do is done by whoever opens the store next.
    ///
    /// - Parameters:
    ///   - suffix: of the name under which the old store is kept.
    ///   - change: carries out what makes a store of the copy that never was.
    /// - Returns: the old store's new name; `nil`: there was none.
    /// - Throws: nothing has changed.
    public static func restore(
        _ backup: String, to path: String, tables: [Table], keepingOldAs suffix: String,
        change: (SQLiteStore) throws(StoreError) -> Void
    ) throws(StoreError) -> String? {
        // A new file would take the place of the link, and the store behind it stay as it was.
        guard FileSteps.isPlain(path) else {
            throw .unavailable("\(path) is not a plain file: name the store itself")
        }
        let lock = try FileLock(path: LockPlan.ofSystem.lockFile(of: path), of: path)
        defer { withExtendedLifetime(lock) {} }
        try StagedStore.finish(path)
        try StagedStore.refuseJournalAlone(path)
        // A lock file can be deleted while its store is served, and a link has another.
        let held = FileSteps.exists(path) ? try FileLock.database(path) : nil
        defer { withExtendedLifetime(held) {} }
        let copy = "\(path).restoring"
        let remains = ["", "-wal", "-shm", "-journal", ".lock"].map { copy + $0 }
        for name in remains where FileSteps.isSame(name, backup) {
            throw .unavailable(
                "\(backup) has a name that a restore makes its files under: rename it")
        }
        for name in remains { FileSteps.remove(name) }
        defer { for name in remains { FileSteps.remove(name) } }
        try FileSteps.copy(backup, to: copy, ownedLike: path)
        do {
            let timeout = Int32(clamping: SQLiteOptions().busyTimeout)
            let connection = try Connection(path: copy, mode: .writer, busyTimeout: timeout)
            defer { connection.close() }
            try connection.execute("PRAGMA application_id = \(StagedStore.mark)")
        }
        let store = try SQLiteStore(path: copy, tables: tables)
        do throws(StoreError) {
            try change(store)
        } catch {
            store.close()
            throw error
        }
        store.close()
        guard !FileSteps.holdsBytes("\(copy)-wal") else {
            throw .unavailable("\(copy): its journal cannot be emptied")
        }
        try FileSteps.sync(copy)
        let kept = try StagedStore.keep(path, as: path + suffix)
        do throws(StoreError) {
            try StagedStore.stage(copy, for: path)
            try StagedStore.finish(path, isHeld: true)
        } catch {
            guard let isDecided = try? StagedStore.isWaiting(for: path), isDecided else {
                throw error
            }
            throw .unavailable(
                "\(error); the restore is decided all the same: the next start of the server ends "
                    + "it" + (kept.map { ", and the store that was there is \($0)" } ?? ""))
        }
        return kept
    }
}

/// A backup, opened to look at it. Nothing of it is changed.
public final class SQLiteBackupFile {
    public let path: String
    private let connection: Connection

    /// - Throws: `.unavailable`: it is no backup, or cut off; in words for an operator.
    public init(path: String) throws(StoreError) {
        self.path = path
        let header = try FileSteps.beginning(of: path, bytes: 100)
        guard header.count == 100, header.starts(with: Array("SQLite format 3\0".utf8)) else {
            throw .unavailable("\(path) is no SQLite database")
        }
        // sqlite.org/fileformat.html, 1.3: page size at 16 (1: 65,536), size in pages at 28.
        let stored = Int(header[16]) << 8 | Int(header[17])
        let pageSize = stored == 1 ? 65_536 : stored
        let pages = header[28..<32].reduce(0) { $0 << 8 | Int($1) }
        let size = try FileSteps.size(of: path)
        guard size == pages * pageSize else {
            throw .unavailable(
                "\(path) has \(size) bytes where its header says \(pages * pageSize): it was cut "
                    + "off, or a program has it open")
        }
        connection = try Connection(path: path, mode: .reader, busyTimeout: 0)
        do throws(StoreError) {
            guard try SQLiteBackup.isMarked(connection) else {
                throw .unavailable(
                    "\(path) is no backup made by `rouse backup`. (A store that a restore has kept "
                        + "is put back by hand: stop the server, move what is in its place away "
                        + "with its -wal and -shm, and give this file and its -wal their old names)"
                )
            }
        } catch {
            connection.close()
            throw error
        }
    }

    /// Reads all of it and holds it to its checksums of structure, to the tables as its schema has
    /// them, and to `rules`: statements that count the rows which break a rule, by the rule in
    /// words. They name nothing that the first schema did not have.
    ///
    /// - Returns: its schema, this program's or an older one.
    /// - Throws: `.unavailable` with everything that was found.
    @discardableResult
    public func verify(
        tables: [Table], rules: [(rule: String, violations: String)]
    ) throws(StoreError) -> Int {
        let findings = try connection.texts("PRAGMA integrity_check(3)")
        guard findings == [["ok"]] else {
            throw .unavailable(
                "\(path) is damaged: \(findings.joined().joined(separator: "; "))")
        }
        let migrator = Migrator(connection, tables)
        let schema = try migrator.knownVersion()
        try migrator.check(
            tables.filter { $0.since <= schema }.map { $0.asOf(schema: schema) })
        for (rule, violations) in rules {
            let count = try connection.texts(violations).first?.first ?? "0"
            guard count == "0" else {
                throw .unavailable("\(path) is not sound: \(count) times not: \(rule)")
            }
        }
        return schema
    }

    /// How many rows the table has.
    public func count(_ table: Table) throws(StoreError) -> UInt64 {
        let found = try connection.texts("SELECT count(*) FROM \"\(table.name)\"")
        return found.first?.first.flatMap { UInt64($0) } ?? 0
    }

    /// One row by its key; `nil`: there is none.
    public func row(_ table: Table, key: [ColumnValue]) throws(StoreError) -> [ColumnValue]? {
        try TableStatements([table], on: connection).row(table, key: key)
    }

    /// Bytes of the file.
    public func size() throws(StoreError) -> UInt64 { UInt64(try FileSteps.size(of: path)) }

    public func close() { connection.close() }
}
