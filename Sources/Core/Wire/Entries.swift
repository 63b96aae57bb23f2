public import Model

/// One change of a user's feed: the whole state of one object as of `version`.
public struct Entry: WireMessage {
    /// The kinds of entry.
    public enum Body: Equatable, Sendable {
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
}
