public import Model

/// How many messages of a conversation are unread for a user (SYN-27): what the icon adds up.
///
/// Only while there are any. It holds nothing that the feed, the read mark and the settings do not
/// say: it saves counting them.
public struct UnreadRecord: Record, Equatable {
    public static let table = Table(
        "unread",
        key: [Column("app", .text), Column("user", .text), Column("conversation", .blob)],
        values: [Column("count", .integer), Column("muted_until", .integer)],
        indexes: [TableIndex("unread_by_mute", on: "app", "user", "muted_until")])

    public var app: AppID
    public var user: UserID
    public var conversation: ConversationID
    /// Saturates at `UnreadRecord.countMax`.
    public var count: UInt64
    /// The icon counts the conversation from then on; 1970: it is not muted.
    public var mutedUntil: Timestamp

    public init(
        app: AppID,
        user: UserID,
        conversation: ConversationID,
        count: UInt64,
        mutedUntil: Timestamp = Timestamp(milliseconds: 0)
    ) {
        self.app = app
        self.user = user
        self.conversation = conversation
        self.count = count
        self.mutedUntil = mutedUntil
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        conversation = try reader.identifier()
        count = try reader.unsigned()
        mutedUntil = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .user(user),
            .identifier(conversation),
            .unsigned(count),
            .timestamp(mutedUntil),
        ]
    }
}
