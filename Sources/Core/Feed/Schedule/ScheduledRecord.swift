public import Model

/// A message or an announcement that is published at a time, or was, or could not be. Its id is
/// the one it has, or will have, as a message or an announcement.
public struct ScheduledRecord: Record, Equatable {
    public static let table = Table(
        "scheduled",
        key: [Column("app", .text), Column("message", .blob)],
        values: [
            Column("state", .integer), Column("send_at", .integer),
            Column("due", .integer, optional: true), Column("created_at", .integer),
            Column("conversation", .blob), Column("sender", .text, optional: true),
            Column("recipients", .integer), Column("parts", .blob), Column("push_title", .text),
            Column("push_body", .text), Column("push_options", .blob),
            Column("settled_at", .integer, optional: true), Column("position", .integer),
            Column("code", .integer), Column("detail", .text),
            Column("expires_at", .integer, optional: true),
        ],
        indexes: [
            TableIndex("scheduled_by_due", on: "app", "due", present: "due"),
            TableIndex("scheduled_by_state", on: "app", "state", "send_at"),
            TableIndex("scheduled_by_sender", on: "app", "sender", present: "sender"),
            TableIndex("scheduled_by_expiry", on: "expires_at", present: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "scheduled_by_expiry"))

    public enum State: UInt64, Sendable, CaseIterable {
        case pending = 1
        case published = 2
        case failed = 3

        /// As in the backend API.
        public var name: String {
            switch self {
            case .pending: "pending"
            case .published: "published"
            case .failed: "failed"
            }
        }
    }

    /// How long it is shown what came of it.
    static let lifetime: Milliseconds = 7 * 86_400_000

    public var app: AppID
    public var message: MessageID
    public var state = State.pending
    public var sendAt: Timestamp
    /// When it is looked at next; `nil`: it is settled. Later than `sendAt` while what it is
    /// published into has no room.
    public var due: Timestamp?
    public var createdAt: Timestamp
    /// 16 zero bytes: an announcement.
    public var conversation: ConversationID
    /// `nil`: the app itself.
    public var sender: UserID?
    /// Of an announcement, as it was asked for: how many users; their names are rows of their own.
    public var recipients: UInt64
    /// As in a message's row; empty once it is published.
    public var parts: [UInt8]
    public var pushTitle: String
    public var pushBody: String
    public var pushOptions: [UInt8]
    public var settledAt: Timestamp?
    /// Of the message it became; 0 for an announcement.
    public var position: UInt64 = 0
    /// Why it failed: a code of the registry, and words for people.
    public var code: UInt64 = 0
    public var detail = ""

    public init(
        app: AppID, message: MessageID, sendAt: Timestamp, createdAt: Timestamp,
        conversation: ConversationID, sender: UserID?, recipients: UInt64 = 0,
        parts: [UInt8] = [], pushTitle: String = "", pushBody: String = "",
        pushOptions: [UInt8] = []
    ) {
        self.app = app
        self.message = message
        self.sendAt = sendAt
        due = sendAt
        self.createdAt = createdAt
        self.conversation = conversation
        self.sender = sender
        self.recipients = recipients
        self.parts = parts
        self.pushTitle = pushTitle
        self.pushBody = pushBody
        self.pushOptions = pushOptions
    }

    public var isAnnouncement: Bool { conversation == .none }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        message = try reader.identifier()
        state = try reader.value(State.self)
        sendAt = try reader.timestamp()
        due = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        createdAt = try reader.timestamp()
        conversation = try reader.identifier()
        sender = try reader.optional { reader throws(StoreError) in UserID(try reader.text()) }
        recipients = try reader.unsigned()
        parts = try reader.blob()
        pushTitle = try reader.text()
        pushBody = try reader.text()
        pushOptions = try reader.blob()
        settledAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        position = try reader.unsigned()
        code = try reader.unsigned()
        detail = try reader.text()
        _ = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
    }

    public var row: [ColumnValue] {
        [
            .app(app), .identifier(message), .unsigned(state.rawValue), .timestamp(sendAt),
            .optional(due) { .timestamp($0) }, .timestamp(createdAt),
            .identifier(conversation), .optional(sender) { .user($0) }, .unsigned(recipients),
            .blob(parts), .text(pushTitle), .text(pushBody), .blob(pushOptions),
            .optional(settledAt) { .timestamp($0) }, .unsigned(position), .unsigned(code),
            .text(detail), .optional(settledAt) { .timestamp($0 + Self.lifetime) },
        ]
    }
}

/// A user whom an announcement that waits for its time is for. A user's own, so that deleting the
/// user takes the name out of what is to come.
public struct ScheduledRecipientRecord: Record, Equatable {
    public static let table = Table(
        "scheduled_recipient",
        key: [Column("app", .text), Column("user", .text), Column("message", .blob)], values: [],
        indexes: [TableIndex("scheduled_recipient_by_message", on: "app", "message")])

    public var app: AppID
    public var user: UserID
    public var message: MessageID

    public init(app: AppID, user: UserID, message: MessageID) {
        self.app = app
        self.user = user
        self.message = message
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        message = try reader.identifier()
    }

    public var row: [ColumnValue] { [.app(app), .user(user), .identifier(message)] }
}

/// How much of an app waits for its time.
public struct ScheduleRecord: Record, Equatable {
    public static let table = Table(
        "schedule", key: [Column("app", .text)], values: [Column("pending", .integer)])

    public var app: AppID
    public var pending: UInt64

    public init(app: AppID, pending: UInt64 = 0) {
        self.app = app
        self.pending = pending
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        pending = try reader.unsigned()
    }

    public var row: [ColumnValue] { [.app(app), .unsigned(pending)] }
}
