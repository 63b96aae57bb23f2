public import Model

/// One change of a user's feed: the whole state of one object as of `version`.
public struct Entry: WireMessage {
    /// The kinds of entry.
    public enum Body: WireOneof {
        /// The conversation itself.
        case conversationState(ConversationState)
        /// One participant's membership.
        case participant(ParticipantState)
        /// A message.
        case message(MessageState)
        /// How far another participant got.
        case receipt(ReceiptState)
        /// How far this user has read.
        case readMark(ReadMarkState)
        /// What was deleted.
        case tombstone(TombstoneState)
        /// A conversation's metadata.
        case metadata(MetadataState)
        /// Something the backend tells.
        case announcement(AnnouncementState)
        /// What this user has set for a conversation.
        case conversationSettings(ConversationSettings)
        /// Whether this user blocks another one.
        case block(BlockState)

        public static func members<V: FieldVisitor>(
            of body: inout Self?, _ visitor: inout V
        ) throws(V.Failure) {
            try visitor.member(10, "conversation_state", &body, Self.conversationState) {
                if case .conversationState(let value) = $0 { value } else { nil }
            }
            try visitor.member(11, "participant", &body, Self.participant) {
                if case .participant(let value) = $0 { value } else { nil }
            }
            try visitor.member(12, "message", &body, Self.message) {
                if case .message(let value) = $0 { value } else { nil }
            }
            try visitor.member(13, "receipt", &body, Self.receipt) {
                if case .receipt(let value) = $0 { value } else { nil }
            }
            try visitor.member(14, "read_mark", &body, Self.readMark) {
                if case .readMark(let value) = $0 { value } else { nil }
            }
            try visitor.member(15, "tombstone", &body, Self.tombstone) {
                if case .tombstone(let value) = $0 { value } else { nil }
            }
            try visitor.member(16, "metadata", &body, Self.metadata) {
                if case .metadata(let value) = $0 { value } else { nil }
            }
            try visitor.member(17, "announcement", &body, Self.announcement) {
                if case .announcement(let value) = $0 { value } else { nil }
            }
            try visitor.member(18, "conversation_settings", &body, Self.conversationSettings) {
                if case .conversationSettings(let value) = $0 { value } else { nil }
            }
            try visitor.member(19, "block", &body, Self.block) {
                if case .block(let value) = $0 { value } else { nil }
            }
        }
    }

    /// Number in the feed.
    public var seq: UInt64
    /// The conversation the object belongs to.
    public var conversation: ConversationID? { didSet { shared.bytes = nil } }
    /// Id of the conversation, message or announcement: 16 bytes; empty for the other kinds.
    public var object: [UInt8] { didSet { shared.bytes = nil } }
    /// Version of the object; applying keeps the highest.
    public var version: UInt64 { didSet { shared.bytes = nil } }
    /// This device was already sent an alert of it.
    public var alerted: Bool { didSet { shared.bytes = nil } }
    /// The object's state; `nil`: a kind this side does not know.
    public var body: Body? { didSet { shared.bytes = nil } }
    /// Everything but `seq`, encoded.
    private(set) var shared = SharedEncoding()

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        seq: UInt64 = 0, conversation: ConversationID? = nil, object: [UInt8] = [],
        version: UInt64 = 0, alerted: Bool = false, body: Body? = nil
    ) {
        self.seq = seq
        self.conversation = conversation
        self.object = object
        self.version = version
        self.alerted = alerted
        self.body = body
    }

    /// Encodes it now, but for `seq`: copies of it that come into many feeds, each at a `seq` of
    /// its own, are written with these bytes. A copy that is changed otherwise loses them.
    public mutating func shareEncoding() {
        let own = seq
        // 0 is left out.
        seq = 0
        shared.bytes = nil
        var writer = BodyWriter()
        // Most messages are short: their bytes need not be moved while they are written.
        writer.bytes.reserveCapacity(256)
        fields(&writer)
        seq = own
        shared.bytes = writer.bytes
    }

    public static var empty: Entry { Entry() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "seq", &seq)
        if visitor.writes(shared.bytes) { return }
        try visitor.identifier(2, "conversation", &conversation)
        try visitor.objectID(3, "object", &object)
        try visitor.uint64(4, "version", &version)
        try visitor.bool(5, "alerted", &alerted)
        try visitor.oneof("body", &body)
    }
}

/// The encoding of an entry's fields behind `seq`, made once for all who get the entry.
struct SharedEncoding: Equatable, Sendable {
    /// `nil`: it is encoded when it is written.
    var bytes: [UInt8]?

    /// It follows from the entry: entries are the same whether or not it was made.
    static func == (_: SharedEncoding, _: SharedEncoding) -> Bool { true }
}

/// State of a conversation (message `Conversation`).
public struct ConversationState: WireMessage {
    /// When it was made, in milliseconds since 1970.
    public var createdMs: UInt64
    /// The user who made it.
    public var creator: String
    /// It is the only one with exactly these participants.
    public var distinct: Bool
    /// Nobody is told how far others got.
    public var receiptsOff: Bool
    /// Of a large conversation the number of its participants, who have no entries; else 0
    /// (MSG-38).
    public var participants: UInt32

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        createdMs: UInt64 = 0, creator: String = "", distinct: Bool = false,
        receiptsOff: Bool = false, participants: UInt32 = 0
    ) {
        self.createdMs = createdMs
        self.creator = creator
        self.distinct = distinct
        self.receiptsOff = receiptsOff
        self.participants = participants
    }

    public static var empty: ConversationState { ConversationState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "created_ms", &createdMs)
        try visitor.string(2, "creator", &creator)
        try visitor.bool(3, "distinct", &distinct)
        try visitor.bool(4, "receipts_off", &receiptsOff)
        try visitor.uint32(5, "participants", &participants)
    }
}

