/// The row whose lock protects the rows of a table: a transaction that writes one of them holds
/// that lock, and has read since it took it whatever it writes over.
public indirect enum RowGuard: Sendable {
    /// Each row protects itself.
    case itself
    /// The row of this table whose key stands in these columns, or that key alone while there is
    /// no such row.
    case row(of: Table, columns: [Int])
}

extension Table {
    /// The same table, whose rows are protected by those of `holder`.
    ///
    /// - Parameter columns: The columns with the key of the protecting row; `nil`: those of the
    ///   same names as its key's.
    public func guarded(by holder: Table, columns names: [String]? = nil) -> Table {
        var table = self
        guard holder != self else {
            table.rowGuard = .itself
            return table
        }
        let names = names ?? holder.columns[..<holder.keyCount].map(\.name)
        let positions = names.compactMap { name in columns.firstIndex { $0.name == name } }
        precondition(
            positions.count == holder.keyCount, "\(name) has no columns for a key of \(holder.name)"
        )
        table.rowGuard = .row(of: holder, columns: positions)
        return table
    }

    /// The table and the key of the row that protects `row`; `nil`: the table names none.
    public func guardPlace(of row: [ColumnValue]) -> (table: Table, key: [ColumnValue])? {
        switch rowGuard {
        case nil: nil
        case .itself?: (self, Array(row[..<keyCount]))
        case .row(let holder, let columns)?: (holder, columns.map { row[$0] })
        }
    }
}
