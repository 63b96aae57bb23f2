public import Model

/// A conversation. Its row lock orders positions and revisions.
public struct ConversationRecord: Record, Equatable {
    public var app: AppID
    public var conversation: ConversationID
    /// The user who created it; empty: the backend.
    public var creator: String
    public var createdAt: Timestamp
    /// Of its newest message; gap-free from 1.
    public var position: UInt64 = 0
    /// Counts every change; fan-out jobs run in this order.
    public var revision: UInt64 = 0
    /// How many take part.
    public var participants: UInt64 = 0
    /// Under what it is the only one with exactly these participants; empty: it need not be.
    public var distinctKey: String = ""
    /// Nobody is told how far others got.
    public var receiptsOff: Bool = false
    /// Deleted for everyone; the row stays, for the id is final.
    public var deletedAt: Timestamp?
    /// The user who deleted it; empty: the backend, or nobody.
    public var deletedBy: String = ""
    /// With this revision it had more participants than are told of each other: that one and those
    /// above it tell of no membership but the own (MSG-38). `nil`: it never had so many.
    public var largeRevision: UInt64?
    /// Where it is `revision`, every change is in all feeds and no fan-out job waits. Elsewhere one
    /// may: the jobs say. So a job that is done need not write here, nor a program that does not
    /// know the column.
    public var settledRevision: UInt64?
}

extension ConversationRecord {
    /// No change of it is known to be on its way.
    var isSettled: Bool { settledRevision == revision }

    /// What an answer says, now and when it is given again: nothing of how changes come into feeds.
    var answered: ConversationRecord {
        var answered = self
        answered.settledRevision = nil
        return answered
    }

    public static let table = Table("conversation", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        conversation = c.key("conversation", row?.conversation)
        creator = c.value("creator", row?.creator)
        createdAt = c.value("created_at", row?.createdAt)
        position = c.value("position", row?.position)
        revision = c.value("revision", row?.revision)
        participants = c.value("participants", row?.participants)
        distinctKey = c.value("distinct_key", row?.distinctKey)
        receiptsOff = c.value("receipts_off", row?.receiptsOff)
        deletedAt = c.value("deleted_at", row?.deletedAt)
        deletedBy = c.value("deleted_by", row?.deletedBy)
        largeRevision = c.value("large_revision", row?.largeRevision, since: 6)
        settledRevision = c.value("settled_revision", row?.settledRevision, since: 10)
    }
}

/// A user's membership of a conversation, present or past: since when, and until when. Beside that
/// stands whatever a new message asks about the user, so that a fan-out reads no other row for it.
///
/// What the user has done or been told (`clearedPosition` and what follows) is written with the
/// user's row locked; the membership itself with the conversation's.
public struct ParticipantRecord: Record, Equatable {
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
    public var leftPosition: UInt64 = 0
    /// Deleted the messages up to it for the own devices.
    public var clearedPosition: UInt64 = 0
    /// When; 1970: never.
    public var clearedAt: Timestamp = .blank
    /// Of the conversation, or its tombstone, in this user's feed: it rises when the user deletes
    /// it and when it comes back.
    public var conversationVersion: UInt64 = 1
    /// The user deleted the conversation, and no message has brought it back.
    public var isGone: Bool = false
    /// The `seq` in this user's feed at which the conversation came to the front of the user's
    /// conversations (`moveToFront`); 0: it is not in the feed yet.
    public var activity: UInt64 = 0
    /// How many messages are unread for the user (SYN-27): what the icon adds up. It saves counting
    /// the entries; it saturates at `UnreadCount.most`.
    public var unread: UInt64 = 0
    /// The icon counts the conversation from then on, and its messages alert; 1970: it is not
    /// muted. As the user's settings say.
    public var mutedUntil: Timestamp = .blank
    /// The position up to which the user has read, as the user's read mark says; no message above
    /// it is read.
    public var readThrough: UInt64 = 0
}

extension ParticipantRecord {
    public static let table = Table(
        "participant", of: Self.self,
        indexes: [
            TableIndex("participant_by_user", on: "app", "user", "conversation"),
            TableIndex("participant_by_revision", on: "app", "conversation", "joined_revision"),
            TableIndex(
                "participant_by_leaving", on: "app", "conversation", "left_revision",
                present: "left_revision"),
            TableIndex("participant_by_activity", on: "app", "user", "activity"),
            // The members who take part now, without those who left.
            TableIndex(
                "participant_by_presence", on: "app", "conversation", "user",
                present: "presence"),
            // The conversations with unread messages, in the order in which their mutes end.
            TableIndex(
                "participant_by_unread", on: "app", "user", "unread_from",
                present: "unread_from"),
        ],
        steps: [SchemaStep(2, presentBeforeSchema2), SchemaStep(2, decidedBeforeSchema2)]
            + unreadBeforeSchema2)

    private static let presentBeforeSchema2 = """
        UPDATE "participant" SET "presence" = 1 WHERE "left_revision" IS NULL
        """

