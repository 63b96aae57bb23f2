import Model

/// The SQL of one table for PostgreSQL, made from its data. Only names come from the data, checked
/// by `Table.problem()` and quoted; every value is bound.
///
/// A text column is a `bytea` of its UTF-8: PostgreSQL's own type holds no U+0000, and bytes
/// compare as the contract says, whatever the database's collation.
struct PostgresSQL {
    let table: Table

    private func name(_ position: Int) -> String { "\"\(table.columns[position].name)\"" }
    private func names(_ positions: some Sequence<Int>) -> String {
        positions.map(name).joined(separator: ", ")
    }
    private static func places(_ range: Range<Int>) -> String {
        range.map { "$\($0 + 1)" }.joined(separator: ", ")
    }
    private var quoted: String { "\"\(table.name)\"" }

    // MARK: Schema

    /// The statements that make the table and its indexes.
    var create: [String] {
        let columns = table.columns.map { column in
            "\"\(column.name)\" \(Self.type(column.type))\(column.isOptional ? "" : " NOT NULL")"
        }
        let key = "CONSTRAINT \"\(table.name)_key\" PRIMARY KEY (\(names(0..<table.keyCount)))"
        return ["CREATE TABLE \(quoted) (\((columns + [key]).joined(separator: ", ")))"]
            + table.indexes.map(create)
    }

    func create(_ index: TableIndex) -> String {
        let terms =
            [index.presentColumn.map { "\(name($0)) IS NOT NULL" }]
            + [index.absentColumn.map { "\(name($0)) IS NULL" }]
        let held = terms.compactMap { $0 }.joined(separator: " AND ")
        let present = held.isEmpty ? "" : " WHERE \(held)"
        guard !index.isUnique else {
            return "CREATE UNIQUE INDEX \"\(index.name)\" ON \(quoted) "
                + "(\(names(index.columns)))\(present)"
        }
        let order = sorted(table.order(of: index.name), descending: false)
        return "CREATE INDEX \"\(index.name)\" ON \(quoted) (\(order))\(present)"
    }

    func add(_ column: Column) -> String {
        "ALTER TABLE \(quoted) ADD COLUMN \"\(column.name)\" \(Self.type(column.type))"
    }

    /// Each column as `information_schema.columns` notes it: name, type, whether it may be null.
    var columnNotes: [String] {
        table.columns.map { "\($0.name) \(Self.type($0.type)) \($0.isOptional ? "YES" : "NO")" }
    }

    private static func type(_ type: ColumnType) -> String {
        switch type {
        case .integer: "bigint"
        case .text, .blob: "bytea"
        }
    }

    /// Null comes before every value, as the contract says.
    private func sorted(_ order: [Int], descending: Bool) -> String {
        order.map { position in
            let direction = descending ? " DESC" : ""
            guard table.columns[position].isOptional else { return name(position) + direction }
            return name(position) + direction + (descending ? " NULLS LAST" : " NULLS FIRST")
        }.joined(separator: ", ")
    }

    // MARK: Rows

    private func keyIsEqual(from place: Int) -> String {
        (0..<table.keyCount).map { "\(name($0)) = $\(place + $0 + 1)" }
            .joined(separator: " AND ")
    }

    /// Places: the row's columns.
    var put: String { insert + orUpdate }

    /// Places: the row's columns.
    var insert: String {
        "INSERT INTO \(quoted) (\(names(table.columns.indices))) "
            + "VALUES (\(Self.places(table.columns.indices)))"
    }

    /// Places: of each column the array of its values.
    var putMany: String { insertMany + orUpdate }

    /// Places: of each column the array of its values.
    var insertMany: String {
        "INSERT INTO \(quoted) (\(names(table.columns.indices))) "
            + "SELECT * FROM \(arrays(table.columns.indices))"
    }

    private var orUpdate: String {
        let values = table.columns.indices[table.keyCount...]
        let update = values.map { "\(name($0)) = excluded.\(name($0))" }.joined(separator: ", ")
        return " ON CONFLICT (\(names(0..<table.keyCount))) "
            + (values.isEmpty ? "DO NOTHING" : "DO UPDATE SET \(update)")
    }

