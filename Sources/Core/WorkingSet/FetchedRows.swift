public import Model

/// What stands between rules and a transaction of an engine that is a round trip away: the rows
/// and ranges that were fetched, and the writes of the requests carried out so far.
///
/// - A request that reads something unknown is unwound: nothing of it is left but the note of
///   what it missed. When that is fetched it runs again; rules are pure.
/// - Where several requests run one after another, what all of them missed is one fetch.
/// - A request reads nothing that was fetched before a lock that it took earlier: as if it had
///   read one after the other, only that the answers were there already.
/// - Between two flushes the engine gets each changed row once, however many requests changed it.
///
/// The unwinding is a `.unavailable`, which every rule passes on, and which stays until the
/// request has ended even if one does not. An object of this class lives for one transaction.
public final class FetchedRows {
    /// What the transaction has cost.
    public struct Effort: Equatable, Sendable {
        /// Fetches.
        public var rounds = 0
        public var reads = 0
        /// Rows written.
        public var writes = 0
        /// Requests that were run; each that missed runs again.
        public var runs = 0

        public init() {}
    }

    public private(set) var effort = Effort()
    /// What is to be fetched next.
    public private(set) var missing: [Read] = []
    /// How often something was asked for that was not known, whoever else had asked for it.
    public private(set) var misses = 0
    /// An unknown row is fetched alone, at once, and the request goes on.
    public var fetchesInPlace = false

    private let engine: any FetchingTransaction
    /// Scans among them.
    private var isMissing: Set<Read> = []
    private var tables = TableMap<FetchedTable>()
    /// The same in the order in which they were first asked for.
    private var inOrder: [FetchedTable] = []
    /// What savepoints undo.
    private var log: [Change] = []
    private let guardOf: (Table) -> RowGuard?
    private var floors: [String: LockFloor] = [:]
    /// The latest of all.
    private let floor = LockFloor()
    /// Those that the request at work has raised.
    private var raised: [LockFloor] = []
    private var hasMissed = false
    /// The error that ended the transaction before its body did.
    private var failure: StoreError?

    /// One change of a row, with what was known of it before.
    private struct Change {
        let slot: FetchedSlot
        let current: FetchedSlot.Row?
        /// What `current` was a change of.
        let stored: FetchedSlot.Row?
        let intent: FetchedSlot.Intent

        init(_ slot: FetchedSlot) {
            self.slot = slot
            current = slot.current
            stored = slot.stored
            intent = slot.intent
        }
    }

    /// - Parameter guardOf: what protects a table's rows: what was fetched of them stays good when
    ///   rows of tables are locked that do not. `nil`: any lock may.
    public init(
        _ transaction: any FetchingTransaction,
        guardedBy guardOf: @escaping (Table) -> RowGuard? = { $0.rowGuard }
    ) {
        engine = transaction
        self.guardOf = guardOf
    }

    /// Requests are told at once that another transaction holds what they lock (`.conflict`).
    public func waitForNothing() { engine.waitForNothing() }

    // MARK: Requests

    /// Runs one request, which may throw what the store's errors are but for a miss.
    ///
    /// - Parameter isKept: else what it writes is undone also when it is done: it ran only to
    ///   find out what it reads.
    /// - Returns: whether it has ended; else it has missed something, and nothing of it is left.
    public func run(
        isKept: Bool = true, _ request: () throws(StoreError) -> Void
    ) throws(StoreError) -> Bool {
        let mark = log.count
        effort.runs += 1
        forgetLocksTaken()
        do throws(StoreError) {
            try request()
        } catch {
            guard hasMissed else { throw error }
        }
        if let failure { throw failure }
        if hasMissed || !isKept { undo(to: mark) } else { log.removeAll(keepingCapacity: true) }
        defer { hasMissed = false }
        return !hasMissed
    }

    /// Fetches what is missing, in one round trip.
    public func fetchMissing() throws(StoreError) {
        let reads = missing
        missing = []
        isMissing = []
        try fetch(reads)
    }

    private func fetch(_ reads: [Read]) throws(StoreError) {
        if let failure { throw failure }
        effort.rounds += 1
        effort.reads += reads.count
        do throws(StoreError) {
            let answers = try engine.fetch(reads)
            precondition(answers.count == reads.count, "a fetch answers each read")
            for (read, answer) in zip(reads, answers) { try learn(answer, to: read) }
        } catch {
            failure = error
            throw error
        }
    }

