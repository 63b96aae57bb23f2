import Model

// What many reads ask for goes to the server in as few statements as there are kinds of them, and
// in one round trip.
extension PostgresTransaction {
    /// Locks that one statement takes: its time is that of all of them.
    private static let locksMax = 64
    /// Reads that one statement answers, if it locks nothing.
    private static let readsMax = 256

    /// The place of a read in the order of locks: reads that lock come first, the others in the
    /// order in which one statement answers those that are alike.
    struct Place: Comparable {
        /// One number of what decides: whether it locks, the table's place, and the scan's shape.
        let group: UInt64
        /// Nothing, where it locks nothing.
        let key: SortKey

        init(kind: UInt64, table: UInt64, shape: UInt64 = 0, key: SortKey = Self.none) {
            group = kind << 62 | table << 31 | shape
            self.key = key
        }

        private static let none = SortKey([])

        var shape: UInt64 { group & (1 << 31 - 1) }

        static func < (left: Place, right: Place) -> Bool {
            left.group == right.group ? left.key < right.key : left.group < right.group
        }
    }

    private func place(_ read: Read) -> Place {
        let statements = tables[read.table]
        switch read {
        case .row(_, _, .none): return Place(kind: 2, table: statements.number)
        case .row(_, let key, _):
            return Place(kind: 0, table: statements.number, key: SortKey(key))
        case .rows(let table, let scan):
            if let problem = table.problem(scan: scan) { preconditionFailure(problem) }
            guard scan.lock == .none else {
                // Which rows a scan locks is not known before.
                return Place(kind: 1, table: statements.number, key: SortKey(scan.prefix))
            }
            let shape = scan.limit > 0 ? statements.scans(like: scan).number : 0
            return Place(kind: 2, table: statements.number, shape: UInt64(shape))
        }
    }

    /// All in one round trip, nearly always. Keys that are waited for are held first, all of them,
    /// in the order of locks; then reads of one kind that follow each other in that order are one
    /// statement.
    ///
    /// - Parameter waits: Also for a lock below what is held: the server finds out where two
    ///   transactions wait for each other.
    func answers(_ reads: [Read], waits: Bool) throws(StoreError) -> [ReadAnswer] {
        let places = reads.map(place)
        let order = reads.indices.sorted { places[$0] < places[$1] }
        return try run { () throws(StoreError) in
            try writePending()
            let waited = order.filter {
                reads[$0].isOfRow && reads[$0].lock.isOfKey && mayWait(places[$0], waits)
            }
            var asked: [(positions: ArraySlice<Int>, question: Question)] = []
            try hold(waited.map { reads[$0] })
            var next = order.startIndex
            while next < order.endIndex {
                let end = endOfAlike(order, from: next, reads, places, waits: waits)
                let positions = order[next..<end]
                let isWaitedFor = mayWait(places[positions[next]], waits)
                let question = try ask(positions.map { reads[$0] }, isHeld: isWaitedFor)
                asked.append((positions, question))
                next = end
            }
            if let last = waited.last { highest = max(highest ?? places[last], places[last]) }
            var taken = Answered(try connection.synchronize())
            var answers = Array(repeating: ReadAnswer.busy, count: reads.count)
            var unseen: [Int] = []
            for (positions, question) in asked {
                for (position, answer) in zip(positions, question.answers(positions.count, &taken))
                {
                    if let answer { answers[position] = answer } else { unseen.append(position) }
                }
            }
            let rows = try unlocked(unseen.map { reads[$0] })
            for (position, row) in zip(unseen, rows) where row == .row(nil) {
                answers[position] = row
            }
            return answers
        }
    }

    /// The rows of keys that were free but gave no row. A row that is there all the same is held
    /// without its key, as by a scan that locks. Nobody who goes by the key makes a row meanwhile.
    private func unlocked(_ reads: [Read]) throws(StoreError) -> [ReadAnswer] {
        guard !reads.isEmpty else { return [] }
        let plain = reads.compactMap { read -> Read? in
            guard case .row(let table, let key, _) = read else { return nil }
            return .row(table, key: key, lock: .none)
        }
        return try answers(plain, waits: true)
    }

