import Model

/// The rows of one open transaction, over a connection that is in it. Writes are queued, and go to
/// the server with the next read or with COMMIT; what is wrong with them shows there.
///
/// Locks are the server's row locks. Beside a row that is locked by its key the key is held by an
/// advisory lock of its hash, for the row may not be there; two keys of one hash only wait where
/// they need not.
final class PostgresTransaction: FetchingTransaction {
    private let connection: PostgresConnection
    private let tables: PostgresTables
    private let isWriting: Bool
    private var isOpen = true
    private var depth = 0
    /// The highest lock of a key that was waited for.
    private var highest: Place?
    /// The error that ended the transaction before its body did.
    private(set) var failure: StoreError?

    init(_ connection: PostgresConnection, _ tables: PostgresTables, isWriting: Bool) {
        self.connection = connection
        self.tables = tables
        self.isWriting = isWriting
    }

    func end() { isOpen = false }

    /// After an error of the server nothing but a rollback is possible: to the savepoint that is
    /// open, or of everything.
    private func run<Result>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
        precondition(isOpen, "a transaction used after its body")
        if let failure { throw failure }
        do {
            return try body()
        } catch {
            if connection.hasFailed { failure = error }
            throw error
        }
    }

    // MARK: Reading

    func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        let read = Read.row(table, key: key, lock: lock)
        guard case .row(let row)? = try answers([read], waits: true).first else {
            preconditionFailure("a row that is read is a row")
        }
        return row
    }

    func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        guard case .rows(let rows)? = try answers([.rows(table, scan)], waits: true).first else {
            preconditionFailure("a scan gives rows")
        }
        return rows
    }

    func fetch(_ reads: [Read]) throws(StoreError) -> [ReadAnswer] {
        try answers(reads, waits: false)
    }

    /// All in one round trip.
    ///
    /// - Parameter waits: Also for a lock below what is held: the server finds out where two
    ///   transactions wait for each other.
    private func answers(_ reads: [Read], waits: Bool) throws(StoreError) -> [ReadAnswer] {
        let order = reads.indices.sorted { place(reads[$0]) < place(reads[$1]) }
        var asked: [(position: Int, question: Question)] = []
        return try run { () throws(StoreError) in
            for position in order {
                asked.append((position, try ask(reads[position], waits: waits)))
            }
            var rows = try connection.synchronize()[...]
            var answers = Array(repeating: ReadAnswer.busy, count: reads.count)
            for (position, question) in asked {
                answers[position] = question.answer(&rows)
            }
            return answers
        }
    }

    /// The statements that were sent for one read, and so the rows that answer it.
    private enum Question {
        case nothing
        case row
        /// Whether the key was free, the row if that was free, and whether there is one.
        case freeRow
        case rows

        func answer(_ rows: inout ArraySlice<[[ColumnValue]]>) -> ReadAnswer {
            func next() -> [[ColumnValue]] { rows.popFirst() ?? [] }
            switch self {
            case .nothing: return .rows([])
            case .row: return .row(next().first)
            case .rows: return .rows(next())
            case .freeRow:
                let (key, row, there) = (next(), next(), next())
                guard key.first == [.integer(1)], row.count == there.count else { return .busy }
                return .row(row.first)
            }
        }
    }

    private func ask(_ read: Read, waits: Bool) throws(StoreError) -> Question {
        precondition(isWriting || read.lock == .none, "a snapshot takes no locks")
        let statements = tables[read.table]
        switch read {
        case .rows(let table, let scan):
            if let problem = table.problem(scan: scan) { preconditionFailure(problem) }
            guard scan.limit > 0 else { return .nothing }
            try connection.ask(
                statements.scan(scan), PostgresSQL.values(of: scan), columns: statements.columns)
            return .rows
        case .row(let table, let key, let lock):
            if let problem = table.problem(key: key) { preconditionFailure(problem) }
            guard lock == .wait || lock == .share else {
                try connection.ask(statements.row(lock), key, columns: statements.columns)
                return .row
            }
            // The key is held beside the row, which may not be there.
            let suffix = lock == .share ? "_shared" : ""
            let hash = tables.hash(of: key, in: table)
            let place = self.place(read)
            guard waits || highest.map({ $0 < place }) ?? true else {
                try connection.ask(
                    "SELECT pg_try_advisory_xact_lock\(suffix)($1)::int::bigint", [hash],
                    columns: [Column("free", .integer)])
                try connection.ask(
                    statements.freeRow(lock), key, columns: statements.columns)
                try connection.ask(statements.row(.none), key, columns: statements.columns)
                return .freeRow
            }
            highest = max(highest ?? place, place)
            try connection.run("SELECT pg_advisory_xact_lock\(suffix)($1)", [hash])
            try connection.ask(statements.row(lock), key, columns: statements.columns)
            return .row
        }
    }

    /// The place of a read in the order of locks: reads that lock come first.
    private struct Place: Comparable {
        let kind: Int
        let rank: Int
        let table: String
        let key: SortKey

        static func < (left: Place, right: Place) -> Bool {
            (left.kind, left.rank, left.table, left.key)
                < (right.kind, right.rank, right.table, right.key)
        }
    }

    private func place(_ read: Read) -> Place {
        let key: SortKey
        let kind: Int
        switch read {
        case .row(_, let name, let lock):
            (key, kind) = (SortKey(name), lock == .none ? 2 : 0)
        // Which rows a scan locks is not known before.
        case .rows(_, let scan):
            (key, kind) = (SortKey(scan.prefix), scan.lock == .none ? 2 : 1)
        }
        return Place(
            kind: kind, rank: tables.rank(of: read.table), table: read.table.name, key: key)
    }

    // MARK: Writing

    func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try write(to: table, row: row) { () throws(StoreError) in
            try connection.run(tables[table].put, row)
        }
    }

    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try write(to: table, row: row) { () throws(StoreError) in
            try connection.run(tables[table].insert, row)
        }
    }

    func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError) {
        try write(to: table, row: row) { () throws(StoreError) in
            try connection.run(
                tables[table].update(columns), columns.map { row[$0] } + row[..<table.keyCount])
        }
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        if let problem = table.problem(key: key) { preconditionFailure(problem) }
        try run { () throws(StoreError) in try connection.run(tables[table].delete, key) }
    }

    private func write(
        to table: Table, row: [ColumnValue], _ body: () throws(StoreError) -> Void
    ) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        if let problem = table.problem(row: row) { preconditionFailure(problem) }
        try run(body)
    }

    // MARK: Parts

    func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) { try body() }

    func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        let name = "s\(depth)"
        // Rolling back to it undoes all that was queued behind it, and nothing before.
        try run { () throws(StoreError) in
            try connection.run("SAVEPOINT \(name)")
            try connection.synchronize()
        }
        depth += 1
        defer { depth -= 1 }
        do throws(StoreError) {
            try body()
            try run { () throws(StoreError) in try connection.synchronize() }
        } catch {
            try undo(to: name, after: error)
            throw error
        }
        try run { () throws(StoreError) in try connection.run("RELEASE SAVEPOINT \(name)") }
    }

    /// Goes on before the savepoint, unless nothing can.
    private func undo(to name: String, after error: StoreError) throws(StoreError) {
        switch error {
        case .full, .unavailable:
            failure = failure ?? error
        case .conflict, .corrupt:
            if case .unavailable? = failure { return }
            failure = nil
            try run { () throws(StoreError) in
                // Statements that are still queued may fail as well; they are undone with the rest.
                _ = try? connection.synchronize()
                try connection.run("ROLLBACK TO SAVEPOINT \(name)")
                try connection.run("RELEASE SAVEPOINT \(name)")
                try connection.synchronize()
            }
        }
    }
}
