import Model

/// What a transaction that fetches knows of one table.
///
/// Invariant: a known range holds exactly the slots whose current row stands in it.
final class FetchedTable {
    let table: Table
    private(set) var slots: [SortKey: FetchedSlot] = [:]
    /// Slots that were changed, in the order of their first change; some may be as they were.
    var changed: [FetchedSlot] = []
    /// Scans, without their limits, that met rows which another transaction holds.
    var busyScans: Set<Scan> = []
    /// Of locks of this table's own rows.
    let floor: LockFloor
    /// Of the locks that protect its rows.
    let guardFloor: LockFloor
    /// Each of two guards protects columns of its own: a row that this transaction has changed
    /// may still get other values from others.
    let isShared: Bool
    /// A row of another table that protects one of this: that table, and the columns of this one
    /// with its key.
    typealias Holder = (rows: FetchedTable, columns: [Int])
    /// Nobody else writes a row while all of these are held; none: that is not known.
    private let holders: [Holder]
    private let key: FetchedOrder
    private let indexes: [String: FetchedOrder]
    /// Of `key` and `indexes` those in which something is known.
    private var ordersWithRanges: [FetchedOrder] = []

    init(
        _ table: Table, floor: LockFloor, guardFloor: LockFloor, isShared: Bool = false,
        holders: [Holder] = []
    ) {
        self.table = table
        self.floor = floor
        self.guardFloor = guardFloor
        self.isShared = isShared
        self.holders = holders
        key = FetchedOrder(columns: table.order(of: nil), presentColumn: nil, isKey: true)
        indexes = Dictionary(
            uniqueKeysWithValues: table.indexes.map {
                (
                    $0.name,
                    FetchedOrder(
                        columns: table.order(of: $0.name), presentColumn: $0.presentColumn)
                )
            })
    }

    private func order(_ index: String?) -> FetchedOrder {
        guard let index else { return key }
        guard let found = indexes[index] else {
            preconditionFailure("\(table.name): no index \(index)")
        }
        return found
    }

    func slot(_ key: [ColumnValue]) -> FetchedSlot { slot(key, at: SortKey(key)) }

    /// - Parameter place: the key's.
    func slot(_ key: [ColumnValue], at place: SortKey) -> FetchedSlot {
        if let known = slots[place] { return known }
        let made = FetchedSlot(key, at: place, in: self)
        slots[place] = made
        return made
    }

    /// Gives the slot another row, or none that is known, and brings the ranges in step.
    func set(_ slot: FetchedSlot, to row: FetchedSlot.Row?) {
        let before = slot.current ?? nil
        slot.current = row
        let after = row ?? nil
        if before == nil, after == nil { return }
        for order in ordersWithRanges { order.move(slot, from: before, to: after) }
    }

    /// Whether the slot's row is good for the request at work, which has taken some locks.
    func isFresh(_ slot: FetchedSlot) -> Bool {
        if slot.fetched >= guardFloor.fetch { return true }
        // Nobody else can have written these since.
        if slot.isDirty, !isShared { return true }
        if slot.isHeld, guardFloor === floor { return true }
        return isProtected(slot.key, in: key, since: slot.fetched)
    }

    /// Whether a range that is good for the request at work shows that there is no such row.
    ///
    /// - Parameter place: the key's.
    func isKnownAbsent(_ key: [ColumnValue], at place: SortKey) -> Bool {
        self.key.first(along: key) { range, _ in
            range.lock != .skip && range.contains(place)
                && isFresh(range, under: key, in: self.key) ? true : nil
        } ?? false
    }

    /// What is known of a scan from a range that is good for the request at work, and locked as
    /// it asks.
    func answer(_ scan: Scan) -> (rows: [[ColumnValue]], fetched: Int)? {
        let order = order(scan.index)
        return order.first(along: scan.prefix) { range, isListedUnder in
            let isFit =
                scan.lock == .none ? range.lock != .skip : range.lock == scan.lock
            guard isFit, isFresh(range, under: scan.prefix, in: order),
                let rows = range.answer(scan, isListedUnder: isListedUnder)
            else { return nil }
            return (rows, range.fetched)
        }
    }

    private func isFresh(
        _ range: FetchedRange, under prefix: [ColumnValue], in order: FetchedOrder
    ) -> Bool {
        range.fetched >= guardFloor.fetch
            || isProtected(prefix, in: order, since: range.fetched)
    }

    /// Whether the rows whose columns in this order begin with certain values have had their guards
    /// held since this fetch, or an earlier one: nobody else can have written them.
    private func isProtected(
        _ prefix: [ColumnValue], in order: FetchedOrder, since fetch: Int
    ) -> Bool {
        if holders.isEmpty { return false }
        return holders.allSatisfy { holder in
            var key: [ColumnValue] = []
            for column in holder.columns {
                guard let position = order.columns.firstIndex(of: column),
                    position < prefix.count
                else { return false }
                key.append(prefix[position])
            }
            return holder.rows.slots[SortKey(key)]?.held(.wait).map { $0 <= fetch } ?? false
        }
    }

