import Feed
import Model
import Testing

@testable import SQLiteStore

/// Every scan the contract allows walks one index from a place in it: no table scan, no sort.
@Suite struct QueryPlanTests {
    private static let tables = Sample.tables + Schema.tables

    @Test("each scan shape of each table uses its index", arguments: tables.map(\.name))
    func plans(_ name: String) throws {
        let table = try #require(Self.tables.first { $0.name == name })
        try withFolder { folder throws in
            let connection = try Connection(
                path: "\(folder)/plan.db", mode: .writer, busyTimeout: 0)
            defer { connection.close() }
            for (_, sql) in TableSQL(table: table).schema { try connection.execute(sql) }
            for index in [nil] + table.scanned.map(\.name) {
                for scan in scans(table, index) {
                    #expect(table.problem(scan: scan) == nil)
                    let sql = TableSQL(table: table).scan(ScanShape(scan))
                    let plan = try connection.texts("EXPLAIN QUERY PLAN \(sql)").map { $0[3] }
                    let name = index ?? "\(table.name)_key"
                    let isFree = scan.prefix.isEmpty && scan.after == nil && scan.through == nil
                    // An index of present values is entered by "is not null".
                    let verb = plan.first?.hasPrefix("SEARCH") == true ? "SEARCH" : "SCAN"
                    #expect(verb == "SEARCH" || isFree, "\(sql): \(plan)")
                    #expect(plan.count == 1, "\(sql): \(plan)")
                    let start = "\(verb) \(table.name) USING INDEX \(name)"
                    let covering = "\(verb) \(table.name) USING COVERING INDEX \(name)"
                    let detail = plan.first ?? ""
                    #expect(
                        detail.hasPrefix(start) || detail.hasPrefix(covering), "\(sql): \(plan)")
                    // Every bound is a place in the index, not a filter.
                    let equal = detail.split(separator: "=?").count - 1
                    #expect(equal >= scan.prefix.count, "\(sql): \(plan)")
                    #expect(scan.after == nil || detail.contains(">"), "\(sql): \(plan)")
                    #expect(scan.through == nil || detail.contains("<"), "\(sql): \(plan)")
                }
            }
        }
    }

    private func scans(_ table: Table, _ index: String?) -> [Scan] {
        let order = table.order(of: index)
        let present = table.indexes.first { $0.name == index }?.presentColumn
        var scans: [Scan] = []
        for length in 0...order.count {
            let prefixes =
                [order[..<length].map { value(table.columns[$0]) }]
                + (length > 0
                    ? [
                        order[..<length].map {
                            $0 == present ? value(table.columns[$0]) : nullable(table.columns[$0])
                        }
                    ] : [])
            let bounded = order[length...].prefix { position in
                !table.columns[position].isOptional || position == present
            }
            for prefix in prefixes {
                for after in 0...bounded.count {
                    for through in 0...bounded.count {
                        for descending in [false, true] {
                            scans.append(
                                Scan(
                                    index: index, prefix: prefix,
                                    after: bound(table, bounded.prefix(after)),
                                    through: bound(table, bounded.prefix(through)),
                                    descending: descending, limit: 10))
                        }
                    }
                }
            }
        }
        return scans
    }

    private func bound(_ table: Table, _ positions: some Sequence<Int>) -> [ColumnValue]? {
        let values = positions.map { value(table.columns[$0]) }
        return values.isEmpty ? nil : values
    }

    private func value(_ column: Column) -> ColumnValue {
        switch column.type {
        case .integer: .integer(1)
        case .text: .text("a")
        case .blob: .blob([1])
        }
    }

    private func nullable(_ column: Column) -> ColumnValue {
        column.isOptional ? .null : value(column)
    }

    @Test("row, put and delete find their row by the key's index")
    func byKey() throws {
        try withFolder { folder throws in
            let connection = try Connection(
                path: "\(folder)/plan.db", mode: .writer, busyTimeout: 0)
            defer { connection.close() }
            for table in Schema.tables {
                for (_, sql) in TableSQL(table: table).schema { try connection.execute(sql) }
                for sql in [TableSQL(table: table).row, TableSQL(table: table).delete] {
                    let plan = try connection.texts("EXPLAIN QUERY PLAN \(sql)").map { $0[3] }
                    #expect(plan.count == 1)
                    #expect(plan.first?.hasPrefix("SEARCH \(table.name) USING ") == true)
                    #expect(plan.first?.contains("INDEX \(table.name)_key (") == true)
                }
                _ = try connection.prepare(TableSQL(table: table).put)
            }
        }
    }
}
