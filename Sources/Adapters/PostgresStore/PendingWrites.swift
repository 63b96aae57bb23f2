import Model

/// Changes of rows of one table that wait to be sent, so that one statement carries out all that
/// are of one kind. No two are of the same row: in what order they are made nobody sees.
struct PendingWrites {
    enum Kind: Equatable {
        case insert
        case put
        /// Of these columns.
        case update([Int])
        /// What is held is the key alone.
        case delete
    }

    /// Rows that one statement writes.
    private static let rowsMax = 64

    let table: Table
    private var batches: [(kind: Kind, rows: [[ColumnValue]])]
    private var keys: Set<SortKey>

    init(_ row: [ColumnValue], of table: Table, _ kind: Kind) {
        self.table = table
        batches = [(kind, [row])]
        keys = [SortKey(row[..<table.keyCount])]
    }

    /// - Returns: whether it may wait with the others; else they go first.
    mutating func add(_ row: [ColumnValue], of other: Table, _ kind: Kind) -> Bool {
        guard other.name == table.name, !comesAlone(kind),
            !batches.contains(where: { comesAlone($0.kind) })
        else { return false }
        let known = batches.firstIndex { $0.kind == kind }
        // What only one row may have, one gives up before another gets it.
        if table.hasUniqueIndex, known == nil { return false }
        if let known, batches[known].rows.count >= Self.rowsMax { return false }
        guard keys.insert(SortKey(row[..<table.keyCount])).inserted else { return false }
        if let known {
            batches[known].rows.append(row)
        } else {
            batches.append((kind, [row]))
        }
        return true
    }

    /// In one statement it is not said which row is changed first.
    private func comesAlone(_ kind: Kind) -> Bool {
        guard table.hasUniqueIndex, case .update(let columns) = kind else { return false }
        return table.indexes.contains { index in
            index.isUnique && index.columns.contains { columns.contains($0) }
        }
    }

    func send(
        over connection: PostgresConnection, _ statements: PostgresTables.Statements
    ) throws(StoreError) {
        for (kind, rows) in batches {
            guard rows.count > 1 else {
                try send(rows[0], kind, over: connection, statements)
                continue
            }
            let all = Array(table.columns.indices)
            let keys = Array(0..<table.keyCount)
            switch kind {
            case .insert: try connection.run(statements.insertMany, bound: arrays(rows, all))
            case .put: try connection.run(statements.putMany, bound: arrays(rows, all))
            case .update(let columns):
                var bound = arrays(rows, columns + keys)
                bound.append(.integer(Int64(rows.count)))
                try connection.run(statements.updateMany(columns), bound: bound)
            case .delete:
                var bound = arrays(rows, keys)
                bound.append(.integer(Int64(rows.count)))
                try connection.run(statements.deleteMany, bound: bound)
            }
        }
    }

    private func send(
        _ row: [ColumnValue], _ kind: Kind, over connection: PostgresConnection,
        _ statements: PostgresTables.Statements
    ) throws(StoreError) {
        switch kind {
        case .insert: try connection.run(statements.insert, row)
        case .put: try connection.run(statements.put, row)
        case .update(let columns):
            try connection.run(
                statements.update(columns), columns.map { row[$0] } + row[..<table.keyCount])
        case .delete: try connection.run(statements.delete, row)
        }
    }

    private func arrays(_ rows: [[ColumnValue]], _ columns: [Int]) -> BoundValues {
        var bound = BoundValues()
        for column in columns {
            bound.append(array: rows.map { $0[column] }, of: table.columns[column].type)
        }
        return bound
    }
}
