public import Model

/// What stands between rules and an engine: the rows that are known, the ranges that are known to
/// be complete, and the writes of the open transaction. Each row is read from the engine once,
/// and written once whatever number of requests changed it.
///
/// - A savepoint is a mark in the list of changes; the engine has none.
/// - A scan that is not known is the engine's: changes that it may show are written before.
/// - Where the engine's only writer is the one this set belongs to (`Store.isSoleWriter`), what
///   is known stays known from one transaction to the next, up to a bound of bytes: every write
///   passes through here. What was asked for least recently goes first. Rows of tables that are
///   seldom read (`Table.isSeldomRead`) have an eighth of the bound to themselves once it is
///   reached.
/// - Where there are other writers, a row is known only while the transaction holds it, no range
///   is, and nothing outlives the transaction.
/// - A transaction that fails leaves nothing known.
///
/// One set belongs to one thread.
public final class WorkingSet {
    /// What the set spared the engine, and what it did not.
    public struct Effort: Equatable, Sendable {
        /// Reads and scans answered without the engine.
        public var answered: UInt64 = 0
        /// Reads of one key by the engine.
        public var reads: UInt64 = 0
        /// Scans by the engine.
        public var scans: UInt64 = 0
        /// Rows written to the engine.
        public var writes: UInt64 = 0
        /// Rows that went because of the bound.
        public var evicted: UInt64 = 0

        public init() {}
    }

    public var effort: Effort { counted }
    /// An estimate of the bytes of what is known.
    public var bytes: Int { weight + rangesWeight }

    /// Rows of one scan that become known: more come in turns of background work, which nobody
    /// asks for again.
    private static let scanRows = 256
    /// Changes of one table that are looked at one by one before a scan; of more, all are written.
    private static let dirtyRows = 64
    /// What rows of tables that are seldom read may hold while the bound is reached: one part in
    /// so many of it.
    private static let seldomShare = 8
    /// What a known range takes beside its rows, one that is over as well until it leaves the ring.
    private static let rangeBytes = 256

    /// One change of a row, with what was known of it before.
    private struct Change {
        let slot: Slot
        var before: Slot.Row?
    }

    // What is counted for each row is private: what other modules could reach would be guarded
    // against their access each time.
    private var counted = Effort()
    private var weight = 0
    private let bound: Int
    private let verifiedEvery: UInt64?
    private var tables = TableMap<TableRows>()
    /// The same in the order in which they were first asked for: writes have one order.
    private var inOrder: [TableRows] = []
    private var slots = Clock<Slot>()
    /// The slots of tables whose rows are seldom read. They have a share of their own, so that
    /// however many come, they do not drive out the rows that will be asked for again.
    private var seldom = Clock<Slot>()
    private var seldomBytes = 0
    private var ranges = Clock<KnownRange>()
    private var rowsOfRanges = RangeBytes()
    /// The changes that a savepoint undoes.
    private var log: [Change] = []
    private var depth = 0
    private var isInRequest = false
    /// Slots that were made in the open transaction.
    private var came = 0
    private var engine: (any StoreTransaction)?
    private var isSole = false
    /// The error that ended the transaction before its body did.
    private var failure: StoreError?

    /// - Parameters:
    ///   - bound: The bytes that may be kept from one transaction to the next; 0: none.
    ///   - verifiedEvery: For tests: one of this many answers from memory, and each that locks, is
    ///     compared with the engine's, and the process stops where they differ.
    public init(carrying bound: Int, verifiedEvery: UInt64? = nil) {
        self.bound = bound
        self.verifiedEvery = verifiedEvery
    }

