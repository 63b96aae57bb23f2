public import Model

/// One entry of a feed. It points to the object; one row per object (an older one is superseded).
public struct EntryRecord: Record, Equatable {
    public static let table = Table(
        "entry",
        key: [Column("app", .text), Column("user", .text), Column("seq", .integer)],
        values: [
            Column("kind", .integer), Column("conversation", .blob), Column("object", .blob),
            Column("version", .integer), Column("is_visible", .integer),
            Column("position", .integer),
            Column("first_seq", .integer), Column("expires_at", .integer, optional: true),
            Column("unread_position", .integer, optional: true),
        ],
        indexes: [
            TableIndex("entry_by_object", on: "app", "user", "kind", "conversation", "object"),
            TableIndex("entry_by_expiry", on: "expires_at", present: "expires_at"),
            TableIndex(
                "entry_by_unread", on: "app", "user", "conversation", "unread_position",
                present: "unread_position"),
        ])

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

    public init(
        app: AppID,
        user: UserID,
        seq: UInt64,
        kind: EntryKind,
        conversation: ConversationID,
        object: [UInt8],
        version: UInt64,
        isVisible: Bool,
        position: UInt64,
        firstSeq: UInt64,
        expiresAt: Timestamp? = nil,
        unreadPosition: UInt64? = nil
    ) {
        self.app = app
        self.user = user
        self.seq = seq
        self.kind = kind
        self.conversation = conversation
        self.object = object
        self.version = version
        self.isVisible = isVisible
        self.position = position
        self.firstSeq = firstSeq
        self.expiresAt = expiresAt
        self.unreadPosition = unreadPosition
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        seq = try reader.unsigned()
        kind = try reader.value(EntryKind.self)
        conversation = try reader.identifier()
        object = try reader.blob()
        version = try reader.unsigned()
        isVisible = try reader.flag()
        position = try reader.unsigned()
        firstSeq = try reader.unsigned()
        expiresAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        unreadPosition = try reader.optional { reader throws(StoreError) in try reader.unsigned() }
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .user(user),
            .unsigned(seq),
            .unsigned(kind.rawValue),
            .identifier(conversation),
            .blob(object),
            .unsigned(version),
            .flag(isVisible),
            .unsigned(position),
            .unsigned(firstSeq),
            .optional(expiresAt) { .timestamp($0) },
            .optional(unreadPosition) { .unsigned($0) },
        ]
    }
}

/// How far a participant got: watermarks by position; both only rise.
public struct ReceiptRecord: Record, Equatable {
    public static let table = Table(
        "receipt",
        key: [Column("app", .text), Column("conversation", .blob), Column("user", .text)],
        values: [
            Column("delivered", .integer), Column("read", .integer),
            Column("announced_delivered", .integer), Column("announced_read", .integer),
            Column("pending_since", .integer, optional: true),
            Column("delivered_ranges", .blob),
        ],
        indexes: [
            TableIndex(
                "receipt_pending", on: "app", "user", "pending_since", present: "pending_since")
        ])

    public var app: AppID
    public var conversation: ConversationID
    public var user: UserID
    public var delivered: UInt64
    public var read: UInt64
    /// What the authors were told.
    public var announcedDelivered: UInt64
    public var announcedRead: UInt64
    /// Something rose that the authors were not told; `nil`: nothing did.
    public var pendingSince: Timestamp?
    /// Delivered above `delivered`, where a message between is missing; as in a read mark.
    public var deliveredRanges: [UInt8]

