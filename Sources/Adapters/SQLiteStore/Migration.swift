import Failpoints
public import Model

/// One step from an older schema to a newer. Forward only: a step that has been released is
/// never changed or removed, and a database of a newer schema than the program knows is refused.
public struct Migration: Sendable {
    public enum Change: Sendable {
        /// Creates these tables with their indexes, from their data.
        case create([Table])
        /// Creates one index of a table that exists.
        case createIndex(Table, String)
        /// Adds columns at the table's end: each optional, because old rows have no value.
        case addColumns(Table, [Column])
        /// Any other statement, without values from outside.
        case sql(String)
    }

    /// 1 for the first, without gaps.
    public let number: Int
    /// What it does, in a few words; kept in the database.
    public let name: String
    public let changes: [Change]

    public init(_ number: Int, _ name: String, _ changes: [Change]) {
        self.number = number
        self.name = name
        self.changes = changes
    }

    /// The history that the tables' data tell: all of them as they were first, then each
    /// schema's new columns, its steps, and its new indexes.
    static func history(of tables: [Table]) -> [Migration] {
        let newest = tables.map(\.schema).max() ?? 1
        var history = [
            Migration(
                1, "create the tables",
                [.create(tables.filter { $0.since == 1 }.map { $0.asOf(schema: 1) })])
        ]
        for number in 1..<max(newest, 1) {
            let made = tables.filter { $0.since == number + 1 }
            let kept = tables.filter { $0.since <= number }
            let added = kept.map { table in
                (table, table.columns.filter { $0.since == number + 1 })
            }.filter { !$0.1.isEmpty }
            let indexes = kept.flatMap { table in
                let old = Set(table.asOf(schema: number).indexes.map(\.name))
                return table.asOf(schema: number + 1).indexes.filter { !old.contains($0.name) }
                    .map { Change.createIndex(table, $0.name) }
            }
            let steps = tables.flatMap(\.steps).filter { $0.schema == number + 1 }
            let names =
                made.map(\.name)
                + added.flatMap { table, columns in
                    columns.map { "\(table.name).\($0.name)" }
                }
            history.append(
                Migration(
                    number + 1,
                    names.isEmpty
                        ? "change what is stored" : "add " + names.joined(separator: ", "),
                    [.create(made.map { $0.asOf(schema: number + 1) })]
                        + added.map { .addColumns($0, $1) } + steps.map { .sql($0.sql) } + indexes))
        }
        return history
    }
}

/// Brings a database to the newest schema: every migration it has not had, each in a
/// transaction of its own, which also writes its row into `schema_migration`.
struct Migrator {
    /// Why a database of a newer schema is not opened.
    static let newer = "a newer program has used it"

    let connection: Connection
    let migrations: [Migration]
    /// What a new database is made of at once, instead of by one migration after the other.
    private let tables: [Table]?

    /// - Parameter migrations: `nil`: those that the tables tell.
    init(_ connection: Connection, _ tables: [Table], _ migrations: [Migration]? = nil) {
        let history = migrations ?? Migration.history(of: tables)
        precondition(
            history.map(\.number) == Array(1..<history.count + 1),
            "migrations are numbered from 1 without gaps")
        self.connection = connection
        self.migrations = history
        self.tables = migrations == nil ? tables : nil
    }

    /// - Parameter before: is told what is done before it is done; if it throws, nothing is.
    func run(
        now: Timestamp, before: (StoreUpgrade) throws(StoreError) -> Void = { _ in }
    ) throws(StoreError) {
        let done = try applied()
        try announce(done, before)
        if done == 0, let tables, !migrations.isEmpty {
            return try apply([.create(tables)], to: migrations, now: now)
        }
        if done > migrations.count {
            throw .unavailable(
                "\(connection.path) has schema \(done), this program knows \(migrations.count): "
                    + "\(Self.newer); there is no way back but a backup")
        }
        for migration in migrations[done...] {
            try apply(migration.changes, to: [migration], now: now)
        }
    }

    /// Tells what `run` would do, and does nothing.
    func announce(_ before: (StoreUpgrade) throws(StoreError) -> Void) throws(StoreError) {
        try announce(try applied(), before)
    }

