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

    init(path: String) throws(StoreError) {
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw .unavailable("\(path): cannot open the lock file (errno \(errno))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let reason = errno
            close(descriptor)
            throw .unavailable(
                reason == EWOULDBLOCK
                    ? "\(path) is locked: another process has this database open for writing"
                    : "\(path): cannot lock (errno \(reason))")
        }
    }

    /// The same right by the database itself, whatever name it was opened by: a hard or symbolic
    /// link leads to a lock file of another name, and a lock file can be deleted.
    ///
    /// SQLite's own locks on the file are of another kind (fcntl), which this one does not meet on
    /// a local disk. Closing a descriptor of the file lets go of all of the process, so this one
    /// is closed after SQLite's.
    init(database path: String) throws(StoreError) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .unavailable("\(path): cannot open (errno \(errno))") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            // Not closed: if it is this process that has the file open, its locks would go.
            throw .unavailable(
                errno == EWOULDBLOCK
                    ? "\(path) is locked: it is open for writing, perhaps by another name"
                    : "\(path): cannot lock (errno \(errno))")
        }
    }

    deinit { close(descriptor) }
}
