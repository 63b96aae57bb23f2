import Model

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Of which messages the person was told on this device, by the app or by an alert, over the ends
/// of processes and of push tokens. What stands on the screen says it too, until the person has
/// put it aside.
public protocol ToldRecord: Sendable {
    /// - Parameter identifier: of the notification; of a message it is the message's own.
    func contains(_ identifier: String) -> Bool
    func note(_ identifier: String)
}

/// A record in one file of 64 KiB, which an app and its notification service extension share: at
/// most 4,096 messages, the newest four of each of 1,024 buckets.
///
/// Nobody locks it, so that it may lie in the container of an app group: iOS ends an app that is
/// suspended with a lock there. Two that write at once lose an entry at worst, and so does who
/// cannot read it, as before first unlock: the person may then hear of a message again.
public struct ToldFile: ToldRecord {
    /// Messages are spread over buckets; each keeps its newest few.
    static let buckets: UInt64 = 1_024
    static let ways = 4
    private static let size = 16

    private let path: String

    /// - Parameter path: in a folder that exists; the file is made when something is noted.
    public init(path: String) { self.path = path }

    public func contains(_ identifier: String) -> Bool {
        guard let message = Self.message(identifier) else { return false }
        return open(O_RDONLY) { file in Self.read(file, message).contains(message) } ?? false
    }

    public func note(_ identifier: String) {
        guard let message = Self.message(identifier) else { return }
        _ = open(O_RDWR | O_CREAT) { file in
            let known = Self.read(file, message)
            guard !known.contains(message) else { return }
            let bytes = ([message] + known.prefix(Self.ways - 1)).flatMap(\.bytes)
            // A bucket that was not written whole holds one that is none: nobody's loss.
            _ = pwrite(file, bytes, bytes.count, Self.place(of: message))
        }
    }

    /// `nil`: it names no message.
    private static func message(_ identifier: String) -> MessageID? {
        // The id of zeros is nobody's, and what an empty place reads as.
        MessageID(text: identifier).flatMap { $0.high == 0 && $0.low == 0 ? nil : $0 }
    }

    private static func place(of message: MessageID) -> off_t {
        let mixed = (message.high ^ message.low) &* 0x9E37_79B9_7F4A_7C15
        return off_t((mixed >> 32) % buckets) * off_t(ways * size)
    }

    private static func read(_ file: Int32, _ message: MessageID) -> [MessageID] {
        var bytes = [UInt8](repeating: 0, count: ways * size)
        let count = pread(file, &bytes, bytes.count, place(of: message))
        guard count > 0 else { return [] }
        return stride(from: 0, to: count - count % size, by: size).compactMap { start in
            let found = MessageID(bytes[start..<start + size])
            return found.flatMap { $0.high == 0 && $0.low == 0 ? nil : $0 }
        }
    }

    private func open<Result>(_ flags: Int32, _ body: (Int32) -> Result) -> Result? {
        #if canImport(Darwin)
            let file = Darwin.open(path, flags | O_CLOEXEC, 0o600)
        #else
            let file = Glibc.open(path, flags | O_CLOEXEC, 0o600)
        #endif
        guard file >= 0 else { return nil }
        defer { close(file) }
        return body(file)
    }
}
