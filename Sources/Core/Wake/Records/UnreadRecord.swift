public import Model

/// How many messages of a conversation are unread for a user (SYN-27): what the icon adds up.
///
/// Only while there are any. It holds nothing that the feed, the read mark and the settings do not
/// say: it saves counting them.
public struct UnreadRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var conversation: ConversationID
    /// Saturates at `UnreadRecord.countMax`.
    public var count: UInt64
    /// The icon counts the conversation from then on; 1970: it is not muted.
    public var mutedUntil: Timestamp

    public init(
        app: AppID, user: UserID, conversation: ConversationID, count: UInt64,
        mutedUntil: Timestamp = .blank
    ) {
        self.app = app
        self.user = user
        self.conversation = conversation
        self.count = count
        self.mutedUntil = mutedUntil
    }
}

extension UnreadRecord {
    public static let table = Table(
        "unread", of: Self.self,
        indexes: [
            TableIndex("unread_by_mute", on: "app", "user", "muted_until")
        ])

    @inlinable
    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        conversation = c.key("conversation", row?.conversation)
        count = c.value("count", row?.count)
        mutedUntil = c.value("muted_until", row?.mutedUntil)
    }
}
