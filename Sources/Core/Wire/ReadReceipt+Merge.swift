extension ReadReceipt {
    /// The most ranges of a receipt, and of what is kept of one conversation (MSG-17).
    public static let rangesMax = 256

    /// The same, with its ranges as `merge` keeps them.
    public var normalized: ReadReceipt {
        var receipt = self
        receipt.merge(self)
        return receipt
    }

    /// Maximum and union (MSG-18). Ranges that meet are one, and the highest `rangesMax` are kept,
    /// as the server keeps them.
    public mutating func merge(_ other: ReadReceipt) {
        through = max(through, other.through)
        ranges = (ranges + other.ranges).joined.filter { $0.last > through }
        // The others are apart from it.
        if let lowest = ranges.first, lowest.first <= through || lowest.first - through == 1 {
            through = lowest.last
            ranges.removeFirst()
        }
        ranges.removeFirst(max(0, ranges.count - Self.rangesMax))
    }
}

extension [InclusiveRange] {
    /// The same numbers, ascending and each once: ranges that meet are one, and ranges that end
    /// before they begin are left out.
    public var joined: [InclusiveRange] {
        var joined: [InclusiveRange] = []
        for range in filter({ $0.first <= $0.last }).sorted(by: { $0.first < $1.first }) {
            if let last = joined.last, range.first == 0 || range.first - 1 <= last.last {
                joined[joined.count - 1].last = Swift.max(last.last, range.last)
            } else {
                joined.append(range)
            }
        }
        return joined
    }
}