    public init(
        app: AppID,
        conversation: ConversationID,
        user: UserID,
        delivered: UInt64 = 0,
        read: UInt64 = 0,
        announcedDelivered: UInt64 = 0,
        announcedRead: UInt64 = 0,
        pendingSince: Timestamp? = nil,
        deliveredRanges: [UInt8] = []
    ) {
        self.app = app
        self.conversation = conversation
        self.user = user
        self.delivered = delivered
        self.read = read
        self.announcedDelivered = announcedDelivered
        self.announcedRead = announcedRead
        self.pendingSince = pendingSince
        self.deliveredRanges = deliveredRanges
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        conversation = try reader.identifier()
        user = UserID(try reader.text())
        delivered = try reader.unsigned()
        read = try reader.unsigned()
        announcedDelivered = try reader.unsigned()
        announcedRead = try reader.unsigned()
        pendingSince = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        deliveredRanges = try reader.blob()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .identifier(conversation),
            .user(user),
            .unsigned(delivered),
            .unsigned(read),
            .unsigned(announcedDelivered),
            .unsigned(announcedRead),
            .optional(pendingSince) { .timestamp($0) },
            .blob(deliveredRanges),
        ]
    }
}

/// How far a user has read a conversation on any of the own devices.
public struct ReadMarkRecord: Record, Equatable {
    public static let table = Table(
        "read_mark",
        key: [Column("app", .text), Column("user", .text), Column("conversation", .blob)],
        values: [Column("through", .integer), Column("ranges", .blob), Column("version", .integer)])

    public var app: AppID
    public var user: UserID
    public var conversation: ConversationID
    public var through: UInt64
    /// Read alone, above `through`: pairs of positions, 8 bytes each.
    public var ranges: [UInt8]
    public var version: UInt64

    public init(
        app: AppID,
        user: UserID,
        conversation: ConversationID,
        through: UInt64,
        ranges: [UInt8] = [],
        version: UInt64
    ) {
        self.app = app
        self.user = user
        self.conversation = conversation
        self.through = through
        self.ranges = ranges
        self.version = version
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        conversation = try reader.identifier()
        through = try reader.unsigned()
        ranges = try reader.blob()
        version = try reader.unsigned()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .user(user),
            .identifier(conversation),
            .unsigned(through),
            .blob(ranges),
            .unsigned(version),
        ]
    }
}

/// A user whose receipts are to be written: the coalescer's queue.
public struct ReceiptDueRecord: Record, Equatable {
    public static let table = Table(
        "receipt_due",
        key: [Column("app", .text), Column("user", .text)],
        values: [Column("due", .integer, optional: true), Column("last_at", .integer)],
        indexes: [TableIndex("receipt_due_by_due", on: "due", present: "due")])

    public var app: AppID
    public var user: UserID
    /// `nil`: nothing to write.
    public var due: Timestamp?
    public var lastAt: Timestamp

    public init(
        app: AppID,
        user: UserID,
        due: Timestamp? = nil,
        lastAt: Timestamp
    ) {
        self.app = app
        self.user = user
        self.due = due
        self.lastAt = lastAt
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        due = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        lastAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .user(user),
            .optional(due) { .timestamp($0) },
            .timestamp(lastAt),
        ]
    }
}

/// The answer to a mutation, given again on retry. 7 days, 1,024 a device.
public struct MutationRecord: Record, Equatable {
    public static let table = Table(
        "mutation",
        key: [
            Column("app", .text), Column("user", .text), Column("device", .blob),
            Column("number", .integer),
        ],
        values: [
            Column("code", .integer), Column("object", .blob), Column("position", .integer),
            Column("expires_at", .integer), Column("ordinal", .integer),
            Column("operation", .integer, optional: true),
        ],
        indexes: [TableIndex("mutation_by_expiry", on: "expires_at")],
        retention: .until(column: "expires_at", index: "mutation_by_expiry"))

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

