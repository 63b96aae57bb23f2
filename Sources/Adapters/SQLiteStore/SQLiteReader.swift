import Model

/// Reads the store's file over a connection of its own, beside the writer.
final class SQLiteReader: StoreReader {
    private let path: String
    private let tables: [Table]
    private let options: SQLiteOptions
    private var current: (connection: Connection, statements: TableStatements)?
    private var isClosed = false
    private var isBusy = false

    init(path: String, tables: [Table], options: SQLiteOptions) throws(StoreError) {
        self.path = path
        self.tables = tables
        self.options = options
        _ = try open()
    }

    private func open() throws(StoreError) -> (connection: Connection, statements: TableStatements)
    {
        if isClosed { throw .unavailable("\(path): the reader is closed") }
        if let current, current.connection.distrust == nil { return current }
        current?.connection.close()
        current = nil
        let timeout = Int32(clamping: options.busyTimeout)
        let connection = try Connection(path: path, mode: .reader, busyTimeout: timeout)
        _ = try connection.texts("PRAGMA cache_size = -\(options.readerCacheSize)")
        let opened = (connection, TableStatements(tables, on: connection))
        current = opened
        return opened
    }

    /// Tells whether an older program has made the file.
    func announce(_ before: (StoreUpgrade) throws(StoreError) -> Void) throws(StoreError) {
        try Migrator(open().connection, tables).announce(before)
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        precondition(!isBusy, "read inside a body of the same reader")
        isBusy = true
        defer { isBusy = false }
        let (connection, statements) = try open()
        try statements.snapshot(on: connection, body)
    }

    func close() {
        isClosed = true
        current?.connection.close()
        current = nil
    }
}

extension TableStatements {
    /// Runs `body` on what is committed at this moment.
    func snapshot(
        on connection: Connection,
        _ body: (any StoreSnapshot) throws(StoreError) -> Void
    ) throws(StoreError) {
        try execute("BEGIN")
        let transaction = SQLiteTransaction(connection, self, isWriting: false)
        defer { transaction.end() }
        do {
            // BEGIN alone takes no snapshot: the first read does.
            try execute("SELECT 1 FROM sqlite_schema LIMIT 1")
            try body(transaction)
        } catch {
            try rollBack(on: connection)
            throw error
        }
        try execute("COMMIT")
    }

    /// Ends the transaction if SQLite has not done so itself.
    func rollBack(on connection: Connection) throws(StoreError) {
        if connection.isInTransaction { try execute("ROLLBACK") }
    }
}
