public import Model

/// The `Store` contract in memory: for tests and simulations. Beyond the contract it checks what
/// an engine with a single writer never notices: the lock order and locks in snapshots.
///
/// Everything runs on the calling thread, and nothing here is Sendable: views and readers of one
/// store belong to the thread that made it. A reader sees what was committed when its `read`
/// began, even while a transaction of the same thread is open.
public final class MemoryStore: Store {
    /// How a commit fails.
    public enum CommitFault: Hashable, Sendable {
        /// `.full`; nothing is committed.
        case full
        /// `.conflict`; nothing is committed.
        case conflict
        /// `.unavailable`; nothing is committed, which the caller cannot know.
        case lostBeforeCommit
        /// `.unavailable`; everything is committed, which the caller cannot know.
        case lostAfterCommit
    }

    /// What all views share: the disk, so to say.
    fileprivate final class Shared {
        var committed: Contents
        let lockRanks: [String: Int]
        var clock: Timestamp
        var faults: [CommitFault?] = []
        var outage: String?
        var isWriting = false

        init(_ contents: Contents, lockRanks: [String: Int], clock: Timestamp) {
            committed = contents
            self.lockRanks = lockRanks
            self.clock = clock
        }
    }

    private let shared: Shared
    private var isClosed = false
    private var isBusy = false

    /// - Parameters:
    ///   - lockRanks: the place of each table in the lock order, by name; rows of tables without
    ///     one come last. Empty: the order is not checked. A violation is a precondition failure
    ///     that names both rows.
    ///   - clock: what `now()` gives until `clock` is set.
    public init(
        tables: [Table], lockRanks: [String: Int] = [:],
        clock: Timestamp = Timestamp(milliseconds: 0)
    ) {
        shared = Shared(Contents(tables), lockRanks: lockRanks, clock: clock)
    }

    private init(_ shared: Shared) { self.shared = shared }

    /// The store's clock, the same in all views. Moves only when it is set.
    public var clock: Timestamp {
        get { shared.clock }
        set { shared.clock = newValue }
    }

    /// What happens to the next commits, the first one first; `nil`: that one succeeds. A write
    /// whose body throws commits nothing and leaves the list as it is.
    public var faults: [CommitFault?] {
        get { shared.faults }
        set { shared.faults = newValue }
    }

    /// While set, every call throws `.unavailable` with this text.
    public var outage: String? {
        get { shared.outage }
        set { shared.outage = newValue }
    }

    /// Nobody writes through another view: what a transaction has read may be taken to be so in
    /// the next, and locks need not be taken.
    public var isSoleWriter = false

    /// Another store object over the same data, as a process that opens it again would have;
    /// closing one leaves the others open.
    public func view() -> MemoryStore { MemoryStore(shared) }

    public func write(_ body: (any StoreTransaction) throws(StoreError) -> Void)
        throws(StoreError)
    {
        try begin()
        precondition(!shared.isWriting, "two transactions at once")
        shared.isWriting = true
        let transaction = MemoryTransaction(shared.committed, lockRanks: shared.lockRanks)
        defer {
            transaction.end()
            shared.isWriting = false
            isBusy = false
        }
        try body(transaction)
        if let failure = transaction.failure { throw failure }
        switch shared.faults.isEmpty ? nil : shared.faults.removeFirst() {
        case nil: shared.committed = transaction.contents
        case .full: throw .full("an injected fault")
        case .conflict: throw .conflict("an injected fault")
        case .lostBeforeCommit: throw .unavailable("an injected fault")
        case .lostAfterCommit:
            shared.committed = transaction.contents
            throw .unavailable("an injected fault")
        }
    }

    public func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void)
        throws(StoreError)
    {
        try begin()
        let snapshot = MemorySnapshot(shared.committed)
        defer {
            snapshot.end()
            isBusy = false
        }
        try body(snapshot)
    }

    private func begin() throws(StoreError) {
        precondition(!isBusy, "write or read inside a body of the same store")
        if isClosed { throw .unavailable("the store is closed") }
        if let outage { throw .unavailable(outage) }
        isBusy = true
    }

    /// A reader for the same thread. It is a view of its own: it may read while a transaction of
    /// the store is open, and does not see that one's writes.
    public func reader() throws(StoreError) -> any StoreReader {
        if isClosed { throw .unavailable("the store is closed") }
        return MemoryReader(view())
    }

    public func now() -> Timestamp { shared.clock }

    /// Nothing to do: there is no journal. Fails as the contract says when it cannot be used.
    public func checkpoint() throws(StoreError) {
        if isClosed { throw .unavailable("the store is closed") }
        if let outage { throw .unavailable(outage) }
    }

    public func close() { isClosed = true }
}

private final class MemoryReader: StoreReader {
    private let store: MemoryStore

    init(_ store: MemoryStore) { self.store = store }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try store.read(body)
    }

    func close() { store.close() }
}