    private func announce(
        _ done: Int, _ before: (StoreUpgrade) throws(StoreError) -> Void
    ) throws(StoreError) {
        guard done < migrations.count else { return }
        try before(done == 0 ? .create : .migrate(from: done, to: migrations.count))
    }

    /// The schema of the database, which is this program's or one that it can bring up to date;
    /// nothing is changed.
    func knownVersion() throws(StoreError) -> Int {
        let done = try applied()
        guard done > 0 else { throw .unavailable("\(connection.path) is empty: it has no tables") }
        if done > migrations.count {
            throw .unavailable(
                "\(connection.path) has schema \(done), this program knows \(migrations.count): "
                    + "\(Self.newer): use that one")
        }
        return done
    }

    /// The number of the last migration applied; 0 for a new database.
    private func applied() throws(StoreError) -> Int {
        let tables = try connection.texts(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        guard tables.contains(["schema_migration"]) else {
            if tables.isEmpty { return 0 }
            throw .unavailable("\(connection.path) is a database of something else")
        }
        let rows = try connection.texts("SELECT number, name FROM schema_migration ORDER BY number")
        for (position, row) in rows.enumerated() {
            if row[0] != String(position + 1) {
                throw .unavailable("\(connection.path): schema_migration has a gap at \(row[0])")
            }
            if position < migrations.count && row[1] != migrations[position].name {
                throw .unavailable(
                    "\(connection.path): migration \(row[0]) was \"\(row[1])\", not "
                        + "\"\(migrations[position].name)\": of another program or version")
            }
        }
        return rows.count
    }

    /// Brings the database to the schema of the last of these migrations.
    private func apply(
        _ changes: [Migration.Change], to migrations: [Migration], now: Timestamp
    ) throws(StoreError) {
        try connection.execute("BEGIN IMMEDIATE")
        do {
            if migrations.first?.number == 1 {
                try connection.execute(
                    "CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, "
                        + "name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT")
            }
            for change in changes {
                for sql in statements(of: change) { try connection.execute(sql) }
            }
            let insert = try connection.prepare("INSERT INTO schema_migration VALUES (?, ?, ?)")
            defer { connection.discard(insert) }
            for migration in migrations {
                try insert.run([
                    .integer(Int64(migration.number)), .text(migration.name), .timestamp(now),
                ])
            }
            Failpoint.hit(.migrationApplied)
            try connection.execute("COMMIT")
            Failpoint.hit(.migrationCommitted)
        } catch {
            if connection.isInTransaction { try connection.execute("ROLLBACK") }
            throw error
        }
    }

    private func statements(of change: Migration.Change) -> [String] {
        switch change {
        case .create(let tables):
            return tables.flatMap { TableSQL(table: $0).schema.map(\.sql) }
        case .createIndex(let table, let name):
            return TableSQL(table: table).schema.filter { $0.name == name }.map(\.sql)
        case .addColumns(let table, let columns):
            precondition(columns.allSatisfy(\.isOptional), "a new column is optional")
            return columns.map { TableSQL(table: table).add($0) }
        case .sql(let sql):
            return [sql]
        }
    }

    /// Checks that the database holds what the tables' data say, so that a change of the data
    /// without a migration shows at the start and not at some later statement.
    func check(_ tables: [Table]) throws(StoreError) {
        let rows = try connection.texts("SELECT name, sql FROM sqlite_schema")
        let found = Set(rows.map { $0[0] })
        for table in tables {
            for (name, _) in TableSQL(table: table).schema where !found.contains(name) {
                throw .unavailable("\(connection.path) has no \(name): a migration is missing")
            }
            let columns = try connection.texts("PRAGMA table_info(\"\(table.name)\")")
            let names = columns.map { "\($0[1]) \($0[2]) \($0[3])" }
            let wanted = TableSQL(table: table).columnNotes
            if names != wanted {
                throw .unavailable(
                    "\(connection.path): \(table.name) has columns \(names), the program expects "
                        + "\(wanted): a migration is missing")
            }
        }
    }
}
