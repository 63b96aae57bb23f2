import Model

/// The rows of one open transaction, over a connection that is in it. Writes are queued, and go to
/// the server with the next read or with COMMIT; what is wrong with them shows there.
///
/// Locks are the server's row locks. A key without a row is held by an advisory lock of its hash;
/// two keys of one hash only wait where they need not.
final class PostgresTransaction: StoreTransaction {
    private let connection: PostgresConnection
    private let tables: PostgresTables
    private let isWriting: Bool
    private var isOpen = true
    private var depth = 0
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
    private func run<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
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
        if let problem = table.problem(key: key) { preconditionFailure(problem) }
        precondition(isWriting || lock == .none, "a snapshot takes no locks")
        let statements = tables[table]
        return try run { () throws(StoreError) in
            let sql = statements.row(lock)
            if let row = try connection.rows(sql, key, columns: statements.columns).first {
                return row
            }
            guard lock == .wait || lock == .share else { return nil }
            // Whoever held the key may have inserted the row.
            try connection.run(
                lock == .wait
                    ? "SELECT pg_advisory_xact_lock($1)"
                    : "SELECT pg_advisory_xact_lock_shared($1)",
                [tables.hash(of: key, in: table)])
            return try connection.rows(sql, key, columns: statements.columns).first
        }
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        if let problem = table.problem(scan: scan) { preconditionFailure(problem) }
        precondition(isWriting || scan.lock == .none, "a snapshot takes no locks")
        guard scan.limit > 0 else { return [] }
        let statements = tables[table]
        return try run { () throws(StoreError) in
            try connection.rows(
                statements.scan(scan), PostgresSQL.values(of: scan), columns: statements.columns)
        }
    }

    // MARK: Writing

    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try write(to: table, row: row) { () throws(StoreError) in
            try connection.run(tables[table].put, row)
        }
    }

    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try write(to: table, row: row) { () throws(StoreError) in
            try connection.run(tables[table].insert, row)
        }
    }

    func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError) {
        try write(to: table, row: row) { () throws(StoreError) in
            try connection.run(
                tables[table].update(columns), columns.map { row[$0] } + row[..<table.keyCount])
        }
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        if let problem = table.problem(key: key) { preconditionFailure(problem) }
        try run { () throws(StoreError) in try connection.run(tables[table].delete, key) }
    }

    private func write(
        to table: Table, row: [ColumnValue], _ body: () throws(StoreError) -> Void
    ) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        if let problem = table.problem(row: row) { preconditionFailure(problem) }
        try run(body)
    }

    // MARK: Parts

    func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) { try body() }

    func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        let name = "s\(depth)"
        // Rolling back to it undoes all that was queued behind it, and nothing before.
        try run { () throws(StoreError) in
            try connection.run("SAVEPOINT \(name)")
            try connection.synchronize()
        }
        depth += 1
        defer { depth -= 1 }
        do throws(StoreError) {
            try body()
            try run { () throws(StoreError) in try connection.synchronize() }
        } catch {
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
                // What is queued still may fail as well, and is undone with the rest.
                _ = try? connection.synchronize()
                try connection.run("ROLLBACK TO SAVEPOINT \(name)")
                try connection.run("RELEASE SAVEPOINT \(name)")
                try connection.synchronize()
            }
        }
    }
}
