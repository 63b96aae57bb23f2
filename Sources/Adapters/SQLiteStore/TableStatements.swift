import Model

/// The rows of all tables over one connection, with its compiled statements.
final class TableStatements {
    private final class Compiled {
        let sql: TableSQL
        var row: Statement?
        var put: Statement?
        var insert: Statement?
        /// By the columns that they write, a bit each.
        var updates: [UInt64: Statement] = [:]
        var delete: Statement?
        var scans: [ScanShape: CompiledScan] = [:]
        /// The key's columns in a row that was looked for by its key.
        let key: [EqualColumn]

        init(_ table: Table) {
            sql = TableSQL(table: table)
            key = (0..<table.keyCount).map { EqualColumn(column: $0, value: $0) }
        }
    }

    private struct CompiledScan {
        let statement: Statement
        /// The prefix's columns, in rising order.
        let prefix: [EqualColumn]
    }

    /// Compiled scans kept for one table; the code has a handful, so it is never reached.
    private static let scanLimit = 64

    private let connection: Connection
    private var tables = TableMap<Compiled>()
    /// Those that begin and end transactions, by their text.
    private var plain: [String: Statement] = [:]

    init(_ tables: [Table], on connection: Connection) {
        self.connection = connection
        precondition(Set(tables).count == tables.count, "two tables of one name")
        for table in tables { self.tables[table] = Compiled(table) }
    }

    private func compiled(_ table: Table) -> Compiled {
        guard let compiled = tables.known(table) ?? tables[table] else {
            preconditionFailure("the store has no table \(table.name)")
        }
        return compiled
    }

    private func prepared(_ kept: inout Statement?, _ sql: @autoclosure () -> String)
        throws(StoreError) -> Statement
    {
        if let kept { return kept }
        let statement = try connection.prepare(sql())
        kept = statement
        return statement
    }

    func row(_ table: Table, key: [ColumnValue]) throws(StoreError) -> [ColumnValue]? {
        let compiled = compiled(table)
        let table = compiled.sql.table
        if let problem = table.problem(key: key) { preconditionFailure(problem) }
        let statement = try prepared(&compiled.row, compiled.sql.row)
        return try statement.rows(key, columns: table.columns, equal: compiled.key).first
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        let compiled = compiled(table)
        let table = compiled.sql.table
        if let problem = table.problem(scan: scan) { preconditionFailure(problem) }
        guard scan.limit > 0 else { return [] }
        let shape = ScanShape(scan)
        let found = try self.scan(shape, of: compiled)
        return try found.statement.rows(
            ScanShape.values(of: scan), columns: table.columns, equal: found.prefix)
    }

    private func scan(_ shape: ScanShape, of compiled: Compiled) throws(StoreError)
        -> CompiledScan
    {
        if let scan = compiled.scans[shape] { return scan }
        if compiled.scans.count >= Self.scanLimit {
            for scan in compiled.scans.values { connection.discard(scan.statement) }
            compiled.scans = [:]
        }
        let scan = CompiledScan(
            statement: try connection.prepare(compiled.sql.scan(shape)),
            prefix: shape.equalColumns(of: compiled.sql.table))
        compiled.scans[shape] = scan
        return scan
    }

    /// Runs one of the few statements without values and rows that are run again and again.
    func execute(_ sql: String) throws(StoreError) {
        var kept = plain[sql]
        let statement = try prepared(&kept, sql)
        // Savepoints are named by their depth, which code bounds; more are not kept.
        if plain.count < Self.scanLimit { plain[sql] = statement }
        defer { if plain[sql] == nil { connection.discard(statement) } }
        try statement.run()
    }

    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        let compiled = compiled(table)
        if let problem = compiled.sql.table.problem(row: row) { preconditionFailure(problem) }
        let statement = try prepared(&compiled.put, compiled.sql.put)
        try statement.run(row)
    }

    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        let compiled = compiled(table)
        if let problem = compiled.sql.table.problem(row: row) { preconditionFailure(problem) }
        let statement = try prepared(&compiled.insert, compiled.sql.insert)
        try statement.run(row)
    }

    /// - Throws: `.conflict` where there is no such row.
    func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError) {
        let compiled = compiled(table)
        if let problem = compiled.sql.table.problem(row: row) { preconditionFailure(problem) }
        var mask: UInt64 = 0
        for column in columns { mask |= 1 << UInt64(column) }
        let statement: Statement
        if let known = compiled.updates[mask] {
            statement = known
        } else {
            if compiled.updates.count >= Self.scanLimit {
                for statement in compiled.updates.values { connection.discard(statement) }
                compiled.updates = [:]
            }
            statement = try connection.prepare(compiled.sql.update(columns))
            compiled.updates[mask] = statement
        }
        try statement.run(columns.map { row[$0] } + row[..<compiled.sql.table.keyCount])
        guard connection.rowsChanged == 1 else {
            throw .conflict("\(table.name): a row to be changed is not there")
        }
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        let compiled = compiled(table)
        if let problem = compiled.sql.table.problem(key: key) { preconditionFailure(problem) }
        let statement = try prepared(&compiled.delete, compiled.sql.delete)
        try statement.run(key)
    }
}
