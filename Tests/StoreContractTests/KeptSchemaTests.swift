import Feed
import Foundation
import Model
import Testing

@testable import SQLiteStore
@testable import SyncClient

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

    @Test("the kept file has the first schema", arguments: Kept.allCases)
    func schema(_ kept: Kept) throws {
        let wanted = try kept.text("schema").split(separator: "\n").filter {
            $0.hasPrefix("CREATE ")
        }
        try withFolder { folder throws in
            // SQLite leaves files of its own beside one that it opens.
            let copy = "\(folder)/store.db"
            try FileManager.default.copyItem(atPath: kept.file.path, toPath: copy)
            #expect(try Self.schema(of: copy) == Set(wanted.map(String.init)))
        }
    }

    @Test("a file of the first schema comes to have that of a new file", arguments: Kept.allCases)
    func migrated(_ kept: Kept) throws {
        try withFolder { folder throws in
            let (old, new) = ("\(folder)/old.db", "\(folder)/new.db")
            try FileManager.default.copyItem(atPath: kept.file.path, toPath: old)
            for path in [old, new] {
                try SQLiteStore(path: path, tables: kept.records.map { $0.table }).close()
            }
            #expect(try Self.schema(of: old) == Self.schema(of: new))
            let steps = try [old, new].map { path in
                let connection = try Connection(path: path, mode: .reader, busyTimeout: 0)
                defer { connection.close() }
                return try connection.texts("SELECT number, name FROM schema_migration")
            }
            #expect(steps[0] == steps[1])
        }
    }

    /// Each statement that makes a table or an index.
    private static func schema(of path: String) throws -> Set<String> {
        let connection = try Connection(path: path, mode: .reader, busyTimeout: 0)
        defer { connection.close() }
        let rows = try connection.texts(
            "SELECT sql FROM sqlite_schema WHERE tbl_name <> 'schema_migration'")
        return Set(rows.map { $0[0] })
    }

    /// What old rows get in later columns, by row; null in others.
    private static let later = [
        "user.blocks_nobody": ["1", "1"],
        "participant.unread": ["0", "0"],
        "participant.muted_until": ["0", "0"],
        "participant.read_through": ["0", "0"],
        "participant.presence": ["null", "1"],
        "entry.named": ["1", "null"],
        "entry.to_read": ["null", "0"],
    ]

    /// Tables that are no more.
    private static let gone: Set<String> = ["unread"]

    @Test("what decides about a message comes to the memberships of an old file")
    func participants() throws {
        try withFolder { folder throws in
            let path = "\(folder)/store.db"
            try FileManager.default.copyItem(atPath: Kept.server.file.path, toPath: path)
            let connection = try Connection(path: path, mode: .writer, busyTimeout: 0)
            let key = "SELECT \"app\", \"user\", \"conversation\""
            let (left, present) = ("\"left_revision\" IS NOT NULL", "\"left_revision\" IS NULL")
            for sql in [
                "INSERT INTO unread \(key), 7, 41 FROM participant WHERE \(present)",
                "INSERT INTO unread \(key), 0, 0 FROM participant WHERE \(left)",
                "INSERT INTO conversation_settings \(key), 1, 41, 2 FROM participant "
                    + "WHERE \(present)",
                "INSERT INTO conversation_settings \(key), 1, NULL, 2 FROM participant "
                    + "WHERE \(left)",
                "INSERT INTO read_mark \(key), 5, x'', 1 FROM participant WHERE \(present)",
                "INSERT INTO read_mark \(key), 5, zeroblob(16), 1 FROM participant "
                    + "WHERE \(left)",
            ] { try connection.execute(sql) }
            connection.close()
            let store = try SQLiteStore(path: path, tables: Schema.tables)
            defer { store.close() }
            let rows = try store.rows(ParticipantRecord.table)
            let members = try rows.map { try ParticipantRecord(row: $0) }
            #expect(members.map(\.unread) == [0, 7])
            #expect(members.map(\.mutedUntil.milliseconds) == [.max >> 1, 41])
            // What is read beside ranges is not known without them.
            #expect(members.map(\.readThrough) == [.max >> 1, 5])
            for (member, row) in zip(members, rows) { #expect(exact([member.row]) == exact([row])) }
            let (app, conversation) = (members[1].app, members[1].conversation)
            #expect(
                try store.rows(
                    ParticipantRecord.table,
                    Scan(
                        index: "participant_by_presence",
                        prefix: [.app(app), .identifier(conversation)], limit: 9)) == [rows[1]])
            #expect(
                try store.rows(
                    ParticipantRecord.table,
                    Scan(
                        index: "participant_by_unread",
                        prefix: [.app(app), .user(members[1].user)], limit: 9)) == [rows[1]])
        }
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
            let first = kept.records.filter { $0.table.since == 1 }
            #expect(
                Set(wanted.keys).subtracting(Self.gone) == Set(first.map { $0.table.name }))
            for record in kept.records where record.table.since > 1 {
                #expect(try store.rows(record.table).isEmpty)
            }
            for record in first {
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
            for (number, (row, (_, wanted))) in zip(rows, wanted).enumerated() {
                for (column, value) in zip(table.columns, row) {
                    let later = Self.later["\(table.name).\(column.name)"]?[number]
                    let expected = wanted[column.name] ?? later ?? "null"
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
