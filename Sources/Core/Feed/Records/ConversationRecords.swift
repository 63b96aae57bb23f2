public import Model

/// A conversation. Its row lock orders positions and revisions.
public struct ConversationRecord: Record, Equatable {
    public static let table = Table(
        "conversation",
        key: [Column("app", .text), Column("conversation", .blob)],
        values: [
            Column("creator", .text), Column("created_at", .integer), Column("position", .integer),
            Column("revision", .integer), Column("participants", .integer),
            Column("distinct_key", .text), Column("receipts_off", .integer),
            Column("deleted_at", .integer, optional: true), Column("deleted_by", .text),
        ])

    public var app: AppID
    public var conversation: ConversationID
    /// The user who created it; empty: the backend.
    public var creator: String
    public var createdAt: Timestamp
    /// Of its newest message; gap-free from 1.
    public var position: UInt64
    /// Counts every change; fan-out jobs run in this order.
    public var revision: UInt64
    /// How many take part.
    public var participants: UInt64
    /// Under what it is the only one with exactly these participants; empty: it need not be.
    public var distinctKey: String
    /// Nobody is told how far others got.
    public var receiptsOff: Bool
    /// Deleted for everyone; the row stays, for the id is final.
    public var deletedAt: Timestamp?
    /// The user who deleted it; empty: the backend, or nobody.
    public var deletedBy: String

    public init(
        app: AppID,
        conversation: ConversationID,
        creator: String,
        createdAt: Timestamp,
        position: UInt64 = 0,
        revision: UInt64 = 0,
        participants: UInt64 = 0,
        distinctKey: String = "",
        receiptsOff: Bool = false,
        deletedAt: Timestamp? = nil,
        deletedBy: String = ""
    ) {
        self.app = app
        self.conversation = conversation
        self.creator = creator
        self.createdAt = createdAt
        self.position = position
        self.revision = revision
        self.participants = participants
        self.distinctKey = distinctKey
        self.receiptsOff = receiptsOff
        self.deletedAt = deletedAt
        self.deletedBy = deletedBy
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        conversation = try reader.identifier()
        creator = try reader.text()
        createdAt = try reader.timestamp()
        position = try reader.unsigned()
        revision = try reader.unsigned()
        participants = try reader.unsigned()
        distinctKey = try reader.text()
        receiptsOff = try reader.flag()
        deletedAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        deletedBy = try reader.text()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .identifier(conversation),
            .text(creator),
            .timestamp(createdAt),
            .unsigned(position),
            .unsigned(revision),
            .unsigned(participants),
            .text(distinctKey),
            .flag(receiptsOff),
            .optional(deletedAt) { .timestamp($0) },
            .text(deletedBy),
        ]
    }
}

/// Who takes part in a conversation, since when; also who did, until when.
public struct ParticipantRecord: Record, Equatable {
    public static let table = Table(
        "participant",
        key: [Column("app", .text), Column("conversation", .blob), Column("user", .text)],
        values: [
            Column("joined_position", .integer), Column("joined_revision", .integer),
            Column("version", .integer),
            Column("left_revision", .integer, optional: true), Column("left_position", .integer),
            Column("cleared_position", .integer), Column("cleared_at", .integer),
            Column("conversation_version", .integer), Column("is_gone", .integer),
            Column("activity", .integer),
        ],
        indexes: [
            TableIndex("participant_by_user", on: "app", "user", "conversation"),
            TableIndex("participant_by_revision", on: "app", "conversation", "joined_revision"),
            TableIndex(
                "participant_by_leaving", on: "app", "conversation", "left_revision",
                present: "left_revision"),
            TableIndex("participant_by_activity", on: "app", "user", "activity"),
        ])

