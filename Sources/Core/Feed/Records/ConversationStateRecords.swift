public import Model

/// The metadata of a conversation, all values in one row: it is told and superseded as one object.
public struct MetadataRecord: Record, Equatable {
    public var app: AppID
    public var conversation: ConversationID
    /// `MetadataState` in protobuf, as on the wire.
    public var state: [UInt8] = []
    /// Counts its changes; 0 only before the first.
    public var version: UInt64 = 0
}

extension MetadataRecord {
    public static let table = Table("metadata", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        conversation = c.key("conversation", row?.conversation)
        state = c.value("state", row?.state)
        version = c.value("version", row?.version)
    }
}

/// The one conversation that has exactly these participants.
public struct DistinctRecord: Record, Equatable {
    public var app: AppID
    /// Their names in rising order, one a line.
    public var participants: String
    public var conversation: ConversationID
}

extension DistinctRecord {
    public static let table = Table("distinct_conversation", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        participants = c.key("participants", row?.participants)
        conversation = c.value("conversation", row?.conversation)
    }
}

/// An id under which somebody made a conversation that there was already: what still comes for it
/// goes to that one.
public struct AliasRecord: Record, Equatable {
    public var app: AppID
    public var alias: ConversationID
    public var conversation: ConversationID
    public var createdAt: Timestamp
}

extension AliasRecord {
    public static let table = Table("conversation_alias", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        alias = c.key("alias", row?.alias)
        conversation = c.value("conversation", row?.conversation)
        createdAt = c.value("created_at", row?.createdAt)
    }
}

/// What a user has set for a conversation, for all the own devices.
public struct SettingsRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var conversation: ConversationID
    public var isMuted: Bool = false
    /// `nil`: until it is ended.
    public var mutedUntil: Timestamp?
    public var version: UInt64 = 0
}

extension SettingsRecord {
    public static let table = Table("conversation_settings", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        conversation = c.key("conversation", row?.conversation)
        isMuted = c.value("is_muted", row?.isMuted)
        mutedUntil = c.value("muted_until", row?.mutedUntil)
        version = c.value("version", row?.version)
    }
}

/// Whether a user blocks another one. The row stays when the block ends: versions go on rising.
public struct BlockRecord: Record, Equatable {
    public var app: AppID
    /// Who blocks.
    public var user: UserID
    /// Who is blocked.
    public var other: UserID
    public var isBlocked: Bool = false
    public var version: UInt64 = 0
}

extension BlockRecord {
    public static let table = Table(
        "block", of: Self.self,
        indexes: [
            TableIndex("block_by_other", on: "app", "other")
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        other = c.key("other", row?.other)
        isBlocked = c.value("is_blocked", row?.isBlocked)
        version = c.value("version", row?.version)
    }
}

extension SettingsRecord {
    func isMuted(now: Timestamp) -> Bool { now < quietUntil }

    /// When the conversation is muted no more; 1970: it is not.
    var quietUntil: Timestamp {
        Timestamp(
            milliseconds: isMuted ? mutedUntil?.milliseconds ?? .max >> 1 : 0)
    }
}
