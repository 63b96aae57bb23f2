public import Model

/// How many visible messages of a conversation a user has not read: what the badge adds up.
///
/// Only while there are any; rises with each visible entry and is counted anew when a read mark
/// moves.
public struct UnreadRecord: Record, Equatable {
    public static let table = Table(
        "unread",
        key: [Column("app", .text), Column("user", .text), Column("conversation", .blob)],
        values: [Column("count", .integer), Column("through", .integer)])

    public var app: AppID
    public var user: UserID
    public var conversation: ConversationID
    /// Saturates at `UnreadRecord.countMax`.
    public var count: UInt64
    /// Messages up to this position are counted.
    public var through: UInt64

    public init(
        app: AppID,
        user: UserID,
        conversation: ConversationID,
        count: UInt64,
        through: UInt64
    ) {
        self.app = app
        self.user = user
        self.conversation = conversation
        self.count = count
        self.through = through
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        conversation = try reader.identifier()
        count = try reader.unsigned()
        through = try reader.unsigned()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .user(user),
            .identifier(conversation),
            .unsigned(count),
            .unsigned(through),
        ]
    }
}
