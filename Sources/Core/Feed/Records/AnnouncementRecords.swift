public import Model

/// Something the backend tells listed users, stored once; entries of feeds point to it, and say
/// themselves whether their user has read it.
public struct AnnouncementRecord: Record, Equatable {
    public static let table = Table(
        "announcement",
        key: [Column("app", .text), Column("announcement", .blob)],
        values: [
            Column("sent_at", .integer), Column("parts", .blob), Column("push_title", .text),
            Column("push_body", .text), Column("recipients", .integer),
            Column("push_options", .blob),
        ])

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
    public var pushOptions: [UInt8]

    public init(
        app: AppID, announcement: MessageID, sentAt: Timestamp, parts: [UInt8],
        pushTitle: String, pushBody: String, recipients: UInt64, pushOptions: [UInt8] = []
    ) {
        self.app = app
        self.announcement = announcement
        self.sentAt = sentAt
        self.parts = parts
        self.pushTitle = pushTitle
        self.pushBody = pushBody
        self.recipients = recipients
        self.pushOptions = pushOptions
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        announcement = try reader.identifier()
        sentAt = try reader.timestamp()
        parts = try reader.blob()
        pushTitle = try reader.text()
        pushBody = try reader.text()
        recipients = try reader.unsigned()
        pushOptions = try reader.blob()
    }

    public var row: [ColumnValue] {
        [
            .app(app), .identifier(announcement), .timestamp(sentAt), .blob(parts),
            .text(pushTitle), .text(pushBody), .unsigned(recipients), .blob(pushOptions),
        ]
    }
}

/// Users who have yet to get an announcement: a step serves them all, or as many as its turn
/// allows. A large announcement has several such rows.
public struct AnnouncementBatchRecord: Record, Equatable {
    public static let table = Table(
        "announcement_batch",
        key: [Column("app", .text), Column("number", .integer)],
        values: [Column("announcement", .blob), Column("users", .text)])

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

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        number = try reader.unsigned()
        announcement = try reader.identifier()
        users = try reader.text()
    }

    public var row: [ColumnValue] {
        [.app(app), .unsigned(number), .identifier(announcement), .text(users)]
    }
}
