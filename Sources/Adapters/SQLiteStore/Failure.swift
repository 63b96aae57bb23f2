import CSQLite
public import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What an SQLite result code means for the store, and for the handle it came from.
struct Failure {
    let error: StoreError
    /// The handle's idea of what is on disk may be wrong: it is closed, never written to again.
    let distrusts: Bool
    /// The file is damaged: nothing but a restore helps.
    let isDamage: Bool
    /// SQLite's extended result code.
    var code: Int32 = SQLITE_OK

    init(unknown what: String, _ code: Int32) {
        self.init(.unavailable(what), distrusts: true)
        self.code = code
    }

    /// - Parameter errno: the operating system's error behind it, 0 if none.
    init(code extended: Int32, errno: Int32, text: String, path: String) {
        let what = "\(path): \(text) (SQLite \(extended), errno \(errno))"
        switch extended & 0xff {
        case SQLITE_FULL:
            self.init(.full("no space: \(what)"))
        case SQLITE_IOERR:
            self = Failure.inputOutput(extended, errno: errno, what: what)
        case SQLITE_BUSY, SQLITE_LOCKED:
            self.init(.conflict("another process holds the database: \(what)"))
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            self.init(
                .unavailable("damaged, \(Self.remedy): \(what)"),
                distrusts: true, isDamage: true)
        case SQLITE_CONSTRAINT where extended == Self.uniqueness:
            self.init(.conflict("a row is there already: \(what)"))
        case SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG:
            self.init(.corrupt("a row is refused: \(what)"))
        case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH, SQLITE_CANTOPEN:
            let isFull = errno == ENOSPC || errno == EDQUOT
            let owner = [EACCES, EPERM].contains(errno) ? FileOwner.reason(errno, path) : ""
            self.init(
                isFull
                    ? .full(what)
                    : .unavailable(
                        owner.isEmpty ? "no access: \(what)" : "\(path): \(owner)"))
        default:
            self.init(.unavailable(what), distrusts: true)
        }
        code = extended
    }

    /// What helps where a file is damaged.
    static let remedy = "keep the file as evidence and restore a backup"

    /// SQLITE_CONSTRAINT_UNIQUE.
    private static let uniqueness = SQLITE_CONSTRAINT | 8 << 8

    private init(_ error: StoreError, distrusts: Bool = false, isDamage: Bool = false) {
        self.error = error
        self.distrusts = distrusts
        self.isDamage = isDamage
    }

    /// After a write that found no space nothing has been committed: the frame that commits is
    /// written last. Of a write that failed otherwise, and of one's own handle after it, nothing
    /// is known. After a failed sync the kernel may have dropped the dirty pages and call the next
    /// sync a success: only a new handle that writes them again can be trusted.
    private static func inputOutput(_ extended: Int32, errno: Int32, what: String) -> Failure {
        switch extended {
        case rouse_sqlite_ioerr_fsync, rouse_sqlite_ioerr_dir_fsync, rouse_sqlite_ioerr_close:
            return Failure(.unavailable("a sync failed: \(what)"), distrusts: true)
        default:
            // Without an error behind it a file could not be made longer.
            let isShort = extended == rouse_sqlite_ioerr_shmsize && errno == 0
            if isShort || [ENOSPC, EDQUOT, EFBIG].contains(errno) { return Failure(.full(what)) }
            return Failure(.unavailable(what), distrusts: true)
        }
    }
}

extension StoreError {
    /// The file is damaged: trying again does not help.
    public var isDamage: Bool {
        if case .unavailable(let why) = self { why.contains(Failure.remedy) } else { false }
    }

    /// The file is of a newer schema than this program knows: only a newer program opens it.
    public var isOfNewerProgram: Bool {
        if case .unavailable(let why) = self { why.contains(Migrator.newer) } else { false }
    }
}
