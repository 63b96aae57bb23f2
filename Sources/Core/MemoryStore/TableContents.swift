import Model

/// The rows of one table, by its key and by each of its indexes.
struct TableContents {
    let table: Table
    /// For each index, the columns it sorts by.
    private let orders: [[Int]]
    private var byKey = SortedRows()
    private var byIndex: [SortedRows]

    init(_ table: Table) {
        self.table = table
        orders = table.indexes.map { table.order(of: $0.name) }
        byIndex = Array(repeating: SortedRows(), count: table.indexes.count)
    }

    func row(_ key: [ColumnValue]) -> [ColumnValue]? { byKey[SortKey(key)] }

    func rows(_ scan: Scan) -> [[ColumnValue]] {
        let rows =
            table.indexes.firstIndex { $0.name == scan.index }.map { byIndex[$0] } ?? byKey
        let lower =
            scan.after.map { SortKey(scan.prefix + $0, end: .high) } ?? SortKey(scan.prefix)
        let upper = SortKey(scan.prefix + (scan.through ?? []), end: .high)
        return rows.rows(
            from: lower, to: upper, descending: scan.descending, limit: scan.limit)
    }

    mutating func put(_ row: [ColumnValue]) {
        let key = SortKey(row[..<table.keyCount])
        let old = byKey[key]
        byKey.insert(row, at: key)
        for position in byIndex.indices {
            let place = place(of: row, in: position)
            if let old, let before = self.place(of: old, in: position), before != place {
                byIndex[position].remove(before)
            }
            if let place { byIndex[position].insert(row, at: place) }
        }
    }

    mutating func delete(_ key: [ColumnValue]) {
        let key = SortKey(key)
        guard let old = byKey[key] else { return }
        byKey.remove(key)
        for position in byIndex.indices {
            if let place = place(of: old, in: position) { byIndex[position].remove(place) }
        }
    }

    /// The name of a unique index in which another row than the one with this row's key stands
    /// at the same place; `nil`: there is none.
    func duplicate(_ row: [ColumnValue]) -> String? {
        for (position, index) in table.indexes.enumerated() where index.isUnique {
            guard index.holds(row) else { continue }
            let values = index.columns.map { row[$0] }
            let found = byIndex[position].rows(
                from: SortKey(values), to: SortKey(values, end: .high), descending: false,
                limit: 2)
            if found.contains(where: { $0[..<table.keyCount] != row[..<table.keyCount] }) {
                return index.name
            }
        }
        return nil
    }

    /// `nil` if the index at this position leaves the row out.
    private func place(of row: [ColumnValue], in position: Int) -> SortKey? {
        guard table.indexes[position].holds(row) else { return nil }
        return SortKey(orders[position][...], of: row)
    }
}
