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
    ///
    /// The key comes last: of indexes that seem to cost the same the planner takes the newest, and
    /// of a table that it has no statistics of many seem to. A row is found by its key then, and
    /// not among all rows of the app by an index that begins with the app as well.
    var create: [String] {
        let columns = table.columns.map { column in
            "\"\(column.name)\" \(Self.type(column.type))\(column.isOptional ? "" : " NOT NULL")"
        }
        return ["CREATE TABLE \(quoted) (\(columns.joined(separator: ", ")))"]
            + table.indexes.map(create)
            + [
                "ALTER TABLE \(quoted) ADD CONSTRAINT \"\(table.name)_key\" "
                    + "PRIMARY KEY (\(names(0..<table.keyCount)))"
            ]
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
            + "SELECT * FROM \(arrays(Array(table.columns.indices)))"
    }

    private var orUpdate: String {
        let values = table.columns.indices[table.keyCount...]
        let update = values.map { "\(name($0)) = excluded.\(name($0))" }.joined(separator: ", ")
        return " ON CONFLICT (\(names(0..<table.keyCount))) "
            + (values.isEmpty ? "DO NOTHING" : "DO UPDATE SET \(update)")
    }

    /// - Parameter more: arrays of numbers behind those of the columns.
    private func arrays(_ positions: [Int], numbers more: Int = 0) -> String {
        let types =
            positions.map { Self.type(table.columns[$0].type) }
            + Array(repeating: Self.type(.integer), count: more)
        let places = types.enumerated().map { "$\($0.offset + 1)::\($0.element)[]" }
        return "unnest(\(places.joined(separator: ", ")))"
    }

    /// The names by which the elements of arrays go.
    private static func elements(_ count: Int) -> [String] { (0..<count).map { "e\($0)" } }

    /// Places: these columns, then the key's. Where there is no such row, the statement fails with
    /// a division by zero: what comes behind it, COMMIT among it, is not carried out.
    func update(_ columns: [Int]) -> String {
        let set = columns.enumerated().map { "\(name($0.element)) = $\($0.offset + 1)" }
            .joined(separator: ", ")
        return "WITH changed AS (UPDATE \(quoted) SET \(set) "
            + "WHERE \(keyIsEqual(from: columns.count)) RETURNING 1) "
            + "SELECT 1 / count(*) FROM changed"
    }

    /// The same of many rows, of which none may be missing. The rows are found one by one, by their
    /// keys: what may be limited to any number the planner takes for very few.
    ///
    /// Places: of each of these columns the array of its values, then of each of the key's; how
    /// many there are.
    func updateMany(_ columns: [Int]) -> String {
        let set = columns.enumerated().map { "\(name($0.element)) = e.e\($0.offset)" }
            .joined(separator: ", ")
        let places = columns + Array(0..<table.keyCount)
        return "WITH changed AS (UPDATE \(quoted) AS t SET \(set) FROM \(listed(places)) "
            + "WHERE \(keyIsElement(from: columns.count)) RETURNING 1) "
            + "SELECT 1 / (CASE count(*) WHEN $\(places.count + 1)::bigint THEN 1 ELSE 0 END) "
            + "FROM changed"
    }

    /// Places: of each of the key's columns the array of its values; how many there are.
    var deleteMany: String {
        "DELETE FROM \(quoted) AS t USING \(listed(Array(0..<table.keyCount))) "
            + "WHERE \(keyIsElement(from: 0))"
    }

    private func listed(_ positions: [Int]) -> String {
        let elements = Self.elements(positions.count).joined(separator: ", ")
        return "(SELECT * FROM \(arrays(positions)) AS all_e(\(elements)) "
            + "LIMIT $\(positions.count + 1)::bigint) AS e"
    }

    private func keyIsElement(from place: Int) -> String {
        (0..<table.keyCount).map { "t.\(name($0)) = e.e\(place + $0)" }
            .joined(separator: " AND ")
    }

    /// Places: the key's columns.
    var delete: String { "DELETE FROM \(quoted) WHERE \(keyIsEqual(from: 0))" }

    /// Places: the key's columns.
    func row(_ lock: RowLock) -> String {
        "SELECT \(names(table.columns.indices)) FROM \(quoted) WHERE \(keyIsEqual(from: 0))"
            + Self.clause(lock)
    }

    /// Those rows that there are, each with the number of its key from 1 on behind its columns.
    /// Keys are looked up, and rows locked, in their order: a query for each key cannot become part
    /// of a plan that reads the table first, whatever the planner takes for its size.
    ///
    /// Places: of each column of the key the array of its values.
    ///
    /// - Parameter skips: rows are left out that another transaction holds.
    func rows(_ lock: RowLock, skipsHeld skips: Bool = false) -> String {
        let keys = Array(0..<table.keyCount)
        let equal = keys.map { "\(name($0)) = e.e\($0)" }.joined(separator: " AND ")
        return "SELECT found.*, e.number FROM \(arrays(keys)) WITH ORDINALITY "
            + "AS e(\(Self.elements(keys.count).joined(separator: ", ")), number) "
            + "CROSS JOIN LATERAL (SELECT \(names(table.columns.indices)) FROM \(quoted) "
            + "WHERE \(equal) LIMIT 1\(Self.clause(lock))\(skips ? " SKIP LOCKED" : "")) AS found"
    }

    /// The rows of many scans that have `scan`'s shape, each row with the number of its scan from
    /// 1 on behind its columns. As with `rows` each scan is a query of its own, so that its rows
    /// come in its order.
    ///
    /// Places: of each column that has a value the array of its values, in the order of `values`;
    /// the array of the limits.
    func scans(_ scan: Scan) -> String {
        let columns = columns(of: scan)
        var next = 0
        let one = self.scan(scan) {
            next += 1
            return "e.e\(next - 1)"
        }
        let elements = Self.elements(columns.count + 1).joined(separator: ", ")
        return "SELECT found.*, e.number FROM \(arrays(columns, numbers: 1)) WITH ORDINALITY "
            + "AS e(\(elements), number) CROSS JOIN LATERAL (\(one)) AS found"
    }

    /// The columns whose values are those of the places of `scan`, but for the limit.
    func columns(of scan: Scan) -> [Int] {
        let order = table.order(of: scan.index)
        let equal = zip(order, scan.prefix).compactMap { $1 == .null ? nil : $0 }
        let rest = order[scan.prefix.count...]
        return equal + rest.prefix(scan.after?.count ?? 0) + rest.prefix(scan.through?.count ?? 0)
    }

    /// Places: the prefix's values that are not null, `after`, `through`, the limit.
    func scan(_ scan: Scan) -> String {
        var places = 0
        return self.scan(scan) {
            places += 1
            return "$\(places)"
        }
    }

    /// - Parameter place: what stands for the next value.
    private func scan(_ scan: Scan, _ place: () -> String) -> String {
        let index = table.indexes.first { $0.name == scan.index }
        let order = table.order(of: scan.index)
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
