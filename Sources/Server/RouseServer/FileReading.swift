import FoundationEssentials
import Glibc

/// Files that settings name.
enum FileReading {
    /// The whole file, or in words why it cannot be had.
    static func read(_ path: String) -> Result<[UInt8], Reason> {
        if let data = FileManager.default.contents(atPath: path) { return .success(Array(data)) }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return .failure(Reason(errno)) }
        defer { close(descriptor) }
        var byte: UInt8 = 0
        // A directory can be opened, and not read.
        return .failure(Glibc.read(descriptor, &byte, 1) < 0 ? Reason(errno) : Reason(EIO))
    }

    /// What the system said.
    struct Reason: Error, CustomStringConvertible {
        let description: String

        init(_ number: Int32) { description = String(cString: strerror(number)) }
    }
}
