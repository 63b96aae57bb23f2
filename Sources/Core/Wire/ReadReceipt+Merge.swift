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
        let all = (ranges + other.ranges).filter { $0.first <= $0.last }
            .sorted { ($0.first, $0.last) < ($1.first, $1.last) }
        ranges = []
        for range in all where range.last > through {
            if range.first <= through || range.first - through == 1 {
                through = range.last
            } else if let last = ranges.last,
                range.first <= last.last || range.first - last.last == 1
            {
                ranges[ranges.count - 1].last = max(last.last, range.last)
            } else {
                ranges.append(range)
            }
        }
        ranges.removeFirst(max(0, ranges.count - Self.rangesMax))
    }
}