    private func arrays(_ positions: Range<Int>) -> String {
        let places = positions.enumerated().map { place, position in
            "$\(place + 1)::\(Self.type(table.columns[position].type))[]"
        }
        return "unnest(\(places.joined(separator: ", ")))"
    }

    /// Places: these columns, then the key's. Where there is no such row, the statement fails with
    /// a division by zero: what comes behind it, COMMIT among it, is not carried out.
    func update(_ columns: [Int]) -> String {
        let set = columns.enumerated().map { "\(name($0.element)) = $\($0.offset + 1)" }
            .joined(separator: ", ")
        return "WITH changed AS (UPDATE \(quoted) SET \(set) "
            + "WHERE \(keyIsEqual(from: columns.count)) RETURNING 1) "
            + "SELECT 1 / count(*) FROM changed"
    }

    /// Places: the key's columns.
    var delete: String { "DELETE FROM \(quoted) WHERE \(keyIsEqual(from: 0))" }

    /// Places: the key's columns.
    func row(_ lock: RowLock) -> String {
        "SELECT \(names(table.columns.indices)) FROM \(quoted) WHERE \(keyIsEqual(from: 0))"
            + Self.clause(lock)
    }

    /// Those rows that there are, each behind the number of its key from 1 on. Keys are looked up,
    /// and rows locked, in their order: a query for each key cannot become part of a plan that
    /// reads the table first, whatever the planner takes for its size.
    ///
    /// Places: of each column of the key the array of its values.
    func rows(_ lock: RowLock) -> String {
        let keys = (0..<table.keyCount)
        let wanted = keys.map { "k\($0)" }.joined(separator: ", ")
        let equal = keys.map { "\(name($0)) = keys.k\($0)" }.joined(separator: " AND ")
        return "SELECT keys.number, found.* "
            + "FROM \(arrays(keys)) WITH ORDINALITY AS keys(\(wanted), number) "
            + "CROSS JOIN LATERAL (SELECT \(names(table.columns.indices)) FROM \(quoted) "
            + "WHERE \(equal) LIMIT 1\(Self.clause(lock))) AS found"
    }

    /// Places: the prefix's values that are not null, `after`, `through`, the limit.
    func scan(_ scan: Scan) -> String {
        let index = table.indexes.first { $0.name == scan.index }
        let order = table.order(of: scan.index)
        var places = 0
        func place() -> String {
            places += 1
            return "$\(places)"
        }
        var terms = zip(order, scan.prefix).map { position, value in
            value == .null ? "\(name(position)) IS NULL" : "\(name(position)) = \(place())"
        }
        let rest = order[scan.prefix.count...]
        for (bound, comparison) in [(scan.after, ">"), (scan.through, "<=")] {
            guard let bound else { continue }
            let values = bound.map { _ in place() }.joined(separator: ", ")
            terms.append("(\(names(rest.prefix(bound.count)))) \(comparison) (\(values))")
        }
        if let present = index?.presentColumn { terms.append("\(name(present)) IS NOT NULL") }
        return "SELECT \(names(table.columns.indices)) FROM \(quoted) "
            + (terms.isEmpty ? "" : "WHERE \(terms.joined(separator: " AND ")) ")
            + "ORDER BY \(sorted(order, descending: scan.descending)) LIMIT \(place())"
            + Self.clause(scan.lock)
    }

    /// The values for the places of `scan`.
    static func values(of scan: Scan) -> [ColumnValue] {
        scan.prefix.filter { $0 != .null } + (scan.after ?? []) + (scan.through ?? [])
            + [.integer(Int64(scan.limit))]
    }

    private static func clause(_ lock: RowLock) -> String {
        switch lock {
        case .none: ""
        case .wait: " FOR UPDATE"
        case .skip: " FOR UPDATE SKIP LOCKED"
        case .share: " FOR SHARE"
        }
    }
}
