public import Model

/// `SIGNAL` (0x30, both): ephemeral, never stored, dropped first.
public struct Signal: WireMessage {
    /// To whom: the participants who are connected.
    public var conversation: ConversationID?
    /// What it says.
    public var kind: SignalKind
    /// It is over after this time without another; 0: the default.
    public var ttlMs: UInt32
    /// Whose it is; from the server.
    public var user: String

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversation: ConversationID? = nil, kind: SignalKind = .unspecified, ttlMs: UInt32 = 0,
        user: String = ""
    ) {
        self.conversation = conversation
        self.kind = kind
        self.ttlMs = ttlMs
        self.user = user
    }

    public static var empty: Signal { Signal() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.enumeration(2, "kind", &kind)
        try visitor.uint32(3, "ttl_ms", &ttlMs)
        try visitor.string(4, "user", &user)
    }
}

/// `DIGEST` (0x32, client; message `Digest`): what the client holds, summed up.
public struct DigestFrame: WireMessage {
    /// Where the client stands.
    public var cursor: Cursor?
    /// Conversation objects.
    public var conversations: DigestSum?
    /// Own read marks.
    public var readMarks: DigestSum?
    /// The newest positions of each conversation.
    public var messages: DigestSum?
    /// So many newest positions of each conversation; 0: 50.
    public var positions: UInt32

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        cursor: Cursor? = nil, conversations: DigestSum? = nil, readMarks: DigestSum? = nil,
        messages: DigestSum? = nil, positions: UInt32 = 0
    ) {
        self.cursor = cursor
        self.conversations = conversations
        self.readMarks = readMarks
        self.messages = messages
        self.positions = positions
    }

    public static var empty: DigestFrame { DigestFrame() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.cursor(1, "cursor", &cursor)
        try visitor.message(2, "conversations", &conversations)
        try visitor.message(3, "read_marks", &readMarks)
        try visitor.message(4, "messages", &messages)
        try visitor.uint32(5, "positions", &positions)
    }
}

/// `DIGEST_RESULT` (0x33, server): the same sums over what the server holds.
public struct DigestResult: WireMessage {
    /// The head at which they were computed.
    public var cursor: Cursor?
    /// The client's cursor is that head: only then the sums say something.
    public var comparable: Bool
    /// Conversation objects.
    public var conversations: DigestSum?
    /// Own read marks.
    public var readMarks: DigestSum?
    /// The last 50 positions of each conversation.
    public var messages: DigestSum?

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        cursor: Cursor? = nil, comparable: Bool = false, conversations: DigestSum? = nil,
        readMarks: DigestSum? = nil, messages: DigestSum? = nil
    ) {
        self.cursor = cursor
        self.comparable = comparable
        self.conversations = conversations
        self.readMarks = readMarks
        self.messages = messages
    }

    public static var empty: DigestResult { DigestResult() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.cursor(1, "cursor", &cursor)
        try visitor.bool(2, "comparable", &comparable)
        try visitor.message(3, "conversations", &conversations)
        try visitor.message(4, "read_marks", &readMarks)
        try visitor.message(5, "messages", &messages)
    }
}

/// Objects counted and hashed, in any order.
public struct DigestSum: WireMessage {
    /// How many.
    public var count: UInt64
    /// The sum, modulo 2^64, of each object's hash (DIG clauses of sync.md).
    public var hash: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        count: UInt64 = 0, hash: UInt64 = 0
    ) {
        self.count = count
        self.hash = hash
    }

    public static var empty: DigestSum { DigestSum() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "count", &count)
        try visitor.uint64(2, "hash", &hash)
    }
}
