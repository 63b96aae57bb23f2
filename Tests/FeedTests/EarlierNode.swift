import Feed
import Model

/// A node of the version before schema 9, on tables that are of schema 9 by now. It knows nothing
/// of what only one device may have: its rows come in the order in which the requests of a group
/// changed them first, a statement for each, and none gives up anything beforehand.
final class EarlierNode: DistantStore, FrontedStore {
    private let base: MirrorStore
    var fronted: any Store { base }
    /// How often something was given up later than it is today.
    private(set) var delays = 0

    init(_ base: MirrorStore) { self.base = base }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        try base.write(body)
    }

    func writeFetching(
        _ body: (any FetchingTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        try base.writeFetching { transaction throws(StoreError) in
            let earlier = Transaction(transaction)
            try body(earlier)
            try earlier.writeHeld()
            delays += earlier.delays
        }
    }

    /// Devices are held until all of them are known. What one gives up beforehand is left out, and
    /// comes with its own change, if there is one.
    private final class Transaction: FetchingTransaction {
        private enum Change {
            case insert([ColumnValue])
            case update([ColumnValue], Set<Int>)
            case delete([ColumnValue])
        }

        private let base: any FetchingTransaction
        private var held: [(table: Table, key: SortKey, change: Change)] = []
        private(set) var delays = 0

        init(_ base: any FetchingTransaction) { self.base = base }

        private func hold(_ table: Table, _ row: [ColumnValue], _ change: Change) {
            let key = SortKey(row[..<table.keyCount])
            var change = change
            if let known = held.firstIndex(where: { $0.table == table && $0.key == key }) {
                if case (.update(_, let before), .update(let row, let columns)) =
                    (held[known].change, change)
                {
                    change = .update(row, before.union(columns))
                }
                held.remove(at: known)
                delays += 1
            }
            held.append((table, key, change))
        }

        func writeHeld() throws(StoreError) {
            for (table, _, change) in held {
                switch change {
                case .insert(let row): try base.insert(table, row)
                case .update(let row, let columns):
                    try base.update(table, row, columns: columns.sorted())
                case .delete(let key): try base.delete(table, key: key)
                }
                // What is read goes behind what is written: so each row is a statement.
                _ = try base.rows(table, Scan(limit: 0))
            }
            held = []
        }

        private func isHeld(_ table: Table) -> Bool {
            table == DeviceRecord.table
        }

        func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
            -> [ColumnValue]?
        { try base.row(table, key: key, lock: lock) }

        func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
            try base.rows(table, scan)
        }

        func fetch(_ reads: [Read]) throws(StoreError) -> [ReadAnswer] { try base.fetch(reads) }

        func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
            precondition(!isHeld(table), "what is stored of devices is known when they are written")
            try base.put(table, row)
        }

        func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
            guard isHeld(table) else { return try base.insert(table, row) }
            hold(table, row, .insert(row))
        }

        func update(
            _ table: Table, _ row: [ColumnValue], columns: [Int]
        ) throws(StoreError) {
            guard isHeld(table) else { return try base.update(table, row, columns: columns) }
            hold(table, row, .update(row, Set(columns)))
        }

        func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
            guard isHeld(table) else { return try base.delete(table, key: key) }
            hold(table, key, .delete(key))
        }

        func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
            try base.lockSequence(body)
        }

        func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
            try base.savepoint(body)
        }
    }
}