    public var app: AppID
    public var conversation: ConversationID
    public var user: UserID
    /// Sees messages above it.
    public var joinedPosition: UInt64
    /// Receives changes above it.
    public var joinedRevision: UInt64
    public var version: UInt64
    /// Receives changes up to it, its own removal being the last; `nil`: takes part.
    public var leftRevision: UInt64?
    /// Saw messages up to it; 0 while taking part.
    public var leftPosition: UInt64
    /// Deleted the messages up to it for the own devices.
    public var clearedPosition: UInt64
    /// When; 1970: never.
    public var clearedAt: Timestamp
    /// Of the conversation, or its tombstone, in this user's feed: it rises when the user deletes
    /// it and when it comes back.
    public var conversationVersion: UInt64
    /// The user deleted the conversation, and no message has brought it back.
    public var isGone: Bool
    /// The `seq` in this user's feed at which the conversation came to the front of the user's
    /// conversations (`moveToFront`); 0: it is not in the feed yet.
    public var activity: UInt64

    public init(
        app: AppID,
        conversation: ConversationID,
        user: UserID,
        joinedPosition: UInt64,
        joinedRevision: UInt64,
        version: UInt64,
        leftRevision: UInt64? = nil,
        leftPosition: UInt64 = 0,
        clearedPosition: UInt64 = 0,
        clearedAt: Timestamp = Timestamp(milliseconds: 0),
        conversationVersion: UInt64 = 1,
        isGone: Bool = false,
        activity: UInt64 = 0
    ) {
        self.app = app
        self.conversation = conversation
        self.user = user
        self.joinedPosition = joinedPosition
        self.joinedRevision = joinedRevision
        self.version = version
        self.leftRevision = leftRevision
        self.leftPosition = leftPosition
        self.clearedPosition = clearedPosition
        self.clearedAt = clearedAt
        self.conversationVersion = conversationVersion
        self.isGone = isGone
        self.activity = activity
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        conversation = try reader.identifier()
        user = UserID(try reader.text())
        joinedPosition = try reader.unsigned()
        joinedRevision = try reader.unsigned()
        version = try reader.unsigned()
        leftRevision = try reader.optional { reader throws(StoreError) in try reader.unsigned() }
        leftPosition = try reader.unsigned()
        clearedPosition = try reader.unsigned()
        clearedAt = try reader.timestamp()
        conversationVersion = try reader.unsigned()
        isGone = try reader.flag()
        activity = try reader.unsigned()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .identifier(conversation),
            .user(user),
            .unsigned(joinedPosition),
            .unsigned(joinedRevision),
            .unsigned(version),
            .optional(leftRevision) { .unsigned($0) },
            .unsigned(leftPosition),
            .unsigned(clearedPosition),
            .timestamp(clearedAt),
            .unsigned(conversationVersion),
            .flag(isGone),
            .unsigned(activity),
        ]
    }
}

/// A message, stored once; entries of feeds point to it.
public struct MessageRecord: Record, Equatable {
    public static let table = Table(
        "message",
        key: [Column("app", .text), Column("message", .blob)],
        values: [
            Column("conversation", .blob), Column("position", .integer), Column("sender", .text),
            Column("sent_at", .integer), Column("parts", .blob), Column("push_title", .text),
            Column("push_body", .text), Column("version", .integer),
            Column("revision", .integer), Column("edited_at", .integer, optional: true),
            Column("deleted_at", .integer, optional: true), Column("deleted_by", .text),
            Column("push_options", .blob),
        ],
        indexes: [TableIndex("message_by_position", on: "app", "conversation", "position")])

    public var app: AppID
    public var message: MessageID
    public var conversation: ConversationID
    public var position: UInt64
    /// The user; empty: the backend.
    public var sender: String
    public var sentAt: Timestamp
    /// `MessageState.parts` in protobuf, as on the wire.
    public var parts: [UInt8]
    public var pushTitle: String
    public var pushBody: String
    public var version: UInt64
    /// The conversation's at the last change of the message: who took part then may see it.
    public var revision: UInt64
    public var editedAt: Timestamp?
    /// Deleted for everyone: parts and push text are gone.
    public var deletedAt: Timestamp?
    /// The user who deleted it; empty: the backend, or nobody.
    public var deletedBy: String
    /// `PushOptions`, encoded; empty: as usual.
    public var pushOptions: [UInt8]

