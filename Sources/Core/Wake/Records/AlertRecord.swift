public import Model

/// That a device is, or was, alerted of a message: at most once by whatever path.
///
/// Kept until the entry is covered or 30 days; expired by `WakeRules.expireAlerts`, because the
/// device's row counts it.
public struct AlertRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    public var message: MessageID
    public var conversation: ConversationID
    public var position: UInt64
    /// Of its entry in the user's feed; rises with a new version.
    public var seq: UInt64
    public var phase: AlertPhase
    /// Derived: `position` unless the row is cancelled, covered or expired.
    public var openPosition: UInt64?
    public var queuedAt: Timestamp
    /// APNs accepted it, or a later alert counted it.
    public var sentAt: Timestamp?
    /// Its `apns-id`, kept over retries.
    public var push: WakeID?
    /// 30 days after it was queued, or its time.
    public var expiresAt: Timestamp
    /// What is told with it.
    public var summary: AlertSummary = .none
    /// It leaves beside a session too.
    public var isUrgent: Bool = false
    public var cause: AlertCause = .unknown
    /// `push` was its own, not a newer one's that stood for it.
    public var isOwnPush: Bool = false
    /// The time the backend has given it, on this device; `nil`: none.
    public var moment: Timestamp?
    /// Pushes of it that got no answer.
    public var tries: UInt64 = 0
    /// Its place in the order in which the device's rows were made: the oldest go first.
    public var number: UInt64 = 0
}

extension AlertRecord {
    public static let table = Table(
        "alert", of: Self.self,
        indexes: [
            TableIndex("alert_by_seq", on: "app", "user", "device", "seq"),
            TableIndex("alert_queued", on: "app", "user", "device", "phase", "seq"),
            TableIndex(
                "alert_open", on: "app", "user", "device", "conversation", "open_position",
                present: "open_position"),
            TableIndex("alert_by_expiry", on: "expires_at"),
            TableIndex("alert_by_moment", on: "phase", "moment", present: "moment"),
            TableIndex(
                "alert_express", on: "app", "user", "device", "express", "seq", present: "express"),
            TableIndex(
                "alert_sent", on: "app", "user", "device", "conversation", "sent_at",
                present: "sent_at"),
        ])

    public init(
        app: AppID, user: UserID, device: DeviceID, message: MessageID,
        conversation: ConversationID, position: UInt64, seq: UInt64, phase: AlertPhase,
        openPosition: UInt64?, queuedAt: Timestamp, expiresAt: Timestamp
    ) {
        self.app = app
        self.user = user
        self.device = device
        self.message = message
        self.conversation = conversation
        self.position = position
        self.seq = seq
        self.phase = phase
        self.openPosition = openPosition
        self.queuedAt = queuedAt
        self.expiresAt = expiresAt
    }

    @inlinable
    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        device = c.key("device", row?.device)
        message = c.key("message", row?.message)
        conversation = c.value("conversation", row?.conversation)
        position = c.value("position", row?.position)
        seq = c.value("seq", row?.seq)
        phase = c.value("phase", row?.phase)
        openPosition = c.value("open_position", row?.openPosition)
        queuedAt = c.value("queued_at", row?.queuedAt)
        sentAt = c.value("sent_at", row?.sentAt)
        push = c.value("push", row?.push)
        expiresAt = c.value("expires_at", row?.expiresAt)
        summary = c.value("summary", row?.summary)
        isUrgent = c.value("is_urgent", row?.isUrgent)
        cause = c.value("cause", row?.cause)
        isOwnPush = c.value("is_own_push", row?.isOwnPush)
        moment = c.value("moment", row?.moment)
        tries = c.value("tries", row?.tries)
        c.derived("express", row?.express, isOptional: true)
        number = c.value("number", row?.number)
    }
}

extension AlertRecord {
    /// While it waits.
    @usableFromInline
    var express: AlertExpress? {
        guard phase == .queued else { return nil }
        if isUrgent { return .urgent }
        return isTimed ? .timed : nil
    }

    /// The server alone tells of it: it leaves beside a session too, and an ACK that covers it
    /// cancels nothing.
    public var isTimed: Bool { cause == .timed }
}
