public import Model

/// `SYNC` (0x10, client; message `Sync`): give me what I lack, take what I have to tell.
public struct SyncFrame: WireMessage {
    /// Where the client stands; `nil`: it has nothing.
    public var cursor: Cursor?
    /// Everything up to this seq is durably applied.
    public var applied: UInt64
    /// Page limit in bytes; 0: the server chooses.
    public var pageBytes: UInt32
    /// Whether the cursor moves.
    public var mode: SyncMode
    /// What the user has read.
    public var reads: [ReadReceipt]
    /// Mutations not yet answered.
    public var mutations: [Mutation]
    /// What made the client sync.
    public var reason: SyncReason
    /// The feed's head when the client began at `seq` 0, as the reset said.
    public var resetHead: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        cursor: Cursor? = nil, applied: UInt64 = 0, pageBytes: UInt32 = 0,
        mode: SyncMode = .unspecified, reads: [ReadReceipt] = [], mutations: [Mutation] = [],
        reason: SyncReason = .unspecified, resetHead: UInt64 = 0
    ) {
        self.cursor = cursor
        self.applied = applied
        self.pageBytes = pageBytes
        self.mode = mode
        self.reads = reads
        self.mutations = mutations
        self.reason = reason
        self.resetHead = resetHead
    }

    public static var empty: SyncFrame { SyncFrame() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.cursor(1, "cursor", &cursor)
        try visitor.uint64(2, "applied", &applied)
        try visitor.uint32(3, "page_bytes", &pageBytes)
        try visitor.enumeration(4, "mode", &mode)
        try visitor.messages(5, "reads", &reads)
        try visitor.messages(6, "mutations", &mutations)
        try visitor.enumeration(7, "reason", &reason)
        try visitor.uint64(8, "reset_head", &resetHead)
    }
}

/// `DELTA` (0x11, server): a page of the feed.
public struct Delta: WireMessage {
    /// Changes in ascending order of seq.
    public var entries: [Entry]
    /// The page continues a client standing here or later.
    public var from: Cursor?
    /// Where a client stands after applying the page.
    public var to: Cursor?
    /// The feed's newest seq.
    public var head: UInt64
    /// Whether another page is ready.
    public var more: Bool
    /// Results of the mutations in `SYNC`.
    public var results: [MutationResult]
    /// Every mutation number up to this one has been taken.
    public var mutationFloor: UInt64
    /// The cursor cannot be continued.
    public var reset: Reset?
    /// Messages this user has not read, as the app's icon shows them; on a page without `more`.
    public var unread: UInt32
    /// After applying the page the client sends DIGEST.
    public var digestWanted: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        entries: [Entry] = [], from: Cursor? = nil, to: Cursor? = nil, head: UInt64 = 0,
        more: Bool = false, results: [MutationResult] = [], mutationFloor: UInt64 = 0,
        reset: Reset? = nil, unread: UInt32 = 0, digestWanted: Bool = false
    ) {
        self.entries = entries
        self.from = from
        self.to = to
        self.head = head
        self.more = more
        self.results = results
        self.mutationFloor = mutationFloor
        self.reset = reset
        self.unread = unread
        self.digestWanted = digestWanted
    }

    public static var empty: Delta { Delta() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "entries", &entries)
        try visitor.cursor(2, "from", &from)
        try visitor.cursor(3, "to", &to)
        try visitor.uint64(4, "head", &head)
        try visitor.bool(5, "more", &more)
        try visitor.messages(6, "results", &results)
        try visitor.uint64(7, "mutation_floor", &mutationFloor)
        try visitor.message(8, "reset", &reset)
        try visitor.uint32(9, "unread", &unread)
        try visitor.bool(10, "digest_wanted", &digestWanted)
    }
}

/// `SYNC_REQUEST` (0x12, server): the device is behind; answered by an `applied` at or above
/// `head`.
public struct SyncRequest: WireMessage {
    /// The feed's newest seq.
    public var head: UInt64
    /// Bit k set: an entry of kind k changed; k = field number in `Entry.Body` - 10.
    public var kinds: UInt32
    /// Whether somebody waits for it.
    public var urgent: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(head: UInt64 = 0, kinds: UInt32 = 0, urgent: Bool = false) {
        self.head = head
        self.kinds = kinds
        self.urgent = urgent
    }

    public static var empty: SyncRequest { SyncRequest() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "head", &head)
        try visitor.uint32(2, "kinds", &kinds)
        try visitor.bool(3, "urgent", &urgent)
    }
}

/// `ACK` (0x13, client): cursor, delivery report and flow-control credit in one.
public struct Ack: WireMessage {
    /// Everything up to this seq is durably applied.
    public var applied: UInt64
    /// Ranges of seq above `applied` stored by a peek.
    public var ranges: [InclusiveRange]
    /// What the user has read.
    public var reads: [ReadReceipt]

    /// A body with these fields; those left out keep their proto3 default.
    public init(applied: UInt64 = 0, ranges: [InclusiveRange] = [], reads: [ReadReceipt] = []) {
        self.applied = applied
        self.ranges = ranges
        self.reads = reads
    }

    public static var empty: Ack { Ack() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "applied", &applied)
        try visitor.messages(2, "ranges", &ranges)
        try visitor.messages(3, "reads", &reads)
    }
}

/// Messages of one conversation read by this user.
public struct ReadReceipt: WireMessage {
    /// Which conversation.
    public var conversation: ConversationID?
    /// All positions up to this one.
    public var through: UInt64
    /// Positions above `through` read alone.
    public var ranges: [InclusiveRange]
    /// An announcement that was read, instead of a conversation.
    public var announcement: MessageID?

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversation: ConversationID? = nil, through: UInt64 = 0, ranges: [InclusiveRange] = [],
        announcement: MessageID? = nil
    ) {
        self.conversation = conversation
        self.through = through
        self.ranges = ranges
        self.announcement = announcement
    }

    public static var empty: ReadReceipt { ReadReceipt() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.uint64(2, "through", &through)
        try visitor.messages(3, "ranges", &ranges)
        try visitor.identifier(4, "announcement", &announcement)
    }
}

/// Message `Range`: from `first` to `last`, both included.
public struct InclusiveRange: WireMessage {
    /// Lowest number of the range.
    public var first: UInt64
    /// Highest number of the range.
    public var last: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(first: UInt64 = 0, last: UInt64 = 0) {
        self.first = first
        self.last = last
    }

    public static var empty: InclusiveRange { InclusiveRange() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "first", &first)
        try visitor.uint64(2, "last", &last)
    }
}

/// The client's cursor cannot be continued.
public struct Reset: WireMessage {
    /// Why not.
    public var reason: ResetReason
    /// Ask again after this time, in milliseconds; 0: the reset follows now.
    public var retryAfterMs: UInt32

    /// A body with these fields; those left out keep their proto3 default.
    public init(reason: ResetReason = .unspecified, retryAfterMs: UInt32 = 0) {
        self.reason = reason
        self.retryAfterMs = retryAfterMs
    }

    public static var empty: Reset { Reset() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.enumeration(1, "reason", &reason)
        try visitor.uint32(2, "retry_after_ms", &retryAfterMs)
    }
}
