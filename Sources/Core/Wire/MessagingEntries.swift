/// Content that is kept elsewhere: the server checks the form, never fetches it.
public struct PartReference: WireMessage {
    /// Where it is.
    public var url: String
    /// Its bytes.
    public var size: UInt64
    /// SHA-256 of the content: 32 bytes.
    public var digest: [UInt8]
    /// When the place stops serving it, in milliseconds since 1970; 0: unknown.
    public var expiresMs: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        url: String = "", size: UInt64 = 0, digest: [UInt8] = [], expiresMs: UInt64 = 0
    ) {
        self.url = url
        self.size = size
        self.digest = digest
        self.expiresMs = expiresMs
    }

    public static var empty: PartReference { PartReference() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "url", &url)
        try visitor.uint64(2, "size", &size)
        try visitor.bytes(3, "digest", &digest)
        try visitor.uint64(4, "expires_ms", &expiresMs)
    }
}

/// Metadata of a conversation (message `Metadata`).
public struct MetadataState: WireMessage {
    /// Every value, by path in rising order.
    public var values: [MetadataValue]

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        values: [MetadataValue] = []
    ) {
        self.values = values
    }

    public static var empty: MetadataState { MetadataState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "values", &values)
    }
}

/// One value of a conversation's metadata.
public struct MetadataValue: WireMessage {
    /// Keys from the outermost to the innermost.
    public var path: [String]
    /// The value.
    public var value: String

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        path: [String] = [], value: String = ""
    ) {
        self.path = path
        self.value = value
    }

    public static var empty: MetadataValue { MetadataValue() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.strings(1, "path", &path)
        try visitor.string(2, "value", &value)
    }
}

/// What was deleted (message `Tombstone`). `Entry.object` is the message's or the conversation's
/// id; without `Entry.conversation`, that of an announcement that was taken back.
public struct TombstoneState: WireMessage {
    /// Of the message; of a conversation, up to where it is deleted.
    public var position: UInt64
    /// It is a conversation and what is in it.
    public var conversation: Bool
    /// For all participants; else for this user only.
    public var forEveryone: Bool
    /// The user who deleted it.
    public var by: String
    /// When, in milliseconds since 1970.
    public var deletedMs: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        position: UInt64 = 0, conversation: Bool = false, forEveryone: Bool = false,
        by: String = "", deletedMs: UInt64 = 0
    ) {
        self.position = position
        self.conversation = conversation
        self.forEveryone = forEveryone
        self.by = by
        self.deletedMs = deletedMs
    }

    public static var empty: TombstoneState { TombstoneState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "position", &position)
        try visitor.bool(2, "conversation", &conversation)
        try visitor.bool(3, "for_everyone", &forEveryone)
        try visitor.string(4, "by", &by)
        try visitor.uint64(5, "deleted_ms", &deletedMs)
    }
}

/// Something the backend tells listed users (message `Announcement`).
public struct AnnouncementState: WireMessage {
    /// When it was sent, in milliseconds since 1970.
    public var sentMs: UInt64
    /// Its content.
    public var parts: [Part]
    /// What an alert about it shows.
    public var push: PushText?
    /// Whether this user has read it.
    public var read: Bool
    /// What else the backend said of its push.
    public var hints: PushHints? {
        get { heldHints.first }
        set { heldHints = newValue.map { [$0] } ?? [] }
    }
    /// None or one, apart: few have any, and every entry would have to have room for them.
    var heldHints: [PushHints] = []

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        sentMs: UInt64 = 0, parts: [Part] = [], push: PushText? = nil, read: Bool = false,
        hints: PushHints? = nil
    ) {
        self.sentMs = sentMs
        self.parts = parts
        self.push = push
        self.read = read
        self.hints = hints
    }

    public static var empty: AnnouncementState { AnnouncementState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "sent_ms", &sentMs)
        try visitor.messages(2, "parts", &parts)
        try visitor.message(3, "push", &push)
        try visitor.bool(4, "read", &read)
        try visitor.message(5, "hints", apart: &heldHints)
    }
}

extension AnnouncementState: CustomReflectable {
    /// The fields of the schema, however the hints are held.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "sentMs": sentMs, "parts": parts, "push": push as Any, "read": read,
                "hints": hints as Any,
            ], displayStyle: .struct)
    }
}

/// What this user has set for a conversation.
public struct ConversationSettings: WireMessage {
    /// No alerts of it.
    public var muted: Bool
    /// Until when, in milliseconds since 1970; 0: until it is ended.
    public var mutedUntilMs: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        muted: Bool = false, mutedUntilMs: UInt64 = 0
    ) {
        self.muted = muted
        self.mutedUntilMs = mutedUntilMs
    }

    public static var empty: ConversationSettings { ConversationSettings() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bool(1, "muted", &muted)
        try visitor.uint64(2, "muted_until_ms", &mutedUntilMs)
    }
}

/// Whether this user blocks another one (message `Block`).
public struct BlockState: WireMessage {
    /// The other one.
    public var user: String
    /// Whether it is so.
    public var blocked: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        user: String = "", blocked: Bool = false
    ) {
        self.user = user
        self.blocked = blocked
    }

    public static var empty: BlockState { BlockState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "user", &user)
        try visitor.bool(2, "blocked", &blocked)
    }
}
