import Feed
import FoundationEssentials

/// Microseconds. Each run has percentiles of all its samples; these are the medians of the runs.
public struct BenchTimes: Codable, Equatable, Sendable {
    public let p50: Double
    public let p99: Double
    /// The longest of a run.
    public let worst: Double
    /// The longest of all runs.
    public let worstOfAll: Double

    init(_ runs: [[UInt64]]) {
        let sorted = runs.filter { !$0.isEmpty }.map { $0.sorted() }
        func median(_ share: Double) -> Double {
            let values = sorted.map { run in
                let place = Int((share * Double(run.count)).rounded(.up)) - 1
                return Double(run[min(run.count - 1, max(0, place))]) / 1_000
            }
            return values.median
        }
        p50 = median(0.5)
        p99 = median(0.99)
        worst = median(1)
        worstOfAll = Double(sorted.compactMap(\.last).max() ?? 0) / 1_000
    }
}

extension [Double] {
    /// 0 of none.
    var median: Double {
        let sorted = self.sorted()
        guard let last = sorted.last else { return 0 }
        let middle = sorted.count / 2
        if sorted.count % 2 == 1 { return sorted[middle] }
        return sorted.count > 1 ? (sorted[middle - 1] + sorted[middle]) / 2 : last
    }
}

/// A row of the table.
public struct BenchRow: Codable, Equatable, Sendable {
    public let kind: String
    /// Empty: the request itself; else the duty whose turns followed, or what followed.
    public let part: String
    public let runs: Int
    /// Transactions of all runs, and requests in one.
    public let transactions: Int
    public let group: Int
    /// Which requests were driven, as the server's metrics call them.
    public let requests: [String]
    /// The rows that one request reads: the median of the means of all runs.
    public let rowsRead: Double
    public let rowsWritten: Double
    public let statements: Double?
    public let journalBytes: Double?
    public let processorMicroseconds: Double
    /// The most rows of one transaction, and the most statements.
    public let rowsMost: Int
    public let statementsMost: UInt64?
    /// How long one transaction held the writer until its requests were carried out.
    public let held: BenchTimes
    /// From there until it was on disk.
    public let commit: BenchTimes
    /// The time was up before everything was done.
    public let isCut: Bool

    init(
        _ place: BenchPlace, runs: [[BenchSample]], requests: Set<String>, isCut: Bool
    ) {
        kind = place.kind
        part = place.part
        self.runs = runs.count
        let all = runs.flatMap { $0 }
        transactions = all.count
        group = all.first?.requests ?? 0
        self.requests = requests.sorted()
        func mean(_ value: (BenchSample) -> Double) -> Double {
            runs.filter { !$0.isEmpty }.map { run in
                run.reduce(0) { $0 + value($1) } / Double(run.reduce(0) { $0 + $1.requests })
            }.median
        }
        rowsRead = mean { Double($0.rows.read) }
        rowsWritten = mean { Double($0.rows.written) }
        processorMicroseconds = mean { Double($0.processor) / 1_000 }
        rowsMost = all.map(\.rows.total).max() ?? 0
        let counts = all.contains { $0.statements != nil }
        statements = counts ? mean { Double($0.statements ?? 0) } : nil
        statementsMost = all.compactMap(\.statements).max()
        let hasJournal = all.contains { $0.journal != nil }
        journalBytes = hasJournal ? mean { Double($0.journal ?? 0) } : nil
        held = BenchTimes(runs.map { $0.map(\.held) })
        commit = BenchTimes(runs.map { $0.map(\.commit) })
        self.isCut = isCut
    }
}

/// The row of the table to which a sample belongs.
struct BenchPlace: Hashable {
    let kind: String
    let part: String
}
