import Model

/// Every row of a table between two places in the order of an index, or of its key.
final class FetchedRange {
    /// Inclusive.
    let low: SortKey
    /// Exclusive.
    let high: SortKey
    let lock: RowLock
    /// It holds every row whose columns begin as those do under which it is listed.
    let isWhole: Bool
    /// The fetch that gave it.
    let fetched: Int
    private(set) var rows: [(place: SortKey, slot: FetchedSlot)]

    init(
        from low: SortKey, to high: SortKey, lock: RowLock, isWhole: Bool, fetched: Int,
        _ rows: [(place: SortKey, slot: FetchedSlot)]
    ) {
        self.low = low
        self.high = high
        self.lock = lock
        self.isWhole = isWhole
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

    /// - Parameter isListedUnder: the range is listed under the scan's own prefix.
    /// - Returns: `nil` if rows of the scan may lie outside.
    func answer(_ scan: Scan, isListedUnder: Bool) -> [[ColumnValue]]? {
        if scan.limit <= 0 { return [] }
        if isWhole, isListedUnder, !scan.isBounded { return chosen(0, rows.count, of: scan) }
        let (lower, upper) = scan.bounds
        if !(lower < upper) { return [] }
        guard scan.descending ? !(high < upper) : !(lower < low) else { return nil }
        let first = position(notBelow: max(lower, low))
        let end = max(first, position(notBelow: min(upper, high)))
        guard !(lower < low) && !(high < upper) || end - first >= scan.limit else { return nil }
        return chosen(first, end, of: scan)
    }

    /// What the scan takes of the rows from the first of these places to before the other.
    private func chosen(_ first: Int, _ end: Int, of scan: Scan) -> [[ColumnValue]] {
        let count = min(end - first, scan.limit)
        return (0..<count).map { number in
            let position = scan.descending ? end - 1 - number : first + number
            guard let current = rows[position].slot.current, let row = current else {
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

    var isBounded: Bool { after != nil || through != nil }

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

    var hasRanges: Bool { !ranges.isEmpty }

    /// One that tells no more than the new one goes.
    ///
    /// - Parameters:
    ///   - prefix: the place of the columns that all rows of it begin with.
    ///   - length: their number.
    func add(_ range: FetchedRange, under prefix: SortKey, length: Int) {
        lengths.insert(length)
        var listed = ranges[prefix] ?? []
        listed.removeAll {
            $0.lock == range.lock && !($0.low < range.low) && !(range.high < $0.high)
        }
        listed.append(range)
        ranges[prefix] = listed
    }

    func ranges(under prefix: SortKey) -> [FetchedRange] { ranges[prefix] ?? [] }

    /// The first answer that a range with this prefix, or a part of it, gives; the body is told
    /// whether it is the whole prefix.
    func first<Answer>(
        along prefix: [ColumnValue], _ body: (FetchedRange, Bool) -> Answer?
    ) -> Answer? {
        for length in lengths where length <= prefix.count {
            guard let listed = ranges[SortKey(prefix[..<length])] else { continue }
            for range in listed {
                if let answer = body(range, length == prefix.count) { return answer }
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
