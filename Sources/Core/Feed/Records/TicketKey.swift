public import Model

/// A key that seals TLS session tickets, the same on every node, so that a device goes on with its
/// session on any of them and over a restart (RFC 5077 section 5.5 asks for rotation). Who has it
/// can pass for the server towards a device that holds a ticket of it; what devices said before
/// stays secret all the same, for each session agrees on fresh keys.
public struct TicketKey: Hashable, Sendable {
    /// Stands in each ticket: 16 bytes.
    public var name: [UInt8]
    /// 32 bytes for AES-256, then 32 for HMAC-SHA-256.
    public var secret: [UInt8]

    /// A key that was just made opens tickets from the start, and seals them from this age on:
    /// every node has asked for it by then.
    public static let signsAfter: Milliseconds = 10 * 60_000
    /// Age at which another one is made.
    public static let renewAfter: Milliseconds = 12 * 3_600_000
    /// How long a ticket is good.
    public static let ticketLifetime: Milliseconds = 24 * 3_600_000
    /// Age at which the last ticket that it sealed has ended.
    public static let lifetime = signsAfter + renewAfter + ticketLifetime

    public static let nameBytes = 16
    public static let secretBytes = 64

    /// Rows of keys; at most so many are not over at the same time.
    static let slots = 4

    public init(name: [UInt8], secret: [UInt8]) {
        precondition(
            name.count == Self.nameBytes && secret.count == Self.secretBytes,
            "a key of \(name.count) and \(secret.count) bytes")
        self.name = name
        self.secret = secret
    }

    /// `nil`: the row holds no key.
    init?(_ row: MetaRecord) {
        guard row.bytes.count == Self.nameBytes + Self.secretBytes else { return nil }
        self.init(
            name: Array(row.bytes[..<Self.nameBytes]), secret: Array(row.bytes[Self.nameBytes...]))
    }
}

extension TicketKey: CustomStringConvertible {
    /// Without the secret: what is asked of the store may come into a message.
    public var description: String { "ticket key \(name)" }
}

/// A key that is in force.
public struct KeptTicketKey: Equatable, Sendable {
    public var key: TicketKey
    /// Since it was made.
    public var age: Milliseconds

    public init(key: TicketKey, age: Milliseconds) {
        self.key = key
        self.age = age
    }
}

extension MetaRecord {
    /// Under this name `number` is when a key of tickets was made, in milliseconds since 1970, and
    /// `bytes` its name and secret.
    static func ticketKeyName(_ slot: Int) -> String { "ticket_key_\(slot)" }
}
