import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Which files a store has open, by inode. A file that was deleted or replaced while it is open
/// still takes everything, and nothing of it is there after the next start: before each commit the
/// store looks whether its files are still those at its path.
struct StoreFiles {
    private struct Inode: Equatable {
        let device: dev_t
        let number: ino_t

        init?(_ path: String) {
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            device = status.st_dev
            number = status.st_ino
        }
    }

    private let path: String
    private let database: Inode?
    /// The journal and the index of it in shared memory, by which other processes find their way in
    /// it and keep it from beginning anew. They appear with the first transaction after an opening.
    private var journal: Inode?
    private var memory: Inode?

    init(_ path: String) {
        self.path = path
        database = Inode(path)
    }

    /// The writer's connection was opened anew, perhaps with another journal.
    mutating func reopened() { (journal, memory) = (nil, nil) }

    /// - Throws: `.unavailable` once something is not what it was.
    mutating func check() throws(StoreError) {
        guard database != nil, Inode(path) == database else { throw gone(path) }
        try check("\(path)-wal", &journal)
        try check(path + Self.memoryName, &memory)
    }

    private func check(_ path: String, _ known: inout Inode?) throws(StoreError) {
        let found = Inode(path)
        if known == nil { known = found }
        guard found == known else { throw gone(path) }
    }

    private func gone(_ path: String) -> StoreError {
        let advice =
            path.hasSuffix(Self.memoryName)
            ? "another process, such as a backup, may find the store in pieces. Start the server "
                + "anew, once no other process has the store open"
            : "it would be lost. Stop the server and put the file back, or restore a backup"
        return .unavailable(
            "\(path) was deleted or replaced while it is open: nothing more is written, for "
                + advice)
    }

    private static let memoryName = "-shm"
}