    /// The read mark has ranges: which messages above this position are read, the mark alone says.
    private static let decidedBeforeSchema2 = """
        UPDATE "participant" SET "unread" = 0,
        "muted_until" = coalesce((
        SELECT CASE WHEN "is_muted" = 0 THEN 0
        ELSE coalesce(s."muted_until", 9223372036854775807) END FROM "conversation_settings" s
        WHERE s."app" = "participant"."app" AND s."user" = "participant"."user"
        AND s."conversation" = "participant"."conversation"), 0),
        "read_through" = coalesce((
        SELECT CASE WHEN length("ranges") > 0 THEN 9223372036854775807 ELSE "through" END
        FROM "read_mark" m
        WHERE m."app" = "participant"."app" AND m."user" = "participant"."user"
        AND m."conversation" = "participant"."conversation"), 0)
        """

    /// Unread counts had a table of their own before this schema.
    private static let unreadBeforeSchema2 = [
        SchemaStep(
            2,
            """
            UPDATE "participant" SET ("unread", "unread_from") =
            (SELECT u."count", u."muted_until" FROM "unread" u
            WHERE u."app" = "participant"."app" AND u."user" = "participant"."user"
            AND u."conversation" = "participant"."conversation")
            WHERE EXISTS (SELECT 1 FROM "unread" u WHERE u."app" = "participant"."app"
            AND u."user" = "participant"."user"
            AND u."conversation" = "participant"."conversation" AND u."count" > 0)
            """),
        SchemaStep(2, "DROP TABLE \"unread\""),
    ]

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        conversation = c.key("conversation", row?.conversation)
        user = c.key("user", row?.user)
        joinedPosition = c.value("joined_position", row?.joinedPosition)
        joinedRevision = c.value("joined_revision", row?.joinedRevision)
        version = c.value("version", row?.version)
        leftRevision = c.value("left_revision", row?.leftRevision)
        leftPosition = c.value("left_position", row?.leftPosition)
        clearedPosition = c.value("cleared_position", row?.clearedPosition)
        clearedAt = c.value("cleared_at", row?.clearedAt)
        conversationVersion = c.value("conversation_version", row?.conversationVersion)
        isGone = c.value("is_gone", row?.isGone)
        activity = c.value("activity", row?.activity)
        unread = c.value("unread", row?.unread, since: 2, absent: 0)
        mutedUntil = c.value("muted_until", row?.mutedUntil, since: 2, absent: .blank)
        readThrough = c.value("read_through", row?.readThrough, since: 2, absent: .max >> 1)
        c.derived(
            "presence", row.flatMap { $0.leftRevision == nil ? 1 as UInt64 : nil },
            isOptional: true, since: 2)
        c.derived(
            "unread_from", row.flatMap { $0.unread > 0 ? $0.mutedUntil : nil },
            isOptional: true, since: 2)
    }
}

/// A message, stored once; entries of feeds point to it.
public struct MessageRecord: Record, Equatable {
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
    public var deletedBy: String = ""
    /// `PushOptions`, encoded; empty: as usual.
    public var pushOptions: [UInt8] = []
}

extension MessageRecord {
    public static let table = Table(
        "message", of: Self.self,
        indexes: [
            TableIndex("message_by_position", on: "app", "conversation", "position")
        ], seldomRead: true)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        message = c.key("message", row?.message)
        conversation = c.value("conversation", row?.conversation)
        position = c.value("position", row?.position)
        sender = c.value("sender", row?.sender)
        sentAt = c.value("sent_at", row?.sentAt)
        parts = c.value("parts", row?.parts)
        pushTitle = c.value("push_title", row?.pushTitle)
        pushBody = c.value("push_body", row?.pushBody)
        version = c.value("version", row?.version)
        revision = c.value("revision", row?.revision)
        editedAt = c.value("edited_at", row?.editedAt)
        deletedAt = c.value("deleted_at", row?.deletedAt)
        deletedBy = c.value("deleted_by", row?.deletedBy)
        pushOptions = c.value("push_options", row?.pushOptions)
    }
}

/// A change of a conversation on its way into the feeds of many; resumable after `cursor`.
public struct FanOutRecord: Record, Equatable {
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
    public var member: String = ""
    /// When it was last served, or made: the oldest of an app is served next.
    public var turnAt: Timestamp
}

extension FanOutRecord {
    public static let table = Table(
        "fan_out", of: Self.self,
        indexes: [
            TableIndex("fan_out_by_turn", on: "app", "turn_at")
        ])

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        conversation = c.key("conversation", row?.conversation)
        revision = c.key("revision", row?.revision)
        change = c.value("change", row?.change)
        object = c.value("object", row?.object)
        cursor = c.value("cursor", row?.cursor)
        createdAt = c.value("created_at", row?.createdAt)
        member = c.value("member", row?.member)
        turnAt = c.value("turn_at", row?.turnAt)
    }
}

extension ConversationID {
    /// Of an entry that belongs to no conversation; nobody may choose it (MSG-1).
    static var none: ConversationID { ConversationID(high: 0, low: 0) }
}

extension ParticipantRecord {
    /// The conversation's at the last change of the membership.
    var changedRevision: UInt64 { leftRevision ?? joinedRevision }

    /// Whether the user took part before: then feeds have entries of that time.
    var isBack: Bool { conversationVersion > 1 }

    /// Whether the user took part when the conversation's change of this revision was made; the
    /// own removal is the last change a user gets.
    func receives(_ revision: UInt64) -> Bool {
        joinedRevision < revision && (leftRevision.map { $0 >= revision } ?? true)
    }
}

extension ConversationRecord {
    /// Whether the change of this revision is one of a large conversation (MSG-38).
    func isLarge(at revision: UInt64) -> Bool { largeRevision.map { $0 <= revision } ?? false }
}
