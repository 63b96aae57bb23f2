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
    /// The journal appears with the first transaction after an opening.
    private var journal: Inode?

    init(_ path: String) {
        self.path = path
        database = Inode(path)
    }

    /// The writer's connection was opened anew, perhaps with another journal.
    mutating func reopened() { journal = nil }

    /// - Throws: `.unavailable` once something is not what it was.
    mutating func check() throws(StoreError) {
        guard database != nil, Inode(path) == database else { throw gone(path) }
        let found = Inode("\(path)-wal")
        if journal == nil { journal = found }
        guard found == journal else { throw gone("\(path)-wal") }
    }

    private func gone(_ path: String) -> StoreError {
        .unavailable(
            "\(path) was deleted or replaced while it is open: nothing more is written, for it "
                + "would be lost. Stop the server and put the file back, or restore a backup")
    }
}
