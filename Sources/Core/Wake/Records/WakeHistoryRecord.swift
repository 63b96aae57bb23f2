public import Model

/// The record of one push: its cause, its times and what came of it. 30 days.
public struct WakeHistoryRecord: Record, Equatable {
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
    public var attempts: UInt64 = 1
    public var acceptedAt: Timestamp?
    /// A HELLO came after it; exact if the HELLO named it.
    public var connectedAt: Timestamp?
    public var syncedAt: Timestamp?
    public var outcome: WakeOutcome = .pending
    /// Of the last refusal; 0: none.
    public var status: UInt64 = 0
    /// APNs' word for it.
    public var reason: String = ""
    /// The number it carried.
    public var badge: UInt64?
    /// 30 days after it was queued.
    public var expiresAt: Timestamp
}

extension WakeHistoryRecord {
    public static let table = Table(
        "wake_history", of: Self.self,
        indexes: [
            TableIndex("wake_history_by_time", on: "app", "user", "device", "sent_at"),
            TableIndex("wake_history_by_expiry", on: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "wake_history_by_expiry"), seldomRead: true)

    public init(
        app: AppID, user: UserID, device: DeviceID, wake: WakeID, kind: PushKind, seq: UInt64,
        conversation: ConversationID, message: MessageID, queuedAt: Timestamp, sentAt: Timestamp,
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
        self.expiresAt = expiresAt
    }

    @inlinable
    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        device = c.key("device", row?.device)
        wake = c.key("wake", row?.wake)
        kind = c.value("kind", row?.kind)
        seq = c.value("seq", row?.seq)
        conversation = c.value("conversation", row?.conversation)
        message = c.value("message", row?.message)
        queuedAt = c.value("queued_at", row?.queuedAt)
        sentAt = c.value("sent_at", row?.sentAt)
        attempts = c.value("attempts", row?.attempts)
        acceptedAt = c.value("accepted_at", row?.acceptedAt)
        connectedAt = c.value("connected_at", row?.connectedAt)
        syncedAt = c.value("synced_at", row?.syncedAt)
        outcome = c.value("outcome", row?.outcome)
        status = c.value("status", row?.status)
        reason = c.value("reason", row?.reason)
        badge = c.value("badge", row?.badge)
        expiresAt = c.value("expires_at", row?.expiresAt)
    }
}
