import Model

/// The transaction that rules see: the engine's, with its rows counted. Work that may be much is
/// cut by this count (`Work.isSpent`), and a request that exceeds its ceiling stops a debug build
/// (`StoreRequest.ceiling`).
final class MeteredTransaction: StoreTransaction {
    private let engine: any StoreTransaction
    private(set) var count = RowCount()
    /// Rows of unread messages that were written, each as it was and as it is.
    private(set) var unreadSteps: [UnreadStep] = []
    /// The rows that one turn may take.
    private let turn: Int

    init(_ engine: any StoreTransaction, turn: Int) {
        self.engine = engine
        self.turn = turn
    }

    fileprivate func hasUsed(_ parts: Int, of all: Int) -> Bool {
        count.total * all >= parts * turn
    }

    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        count.read += 1
        return try engine.row(table, key: key, lock: lock)
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        let found = try engine.rows(table, scan)
        count.read += max(1, found.count)
        return found
    }

    func hold(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        try engine.hold(table, key: key)
    }

    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        count.written += 1
        try engine.put(table, row)
    }

    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        count.written += 1
        try engine.insert(table, row)
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        count.written += 1
        try engine.delete(table, key: key)
    }

    func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        let before = unreadSteps.count
        do throws(StoreError) {
            try engine.savepoint(body)
        } catch {
            unreadSteps.removeLast(unreadSteps.count - before)
            throw error
        }
    }

    func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try engine.lockSequence(body)
    }

    func note(_ step: UnreadStep) { unreadSteps.append(step) }
}

extension StoreTransaction {
    /// Whether the request that runs on it has used up what one turn may take.
    var isSpent: Bool { hasSpent(1, of: 1) }

    /// Whether it has used up so many of the equal parts of a turn: what comes behind has the rest.
    func hasSpent(_ parts: Int, of all: Int) -> Bool {
        (self as? MeteredTransaction)?.hasUsed(parts, of: all) ?? false
    }
}

/// A membership before and after its number of unread messages was written.
struct UnreadStep {
    var before: ParticipantRecord
    var after: ParticipantRecord
}
