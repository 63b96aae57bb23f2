import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// A whole, synced store that waits under `path.restored` to become the one at `path`.
///
/// Its existence decides: a process that ends before the last step leaves it to the next that
/// opens the store. Only the holder of the store's lock calls these.
enum StagedStore {
    private static func name(_ path: String) -> String { "\(path).restored" }

    /// In the file's header (`PRAGMA application_id`): a restore has made it, and it may take a
    /// store's place. It stays there.
    static let mark = 0x526F_7553

    /// Whether the store at `path` is to be another as soon as somebody opens it.
    ///
    /// - Throws: `.unavailable` if something else has the name.
    static func isWaiting(for path: String) throws(StoreError) -> Bool {
        let name = name(path)
        guard FileSteps.exists(name) else { return false }
        let header = try FileSteps.beginning(of: name, bytes: 72)
        // sqlite.org/fileformat.html, 1.3.
        let made = header.dropFirst(68).reduce(0) { $0 << 8 | Int($1) }
        guard header.count == 72, header.starts(with: Array("SQLite format 3\0".utf8)), made == mark
        else {
            throw .unavailable(
                "\(name) is no store that `rouse restore` has made, and this name is for one: move "
                    + "it away")
        }
        return true
    }

    /// The name of a file that a restore makes or leaves.
    static func isReserved(_ path: String) -> Bool {
        [".restored", ".restoring"].contains { path.hasSuffix($0) }
    }

    /// SQLite would empty the journal of a database that it makes anew.
    static func refuseJournalAlone(_ path: String) throws(StoreError) {
        guard !FileSteps.holdsBytes(path), FileSteps.holdsBytes("\(path)-wal") else { return }
        throw .unavailable(
            "\(path) is missing or empty, and its journal \(path)-wal is not: put the file back, "
                + "or move the journal away to begin an empty store")
    }

    /// Gives the store's files a second name.
    /// - Returns: that name; `nil`: there is no store.
    static func keep(_ path: String, as wanted: String) throws(StoreError) -> String? {
        guard FileSteps.exists(path) else { return nil }
        var kept = wanted
        var next = 2
        while FileSteps.exists(kept) || FileSteps.exists("\(kept)-wal") {
            kept = "\(wanted).\(next)"
            next += 1
        }
        // The journal first: a database without its journal must not look like a whole one.
        if FileSteps.exists("\(path)-wal") {
            try FileSteps.link("\(path)-wal", to: "\(kept)-wal")
        }
        try FileSteps.link(path, to: kept)
        try FileSteps.syncDirectory(of: path)
        return kept
    }

    /// From here on the store at `path` is the one in `copy`.
    static func stage(_ copy: String, for path: String) throws(StoreError) {
        try FileSteps.rename(copy, to: name(path), replaces: true)
    }

    /// Does what is left to do after `stage`; nothing if there is nothing.
    ///
    /// - Parameter isHeld: the caller has the right to the database itself.
    static func finish(
        _ path: String, isHeld: Bool = false, locks: LockPlan = .ofSystem
    ) throws(StoreError) {
        guard try isWaiting(for: path) else { return }
        let held = !isHeld && FileSteps.exists(path) ? try FileLock.database(path, locks) : nil
        defer { withExtendedLifetime(held) {} }
        // An old journal beside the new file would be taken for its own.
        FileSteps.remove("\(path)-wal")
        FileSteps.remove("\(path)-shm")
        guard !FileSteps.exists("\(path)-wal"), !FileSteps.exists("\(path)-shm") else {
            throw .unavailable("\(path)-wal, \(path)-shm: cannot be removed to end a restore")
        }
        try FileSteps.syncDirectory(of: path)
        try FileSteps.rename(name(path), to: path, replaces: true)
    }
}

/// The right to write a file that is in the making, and the file itself, empty.
final class PartialFile {
    private let descriptor: Int32

