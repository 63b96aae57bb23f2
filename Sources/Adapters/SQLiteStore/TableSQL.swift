import Model

/// The SQL of one table, made from its data. Only names come from the data, checked by
/// `Table.problem()` and quoted; every value is bound.
///
/// A rowid table with a unique index on the key: measured four times faster for batches than a
/// table clustered by its key. STRICT, so that the file itself refuses what the data forbids.
struct TableSQL {
    let table: Table

    private func name(_ position: Int) -> String { "\"\(table.columns[position].name)\"" }
    private func names(_ positions: some Sequence<Int>) -> String {
        positions.map(name).joined(separator: ", ")
    }
    private static func places(_ count: Int) -> String {
        Array(repeating: "?", count: count).joined(separator: ", ")
    }
    private var keyIndex: String { "\"\(table.name)_key\"" }

    // MARK: Schema

    /// The table and its indexes; each name as `sqlite_schema` has it, with its statement.
    var schema: [(name: String, sql: String)] {
        let columns = table.columns.map { column in
            "\"\(column.name)\" \(Self.type(column.type))\(column.isOptional ? "" : " NOT NULL")"
        }
        let key = names(0..<table.keyCount)
        let create = "CREATE TABLE \"\(table.name)\" (\(columns.joined(separator: ", "))) STRICT"
        return [
            (table.name, create),
            (
                "\(table.name)_key",
                "CREATE UNIQUE INDEX \(keyIndex) ON \"\(table.name)\" (\(key))"
            ),
        ] + table.indexes.map { ($0.name, sql(of: $0)) }
    }

    /// Each column as `PRAGMA table_info` notes it: name, type, whether it is never null.
    var columnNotes: [String] {
        table.columns.map { "\($0.name) \(Self.type($0.type)) \($0.isOptional ? 0 : 1)" }
    }

    func add(_ column: Column) -> String {
        "ALTER TABLE \"\(table.name)\" ADD COLUMN \"\(column.name)\" \(Self.type(column.type))"
    }

    private func sql(of index: TableIndex) -> String {
        let terms =
            [index.presentColumn.map { "\(name($0)) IS NOT NULL" }]
            + [index.absentColumn.map { "\(name($0)) IS NULL" }]
        let held = terms.compactMap { $0 }.joined(separator: " AND ")
        let present = held.isEmpty ? "" : " WHERE \(held)"
        guard !index.isUnique else {
            return "CREATE UNIQUE INDEX \"\(index.name)\" ON \"\(table.name)\" "
                + "(\(names(index.columns)))\(present)"
        }
        let order = names(table.order(of: index.name))
        return "CREATE INDEX \"\(index.name)\" ON \"\(table.name)\" (\(order))\(present)"
    }

    private static func type(_ type: ColumnType) -> String {
        switch type {
        case .integer: "INTEGER"
        case .text: "TEXT"
        case .blob: "BLOB"
        }
    }

    // MARK: Rows

    private var keyIsEqual: String {
        (0..<table.keyCount).map { "\(name($0)) = ?" }.joined(separator: " AND ")
    }

    /// Places: the row's columns.
    var put: String {
        let values = table.columns.indices[table.keyCount...]
        let update = values.map { "\(name($0)) = excluded.\(name($0))" }.joined(separator: ", ")
        return "INSERT INTO \"\(table.name)\" (\(names(table.columns.indices))) "
            + "VALUES (\(Self.places(table.columns.count))) "
            + "ON CONFLICT (\(names(0..<table.keyCount))) "
            + (values.isEmpty ? "DO NOTHING" : "DO UPDATE SET \(update)")
    }

    /// Places: the row's columns.
    var insert: String {
        "INSERT INTO \"\(table.name)\" (\(names(table.columns.indices))) "
            + "VALUES (\(Self.places(table.columns.count)))"
    }

    /// Places: these columns, then the key's. An index without any of them is left alone.
    func update(_ columns: [Int]) -> String {
        let set = columns.map { "\(name($0)) = ?" }.joined(separator: ", ")
        return "UPDATE \"\(table.name)\" INDEXED BY \(keyIndex) SET \(set) WHERE \(keyIsEqual)"
    }

    /// Places: the key's columns.
    var delete: String { "DELETE FROM \"\(table.name)\" WHERE \(keyIsEqual)" }

    /// Places: the key's columns.
    var row: String {
        "SELECT \(names(table.columns.indices)) FROM \"\(table.name)\" "
            + "INDEXED BY \(keyIndex) WHERE \(keyIsEqual)"
    }

    /// Places: the prefix's values that are not null, `after`, `through`, the limit.
    ///
    /// INDEXED BY makes a statement that cannot use its index an error and never a slow scan.
    func scan(_ shape: ScanShape) -> String {
        let index = table.indexes.first { $0.name == shape.index }
        let order = table.order(of: shape.index)
        var terms = zip(order, shape.prefixNulls).map { position, isNull in
            isNull ? "\(name(position)) IS NULL" : "\(name(position)) = ?"
        }
        let rest = order[shape.prefixNulls.count...]
        for (count, comparison) in [(shape.afterCount, ">"), (shape.throughCount, "<=")]
        where count > 0 {
            let bounded = rest.prefix(count)
            terms.append("(\(names(bounded))) \(comparison) (\(Self.places(count)))")
        }
        if let present = index?.presentColumn { terms.append("\(name(present)) IS NOT NULL") }
        let direction = shape.descending ? " DESC" : ""
        let sorted = order.map { name($0) + direction }.joined(separator: ", ")
        return "SELECT \(names(table.columns.indices)) FROM \"\(table.name)\" "
            + "INDEXED BY \(index.map { "\"\($0.name)\"" } ?? keyIndex) "
            + (terms.isEmpty ? "" : "WHERE \(terms.joined(separator: " AND ")) ")
            + "ORDER BY \(sorted) LIMIT ?"
    }
}

/// What makes two scans of a table the same statement.
struct ScanShape: Hashable {
    let index: String?
    /// For each value of the prefix, whether it is null.
    let prefixNulls: [Bool]
    let afterCount: Int
    let throughCount: Int
    let descending: Bool

    init(_ scan: Scan) {
        index = scan.index
        prefixNulls = scan.prefix.map { $0 == .null }
        afterCount = scan.after?.count ?? 0
        throughCount = scan.through?.count ?? 0
        descending = scan.descending
    }

    /// The prefix's columns whose value is bound, in the order of the table's columns.
    func equalColumns(of table: Table) -> [EqualColumn] {
        let order = table.order(of: index)
        let bound = prefixNulls.indices.filter { !prefixNulls[$0] }
        return bound.enumerated().map { EqualColumn(column: order[$0.element], value: $0.offset) }
            .sorted { $0.column < $1.column }
    }

    /// The values for the statement's places.
    static func values(of scan: Scan) -> [ColumnValue] {
        scan.prefix.filter { $0 != .null } + (scan.after ?? []) + (scan.through ?? [])
            + [.integer(Int64(scan.limit))]
    }
}
