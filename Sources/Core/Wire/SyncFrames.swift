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
}
