import Model

extension StoreTransaction {
    /// Waits for the row that protects this one. Rows of several guards are taken in the order of
    /// these: `Table.guardPlace`.
    fileprivate func lockGuard(of row: [ColumnValue], in table: Table) throws(StoreError) {
        guard let place = Schema.guarded(table).guardPlaces(of: row).first else { return }
        try hold(place.table, key: place.key)
    }

    func lockUser(_ app: AppID, _ user: UserID) throws(StoreError) {
        try hold(UserRecord.table, key: [.app(app), .user(user)])
    }

    /// One of many things that a turn does. Where another transaction holds something of it, or a
    /// row of it cannot be read, nothing of it is done, and a later turn does it: it keeps none
    /// behind it from their turn.
    ///
    /// - Parameter unreadable: told what is wrong with a row that cannot be read.
    /// - Returns: whether it was done.
    func passingOver(
        _ body: () throws(StoreError) -> Void, unreadable: (String) -> Void
    ) throws(StoreError) -> Bool {
        do throws(StoreError) {
            try savepoint(body)
            return true
        } catch {
            switch error {
            case .conflict: return false
            case .corrupt(let detail):
                unreadable(detail)
                return false
            case .full, .unavailable: throw error
            }
        }
    }

    /// The row as it is now: its guard was locked since it was found.
    func again<R: Record>(_ found: R) throws(StoreError) -> R? {
        try record(R.self, found.rowKey)
    }

    /// Keeps a value of `meta` that may as well be another transaction's: it is left alone where
    /// one holds it just now. So it has no place in the order of locks. Where two make the row at
    /// once, the second is tried again.
    func keepHint(_ hint: MetaRecord) throws(StoreError) {
        let key: [ColumnValue] = [.text(hint.name)]
        let isThere = try record(MetaRecord.self, key) != nil
        let held = try record(MetaRecord.self, key, lock: .skip)
        if held != nil {
            if held != hint { try put(hint) }
        } else if !isThere {
            try insert(hint)
        }
    }
}

extension Work {
    /// Deletes rows that nobody holds yet, each with its guard, if `isDue` of what it is by then.
    ///
    /// - Returns: how many were found.
    func deleteRows(
        of table: Table, _ scan: Scan, where isDue: ([ColumnValue]) -> Bool
    ) throws(RuleFailure) -> Int {
        do throws(StoreError) {
            let rows = try transaction.rows(table, scan)
            let guarded = Schema.guarded(table)
            let ordered = rows.map { row in
                (place: SortKey(guarded.guardPlaces(of: row).first?.key ?? []), row: row)
            }.sorted { $0.place < $1.place }
            for (_, row) in ordered {
                try transaction.lockGuard(of: row, in: table)
                let key = Array(row.prefix(table.keyCount))
                guard let current = try transaction.row(table, key: key, lock: .none),
                    isDue(current)
                else { continue }
                try transaction.delete(table, key: key)
            }
            return rows.count
        } catch {
            throw .store(error)
        }
    }
}
