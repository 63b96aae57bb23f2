/// A 128-bit identifier of one kind of object, made by whoever creates the object (UUIDv7 by
/// convention; the time inside is never read) and final. `Noun` only keeps kinds apart.
///
/// Text form: 36 characters, lower case, 8-4-4-4-12 (RFC 9562). Order: as unsigned bytes.
public struct Identifier<Noun>: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let high: UInt64
    public let low: UInt64

    @inlinable
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// `nil` unless there are exactly 16 bytes. Of an array, because every row read makes some
    /// and a generic collection costs each byte a call.
    @inlinable
    public init?(_ bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        var high: UInt64 = 0
        var low: UInt64 = 0
        for offset in 0..<8 {
            high = high << 8 | UInt64(bytes[offset])
            low = low << 8 | UInt64(bytes[offset + 8])
        }
        self.init(high: high, low: low)
    }

    /// `nil` unless there are exactly 16 bytes.
    public init?(_ bytes: ArraySlice<UInt8>) { self.init(Array(bytes)) }

    /// Reads the text form; capital letters are accepted, anything else gives `nil`.
    public init?(text: String) {
        let characters = Array(text.utf8)
        guard characters.count == 36 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(16)
        var pending: UInt8?
        for (offset, character) in characters.enumerated() {
            if offset == 8 || offset == 13 || offset == 18 || offset == 23 {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            let digit: UInt8
            switch character {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = character - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = character - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = character - UInt8(ascii: "A") + 10
            default: return nil
            }
            if let first = pending {
                bytes.append(first << 4 | digit)
                pending = nil
            } else {
                pending = digit
            }
        }
        self.init(bytes)
    }

    /// The 16 bytes, most significant first.
    @inlinable
    public var bytes: [UInt8] {
        // A literal: the array's type need not be looked up as it is in a generic initialiser.
        [
            UInt8(truncatingIfNeeded: high >> 56), UInt8(truncatingIfNeeded: high >> 48),
            UInt8(truncatingIfNeeded: high >> 40), UInt8(truncatingIfNeeded: high >> 32),
            UInt8(truncatingIfNeeded: high >> 24), UInt8(truncatingIfNeeded: high >> 16),
            UInt8(truncatingIfNeeded: high >> 8), UInt8(truncatingIfNeeded: high),
            UInt8(truncatingIfNeeded: low >> 56), UInt8(truncatingIfNeeded: low >> 48),
            UInt8(truncatingIfNeeded: low >> 40), UInt8(truncatingIfNeeded: low >> 32),
            UInt8(truncatingIfNeeded: low >> 24), UInt8(truncatingIfNeeded: low >> 16),
            UInt8(truncatingIfNeeded: low >> 8), UInt8(truncatingIfNeeded: low),
        ]
    }

    public var description: String {
        unsafe String(unsafeUninitializedCapacity: 36) { text in
            var position = 0
            for half in [high, low] {
                for shift in stride(from: UInt64(60), through: 0, by: -4) {
                    if position == 8 || position == 13 || position == 18 || position == 23 {
                        unsafe text[position] = UInt8(ascii: "-")
                        position += 1
                    }
                    let digit = UInt8(truncatingIfNeeded: half >> shift) & 15
                    unsafe text[position] =
                        digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit
                    position += 1
                }
            }
            return position
        }
    }

    public static func < (left: Self, right: Self) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }
}

/// The kinds of `Identifier`.
public enum Noun {
    public enum Device {}
    public enum Conversation {}
    public enum Message {}
    public enum Wake {}
    public enum Push {}
    public enum Boot {}
    public enum Epoch {}
    public enum Campaign {}
}

/// One installation of an app.
public typealias DeviceID = Identifier<Noun.Device>
public typealias ConversationID = Identifier<Noun.Conversation>
public typealias MessageID = Identifier<Noun.Message>
/// One attempt to bring a device to sync; travels in the push payload and comes back in HELLO.
public typealias WakeID = Identifier<Noun.Wake>
/// The `apns-id` of one push.
public typealias PushID = Identifier<Noun.Push>
/// One text for many devices, sent by a filter.
public typealias CampaignID = Identifier<Noun.Campaign>
/// One run of a server process.
public typealias BootID = Identifier<Noun.Boot>

/// A tenant: one mobile app with its own users, keys and policy. 1 to 64 bytes of UTF-8.
public struct AppID: Hashable, Comparable, Sendable, CustomStringConvertible {
    public static let bytesMax = 64
    private let exact: ExactText

    public init(_ name: String) { exact = ExactText(name) }

    public var name: String { exact.text }

    /// Whether the name keeps the limits above and holds no control character.
    public var isValid: Bool { isValidName(name, bytesMax: Self.bytesMax) }
    public var description: String { name }
    public static func < (left: Self, right: Self) -> Bool { left.exact < right.exact }
}

/// A user of an app, as the app's backend names it (`sub` of its identity tokens).
/// 1 to 128 bytes of UTF-8.
public struct UserID: Hashable, Comparable, Sendable, CustomStringConvertible {
    public static let bytesMax = 128
    private let exact: ExactText

    public init(_ name: String) { exact = ExactText(name) }

    public var name: String { exact.text }

    /// Whether the name keeps the limits above and holds no control character.
    public var isValid: Bool { isValidName(name, bytesMax: Self.bytesMax) }
    public var description: String { name }
    /// By UTF-8 bytes, as both databases compare: this is the lock order.
    public static func < (left: Self, right: Self) -> Bool {
        left.exact < right.exact
    }
}

private func isValidName(_ name: String, bytesMax: Int) -> Bool {
    let bytes = name.utf8
    return !bytes.isEmpty && bytes.count <= bytesMax
        && bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
}

/// Names one history of one user's feed: `high` is drawn by the store, `low` for the user. A
/// cursor of another epoch cannot be continued (a restored counter would repeat numbers).
public typealias Epoch = Identifier<Noun.Epoch>

/// How far a device has durably applied its user's feed.
public struct Cursor: Hashable, Sendable {
    public var epoch: Epoch
    public var seq: UInt64

    public init(epoch: Epoch, seq: UInt64) {
        self.epoch = epoch
        self.seq = seq
    }
}
