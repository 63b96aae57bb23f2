import Feed
import MemoryStore
import Model

/// Notes when rows go that an entry of a feed may show.
final class WatchedStore: FrontedStore {
    private let base: MemoryStore
    var fronted: any Store { base }
    /// Since it was last looked at.
    private var hasLost = false

    /// What entries show.
    private static let shown: Set<String> = [
        ConversationRecord.table.name, ParticipantRecord.table.name, MessageRecord.table.name,
        MetadataRecord.table.name, ReadMarkRecord.table.name, SettingsRecord.table.name,
        ReceiptRecord.table.name, HiddenRecord.table.name, BlockRecord.table.name,
        AnnouncementRecord.table.name,
    ]

    init(_ base: MemoryStore) { self.base = base }

    /// Whether anything went since this was asked for the last time.
    func hasLostRows() -> Bool {
        defer { hasLost = false }
        return hasLost
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try base.write { transaction throws(StoreError) in
            try body(Transaction(transaction, of: self))
        }
    }

    var isSoleWriter: Bool { base.isSoleWriter }

    private final class Transaction: StoreTransaction {
        let base: any StoreTransaction
        let store: WatchedStore

        init(_ base: any StoreTransaction, of store: WatchedStore) {
            self.base = base
            self.store = store
        }

        func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
            -> [ColumnValue]?
        { try base.row(table, key: key, lock: lock) }

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
            if WatchedStore.shown.contains(table.name) { store.hasLost = true }
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