/// A user's membership in a conversation (message `Participant`).
public struct ParticipantState: WireMessage {
    /// Who.
    public var user: String
    /// The user sees messages above this position.
    public var joinedPosition: UInt64
    /// Whether the membership has ended.
    public var removed: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(user: String = "", joinedPosition: UInt64 = 0, removed: Bool = false) {
        self.user = user
        self.joinedPosition = joinedPosition
        self.removed = removed
    }

    public static var empty: ParticipantState { ParticipantState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "user", &user)
        try visitor.uint64(2, "joined_position", &joinedPosition)
        try visitor.bool(3, "removed", &removed)
    }
}

/// State of a message (message `Message`).
public struct MessageState: WireMessage {
    /// Gap-free place in the conversation.
    public var position: UInt64
    /// The user who sent it.
    public var sender: String
    /// When it was sent, in milliseconds since 1970.
    public var sentMs: UInt64
    /// Its content.
    public var parts: [Part] {
        get { content.values }
        _modify {
            var values = content.values
            // Held once, so that a change copies nothing.
            content = .values([])
            defer { content = .values(values) }
            yield &values
        }
    }
    var content: MessageParts
    /// What an alert about it shows.
    public var push: PushText?
    /// When it was edited last, in milliseconds since 1970; 0: it is as it was sent.
    public var editedMs: UInt64
    /// What else the backend said of its push.
    public var hints: PushHints? {
        get { heldHints.first }
        set { heldHints = newValue.map { [$0] } ?? [] }
    }
    /// None or one, apart: few have any, and every entry would have to have room for them.
    var heldHints: [PushHints] = []

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        position: UInt64 = 0, sender: String = "", sentMs: UInt64 = 0, parts: [Part] = [],
        push: PushText? = nil, editedMs: UInt64 = 0, hints: PushHints? = nil
    ) {
        self.position = position
        self.sender = sender
        self.sentMs = sentMs
        content = .values(parts)
        self.push = push
        self.editedMs = editedMs
        self.hints = hints
    }

    public static var empty: MessageState { MessageState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "position", &position)
        try visitor.string(2, "sender", &sender)
        try visitor.uint64(3, "sent_ms", &sentMs)
        if !visitor.writes(content.encoded) { try visitor.messages(4, "parts", &parts) }
        try visitor.message(5, "push", &push)
        try visitor.uint64(6, "edited_ms", &editedMs)
        try visitor.message(7, "hints", apart: &heldHints)
    }
}

/// One piece of a message's content.
public struct Part: WireMessage {
    /// Media type of the content.
    public var mimeType: String
    /// The content; opaque to the server.
    public var content: [UInt8]
    /// Where the content is, if it is too large to travel in a message.
    public var reference: PartReference?

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        mimeType: String = "", content: [UInt8] = [], reference: PartReference? = nil
    ) {
        self.mimeType = mimeType
        self.content = content
        self.reference = reference
    }

    public static var empty: Part { Part() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "mime_type", &mimeType)
        try visitor.bytes(2, "content", &content)
        try visitor.message(3, "reference", &reference)
    }
}

/// What an alert shows.
public struct PushText: WireMessage {
    /// First line.
    public var title: String
    /// Text below it.
    public var body: String

    /// A body with these fields; those left out keep their proto3 default.
    public init(title: String = "", body: String = "") {
        self.title = title
        self.body = body
    }

    public static var empty: PushText { PushText() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "title", &title)
        try visitor.string(2, "body", &body)
    }
}

/// How far another participant got, in positions (message `Receipt`).
public struct ReceiptState: WireMessage {
    /// Who.
    public var user: String
    /// Delivered to a device of this user up to here.
    public var deliveredThrough: UInt64
    /// Read by this user up to here.
    public var readThrough: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(user: String = "", deliveredThrough: UInt64 = 0, readThrough: UInt64 = 0) {
        self.user = user
        self.deliveredThrough = deliveredThrough
        self.readThrough = readThrough
    }

    public static var empty: ReceiptState { ReceiptState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "user", &user)
        try visitor.uint64(2, "delivered_through", &deliveredThrough)
        try visitor.uint64(3, "read_through", &readThrough)
    }
}

/// How far this user has read on any of the own devices (message `ReadMark`).
public struct ReadMarkState: WireMessage {
    /// All positions up to this one.
    public var through: UInt64
    /// Positions above `through` read alone.
    public var ranges: [InclusiveRange]

    /// A body with these fields; those left out keep their proto3 default.
    public init(through: UInt64 = 0, ranges: [InclusiveRange] = []) {
        self.through = through
        self.ranges = ranges
    }

    public static var empty: ReadMarkState { ReadMarkState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "through", &through)
        try visitor.messages(2, "ranges", &ranges)
    }
}