    // MARK: What was fetched

    /// - Throws: `.conflict`: this transaction has written what another was first with.
    @discardableResult
    func learn(
        _ key: [ColumnValue], _ row: FetchedSlot.Row, lock: RowLock, in fetch: Int
    ) throws(StoreError) -> FetchedSlot {
        let slot = slot(key)
        if lock == .skip, row == nil {
            // Another transaction may hold it: nothing is known of it.
            slot.isPassedOver = true
            return slot
        }
        if lock != .none {
            slot.isBusy = false
            slot.hold(lock, since: fetch)
        }
        try learn(row, of: slot, in: fetch)
        return slot
    }

    private func learn(
        _ row: FetchedSlot.Row, of slot: FetchedSlot, in fetch: Int
    ) throws(StoreError) {
        var seen = row
        if slot.isDirty, let written = slot.current {
            let wasAbsent = slot.intent == .inserted || slot.stored == .some(nil)
            let wasThere = slot.stored.map { $0 != nil } ?? false
            if written != nil, row == nil ? wasThere : wasAbsent {
                throw .conflict("\(table.name)\(slot.key): another transaction was first")
            }
            seen = FetchedSlot.rebased(written, from: slot.stored, onto: .some(row))
        }
        slot.fetched = fetch
        slot.stored = .some(row)
        set(slot, to: .some(seen))
    }

    /// - Parameter scan: as it was fetched.
    func learn(
        _ scan: Scan, _ rows: [[ColumnValue]], in fetch: Int
    ) throws(StoreError) {
        let order = order(scan.index)
        var found: [FetchedSlot] = []
        for row in rows {
            let key = Array(row[..<table.keyCount])
            found.append(try learn(key, row, lock: scan.lock, in: fetch))
        }
        let (prefix, end) = (SortKey(scan.prefix), SortKey(scan.prefix, end: .high))
        var (low, high) = scan.isBounded ? scan.bounds : (prefix, end)
        var isWhole = !scan.isBounded
        if rows.count >= scan.limit {
            isWhole = false
            // There may be more behind the last one.
            guard let last = rows.last else { return }
            let values = order.columns.map { last[$0] }
            if scan.descending { low = SortKey(values) } else { high = SortKey(values, end: .high) }
        }
        guard low < high else { return }
        let known = scan.lock == .skip ? [] : order.ranges(under: prefix)
        var others: [FetchedSlot] = []
        if !known.isEmpty || !changed.isEmpty {
            let given = Set(found.map(ObjectIdentifier.init))
            forgetVanished(known, from: low, to: high, but: given)
            others = changed.filter { $0.isDirty && !given.contains(ObjectIdentifier($0)) }
        }
        let range = FetchedRange(
            from: low, to: high, lock: scan.lock, isWhole: isWhole, fetched: fetch,
            content(
                order, found + others, from: max(low, prefix), to: min(high, end)))
        if !order.hasRanges { ordersWithRanges.append(order) }
        order.add(range, under: prefix, length: scan.prefix.count)
    }

    /// Rows that an earlier fetch gave, and this one not: another transaction took them away.
    private func forgetVanished(
        _ ranges: [FetchedRange], from low: SortKey, to high: SortKey,
        but found: Set<ObjectIdentifier>
    ) {
        var gone: [FetchedSlot] = []
        for range in ranges {
            for (place, slot) in range.rows
            where !(place < low) && place < high && !slot.isDirty && !slot.isHeld
                && !found.contains(ObjectIdentifier(slot))
            {
                gone.append(slot)
            }
        }
        for slot in gone {
            slot.stored = nil
            set(slot, to: nil)
        }
    }

    /// What the transaction sees in the range, of what was fetched and what it has changed itself.
    private func content(
        _ order: FetchedOrder, _ slots: [FetchedSlot], from low: SortKey, to high: SortKey
    ) -> [(place: SortKey, slot: FetchedSlot)] {
        var content: [(place: SortKey, slot: FetchedSlot)] = []
        for slot in slots {
            guard let current = slot.current, let row = current,
                let place = order.place(of: slot, with: row), !(place < low), place < high
            else { continue }
            content.append((place, slot))
        }
        if content.count > 1 { content.sort { $0.place < $1.place } }
        return content
    }

    /// How many changed rows the scan may give as they were: so many more are fetched, so that
    /// enough are left.
    func slack(_ scan: Scan) -> Int {
        let columns = order(scan.index).columns
        var count = 0
        for slot in changed where slot.isDirty {
            let isElsewhere = zip(scan.prefix, columns).contains { value, column in
                column < table.keyCount && slot.key[column] != value
            }
            if !isElsewhere { count += 1 }
        }
        return count
    }
}
