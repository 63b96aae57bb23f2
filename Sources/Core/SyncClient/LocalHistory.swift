public import Model
public import Wire

// What of a `LocalStore` is beside the feed: history, snapshots, digests (history.md).

/// Objects that came beside the feed, by PAGE or a peek: they move no cursor.
public struct HistoryChange: Equatable, Sendable {
    public var entries: [Entry]
    /// The positions of which conversation's messages `entries` are complete for.
    public var complete: CompleteRange?

    public init(entries: [Entry], complete: CompleteRange? = nil) {
        self.entries = entries
        self.complete = complete
    }
}

/// Every message within reach from `first` to `last` is in a page (HIS-6).
public struct CompleteRange: Equatable, Sendable {
    public var conversation: ConversationID
    public var first: UInt64
    public var last: UInt64
}

/// One page of a snapshot on its way into the local store.
public struct SnapshotChange: Equatable, Sendable {
    public var page: SnapshotPage
    /// Deltas go on from here when the last page is stored.
    public var start: Cursor
    /// The page begins a snapshot: everything is marked stale before it.
    public var isFirst: Bool
    /// Own objects made since then that the snapshot lacks are sent again (HIS-21); `nil`: what
    /// is lacking was deleted.
    public var resendSince: Timestamp?
    /// The highest mutation number that the server had taken: what waits above it was not done.
    public var mutationFloor: UInt64

    public init(
        page: SnapshotPage, start: Cursor, isFirst: Bool, resendSince: Timestamp? = nil,
        mutationFloor: UInt64 = 0
    ) {
        self.page = page
        self.start = start
        self.isFirst = isFirst
        self.resendSince = resendSince
        self.mutationFloor = mutationFloor
    }

    /// Whether the snapshot is whole with this page.
    public var isLast: Bool { page.continuation.isEmpty }
}

/// A snapshot that is not whole yet.
public struct LocalSnapshot: Equatable, Sendable {
    public var start: Cursor
    public var continuation: [UInt8]
    public var resendSince: Timestamp?

    public init(start: Cursor, continuation: [UInt8], resendSince: Timestamp? = nil) {
        self.start = start
        self.continuation = continuation
        self.resendSince = resendSince
    }
}

/// The sums of a DIGEST over what is stored.
public struct LocalDigest: Equatable, Sendable {
    public var conversations = DigestSum()
    public var readMarks = DigestSum()
    public var messages = DigestSum()
    /// The number of newest positions of each conversation that were summed up (HIS-30); 0: of
    /// some conversation nothing can be said (HIS-36).
    public var positions: UInt32

    public init(positions: UInt32 = 50) { self.positions = positions }
}

/// How many objects a device holds: two empty replicas are equal and prove nothing.
public struct LocalCounts: Equatable, Sendable {
    /// Objects of every kind, tombstones too.
    public var entries = 0
    /// That are not deleted.
    public var conversations = 0
    /// That are not deleted.
    public var messages = 0

    public init() {}
}
