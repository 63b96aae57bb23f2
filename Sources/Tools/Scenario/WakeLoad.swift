import EventLoop
import Feed
import Glibc
import Model
import PushGateway
import StoreService
import Telemetry
import Wake

/// Wakes alone, and then the same while a campaign is under way, through one gateway: what a
/// campaign costs a wake.
final class WakeLoad {
    private let wakes: [PushJob]
    private let campaign: [PushJob]
    private let desk = WakeDesk()
    private let doorbell = PushGateway.Doorbell()

    /// Between two wakes: many fewer than the gateway could send.
    private static let spacing: UInt32 = 5_000
    /// Milliseconds in which something must come back.
    private static let patience: UInt64 = 300_000

    init(wakes: [PushJob], campaign: [PushJob]) {
        self.wakes = wakes
        self.campaign = campaign
    }

    func measure(_ credential: PushCredentialRecord) throws -> PushLoadReport.Wakes {
        let gateway = try PushGateway.start(
            credentials: [credential], queue: { [desk] in WakeQueue(desk, on: $0) },
            boot: BootID(high: 1, low: 1), doorbell: doorbell, log: Log(level: .error),
            metrics: Metrics())
        defer { gateway.stop() }
        // A connection of each class, with all its streams.
        try offer(Array(wakes.prefix(1)), Array(campaign.prefix(1)))
        try wait { $0.answered == 2 }
        desk.forget()
        _ = try sendWakes()
        let alone = desk.state.wakeTimes
        desk.forget()
        // Its end waits for the first wake: this process may stand still for as long as a short
        // campaign takes.
        let begin = campaign.prefix(max(1, campaign.count - 1))
        try offer([], Array(begin))
        try wait { $0.campaignAnswers > 0 }
        let sent = try sendWakes(beside: Array(campaign[begin.count...]))
        let beside = desk.state
        try wait { $0.answered == sent + self.campaign.count }
        guard sent > 0 else {
            throw ScenarioError(
                "the campaign ended before a wake was sent beside it: ask for more pushes")
        }
        return PushLoadReport.Wakes(
            alone: alone, beside: beside.wakeTimes, campaignAnswers: beside.campaignAnswers,
            campaign: campaign.count)
    }

    /// One after the other, until all have their answers or, beside a campaign, that has ended.
    ///
    /// - Parameter rest: of the campaign, which is offered with the first wake.
    /// - Returns: how many were sent.
    private func sendWakes(beside rest: [PushJob] = []) throws -> Int {
        let besides = desk.state.campaignAnswers > 0
        var sent = 0
        for wake in wakes {
            if besides, desk.state.campaignAnswers == campaign.count { break }
            try offer([wake], sent == 0 ? rest : [])
            sent += 1
            usleep(Self.spacing)
        }
        try wait { $0.wakeTimes.count == sent }
        return sent
    }

    private func offer(_ wakes: [PushJob], _ campaign: [PushJob]) throws {
        desk.add(wakes, campaign)
        doorbell.ring()
    }

    private func wait(until isSo: (WakeDesk.State) -> Bool) throws {
        let end = SystemClock.monotonicMilliseconds() + Self.patience
        while !isSo(desk.state) {
            if let refusal = desk.state.refusal {
                throw ScenarioError("a push was refused: \(refusal)")
            }
            guard SystemClock.monotonicMilliseconds() < end else {
                throw ScenarioError("pushes have no answer: \(desk.state.answered) have")
            }
            usleep(1_000)
        }
    }
}

/// Wakes and a campaign in memory, and when they were answered. From any thread.
private final class WakeDesk: Sendable {
    struct State {
        /// Of each wake, from the moment at which it was due to its answer.
        var wakeTimes: [Duration] = []
        var campaignAnswers = 0
        /// What was answered to the first push that was not accepted.
        var refusal: String?
        var answered: Int { wakeTimes.count + campaignAnswers }
    }

    private let lock = Lock()
    private nonisolated(unsafe) var due: [PushClass: [PushJob]] = [:]  // guarded by `lock`
    private nonisolated(unsafe) var dueAt: [WakeID: ContinuousClock.Instant] = [:]  // the same
    private nonisolated(unsafe) var taken: [WakeID: PushJob] = [:]  // the same
    private nonisolated(unsafe) var now = State()  // the same

