import Model
import Wire

/// Positions of a conversation: all up to `through`, and ranges above it, sorted, apart by at
/// least one. Only grows, by maximum and union, so the order of reports does not matter.
struct PositionSet: Equatable {
    private(set) var through: UInt64
    private(set) var ranges: [InclusiveRange]

    init() {
        through = 0
        ranges = []
    }

    /// Every position there can be.
    static var everything: PositionSet {
        var set = PositionSet()
        set.through = .max
        return set
    }

    /// Reads what `rangeBytes` wrote; `nil` if the bytes are not pairs.
    init?(through: UInt64, rangeBytes: [UInt8]) {
        guard rangeBytes.count % 16 == 0 else { return nil }
        self.through = through
        ranges = []
        var start = 0
        while start < rangeBytes.count {
            guard let pair = Identifier<Never>(rangeBytes[start..<start + 16]) else { return nil }
            ranges.append(InclusiveRange(first: pair.high, last: pair.low))
            start += 16
        }
    }

    /// Pairs of positions, 8 bytes each, most significant first.
    var rangeBytes: [UInt8] {
        ranges.flatMap { Identifier<Never>(high: $0.first, low: $0.last).bytes }
    }

    func contains(_ position: UInt64) -> Bool {
        position <= through || ranges.contains { $0.first <= position && position <= $0.last }
    }

    /// Up to where there is no gap for one who sees positions above `joined` only: none of the
    /// others is read or delivered by that.
    func through(whereSeenAbove joined: UInt64) -> UInt64 {
        guard through < joined else { return through }
        let beside = ranges.first { $0.first <= joined + 1 && $0.last > joined }
        return beside?.last ?? through
    }

    /// Adds what is at or below `limit`, the newest position there is: nothing counts as read
    /// before it was sent. Keeps the highest `rangesMax` ranges.
    mutating func add(
        through report: UInt64, ranges reported: [InclusiveRange], limit: UInt64, rangesMax: Int
    ) {
        through = max(through, min(report, limit))
        var all = ranges
        for range in reported where range.first <= range.last && range.first <= limit {
            all.append(
                InclusiveRange(first: max(range.first, 1), last: min(range.last, limit)))
        }
        all.sort { ($0.first, $0.last) < ($1.first, $1.last) }
        ranges = []
        for range in all where range.last > through {
            // Positions are below UInt64.max: they count a conversation's messages.
            if range.first <= through + 1 {
                through = range.last
            } else if let last = ranges.last, range.first <= last.last + 1 {
                ranges[ranges.count - 1].last = max(last.last, range.last)
            } else {
                ranges.append(range)
            }
        }
        if ranges.count > rangesMax { ranges.removeFirst(ranges.count - rangesMax) }
    }
}