    private func learn(_ answer: ReadAnswer, to read: Read) throws(StoreError) {
        let rows = rows(of: read.table)
        switch (read, answer) {
        case (.row(_, let key, let lock), .row(let row)):
            if lock != .none { noteLatest(rows, effort.rounds) }
            try rows.learn(key, row, lock: lock, in: effort.rounds)
        case (.rows(_, let scan), .rows(let found)):
            if scan.lock != .none { noteLatest(rows, effort.rounds) }
            try rows.learn(scan, found, in: effort.rounds)
        case (.row(_, let key, _), .busy): rows.slot(key).isBusy = true
        case (.rows(_, let scan), .busy): rows.busyScans.insert(scan.unlimited)
        case (.row, .rows), (.rows, .row): preconditionFailure("an answer to another read")
        }
    }

    /// Writes what the requests have changed, between two of them or behind the last. What it meets
    /// may come only when the transaction is committed.
    ///
    /// - Parameter isSent: The engine carries it out while further requests run.
    public func flush(isSent: Bool = false) throws(StoreError) {
        if let failure { throw failure }
        do throws(StoreError) {
            for rows in inOrder { try flush(rows) }
            if isSent { try engine.sendWrites() }
        } catch {
            failure = error
            throw error
        }
        log.removeAll()
    }

    private func flush(_ rows: FetchedTable) throws(StoreError) {
        if rows.changed.count > 1, rows.table.hasUniqueIndex {
            for slot in rows.changed where slot.isDirty {
                guard let stored = slot.stored, let stored, let current = slot.current,
                    let (freed, columns) = rows.table.givingUpUnique(stored, for: current)
                else { continue }
                try engine.update(rows.table, freed, columns: columns)
                effort.writes += 1
                slot.stored = .some(freed)
            }
        }
        for slot in rows.changed {
            slot.isListed = false
            if slot.isDirty { try write(slot) }
        }
        rows.changed.removeAll(keepingCapacity: true)
    }

    private func write(_ slot: FetchedSlot) throws(StoreError) {
        let intent = slot.intent
        slot.intent = .nothing
        guard let row = slot.current else { return }
        let table = slot.table.table
        switch (slot.stored, row) {
        case (.some(.some), nil): try engine.delete(table, key: slot.key)
        case (.some(nil), nil): return
        case (.some(nil), let row?): try engine.insert(table, row)
        case (.some(let stored?), let row?):
            let changed = row.indices.filter { stored[$0] != row[$0] }
            if changed.isEmpty { return }
            try engine.update(table, row, columns: changed)
        case (.none, _): try write(row, unread: slot, intent)
        }
        effort.writes += 1
        slot.stored = .some(row)
    }

    private func write(
        _ row: FetchedSlot.Row, unread slot: FetchedSlot, _ intent: FetchedSlot.Intent
    ) throws(StoreError) {
        let table = slot.table.table
        switch (intent, row) {
        case (.inserted, nil): break
        case (.inserted, let row?): try engine.insert(table, row)
        case (.cleared, let row?):
            try engine.delete(table, key: slot.key)
            try engine.insert(table, row)
        case (_, nil): try engine.delete(table, key: slot.key)
        // The caller's fault, which the engine may tell of.
        case (_, let row?): try engine.put(table, row)
        }
    }

    // MARK: What is known

    private func rows(of table: Table) -> FetchedTable {
        if let known = tables.known(table) ?? tables[table] { return known }
        var guardFloor = floor
        var isShared = false
        let rowGuard = guardOf(table)
        switch rowGuard {
        case .itself?: guardFloor = floor(of: table.name)
        case .row(let other, _)?: guardFloor = floor(of: other.name)
        case .either?: isShared = true
        case nil: break
        }
        let made = FetchedTable(
            table, floor: floor(of: table.name), guardFloor: guardFloor, isShared: isShared,
            holders: rowGuard.flatMap { holders($0, of: table) } ?? [])
        tables[table] = made
        inOrder.append(made)
        return made
    }

    /// - Returns: `nil`: a row protects itself, which is looked at by itself.
    private func holders(_ rowGuard: RowGuard, of table: Table) -> [FetchedTable.Holder]? {
        switch rowGuard {
        case .itself: return nil
        case .row(let other, let columns):
            return other == table ? nil : [(rows(of: other), columns)]
        case .either(let one, let other):
            guard let first = holders(one, of: table), let second = holders(other, of: table)
            else { return nil }
            return first + second
        }
    }

