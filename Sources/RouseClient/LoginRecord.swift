#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Who is logged in on this device, as the app has said last.
public enum LoginMark: Equatable, Sendable {
    case user(String)
    /// Nobody; or nothing was said yet, as by an app of a version that did not.
    case nobody
    /// It cannot be read, as before the phone was unlocked after its restart.
    case unknown
}

/// Where the app tells its notification service extension who is logged in. The extension's store
/// is a file of its own that the app does not reach: when the user has logged out, it is for the
/// extension to erase it.
public protocol LoginRecord: Sendable {
    func read() -> LoginMark
    /// - Parameter user: `nil`: nobody.
    /// - Returns: whether it says so now.
    func write(_ user: String?) -> Bool
}

/// A record in one small file. It is not there while nobody is logged in, and another takes its
/// place as a whole: nobody locks it, so that it may lie in the container of an app group.
public struct LoginFile: LoginRecord {
    /// More than a user's name has (SES-9).
    private static let bytesMax = 1_024

    private let path: String

    /// - Parameter path: in a folder that exists.
    public init(path: String) { self.path = path }

    public func read() -> LoginMark {
        guard !path.isEmpty else { return .unknown }
        let file = Self.open(path, O_RDONLY)
        guard file >= 0 else { return errno == ENOENT ? .nobody : .unknown }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: Self.bytesMax)
        let count = pread(file, &bytes, bytes.count, 0)
        // No user has an empty name.
        guard count > 0 else { return .unknown }
        return .user(String(decoding: bytes.prefix(count), as: UTF8.self))
    }

    public func write(_ user: String?) -> Bool {
        guard !path.isEmpty else { return false }
        guard let user else { return unlink(path) == 0 || errno == ENOENT }
        if read() == .user(user) { return true }
        let fresh = path + ".new"
        let file = Self.open(fresh, O_WRONLY | O_CREAT | O_TRUNC)
        guard file >= 0 else { return false }
        let bytes = Array(user.utf8)
        let isWhole = pwrite(file, bytes, bytes.count, 0) == bytes.count
        close(file)
        return isWhole && rename(fresh, path) == 0
    }

    private static func open(_ path: String, _ flags: Int32) -> Int32 {
        #if canImport(Darwin)
            Darwin.open(path, flags | O_CLOEXEC, 0o600)
        #else
            Glibc.open(path, flags | O_CLOEXEC, 0o600)
        #endif
    }
}
