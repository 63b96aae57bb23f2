import Feed
import Model
import Testing

/// The server's own tables and rules, on every engine. Rules that read and write through the
/// contract are run here over `engines`; each gets the server's schema and its lock order.
@Suite struct RuleContractTests {
    /// Runs `body` on an empty store of the server's schema.
    static func withServerStore<Result>(
        _ engine: EngineFactory, _ body: (any Store) throws -> Result
    ) throws -> Result {
        try engine.withStore(tables: Schema.tables, lockRanks: Schema.lockRanks, body)
    }

    @Test(
        "every table of the server can be made, written and read by each of its indexes",
        arguments: engines)
    func schema(_ engine: EngineFactory) throws {
        try Self.withServerStore(engine) { store throws in
            for table in Schema.tables {
                #expect(table.problem() == nil)
                let row = table.columns.map { column -> ColumnValue in
                    switch column.type {
                    case .integer: .integer(1)
                    case .text: .text("t")
                    case .blob: .blob([1])
                    }
                }
                try store.put(table, row)
                for index in [nil] + table.indexes.map(\.name) {
                    #expect(try store.rows(table, Scan(index: index, limit: 2)) == [row])
                }
            }
        }
    }

    @Test("a typed record comes back as it was put", arguments: engines)
    func record(_ engine: EngineFactory) throws {
        try Self.withServerStore(engine) { store throws in
            let record = MetaRecord(name: "epoch", number: 7, bytes: [0, 1, 0])
            try store.write { transaction throws(StoreError) in try transaction.put(record) }
            var found: MetaRecord?
            try store.read { snapshot throws(StoreError) in
                found = try snapshot.record(MetaRecord.self, [.text("epoch")])
            }
            #expect(found == record)
        }
    }
}
