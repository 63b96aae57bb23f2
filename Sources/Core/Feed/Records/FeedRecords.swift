public import Model

/// One entry of a feed. It points to the object; one row per object (an older one is superseded).
public struct EntryRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var seq: UInt64
    public var kind: EntryKind
    public var conversation: ConversationID
    /// The message's id, or a user's name in UTF-8; empty for a conversation, its tombstone and a
    /// read mark.
    public var object: [UInt8]
    public var version: UInt64
    public var isVisible: Bool
    /// The position of the message, also in its tombstone. For a receipt, the position up to which
    /// it tells of delivery; `version` holds, above it, how far it tells of reading. 0 for other
    /// kinds.
    public var position: UInt64
    /// Where its object first stood in this feed; below `seq` if it was superseded since. The same
    /// as `seq` for kinds that nobody waits for.
    public var firstSeq: UInt64
    /// Of what only says that something is gone: when the entry may go, if no device needs it.
    public var expiresAt: Timestamp?
    /// Of a message that is unread for the user until it is read (SYN-27), its position.
    public var unreadPosition: UInt64?

    /// Where a message's entry stands in `entry_by_place`: 1 among those that are to be read, 0
    /// among the others.
    static func place(isToBeRead: Bool) -> ColumnValue { .unsigned(isToBeRead ? 1 : 0) }

    /// `nil`: the entry is not of a message.
    private var isToBeRead: UInt64? {
        kind == .message ? unreadPosition == nil ? 0 : 1 : nil
    }
}

extension EntryRecord {
    public static let table = Table(
        "entry", of: Self.self,
        indexes: [
            // Entries of all kinds but messages: most entries are messages, and these have an
            // index of their own.
            TableIndex(
                "entry_by_object", on: "app", "user", "kind", "conversation", "object",
                present: "named", since: 3),
            TableIndex("entry_by_expiry", on: "expires_at", present: "expires_at"),
            TableIndex(
                "entry_by_place", on: "app", "user", "conversation", "to_read", "position",
                present: "to_read"),
        ],
        seldomRead: true,
        steps: [
            // The two indexes before it held every message twice.
            SchemaStep(3, "DROP INDEX \"entry_by_object\""),
            SchemaStep(3, "DROP INDEX \"entry_by_unread\""),
            SchemaStep(
                3,
                """
                UPDATE "entry" SET "named" = CASE WHEN "kind" = 2 THEN NULL ELSE 1 END,
                "to_read" = CASE WHEN "kind" <> 2 THEN NULL
                WHEN "unread_position" IS NULL THEN 0 ELSE 1 END
                """),
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        seq = c.key("seq", row?.seq)
        kind = c.value("kind", row?.kind)
        conversation = c.value("conversation", row?.conversation)
        object = c.value("object", row?.object)
        version = c.value("version", row?.version)
        isVisible = c.value("is_visible", row?.isVisible)
        position = c.value("position", row?.position)
        firstSeq = c.value("first_seq", row?.firstSeq)
        expiresAt = c.value("expires_at", row?.expiresAt)
        unreadPosition = c.value("unread_position", row?.unreadPosition)
        c.derived(
            "named", row.flatMap { $0.kind == .message ? nil : 1 as UInt64 }, isOptional: true,
            since: 3)
        c.derived("to_read", row.flatMap(\.isToBeRead), isOptional: true, since: 3)
    }
}

/// How far a participant got: watermarks by position; both only rise.
public struct ReceiptRecord: Record, Equatable {
    public var app: AppID
    public var conversation: ConversationID
    public var user: UserID
    public var delivered: UInt64 = 0
    public var read: UInt64 = 0
    /// What the authors were told.
    public var announcedDelivered: UInt64 = 0
    public var announcedRead: UInt64 = 0
    /// Something rose that the authors were not told; `nil`: nothing did.
    public var pendingSince: Timestamp?
    /// Delivered above `delivered`, where a message between is missing; as in a read mark.
    public var deliveredRanges: [UInt8] = []
}

extension ReceiptRecord {
    public static let table = Table(
        "receipt", of: Self.self,
        indexes: [
            TableIndex(
                "receipt_pending", on: "app", "user", "pending_since", present: "pending_since")
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        conversation = c.key("conversation", row?.conversation)
        user = c.key("user", row?.user)
        delivered = c.value("delivered", row?.delivered)
        read = c.value("read", row?.read)
        announcedDelivered = c.value("announced_delivered", row?.announcedDelivered)
        announcedRead = c.value("announced_read", row?.announcedRead)
        pendingSince = c.value("pending_since", row?.pendingSince)
        deliveredRanges = c.value("delivered_ranges", row?.deliveredRanges)
    }
}

/// How far a user has read a conversation on any of the own devices.
public struct ReadMarkRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var conversation: ConversationID
    public var through: UInt64
    /// Read alone, above `through`: pairs of positions, 8 bytes each.
    public var ranges: [UInt8] = []
    public var version: UInt64
    /// Where in the feed the mark stood when it last made the number of unread messages smaller;
    /// `nil`: not since schema 7.
    public var fellAt: UInt64?
    /// The device on which that was read.
    public var fellBy: DeviceID?
    /// Up to where everything was read before, or before one that was a little earlier.
    public var fellFrom: UInt64?
}

extension ReadMarkRecord {
    public static let table = Table("read_mark", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        conversation = c.key("conversation", row?.conversation)
        through = c.value("through", row?.through)
        ranges = c.value("ranges", row?.ranges)
        version = c.value("version", row?.version)
        fellAt = c.value("fell_at", row?.fellAt, since: 7)
        fellBy = c.value("fell_by", row?.fellBy, since: 7)
        fellFrom = c.value("fell_from", row?.fellFrom, since: 7)
    }
}

/// A user whose receipts are to be written: the coalescer's queue.
public struct ReceiptDueRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    /// `nil`: nothing to write.
    public var due: Timestamp?
    public var lastAt: Timestamp
}

