import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Whose the files of a store are. Commands that root runs make files that a server with another
/// user has to open later.
enum FileOwner {
    /// Gives a file that this process has just made to whom `model` belongs, if that is there, else
    /// to whom the folder of `path` belongs. Only root can, and only root has to.
    ///
    /// A link, or another user's file in a folder that many may write, says nothing: anybody could
    /// have put it there to be given a store.
    static func hand(_ descriptor: Int32, at path: String, like model: String? = nil) {
        guard geteuid() == 0 else { return }
        var (file, folder) = (stat(), stat())
        guard stat(self.folder(of: path), &folder) == 0 else { return }
        let isThere = model.map { lstat($0, &file) == 0 && file.st_mode & S_IFMT == S_IFREG }
        let isOwners = file.st_uid == folder.st_uid || folder.st_mode & (S_IWGRP | S_IWOTH) == 0
        let owner = isThere == true && isOwners ? file : folder
        // Where the file system keeps no owners, everybody has the same access to all of it.
        _ = fchown(descriptor, owner.st_uid, owner.st_gid)
    }

    /// Why the system refused the file, in words: of access, with whom it belongs to.
    static func reason(_ number: Int32, _ path: String) -> String {
        guard number == EACCES || number == EPERM else { return String(cString: strerror(number)) }
        var status = stat()
        if stat(path, &status) == 0 {
            return "permission denied: it belongs to \(name(of: status.st_uid))"
        }
        guard stat(folder(of: path), &status) == 0 else { return "permission denied" }
        return "permission denied: its folder belongs to \(name(of: status.st_uid))"
    }

    /// Why this process may not read and write a file that is there; `nil`: it may, or there is no
    /// such file. The file is not opened, for closing it would end SQLite's locks on it.
    static func problem(at path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0,
            faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) != 0
        else { return nil }
        return "\(path): \(reason(errno, path))"
    }

    /// The path as a shell takes it for one word, in a command that a message names.
    static func quoted(_ path: String) -> String {
        let isBare = path.unicodeScalars.allSatisfy { scalar in
            scalar.isASCII && scalar.properties.isAlphabetic
                || "0123456789._-/:@%+,".unicodeScalars.contains(scalar)
        }
        if isBare { return path }
        let parts = path.split(separator: "'", omittingEmptySubsequences: false)
        return "'" + parts.joined(separator: "'\\''") + "'"
    }

    private static func folder(of path: String) -> String {
        guard let end = path.lastIndex(of: "/") else { return "." }
        return end == path.startIndex ? "/" : String(path[..<end])
    }

    private static func name(of user: uid_t) -> String {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16_384)
        guard getpwuid_r(user, &entry, &buffer, buffer.count, &found) == 0, found != nil,
            let name = entry.pw_name
        else { return "user \(user)" }
        return String(cString: name)
    }
}

extension SQLiteStore {
    /// Why this process may not read and write the files of the store at `path`; `nil`: as far as
    /// they are there, it may. Nothing is opened.
    public static func accessProblem(at path: String) -> String? {
        ["", ".lock", "-wal", "-shm"].lazy.compactMap { FileOwner.problem(at: path + $0) }.first
    }
}
