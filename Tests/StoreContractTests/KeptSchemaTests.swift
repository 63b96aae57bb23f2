import Feed
import Foundation
import Model
import Testing

@testable import SQLiteStore
@testable import Sync

/// What stands in files that are out there. `Tests/schemas/1` is kept for ever: of the first
/// schema of the server and of the device, the SQL, a file with two rows in each table (of the
/// second all optional columns are null), and these rows as text. The program that wrote them
/// named every column by hand.
@Suite struct KeptSchemaTests {
    enum Kept: String, CaseIterable, CustomTestStringConvertible {
        case server
        case device

        var testDescription: String { rawValue }

        var records: [any Record.Type] {
            switch self {
            case .server: Schema.records
            case .device: LocalSchema.records
            }
        }

        private var root: URL {
            URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .deletingLastPathComponent().appendingPathComponent("schemas/1")
        }

        var file: URL { root.appendingPathComponent("\(rawValue).db") }

        func text(_ kind: String) throws -> String {
            try String(
                contentsOf: root.appendingPathComponent("\(rawValue).\(kind)"), encoding: .utf8)
        }

        /// Each row as the table's name and its columns by name.
        func rows() throws -> [(table: String, columns: [String: String])] {
            try text("rows").split(separator: "\n\n").map { block in
                let lines = block.split(separator: "\n").map { $0.split(separator: " ") }
                let columns = lines.dropFirst().map { (String($0[0]), String($0[1])) }
                return (String(lines[0][1]), Dictionary(uniqueKeysWithValues: columns))
            }
        }
    }

    @Test("the first schema is what it was", arguments: Kept.allCases)
    func schema(_ kept: Kept) throws {
        var text = ""
        for record in kept.records {
            let table = record.table.asOf(schema: 1)
            text += "# \(table.name)\n"
            for (_, sql) in TableSQL(table: table).schema { text += sql + "\n" }
            if case .until(let column, let index) = table.retention {
                text += "kept until \(column) by \(index)\n"
            }
            text += "\n"
        }
        let wanted = try kept.text("schema").split(separator: "\n")
        for (found, wanted) in zip(text.split(separator: "\n"), wanted) {
            #expect(found == wanted)
        }
        #expect(text == (try kept.text("schema")))
    }

    @Test(
        "a file of the first schema opens, and every record reads and writes its rows",
        arguments: Kept.allCases)
    func file(_ kept: Kept) throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            try FileManager.default.copyItem(atPath: kept.file.path, toPath: path)
            let store = try SQLiteStore(path: path, tables: kept.records.map { $0.table })
            defer { store.close() }
            let wanted = Dictionary(grouping: try kept.rows(), by: \.table)
            #expect(wanted.count == kept.records.count)
            for record in kept.records {
                try compare(record, in: store, with: wanted[record.table.name] ?? [])
            }
        }
    }

    private func compare<R: Record>(
        _ type: R.Type, in store: SQLiteStore,
        with wanted: [(table: String, columns: [String: String])]
    ) throws {
        let table = R.table
        #expect(wanted.count == 2, "\(table.name)")
        for _ in 0..<2 {
            let rows = try store.rows(table)
            #expect(rows.count == 2, "\(table.name)")
            for (row, (_, wanted)) in zip(rows, wanted) {
                for (column, value) in zip(table.columns, row) {
                    // What came later is null in an old row.
                    let expected = wanted[column.name] ?? "null"
                    #expect(exact([[value]])[0] == expected, "\(table.name).\(column.name)")
                }
                let record = try R(row: row)
                #expect(exact([record.row]) == exact([row]), "\(table.name)")
                let key = record.rowKey
                #expect(exact([key]) == exact([Array(row[..<table.keyCount])]))
                // What is written over it is read in the second turn.
                try store.write { transaction throws(StoreError) in try transaction.put(record) }
            }
        }
    }
}