    /// Runs `body` in one transaction of the store and commits it; the contract is `Store.write`'s.
    ///
    /// - Parameters:
    ///   - store: The same in every call, and nobody writes to it past this set.
    ///   - beforeCommit: Called when everything is written and nothing is committed.
    public func write(
        in store: any Store, beforeCommit: () -> Void = {},
        _ body: (any StoreTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        do throws(StoreError) {
            try store.write { transaction throws(StoreError) in
                self.engine = transaction
                self.isSole = store.isSoleWriter
                defer { self.engine = nil }
                try body(self)
                try self.flush()
                beforeCommit()
            }
        } catch {
            forgetAll()
            throw error
        }
        log.removeAll(keepingCapacity: true)
        if isSole, bound > 0 { trim() } else { forgetAll() }
    }

    /// Runs one request of several in the open transaction. If it throws, all it wrote is undone,
    /// finished savepoints too. It is no savepoint itself, so that each outermost savepoint of the
    /// request is a sequence of locks of its own.
    public func run(_ request: () throws(StoreError) -> Void) throws(StoreError) {
        let mark = log.count
        isInRequest = true
        defer { isInRequest = false }
        do throws(StoreError) {
            try request()
        } catch {
            undo(to: mark)
            throw error
        }
    }

    /// Everything is read from the engine again: somebody else has written to it.
    public func forgetAll() {
        precondition(engine == nil, "rows forgotten inside a transaction")
        tables = TableMap()
        inOrder = []
        slots = Clock()
        seldom = Clock()
        seldomBytes = 0
        ranges = Clock()
        rowsOfRanges = RangeBytes()
        log = []
        (depth, isInRequest) = (0, false)
        came = 0
        failure = nil
        weight = 0
    }

    // MARK: What is known

    private func rows(of table: Table) -> TableRows {
        if let known = tables.known(table) ?? tables[table] { return known }
        let made = TableRows(table, counting: rowsOfRanges)
        tables[table] = made
        inOrder.append(made)
        return made
    }

    private func learn(
        _ row: Slot.Row, _ key: [ColumnValue], at place: SortKey, in rows: TableRows
    ) -> Slot {
        let slot = blank(key, at: place, in: rows)
        slot.stored = .some(row)
        slot.become(row)
        weigh(slot)
        return slot
    }

    private func blank(_ key: [ColumnValue], at place: SortKey, in rows: TableRows) -> Slot {
        let slot = Slot(key, at: place, in: rows)
        rows.slots.set(slot)
        if rows.table.isSeldomRead { seldom.add(slot) } else { slots.add(slot) }
        came += 1
        return slot
    }

    private func weigh(_ slot: Slot) {
        let weight = slot.weigh()
        count(weight - slot.weight, of: slot)
        slot.weight = weight
    }

    private func count(_ change: Int, of slot: Slot) {
        weight += change
        if slot.table.table.isSeldomRead { seldomBytes += change }
    }

    /// Lets go of what was asked for least recently; a few steps for each row that came, so that
    /// no transaction pays for many others.
    private func trim() {
        var steps = 4 * came + 64
        came = 0
        while bytes > bound, steps > 0 {
            steps -= 1
            if rangesWeight * 4 > bound, let range = ranges.passOver(), !range.isGone {
                range.order.remove(range.place)
            }
            let isSeldom = seldomBytes * Self.seldomShare > bound
            guard let slot = isSeldom ? seldom.passOver() : slots.passOver() else { continue }
            count(-slot.weight, of: slot)
            slot.table.forget(slot)
            counted.evicted += 1
        }
    }

    private var rangesWeight: Int { ranges.count * Self.rangeBytes + rowsOfRanges.total }

    private func open() throws(StoreError) -> any StoreTransaction {
        guard let engine else { preconditionFailure("a transaction used after its body") }
        if let failure { throw failure }
        return engine
    }

    // MARK: Changes

    private func change(_ slot: Slot, to row: Slot.Row) {
        log.append(Change(slot: slot, before: slot.current))
        slot.table.set(slot, to: row)
        slot.isRecent = true
        markDirty(slot)
    }

    /// What the row takes is counted when it is written: until then nothing has to go for it.
    private func markDirty(_ slot: Slot) {
        if !slot.isDirty {
            slot.isDirty = true
            slot.table.dirty.append(slot)
        }
    }

    private func undo(to mark: Int) {
        while log.count > mark, let change = log.popLast() {
            let slot = change.slot
            if let before = change.before {
                slot.table.set(slot, to: before)
                markDirty(slot)
            } else {
                slot.table.unset(slot)
            }
        }
    }

    private func flush() throws(StoreError) {
        for rows in inOrder where !rows.dirty.isEmpty { try flush(rows) }
    }

    private func flush(_ rows: TableRows) throws(StoreError) {
        let engine = try open()
        try giveUpUnique(in: rows, engine)
        for slot in rows.dirty {
            if slot.isDirty { try write(slot, of: rows.table, to: engine) }
        }
        rows.dirty.removeAll(keepingCapacity: true)
    }

    private func giveUpUnique(
        in rows: TableRows, _ engine: any StoreTransaction
    ) throws(StoreError) {
        guard rows.dirty.count > 1, rows.table.hasUniqueIndex else { return }
        for slot in rows.dirty where slot.isDirty {
            guard let stored = slot.stored, let stored, let current = slot.current,
                let (freed, columns) = rows.table.givingUpUnique(stored, for: current)
            else { continue }
            try engine.update(rows.table, freed, columns: columns)
            counted.writes += 1
            slot.stored = .some(freed)
        }
    }

    private func write(
        _ slot: Slot, of table: Table, to engine: any StoreTransaction
    ) throws(StoreError) {
        guard let row = slot.current else {
            // Taken back before it was ever written. It stands in the ring until the hand comes by,
            // so it counts: else many of them would never make the hand move.
            slot.isDirty = false
            weigh(slot)
            return
        }
        if slot.stored == nil, depth > 0 || isInRequest {
            // A savepoint, or the request, may take it back: what was there before has to be known.
            counted.reads += 1
            let found = try engine.row(table, key: slot.key, lock: .none)
            slot.stored = .some(found)
            if let first = log.firstIndex(where: { $0.slot === slot && $0.before == nil }) {
                log[first].before = .some(found)
            }
        }
        do throws(StoreError) {
            try write(slot, row, to: engine)
        } catch {
            // What is known is not what the engine holds: trying again helps only from nothing.
            if isSole, case .conflict = error { failure = error }
            throw error
        }
        counted.writes += 1
        slot.stored = .some(row)
        slot.isDirty = false
        weigh(slot)
    }

    private func write(
        _ slot: Slot, _ row: Slot.Row, to engine: any StoreTransaction
    ) throws(StoreError) {
        let table = slot.table.table
        switch (slot.stored, row) {
        case (.none, let row?): try engine.put(table, row)
        case (.none, nil): try engine.delete(table, key: slot.key)
        case (.some(nil), let row?): try engine.insert(table, row)
        case (.some(nil), nil): break
        case (.some(.some), nil): try engine.delete(table, key: slot.key)
        case (.some(let stored?), let row?):
            let changed = row.indices.filter { stored[$0] != row[$0] }
            if !changed.isEmpty { try engine.update(table, row, columns: changed) }
        }
    }

    /// Changes that the scan may show are in the engine; others need not be.
    private func flush(_ rows: TableRows, before scan: Scan) throws(StoreError) {
        rows.dirty.removeAll { !$0.isDirty }
        guard !rows.dirty.isEmpty else { return }
        if rows.dirty.count <= Self.dirtyRows,
            !rows.dirty.contains(where: { rows.mayHold($0, scan) })
        {
            return
        }
        try flush(rows)
    }
}

extension WorkingSet: StoreTransaction {
    public func row(_ table: Table, key: [ColumnValue], lock: RowLock) throws(StoreError)
        -> [ColumnValue]?
    {
        let engine = try open()
        let rows = rows(of: table)
        let place = SortKey(key)
        guard let slot = rows.slots[place], let current = slot.current else {
            if isSole, rows.isKnownAbsent(key) {
                counted.answered += 1
                if isVerified(lock) { try verify(rows, key, nil, lock) }
                return nil
            }
            counted.reads += 1
            let found = try engine.row(table, key: key, lock: lock)
            if isSole || lock != .skip {
                learn(found, key, at: place, in: rows).isHeld = lock == .wait
            }
            return found
        }
        slot.isRecent = true
        if isSole || slot.isHeld || slot.isDirty && lock == .none {
            counted.answered += 1
            if isVerified(lock) { try verify(rows, key, current, lock) }
            return current
        }
        counted.reads += 1
        let found = try engine.row(table, key: key, lock: lock)
        if lock == .wait { slot.isHeld = true }
        if slot.isDirty { return current }
        if lock != .skip {
            slot.stored = .some(found)
            rows.set(slot, to: found)
        }
        return found
    }

