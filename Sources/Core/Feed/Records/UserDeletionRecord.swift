public import Model

/// A user whose deletion is decided and not yet carried out: where it stands.
public struct UserDeletionRecord: Record, Equatable {
    public static let table = Table(
        "user_deletion",
        key: [Column("app", .text), Column("user", .text)],
        values: [
            Column("requested_at", .integer), Column("stage", .integer),
            Column("conversation", .blob), Column("position", .integer),
            Column("announcements", .integer),
        ])

    /// In this order.
    public enum Stage: UInt64, Sendable {
        /// Sessions, session tokens and push tokens, with the devices.
        case devices = 1
        case memberships = 2
        /// The user's messages become tombstones.
        case messages = 3
        /// What was on its way into the feed before has to come to nothing first.
        case settling = 4
        /// Everything else.
        case rows = 5
    }

    public var app: AppID
    public var user: UserID
    public var requestedAt: Timestamp
    public var stage: Stage
    /// The stage is done with the user's conversations up to this id; 16 zero bytes: none.
    public var conversation: ConversationID
    /// Messages of the conversation after that one are looked at up to here.
    public var position: UInt64
    /// The app's newest batch of users for an announcement when it was decided.
    public var announcements: UInt64

    public init(
        app: AppID, user: UserID, requestedAt: Timestamp, stage: Stage = .devices,
        conversation: ConversationID = ConversationID(high: 0, low: 0), position: UInt64 = 0,
        announcements: UInt64 = 0
    ) {
        self.app = app
        self.user = user
        self.requestedAt = requestedAt
        self.stage = stage
        self.conversation = conversation
        self.position = position
        self.announcements = announcements
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        requestedAt = try reader.timestamp()
        stage = try reader.value(Stage.self)
        conversation = try reader.identifier()
        position = try reader.unsigned()
        announcements = try reader.unsigned()
    }

    public var row: [ColumnValue] {
        [
            .app(app), .user(user), .timestamp(requestedAt), .unsigned(stage.rawValue),
            .identifier(conversation), .unsigned(position), .unsigned(announcements),
        ]
    }
}
