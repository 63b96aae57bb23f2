import Model

/// Every row of a table between two places in the order of an index, or of its key.
final class FetchedRange {
    /// Inclusive.
    let low: SortKey
    /// Exclusive.
    let high: SortKey
    let lock: RowLock
    /// The fetch that gave it.
    let fetched: Int
    private(set) var rows: [(place: SortKey, slot: FetchedSlot)]

    init(
        from low: SortKey, to high: SortKey, lock: RowLock, fetched: Int,
        _ rows: [(place: SortKey, slot: FetchedSlot)]
    ) {
        self.low = low
        self.high = high
        self.lock = lock
        self.fetched = fetched
        self.rows = rows
    }

    func contains(_ place: SortKey) -> Bool { !(place < low) && place < high }

    private func position(notBelow place: SortKey) -> Int {
        var (first, end) = (0, rows.count)
        while first < end {
            let middle = (first + end) / 2
            if rows[middle].place < place { first = middle + 1 } else { end = middle }
        }
        return first
    }

    func insert(_ slot: FetchedSlot, at place: SortKey) {
        let position = position(notBelow: place)
        if position < rows.count, rows[position].place == place {
            rows[position].slot = slot
        } else {
            rows.insert((place, slot), at: position)
        }
    }

    func remove(_ place: SortKey) {
        let position = position(notBelow: place)
        guard position < rows.count, rows[position].place == place else { return }
        rows.remove(at: position)
    }

    /// - Returns: `nil` if rows of the scan may lie outside.
    func answer(_ scan: Scan) -> [[ColumnValue]]? {
        let (lower, upper) = scan.bounds
        if scan.limit <= 0 || !(lower < upper) { return [] }
        guard scan.descending ? !(high < upper) : !(lower < low) else { return nil }
        let first = position(notBelow: max(lower, low))
        let end = max(first, position(notBelow: min(upper, high)))
        let isWhole = !(lower < low) && !(high < upper)
        guard isWhole || end - first >= scan.limit else { return nil }
        let count = min(end - first, scan.limit)
        let chosen =
            scan.descending
            ? Array(rows[(end - count)..<end].reversed()) : Array(rows[first..<(first + count)])
        return chosen.map { found in
            guard let current = found.slot.current, let row = current else {
                preconditionFailure("a range holds a row that is not there")
            }
            return row
        }
    }
}

extension Scan {
    var unlimited: Scan {
        var scan = self
        scan.limit = .max
        return scan
    }

    /// The places that it takes, the upper one exclusive.
    var bounds: (lower: SortKey, upper: SortKey) {
        (
            after.map { SortKey(prefix + $0, end: .high) } ?? SortKey(prefix),
            SortKey(prefix + (through ?? []), end: .high)
        )
    }
}

/// The known ranges of a table in the order of one of its indexes, or of its key.
final class FetchedOrder {
    let columns: [Int]
    /// Rows without a value here are not in the index.
    let presentColumn: Int?
    /// It is that of the key.
    private let isKey: Bool
    private var ranges: [SortKey: [FetchedRange]] = [:]
    /// Numbers of columns that prefixes of `ranges` have.
    private var lengths: Set<Int> = []

    init(columns: [Int], presentColumn: Int?, isKey: Bool = false) {
        self.columns = columns
        self.presentColumn = presentColumn
        self.isKey = isKey
    }

    /// One that tells no more than the new one goes.
    func add(_ range: FetchedRange, prefix: [ColumnValue]) {
        lengths.insert(prefix.count)
        ranges[SortKey(prefix), default: []].removeAll {
            $0.lock == range.lock && !($0.low < range.low) && !(range.high < $0.high)
        }
        ranges[SortKey(prefix), default: []].append(range)
    }

    func ranges(under prefix: [ColumnValue]) -> [FetchedRange] {
        ranges[SortKey(prefix)] ?? []
    }

    /// The first answer that a range with this prefix, or a part of it, gives.
    func first<Answer>(
        along prefix: [ColumnValue], _ body: (FetchedRange) -> Answer?
    ) -> Answer? {
        for length in lengths where length <= prefix.count {
            for range in ranges[SortKey(prefix[..<length])] ?? [] {
                if let answer = body(range) { return answer }
            }
        }
        return nil
    }

    /// Where the slot stands with this row; `nil`: the index leaves it out.
    func place(of slot: FetchedSlot, with row: [ColumnValue]) -> SortKey? {
        if isKey { return slot.place }
        if let presentColumn, row[presentColumn] == .null { return nil }
        return SortKey(columns[...], of: row)
    }

    private func eachRange(
        of slot: FetchedSlot, with row: [ColumnValue], _ body: (FetchedRange, SortKey) -> Void
    ) {
        guard !ranges.isEmpty else { return }
        for length in lengths {
            // Most rows stand under none of them.
            guard let under = ranges[SortKey(columns[..<length], of: row)] else { continue }
            guard let place = place(of: slot, with: row) else { return }
            for range in under where range.contains(place) { body(range, place) }
        }
    }

    func move(_ slot: FetchedSlot, from before: FetchedSlot.Row, to after: FetchedSlot.Row) {
        if let before { eachRange(of: slot, with: before) { $0.remove($1) } }
        if let after { eachRange(of: slot, with: after) { $0.insert(slot, at: $1) } }
    }
}
