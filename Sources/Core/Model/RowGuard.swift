/// The row whose lock protects the rows of a table: a transaction that writes one of them holds
/// that lock, and has read since it took it whatever it writes over.
public indirect enum RowGuard: Sendable {
    /// Each row protects itself.
    case itself
    /// The row of this table whose key stands in these columns, or that key alone while there is
    /// no such row.
    case row(of: Table, columns: [Int])
    /// One of two, for a row of which each protects columns of its own: only these are written
    /// while the other is not held.
    case either(RowGuard, RowGuard)
}

extension Table {
    /// The same table, whose rows are protected by those of `holder`.
    ///
    /// - Parameter columns: The columns with the key of the protecting row; `nil`: those of the
    ///   same names as its key's.
    public func guarded(by holder: Table, columns names: [String]? = nil) -> Table {
        Table(self, guardedBy: guarding(holder, names))
    }

    /// The same table, of whose rows some columns are protected by those of `holder`.
    public func alsoGuarded(by holder: Table) -> Table {
        guard let first = rowGuard else { return guarded(by: holder) }
        return Table(self, guardedBy: .either(first, guarding(holder, nil)))
    }

    private func guarding(_ holder: Table, _ names: [String]?) -> RowGuard {
        if holder == self { return .itself }
        let names = names ?? holder.columns[..<holder.keyCount].map(\.name)
        let positions = names.compactMap { name in columns.firstIndex { $0.name == name } }
        precondition(
            positions.count == holder.keyCount, "\(name) has no columns for a key of \(holder.name)"
        )
        return .row(of: holder, columns: positions)
    }

    /// The tables and keys of the rows that protect `row`; none: the table names none.
    public func guardPlaces(of row: [ColumnValue]) -> [(table: Table, key: [ColumnValue])] {
        rowGuard.map { places(of: row, $0) } ?? []
    }

    private func places(
        of row: [ColumnValue], _ rowGuard: RowGuard
    ) -> [(table: Table, key: [ColumnValue])] {
        switch rowGuard {
        case .itself: [(self, Array(row[..<keyCount]))]
        case .row(let holder, let columns): [(holder, columns.map { row[$0] })]
        case .either(let one, let other): places(of: row, one) + places(of: row, other)
        }
    }
}
