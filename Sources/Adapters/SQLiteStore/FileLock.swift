import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The right to write a database: an exclusive lock on a file beside it. Held by the open file,
/// so that it ends with the process however that ends; the file itself stays, because removing
/// it would let two owners lock two files of one name.
final class FileLock {
    private let descriptor: Int32

    /// - Parameter database: whose right it is; a lock file that is made belongs to its owner.
    init(path: String, of database: String) throws(StoreError) {
        descriptor = Self.opened(path, database)
        guard descriptor >= 0 else {
            throw .unavailable(
                "\(path): cannot open the lock file: \(FileOwner.reason(errno, path))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let reason = errno
            close(descriptor)
            throw .unavailable(
                reason == EWOULDBLOCK
                    ? "\(path) is locked: another process has this database open for writing, such "
                        + "as a running server; `fuser \(FileOwner.quoted(path))` names it"
                    : "\(path): cannot lock: \(FileOwner.reason(reason, path))")
        }
        if !saysUnsynced { saysUnsynced = false }
    }

    /// The same right by the database itself, whatever name it was opened by: a hard or symbolic
    /// link leads to a lock file of another name, and a lock file can be deleted. `nil`: the plan
    /// leaves the database alone.
    static func database(
        _ path: String, _ plan: LockPlan = .ofSystem
    ) throws(StoreError) -> FileLock? {
        switch plan {
        case .fileAndDatabase: try FileLock(database: path)
        case .fileAtPlace: nil
        }
    }

    /// SQLite's own locks on the file are of another kind (fcntl), which this one does not meet on
    /// a local disk of Linux. Closing a descriptor of the file lets go of all of the process, so
    /// this one is closed after SQLite's.
    private init(database path: String) throws(StoreError) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw .unavailable("\(path): cannot open: \(FileOwner.reason(errno, path))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            // Not closed: if it is this process that has the file open, its locks would go.
            throw .unavailable(
                errno == EWOULDBLOCK
                    ? "\(path) is locked: it is open for writing, perhaps by another name"
                    : "\(path): cannot lock: \(FileOwner.reason(errno, path))")
        }
    }

    deinit { close(descriptor) }

    /// Refuses what is no database before a lock file is left beside it. Where there is a lock file
    /// already, a store was there, and nothing is looked at.
    static func refuseStranger(_ path: String, lockFile: String) throws(StoreError) {
        guard access(lockFile, F_OK) != 0 else { return }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        // What it is that cannot be opened, opening it as a store says; if it is held, this process
        // may be the holder, and closing would let go of its locks.
        guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return }
        defer { close(descriptor) }
        var header = [UInt8](repeating: 0, count: 16)
        let count = read(descriptor, &header, header.count)
        guard count >= 0 else {
            throw .unavailable("\(path): \(FileOwner.reason(errno, path))")
        }
        guard count == 0 || header == Array("SQLite format 3\0".utf8) else {
            throw .unavailable(
                "\(path) is no SQLite database; if it was one, \(Failure.remedy)")
        }
    }

    /// The lock file, made if there is none.
    private static func opened(_ path: String, _ database: String) -> Int32 {
        // A link would have another file written to.
        let flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW
        let found = open(path, flags)
        if found >= 0 || errno != ENOENT { return found }
        let made = SystemCalls.open(path, flags | O_CREAT | O_EXCL, 0o600)
        if made >= 0 { FileOwner.hand(made, at: path, like: database) }
        // Another process has just made it.
        return made < 0 && errno == EEXIST ? open(path, flags) : made
    }

    private static let (synced, unsynced) = ("synced  \n", "unsynced\n")

    /// The disk may not have taken what an owner has moved into the database: SQLite tells others
    /// of a part that was moved before it is synced, and while another process has the database
    /// open it does not move those pages again. Set before each move that may be partial and taken
    /// back when it is synced, so that it is there whenever the process ends in between; it stands
    /// in the lock file for the next owner.
    ///
    /// Both words are as long and one is always there: a full disk has room to change it.
    var saysUnsynced: Bool {
        get {
            var bytes = [UInt8](repeating: 0, count: Self.unsynced.utf8.count)
            let count = pread(descriptor, &bytes, bytes.count, 0)
            return count == bytes.count && bytes == Array(Self.unsynced.utf8)
        }
        set {
            let word = newValue ? Self.unsynced : Self.synced
            _ = pwrite(descriptor, word, word.utf8.count, 0)
        }
    }

    /// Whether another process has the database open. Asked before this one opens it: its own locks
    /// on the shared memory end when any of its descriptors of that file is closed.
    static func isShared(database path: String) -> Bool {
        let memory = open("\(path)-shm", O_RDWR | O_CLOEXEC)
        guard memory >= 0 else { return false }
        defer { close(memory) }
        var asked = flock()
        asked.l_type = Int16(F_WRLCK)
        asked.l_whence = Int16(SEEK_SET)
        // The byte that each holds a shared lock on (sqlite.org/src, os_unix.c, UNIX_SHM_DMS).
        asked.l_start = 128
        asked.l_len = 1
        return fcntl(memory, F_GETLK, &asked) == 0 && asked.l_type != Int16(F_UNLCK)
    }
}
