import Model

/// Delays counted by size, so that a million devices need as much memory as one and threads can
/// be added up in any order. A bucket is at most 1/64 wide, so a quantile is at most 1.6 % high.
struct DelayHistogram: Equatable, Sendable {
    private static let stepBits = 6
    private static let steps = 1 << stepBits
    /// Up to 2^36 ms, which is two years.
    private static let octaves = 31

    private(set) var counts = [UInt64](repeating: 0, count: steps * octaves)
    private(set) var count: UInt64 = 0

    private static func bucket(of delay: Milliseconds) -> Int {
        let delay = min(delay, (1 << UInt64(stepBits + octaves - 1)) - 1)
        guard delay >= steps else { return Int(delay) }
        let octave = 63 - delay.leadingZeroBitCount - stepBits + 1
        return octave * steps + Int(delay >> UInt64(octave - 1)) - steps
    }

    /// The first delay above the bucket.
    private static func end(of bucket: Int) -> Milliseconds {
        guard bucket >= steps else { return UInt64(bucket) + 1 }
        let octave = bucket / steps
        return UInt64(bucket % steps + steps + 1) << UInt64(octave - 1)
    }

    mutating func add(_ delay: Milliseconds) {
        counts[Self.bucket(of: delay)] += 1
        count += 1
    }

    static func += (sum: inout Self, more: Self) {
        for index in sum.counts.indices { sum.counts[index] += more.counts[index] }
        sum.count += more.count
    }

    /// By nearest rank among `total`, of which those that are not counted here have no end;
    /// `nil`: the rank falls among these.
    func quantile(_ share: Double, of total: UInt64) -> Milliseconds? {
        let rank = max(1, UInt64((share * Double(total)).rounded(.up)))
        guard rank <= count else { return nil }
        var seen: UInt64 = 0
        for (index, number) in counts.enumerated() {
            seen += number
            if seen >= rank { return Self.end(of: index) - 1 }
        }
        return nil
    }

    /// How many were within each delay, rising: the points of a curve.
    func cumulative(at delays: [Milliseconds]) -> [UInt64] {
        var found: [UInt64] = []
        var index = 0
        var seen: UInt64 = 0
        for delay in delays {
            while index < counts.count, Self.end(of: index) <= delay + 1 {
                seen += counts[index]
                index += 1
            }
            found.append(seen)
        }
        return found
    }
}
