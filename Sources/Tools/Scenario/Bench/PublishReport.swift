import FoundationEssentials

/// Microseconds. Each run has percentiles of all its publishes; these are the medians of the runs.
public struct PublishTimes: Codable, Equatable, Sendable {
    public let p50: Double
    public let p99: Double
    /// The longest of a run.
    public let worst: Double
    /// The longest of all runs.
    public let worstOfAll: Double

    /// - Parameter runs: nanoseconds; `nil` comes of none.
    init?(_ runs: [[UInt64]]) {
        let sorted = runs.filter { !$0.isEmpty }.map { $0.sorted() }
        guard let longest = sorted.compactMap(\.last).max() else { return nil }
        func median(_ share: Double) -> Double {
            PublishRow.median(
                sorted.map { run in
                    let place = Int((share * Double(run.count)).rounded(.up)) - 1
                    return Double(run[min(run.count - 1, max(0, place))]) / 1_000
                })
        }
        p50 = median(0.5)
        p99 = median(0.99)
        worst = median(1)
        worstOfAll = Double(longest) / 1_000
    }
}

/// A row of the table: what one server did in all runs of a kind. Figures are medians of the runs.
public struct PublishRow: Codable, Equatable, Sendable {
    /// `login`, `closed`, `open`, `fan-out`, `storm`, `idle` or `behind`.
    public let kind: String
    /// `rouse`, `floor`, `mosquitto` or `redis`.
    public let target: String
    /// Publishes always under way, of a closed loop; connections being made, of a login or a
    /// storm.
    public let inFlight: Int?
    /// Publishes begun a second, of an open loop.
    public let rate: Int?
    /// Devices that each message of a fan-out is for, or that are idle.
    public let group: Int?
    /// Entries that each device lacked.
    public let entries: Int?
    public let runs: Int
    /// Logins, or publishes that were answered and delivered, of all runs; of a fan-out, its
    /// deliveries, of devices that were behind, their entries, and of idle ones, the seconds of
    /// each: what is said of one is said of one of these.
    public let count: Int
    public let perSecond: Double
    /// From the moment it was due to the backend's answer; of a login or a storm's reconnect from
    /// dialling to being in sync.
    public let answer: PublishTimes?
    /// From the moment it was due until the device has it.
    public let delivery: PublishTimes?
    /// From there until the last device of a fan-out has it.
    public let last: PublishTimes?
    /// The server's processor time of one, and by its threads.
    public let processorMicroseconds: Double
    public let threads: [String: Double]
    /// This tool's own processor time of one: near to the inverse of the rate of a closed loop, and
    /// it is the tool that is measured.
    public let toolMicroseconds: Double
    /// The bytes that the server caused to be written to disk for one operation.
    public let diskBytes: Double
    /// The server's memory at the end.
    public let residentBytes: Double
    /// By how much the server's memory grew for one login.
    public let residentBytesPerLogin: Double?
    /// The commits of one operation, as the server's metrics tell; rows, statements and bytes of
    /// journal likewise.
    public let commits: Double?
    public let rowsRead: Double?
    public let rowsWritten: Double?
    public let statements: Double?
    public let journalBytes: Double?
    /// Reads that memory did not answer.
    public let engineReads: Double?
    /// Of one transaction; `nil`: the store is a file.
    public let roundTripsPerCommit: Double?
    public let statementsPerCommit: Double?
    /// Not all that began came to its end.
    public let isCut: Bool

    init(
        kind: String, target: String, inFlight: Int? = nil, rate: Int? = nil,
        group: Int? = nil, entries: Int? = nil, measures: [PublishMeasure]
    ) {
        self.kind = kind
        self.target = target
        self.inFlight = inFlight
        self.rate = rate
        self.group = group
        self.entries = entries
        runs = measures.count
        count = measures.reduce(0) { $0 + $1.outcome.done }
        func ofOne(_ value: (PublishMeasure) -> Double) -> Double {
            Self.median(
                measures.filter { $0.outcome.done > 0 }
                    .map { value($0) / Double($0.outcome.done) })
        }
        func told(_ name: String) -> Double? {
            guard measures.contains(where: { $0.metrics[name] != nil }) else { return nil }
            return ofOne { $0.metrics[name] ?? 0 }
        }
        perSecond = Self.median(
            measures.map { Double($0.outcome.done) * 1e9 / Double(max(1, $0.outcome.nanoseconds)) })
        answer = PublishTimes(measures.map(\.outcome.answers))
        delivery = PublishTimes(measures.map(\.outcome.deliveries))
        last = PublishTimes(measures.map(\.outcome.lasts))
        processorMicroseconds = ofOne { Double($0.use.nanoseconds) / 1_000 }
        var threads: [String: Double] = [:]
        for name in Set(measures.flatMap { $0.use.threads.keys }) {
            let used = ofOne { Double($0.use.threads[name] ?? 0) / 1_000 }
            if used > 0 { threads[name] = used }
        }
        self.threads = threads
        toolMicroseconds = ofOne { Double($0.toolNanoseconds) / 1_000 }
        diskBytes = ofOne { Double($0.use.diskBytes) }
        residentBytes = Self.median(measures.map { Double($0.use.residentBytes) })
        residentBytesPerLogin = kind == "login" ? ofOne { Double($0.residentGrowth) } : nil
        commits = told("rouse_store_commits_total")
        rowsRead = told("rouse_store_rows_read_total")
        rowsWritten = told("rouse_store_rows_written_total")
        statements = told("rouse_store_statements_total")
        journalBytes = told("rouse_store_journal_bytes_total")
        engineReads = told("rouse_store_engine_reads_total")
        let roundTrips = told("rouse_store_round_trips_total") ?? 0
        let all = commits ?? 0
        roundTripsPerCommit = roundTrips > 0 && all > 0 ? roundTrips / all : nil
        statementsPerCommit = roundTrips > 0 && all > 0 ? (statements ?? 0) / all : nil
        isCut = measures.contains { $0.outcome.isCut }
    }

