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

/// A transaction: works on its own copy of the contents, which is committed as a whole. Where
/// others commit while it is open, it sees their rows from its next read on, as an engine does
/// whose transactions wait for the rows they lock and for nothing else.
final class MemoryTransaction: StoreTransaction {
    /// The error that ended the transaction before its body did.
    private(set) var failure: StoreError?
    private let shared: MemoryStore.Shared
    private let number: Int
    private let isSole: Bool
    private var contents: Contents
    /// The commits that `contents` shows.
    private var version: Int
    /// What was written, for `contents` anew after others' commits.
    private var writes: [Write] = []
    private var lockOrder: LockOrder
    private var depth = 0
    private var isOpen = true

    private enum Write {
        case put(Table, [ColumnValue])
        case delete(Table, [ColumnValue])
    }

    init(_ shared: MemoryStore.Shared, number: Int, isSole: Bool) {
        self.shared = shared
        self.number = number
        self.isSole = isSole
        contents = shared.committed
        version = shared.version
        lockOrder = LockOrder(ranks: shared.lockRanks)
    }

    func end() { isOpen = false }

    /// The contents as they are if the transaction is committed now.
    func finished() throws(StoreError) -> Contents {
        if let failure { throw failure }
        try catchUp()
        return contents
    }

    private func check() throws(StoreError) {
        precondition(isOpen, "a transaction used after its body")
        if let failure { throw failure }
    }

    /// Lets others commit, and sees what they have.
    private func pause() throws(StoreError) {
        shared.betweenReads?()
        try catchUp()
    }

    private func catchUp() throws(StoreError) {
        guard version != shared.version else { return }
        version = shared.version
        contents = shared.committed
        for write in writes {
            switch write {
            case .put(let table, let row): try place(row, in: table)
            case .delete(let table, let key): contents[table].delete(key)
            }
        }
    }

    private func place(_ row: [ColumnValue], in table: Table) throws(StoreError) {
        if let index = contents[table].duplicate(row) {
            throw .conflict("\(index): two rows of the same")
        }
        contents[table].put(row)
    }

    // MARK: Reading

    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        try check()
        if let problem = contents[table].table.problem(key: key) { preconditionFailure(problem) }
        try pause()
        guard try take(table, key, lock) else { return nil }
        lockOrder.read(table, key: key)
        return contents[table].row(key)
    }

    func hold(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        try check()
        if let problem = contents[table].table.problem(key: key) { preconditionFailure(problem) }
        try pause()
        _ = try take(table, key, .wait)
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        try check()
        let known = contents[table].table
        if let problem = known.problem(scan: scan) { preconditionFailure(problem) }
        try pause()
        var rows: [[ColumnValue]] = []
        for row in contents[table].rows(scan) {
            let key = Array(row[..<known.keyCount])
            guard try take(known, key, scan.lock) else { continue }
            lockOrder.read(known, key: key)
            rows.append(row)
        }
        return rows
    }

    /// - Returns: `false`: the row is another transaction's, and is passed over.
    private func take(
        _ table: Table, _ key: [ColumnValue], _ lock: RowLock
    ) throws(StoreError) -> Bool {
        guard lock != .none else { return true }
        let place = RowPlace(table, key)
        guard shared.locks.take(place, for: number, sharing: lock == .share) else {
            if lock == .skip { return false }
            throw .conflict("\(table.name)\(key) is another transaction's")
        }
        if let problem = lockOrder.lock(table, key: key, lock) { shared.breach(problem) }
        return true
    }

    // MARK: Writing

    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try check()
        let table = contents[table].table
        if let problem = table.problem(row: row) { preconditionFailure(problem) }
        try write(row, of: table, isKnown: true)
    }

    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try check()
        let table = contents[table].table
        if let problem = table.problem(row: row) { preconditionFailure(problem) }
        let key = Array(row[..<table.keyCount])
        if contents[table].row(key) != nil { throw .conflict("\(table.name)\(key) is there") }
        try write(row, of: table, isKnown: false)
    }

    func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError) {
        try check()
        let table = contents[table].table
        let key = Array(row[..<table.keyCount])
        guard let before = contents[table].row(key) else {
            throw .conflict("\(table.name)\(key): not there any more")
        }
        let changed = row.indices.filter { before[$0] != row[$0] }
        if changed != columns {
            shared.breach("\(table.name)\(key): columns \(changed) differ, not \(columns)")
        }
        // Where others wrote the row since it was read, only the changed columns are written over
        // theirs.
        var after = before
        for column in columns { after[column] = row[column] }
        try write(after, of: table, isKnown: true)
    }

    private func write(
        _ row: [ColumnValue], of table: Table, isKnown: Bool
    ) throws(StoreError) {
        try checkWrite(row, of: table, isKnown: isKnown)
        try place(row, in: table)
        writes.append(.put(table, row))
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        try check()
        let table = contents[table].table
        if let problem = table.problem(key: key) { preconditionFailure(problem) }
        guard let row = contents[table].row(key) else { return }
        try checkWrite(row, of: table, isKnown: false)
        contents[table].delete(key)
        writes.append(.delete(table, key))
    }

    /// The row is the transaction's from now on, as in every engine with row locks.
    private func checkWrite(
        _ row: [ColumnValue], of table: Table, isKnown: Bool
    ) throws(StoreError) {
        let place = RowPlace(table, row[..<table.keyCount])
        guard shared.locks.take(place, for: number) else {
            throw .conflict("\(table.name): a row is another transaction's")
        }
        if let problem = lockOrder.problem(
            writing: row, of: table, isKnown: isKnown && !isSole, isFresh: !isSole)
        {
            shared.breach(problem)
        }
        lockOrder.read(table, key: row[..<table.keyCount])
    }

    // MARK: Parts

    func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try check()
        let before = lockOrder.begin()
        defer { lockOrder.resume(before) }
        try body()
    }

    func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try check()
        let (before, seen, written) = (contents, version, writes.count)
        let locksBefore = depth == 0 ? lockOrder.begin() : nil
        depth += 1
        defer {
            depth -= 1
            if let locksBefore { lockOrder.resume(locksBefore) }
        }
        do {
            try body()
        } catch {
            writes.removeLast(writes.count - written)
            contents = before
            version = seen
            switch error {
            case .full, .unavailable: failure = failure ?? error
            case .conflict, .corrupt: break
            }
            throw error
        }
        if let failure { throw failure }
    }
}
