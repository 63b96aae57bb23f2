import Model

/// The rows of one open transaction, over a connection that is in it. Writes are queued, and go to
/// the server with the next read or with COMMIT; what is wrong with them shows there.
///
/// Locks are the server's row locks. Beside a row that is locked by its key the key is held by an
/// advisory lock of its hash, for the row may not be there; two keys of one hash only wait where
/// they need not.
final class PostgresTransaction: FetchingTransaction {
    let connection: PostgresConnection
    let tables: PostgresTables
    let isWriting: Bool
    private var isOpen = true
    private var depth = 0
    /// The highest lock of a key that was waited for.
    var highest: Place?
    /// Rows that were written before all locks were taken may be what the holder of another lock
    /// waits for: from then on no lock is waited for.
    private(set) var hasSentWrites = false
    /// Nor is any lock waited for of which the caller has said so.
    private(set) var waitsForNothing = false
    /// Changes of one table that were not sent yet. Anything else that is sent comes behind them.
    private var pending: PendingWrites?
    /// The error that ended the transaction before its body did.
    private(set) var failure: StoreError?

    init(_ connection: PostgresConnection, _ tables: PostgresTables, isWriting: Bool) {
        self.connection = connection
        self.tables = tables
        self.isWriting = isWriting
    }

    func end() { isOpen = false }

    /// After an error of the server nothing but a rollback is possible: to the savepoint that is
    /// open, or of everything.
    func run<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        precondition(isOpen, "a transaction used after its body")
        if let failure { throw failure }
        do {
            return try body()
        } catch {
            if connection.hasFailed { failure = error }
            throw error
        }
    }

    // MARK: Reading

    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        let read = Read.row(table, key: key, lock: lock)
        guard case .row(let row)? = try answers([read], waits: true).first else {
            preconditionFailure("a row that is read is a row")
        }
        return row
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        guard case .rows(let rows)? = try answers([.rows(table, scan)], waits: true).first else {
            preconditionFailure("a scan gives rows")
        }
        return rows
    }

    func fetch(_ reads: [Read]) throws(StoreError) -> [ReadAnswer] {
        try answers(reads, waits: false)
    }

    // MARK: Writing

    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try write(to: table, row: row, .put)
    }

    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try write(to: table, row: row, .insert)
    }

    func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError) {
        try write(to: table, row: row, .update(columns))
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        if let problem = table.problem(key: key) { preconditionFailure(problem) }
        try run { () throws(StoreError) in try hold(key, of: table, .delete) }
    }

    private func write(
        to table: Table, row: [ColumnValue], _ kind: PendingWrites.Kind
    ) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        if let problem = table.problem(row: row) { preconditionFailure(problem) }
        try run { () throws(StoreError) in try hold(row, of: table, kind) }
    }

    /// Keeps the change back, so that one statement carries it out with others of its kind, and
    /// sends those before it with which it cannot wait.
    private func hold(
        _ row: [ColumnValue], of table: Table, _ kind: PendingWrites.Kind
    ) throws(StoreError) {
        if pending?.add(row, of: table, kind) ?? false { return }
        try writePending()
        pending = PendingWrites(row, of: table, kind)
    }

    /// Queues what is held back. To be done before COMMIT.
    func writePending() throws(StoreError) {
        guard let held = pending else { return }
        pending = nil
        try held.send(over: connection, tables[held.table])
    }

    func sendWrites() throws(StoreError) {
        try run { () throws(StoreError) in
            try writePending()
            hasSentWrites = true
            try connection.sendQueued()
        }
    }

    func waitForNothing() { waitsForNothing = true }

    // MARK: Parts

    func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) { try body() }

    func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        let name = "s\(depth)"
        // Rolling back to it undoes all that was queued behind it, and nothing before.
        try run { () throws(StoreError) in
            try writePending()
            try connection.run("SAVEPOINT \(name)")
            try connection.synchronize()
        }
        depth += 1
        defer { depth -= 1 }
        do throws(StoreError) {
            try body()
            try run { () throws(StoreError) in
                try writePending()
                try connection.synchronize()
            }
        } catch {
            pending = nil
            try undo(to: name, after: error)
            throw error
        }
        try run { () throws(StoreError) in try connection.run("RELEASE SAVEPOINT \(name)") }
    }

    /// Goes on before the savepoint, unless nothing can.
    private func undo(to name: String, after error: StoreError) throws(StoreError) {
        switch error {
        case .full, .unavailable:
            failure = failure ?? error
        case .conflict, .corrupt:
            if case .unavailable? = failure { return }
            failure = nil
            try run { () throws(StoreError) in
                // Statements that are still queued may fail as well; they are undone with the rest.
                _ = try? connection.synchronize()
                try connection.run("ROLLBACK TO SAVEPOINT \(name)")
                try connection.run("RELEASE SAVEPOINT \(name)")
                try connection.synchronize()
            }
        }
    }
}
