import Model

/// Checks that one transaction waits for rows in the agreed order, without which an engine with
/// row locks would deadlock: by the rank of their table, within a rank by table name and key,
/// ascending.
///
/// Locks taken inside an outermost savepoint are a sequence of their own: several requests
/// share one transaction of an engine with a single writer, each in its savepoint.
struct LockOrder {
    private struct Row: Hashable {
        let rank: Int
        let table: String
        let key: SortKey

        func isBelow(_ other: Row) -> Bool {
            if rank != other.rank { return rank < other.rank }
            if table != other.table { return table < other.table }
            return key < other.key
        }
    }

    private let ranks: [String: Int]
    private var held: Set<Row> = []
    private var last: (row: Row, name: String)?

    init(ranks: [String: Int]) { self.ranks = ranks }

    /// Starts a sequence; returns what `resume` needs after it.
    mutating func begin() -> LockOrder {
        let before = self
        last = nil
        return before
    }

    /// Ends the sequence that `begin` started; what it locked stays held.
    mutating func resume(_ before: LockOrder) { last = before.last }

    /// A table without a rank comes after all others, its rows in any order.
    mutating func lock(_ table: Table, key: [ColumnValue], waiting: Bool) {
        guard !ranks.isEmpty else { return }
        let row = Row(rank: ranks[table.name] ?? .max, table: table.name, key: SortKey(key))
        guard held.insert(row).inserted, waiting else { return }
        let name = "\(table.name)\(key)"
        if let last {
            let isInOrder =
                row.rank == .max ? true : last.row.rank != .max && last.row.isBelow(row)
            precondition(isInOrder, "lock order: \(name) after \(last.name)")
        }
        last = (row, name)
    }
}
