import EventLoop
import Telemetry
import Wire

/// What the overview draws, every two seconds, and those who wait for the next of it.
/// Loop-confined.
final class LiveBoard {
    static let interval: UInt64 = 2_000
    /// Ten minutes.
    static let samplesMax = 300
    /// Pages that wait; each holds a connection.
    static let waitersMax = 32

    private let metrics: Metrics
    /// Tells samples of this process from those of the one before.
    private let run = String(SystemClock.wallMilliseconds(), radix: 36)
    private var timer: LoopTimer?
    private var samples: [(number: Int, text: String)] = []
    private var waiters: [(String) -> Void] = []
    private var number = 0

    init(loop: Loop, metrics: Metrics) {
        self.metrics = metrics
        timer = loop.timer { [unowned self] in sample() }
        timer?.start(afterMilliseconds: 0, repeatingMilliseconds: Self.interval)
    }

    func close() {
        timer?.close()
        timer = nil
        waiters = []
    }

    /// Gives the events after the one with this id: at once where there are some, else when there
    /// is one. Who names none, or one that is not known any more, gets all there are as history.
    func await(
        after id: String?, _ give: @escaping (String) -> Void
    ) throws(Problem) {
        let known = id.flatMap { id -> Int? in
            let parts = id.split(separator: "-")
            guard parts.count == 2, parts[0] == run else { return nil }
            return Int(parts[1])
        }
        guard let known, known <= number, let first = samples.first, known >= first.number - 1
        else { return give(history) }
        let later = samples.filter { $0.number > known }
        if !later.isEmpty { return give(later.map(event).joined()) }
        guard waiters.count < Self.waitersMax else {
            throw Problem(.unavailable, "\(Self.waitersMax) pages look on already")
        }
        waiters.append(give)
    }

    private func event(_ sample: (number: Int, text: String)) -> String {
        "retry: 100\nid: \(run)-\(sample.number)\nevent: sample\ndata: \(sample.text)\n\n"
    }

    private var history: String {
        let all = samples.map(\.text).joined(separator: ",")
        return "retry: 100\nid: \(run)-\(number)\nevent: history\ndata: [\(all)]\n\n"
    }

    private func sample() {
        number += 1
        // Numbers that are some, and names: nothing of it can fail.
        let bytes = (try? JSONWriter.write(LiveSample(metrics))) ?? Array("{}".utf8)
        samples.append((number, String(decoding: bytes, as: UTF8.self)))
        if samples.count > Self.samplesMax { samples.removeFirst() }
        let waiting = waiters
        waiters = []
        guard let last = samples.last else { return }
        for give in waiting { give(event(last)) }
    }
}

/// One moment's numbers. Counters are told as they stand: the page draws their differences.
private struct LiveSample: Encodable {
    /// Milliseconds since 1970.
    let at: UInt64
    /// By a clock that nobody sets, in milliseconds: what lies between two samples. It begins
    /// nowhere in particular.
    let monotonic: UInt64
    let connections: Int
    let sessions: Int
    /// Messages and announcements that were committed.
    let published: Int
    /// DELTA frames that left, and commands to sync.
    let deltas: Int
    let syncRequests: Int
    /// By outcome.
    let wakes: [String: Int]
    /// Answers of APNs, and how long they took: by bucket, the last one above all bounds.
    let pushes: Int
    let pushMilliseconds: Int
    let pushBuckets: [Int]
    /// Seconds that the oldest waits, by queue.
    let queueAges: [String: Int]
    /// Transactions, what they took together, and the longest of all.
    let commits: Int
    let commitMilliseconds: Int
    let longestCommitMilliseconds: Int
    let waitingRequests: Int

    init(_ metrics: Metrics) {
        at = SystemClock.wallMilliseconds()
        monotonic = SystemClock.monotonicMilliseconds()
        connections = metrics.whole("rouse_connections_open")
        sessions = metrics.whole("rouse_sessions_open")
        published = metrics.series("rouse_published_total").reduce(0) { $0 + Int($1.value) }
        let frames = metrics.series("rouse_frames_sent_total")
        func sent(_ type: String) -> Int {
            Int(frames.first { $0.labels == [type] }?.value ?? 0)
        }
        deltas = sent("delta")
        syncRequests = sent("syncRequest")
        wakes = metrics.byLabel("rouse_wakes_total")
        pushes = metrics.series("rouse_pushes_total").reduce(0) { $0 + Int($1.value) }
        if case .distribution(let counts, let sum) = metrics.read("rouse_push_answer_seconds") {
            pushBuckets = counts.map { Int(clamping: $0) }
            pushMilliseconds = Int(sum * 1_000)
        } else {
            (pushBuckets, pushMilliseconds) = ([], 0)
        }
        var ages = metrics.byLabel("rouse_push_queue_oldest_seconds")
        ages["webhooks"] = metrics.whole("rouse_webhook_oldest_event_seconds")
        ages["scheduled"] = metrics.whole("rouse_scheduled_oldest_late_seconds")
        queueAges = ages
        commits = metrics.whole("rouse_store_commits_total")
        commitMilliseconds = metrics.whole("rouse_store_commit_seconds_total", times: 1_000)
        longestCommitMilliseconds = metrics.whole("rouse_store_commit_seconds_max", times: 1_000)
        waitingRequests = metrics.whole("rouse_store_waiting_requests")
    }
}

extension Metrics {
    fileprivate func whole(_ name: String, times factor: Double = 1) -> Int {
        guard case .number(let number) = read(name) else { return 0 }
        return Int((number * factor).rounded())
    }

    fileprivate func series(_ name: String) -> [Series] {
        guard case .series(let series) = read(name) else { return [] }
        return series
    }

    /// Of numbers with one label.
    fileprivate func byLabel(_ name: String) -> [String: Int] {
        var numbers: [String: Int] = [:]
        for one in series(name) {
            numbers[one.labels.joined(separator: " "), default: 0] += Int(one.value)
        }
        return numbers
    }
}