    private func floor(of name: String) -> LockFloor {
        if let known = floors[name] { return known }
        let made = LockFloor()
        floors[name] = made
        return made
    }

    /// The request at work has locked what was locked by this fetch.
    private func noteLock(_ rows: FetchedTable, since fetch: Int) {
        raise(rows.floor, to: fetch)
        raise(floor, to: fetch)
    }

    private func raise(_ floor: LockFloor, to fetch: Int) {
        if floor.fetch == 0, fetch > 0 { raised.append(floor) }
        floor.fetch = max(floor.fetch, fetch)
    }

    private func noteLatest(_ rows: FetchedTable, _ fetch: Int) {
        rows.floor.latest = max(rows.floor.latest, fetch)
        floor.latest = max(floor.latest, fetch)
    }

    private func forgetLocksTaken() {
        if raised.isEmpty { return }
        for floor in raised { floor.fetch = 0 }
        raised.removeAll(keepingCapacity: true)
    }

    /// What is known of the row, locked as asked; `nil`: nothing.
    ///
    /// - Parameter place: the key's.
    private func known(
        _ rows: FetchedTable, _ key: [ColumnValue], at place: SortKey, _ lock: RowLock
    ) throws(StoreError) -> FetchedSlot.Row? {
        let slot = rows.slots[place]
        if lock != .none {
            if let slot, let current = slot.current, let since = slot.held(lock) {
                noteLock(rows, since: since)
                return rows.isFresh(slot) ? .some(current) : nil
            }
            if slot?.isBusy == true { throw busy(rows) }
            guard lock == .skip, let slot else { return nil }
            // What this transaction writes nobody else can hold when it is committed.
            if slot.isDirty { return slot.current }
            return slot.isPassedOver ? .some(nil) : nil
        }
        guard let slot, let current = slot.current else {
            return rows.isKnownAbsent(key, at: place) ? .some(nil) : nil
        }
        return rows.isFresh(slot) ? .some(current) : nil
    }

    private func known(
        _ rows: FetchedTable, _ scan: Scan
    ) throws(StoreError) -> [[ColumnValue]]? {
        if scan.limit <= 0 { return [] }
        if let found = rows.answer(scan) {
            if scan.lock != .none { noteLock(rows, since: found.fetched) }
            return found.rows
        }
        if scan.isBounded {
            let (lower, upper) = scan.bounds
            if !(lower < upper) { return [] }
        }
        if !rows.busyScans.isEmpty, rows.busyScans.contains(scan.unlimited) { throw busy(rows) }
        return nil
    }

    private func busy(_ rows: FetchedTable) -> StoreError {
        .conflict("\(rows.table.name): held by another transaction")
    }

    private func note(
        _ rows: FetchedTable, _ key: [ColumnValue], at place: SortKey, _ lock: RowLock
    ) {
        misses += 1
        guard rows.slot(key, at: place).note(lock, for: effort.rounds + 1) else { return }
        missing.append(.row(rows.table, key: key, lock: lock))
        if lock != .none { noteLatest(rows, effort.rounds + 1) }
    }

    private func note(_ rows: FetchedTable, _ scan: Scan) {
        misses += 1
        let read = Read.rows(rows.table, scan)
        guard isMissing.insert(read).inserted else { return }
        missing.append(read)
        if scan.lock != .none { noteLatest(rows, effort.rounds + 1) }
    }

    private func widened(_ scan: Scan, _ rows: FetchedTable) -> Scan {
        var scan = scan
        let (limit, isAbove) = scan.limit.addingReportingOverflow(rows.slack(scan))
        scan.limit = isAbove ? .max : limit
        return scan
    }

    private func miss() throws(StoreError) {
        hasMissed = true
        throw Self.miss
    }

    private static let miss = StoreError.unavailable("a row that was not fetched yet")

    private func check() throws(StoreError) {
        if let failure { throw failure }
        if hasMissed { throw Self.miss }
    }

    private func undo(to mark: Int) {
        while log.count > mark, let change = log.popLast() {
            let slot = change.slot
            slot.intent = change.intent
            // Fetched meanwhile, what stands there may be another row than it was.
            var row = slot.stored
            if slot.isDirty, let current = change.current {
                row = FetchedSlot.rebased(current, from: change.stored, onto: slot.stored)
            }
            slot.table.set(slot, to: row)
        }
    }

