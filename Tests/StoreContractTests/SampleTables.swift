import Model

/// Tables with every kind of column, key and index.
enum Sample {
    /// A key of two columns; an index of each shape.
    static let thing = Table(
        "thing",
        key: [Column("app", .text), Column("thing", .blob)],
        values: [
            Column("number", .integer), Column("note", .text, optional: true),
            Column("due", .integer, optional: true), Column("data", .blob, optional: true),
        ],
        indexes: [
            TableIndex("thing_by_number", on: "app", "number"),
            TableIndex("thing_by_due", on: "due", present: "due"),
            TableIndex("thing_by_note", on: "note"),
            TableIndex("thing_by_data", on: "data", "number", present: "data"),
            TableIndex("thing_due_by_number", on: "number", "app", present: "due"),
        ],
        retention: .until(column: "due", index: "thing_by_due"))

    /// Nothing but a key, and names that are words of SQL.
    static let order = Table(
        "order", key: [Column("group", .integer), Column("index", .text)], values: [])

    /// Has no place in the lock order of the tests.
    static let late = Table("late", key: [Column("late", .integer)], values: [])

    /// Values that no index holds.
    static let heap = Table(
        "heap", key: [Column("heap", .integer)], values: [Column("body", .blob)])

    static let tables = [thing, order, heap]

    /// Writes eight rows that no other of 256 rounds writes: some 70 KiB of journal, or less.
    static func fill(_ store: any Store, _ round: Int) throws(StoreError) {
        try store.write { transaction throws(StoreError) in
            for part in UInt8(0)..<8 {
                let id = [UInt8(truncatingIfNeeded: round), part]
                try transaction.put(thing, row("a", id, due: 1, data: data(round)))
            }
        }
    }

    static func data(_ round: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: 2000)
    }

    static func row(
        _ app: String, _ id: [UInt8], number: Int64 = 0, note: String? = nil, due: Int64? = nil,
        data: [UInt8]? = nil
    ) -> [ColumnValue] {
        [
            .text(app), .blob(id), .integer(number), note.map { .text($0) } ?? .null,
            due.map { .integer($0) } ?? .null, data.map { .blob($0) } ?? .null,
        ]
    }
}

extension Table {
    /// The indexes that are orders.
    var scanned: [TableIndex] { indexes.filter { !$0.isUnique } }
}
