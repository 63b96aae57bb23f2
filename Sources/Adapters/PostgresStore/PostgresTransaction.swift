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

    /// All in one round trip. Rows that are found by their keys, which follow each other in the
    /// order of locks and are of one table, are asked for by one statement.
    ///
    /// - Parameter waits: Also for a lock below what is held: the server finds out where two
    ///   transactions wait for each other.
    private func answers(_ reads: [Read], waits: Bool) throws(StoreError) -> [ReadAnswer] {
        let places = reads.map(place)
        let order = reads.indices.sorted { places[$0] < places[$1] }
        return try run { () throws(StoreError) in
            try writePending()
            var asked: [(positions: ArraySlice<Int>, question: Question)] = []
            var next = order.startIndex
            while next < order.endIndex {
                let end = endOfAlike(order, from: next, reads, places, waits: waits)
                if end - next > 1 {
                    try askRows(order[next..<end].map { reads[$0] }, last: places[order[end - 1]])
                    asked.append((order[next..<end], .rowsByKey))
                } else {
                    let position = order[next]
                    asked.append(
                        (
                            order[next..<end],
                            try ask(reads[position], at: places[position], waits: waits)
                        ))
                }
                next = end
            }
            var rows = try connection.synchronize()[...]
            var answers = Array(repeating: ReadAnswer.busy, count: reads.count)
            for (positions, question) in asked {
                for (position, answer) in zip(positions, question.answers(positions.count, &rows)) {
                    answers[position] = answer
                }
            }
            return answers
        }
    }

    /// Keys that one statement looks for: a statement's time is that of all its locks.
    private static let keysMax = 64

    /// The end of the reads from there on that one statement answers.
    private func endOfAlike(
        _ order: [Int], from start: Int, _ reads: [Read], _ places: [Place], waits: Bool
    ) -> Int {
        guard case .row(let table, _, let lock) = reads[order[start]],
            !lock.isOfKey || mayWait(places[order[start]], waits)
        else { return start + 1 }
        var end = start + 1
        while end < order.count, end - start < Self.keysMax,
            case .row(let other, _, lock) = reads[order[end]], other.name == table.name
        {
            end += 1
        }
        return end
    }

    /// Above everything held, or where the server finds out.
    private func mayWait(_ place: Place, _ waits: Bool) -> Bool {
        waits || highest.map { $0 < place } ?? true
    }

    /// - Parameters:
    ///   - reads: Rows of one table with one lock, in the order of their keys.
    ///   - last: The place of the last one.
    private func askRows(_ reads: [Read], last: Place) throws(StoreError) {
        guard case .row(let table, _, let lock)? = reads.first else { return }
        precondition(isWriting || lock == .none, "a snapshot takes no locks")
        let keys = reads.compactMap { read -> [ColumnValue]? in
            guard case .row(_, let key, _) = read else { return nil }
            if let problem = table.problem(key: key) { preconditionFailure(problem) }
            return key
        }
        if lock.isOfKey {
            // One after the other, as the array has them.
            var hashes = BoundValues()
            hashes.append(array: keys.map { tables.hash(of: $0, in: table) }, of: .integer)
            highest = max(highest ?? last, last)
            try connection.run(
                "SELECT pg_advisory_xact_lock\(lock.suffix)(hash) "
                    + "FROM unnest($1::bigint[]) AS hash", bound: hashes)
        }
        var bound = BoundValues()
        for column in 0..<table.keyCount {
            bound.append(array: keys.map { $0[column] }, of: table.columns[column].type)
        }
        let statements = tables[table]
        try connection.ask(
            statements.rows(lock), bound: bound,
            columns: [Column("number", .integer)] + statements.columns)
    }

    /// The statements that were sent for one read, or for many rows, and so what answers them.
    private enum Question {
        case nothing
        case row
        /// Each row that there is, behind the number of its key.
        case rowsByKey
        /// Whether the key was free, the row if that was free, and whether there is one.
        case freeRow
        case rows

        /// - Parameter count: The number of reads that it is for.
        func answers(
            _ count: Int, _ rows: inout ArraySlice<[[ColumnValue]]>
        ) -> [ReadAnswer] {
            func next() -> [[ColumnValue]] { rows.popFirst() ?? [] }
            switch self {
            case .nothing: return [.rows([])]
            case .row: return [.row(next().first)]
            case .rows: return [.rows(next())]
            case .freeRow:
                let (key, row, there) = (next(), next(), next())
                guard key.first == [.integer(1)], row.count == there.count else { return [.busy] }
                return [.row(row.first)]
            case .rowsByKey:
                var answers = Array(repeating: ReadAnswer.row(nil), count: count)
                for row in next() {
                    guard case .integer(let number)? = row.first,
                        answers.indices.contains(Int(number) - 1)
                    else { preconditionFailure("a row of no key that was asked for") }
                    answers[Int(number) - 1] = .row(Array(row.dropFirst()))
                }
                return answers
            }
        }
    }

    private func ask(
        _ read: Read, at place: Place, waits: Bool
    ) throws(StoreError) -> Question {
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
            guard lock.isOfKey else {
                try connection.ask(statements.row(lock), key, columns: statements.columns)
                return .row
            }
            // The key is held beside the row, which may not be there.
            let hash = tables.hash(of: key, in: table)
            guard mayWait(place, waits) else {
                try connection.ask(
                    "SELECT pg_try_advisory_xact_lock\(lock.suffix)($1)::int::bigint", [hash],
                    columns: [Column("free", .integer)])
                try connection.ask(
                    statements.freeRow(lock), key, columns: statements.columns)
                try connection.ask(statements.row(.none), key, columns: statements.columns)
                return .freeRow
            }
            highest = max(highest ?? place, place)
            try connection.run("SELECT pg_advisory_xact_lock\(lock.suffix)($1)", [hash])
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
            try hold(row, of: table, isInsert: false)
        }
    }

    func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try write(to: table, row: row) { () throws(StoreError) in
            try hold(row, of: table, isInsert: true)
        }
    }

    /// Rows that follow each other into one table, which one statement writes. Anything else that
    /// is sent comes behind them.
    private struct Pending {
        let table: Table
        let isInsert: Bool
        var rows: [[ColumnValue]]
        /// No statement may write a row twice.
        var keys: Set<SortKey>
    }

    private var pending: Pending?

    /// Rows that one statement writes, and so what waits here.
    private static let rowsMax = 64

    private func hold(
        _ row: [ColumnValue], of table: Table, isInsert: Bool
    ) throws(StoreError) {
        let key = SortKey(row[..<table.keyCount])
        if let held = pending {
            let isAlike = held.table.name == table.name && held.isInsert == isInsert
            if !isAlike || held.rows.count >= Self.rowsMax || held.keys.contains(key) {
                try writePending()
            }
        }
        guard pending != nil else {
            pending = Pending(table: table, isInsert: isInsert, rows: [row], keys: [key])
            return
        }
        pending?.rows.append(row)
        pending?.keys.insert(key)
    }

    /// Queues what is held back. To be done before COMMIT.
    func writePending() throws(StoreError) {
        guard let held = pending else { return }
        pending = nil
        let statements = tables[held.table]
        guard held.rows.count > 1 else {
            return try connection.run(
                held.isInsert ? statements.insert : statements.put, held.rows[0])
        }
        var bound = BoundValues()
        for (position, column) in held.table.columns.enumerated() {
            bound.append(array: held.rows.map { $0[position] }, of: column.type)
        }
        try connection.run(
            held.isInsert ? statements.insertMany : statements.putMany, bound: bound)
    }

    func update(_ table: Table, _ row: [ColumnValue], columns: [Int]) throws(StoreError) {
        try write(to: table, row: row) { () throws(StoreError) in
            try writePending()
            try connection.run(
                tables[table].update(columns), columns.map { row[$0] } + row[..<table.keyCount])
        }
    }

    func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        precondition(isWriting, "a snapshot is read only")
        if let problem = table.problem(key: key) { preconditionFailure(problem) }
        try run { () throws(StoreError) in
            try writePending()
            try connection.run(tables[table].delete, key)
        }
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
            try writePending()
            try connection.run("SAVEPOINT \(name)")
            try connection.synchronize()
        }
        depth += 1
        defer { depth -= 1 }
        do throws(StoreError) {
            try body()
            try run { () throws(StoreError) in
                try writePending()
                try connection.synchronize()
            }
        } catch {
            pending = nil
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

extension RowLock {
    /// Whether the key is held beside the row.
    fileprivate var isOfKey: Bool { self == .wait || self == .share }

    /// Of the functions that take advisory locks.
    fileprivate var suffix: String { self == .share ? "_shared" : "" }
}
