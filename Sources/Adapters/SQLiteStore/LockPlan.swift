#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// What a process locks while it has a database open for writing, so that no other has.
///
/// Linux keeps the locks of `flock` apart from those of `fcntl`, which SQLite takes on the
/// database. XNU keeps both in one list of the file and compares their owners alone
/// (bsd/kern/kern_lockf.c): the open file for `flock`, the process for `fcntl`. There a process
/// that holds the first on its database keeps its own SQLite out of it.
enum LockPlan: Sendable {
    /// A file beside the database, by the name that this was opened by, and the database itself,
    /// by which all of its names meet.
    case fileAndDatabase
    /// A file beside the database's own place: symbolic links to it meet there. The database is
    /// left to SQLite. Of two hard links nobody knows here, and an app makes none.
    case fileAtPlace

    static var ofSystem: LockPlan {
        #if canImport(Darwin)
            .fileAtPlace
        #else
            .fileAndDatabase
        #endif
    }

    /// - Parameter place: where `path` leads to.
    func lockFile(of path: String, at place: String) -> String {
        switch self {
        case .fileAndDatabase: "\(path).lock"
        case .fileAtPlace: "\(place).lock"
        }
    }

    func lockFile(of path: String) -> String { lockFile(of: path, at: Self.place(of: path)) }

    /// Without links. Of a file that is still to be made, its folder's place and its name.
    static func place(of path: String) -> String {
        if let place = resolved(path) { return place }
        guard let slash = path.lastIndex(of: "/") else {
            return resolved(".").map { joined($0, path) } ?? path
        }
        let (folder, name) = (path[..<slash], path[path.index(after: slash)...])
        return resolved(folder.isEmpty ? "/" : String(folder)).map { joined($0, String(name)) }
            ?? path
    }

    private static func joined(_ folder: String, _ name: String) -> String {
        folder == "/" ? "/\(name)" : "\(folder)/\(name)"
    }

    private static func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }
}
