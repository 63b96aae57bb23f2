import Model
import Testing

@testable import WorkingSet

/// What is known of rows goes with the transaction, or the set, that knew it.
@Suite struct KnownRowsMemoryTests {
    private static let key: [ColumnValue] = [.text("a"), .blob([1])]
    private static let row = Sample.row("a", [1], number: 1)
    private static let scan = Scan(index: "thing_by_number", prefix: [.text("a")], limit: 9)

    @Test("rows that a working set forgets are freed")
    func workingSet() {
        weak var freed: TableRows?
        do {
            let rows = TableRows(Sample.thing, counting: RangeBytes())
            let place = SortKey(Self.key)
            let slot = Slot(Self.key, at: place, in: rows)
            rows.slots.set(slot)
            rows.set(slot, to: Self.row)
            _ = rows.know(Self.scan, [slot])
            freed = rows
            #expect(freed != nil)
        }
        #expect(freed == nil)
    }

    @Test("rows that were fetched are freed with their transaction")
    func fetched() throws {
        weak var freed: FetchedTable?
        do {
            let floor = LockFloor()
            let rows = FetchedTable(Sample.thing, floor: floor, guardFloor: floor)
            try rows.learn(Self.scan, [Self.row], in: 1)
            #expect(rows.slots.count == 1)
            freed = rows
            #expect(freed != nil)
        }
        #expect(freed == nil)
    }
}
