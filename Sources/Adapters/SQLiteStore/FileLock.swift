import Glibc
import Model

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
            Glibc.close(descriptor)
            throw .unavailable(
                reason == EWOULDBLOCK
                    ? "\(path) is locked: another process has this database open for writing"
                    : "\(path): cannot lock (errno \(reason))")
        }
    }

    deinit { Glibc.close(descriptor) }
}
