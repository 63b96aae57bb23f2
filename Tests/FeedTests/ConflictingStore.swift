import Feed
import MemoryStore
import Model

/// Hands out transactions whose first waits for a conversation meet a conflict, as an engine
/// with row locks has them.
final class ConflictingStore: FrontedStore {
    private let base: MemoryStore
    var fronted: any Store { base }
    private var conflicts: Int
    private var after: Int

    /// - Parameter after: how many waits meet none before.
    init(_ base: MemoryStore, conflicts: Int, after: Int = 0) {
        self.base = base
        self.conflicts = conflicts
        self.after = after
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try base.write { transaction throws(StoreError) in
            let wrapped = Transaction(
                transaction, conflicts: self.conflicts, after: self.after)
            try body(wrapped)
            self.conflicts = wrapped.conflicts
            self.after = wrapped.after
        }
    }

    private final class Transaction: StoreTransaction {
        let base: any StoreTransaction
        var conflicts: Int
        var after: Int

        init(_ base: any StoreTransaction, conflicts: Int, after: Int) {
            self.base = base
            self.conflicts = conflicts
            self.after = after
        }

        func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
            -> [ColumnValue]?
        {
            if lock == .wait, table == ConversationRecord.table, after > 0 {
                after -= 1
            } else if lock == .wait, table == ConversationRecord.table, conflicts > 0 {
                conflicts -= 1
                throw .conflict("an injected fault")
            }
            return try base.row(table, key: key, lock: lock)
        }

        func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
            try base.rows(table, scan)
        }

        func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
            try base.put(table, row)
        }

        func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
            try base.insert(table, row)
        }

        func update(
            _ table: Table, _ row: [ColumnValue], columns: [Int]
        ) throws(StoreError) {
            try base.update(table, row, columns: columns)
        }

        func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
            try base.delete(table, key: key)
        }

        func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
            try base.lockSequence(body)
        }

        func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
            try base.savepoint(body)
        }
    }
}