    /// 0 of none.
    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard let last = sorted.last else { return 0 }
        let middle = sorted.count / 2
        if sorted.count % 2 == 1 { return sorted[middle] }
        return sorted.count > 1 ? (sorted[middle - 1] + sorted[middle]) / 2 : last
    }
}

/// One run of a kind at one server.
struct PublishMeasure {
    static let metricNames = [
        "rouse_store_commits_total", "rouse_store_rows_read_total",
        "rouse_store_rows_written_total", "rouse_store_statements_total",
        "rouse_store_journal_bytes_total", "rouse_store_engine_reads_total",
        "rouse_store_round_trips_total",
    ]
    var outcome: PublishDrive.Outcome
    var use: ProcessUse
    var toolNanoseconds: UInt64
    var residentGrowth = 0
    var metrics: [String: Double] = [:]

    /// Without what `base` cost.
    func above(_ base: PublishMeasure) -> PublishMeasure {
        var rest = self
        rest.use = use.since(base.use)
        for (name, value) in base.metrics { rest.metrics[name, default: 0] -= value }
        return rest
    }
}

/// A server's figures divided by those of the floor in the same run of the tool.
public struct PublishRatio: Codable, Equatable, Sendable {
    public let kind: String
    public let target: String
    public let rate: Int?
    /// `nil`, as all of them: there is no such figure, or the floor's is 0.
    public let perSecond: Double?
    public let answerP50: Double?
    public let answerP99: Double?
    public let deliveryP50: Double?
    public let deliveryP99: Double?
    /// The time until the last device of a fan-out had the message.
    public let lastP50: Double?
    public let processor: Double?
    /// Microseconds of the processor that the server used and the floor did not.
    public let processorAbove: Double
    public let diskBytes: Double?
    public let residentBytes: Double?
    public let residentBytesPerLogin: Double?

    init(_ row: PublishRow, to floor: PublishRow) {
        func ratio(_ value: Double?, _ base: Double?) -> Double? {
            guard let value, let base, base > 0 else { return nil }
            return value / base
        }
        kind = row.kind
        target = row.target
        rate = row.rate
        perSecond = ratio(row.perSecond, floor.perSecond)
        answerP50 = ratio(row.answer?.p50, floor.answer?.p50)
        answerP99 = ratio(row.answer?.p99, floor.answer?.p99)
        deliveryP50 = ratio(row.delivery?.p50, floor.delivery?.p50)
        deliveryP99 = ratio(row.delivery?.p99, floor.delivery?.p99)
        lastP50 = ratio(row.last?.p50, floor.last?.p50)
        processor = ratio(row.processorMicroseconds, floor.processorMicroseconds)
        processorAbove = row.processorMicroseconds - floor.processorMicroseconds
        diskBytes = ratio(row.diskBytes, floor.diskBytes)
        residentBytes = ratio(row.residentBytes, floor.residentBytes)
        residentBytesPerLogin = ratio(row.residentBytesPerLogin, floor.residentBytesPerLogin)
    }
}

/// What came of `rouse bench publish`.
public struct PublishBenchReport: Codable, Equatable, Sendable {
    public let devices: Int
    public let seconds: Double
    public let rows: [PublishRow]
    /// The other servers' rows by the floor's, where there is one.
    public let ratios: [PublishRatio]
    /// Why there is no floor though it was asked for.
    public let floorMissing: String?
    /// Peers that were asked for and are not there.
    public let peersMissing: [String]
    /// Whether it was built without optimization: then the times say nothing.
    public let isDebug: Bool

    init(
        devices: Int, seconds: Double, rows: [PublishRow], floorMissing: String?,
        peersMissing: [String]
    ) {
        self.devices = devices
        self.seconds = seconds
        self.rows = rows
        self.floorMissing = floorMissing
        self.peersMissing = peersMissing
        ratios = rows.filter { $0.target != "floor" }.compactMap { row in
            rows.first { $0.target == "floor" && $0.kind == row.kind && $0.rate == row.rate }
                .map { PublishRatio(row, to: $0) }
        }
        #if DEBUG
            isDebug = true
        #else
            isDebug = false
        #endif
    }

    /// Nothing that began was lost.
    public var isWhole: Bool { !rows.contains(where: \.isCut) }

    /// One JSON object, in one line.
    public var json: String { reportLine }
}
