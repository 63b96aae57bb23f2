import Model
import Testing

/// Which rows a scan gives and in which order, on every engine.
@Suite struct ScanTests {
    let thing = Sample.thing

    /// The last byte of each row's id.
    private func ids(_ rows: [[ColumnValue]]) -> [UInt8] {
        rows.map { row in
            if case .blob(let id) = row[1] { id.last ?? 0 } else { 0 }
        }
    }

    private func withRows(
        _ engine: EngineFactory, _ rows: [[ColumnValue]],
        _ body: ((Scan) throws -> [UInt8]) throws -> Void
    ) throws {
        try engine.withStore(tables: Sample.tables) { store throws in
            try store.write { transaction throws(StoreError) in
                for row in rows { try transaction.put(thing, row) }
            }
            try body { scan in ids(try store.rows(thing, scan)) }
        }
    }

    @Test("by key: prefix, bounds, both directions, limit", arguments: engines)
    func byKey(_ engine: EngineFactory) throws {
        let rows = [
            Sample.row("a", [1]), Sample.row("a", [2]), Sample.row("a", [3]),
            Sample.row("b", [4]), Sample.row("b", [5]),
        ]
        try withRows(engine, rows.reversed()) { scan throws in
            #expect(try scan(Scan(limit: 9)) == [1, 2, 3, 4, 5])
            #expect(try scan(Scan(descending: true, limit: 9)) == [5, 4, 3, 2, 1])
            #expect(try scan(Scan(limit: 2)) == [1, 2])
            #expect(try scan(Scan(descending: true, limit: 2)) == [5, 4])
            #expect(try scan(Scan(limit: 0)).isEmpty)
            #expect(try scan(Scan(limit: -1)).isEmpty)
            let a = [ColumnValue.text("a")]
            #expect(try scan(Scan(prefix: a, limit: 9)) == [1, 2, 3])
            #expect(try scan(Scan(prefix: a, descending: true, limit: 2)) == [3, 2])
            #expect(try scan(Scan(prefix: a + [.blob([2])], limit: 9)) == [2])
            #expect(try scan(Scan(prefix: [.text("c")], limit: 9)).isEmpty)
            #expect(try scan(Scan(after: a, limit: 9)) == [4, 5])
            #expect(try scan(Scan(after: a + [.blob([2])], limit: 9)) == [3, 4, 5])
            #expect(try scan(Scan(through: a, limit: 9)) == [1, 2, 3])
            #expect(try scan(Scan(through: [.text("b"), .blob([4])], limit: 9)) == [1, 2, 3, 4])
            let between = Scan(
                after: a + [.blob([1])], through: [.text("b"), .blob([4])], limit: 9)
            #expect(try scan(between) == [2, 3, 4])
            var back = between
            back.descending = true
            #expect(try scan(back) == [4, 3, 2])
            #expect(try scan(Scan(prefix: a, after: [.blob([1])], limit: 9)) == [2, 3])
            #expect(
                try scan(Scan(prefix: a, through: [.blob([2])], descending: true, limit: 1))
                    == [2])
            #expect(try scan(Scan(after: [.text("b")], through: a, limit: 9)).isEmpty)
        }
    }

    @Test("ties of an index come in the key's order; paging misses nothing", arguments: engines)
    func ties(_ engine: EngineFactory) throws {
        let rows = (1...30).map { Sample.row("a", [$0], number: Int64($0 % 3)) }
        try withRows(engine, rows.reversed()) { scan throws in
            let a = [ColumnValue.text("a")]
            let index = "thing_by_number"
            #expect(
                try scan(Scan(index: index, prefix: a + [.integer(1)], limit: 99))
                    == (1...30).filter { $0 % 3 == 1 })
            let all = try scan(Scan(index: index, prefix: a, limit: 99))
            #expect(all.count == 30)
            var paged: [UInt8] = []
            while paged.count < 30 {
                let last = paged.last.map { [ColumnValue.integer(Int64($0 % 3)), .blob([$0])] }
                let page = try scan(Scan(index: index, prefix: a, after: last, limit: 7))
                try #require(!page.isEmpty)
                paged += page
            }
            #expect(paged == all)
        }
    }

    @Test("null comes first, and an index of present values leaves it out", arguments: engines)
    func nulls(_ engine: EngineFactory) throws {
        let rows = [
            Sample.row("a", [1], note: "m", due: 7), Sample.row("a", [2]),
            Sample.row("a", [3], note: "", due: Int64.min), Sample.row("a", [4], due: 7),
            Sample.row("a", [5], note: "\u{0}", due: -1),
        ]
        try withRows(engine, rows) { scan throws in
            #expect(try scan(Scan(index: "thing_by_note", limit: 9)) == [2, 4, 3, 5, 1])
            #expect(
                try scan(Scan(index: "thing_by_note", descending: true, limit: 9))
                    == [1, 5, 3, 4, 2])
            #expect(try scan(Scan(index: "thing_by_note", prefix: [.null], limit: 9)) == [2, 4])
            #expect(
                try scan(
                    Scan(
                        index: "thing_by_note", prefix: [.null], after: [.text("a"), .blob([2])],
                        limit: 9)) == [4])
            #expect(
                try scan(Scan(index: "thing_by_note", prefix: [.text("")], limit: 9)) == [3])
            #expect(try scan(Scan(index: "thing_by_due", limit: 9)) == [3, 5, 1, 4])
            #expect(
                try scan(Scan(index: "thing_by_due", through: [.integer(-1)], limit: 9))
                    == [3, 5])
            #expect(
                try scan(Scan(index: "thing_by_due", after: [.integer(-1)], limit: 9)) == [1, 4])
            #expect(try scan(Scan(index: "thing_due_by_number", limit: 9)) == [1, 3, 4, 5])
        }
    }

    @Test("texts sort and compare by their UTF-8 bytes", arguments: engines)
    func textOrder(_ engine: EngineFactory) throws {
        // In byte order; equivalent for Swift: "é" in one and in two scalars. U+FFFD is below
        // U+10000 in UTF-8 and above it in UTF-16.
        let texts = [
            "", "\u{0}", "\u{0}a", "A", "B", "a", "a\u{0}", "a\u{0}b", "ab", "b", "e\u{301}",
            "\u{e9}", "\u{fffd}", "\u{10000}",
        ]
        try engine.withStore(tables: Sample.tables) { store throws in
            try store.write { transaction throws(StoreError) in
                for text in texts.reversed() {
                    try transaction.put(thing, Sample.row(text, [1], note: text))
                }
            }
            let expected = texts.map { Sample.row($0, [1], note: $0) }
            #expect(exact(try store.rows(thing)) == exact(expected))
            let byNote = try store.rows(thing, Scan(index: "thing_by_note", limit: 99))
            #expect(exact(byNote) == exact(expected))
            for (position, text) in texts.enumerated() {
                let one = try store.rows(thing, Scan(prefix: [.text(text)], limit: 9))
                #expect(exact(one) == exact([expected[position]]))
                let after = try store.rows(thing, Scan(after: [.text(text)], limit: 99))
                #expect(exact(after) == exact(Array(expected[(position + 1)...])))
                let through = try store.rows(thing, Scan(through: [.text(text)], limit: 99))
                #expect(exact(through) == exact(Array(expected[...position])))
            }
        }
    }

    @Test("blobs are bytes, integers are 64 bits", arguments: engines)
    func extremes(_ engine: EngineFactory) throws {
        let blobs: [[UInt8]] = [
            [], [0], [0, 0], [0, 1], [0, 0xff], [1], [0x7f], [0x80], [0xff], [0xff, 0],
            [0xff, 0xff],
        ]
        let numbers: [Int64] = [.min, -256, -1, 0, 1, 255, (1 << 53) + 1, .max]
        try engine.withStore(tables: Sample.tables) { store throws in
            try store.write { transaction throws(StoreError) in
                for blob in blobs.reversed() {
                    try transaction.put(thing, Sample.row("b", blob, data: blob))
                }
                for number in numbers.reversed() {
                    try transaction.put(Sample.order, [.integer(number), .text("")])
                }
            }
            let expected = blobs.map { Sample.row("b", $0, data: $0) }
            #expect(exact(try store.rows(thing)) == exact(expected))
            let byData = try store.rows(thing, Scan(index: "thing_by_data", limit: 99))
            #expect(exact(byData) == exact(expected))
            for (position, blob) in blobs.enumerated() {
                let scan = Scan(prefix: [.text("b")], after: [.blob(blob)], limit: 99)
                let after = try store.rows(thing, scan)
                #expect(exact(after) == exact(Array(expected[(position + 1)...])))
            }
            #expect(
                try store.rows(Sample.order) == numbers.map { [.integer($0), .text("")] })
            let large = [UInt8](repeating: 0, count: 1 << 20)
            try store.put(Sample.heap, [.integer(1), .blob(large)])
            let row = try #require(try store.row(Sample.heap, [.integer(1)]))
            #expect(row == [.integer(1), .blob(large)])
        }
    }
}
