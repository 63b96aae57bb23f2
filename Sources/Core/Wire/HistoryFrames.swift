public import Model

/// `FETCH` (0x22, client): a window of a conversation's history, or one object.
public struct Fetch: WireMessage {
    /// Which conversation.
    public var conversation: ConversationID?
    /// Messages above this position.
    public var above: UInt64
    /// Messages below this position; 0: up to the newest.
    public var below: UInt64
    /// From the lowest position on; else from the highest.
    public var ascending: Bool
    /// The most messages wanted; 0: the server chooses.
    public var limit: UInt32
    /// One message by its id, or the conversation with its participants, instead of a window.
    public var object: [UInt8]
    /// How far each participant got, too.
    public var receipts: Bool
    /// Of the conversation's participants, those after this user.
    public var after: String

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversation: ConversationID? = nil, above: UInt64 = 0, below: UInt64 = 0,
        ascending: Bool = false, limit: UInt32 = 0, object: [UInt8] = [], receipts: Bool = false,
        after: String = ""
    ) {
        self.conversation = conversation
        self.above = above
        self.below = below
        self.ascending = ascending
        self.limit = limit
        self.object = object
        self.receipts = receipts
        self.after = after
    }

    public static var empty: Fetch { Fetch() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.uint64(2, "above", &above)
        try visitor.uint64(3, "below", &below)
        try visitor.bool(4, "ascending", &ascending)
        try visitor.uint32(5, "limit", &limit)
        try visitor.objectID(6, "object", &object)
        try visitor.bool(7, "receipts", &receipts)
        try visitor.string(8, "after", &after)
    }
}

/// `PAGE` (0x23, server; message `Page`): what a FETCH asked for.
public struct PageFrame: WireMessage {
    /// Objects; their `seq` is 0, the feed is not concerned.
    public var entries: [Entry]
    /// From here to `last` every message within reach is in the page.
    public var first: UInt64
    /// See `first`; both 0: the window holds none.
    public var last: UInt64
    /// The window holds messages beyond the page.
    public var more: Bool
    /// Of the conversation's newest message.
    public var position: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        entries: [Entry] = [], first: UInt64 = 0, last: UInt64 = 0, more: Bool = false,
        position: UInt64 = 0
    ) {
        self.entries = entries
        self.first = first
        self.last = last
        self.more = more
        self.position = position
    }

    public static var empty: PageFrame { PageFrame() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "entries", &entries)
        try visitor.uint64(2, "first", &first)
        try visitor.uint64(3, "last", &last)
        try visitor.bool(4, "more", &more)
        try visitor.uint64(5, "position", &position)
    }
}

/// `SNAPSHOT` (0x24, client; message `Snapshot`): the whole state, newest first.
public struct SnapshotFrame: WireMessage {
    /// The most messages of each conversation; 0: the server chooses.
    public var messages: UInt32
    /// Page limit in bytes; 0: the server chooses.
    public var pageBytes: UInt32
    /// Of the last SNAPSHOT_PAGE; empty: from the beginning.
    public var continuation: [UInt8]

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        messages: UInt32 = 0, pageBytes: UInt32 = 0, continuation: [UInt8] = []
    ) {
        self.messages = messages
        self.pageBytes = pageBytes
        self.continuation = continuation
    }

    public static var empty: SnapshotFrame { SnapshotFrame() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "messages", &messages)
        try visitor.uint32(2, "page_bytes", &pageBytes)
        try visitor.bytes(3, "continuation", &continuation)
    }
}

/// `SNAPSHOT_PAGE` (0x25, server): some conversations, whole as far as it says.
public struct SnapshotPage: WireMessage {
    /// By activity, newest first.
    public var conversations: [SnapshotConversation]
    /// What belongs to no conversation: blocks, announcements. On the first page.
    public var entries: [Entry]
    /// Where deltas go on; the same on every page of one snapshot.
    public var start: Cursor?
    /// To ask for the next page with; empty: this is the last.
    public var continuation: [UInt8]
    /// On the last page: unread messages of all conversations not muted, as the icon shows them
    /// (HIS-37).
    public var unread: UInt32?
    /// On the first page: every announcement that the user has is here (HIS-17).
    public var announcementsComplete: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversations: [SnapshotConversation] = [], entries: [Entry] = [], start: Cursor? = nil,
        continuation: [UInt8] = [], unread: UInt32? = nil, announcementsComplete: Bool = false
    ) {
        self.conversations = conversations
        self.entries = entries
        self.start = start
        self.continuation = continuation
        self.unread = unread
        self.announcementsComplete = announcementsComplete
    }

    public static var empty: SnapshotPage { SnapshotPage() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "conversations", &conversations)
        try visitor.messages(2, "entries", &entries)
        try visitor.cursor(3, "start", &start)
        try visitor.bytes(4, "continuation", &continuation)
        try visitor.uint32(5, "unread", optional: &unread)
        try visitor.bool(6, "announcements_complete", &announcementsComplete)
    }
}

/// One conversation of a snapshot.
public struct SnapshotConversation: WireMessage {
    /// Which one.
    public var conversation: ConversationID?
    /// Its state, participants, metadata, settings, marks, receipts, and last messages.
    public var entries: [Entry]
    /// From this position on every message within reach is here.
    public var completeFrom: UInt64
    /// Messages this user has not read.
    public var unread: UInt32
    /// Every participant is here; else FETCH gives them.
    public var participantsComplete: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversation: ConversationID? = nil, entries: [Entry] = [], completeFrom: UInt64 = 0,
        unread: UInt32 = 0, participantsComplete: Bool = false
    ) {
        self.conversation = conversation
        self.entries = entries
        self.completeFrom = completeFrom
        self.unread = unread
        self.participantsComplete = participantsComplete
    }

    public static var empty: SnapshotConversation { SnapshotConversation() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.messages(2, "entries", &entries)
        try visitor.uint64(3, "complete_from", &completeFrom)
        try visitor.uint32(4, "unread", &unread)
        try visitor.bool(5, "participants_complete", &participantsComplete)
    }
}