    public init(
        app: AppID,
        message: MessageID,
        conversation: ConversationID,
        position: UInt64,
        sender: String,
        sentAt: Timestamp,
        parts: [UInt8],
        pushTitle: String,
        pushBody: String,
        version: UInt64,
        revision: UInt64,
        editedAt: Timestamp? = nil,
        deletedAt: Timestamp? = nil,
        deletedBy: String = "",
        pushOptions: [UInt8] = []
    ) {
        self.app = app
        self.message = message
        self.conversation = conversation
        self.position = position
        self.sender = sender
        self.sentAt = sentAt
        self.parts = parts
        self.pushTitle = pushTitle
        self.pushBody = pushBody
        self.version = version
        self.revision = revision
        self.editedAt = editedAt
        self.deletedAt = deletedAt
        self.deletedBy = deletedBy
        self.pushOptions = pushOptions
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        message = try reader.identifier()
        conversation = try reader.identifier()
        position = try reader.unsigned()
        sender = try reader.text()
        sentAt = try reader.timestamp()
        parts = try reader.blob()
        pushTitle = try reader.text()
        pushBody = try reader.text()
        version = try reader.unsigned()
        revision = try reader.unsigned()
        editedAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        deletedAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        deletedBy = try reader.text()
        pushOptions = try reader.blob()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .identifier(message),
            .identifier(conversation),
            .unsigned(position),
            .text(sender),
            .timestamp(sentAt),
            .blob(parts),
            .text(pushTitle),
            .text(pushBody),
            .unsigned(version),
            .unsigned(revision),
            .optional(editedAt) { .timestamp($0) },
            .optional(deletedAt) { .timestamp($0) },
            .text(deletedBy),
            .blob(pushOptions),
        ]
    }
}

/// A change of a conversation on its way into the feeds of many; resumable after `cursor`.
public struct FanOutRecord: Record, Equatable {
    public static let table = Table(
        "fan_out",
        key: [Column("app", .text), Column("conversation", .blob), Column("revision", .integer)],
        values: [
            Column("change", .integer), Column("object", .blob), Column("cursor", .text),
            Column("created_at", .integer), Column("member", .text), Column("turn_at", .integer),
        ],
        indexes: [TableIndex("fan_out_by_turn", on: "app", "turn_at")])

    public var app: AppID
    public var conversation: ConversationID
    public var revision: UInt64
    public var change: FanOutKind
    /// The message's id, or the joining users, encoded.
    public var object: [UInt8]
    /// The last user served; empty: none yet.
    public var cursor: String
    public var createdAt: Timestamp
    /// Of a join: the last participant told to the joining user after `cursor`; empty: none yet.
    public var member: String
    /// When it was last served, or made: the oldest of an app is served next.
    public var turnAt: Timestamp

    public init(
        app: AppID,
        conversation: ConversationID,
        revision: UInt64,
        change: FanOutKind,
        object: [UInt8],
        cursor: String,
        createdAt: Timestamp,
        member: String = "",
        turnAt: Timestamp
    ) {
        self.app = app
        self.conversation = conversation
        self.revision = revision
        self.change = change
        self.object = object
        self.cursor = cursor
        self.createdAt = createdAt
        self.member = member
        self.turnAt = turnAt
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        conversation = try reader.identifier()
        revision = try reader.unsigned()
        change = try reader.value(FanOutKind.self)
        object = try reader.blob()
        cursor = try reader.text()
        createdAt = try reader.timestamp()
        member = try reader.text()
        turnAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .identifier(conversation),
            .unsigned(revision),
            .unsigned(change.rawValue),
            .blob(object),
            .text(cursor),
            .timestamp(createdAt),
            .text(member),
            .timestamp(turnAt),
        ]
    }
}