    var state: State { lock.withLock { now } }
    func forget() { lock.withLock { now = State() } }

    func add(_ wakes: [PushJob], _ campaign: [PushJob]) {
        lock.withLock {
            for wake in wakes { dueAt[wake.request.id] = .now }
            due[.wake, default: []] += wakes
            due[.campaign, default: []] += campaign.reversed()
        }
    }

    /// In the order of the classes, as many as there is room for.
    func claim(_ request: ClaimPushes) -> ClaimedPushes {
        lock.withLock {
            var jobs: [PushJob] = []
            var blocked: [PushLane] = []
            for lane in [PushClass.wake, .campaign] {
                let before = jobs.count
                let room = request.rooms.first?[lane] ?? 0
                while jobs.count < request.streams, jobs.count - before < room,
                    let job = due[lane]?.popLast()
                {
                    taken[job.request.id] = job
                    jobs.append(job)
                }
                if let next = due[lane]?.last, jobs.count - before == room {
                    blocked.append(PushLane(next.credential, lane))
                }
            }
            return ClaimedPushes(
                jobs: jobs, more: jobs.count == request.streams, blocked: blocked, nextDue: nil)
        }
    }

    func finish(_ request: FinishPush) {
        lock.withLock {
            guard let job = taken.removeValue(forKey: request.id) else { return }
            guard case .answered(let status, let reason, _, _) = request.reply else {
                due[job.lane, default: []].append(job)
                return
            }
            if status != 200, now.refusal == nil { now.refusal = "\(status) \(reason)" }
            if job.lane == .wake {
                now.wakeTimes.append((dueAt[request.id] ?? .now).duration(to: .now))
            } else {
                now.campaignAnswers += 1
            }
        }
    }
}

private final class WakeQueue: PushQueue {
    private let desk: WakeDesk
    private let loop: Loop

    init(_ desk: WakeDesk, on loop: Loop) {
        self.desk = desk
        self.loop = loop
    }

    func claim(
        _ request: ClaimPushes, reply: @escaping (Result<ClaimedPushes, StoreError>) -> Void
    ) {
        let claimed = desk.claim(request)
        loop.nextTurn { reply(.success(claimed)) }
    }

    func finish(_ request: FinishPush, reply: @escaping (Result<Void, StoreError>) -> Void) {
        desk.finish(request)
        loop.nextTurn { reply(.success(())) }
    }
}

extension PushLoadReport {
    /// Wakes alone, and beside a campaign.
    public struct Wakes: Codable, Equatable, Sendable {
        /// Milliseconds from due to answered.
        public struct Times: Codable, Equatable, Sendable {
            public var count: Int
            public var median: Double
            public var p99: Double

            init(_ times: [Duration]) {
                let sorted = times.map { time in
                    Double(time.components.seconds) * 1e3
                        + Double(time.components.attoseconds) / 1e15
                }.sorted()
                func quantile(_ share: Double) -> Double {
                    guard !sorted.isEmpty else { return 0 }
                    let index = min(sorted.count - 1, Int(Double(sorted.count) * share))
                    return (sorted[index] * 1000).rounded() / 1000
                }
                count = sorted.count
                median = quantile(0.5)
                p99 = quantile(0.99)
            }
        }

        public var alone: Times
        public var beside: Times
        public var campaign: Int
        /// Answers of the campaign while the wakes were sent.
        public var campaignAnswers: Int

        init(alone: [Duration], beside: [Duration], campaignAnswers: Int, campaign: Int) {
            self.alone = Times(alone)
            self.beside = Times(beside)
            self.campaign = campaign
            self.campaignAnswers = campaignAnswers
        }

        var text: String {
            func line(_ times: Times) -> String {
                "\(times.count) in \(times.median) ms, 99 of 100 in \(times.p99) ms"
            }
            let ratio = beside.median / max(alone.median, 0.001)
            return """
                wakes alone            \(line(alone))
                wakes beside a campaign \(line(beside)): \((ratio * 10).rounded() / 10) times \
                as long, while \(campaignAnswers) of its \(campaign) pushes were answered
                """
        }
    }
}