    public init(
        app: AppID,
        user: UserID,
        device: DeviceID,
        number: UInt64,
        code: UInt64,
        object: [UInt8],
        position: UInt64,
        expiresAt: Timestamp,
        ordinal: UInt64,
        operation: UInt64? = nil
    ) {
        self.app = app
        self.user = user
        self.device = device
        self.number = number
        self.code = code
        self.object = object
        self.position = position
        self.expiresAt = expiresAt
        self.ordinal = ordinal
        self.operation = operation
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        device = try reader.identifier()
        number = try reader.unsigned()
        code = try reader.unsigned()
        object = try reader.blob()
        position = try reader.unsigned()
        expiresAt = try reader.timestamp()
        ordinal = try reader.unsigned()
        operation = try reader.optional { reader throws(StoreError) in try reader.unsigned() }
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .user(user),
            .identifier(device),
            .unsigned(number),
            .unsigned(code),
            .blob(object),
            .unsigned(position),
            .timestamp(expiresAt),
            .unsigned(ordinal),
            .optional(operation) { .unsigned($0) },
        ]
    }
}

/// The answer to a backend request, given again for the same Idempotency-Key for 24 hours.
public struct IdempotencyRecord: Record, Equatable {
    public static let table = Table(
        "idempotency",
        key: [Column("app", .text), Column("key", .text)],
        values: [
            Column("request_hash", .blob), Column("status", .integer), Column("response", .blob),
            Column("expires_at", .integer),
        ],
        indexes: [TableIndex("idempotency_by_expiry", on: "expires_at")],
        retention: .until(column: "expires_at", index: "idempotency_by_expiry"))

    public var app: AppID
    public var key: String
    /// SHA-256 of method, path and body.
    public var requestHash: [UInt8]
    public var status: UInt64
    public var response: [UInt8]
    public var expiresAt: Timestamp

    public init(
        app: AppID,
        key: String,
        requestHash: [UInt8],
        status: UInt64,
        response: [UInt8],
        expiresAt: Timestamp
    ) {
        self.app = app
        self.key = key
        self.requestHash = requestHash
        self.status = status
        self.response = response
        self.expiresAt = expiresAt
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        key = try reader.text()
        requestHash = try reader.blob()
        status = try reader.unsigned()
        response = try reader.blob()
        expiresAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .text(key),
            .blob(requestHash),
            .unsigned(status),
            .blob(response),
            .timestamp(expiresAt),
        ]
    }
}

/// A message that a user deleted for the own devices.
public struct HiddenRecord: Record, Equatable {
    public static let table = Table(
        "hidden",
        key: [
            Column("app", .text), Column("user", .text), Column("conversation", .blob),
            Column("position", .integer),
        ],
        values: [Column("message", .blob), Column("hidden_at", .integer)])

    public var app: AppID
    public var user: UserID
    public var conversation: ConversationID
    public var position: UInt64
    public var message: MessageID
    public var hiddenAt: Timestamp

    public init(
        app: AppID,
        user: UserID,
        conversation: ConversationID,
        position: UInt64,
        message: MessageID,
        hiddenAt: Timestamp
    ) {
        self.app = app
        self.user = user
        self.conversation = conversation
        self.position = position
        self.message = message
        self.hiddenAt = hiddenAt
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        conversation = try reader.identifier()
        position = try reader.unsigned()
        message = try reader.identifier()
        hiddenAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .user(user),
            .identifier(conversation),
            .unsigned(position),
            .identifier(message),
            .timestamp(hiddenAt),
        ]
    }
}

/// What is still to be removed in the background after a deletion.
public struct PurgeRecord: Record, Equatable {
    public static let table = Table(
        "purge",
        key: [Column("app", .text), Column("conversation", .blob), Column("user", .text)],
        values: [Column("cursor", .text)])

    public var app: AppID
    public var conversation: ConversationID
    /// Who deleted it for the own devices; empty: everything of the conversation goes.
    public var user: String
    /// Of everything: the last participant whose entries are gone; empty: none yet.
    public var cursor: String

    public init(
        app: AppID,
        conversation: ConversationID,
        user: String,
        cursor: String = ""
    ) {
        self.app = app
        self.conversation = conversation
        self.user = user
        self.cursor = cursor
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        conversation = try reader.identifier()
        user = try reader.text()
        cursor = try reader.text()
    }

    public var row: [ColumnValue] {
        [.app(app), .identifier(conversation), .text(user), .text(cursor)]
    }
}
