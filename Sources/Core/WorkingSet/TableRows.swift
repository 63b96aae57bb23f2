import Model

/// What a working set knows of one table.
///
/// Invariant: a row that a known range holds has a slot; a slot that goes takes every range with
/// it that holds its row. So a key without a slot has no row in any known range.
final class TableRows {
    let table: Table
    let slots = PartedMap<Slot>()
    /// Slots to be written, in the order in which they were first changed.
    var dirty: [Slot] = []
    /// Rows that a known range may have: one that grows past it is not kept.
    private static let rangeRows = 1_024
    /// Numbers that are looked for one by one in place of a scan.
    private static let numbersMax: Int64 = 8
    private let key: RangeOrder
    private let indexes: [String: RangeOrder]
    private let rangeBytes: RangeBytes

    init(_ table: Table, counting rangeBytes: RangeBytes) {
        self.table = table
        self.rangeBytes = rangeBytes
        key = RangeOrder(columns: table.order(of: nil), presentColumn: nil)
        indexes = Dictionary(
            uniqueKeysWithValues: table.indexes.map {
                (
                    $0.name,
                    RangeOrder(
                        columns: table.order(of: $0.name), presentColumn: $0.presentColumn)
                )
            })
    }

    private func order(_ index: String?) -> RangeOrder {
        guard let index else { return key }
        guard let found = indexes[index] else {
            preconditionFailure("\(table.name): no index \(index)")
        }
        return found
    }

    private func eachOrder(_ body: (RangeOrder) -> Void) {
        body(key)
        for order in indexes.values { body(order) }
    }

    /// Gives the slot another row and brings the known ranges in step.
    func set(_ slot: Slot, to row: Slot.Row) {
        let before = slot.current ?? nil
        slot.become(row)
        move(slot, from: before, to: row)
    }

    private func move(_ slot: Slot, from before: Slot.Row, to after: Slot.Row) {
        if before == nil, after == nil { return }
        eachOrder { order in
            guard !order.ranges.isEmpty else { return }
            if let before, let after, order.isSame(before, after) { return }
            if let before {
                order.eachRange(holding: before) { $0.remove(order.place(of: before)) }
            }
            if let after {
                order.eachRange(holding: after) { range in
                    range.insert(slot, at: order.place(of: after))
                    if range.rows.count > Self.rangeRows { order.remove(range.place) }
                }
            }
        }
    }

    /// Nothing is known of the key any more.
    func forget(_ slot: Slot) {
        guard slots[slot.place] === slot else { return }
        slots.remove(slot.place)
        guard let current = slot.current, let row = current else { return }
        eachOrder { order in
            order.eachRange(holding: row) { order.remove($0.place) }
        }
    }

    /// The slot's row is not known any more: it was written without being read, and that was
    /// taken back.
    func unset(_ slot: Slot) {
        move(slot, from: slot.current ?? nil, to: nil)
        slot.becomeUnknown()
        slots.remove(slot.place)
    }

    /// Whether a known range shows that there is no row under a key that has no slot.
    func isKnownAbsent(_ key: [ColumnValue]) -> Bool { self.key.range(holding: key) != nil }

    /// The rows of a scan over a few numbers, each of which is known: what was just appended.
    ///
    /// - Returns: `nil`: the scan is not of that kind, or one of them is not known.
    func consecutive(_ scan: Scan) -> [[ColumnValue]]? {
        guard scan.index == nil, !scan.descending, scan.prefix.count == table.keyCount - 1,
            case .integer(let after)? = scan.after?.first, scan.after?.count == 1,
            case .integer(let through)? = scan.through?.first, scan.through?.count == 1,
            after < through, through.subtractingReportingOverflow(after).overflow == false,
            through - after <= min(Self.numbersMax, Int64(clamping: scan.limit))
        else { return nil }
        var found: [[ColumnValue]] = []
        for number in (after + 1)...through {
            guard let slot = slots[SortKey(scan.prefix + [.integer(number)])],
                let current = slot.current
            else { return nil }
            slot.isRecent = true
            if let row = current { found.append(row) }
        }
        return found
    }

    func answer(_ scan: Scan) -> [[ColumnValue]]? {
        guard let range = order(scan.index).range(holding: scan.prefix) else { return nil }
        range.isRecent = true
        return range.answer(scan)
    }

    /// - Parameter rows: the slots of all rows under the prefix.
    func know(_ scan: Scan, _ slots: [Slot]) -> KnownRange {
        let order = order(scan.index)
        let rows = slots.map { slot in
            guard let current = slot.current, let row = current else {
                preconditionFailure("\(table.name): a scan gave a row that is not there")
            }
            return (place: order.place(of: row), slot: slot)
        }
        let sorted = scan.descending ? rows.reversed() : rows
        let range = KnownRange(
            SortKey(scan.prefix), scan.prefix.count, in: order, sorted, counted: rangeBytes)
        order.add(range)
        return range
    }

    /// Whether a scan may give the slot's row as it was or is: no column of its key says that
    /// it does not.
    func mayHold(_ slot: Slot, _ scan: Scan) -> Bool {
        for (value, column) in zip(scan.prefix, order(scan.index).columns)
        where column < table.keyCount && slot.key[column] != value {
            return false
        }
        return true
    }
}
