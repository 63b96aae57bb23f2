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
        for index in indexes where index.isUnique && index.holds(stored) {
            let stays = changed.map { changed in
                index.holds(changed) && index.columns.allSatisfy { changed[$0] == stored[$0] }
            }
            if stays == true { continue }
            if let column = index.presentColumn {
                freed[column] = .null
            } else if let column = index.absentColumn {
                // Whatever stands there, if the row goes.
                freed[column] = changed.map { $0[column] } ?? .integer(0)
            }
        }
        let columns = freed.indices.filter { freed[$0] != stored[$0] }
        return columns.isEmpty ? nil : (freed, columns)
    }
}
