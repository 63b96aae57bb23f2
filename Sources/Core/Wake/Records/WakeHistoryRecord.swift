public import Model

/// The record of one push: its cause, its times and what came of it. 30 days.
public struct WakeHistoryRecord: Record, Equatable {
    public static let table = Table(
        "wake_history",
        key: [
            Column("app", .text), Column("user", .text), Column("device", .blob),
            Column("wake", .blob),
        ],
        values: [
            Column("kind", .integer), Column("seq", .integer), Column("conversation", .blob),
            Column("message", .blob), Column("queued_at", .integer), Column("sent_at", .integer),
            Column("attempts", .integer), Column("accepted_at", .integer, optional: true),
            Column("connected_at", .integer, optional: true),
            Column("synced_at", .integer, optional: true), Column("outcome", .integer),
            Column("status", .integer), Column("reason", .text),
            Column("badge", .integer, optional: true), Column("expires_at", .integer),
        ],
        indexes: [
            TableIndex("wake_history_by_time", on: "app", "user", "device", "sent_at"),
            TableIndex("wake_history_by_expiry", on: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "wake_history_by_expiry"))

    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    public var wake: WakeID
    public var kind: PushKind
    /// The newest change it was sent for.
    public var seq: UInt64
    public var conversation: ConversationID
    public var message: MessageID
    public var queuedAt: Timestamp
    /// Of the last attempt.
    public var sentAt: Timestamp
    public var attempts: UInt64
    public var acceptedAt: Timestamp?
    /// A HELLO came after it; exact if the HELLO named it.
    public var connectedAt: Timestamp?
    public var syncedAt: Timestamp?
    public var outcome: WakeOutcome
    /// Of the last refusal; 0: none.
    public var status: UInt64
    /// APNs' word for it.
    public var reason: String
    /// The number it carried.
    public var badge: UInt64?
    /// 30 days after it was queued.
    public var expiresAt: Timestamp

    public init(
        app: AppID,
        user: UserID,
        device: DeviceID,
        wake: WakeID,
        kind: PushKind,
        seq: UInt64,
        conversation: ConversationID,
        message: MessageID,
        queuedAt: Timestamp,
        sentAt: Timestamp,
        attempts: UInt64 = 1,
        acceptedAt: Timestamp? = nil,
        connectedAt: Timestamp? = nil,
        syncedAt: Timestamp? = nil,
        outcome: WakeOutcome = .pending,
        status: UInt64 = 0,
        reason: String = "",
        badge: UInt64? = nil,
        expiresAt: Timestamp
    ) {
        self.app = app
        self.user = user
        self.device = device
        self.wake = wake
        self.kind = kind
        self.seq = seq
        self.conversation = conversation
        self.message = message
        self.queuedAt = queuedAt
        self.sentAt = sentAt
        self.attempts = attempts
        self.acceptedAt = acceptedAt
        self.connectedAt = connectedAt
        self.syncedAt = syncedAt
        self.outcome = outcome
        self.status = status
        self.reason = reason
        self.badge = badge
        self.expiresAt = expiresAt
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        device = try reader.identifier()
        wake = try reader.identifier()
        kind = try reader.value(PushKind.self)
        seq = try reader.unsigned()
        conversation = try reader.identifier()
        message = try reader.identifier()
        queuedAt = try reader.timestamp()
        sentAt = try reader.timestamp()
        attempts = try reader.unsigned()
        acceptedAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        connectedAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        syncedAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        outcome = try reader.value(WakeOutcome.self)
        status = try reader.unsigned()
        reason = try reader.text()
        badge = try reader.optional { reader throws(StoreError) in try reader.unsigned() }
        expiresAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .user(user),
            .identifier(device),
            .identifier(wake),
            .unsigned(kind.rawValue),
            .unsigned(seq),
            .identifier(conversation),
            .identifier(message),
            .timestamp(queuedAt),
            .timestamp(sentAt),
            .unsigned(attempts),
            .optional(acceptedAt) { .timestamp($0) },
            .optional(connectedAt) { .timestamp($0) },
            .optional(syncedAt) { .timestamp($0) },
            .unsigned(outcome.rawValue),
            .unsigned(status),
            .text(reason),
            .optional(badge) { .unsigned($0) },
            .timestamp(expiresAt),
        ]
    }
}
