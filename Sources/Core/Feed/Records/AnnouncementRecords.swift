public import Model

/// Something the backend tells listed users, stored once; entries of feeds point to it, and say
/// themselves whether their user has read it.
public struct AnnouncementRecord: Record, Equatable {
    public var app: AppID
    public var announcement: MessageID
    public var sentAt: Timestamp
    /// `AnnouncementState.parts` in protobuf, as on the wire.
    public var parts: [UInt8]
    public var pushTitle: String
    public var pushBody: String
    /// To how many users it goes.
    public var recipients: UInt64
    /// `PushOptions`, encoded; empty: as usual.
    public var pushOptions: [UInt8] = []
    /// When it was taken back: parts and push text are empty since, and of the options what
    /// `tracesOfAlert` says is left.
    public var deletedAt: Timestamp?
}

extension AnnouncementRecord {
    public static let table = Table("announcement", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        announcement = c.key("announcement", row?.announcement)
        sentAt = c.value("sent_at", row?.sentAt)
        parts = c.value("parts", row?.parts)
        pushTitle = c.value("push_title", row?.pushTitle)
        pushBody = c.value("push_body", row?.pushBody)
        recipients = c.value("recipients", row?.recipients)
        pushOptions = c.value("push_options", row?.pushOptions)
        deletedAt = c.value("deleted_at", row?.deletedAt, since: 12)
    }
}

/// Whom an announcement was for, a part of their names, so that it can be taken back from them: no
/// index leads from an announcement to the feeds that hold it. When it is taken back the same rows
/// are the queue of those who have yet to be told.
///
/// A queue of its own: an earlier version of the server, which may run beside this one for a while,
/// would take rows of the other queue for users who have yet to get the announcement.
public struct AnnouncementAudienceRecord: Record, Equatable {
    public var app: AppID
    public var announcement: MessageID
    /// From 1 on, in the order of the names.
    public var part: UInt64
    /// As in `AnnouncementBatchRecord`. Once the announcement was taken back, the users who have
    /// yet to be told so.
    public var users: String
    /// When it is forgotten; `nil`: it waits in the queue.
    public var expiresAt: Timestamp?
    /// When the announcement was taken back, which is the order in which an app's rows are served;
    /// `nil`: it was not.
    public var takenBackAt: Timestamp?
}

extension AnnouncementAudienceRecord {
    public static let table = Table(
        "announcement_audience", of: Self.self,
        indexes: [
            TableIndex(
                "announcement_audience_by_expiry", on: "expires_at", present: "expires_at"),
            TableIndex(
                "announcement_audience_by_turn", on: "app", "taken_back_at",
                present: "taken_back_at"),
        ],
        retention: .until(column: "expires_at", index: "announcement_audience_by_expiry"),
        seldomRead: true, since: 12)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        announcement = c.key("announcement", row?.announcement)
        part = c.key("part", row?.part)
        users = c.value("users", row?.users)
        expiresAt = c.value("expires_at", row?.expiresAt)
        takenBackAt = c.value("taken_back_at", row?.takenBackAt)
    }
}

/// Users who have yet to get an announcement: a step serves them all, or as many as its turn
/// allows. A large announcement has several such rows.
public struct AnnouncementBatchRecord: Record, Equatable {
    public var app: AppID
    /// The order in which an app's batches are served.
    public var number: UInt64
    public var announcement: MessageID
    /// Their names in rising order, one a line: names hold no control characters.
    public var users: String

    public init(app: AppID, number: UInt64, announcement: MessageID, users: [UserID]) {
        self.app = app
        self.number = number
        self.announcement = announcement
        self.users = users.map(\.name).joined(separator: "\n")
    }
}

extension AnnouncementBatchRecord {
    public static let table = Table("announcement_batch", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        number = c.key("number", row?.number)
        announcement = c.value("announcement", row?.announcement)
        users = c.value("users", row?.users)
    }
}
