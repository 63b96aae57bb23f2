import Model

/// The rows of one open transaction. For reading it is a snapshot; for writing the connection is
/// the only writer, so that rows need no locks.
final class SQLiteTransaction: StoreTransaction {
    private let connection: Connection
    private let statements: TableStatements
    private let isWriting: Bool
    private var isOpen = true
    private var depth = 0
    /// The error that ended the transaction before its body did.
    private(set) var failure: StoreError?

    init(_ connection: Connection, _ statements: TableStatements, isWriting: Bool) {
        self.connection = connection
        self.statements = statements
        self.isWriting = isWriting
    }

    func end() { isOpen = false }

    private func run<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        precondition(isOpen, "a transaction used after its body")
        if let failure { throw failure }
        do {
            return try body()
        } catch {
            settle(error)
            throw error
        }
    }

    /// Some errors end the transaction: by the contract, or because SQLite has rolled it back.
    private func settle(_ error: StoreError) {
        switch error {
        case .full, .unavailable: failure = failure ?? error
        case .conflict, .corrupt:
            if !connection.isInTransaction { failure = failure ?? error }
        }
    }

    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        try run { () throws(StoreError) in try statements.row(table, key: key) }
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        try run { () throws(StoreError) in try statements.rows(table, scan) }
    }

    /// The connection is the only writer: nobody waits for a row.
    func hold(_ table: Table, key: [ColumnValue]) throws(StoreError) {}

    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        try run { () throws(StoreError) in try statements.put(table, row) }
    }

    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        try run { () throws(StoreError) in try statements.insert(table, row) }
    }

    func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        try run { () throws(StoreError) in try statements.update(table, row, columns: columns) }
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        try run { () throws(StoreError) in try statements.delete(table, key: key) }
    }

    func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) { try body() }

    func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        let name = "s\(depth)"
        try run { () throws(StoreError) in try statements.execute("SAVEPOINT \(name)") }
        depth += 1
        defer { depth -= 1 }
        do {
            try body()
        } catch {
            settle(error)
            if failure == nil {
                try run { () throws(StoreError) in
                    try statements.execute("ROLLBACK TO \(name)")
                    try statements.execute("RELEASE \(name)")
                }
            }
            throw error
        }
        try run { () throws(StoreError) in try statements.execute("RELEASE \(name)") }
    }
}
