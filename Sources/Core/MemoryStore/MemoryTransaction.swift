import Model

/// What a snapshot shows, until its body ends.
final class MemorySnapshot: StoreSnapshot {
    private let contents: Contents
    private var isOpen = true

    init(_ contents: Contents) { self.contents = contents }

    func end() { isOpen = false }

    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        precondition(isOpen, "a snapshot used after its body")
        precondition(lock == .none, "\(table.name): a lock in a snapshot")
        if let problem = table.problem(key: key) { preconditionFailure(problem) }
        return contents[table].row(key)
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        precondition(isOpen, "a snapshot used after its body")
        precondition(scan.lock == .none, "\(table.name): a lock in a snapshot")
        if let problem = contents[table].table.problem(scan: scan) { preconditionFailure(problem) }
        return contents[table].rows(scan)
    }
}

/// A transaction: works on its own copy of the contents, which is committed as a whole.
final class MemoryTransaction: StoreTransaction {
    private(set) var contents: Contents
    /// The error that ended the transaction before its body did.
    private(set) var failure: StoreError?
    private var lockOrder: LockOrder
    private var depth = 0
    private var isOpen = true

    init(_ contents: Contents, lockRanks: [String: Int]) {
        self.contents = contents
        lockOrder = LockOrder(ranks: lockRanks)
    }

    func end() { isOpen = false }

    private func check() throws(StoreError) {
        precondition(isOpen, "a transaction used after its body")
        if let failure { throw failure }
    }

    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        try check()
        let found = contents[table]
        if let problem = found.table.problem(key: key) { preconditionFailure(problem) }
        if lock != .none { lockOrder.lock(table, key: key, waiting: lock == .wait) }
        return found.row(key)
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        try check()
        let found = contents[table]
        if let problem = found.table.problem(scan: scan) { preconditionFailure(problem) }
        let rows = found.rows(scan)
        if scan.lock != .none {
            for row in rows {
                let key = Array(row[..<found.table.keyCount])
                lockOrder.lock(table, key: key, waiting: scan.lock == .wait)
            }
        }
        return rows
    }

    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try check()
        if let problem = contents[table].table.problem(row: row) { preconditionFailure(problem) }
        contents[table].put(row)
    }

    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        let key = Array(row[..<table.keyCount])
        precondition(
            contents[table].row(key) == nil, "\(table.name)\(key): inserted where one is")
        try put(table, row)
    }

    func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError) {
        let key = Array(row[..<table.keyCount])
        guard let before = contents[table].row(key) else {
            throw .conflict("\(table.name)\(key): not there any more")
        }
        let changed = row.indices.filter { before[$0] != row[$0] }
        precondition(
            changed == columns, "\(table.name)\(key): columns \(changed) differ, not \(columns)")
        try put(table, row)
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        try check()
        if let problem = contents[table].table.problem(key: key) { preconditionFailure(problem) }
        contents[table].delete(key)
    }

    func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try check()
        let before = lockOrder.begin()
        defer { lockOrder.resume(before) }
        try body()
    }

    func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try check()
        let before = contents
        let locksBefore = depth == 0 ? lockOrder.begin() : nil
        depth += 1
        defer {
            depth -= 1
            if let locksBefore { lockOrder.resume(locksBefore) }
        }
        do {
            try body()
        } catch {
            contents = before
            switch error {
            case .full, .unavailable: failure = failure ?? error
            case .conflict, .corrupt: break
            }
            throw error
        }
        if let failure { throw failure }
    }
}