    /// The end of the reads from there on that are asked together.
    private func endOfAlike(
        _ order: [Int], from start: Int, _ reads: [Read], _ places: [Place], waits: Bool
    ) -> Int {
        let (first, place) = (reads[order[start]], places[order[start]])
        if case .rows = first, place.shape == 0 { return start + 1 }
        let isWaitedFor = !first.lock.isOfKey || mayWait(place, waits)
        let most = first.lock == .none ? Self.readsMax : Self.locksMax
        var end = start + 1
        while end < order.count, end - start < most {
            let (other, otherPlace) = (reads[order[end]], places[order[end]])
            if case .rows = other, otherPlace.shape == 0 { break }
            guard other.table.name == first.table.name, other.lock == first.lock,
                otherPlace.shape == place.shape,
                // The first that may be waited for is above all that may not.
                !other.lock.isOfKey || isWaitedFor || !mayWait(otherPlace, waits)
            else { break }
            end += 1
        }
        return end
    }

    /// Above everything held while nothing is written, or where the server finds out.
    private func mayWait(_ place: Place, _ waits: Bool) -> Bool {
        if waits { return true }
        return !hasSentWrites && !waitsForNothing && highest.map { $0 < place } ?? true
    }

    // MARK: Asking

    /// The statements that were sent for reads of one kind, and so what answers them.
    private enum Question {
        case nothing
        case row
        case rows
        /// Each row that there is, with the number of its key.
        case rowsByKey
        /// For each key whether it was free, and the rows that nobody else holds. Nearly every free
        /// key has such a row; for one that has none it is asked afterwards whether there is one
        /// that somebody holds.
        case freeRows
        /// Each row, with the number of its scan.
        case rowsByScan

        /// `nil`: the key was free, but it has no row, or one that somebody else holds.
        ///
        /// - Parameter count: The number of reads that it is for.
        func answers(_ count: Int, _ answered: inout Answered) -> [ReadAnswer?] {
            switch self {
            case .nothing: return [.rows([])]
            case .row: return [.row(answered.next().first)]
            case .rows: return [.rows(answered.next())]
            case .rowsByKey: return answered.nextByNumber(count).map { .row($0.first) }
            case .rowsByScan: return answered.nextByNumber(count).map { .rows($0) }
            case .freeRows:
                let free = answered.next()
                let locked = answered.nextByNumber(count)
                return (0..<count).map { number in
                    guard free[number] == [.integer(1)] else { return .busy }
                    return locked[number].first.map { .row($0) }
                }
            }
        }
    }

    /// The rows that the statements of one round trip gave. They are handed on without a copy.
    private struct Answered {
        private var statements: [[[ColumnValue]]]
        private var position = 0

        init(_ statements: [[[ColumnValue]]]) { self.statements = statements }

        /// The next statement's rows.
        mutating func next() -> [[ColumnValue]] {
            guard position < statements.count else { return [] }
            var rows: [[ColumnValue]] = []
            swap(&rows, &statements[position])
            position += 1
            return rows
        }

        /// The next statement's rows by the number that each ends with.
        mutating func nextByNumber(_ count: Int) -> [[[ColumnValue]]] {
            var found = Array(repeating: [[ColumnValue]](), count: count)
            var rows = next()
            for place in rows.indices {
                var row: [ColumnValue] = []
                swap(&row, &rows[place])
                guard case .integer(let number)? = row.popLast(),
                    found.indices.contains(Int(number) - 1)
                else { preconditionFailure("a row of nothing that was asked for") }
                found[Int(number) - 1].append(row)
            }
            return found
        }
    }

    /// - Parameters:
    ///   - reads: Of one table, kind and lock, in the order of locks; scans of one shape.
    ///   - isHeld: Whether the keys are held, where their lock is one of keys.
    private func ask(_ reads: [Read], isHeld: Bool) throws(StoreError) -> Question {
        guard let first = reads.first else { return .nothing }
        precondition(isWriting || first.lock == .none, "a snapshot takes no locks")
        switch first {
        case .rows(let table, let scan):
            if reads.count > 1 {
                return try ask(
                    table,
                    reads.map { read in
                        guard case .rows(_, let scan) = read else { return scan }
                        return scan
                    })
            }
            return try ask(table, scan)
        case .row(let table, _, let lock):
            let keys = reads.compactMap { read -> [ColumnValue]? in
                guard case .row(_, let key, _) = read else { return nil }
                if let problem = table.problem(key: key) { preconditionFailure(problem) }
                return key
            }
            // The keys are held beside the rows, which may not be there.
            return lock.isOfKey && !isHeld
                ? try askFreeRows(table, keys, lock) : try askRows(table, keys, lock)
        }
    }

