import EventLoop
import Synchronization

/// A number that only rises. From any thread.
public final class Counter: Sendable {
    private let value = Atomic<UInt64>(0)

    public init() {}

    public func add(_ amount: UInt64 = 1) { value.wrappingAdd(amount, ordering: .relaxed) }
    public var current: UInt64 { value.load(ordering: .relaxed) }
}

/// A number that rises and falls. From any thread.
public final class Gauge: Sendable {
    private let value = Atomic<Int>(0)

    public init() {}

    public func add(_ amount: Int) { value.wrappingAdd(amount, ordering: .relaxed) }
    public func set(_ amount: Int) { value.store(amount, ordering: .relaxed) }
    public var current: Int { value.load(ordering: .relaxed) }
}

/// Counters of one name told apart by label values. From any thread.
public final class CounterFamily: Sendable {
    /// Labels hold only values of closed sets; the limit keeps a mistake from eating memory.
    public static let seriesMax = 1024

    private let lock = Lock()
    private nonisolated(unsafe) var counters: [[String]: Counter] = [:]  // guarded by `lock`

    public init() {}

    /// The counter with these label values; beyond `seriesMax` one shared counter `other`.
    public subscript(_ labels: String...) -> Counter {
        lock.withLock {
            if let counter = counters[labels] { return counter }
            let key =
                counters.count < Self.seriesMax ? labels : labels.map { _ in "other" }
            let counter = counters[key] ?? Counter()
            counters[key] = counter
            return counter
        }
    }

    var series: [(labels: [String], value: UInt64)] {
        let all = lock.withLock { counters }
        return all.map { ($0.key, $0.value.current) }
            .sorted { $0.0.lexicographicallyPrecedes($1.0) }
    }
}

/// Gauges of one name told apart by label values, which are of a closed set. From any thread.
public final class GaugeFamily: Sendable {
    private let lock = Lock()
    private nonisolated(unsafe) var gauges: [[String]: Gauge] = [:]  // guarded by `lock`

    public init() {}

    /// The gauge with these label values; beyond `CounterFamily.seriesMax` one shared `other`.
    public subscript(_ labels: String...) -> Gauge {
        lock.withLock {
            if let gauge = gauges[labels] { return gauge }
            let key =
                gauges.count < CounterFamily.seriesMax ? labels : labels.map { _ in "other" }
            let gauge = gauges[key] ?? Gauge()
            gauges[key] = gauge
            return gauge
        }
    }

    var series: [(labels: [String], value: Int)] {
        let all = lock.withLock { gauges }
        return all.map { ($0.key, $0.value.current) }
            .sorted { $0.0.lexicographicallyPrecedes($1.0) }
    }
}

/// Everything `/metrics` tells, in the text format of Prometheus. Names begin with `rouse_`, or
/// with `process_` where every program has the same; counters end in `_total`, units are seconds
/// and bytes; no label names a user or a device.
public final class Metrics: Sendable {
    fileprivate enum Source: Sendable {
        case counter(Counter)
        case gauge(Gauge)
        case family(CounterFamily, labels: [String])
        case gauges(GaugeFamily, labels: [String])
        case histogram(Histogram)
        case histograms(HistogramFamily, labels: [String])
        case reading(@Sendable () -> Double, isCounter: Bool)
    }

    fileprivate struct Entry: Sendable {
        let name: String
        let help: String
        let source: Source
    }

    private let lock = Lock()
    private nonisolated(unsafe) var entries: [Entry] = []  // guarded by `lock`
    private nonisolated(unsafe) var apps: Set<[UInt8]> = []  // guarded by `lock`
    private let appsMax: Int

    /// Apps that may have series of their own: with three of one histogram each, 300 stay below
    /// `CounterFamily.seriesMax`.
    public static let appsRange = 0...300
    public static let appsDefault = 24

    /// - Parameter appsMax: apps with series of their own; those that come after them share some.
    public init(appsMax: Int = Metrics.appsDefault) {
        self.appsMax = min(max(appsMax, Self.appsRange.lowerBound), Self.appsRange.upperBound)
    }

    /// Whether the app has series of its own: those that come first do, in all metrics.
    func hasOwnSeries(_ app: String) -> Bool {
        lock.withLock {
            let name = Array(app.utf8)
            guard !apps.contains(name) else { return true }
            guard apps.count < appsMax else { return false }
            apps.insert(name)
            return true
        }
    }

    public func counter(_ name: String, _ help: String) -> Counter {
        let counter = Counter()
        add(name, help, .counter(counter))
        return counter
    }

    public func gauge(_ name: String, _ help: String) -> Gauge {
        let gauge = Gauge()
        add(name, help, .gauge(gauge))
        return gauge
    }

    public func counters(_ name: String, _ help: String, labels: [String]) -> CounterFamily {
        let family = CounterFamily()
        add(name, help, .family(family, labels: labels))
        return family
    }

    public func gauges(_ name: String, _ help: String, labels: [String]) -> GaugeFamily {
        let family = GaugeFamily()
        add(name, help, .gauges(family, labels: labels))
        return family
    }

    public func histogram(_ name: String, _ help: String) -> Histogram {
        let histogram = Histogram()
        add(name, help, .histogram(histogram))
        return histogram
    }

