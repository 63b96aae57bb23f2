import Model

extension Table {
    /// The stored row without what only one row may have and the changed one has no more: it goes
    /// before another row gets it, for the changes of several requests come to the engine in
    /// whatever order.
    ///
    /// - Parameter changed: `nil`: the row is deleted.
    /// - Returns: `nil`: there is nothing to give up.
    func givingUpUnique(
        _ stored: [ColumnValue], for changed: [ColumnValue]?
    ) -> (row: [ColumnValue], columns: [Int])? {
        var freed = stored
        for index in indexes where index.isUnique {
            guard let column = index.presentColumn else { continue }
            if changed?[column] != stored[column] { freed[column] = .null }
        }
        let columns = freed.indices.filter { freed[$0] != stored[$0] }
        return columns.isEmpty ? nil : (freed, columns)
    }
}
