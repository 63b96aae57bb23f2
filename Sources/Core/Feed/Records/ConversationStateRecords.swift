public import Model

/// The metadata of a conversation, all values in one row: it is told and superseded as one object.
public struct MetadataRecord: Record, Equatable {
    public static let table = Table(
        "metadata",
        key: [Column("app", .text), Column("conversation", .blob)],
        values: [Column("state", .blob), Column("version", .integer)])

    public var app: AppID
    public var conversation: ConversationID
    /// `MetadataState` in protobuf, as on the wire.
    public var state: [UInt8]
    /// Counts its changes; 0 only before the first.
    public var version: UInt64

    public init(
        app: AppID, conversation: ConversationID, state: [UInt8] = [], version: UInt64 = 0
    ) {
        self.app = app
        self.conversation = conversation
        self.state = state
        self.version = version
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        conversation = try reader.identifier()
        state = try reader.blob()
        version = try reader.unsigned()
    }

    public var row: [ColumnValue] {
        [.app(app), .identifier(conversation), .blob(state), .unsigned(version)]
    }
}

/// The one conversation that has exactly these participants.
public struct DistinctRecord: Record, Equatable {
    public static let table = Table(
        "distinct_conversation",
        key: [Column("app", .text), Column("participants", .text)],
        values: [Column("conversation", .blob)])

    public var app: AppID
    /// Their names in rising order, one a line.
    public var participants: String
    public var conversation: ConversationID

    public init(app: AppID, participants: String, conversation: ConversationID) {
        self.app = app
        self.participants = participants
        self.conversation = conversation
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        participants = try reader.text()
        conversation = try reader.identifier()
    }

    public var row: [ColumnValue] {
        [.app(app), .text(participants), .identifier(conversation)]
    }
}

/// An id under which somebody made a conversation that there was already: what still comes for it
/// goes to that one.
public struct AliasRecord: Record, Equatable {
    public static let table = Table(
        "conversation_alias",
        key: [Column("app", .text), Column("alias", .blob)],
        values: [Column("conversation", .blob), Column("created_at", .integer)])

    public var app: AppID
    public var alias: ConversationID
    public var conversation: ConversationID
    public var createdAt: Timestamp

    public init(
        app: AppID, alias: ConversationID, conversation: ConversationID, createdAt: Timestamp
    ) {
        self.app = app
        self.alias = alias
        self.conversation = conversation
        self.createdAt = createdAt
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        alias = try reader.identifier()
        conversation = try reader.identifier()
        createdAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [.app(app), .identifier(alias), .identifier(conversation), .timestamp(createdAt)]
    }
}

/// What a user has set for a conversation, for all the own devices.
public struct SettingsRecord: Record, Equatable {
    public static let table = Table(
        "conversation_settings",
        key: [Column("app", .text), Column("user", .text), Column("conversation", .blob)],
        values: [
            Column("is_muted", .integer), Column("muted_until", .integer, optional: true),
            Column("version", .integer),
        ])

    public var app: AppID
    public var user: UserID
    public var conversation: ConversationID
    public var isMuted: Bool
    /// `nil`: until it is ended.
    public var mutedUntil: Timestamp?
    public var version: UInt64

    public init(
        app: AppID, user: UserID, conversation: ConversationID, isMuted: Bool = false,
        mutedUntil: Timestamp? = nil, version: UInt64 = 0
    ) {
        self.app = app
        self.user = user
        self.conversation = conversation
        self.isMuted = isMuted
        self.mutedUntil = mutedUntil
        self.version = version
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        conversation = try reader.identifier()
        isMuted = try reader.flag()
        mutedUntil = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        version = try reader.unsigned()
    }

    public var row: [ColumnValue] {
        [
            .app(app), .user(user), .identifier(conversation), .flag(isMuted),
            .optional(mutedUntil) { .timestamp($0) }, .unsigned(version),
        ]
    }
}

/// Whether a user blocks another one. The row stays when the block ends: versions go on rising.
public struct BlockRecord: Record, Equatable {
    public static let table = Table(
        "block",
        key: [Column("app", .text), Column("user", .text), Column("other", .text)],
        values: [Column("is_blocked", .integer), Column("version", .integer)],
        indexes: [TableIndex("block_by_other", on: "app", "other")])

    public var app: AppID
    /// Who blocks.
    public var user: UserID
    /// Who is blocked.
    public var other: UserID
    public var isBlocked: Bool
    public var version: UInt64

    public init(
        app: AppID, user: UserID, other: UserID, isBlocked: Bool = false, version: UInt64 = 0
    ) {
        self.app = app
        self.user = user
        self.other = other
        self.isBlocked = isBlocked
        self.version = version
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        other = UserID(try reader.text())
        isBlocked = try reader.flag()
        version = try reader.unsigned()
    }

    public var row: [ColumnValue] {
        [.app(app), .user(user), .user(other), .flag(isBlocked), .unsigned(version)]
    }
}