    private func change(
        _ slot: FetchedSlot, to row: FetchedSlot.Row, _ intent: FetchedSlot.Intent
    ) {
        log.append(Change(slot))
        // What the first write found out about the key holds for all.
        if !slot.isDirty { slot.intent = intent }
        if !slot.isListed {
            slot.isListed = true
            slot.table.changed.append(slot)
        }
        slot.table.set(slot, to: .some(row))
    }

    /// Nothing was read under the key, nor written.
    private func isUnknown(_ slot: FetchedSlot) -> Bool {
        slot.stored == nil && !slot.isDirty
    }
}

// MARK: What is asked for before it is missed

extension FetchedRows {
    /// The row, if it is known; else it is noted as missing.
    ///
    /// - Parameter isFresh: what was fetched before a row was locked, or is going to be, that
    ///   protects the table's is not known: whoever holds that lock will ask again.
    /// - Returns: `nil`: it is not known, or there is none.
    public func hint(
        _ table: Table, key: [ColumnValue], lock: RowLock, isFresh: Bool = false
    ) -> [ColumnValue]? {
        let rows = rows(of: table, isFresh: isFresh)
        let place = SortKey(key)
        do throws(StoreError) {
            if let row = try known(rows, key, at: place, lock) { return row }
            note(rows, key, at: place, lock)
        } catch {
            // Whoever needs it meets that.
        }
        return nil
    }

    /// The same of a scan.
    public func hint(
        _ table: Table, _ scan: Scan, isFresh: Bool = false
    ) -> [[ColumnValue]] {
        let rows = rows(of: table, isFresh: isFresh)
        do throws(StoreError) {
            if let found = try known(rows, scan) { return found }
            note(rows, scan)
        } catch {
            // Whoever needs it meets that.
        }
        return []
    }

    private func rows(of table: Table, isFresh: Bool) -> FetchedTable {
        forgetLocksTaken()
        let rows = rows(of: table)
        if isFresh { raise(rows.guardFloor, to: rows.guardFloor.latest) }
        return rows
    }
}

extension FetchedRows: StoreTransaction {
    public func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        try check()
        let rows = rows(of: table)
        let place = SortKey(key)
        if let row = try known(rows, key, at: place, lock) { return row }
        if !fetchesInPlace {
            note(rows, key, at: place, lock)
            try miss()
        }
        try fetch([.row(table, key: key, lock: lock)])
        return try known(rows, key, at: place, lock) ?? nil
    }

    public func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        try check()
        let rows = rows(of: table)
        if let found = try known(rows, scan) { return found }
        let wide = widened(scan, rows)
        if !fetchesInPlace {
            note(rows, wide)
            try miss()
        }
        try fetch([.rows(table, wide)])
        guard let found = try known(rows, scan) else {
            preconditionFailure("\(table.name): a scan that was fetched is not known")
        }
        return found
    }

    public func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try check()
        assert(table.problem(row: row) == nil, table.problem(row: row) ?? "")
        let rows = rows(of: table)
        let slot = rows.slot(Array(row[..<table.keyCount]))
        // What a scan has shown not to be there is inserted.
        let isNew = isUnknown(slot) && rows.isKnownAbsent(slot.key, at: slot.place)
        change(slot, to: row, isNew ? .inserted : .changed)
    }

    /// A row under a key that is not known is not looked for: the engine refuses a second one.
    public func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        try check()
        assert(table.problem(row: row) == nil, table.problem(row: row) ?? "")
        let slot = rows(of: table).slot(Array(row[..<table.keyCount]))
        if case .some(.some) = slot.current {
            throw .conflict("\(table.name)\(slot.key) is there")
        }
        change(slot, to: row, isUnknown(slot) ? .inserted : .changed)
    }

    public func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        try check()
        assert(table.problem(key: key) == nil, table.problem(key: key) ?? "")
        let slot = rows(of: table).slot(key)
        change(slot, to: nil, isUnknown(slot) ? .cleared : .changed)
    }

    /// Each fetch is one.
    public func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try body()
    }

    public func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try check()
        let mark = log.count
        do throws(StoreError) {
            try body()
        } catch {
            undo(to: mark)
            switch error {
            case .full, .unavailable: if !hasMissed { failure = failure ?? error }
            case .conflict, .corrupt: break
            }
            throw error
        }
        try check()
    }
}
