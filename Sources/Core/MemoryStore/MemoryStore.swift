public import Model

/// The `Store` contract in memory: for tests and simulations. Beyond the contract it checks what
/// an engine with a single writer never notices: the lock order, locks in snapshots, and that
/// nobody writes a row without its guard (`RowGuard`), or one that was not read.
///
/// With `betweenReads` several transactions are open at once, each of a view of its own: one
/// begins, and ends, while another is between two of its reads. What has to wait for a row of the
/// other's meets a `.conflict` in its place.
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
    final class Shared {
        var committed: Contents
        /// Counts commits.
        var version = 0
        /// Counts transactions.
        var begun = 0
        /// How many of them are open.
        var open = 0
        var locks = RowLocks()
        var betweenReads: (() -> Void)?
        var breach: (String) -> Void = { preconditionFailure($0) }
        let lockRanks: [String: Int]
        var clock: Timestamp
        var faults: [CommitFault?] = []
        var outage: String?

        init(_ contents: Contents, lockRanks: [String: Int], clock: Timestamp) {
            committed = contents
            self.lockRanks = lockRanks
            self.clock = clock
        }

        func commit(_ contents: Contents) {
            committed = contents
            version += 1
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

    /// Called before each read of a transaction. It may do what others do meanwhile, in views of
    /// their own.
    public var betweenReads: (() -> Void)? {
        get { shared.betweenReads }
        set { shared.betweenReads = newValue }
    }

    /// Called with what a transaction did against the order of locks or without a row's guard. The
    /// program stops there unless a test sets something else.
    public var breach: (String) -> Void {
        get { shared.breach }
        set { shared.breach = newValue }
    }

    /// Runs `body` as `write` does, and asks for no order of locks and no guards: for rows that a
    /// test puts there by hand.
    public func arrange(
        _ body: (any StoreTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        let before = breach
        breach = { _ in }
        defer { breach = before }
        try write(body)
    }

    /// Another store with the same rows; what is written to one is not in the other.
    public func copy() -> MemoryStore {
        MemoryStore(Shared(shared.committed, lockRanks: shared.lockRanks, clock: shared.clock))
    }

    /// Another store object over the same data, as a process that opens it again would have;
    /// closing one leaves the others open.
    public func view() -> MemoryStore { MemoryStore(shared) }

    public func write(_ body: (any StoreTransaction) throws(StoreError) -> Void)
        throws(StoreError)
    {
        try begin()
        precondition(
            shared.open == 0 || shared.betweenReads != nil, "two transactions at once")
        shared.open += 1
        shared.begun += 1
        let number = shared.begun
        let transaction = MemoryTransaction(shared, number: number, isSole: isSoleWriter)
        defer {
            transaction.end()
            shared.locks.release(all: number)
            shared.open -= 1
            isBusy = false
        }
        try body(transaction)
        let contents = try transaction.finished()
        switch shared.faults.isEmpty ? nil : shared.faults.removeFirst() {
        case nil: shared.commit(contents)
        case .full: throw .full("an injected fault")
        case .conflict: throw .conflict("an injected fault")
        case .lostBeforeCommit: throw .unavailable("an injected fault")
        case .lostAfterCommit:
            shared.commit(contents)
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