    public func rows(_ table: Table, _ scan: Scan) throws(StoreError) -> [[ColumnValue]] {
        let engine = try open()
        let rows = rows(of: table)
        if isSole, let answer = rows.answer(scan) ?? rows.consecutive(scan) {
            counted.answered += 1
            if isVerified(scan.lock) { try verify(rows, scan, answer) }
            return answer
        }
        try flush(rows, before: scan)
        counted.scans += 1
        let found = try engine.rows(table, scan)
        guard isSole, found.count <= Self.scanRows else { return found }
        let slots = found.map { row in
            let key = row[..<table.keyCount]
            let place = SortKey(key)
            if let known = rows.slots[place], known.current != nil { return known }
            return learn(row, Array(key), at: place, in: rows)
        }
        if found.count < scan.limit, scan.after == nil, scan.through == nil {
            ranges.add(rows.know(scan, slots))
        }
        return found
    }

    public func hold(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        try open().hold(table, key: key)
    }

    public func put(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        _ = try open()
        assert(table.problem(row: row) == nil, table.problem(row: row) ?? "")
        let rows = rows(of: table)
        let key = row[..<table.keyCount]
        let place = SortKey(key)
        change(rows.slots[place] ?? blank(Array(key), at: place, in: rows), to: row)
    }

    /// A row under a key that is not known is not looked for: the engine refuses a second row.
    public func insert(_ table: Table, _ row: [ColumnValue]) throws(StoreError) {
        _ = try open()
        assert(table.problem(row: row) == nil, table.problem(row: row) ?? "")
        let rows = rows(of: table)
        let key = Array(row[..<table.keyCount])
        let place = SortKey(key)
        let slot = rows.slots[place] ?? blank(key, at: place, in: rows)
        if case .some(.some) = slot.current { throw .conflict("\(table.name)\(key) is there") }
        // One that was deleted without being read may be there: it is replaced.
        if slot.stored == nil, slot.current == nil {
            slot.stored = .some(nil)
            rows.set(slot, to: nil)
        }
        change(slot, to: row)
    }

