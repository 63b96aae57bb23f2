public import Model

/// That a device is, or was, alerted of a message: at most once by whatever path.
///
/// Kept until the entry is covered or 30 days; expired by `WakeRules.expireAlerts`, because the
/// device's row counts it.
public struct AlertRecord: Record, Equatable {
    public static let table = Table(
        "alert",
        key: [
            Column("app", .text), Column("user", .text), Column("device", .blob),
            Column("message", .blob),
        ],
        values: [
            Column("conversation", .blob), Column("position", .integer), Column("seq", .integer),
            Column("phase", .integer), Column("open_position", .integer, optional: true),
            Column("queued_at", .integer), Column("sent_at", .integer, optional: true),
            Column("push", .blob, optional: true), Column("expires_at", .integer),
            Column("summary", .integer), Column("is_urgent", .integer),
            Column("cause", .integer), Column("is_own_push", .integer),
            Column("moment", .integer, optional: true),
            Column("tries", .integer), Column("express", .integer, optional: true),
            Column("number", .integer),
        ],
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
    public var summary: AlertSummary
    /// It leaves beside a session too.
    public var isUrgent: Bool
    public var cause: AlertCause
    /// `push` was its own, not a newer one's that stood for it.
    public var isOwnPush: Bool
    /// The time the backend has given it, on this device; `nil`: none.
    public var moment: Timestamp?
    /// Pushes of it that got no answer.
    public var tries: UInt64 = 0
    /// Its place in the order in which the device's rows were made: the oldest go first.
    public var number: UInt64

    public init(
        app: AppID,
        user: UserID,
        device: DeviceID,
        message: MessageID,
        conversation: ConversationID,
        position: UInt64,
        seq: UInt64,
        phase: AlertPhase,
        openPosition: UInt64? = nil,
        queuedAt: Timestamp,
        sentAt: Timestamp? = nil,
        push: WakeID? = nil,
        expiresAt: Timestamp,
        summary: AlertSummary = .none,
        isUrgent: Bool = false,
        cause: AlertCause = .unknown,
        isOwnPush: Bool = false,
        moment: Timestamp? = nil,
        number: UInt64 = 0
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
        self.sentAt = sentAt
        self.push = push
        self.expiresAt = expiresAt
        self.summary = summary
        self.isUrgent = isUrgent
        self.cause = cause
        self.isOwnPush = isOwnPush
        self.moment = moment
        self.number = number
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        device = try reader.identifier()
        message = try reader.identifier()
        conversation = try reader.identifier()
        position = try reader.unsigned()
        seq = try reader.unsigned()
        phase = try reader.value(AlertPhase.self)
        openPosition = try reader.optional { reader throws(StoreError) in try reader.unsigned() }
        queuedAt = try reader.timestamp()
        sentAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        push = try reader.optional { reader throws(StoreError) in try reader.identifier() }
        expiresAt = try reader.timestamp()
        summary = try reader.value(AlertSummary.self)
        isUrgent = try reader.flag()
        cause = try reader.value(AlertCause.self)
        isOwnPush = try reader.flag()
        moment = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        tries = try reader.unsigned()
        // Derived.
        _ = try reader.optional { reader throws(StoreError) in try reader.unsigned() }
        number = try reader.unsigned()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .user(user),
            .identifier(device),
            .identifier(message),
            .identifier(conversation),
            .unsigned(position),
            .unsigned(seq),
            .unsigned(phase.rawValue),
            .optional(openPosition) { .unsigned($0) },
            .timestamp(queuedAt),
            .optional(sentAt) { .timestamp($0) },
            .optional(push) { .identifier($0) },
            .timestamp(expiresAt),
            .unsigned(summary.rawValue),
            .flag(isUrgent),
            .unsigned(cause.rawValue),
            .flag(isOwnPush),
            .optional(moment) { .timestamp($0) },
            .unsigned(tries),
            .optional(express) { .unsigned($0.rawValue) },
            .unsigned(number),
        ]
    }
}

extension AlertRecord {
    /// While it waits.
    private var express: AlertExpress? {
        guard phase == .queued else { return nil }
        if isUrgent { return .urgent }
        return isTimed ? .timed : nil
    }
}

extension AlertRecord {
    /// The server alone tells of it: it leaves beside a session too, and an ACK that covers it
    /// cancels nothing.
    public var isTimed: Bool { cause == .timed }
}
