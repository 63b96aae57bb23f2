import Glibc

/// A file is no log of messages.
public struct UnusableLog: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) { self.description = description }
}

extension IRCLog {
    /// What is in a file, or comes out of a device or a pipe.
    public static func text(of path: String) throws(UnusableLog) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(descriptor, &part, part.count)
            guard count >= 0 else { throw unreadable(path) }
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += part[..<count]
        }
    }

    private static func unreadable(_ path: String) -> UnusableLog {
        UnusableLog("cannot read \(path): \(String(cString: strerror(errno)))")
    }
}
