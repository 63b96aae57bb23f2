import Model
import Testing

/// Faults of the calling code, which no engine lets pass: data that do not fit their table, and
/// stores and transactions used where they must not be.
@Suite struct CallerFaultTests {
    let thing = Sample.thing

    @Test("a row that does not fit is described")
    func rows() {
        #expect(thing.problem(row: Sample.row("a", [1])) == nil)
        #expect(thing.problem(row: Array(Sample.row("a", [1]).dropLast())) != nil)
        let changes: [(Int, ColumnValue)] = [
            (0, .null), (0, .blob([1])), (1, .text("a")), (2, .null), (2, .text("1")),
            (3, .integer(1)), (5, .text("")),
        ]
        for (position, value) in changes {
            var row = Sample.row("a", [1], note: "n", due: 1, data: [1])
            row[position] = value
            let problem = thing.problem(row: row)
            #expect(problem?.contains("thing.\(thing.columns[position].name)") == true)
        }
        #expect(thing.problem(key: [.text("a"), .blob([1])]) == nil)
        for key: [ColumnValue] in [[], [.text("a")], [.text("a"), .null], [.blob([]), .blob([])]] {
            #expect(thing.problem(key: key) != nil)
        }
    }

    @Test("a scan that does not fit is described")
    func scans() {
        let a = ColumnValue.text("a")
        let fitting = [
            Scan(limit: 1), Scan(index: "thing_by_due", through: [.integer(1)], limit: 1),
            Scan(index: "thing_by_note", prefix: [.null], after: [a], limit: 1),
        ]
        for scan in fitting { #expect(thing.problem(scan: scan) == nil) }
        let misfits = [
            Scan(index: "thing_by_nothing", limit: 1), Scan(prefix: [.integer(1)], limit: 1),
            Scan(prefix: [.null], limit: 1), Scan(prefix: [a, .blob([]), a], limit: 1),
            Scan(after: [], limit: 1), Scan(after: [.null], limit: 1),
            Scan(prefix: [a], through: [a], limit: 1),
            Scan(prefix: [a, .blob([])], after: [a], limit: 1),
            Scan(index: "thing_by_note", after: [a], limit: 1),
            Scan(index: "thing_by_due", after: [.null], limit: 1),
        ]
        for scan in misfits { #expect(thing.problem(scan: scan) != nil, "\(scan)") }
    }

    @Test("a table that cannot be is described")
    func tables() {
        for table in Sample.tables { #expect(table.problem() == nil) }
        let key = [Column("k", .integer)]
        let value = [Column("v", .integer, optional: true)]
        let misfits = [
            Table("Thing", key: key, values: []), Table("", key: key, values: []),
            Table("t; drop", key: key, values: []), Table("t", key: [], values: value),
            Table("t", key: value, values: []), Table("t", key: key, values: key),
            Table("t", key: key, values: value, indexes: [TableIndex("i", on: "w")]),
            Table("t", key: key, values: value, indexes: [TableIndex("i")]),
            Table("t", key: key, values: value, indexes: [TableIndex("i", on: "v", "v")]),
            Table("t", key: key, values: value, indexes: [TableIndex("i\"", on: "v")]),
            Table(
                "t", key: key, values: value,
                indexes: [TableIndex("i", on: "v", present: "w")]),
            Table("t", key: key, values: value, retention: .until(column: "v", index: "i")),
        ]
        for table in misfits { #expect(table.problem() != nil, "\(table.name)") }
    }

    @Test("every engine stops at a row that does not fit")
    func misfitStops() async throws {
        try await inFolder { folder in
            let memory = await #expect(
                processExitsWith: .failure, observing: [\.standardErrorContent]
            ) {
                [folder = folder as String] in
                let store = try EngineFactory.memory.make(tables: Sample.tables, in: folder)
                try store.put(Sample.order, [.text("1"), .text("")])
            }
            let sqlite = await #expect(
                processExitsWith: .failure, observing: [\.standardErrorContent]
            ) {
                [folder = folder as String] in
                let store = try EngineFactory.sqlite.make(tables: Sample.tables, in: folder)
                try store.put(Sample.order, [.text("1"), .text("")])
            }
            #expect(said(memory, "order.group"))
            #expect(said(sqlite, "order.group"))
        }
    }

    @Test("every engine stops at a table it does not have")
    func unknownTableStops() async throws {
        try await inFolder { folder in
            let memory = await #expect(
                processExitsWith: .failure, observing: [\.standardErrorContent]
            ) {
                [folder = folder as String] in
                let store = try EngineFactory.memory.make(tables: [Sample.thing], in: folder)
                _ = try store.rows(Sample.order)
            }
            let sqlite = await #expect(
                processExitsWith: .failure, observing: [\.standardErrorContent]
            ) {
                [folder = folder as String] in
                let store = try EngineFactory.sqlite.make(tables: [Sample.thing], in: folder)
                _ = try store.rows(Sample.order)
            }
            #expect(said(memory, "no table order"))
            #expect(said(sqlite, "no table order"))
        }
    }

    @Test("every engine stops at a write inside a write")
    func nestedWriteStops() async throws {
        try await inFolder { folder in
            let memory = await #expect(
                processExitsWith: .failure, observing: [\.standardErrorContent]
            ) {
                [folder = folder as String] in
                let store = try EngineFactory.memory.make(tables: Sample.tables, in: folder)
                try store.write { _ throws(StoreError) in try store.write { _ in } }
            }
            let sqlite = await #expect(
                processExitsWith: .failure, observing: [\.standardErrorContent]
            ) {
                [folder = folder as String] in
                let store = try EngineFactory.sqlite.make(tables: Sample.tables, in: folder)
                try store.write { _ throws(StoreError) in try store.write { _ in } }
            }
            #expect(said(memory, "inside a body"))
            #expect(said(sqlite, "inside a body"))
        }
    }
}

/// Whether a process that was stopped said `text` about it.
func said(_ result: ExitTest.Result?, _ text: String) -> Bool {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self).contains(text)
}
