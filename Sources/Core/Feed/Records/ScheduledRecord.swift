public import Model

/// A message or an announcement that is published at a time, or was, or could not be. Its id is
/// the one it has, or will have, as a message or an announcement.
public struct ScheduledRecord: Record, Equatable {
    public enum State: UInt64, NamedByCase, StoredNumber {
        case pending = 1
        case published = 2
        case failed = 3

        /// As in the backend API.
        public static let names = caseNames()
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

    /// How long a backend has after a restore to cancel again what it had cancelled.
    static let restoreHold: Milliseconds = 15 * 60_000
    /// With the end of that time: it counts from a server's first turn, which is to come.
    static let holdBegins: [UInt8] = [1]
}

extension ScheduledRecord {
    public static let table = Table(
        "scheduled", of: Self.self,
        indexes: [
            TableIndex("scheduled_by_due", on: "app", "due", present: "due"),
            TableIndex("scheduled_by_state", on: "app", "state", "send_at"),
            TableIndex("scheduled_by_sender", on: "app", "sender", present: "sender"),
            TableIndex("scheduled_by_expiry", on: "expires_at", present: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "scheduled_by_expiry"))

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        message = c.key("message", row?.message)
        state = c.value("state", row?.state)
        sendAt = c.value("send_at", row?.sendAt)
        due = c.value("due", row?.due)
        createdAt = c.value("created_at", row?.createdAt)
        conversation = c.value("conversation", row?.conversation)
        sender = c.value("sender", row?.sender)
        recipients = c.value("recipients", row?.recipients)
        parts = c.value("parts", row?.parts)
        pushTitle = c.value("push_title", row?.pushTitle)
        pushBody = c.value("push_body", row?.pushBody)
        pushOptions = c.value("push_options", row?.pushOptions)
        settledAt = c.value("settled_at", row?.settledAt)
        position = c.value("position", row?.position)
        code = c.value("code", row?.code)
        detail = c.value("detail", row?.detail)
        c.derived("expires_at", row?.settledAt.map { $0 + Self.lifetime }, isOptional: true)
    }
}

/// A user whom an announcement that waits for its time is for. A user's own, so that deleting the
/// user takes the name out of what is to come.
public struct ScheduledRecipientRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var message: MessageID
}

extension ScheduledRecipientRecord {
    public static let table = Table(
        "scheduled_recipient", of: Self.self,
        indexes: [
            TableIndex("scheduled_recipient_by_message", on: "app", "message")
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        message = c.key("message", row?.message)
    }
}

/// How much of an app waits for its time.
public struct ScheduleRecord: Record, Equatable {
    public var app: AppID
    public var pending: UInt64 = 0
}

extension ScheduleRecord {
    public static let table = Table("schedule", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        pending = c.value("pending", row?.pending)
    }
}

extension ScheduledRecord {
    /// What the answer to the request is made of again, however it stands by then.
    var answerBytes: [UInt8] {
        let times = Identifier<Never>(high: sendAt.milliseconds, low: createdAt.milliseconds)
        return message.bytes + conversation.bytes + times.bytes
            + Identifier<Never>(high: 0, low: recipients).bytes + Array((sender?.name ?? "").utf8)
    }

    init?(answerBytes bytes: [UInt8], app: AppID) {
        guard bytes.count >= 64, let id = MessageID(bytes[..<16]),
            let conversation = ConversationID(bytes[16..<32]),
            let times = Identifier<Never>(bytes[32..<48]),
            let count = Identifier<Never>(bytes[48..<64])
        else { return nil }
        let sender = String(decoding: bytes[64...], as: UTF8.self)
        self.init(
            app: app, message: id, sendAt: Timestamp(milliseconds: times.high),
            createdAt: Timestamp(milliseconds: times.low), conversation: conversation,
            sender: sender.isEmpty ? nil : UserID(sender), recipients: count.low)
    }
}