    /// - Throws: `.unavailable` if another process is making it, or it cannot be made.
    init(_ path: String) throws(StoreError) {
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw FileSteps.failure(path, "cannot be made") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw .unavailable("\(path): another backup to this file is under way")
        }
        var (own, named) = (stat(), stat())
        guard fstat(descriptor, &own) == 0, stat(path, &named) == 0, own.st_ino == named.st_ino,
            own.st_dev == named.st_dev
        else {
            close(descriptor)
            throw .unavailable("\(path): another backup to this file has just ended")
        }
        // What SQLite left beside one that was broken off.
        FileSteps.remove("\(path)-journal")
        FileSteps.remove("\(path)-wal")
        FileSteps.remove("\(path)-shm")
        guard fchmod(descriptor, 0o600) == 0, ftruncate(descriptor, 0) == 0 else {
            let failure = FileSteps.failure(path, "cannot be emptied")
            close(descriptor)
            throw failure
        }
    }

    deinit { close(descriptor) }
}

/// Steps on files, each durable when it returns where it says so.
enum FileSteps {
    static func failure(_ path: String, _ what: String) -> StoreError {
        let number = errno
        let text = "\(path): \(what) (\(FileOwner.reason(number, path)))"
        return [ENOSPC, EDQUOT].contains(number) ? .full(text) : .unavailable(text)
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// Whether the name is free, or a file's own.
    static func isPlain(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG
    }

    /// Whether both names are there and lead to one file.
    static func isSame(_ path: String, _ other: String) -> Bool {
        var (first, second) = (stat(), stat())
        return stat(path, &first) == 0 && stat(other, &second) == 0
            && first.st_ino == second.st_ino && first.st_dev == second.st_dev
    }

    static func holdsBytes(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_size > 0
    }

    static func size(of path: String) throws(StoreError) -> Int {
        var status = stat()
        guard stat(path, &status) == 0 else { throw failure(path, "cannot be read") }
        return Int(status.st_size)
    }

    static func remove(_ path: String) { unlink(path) }

    /// The file's bytes are on disk.
    static func sync(_ path: String) throws(StoreError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(path, "cannot be opened") }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure(path, "cannot be synced") }
    }

    /// The names in the file's directory are on disk.
    static func syncDirectory(of path: String) throws(StoreError) {
        guard let end = path.lastIndex(of: "/") else { return try sync(".") }
        try sync(end == path.startIndex ? "/" : String(path[..<end]))
    }

    /// The file has its new name, on disk.
    static func rename(_ path: String, to name: String, replaces: Bool) throws(StoreError) {
        if replaces {
            guard SystemCalls.rename(path, name) == 0 else {
                throw failure(name, "cannot be put there")
            }
        } else {
            // Unlike a rename it fails where there is a file of this name.
            guard SystemCalls.link(path, name) == 0 else { throw failure(name, "cannot be made") }
            unlink(path)
        }
        try syncDirectory(of: name)
    }

    /// A second name for the file.
    static func link(_ path: String, to name: String) throws(StoreError) {
        guard SystemCalls.link(path, name) == 0 else { throw failure(name, "cannot be linked") }
    }

    static func beginning(of path: String, bytes: Int) throws(StoreError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure(path, "cannot be opened") }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: bytes)
        let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        guard count >= 0 else { throw failure(path, "cannot be read") }
        return Array(buffer.prefix(count))
    }

    /// A copy with mode 0600 under a name that nothing has yet, for whom `model` belongs to.
    static func copy(
        _ path: String, to name: String, ownedLike model: String
    ) throws(StoreError) {
        let source = open(path, O_RDONLY | O_CLOEXEC)
        guard source >= 0 else { throw failure(path, "cannot be opened") }
        defer { close(source) }
        let target = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard target >= 0 else { throw failure(name, "cannot be made") }
        defer { close(target) }
        FileOwner.hand(target, at: name, like: model)
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = buffer.withUnsafeMutableBytes { read(source, $0.baseAddress, $0.count) }
            if count == 0 { return }
            guard count > 0 else { throw failure(path, "cannot be read") }
            var done = 0
            while done < count {
                let written = buffer[done..<count].withUnsafeBytes {
                    write(target, $0.baseAddress, $0.count)
                }
                guard written > 0 else { throw failure(name, "cannot be written") }
                done += written
            }
        }
    }
}
