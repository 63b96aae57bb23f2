import Model

/// A row, or the place of one that is absent.
struct RowPlace: Hashable {
    let table: String
    let key: SortKey

    init(_ table: Table, _ key: some Sequence<ColumnValue>) {
        self.table = table.name
        self.key = SortKey(Array(key))
    }
}

/// Which of the transactions that are open at the same time holds which rows.
struct RowLocks {
    private struct Holders {
        var exclusive: Int?
        var sharing: Set<Int> = []
    }

    private var rows: [RowPlace: Holders] = [:]

    /// Whether the transaction holds the row now; `false`: another one does.
    mutating func take(_ place: RowPlace, for transaction: Int, sharing: Bool = false) -> Bool {
        var holders = rows[place] ?? Holders()
        if let holder = holders.exclusive { return holder == transaction }
        if sharing {
            holders.sharing.insert(transaction)
        } else {
            guard holders.sharing.subtracting([transaction]).isEmpty else { return false }
            holders.exclusive = transaction
        }
        rows[place] = holders
        return true
    }

    mutating func release(all transaction: Int) {
        rows = rows.filter { $1.exclusive != transaction }
        for place in rows.keys { rows[place]?.sharing.remove(transaction) }
    }
}
