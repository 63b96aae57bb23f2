import Feed
import Model
import PostgresPeer
import Testing

@testable import PostgresStore

/// Plans are made once for a connection, and on a new store of empty tables: a row has to be found
/// by its key then, too, and not among all rows of its app.
@Suite(.enabled(if: PostgresPeer.isInstalled, "PostgreSQL 15 is not installed"))
struct PostgresPlanTests {
    @Test("rows of empty tables are looked up, changed and deleted by the key's index")
    func byKey() throws {
        var options = PostgresOptions(address: try PostgresPeer.shared().address)
        options.schema = "plans"
        try PostgresStore(tables: Schema.tables, options: options).close()
        let connection = try PostgresSession(options: options).connect("plans")
        defer { connection.close() }
        for table in Schema.tables {
            let sql = PostgresSQL(table: table)
            let keys = Array(0..<table.keyCount)
            var statements: [(sql: String, columns: [Int], numbers: Int, isMany: Bool)] = [
                (sql.row(.none), keys, 0, false), (sql.row(.wait), keys, 0, false),
                (sql.rows(.none), keys, 0, true), (sql.rows(.wait), keys, 0, true),
                (sql.rows(.wait, skipsHeld: true), keys, 0, true),
                (sql.delete, keys, 0, false), (sql.deleteMany, keys, 1, true),
            ]
            if table.columns.count > table.keyCount {
                let changed = [table.keyCount]
                statements += [
                    (sql.update(changed), changed + keys, 0, false),
                    (sql.updateMany(changed), changed + keys, 1, true),
                ]
            }
            for (sql, columns, numbers, isMany) in statements {
                let plan = try plan(
                    of: sql, places: columns.count + numbers, over: connection)
                let scans = plan.filter { $0.contains("Scan") && !$0.contains("Function Scan") }
                    .filter { !$0.contains("Subquery Scan") && !$0.contains("CTE Scan") }
                #expect(scans.count == 1, "\(sql): \(plan)")
                #expect(
                    scans.allSatisfy { $0.contains("using \(table.name)_key on ") },
                    "\(sql): \(plan)")
                #expect(!plan.contains { $0.contains("Join") || $0.contains("Hash") }, "\(plan)")
                #expect(isMany == plan.contains { $0.contains("Nested Loop") }, "\(plan)")
            }
        }
    }

    private func plan(
        of sql: String, places: Int, over connection: PostgresConnection
    ) throws -> [String] {
        try connection.run("PREPARE looked AS \(sql)")
        let nulls = Array(repeating: "NULL", count: places).joined(separator: ", ")
        let rows = try connection.rows(
            "EXPLAIN (COSTS OFF) EXECUTE looked (\(nulls))", columns: [Column("plan", .text)])
        try connection.run("DEALLOCATE looked")
        try connection.synchronize()
        return rows.compactMap { if case .text(let line) = $0[0] { line } else { nil } }
    }
}
