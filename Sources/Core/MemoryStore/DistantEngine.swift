public import Model

/// Any store as if it were in another process: what is read has to be fetched, and fetches are
/// counted. For tests: a transaction of it answers no read in any other way.
public final class DistantEngine: DistantStore {
    /// What transactions have cost.
    public struct Effort: Equatable, Sendable {
        /// Fetches: round trips but for those of beginning and committing.
        public var rounds = 0
        public var reads = 0
        /// Rows that they gave.
        public var rows = 0
        public var writes = 0

        public init(rounds: Int = 0, reads: Int = 0, rows: Int = 0, writes: Int = 0) {
            self.rounds = rounds
            self.reads = reads
            self.rows = rows
            self.writes = writes
        }
    }

    public var spent = Effort()
    /// Told of the reads of each fetch.
    public var onFetch: ([Read]) -> Void = { _ in }
    /// Whether another transaction holds what the read is to lock.
    public var isHeldElsewhere: (Read) -> Bool = { _ in false }

    private let base: any Store
    fileprivate let lockRanks: [String: Int]

    public init(_ base: any Store, lockRanks: [String: Int] = [:]) {
        self.base = base
        self.lockRanks = lockRanks
    }

    public func writeFetching(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        try base.write { transaction throws(StoreError) in
            try body(DistantTransaction(transaction, of: self))
        }
    }

    public func write(
        _ body: (any StoreTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        try writeFetching { transaction throws(StoreError) in try body(transaction) }
    }

    public func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        try base.read(body)
    }

    public func reader() throws(StoreError) -> any StoreReader { try base.reader() }
    public func now() -> Timestamp { base.now() }
    public func checkpoint() throws(StoreError) { try base.checkpoint() }
    public func close() { base.close() }
}

private final class DistantTransaction: FetchingTransaction {
    private let base: any StoreTransaction
    private let engine: DistantEngine

    init(_ base: any StoreTransaction, of engine: DistantEngine) {
        self.base = base
        self.engine = engine
    }

    func fetch(_ reads: [Read]) throws(StoreError) -> [ReadAnswer] {
        engine.spent.rounds += 1
        engine.spent.reads += reads.count
        engine.onFetch(reads)
        var answers = Array(repeating: ReadAnswer.busy, count: reads.count)
        let order = reads.indices.sorted { place(reads[$0]) < place(reads[$1]) }
        let rows = order.filter { isLockedRow(reads[$0]) }
        try base.lockSequence { () throws(StoreError) in
            for position in rows { answers[position] = try answer(reads[position]) }
        }
        for position in order where !isLockedRow(reads[position]) {
            // Which rows a scan locks is not known before: it waits for none out of order.
            try base.lockSequence { () throws(StoreError) in
                answers[position] = try answer(reads[position])
            }
        }
        return answers
    }

    private func isLockedRow(_ read: Read) -> Bool {
        if case .row = read { read.lock != .none } else { false }
    }

    /// What locks comes first: by rank, then by table and key.
    private func place(_ read: Read) -> (Int, Int, String, SortKey) {
        let key =
            switch read {
            case .row(_, let key, _): SortKey(key)
            case .rows(_, let scan): SortKey(scan.prefix)
            }
        let rank = engine.lockRanks[read.table.name] ?? .max
        return (read.lock == .none ? 1 : 0, rank, read.table.name, key)
    }

    private func answer(_ read: Read) throws(StoreError) -> ReadAnswer {
        if read.lock != .none, engine.isHeldElsewhere(read) { return .busy }
        do throws(StoreError) {
            switch read {
            case .row(let table, let key, let lock):
                engine.spent.rows += 1
                return .row(try base.row(table, key: key, lock: lock))
            case .rows(let table, let scan):
                let found = try base.rows(table, scan)
                engine.spent.rows += found.count
                return .rows(found)
            }
        } catch {
            // The store below waits for nothing.
            guard read.lock != .none, case .conflict = error else { throw error }
            return .busy
        }
    }

    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    { preconditionFailure("\(table.name): a row read without being fetched") }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        preconditionFailure("\(table.name): rows read without being fetched")
    }

    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        engine.spent.writes += 1
        try base.put(table, row)
    }

    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        engine.spent.writes += 1
        try base.insert(table, row)
    }

    func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError) {
        engine.spent.writes += 1
        try base.update(table, row, columns: columns)
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        engine.spent.writes += 1
        try base.delete(table, key: key)
    }

    func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try base.savepoint(body)
    }

    func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try base.lockSequence(body)
    }
}
