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

    public init(conversation: ConversationID, first: UInt64, last: UInt64) {
        self.conversation = conversation
        self.first = first
        self.last = last
    }
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

/// The durable half of history, beside `LocalStore`'s of the feed; the same rules hold.
public protocol LocalHistoryStore: AnyObject {
    /// Stores each entry, as `LocalStore.apply` does in its second and third step; then stale
    /// messages within `complete` that the change does not hold are deleted. The cursor stays.
    ///
    /// Returns the entries that changed a row, in order.
    func applyHistory(_ change: HistoryChange) throws(LocalStoreError) -> [Entry]

    /// Makes a page of a snapshot durable in one transaction, in this order:
    /// 1. `isFirst`: every row of the feed is marked stale, the cursor is forgotten, and
    ///    `historyThrough` becomes that of `start`.
    /// 2. The page's entries are stored as in `applyHistory`.
    /// 3. `isFirst`: stale announcements are deleted whose ids are not below
    ///    the lowest of the page, or all if it holds none (HIS-19).
    ///    Of each conversation of the page are deleted, if they are stale: its state, metadata,
    ///    settings and read mark; with `participantsComplete` participants and receipts; messages
    ///    from `completeFrom` on.
    /// 4. `isLast`: stale blocks are deleted, and each conversation whose state is stale, with
    ///    everything of it; the cursor becomes `start`. Else `start` and the continuation are
    ///    kept for `load`.
    ///
    /// Where step 3 or 4 deletes a message that this user sent, or a conversation that this user
    /// made, at or after `resendSince`, or where such a message is stale below `completeFrom`, its
    /// making is put into the outbox again, as `enqueue` does at `time`, before the mutations above
    /// `mutationFloor` that wait there: these get new numbers behind it, in order (HIS-21). Left
    /// out are conversations that this user has left, and messages at or below the user's
    /// `joinedPosition`, the lower one of before the page and of after it.
    ///
    /// Returns the entries that changed a row, and the highest mutation number given.
    func applySnapshot(
        _ change: SnapshotChange, at time: Timestamp
    ) throws(LocalStoreError) -> (applied: [Entry], lastMutation: UInt64)

    /// Conversations of which rows are here but not their state, at most `limit`.
    func orphans(limit: Int) throws(LocalStoreError) -> [ConversationID]

    /// Sums up what a digest does (HIS-30), over as many positions, at most 50, as every
    /// conversation is whole for.
    func digest() throws(LocalStoreError) -> LocalDigest
}