    private func ask(_ table: Table, _ scan: Scan) throws(StoreError) -> Question {
        guard scan.limit > 0 else { return .nothing }
        let statements = tables[table]
        try connection.ask(
            statements.scans(like: scan).one, PostgresSQL.values(of: scan),
            columns: statements.columns)
        return .rows
    }

    /// - Parameter scans: Of one shape.
    private func ask(_ table: Table, _ scans: [Scan]) throws(StoreError) -> Question {
        let statements = tables[table]
        let alike = statements.scans(like: scans[0])
        let values = scans.map { PostgresSQL.values(of: $0) }
        var bound = BoundValues()
        for (place, type) in (alike.types + [.integer]).enumerated() {
            bound.append(array: values.map { $0[place] }, of: type)
        }
        try connection.ask(alike.many, bound: bound, columns: statements.numberedColumns)
        return .rowsByScan
    }

    private func askRows(
        _ table: Table, _ keys: [[ColumnValue]], _ lock: RowLock
    ) throws(StoreError) -> Question {
        let statements = tables[table]
        guard keys.count > 1 else {
            try connection.ask(statements.row(lock), keys[0], columns: statements.columns)
            return .row
        }
        try connection.ask(
            statements.rows(lock), bound: arrays(of: keys, in: table),
            columns: statements.numberedColumns)
        return .rowsByKey
    }

    private func askFreeRows(
        _ table: Table, _ keys: [[ColumnValue]], _ lock: RowLock
    ) throws(StoreError) -> Question {
        let statements = tables[table]
        try connection.ask(
            "SELECT pg_try_advisory_xact_lock\(lock.suffix)(hash)::int::bigint "
                + "FROM unnest($1::bigint[]) AS hash",
            bound: hashes(of: keys, in: table), columns: [Column("free", .integer)])
        try connection.ask(
            statements.freeRows(lock), bound: arrays(of: keys, in: table),
            columns: statements.numberedColumns)
        return .freeRows
    }

    /// Waits for the keys of these reads one after the other, in their order.
    private func hold(_ reads: [Read]) throws(StoreError) {
        var next = reads.startIndex
        while next < reads.endIndex {
            let lock = reads[next].lock
            let alike = reads[next...].prefix(Self.locksMax).prefix { $0.lock == lock }
            next = alike.endIndex
            let hashes = alike.compactMap { read -> ColumnValue? in
                guard case .row(let table, let key, _) = read else { return nil }
                if let problem = table.problem(key: key) { preconditionFailure(problem) }
                return tables.hash(of: key, in: table)
            }
            guard hashes.count > 1 else {
                try connection.run("SELECT pg_advisory_xact_lock\(lock.suffix)($1)", hashes)
                continue
            }
            var bound = BoundValues()
            bound.append(array: hashes, of: .integer)
            try connection.run(
                "SELECT pg_advisory_xact_lock\(lock.suffix)(hash) "
                    + "FROM unnest($1::bigint[]) AS hash",
                bound: bound)
        }
    }

    private func hashes(of keys: [[ColumnValue]], in table: Table) -> BoundValues {
        var bound = BoundValues()
        bound.append(array: keys.map { tables.hash(of: $0, in: table) }, of: .integer)
        return bound
    }

    private func arrays(of keys: [[ColumnValue]], in table: Table) -> BoundValues {
        var bound = BoundValues()
        for column in 0..<table.keyCount {
            bound.append(array: keys.map { $0[column] }, of: table.columns[column].type)
        }
        return bound
    }
}

extension Read {
    fileprivate var isOfRow: Bool {
        if case .row = self { true } else { false }
    }
}

extension RowLock {
    /// Whether the key is held beside the row.
    fileprivate var isOfKey: Bool { self == .wait || self == .share }

    /// Of the functions that take advisory locks.
    fileprivate var suffix: String { self == .share ? "_shared" : "" }
}
