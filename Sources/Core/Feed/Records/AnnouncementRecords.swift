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
