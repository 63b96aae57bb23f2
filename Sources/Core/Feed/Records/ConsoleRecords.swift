public import Model

/// What an operator may do in the console.
public enum ConsoleRole: UInt64, StoredNumber, CaseIterable {
    case readOnly = 1
    case admin = 2
}

/// A token that lets an operator into the console: only its SHA-256 is kept.
public struct ConsoleTokenRecord: Record, Equatable {
    /// Live tokens of a store.
    public static let countMax = 64
    /// A token lives for at most so long.
    public static let lifetimeMax: Milliseconds = 30 * 86_400_000

    public var tokenID: String
    public var hash: [UInt8]
    /// For people: whose it is, or what for.
    public var label: String
    public var role: ConsoleRole
    public var createdAt: Timestamp
    public var expiresAt: Timestamp

    public init(
        tokenID: String, hash: [UInt8], label: String, role: ConsoleRole, createdAt: Timestamp,
        expiresAt: Timestamp
    ) {
        self.tokenID = tokenID
        self.hash = hash
        self.label = label
        self.role = role
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }
}

extension ConsoleTokenRecord {
    public static let table = Table(
        "console_token", of: Self.self,
        indexes: [
            TableIndex("console_token_by_hash", on: "hash"),
            TableIndex("console_token_by_expiry", on: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "console_token_by_expiry"), since: 7)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        tokenID = c.key("token_id", row?.tokenID)
        hash = c.value("hash", row?.hash)
        label = c.value("label", row?.label)
        role = c.value("role", row?.role)
        createdAt = c.value("created_at", row?.createdAt)
        expiresAt = c.value("expires_at", row?.expiresAt)
    }
}

/// A change that an operator asked for, written down before it is carried out: there is none
/// without its row. 90 days, and of more than `countMax` the newest; those that were refused are
/// bounded apart, so that nobody who may do nothing can push out what was done, and so are those of
/// which nobody knows what came.
public struct AuditRecord: Record, Equatable {
    public static let countMax: UInt64 = 10_000
    public static let refusedMax: UInt64 = 1_000
    /// Under way, or left so by servers that ended meanwhile.
    public static let pendingMax: UInt64 = 256
    private static let lifetime: Milliseconds = 90 * 86_400_000

    /// Rises in the order of the requests.
    public var number: UInt64
    public var at: Timestamp
    /// Who asked: the console token with its label, or the way a command came.
    public var actor: String
    /// From where; empty: from this machine.
    public var address: String
    /// Method and path of the admin API.
    public var action: String
    /// What was sent with it, without secrets; cut.
    public var detail: String
    /// HTTP status of the answer; 0: it was under way when the server ended, or still is.
    public var status: UInt64
    /// Its number again as long as nobody told what came of it.
    var pending: UInt64?
    /// Its place among those carried out, or else among those refused.
    var taken: UInt64?
    var refused: UInt64?

    init(_ note: AuditNote, number: UInt64, at: Timestamp) {
        self.number = number
        self.at = at
        actor = note.actor
        address = note.address
        action = note.action
        detail = note.detail
        status = note.status
    }
}

extension AuditRecord {
    public static let table = Table(
        "audit", of: Self.self,
        indexes: [
            TableIndex("audit_by_expiry", on: "expires_at"),
            TableIndex("audit_by_pending", on: "pending", present: "pending"),
            TableIndex("audit_by_taken", on: "taken", present: "taken"),
            TableIndex("audit_by_refused", on: "refused", present: "refused"),
        ],
        retention: .until(column: "expires_at", index: "audit_by_expiry"), since: 7)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        number = c.key("number", row?.number)
        at = c.value("at", row?.at)
        actor = c.value("actor", row?.actor)
        address = c.value("address", row?.address)
        action = c.value("action", row?.action)
        detail = c.value("detail", row?.detail)
        status = c.value("status", row?.status)
        c.derived("expires_at", row.map { $0.at + Self.lifetime })
        pending = c.value("pending", row?.pending, since: 8)
        taken = c.value("taken", row?.taken, since: 8)
        refused = c.value("refused", row?.refused, since: 8)
    }
}

/// What is written down of a change before it is carried out.
public struct AuditNote: Equatable, Sendable {
    public var actor: String
    public var address: String
    public var action: String
    public var detail: String
    public var status: UInt64

    public init(
        actor: String, address: String = "", action: String, detail: String = "",
        status: UInt64 = 0
    ) {
        self.actor = actor
        self.address = address
        self.action = action
        self.detail = detail
        self.status = status
    }
}
