import EventLoop

/// How long things took, in seconds, in fixed buckets. From any thread: two additions that nobody
/// waits for, and no memory.
public final class Histogram: Sendable {
    public static let secondsBounds: [Double] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
    ]
    /// The most whole milliseconds that a bucket takes; 2.5 ms are 2.
    private static let bounds = secondsBounds.map { UInt64($0 * 1000 + 0.001) }

    /// One a bound, and one for what is above all of them.
    private let counts = (0...Histogram.secondsBounds.count).map { _ in Counter() }
    private let milliseconds = Counter()

    public init() {}

    public func observe(milliseconds: UInt64) {
        let bucket = Self.bounds.firstIndex { milliseconds <= $0 } ?? Self.bounds.count
        counts[bucket].add()
        self.milliseconds.add(milliseconds)
    }

    /// What is observed meanwhile may be in one of the two and not in the other.
    var snapshot: (counts: [UInt64], sum: Double) {
        (counts.map(\.current), Double(milliseconds.current) / 1000)
    }
}

/// Histograms of one name told apart by label values. From any thread; whoever observes often keeps
/// the histogram.
public final class HistogramFamily: Sendable {
    /// Each series is some twenty lines of `/metrics`.
    public static let seriesMax = 96

    private let lock = Lock()
    private nonisolated(unsafe) var histograms: [[String]: Histogram] = [:]  // guarded by `lock`

    public init() {}

    /// The histogram with these label values; beyond `seriesMax` one shared `other`.
    public subscript(_ labels: String...) -> Histogram {
        lock.withLock {
            if let histogram = histograms[labels] { return histogram }
            let key = histograms.count < Self.seriesMax ? labels : labels.map { _ in "other" }
            let histogram = histograms[key] ?? Histogram()
            histograms[key] = histogram
            return histogram
        }
    }

    var series: [(labels: [String], histogram: Histogram)] {
        lock.withLock { histograms }.map { ($0.key, $0.value) }
            .sorted { $0.0.lexicographicallyPrecedes($1.0) }
    }
}
