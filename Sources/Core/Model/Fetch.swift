// An engine in another process answers a read only after a round trip. Rules read one row after
// the other, so what many requests are about to read is asked for together: `FetchedRows`
// (WorkingSet) finds out what that is, and fetches it.

/// One read of a transaction.
public enum Read: Hashable, Sendable {
    case row(Table, key: [ColumnValue], lock: RowLock)
    case rows(Table, Scan)

    public var table: Table {
        switch self {
        case .row(let table, _, _), .rows(let table, _): table
        }
    }

    public var lock: RowLock {
        switch self {
        case .row(_, _, let lock): lock
        case .rows(_, let scan): scan.lock
        }
    }
}

/// The answer to one read.
public enum ReadAnswer: Equatable, Sendable {
    /// `nil`: there is none, or with `RowLock.skip` another transaction holds it.
    case row([ColumnValue]?)
    case rows([[ColumnValue]])
    /// Another transaction holds what the read was to lock, and to wait for it could be a
    /// deadlock. The read has locked nothing.
    case busy
}

/// A transaction of an engine that is a round trip away.
///
/// It may keep writes until the next `fetch` or the commit, and send them with that: they are
/// carried out in their order, and before the reads. What they meet is thrown then.
public protocol FetchingTransaction: StoreTransaction {
    /// Answers all reads in one round trip; the answers are in the order of the reads.
    ///
    /// - Reads that lock come first, in the order of their tables' ranks, within a table by key:
    ///   what the others read is not older than the locks.
    /// - A lock is waited for if it is above all that the transaction holds. One that is below
    ///   is taken if it is free, else the answer is `.busy`: two transactions never wait for
    ///   each other.
    func fetch(_ reads: [Read]) throws(StoreError) -> [ReadAnswer]
    /// Sends the writes that it has kept, if it keeps any, and waits for nothing: they are carried
    /// out while the caller goes on. From then on a lock is taken if it is free, else the answer is
    /// `.busy`: whoever holds it may wait for a row that was written.
    func sendWrites() throws(StoreError)
    /// From now on a lock of a key is taken if it is free, else the answer is `.busy`: for requests
    /// that pass over what others hold. An engine that waits for nothing need not do anything.
    func waitForNothing()
}

extension FetchingTransaction {
    public func sendWrites() throws(StoreError) {}

    public func waitForNothing() {}
}

/// A store whose reads each take a round trip, unless many are fetched at once.
public protocol DistantStore: Store {
    /// As `write`, for a body that fetches.
    func writeFetching(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void
    ) throws(StoreError)
    /// As `writeFetching`, but returns when the commit is on its way, so that another transaction
    /// can be prepared meanwhile; its reads come after the commit all the same.
    ///
    /// - Parameter ended: Called once, when it is known what came of the commit: `nil`, or why
    ///   nothing was committed or it is unknown whether it was, as `write` throws it. That is
    ///   during the next call of this object that writes or reads, and in `settle` at the latest.
    ///   It must not call this object. Where a transaction was not committed, one that was begun
    ///   before that was known fails as well.
    /// - Throws: if `body` does, or nothing could be sent; `ended` is not called then.
    func writeAhead(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void,
        ended: @escaping (StoreError?) -> Void
    ) throws(StoreError)
    /// Waits until it is known what came of what was written ahead.
    func settle()
}

extension DistantStore {
    public func writeAhead(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void,
        ended: @escaping (StoreError?) -> Void
    ) throws(StoreError) {
        try writeFetching(body)
        ended(nil)
    }

    public func settle() {}
}
