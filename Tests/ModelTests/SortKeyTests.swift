import Model
import Testing

/// Keys of many columns and few: whatever stands in one piece and whatever does not, the order is
/// that of the values.
@Suite struct SortKeyTests {
    @Test(
        "keys sort as their values do, of one word and of many",
        arguments: 1...8 as ClosedRange<UInt64>)
    func order(seed: UInt64) {
        var chance = SplitMix64(seed: seed)
        let values = (0..<120).map { _ in Self.values(&chance) }
        for one in values {
            for other in values {
                let (left, right) = (SortKey(one), SortKey(other))
                #expect((left < right) == Self.precedes(one, other), "\(one) \(other)")
                #expect((left == right) == (one == other))
                if one == other { #expect(left.hashValue == right.hashValue) }
                // Two of a few thousand have the same in one of some trillion runs.
                #expect((left.spread == right.spread) == (one == other))
            }
            // Above every key that begins with it.
            #expect(SortKey(one) < SortKey(one, end: .high))
            #expect(SortKey(one + [.blob([255])]) < SortKey(one, end: .high))
        }
    }

    @Test("each byte of a long text counts, wherever it ends in a word")
    func everyByte() {
        for length in 1...90 {
            for before in 0..<8 {
                let bytes = (0..<length).map { UInt8(0x41 + $0 % 50) }
                let blob = ColumnValue.blob(Array(repeating: 1, count: before))
                let key = SortKey([blob, .text(String(decoding: bytes, as: UTF8.self))])
                // The first, the last and some between.
                for place in [0, length / 2, max(0, length - 5), length - 1] {
                    var higher = bytes
                    higher[place] = 0x7a
                    let other = SortKey([blob, .text(String(decoding: higher, as: UTF8.self))])
                    #expect(key < other && key != other && key.spread != other.spread)
                }
            }
        }
    }

    /// Of all lengths around the eight words that a key holds in itself, many with the same
    /// beginning.
    private static func values(_ chance: inout SplitMix64) -> [ColumnValue] {
        (0..<chance.next() % 6).map { _ in
            switch chance.next() % 5 {
            case 0: .integer(Int64(chance.next() % 3) - 1)
            case 1:
                .text(
                    String(repeating: "a", count: Int(chance.next() % 24))
                        + ["", "b", "ab"][Int(chance.next() % 3)])
            case 2:
                .blob(Array(repeating: UInt8(chance.next() % 2), count: Int(chance.next() % 20)))
            // A zero anywhere, behind whole words and within the last one.
            case 3: .blob((0..<chance.next() % 12).map { _ in UInt8(chance.next() % 4) })
            default: .null
            }
        }
    }

    /// What `Scan` says of the order.
    private static func precedes(_ one: [ColumnValue], _ other: [ColumnValue]) -> Bool {
        for (left, right) in zip(one, other) where left != right {
            switch (left, right) {
            case (.integer(let left), .integer(let right)): return left < right
            case (.text(let left), .text(let right)):
                return left.utf8.lexicographicallyPrecedes(right.utf8)
            case (.blob(let left), .blob(let right)): return left.lexicographicallyPrecedes(right)
            default: return rank(left) < rank(right)
            }
        }
        return one.count < other.count
    }

    private static func rank(_ value: ColumnValue) -> Int {
        switch value {
        case .null: 0
        case .integer: 1
        case .text: 2
        case .blob: 3
        }
    }
}
