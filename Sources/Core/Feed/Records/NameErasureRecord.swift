public import Model

/// A deleted user whose name still stands where others hold it: in memberships that ended, and as
/// the sender of tombstones. Devices need it to learn that the user is gone; then it goes too.
public struct NameErasureRecord: Record, Equatable {
    public static let table = Table(
        "name_erasure",
        key: [Column("app", .text), Column("user", .text)],
        values: [
            Column("due", .integer), Column("conversation", .blob), Column("position", .integer),
            Column("member", .text),
        ],
        indexes: [TableIndex("name_erasure_by_due", on: "due")])

    public var app: AppID
    public var user: UserID
    /// What is told by tombstones is known to every device that is waited for.
    public var due: Timestamp
    /// Done with the user's conversations up to this id; 16 zero bytes: none.
    public var conversation: ConversationID
    /// Messages of the next conversation are looked at up to here.
    public var position: UInt64
    /// Then feeds of its participants up to this one.
    public var member: String

    public init(
        app: AppID, user: UserID, due: Timestamp,
        conversation: ConversationID = ConversationID(high: 0, low: 0), position: UInt64 = 0,
        member: String = ""
    ) {
        self.app = app
        self.user = user
        self.due = due
        self.conversation = conversation
        self.position = position
        self.member = member
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        due = try reader.timestamp()
        conversation = try reader.identifier()
        position = try reader.unsigned()
        member = try reader.text()
    }

    public var row: [ColumnValue] {
        [
            .app(app), .user(user), .timestamp(due), .identifier(conversation),
            .unsigned(position), .text(member),
        ]
    }
}