    public func delete(_ table: Table, key: [ColumnValue]) throws(StoreError) {
        _ = try open()
        assert(table.problem(key: key) == nil, table.problem(key: key) ?? "")
        let rows = rows(of: table)
        let place = SortKey(key)
        change(rows.slots[place] ?? blank(key, at: place, in: rows), to: nil)
    }

    public func lockSequence(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        try open().lockSequence(body)
    }

    public func savepoint(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        let engine = try open()
        let mark = log.count
        depth += 1
        defer { depth -= 1 }
        do throws(StoreError) {
            if depth == 1 { try engine.lockSequence(body) } else { try body() }
        } catch {
            undo(to: mark)
            switch error {
            case .full, .unavailable: failure = failure ?? error
            case .conflict, .corrupt: break
            }
            throw error
        }
        if let failure { throw failure }
    }
}

extension WorkingSet {
    private func isVerified(_ lock: RowLock) -> Bool {
        guard let verifiedEvery else { return false }
        return lock != .none || effort.answered % verifiedEvery == 0
    }

    private func verify(
        _ rows: TableRows, _ key: [ColumnValue], _ answer: Slot.Row, _ lock: RowLock
    ) throws(StoreError) {
        try flush(rows)
        let found = try open().row(rows.table, key: key, lock: lock)
        precondition(
            found == answer,
            "\(rows.table.name)\(key): known \(answer as Any), is \(found as Any)")
    }

    private func verify(
        _ rows: TableRows, _ scan: Scan, _ answer: [[ColumnValue]]
    ) throws(StoreError) {
        try flush(rows)
        let found = try open().rows(rows.table, scan)
        precondition(found == answer, "\(rows.table.name) \(scan): known \(answer), is \(found)")
    }
}