extension ReceiptDueRecord {
    public static let table = Table(
        "receipt_due", of: Self.self,
        indexes: [
            TableIndex("receipt_due_by_due", on: "due", present: "due")
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        due = c.value("due", row?.due)
        lastAt = c.value("last_at", row?.lastAt)
    }
}

/// The answer to a mutation, given again on retry. 7 days, 1,024 a device.
public struct MutationRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    public var number: UInt64
    /// 0: done; else a code of the registry.
    public var code: UInt64
    public var object: [UInt8]
    public var position: UInt64
    public var expiresAt: Timestamp
    /// The how manieth mutation of the device it was: numbers may have gaps, this has none.
    public var ordinal: UInt64
    /// Hash of the operation that took the number; `nil`: taken before hashes were kept.
    public var operation: UInt64?
}

extension MutationRecord {
    public static let table = Table(
        "mutation", of: Self.self,
        indexes: [
            TableIndex("mutation_by_expiry", on: "expires_at")
        ],
        retention: .until(column: "expires_at", index: "mutation_by_expiry"), seldomRead: true)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        device = c.key("device", row?.device)
        number = c.key("number", row?.number)
        code = c.value("code", row?.code)
        object = c.value("object", row?.object)
        position = c.value("position", row?.position)
        expiresAt = c.value("expires_at", row?.expiresAt)
        ordinal = c.value("ordinal", row?.ordinal)
        operation = c.value("operation", row?.operation)
    }
}

/// The answer to a backend request, given again for the same Idempotency-Key for 24 hours.
public struct IdempotencyRecord: Record, Equatable {
    public var app: AppID
    public var key: String
    /// SHA-256 of method, path and body.
    public var requestHash: [UInt8]
    public var status: UInt64
    public var response: [UInt8]
    public var expiresAt: Timestamp
}

extension IdempotencyRecord {
    public static let table = Table(
        "idempotency", of: Self.self,
        indexes: [
            TableIndex("idempotency_by_expiry", on: "expires_at")
        ],
        retention: .until(column: "expires_at", index: "idempotency_by_expiry"), seldomRead: true)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        key = c.key("key", row?.key)
        requestHash = c.value("request_hash", row?.requestHash)
        status = c.value("status", row?.status)
        response = c.value("response", row?.response)
        expiresAt = c.value("expires_at", row?.expiresAt)
    }
}

/// A message that a user deleted for the own devices.
public struct HiddenRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var conversation: ConversationID
    public var position: UInt64
    public var message: MessageID
    public var hiddenAt: Timestamp
}

extension HiddenRecord {
    public static let table = Table("hidden", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        conversation = c.key("conversation", row?.conversation)
        position = c.key("position", row?.position)
        message = c.value("message", row?.message)
        hiddenAt = c.value("hidden_at", row?.hiddenAt)
    }
}

/// What is still to be removed in the background after a deletion.
public struct PurgeRecord: Record, Equatable {
    public var app: AppID
    public var conversation: ConversationID
    /// Who deleted it for the own devices; empty: everything of the conversation goes.
    public var user: String
    /// Of everything: the last participant whose entries are gone; empty: none yet.
    public var cursor: String = ""
}

extension PurgeRecord {
    public static let table = Table("purge", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        conversation = c.key("conversation", row?.conversation)
        user = c.key("user", row?.user)
        cursor = c.value("cursor", row?.cursor)
    }
}

extension ReceiptRecord {
    /// Rises with every telling: each raises one of the two.
    var version: UInt64 { announcedDelivered + announcedRead }
}

/// Why a message that could have alerted asked for nothing on a user's devices: what rows do not
/// show any more when somebody asks. A week.
public struct RefusalRecord: Record, Equatable {
    public enum Reason: UInt64, StoredNumber, CaseIterable {
        case muted = 1
        /// Read on another device before it came into the feed.
        case readAlready = 2
        case senderBlocked = 3
    }

    private static let lifetime: Milliseconds = 7 * 86_400_000

    public var app: AppID
    public var user: UserID
    public var message: MessageID
    public var reason: Reason
    public var refusedAt: Timestamp
}

extension RefusalRecord {
    public static let table = Table(
        "refusal", of: Self.self,
        indexes: [
            TableIndex("refusal_by_expiry", on: "expires_at")
        ],
        retention: .until(column: "expires_at", index: "refusal_by_expiry"), seldomRead: true)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        message = c.key("message", row?.message)
        reason = c.value("reason", row?.reason)
        refusedAt = c.value("refused_at", row?.refusedAt)
        c.derived("expires_at", row.map { $0.refusedAt + Self.lifetime })
    }
}