    /// Who asks for a name again, to measure another part of the same, gets the same family.
    public func histograms(
        _ name: String, _ help: String, labels: [String]
    ) -> HistogramFamily {
        lock.withLock {
            for entry in entries where entry.name == name {
                guard case .histograms(let family, labels) = entry.source else { continue }
                return family
            }
            let family = HistogramFamily()
            append(Entry(name: name, help: help, source: .histograms(family, labels: labels)))
            return family
        }
    }

    /// A number read when it is asked for; `isCounter`: it only rises.
    public func reading(
        _ name: String, _ help: String, isCounter: Bool = false,
        _ read: @escaping @Sendable () -> Double
    ) {
        add(name, help, .reading(read, isCounter: isCounter))
    }

    private func add(_ name: String, _ help: String, _ source: Source) {
        lock.withLock { append(Entry(name: name, help: help, source: source)) }
    }

    private func append(_ entry: Entry) {
        precondition(!entries.contains { $0.name == entry.name }, "\(entry.name) is taken")
        entries.append(entry)
    }

    /// What one of them stands at: for a page that draws some of them.
    public enum Reading: Equatable, Sendable {
        case number(Double)
        /// In the order of `/metrics`.
        case series([Series])
        /// Observations by bucket, not summed up, the last one above all bounds; and the sum of
        /// all in seconds.
        case distribution(counts: [UInt64], sum: Double)
    }

    /// One of several numbers of a name, with its label values.
    public struct Series: Equatable, Sendable {
        public let labels: [String]
        public let value: Double
    }

    /// What the one of this name stands at; `nil`: there is none.
    public func read(_ name: String) -> Reading? {
        guard let entry = lock.withLock({ entries.first { $0.name == name } }) else { return nil }
        switch entry.source {
        case .counter(let counter): return .number(Double(counter.current))
        case .gauge(let gauge): return .number(Double(gauge.current))
        case .reading(let read, _): return .number(read())
        case .family(let family, _):
            return .series(family.series.map { Series(labels: $0, value: Double($1)) })
        case .gauges(let family, _):
            return .series(family.series.map { Series(labels: $0, value: Double($1)) })
        case .histogram(let histogram):
            let (counts, sum) = histogram.snapshot
            return .distribution(counts: counts, sum: sum)
        case .histograms(let family, _):
            // Of all series together: their bounds are the same.
            var (counts, sum) = Histogram().snapshot
            for (_, histogram) in family.series {
                let one = histogram.snapshot
                counts = zip(counts, one.counts).map { $0 + $1 }
                sum += one.sum
            }
            return .distribution(counts: counts, sum: sum)
        }
    }

    /// The text format, version 0.0.4.
    public var text: String {
        let entries = lock.withLock { self.entries }
        var text = ""
        for entry in entries {
            text += "# HELP \(entry.name) \(entry.help)\n# TYPE \(entry.name) \(entry.type)\n"
            text += entry.lines
        }
        return text
    }
}

extension Metrics.Entry {
    fileprivate var type: String {
        switch source {
        case .counter, .family: "counter"
        case .gauge, .gauges: "gauge"
        case .histogram, .histograms: "histogram"
        case .reading(_, let isCounter): isCounter ? "counter" : "gauge"
        }
    }

    fileprivate var lines: String {
        switch source {
        case .counter(let counter): return "\(name) \(counter.current)\n"
        case .gauge(let gauge): return "\(name) \(gauge.current)\n"
        case .family(let family, let labels):
            return family.series.map { "\(name){\(Self.pairs(labels, $0.labels))} \($0.value)\n" }
                .joined()
        case .gauges(let family, let labels):
            return family.series.map { "\(name){\(Self.pairs(labels, $0.labels))} \($0.value)\n" }
                .joined()
        case .histogram(let histogram): return lines(histogram, "")
        case .histograms(let family, let labels):
            return family.series.map { lines($0.histogram, Self.pairs(labels, $0.labels)) }
                .joined()
        case .reading(let read, _): return "\(name) \(Self.number(read()))\n"
        }
    }

    private func lines(_ histogram: Histogram, _ pairs: String) -> String {
        let (counts, sum) = histogram.snapshot
        let (first, all) = pairs.isEmpty ? ("", "") : ("\(pairs),", "{\(pairs)}")
        var text = ""
        var total: UInt64 = 0
        for (bound, count) in zip(Histogram.secondsBounds, counts) {
            total += count
            text += "\(name)_bucket{\(first)le=\"\(Self.number(bound))\"} \(total)\n"
        }
        total += counts[Histogram.secondsBounds.count]
        text += "\(name)_bucket{\(first)le=\"+Inf\"} \(total)\n"
        return text + "\(name)_sum\(all) \(Self.number(sum))\n\(name)_count\(all) \(total)\n"
    }

    private static func pairs(_ labels: [String], _ values: [String]) -> String {
        zip(labels, values).map { "\($0)=\"\(escaped($1))\"" }.joined(separator: ",")
    }

    private static func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }

    private static func escaped(_ value: String) -> String {
        var text = ""
        for character in value {
            switch character {
            case "\\": text += "\\\\"
            case "\"": text += "\\\""
            case "\n": text += "\\n"
            default: text.append(character)
            }
        }
        return text
    }
}
