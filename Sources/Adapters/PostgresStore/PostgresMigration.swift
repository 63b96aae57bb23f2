import Model

/// Brings the tables of a schema to what the program knows: all at once where there are none, else
/// each newer schema's columns, steps and indexes in a transaction of its own.
struct PostgresMigration {
    let connection: PostgresConnection
    let tables: [Table]
    let schema: String

    /// The oldest schema that ever was on PostgreSQL: before it there was only SQLite.
    static let oldest = 4

    private var newest: Int { max(tables.map(\.schema).max() ?? 1, Self.oldest) }

    /// On a connection that is used for nothing else: it waits for as long as it takes.
    ///
    /// - Parameter before: is told what is done before it is done.
    func bringUp(_ before: (StoreUpgrade) throws(StoreError) -> Void) throws(StoreError) {
        for limit in ["lock_timeout", "statement_timeout"] {
            try connection.run("SELECT set_config('\(limit)', '0', false)")
        }
        // One node at a time, whoever else starts; the lock ends with the connection.
        let key = PostgresTables([], schema: schema).hash(
            of: [], in: Table("schema_migration", key: [Column("number", .integer)], values: []))
        _ = try connection.rows(
            "SELECT 1::bigint FROM pg_advisory_lock($1)", [key],
            columns: [Column("held", .integer)])
        let done = try applied()
        try refuseNewer(done)
        if done < newest { try before(done == 0 ? .create : .migrate(from: done, to: newest)) }
        if done == 0 { try create() }
        for number in (done == 0 ? newest : done)..<newest { try bring(to: number + 1) }
        try keepSmall()
    }

    private func create() throws(StoreError) {
        let statements =
            [
                "CREATE SCHEMA IF NOT EXISTS \"\(schema)\"",
                "CREATE TABLE schema_migration (number bigint PRIMARY KEY, "
                    + "applied_at timestamptz NOT NULL DEFAULT now())",
                PostgresCommitMark.create,
            ] + tables.flatMap { PostgresSQL(table: $0).create }
        try carryOut(statements, number: newest)
    }

    /// Dead rows are cleared away when they are a fiftieth of a table, in place of PostgreSQL's
    /// fifth: of a table in which as much comes as goes a quarter would be air, and of its indexes
    /// nearly half (Deploy/README.md). What an operator has set stays. Nobody waits for it: it goes
    /// with reading and writing, and autovacuum steps aside.
    private func keepSmall() throws(StoreError) {
        let name = "autovacuum_vacuum_scale_factor"
        let rows = try connection.rows(
            "SELECT convert_to(c.relname, 'UTF8') FROM pg_class c JOIN pg_namespace n "
                + "ON n.oid = c.relnamespace WHERE n.nspname = current_schema() "
                + "AND c.relkind = 'r' AND pg_has_role(c.relowner, 'USAGE') "
                + "AND NOT coalesce(array_to_string(c.reloptions, ' ') LIKE '%\(name)=%', false)",
            columns: [Column("name", .text)])
        let unset = Set(rows.map { $0[0] })
        for table in tables where unset.contains(.text(table.name)) {
            try connection.run("ALTER TABLE \"\(table.name)\" SET (\(name) = 0.02)")
            try connection.synchronize()
        }
    }

    private func bring(to number: Int) throws(StoreError) {
        var statements: [String] = []
        for table in tables where table.since == number {
            statements += PostgresSQL(table: table.asOf(schema: number)).create
        }
        let kept = tables.filter { $0.since < number }
        // What others write meanwhile could be what a new index refuses.
        for table in kept where table.indexes.contains(where: { $0.isUnique && $0.since == number })
        {
            statements.append("LOCK TABLE \"\(table.name)\" IN SHARE ROW EXCLUSIVE MODE")
        }
        for table in kept {
            let sql = PostgresSQL(table: table)
            statements += table.columns.filter { $0.since == number }.map(sql.add)
        }
        statements += tables.flatMap(\.steps).filter { $0.schema == number }.map(\.sql)
        for table in kept {
            let old = Set(table.asOf(schema: number - 1).indexes.map(\.name))
            statements += table.asOf(schema: number).indexes.filter { !old.contains($0.name) }
                .map(PostgresSQL(table: table).create)
        }
        try carryOut(statements, number: number)
    }

    private func carryOut(_ statements: [String], number: Int) throws(StoreError) {
        do throws(StoreError) {
            try connection.run("BEGIN")
            for statement in statements {
                try connection.run(statement)
                try connection.synchronize()
            }
            try connection.run(
                "INSERT INTO schema_migration (number) VALUES ($1)", [.integer(Int64(number))])
            try connection.run("COMMIT")
            try connection.synchronize()
        } catch {
            try? connection.rollBack()
            throw error
        }
    }

    /// The number of the newest schema that was brought in; 0: there are no tables.
    private func applied() throws(StoreError) -> Int {
        let notes = try connection.rows(
            "SELECT count(*)::bigint FROM information_schema.tables "
                + "WHERE table_schema = current_schema() AND table_name = 'schema_migration'",
            columns: [Column("count", .integer)])
        guard notes.first != [.integer(0)] else { return 0 }
        let rows = try connection.rows(
            "SELECT coalesce(max(number), 0) FROM schema_migration",
            columns: [Column("number", .integer)])
        guard case .integer(let number)? = rows.first?.first else { return 0 }
        return Int(number)
    }

    private func refuseNewer(_ done: Int) throws(StoreError) {
        guard done > newest else { return }
        throw .unavailable(
            "schema \"\(schema)\" at \(connection.place) has version \(done), this program knows "
                + "\(newest): a newer program has used it; there is no way back but a backup")
    }

    /// Checks that the tables are what the program's data say.
    func check() throws(StoreError) {
        let done = try applied()
        try refuseNewer(done)
        guard done == newest else {
            throw .unavailable(
                "schema \"\(schema)\" at \(connection.place) has version \(done), this program "
                    + "needs \(newest), or the role may not look there: run `rouse "
                    + "migrate`, or one node with store.migrate = on, as a role that owns it")
        }
        let text = [Column("table", .text), Column("note", .text)]
        let rows = try connection.rows(
            "SELECT convert_to(table_name, 'UTF8'), convert_to(column_name || ' ' || data_type "
                + "|| ' ' || is_nullable, 'UTF8') FROM information_schema.columns "
                + "WHERE table_schema = current_schema() ORDER BY ordinal_position",
            columns: text)
        var notes: [String: [String]] = [:]
        for case (.text(let table), .text(let note)) in rows.map({ ($0[0], $0[1]) }) {
            notes[table, default: []].append(note)
        }
        for table in tables where notes[table.name] != PostgresSQL(table: table).columnNotes {
            throw .unavailable(
                "schema \"\(schema)\" at \(connection.place): \(table.name) has columns "
                    + "\(notes[table.name] ?? []), the program expects "
                    + "\(PostgresSQL(table: table).columnNotes): a migration is missing")
        }
    }
}
