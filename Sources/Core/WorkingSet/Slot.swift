import Model

/// What is known of one key of a table: its row as the rules see it, and as the engine has it.
final class Slot: Passable, Placed {
    /// `nil`: there is no row under the key.
    typealias Row = [ColumnValue]?

    let place: SortKey
    unowned let table: TableRows
    /// The key, while no row holds it.
    private var rowlessKey: [ColumnValue]
    /// `nil`: not known. Only a row written without being read is unknown in `stored`.
    var stored: Row?
    /// What a read gives; `nil` after a savepoint took back a row that had not been read.
    private(set) var current: Row?
    /// `current` is to be written to the engine.
    var isDirty = false
    /// An engine with more than one writer holds the row for this transaction.
    var isHeld = false
    /// It was asked for since the clock's hand last passed.
    var isRecent = true
    /// An estimate of its bytes, as it was counted.
    var weight = 0

    init(_ key: [ColumnValue], at place: SortKey, in table: TableRows) {
        rowlessKey = key
        self.place = place
        self.table = table
    }

    var isGone: Bool { current == nil }

    /// The values of the key. While there is a row they are its first columns, and are not kept a
    /// second time.
    var key: [ColumnValue] {
        guard let current, let row = current else { return rowlessKey }
        return Array(row[..<table.table.keyCount])
    }

    /// From now on a read gives this row, or that there is none.
    func become(_ row: Row) {
        let key = row == nil ? key : []
        current = .some(row)
        rowlessKey = key
    }

    /// From now on nothing is known of the row: a read asks the engine.
    func becomeUnknown() {
        rowlessKey = key
        current = nil
    }

    /// What the slot takes: itself and its place in the tables, and both rows where they differ.
    func weigh() -> Int {
        var bytes = rowlessKey.isEmpty ? 224 : 256 + 24 * rowlessKey.count
        if let current, let row = current { bytes += Self.bytes(of: row) }
        if isDirty, let stored, let row = stored { bytes += Self.bytes(of: row) }
        return bytes
    }

    private static func bytes(of row: [ColumnValue]) -> Int {
        row.reduce(32) { sum, value in
            switch value {
            case .null, .integer: sum + 24
            case .text(let text): sum + 24 + (text.utf8.count > 15 ? 32 + text.utf8.count : 0)
            case .blob(let bytes): sum + 24 + (bytes.isEmpty ? 0 : 32 + bytes.count)
            }
        }
    }
}

/// What all known ranges of a working set take, in bytes: an estimate, without their rows' slots.
final class RangeBytes {
    fileprivate(set) var total = 0
}

/// All rows of a table whose first columns, in the order of an index, are certain values: a scan
/// of them needs no engine.
final class KnownRange: Passable, Placed {
    /// A row's place and slot.
    private static let rowBytes = 96

    /// The prefix under which all rows are known.
    let place: SortKey
    /// The number of columns of the prefix.
    let length: Int
    unowned let order: RangeOrder
    /// In the index's order.
    private(set) var rows: [(place: SortKey, slot: Slot)]
    var isRecent = true
    private(set) var isGone = false
    private let bytes: RangeBytes

    init(
        _ prefix: SortKey, _ length: Int, in order: RangeOrder,
        _ rows: [(place: SortKey, slot: Slot)], counted bytes: RangeBytes
    ) {
        place = prefix
        self.length = length
        self.order = order
        self.rows = rows
        self.bytes = bytes
        bytes.total += rows.count * Self.rowBytes
    }

    /// It stands for nothing any more. The clock holds it until its hand comes by: its rows, which
    /// may have gone themselves, are let go of now.
    func end() {
        isGone = true
        bytes.total -= rows.count * Self.rowBytes
        rows = []
    }

    private func position(notBelow place: SortKey) -> Int {
        var (low, high) = (0, rows.count)
        while low < high {
            let middle = (low + high) / 2
            if rows[middle].place < place { low = middle + 1 } else { high = middle }
        }
        return low
    }

    func insert(_ slot: Slot, at place: SortKey) {
        let position = position(notBelow: place)
        if position < rows.count, rows[position].place == place {
            rows[position].slot = slot
        } else {
            rows.insert((place, slot), at: position)
            bytes.total += Self.rowBytes
        }
    }

    func remove(_ place: SortKey) {
        let position = position(notBelow: place)
        guard position < rows.count, rows[position].place == place else { return }
        rows.remove(at: position)
        bytes.total -= Self.rowBytes
    }

    private func bounds(of scan: Scan) -> (first: Int, end: Int) {
        if scan.after == nil, scan.through == nil, scan.prefix.count == length {
            return (0, rows.count)
        }
        let lower =
            scan.after.map { SortKey(scan.prefix + $0, end: .high) } ?? SortKey(scan.prefix)
        let upper = SortKey(scan.prefix + (scan.through ?? []), end: .high)
        let first = position(notBelow: lower)
        return (first, max(first, position(notBelow: upper)))
    }

    func answer(_ scan: Scan) -> [[ColumnValue]] {
        guard scan.limit > 0 else { return [] }
        let (first, end) = bounds(of: scan)
        let count = min(end - first, scan.limit)
        let chosen =
            scan.descending
            ? Array(rows[(end - count)..<end].reversed())
            : Array(rows[first..<(first + count)])
        return chosen.map { found in
            found.slot.isRecent = true
            guard let current = found.slot.current, let row = current else {
                preconditionFailure("a known range holds a row that is not there")
            }
            return row
        }
    }
}

/// The known ranges of a table in the order of one of its indexes, or of its key.
final class RangeOrder {
    /// Columns by which the index sorts.
    let columns: [Int]
    /// Rows without a value here are not in the index.
    let presentColumn: Int?
    let ranges = PartedMap<KnownRange>()
    /// Numbers of columns that prefixes of `ranges` have, and how many have that number.
    private(set) var lengths: [Int: Int] = [:]

    init(columns: [Int], presentColumn: Int?) {
        self.columns = columns
        self.presentColumn = presentColumn
    }

    func add(_ range: KnownRange) {
        let before = ranges.set(range)
        lengths[range.length, default: 0] += 1
        if let before { leave(before) }
    }

    func remove(_ prefix: SortKey) {
        if let range = ranges.remove(prefix) { leave(range) }
    }

    private func leave(_ range: KnownRange) {
        range.end()
        let left = (lengths[range.length] ?? 1) - 1
        lengths[range.length] = left == 0 ? nil : left
    }

    /// The known range that holds everything under the prefix.
    func range(holding prefix: [ColumnValue]) -> KnownRange? {
        for length in lengths.keys where length <= prefix.count {
            if let found = ranges[SortKey(prefix[..<length])] { return found }
        }
        return nil
    }

    func isIndexed(_ row: [ColumnValue]) -> Bool {
        presentColumn.map { row[$0] != .null } ?? true
    }

    func place(of row: [ColumnValue]) -> SortKey { SortKey(columns[...], of: row) }

    /// Each known range that holds the row, or would.
    func eachRange(holding row: [ColumnValue], _ body: (KnownRange) -> Void) {
        guard !ranges.isEmpty, isIndexed(row) else { return }
        for length in Array(lengths.keys) {
            if let found = ranges[SortKey(columns[..<length], of: row)] { body(found) }
        }
    }

    /// Whether the index has both rows at one place.
    func isSame(_ one: [ColumnValue], _ other: [ColumnValue]) -> Bool {
        isIndexed(one) == isIndexed(other) && columns.allSatisfy { one[$0] == other[$0] }
    }
}
