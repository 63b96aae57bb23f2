import Crypto
import EventLoop
import Failpoints
import Feed
import HTTPClient
import Model
import Telemetry

/// What the sender's loop is made of; tests put other parts in.
struct SenderParts: Sendable {
    var boot: BootID
    var configuration: WebhooksConfiguration
    var render: @Sendable (DeliveryJob) -> [UInt8]
    var log: Log
    var metrics: WebhookMetrics
    /// Milliseconds since 1970.
    var wall: @Sendable () -> UInt64 = SystemClock.wallMilliseconds
    var makeQueue: @Sendable (Loop) -> any DeliveryQueue
}

/// Claims deliveries that are due, posts them, and writes down what came back. Loop-confined.
final class WebhookSender {
    private let loop: Loop
    private let parts: SenderParts
    private let queue: any DeliveryQueue
    private let client: HTTPClient
    private var watch: DescriptorWatch?
    private var timer: LoopTimer?
    /// Claimed and not written down, by app.
    private var underWay: [AppID: Int] = [:]
    private var open = 0
    private var isClaiming = false
    private var wantsClaim = true
    private var nextDue: Timestamp?
    /// What had been written when a claim found nothing; `nil`: the last one found something.
    private var emptyAt: UInt64?
    /// Answers the store could not take, in the order of their next try.
    private var retries: [(at: Instant, attempt: Attempt, answer: DeliveryAnswer)] = []
    private var countAt: Instant
    /// What had been written when nothing was pending; `nil`: something was.
    private var countedAt: UInt64?
    private var isEnded = false
    private var stopping: (until: Instant, done: () -> Void)?

    /// How long an answer waits that the store could not take.
    private static let finishRetry: Milliseconds = 1_000
    /// Jobs of one claim: each is read and carried as a whole.
    private static let claimMax = 8

    private struct Attempt {
        let job: DeliveryJob
        let startedAt: Instant
    }

    init(loop: Loop, parts: SenderParts) throws {
        self.loop = loop
        self.parts = parts
        queue = parts.makeQueue(loop)
        let addresses = parts.configuration.addresses
        var options = HTTPClientOptions { addresses.permits($0) }
        options.timeout = Int(clamping: parts.configuration.timeout)
        options.connectTimeout = min(options.connectTimeout, options.timeout)
        options.trustedCertificates = parts.configuration.trustedCertificates
        client = try HTTPClient(options)
        countAt = Instant(milliseconds: loop.now)
        watch = try DescriptorWatch(loop: loop, descriptor: client.descriptor) {
            [unowned self] _ in self.client.run()
        }
        watch?.start(.readable)
        timer = loop.timer { [unowned self] in self.tick() }
        timer?.start(afterMilliseconds: 1)
    }

    private var now: Instant { Instant(milliseconds: loop.now) }

    /// Something may have become due.
    func ring() {
        wantsClaim = true
        claim()
    }

    private func tick() {
        while let first = retries.first, first.at <= now {
            retries.removeFirst()
            write(first.attempt, first.answer)
        }
        if !wouldFindNothing {
            wantsClaim = true
            nextDue = nil
        }
        claim()
        count()
        endIfStopped()
        armTimer()
    }

    /// Nothing was written since a claim found nothing, and nothing has become due.
    private var wouldFindNothing: Bool {
        guard let emptyAt, emptyAt == queue.changes else { return false }
        return nextDue.map { parts.wall() < $0.milliseconds } ?? true
    }

    private func armTimer() {
        guard !isEnded else { return }
        var wait = parts.configuration.tick
        if let nextDue {
            let moment = parts.wall()
            wait = min(wait, nextDue.milliseconds > moment ? nextDue.milliseconds - moment : 0)
        }
        // Not less: the store's clock may be behind ours.
        timer?.start(afterMilliseconds: max(min(20, parts.configuration.tick), wait))
    }

    private func count() {
        guard countAt <= now, stopping == nil, countedAt == nil || countedAt != queue.changes
        else { return }
        countAt = now + parts.configuration.countInterval
        let (metrics, wall, changes) = (parts.metrics, parts.wall, queue.changes)
        queue.count { [weak self] result in
            guard case .success(let backlog) = result else { return }
            self?.countedAt = backlog.events == 0 ? changes : nil
            metrics.pending.set(Int(clamping: backlog.events))
            metrics.deactivated.set(backlog.deactivated)
            let age = backlog.oldest.map {
                Timestamp(milliseconds: wall()).since($0) / 1000
            }
            metrics.oldestSeconds.set(Int(clamping: age ?? 0))
        }
    }

    // MARK: - Claims

    private func claim() {
        guard wantsClaim, !isClaiming, stopping == nil else { return }
        let free = min(parts.configuration.openMax - open, Self.claimMax)
        // An answer that is written down comes here again.
        guard free > 0 else { return }
        wantsClaim = false
        isClaiming = true
        let request = ClaimDeliveries(
            boot: parts.boot, ids: (0..<free).map { _ in freshID() }, underWay: underWay,
            perApp: parts.configuration.openPerApp, policy: parts.configuration.leased)
        let (asked, changes) = (now, queue.changes)
        queue.claim(request) { [weak self] result in self?.claimed(result, asked, changes) }
    }

    /// What the last claim failed with.
    private var claimFailure: StoreError?

    private func claimed(
        _ result: Result<ClaimedDeliveries, StoreError>, _ asked: Instant, _ changes: UInt64?
    ) {
        isClaiming = false
        emptyAt = nil
        guard !isEnded else { return }
        switch result {
        case .failure(let error):
            parts.metrics.claimFailures.add()
            // It is tried again every second, and the store tells of itself (`store.failed`).
            if error != claimFailure {
                parts.log.warning("webhook.claim_failed", [LogField("error", "\(error)")])
            }
            claimFailure = error
            nextDue = nil
            return endIfStopped()  // The timer tries again.
        case .success(let claimed):
            claimFailure = nil
            nextDue = claimed.nextDue
            wantsClaim = wantsClaim || claimed.more
            if claimed.jobs.isEmpty, !claimed.more, open == 0 { emptyAt = changes }
            if !claimed.jobs.isEmpty { Failpoint.hit(.webhookClaimed) }
            for job in claimed.jobs { send(Attempt(job: job, startedAt: asked)) }
        }
        claim()
        armTimer()
        endIfStopped()
    }

    /// UUIDv7 (RFC 9562 5.7).
    private func freshID() -> DeliveryID {
        let random = Random.bytes(10)
        let low = random[2...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let high = UInt64(random[0]) << 8 | UInt64(random[1])
        return DeliveryID(
            high: parts.wall() << 16 | 0x7000 | high & 0x0FFF,
            low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }

    // MARK: - Attempts

    private func send(_ attempt: Attempt) {
        let job = attempt.job
        underWay[job.key.app, default: 0] += 1
        open += 1
        parts.metrics.open.set(open)
        guard stopping == nil else { return write(attempt, .notSent) }
        let body = parts.render(job)
        let seconds = parts.wall() / 1000
        let post = HTTPPost(
            url: job.url,
            headers: [
                ("content-type", "application/json"),
                ("rouse-delivery", job.delivery.description),
                ("rouse-attempt", "\(job.attempt)"),
                (
                    Signature.header,
                    Signature.value(body, seconds: seconds, secrets: job.secrets)
                ),
            ] + (job.traceparent.map { [("traceparent", $0)] } ?? []), body: body)
        client.post(post) { [weak self] result in self?.answered(attempt, result) }
        if Failpoint.areBuiltIn { loop.nextTurn { Failpoint.hit(.webhookSent) } }
    }

    private func answered(_ attempt: Attempt, _ result: HTTPPostResult) {
        let answer: DeliveryAnswer
        switch result {
        case .answered(let status, let wait):
            Failpoint.hit(.webhookAnswered)
            answer = .answered(
                status: UInt64(clamping: status),
                retryAfter: wait.map {
                    let (milliseconds, isTooMuch) = $0.multipliedReportingOverflow(by: 1000)
                    return isTooMuch ? .max : milliseconds
                })
        case .failed(let failure): answer = .failed(failure.rawValue)
        }
        parts.metrics.answerSeconds.observe(milliseconds: now.since(attempt.startedAt))
        write(attempt, answer)
    }

    private func write(_ attempt: Attempt, _ answer: DeliveryAnswer) {
        let chance = Random.bytes(2).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % 1001
        let request = FinishDelivery(
            key: attempt.job.key, claim: attempt.job.claim, answer: answer, chance: chance,
            policy: parts.configuration.leased)
        queue.finish(request) { [weak self] result in self?.written(attempt, answer, result) }
    }

    private func written(
        _ attempt: Attempt, _ answer: DeliveryAnswer, _ result: Result<DeliveryEffect?, StoreError>
    ) {
        switch result {
        case .failure(let error):
            parts.metrics.finishFailures.add()
            parts.log.warning("webhook.finish_failed", [LogField("error", "\(error)")])
            // Until the lease has ended nobody else has claimed it.
            if stopping == nil, now.since(attempt.startedAt) < parts.configuration.leased.lease {
                return retries.append((now + Self.finishRetry, attempt, answer))
            }
        case .success(let effect):
            Failpoint.hit(.webhookSettled)
            tell(attempt.job, answer, effect)
        }
        let app = attempt.job.key.app
        let left = underWay[app, default: 1] - 1
        underWay[app] = left > 0 ? left : nil
        open -= 1
        parts.metrics.open.set(open)
        wantsClaim = true
        claim()
        endIfStopped()
    }

    /// The URL is told nowhere: it may hold a secret of the receiver's.
    private func tell(_ job: DeliveryJob, _ answer: DeliveryAnswer, _ effect: DeliveryEffect?) {
        parts.metrics.deliveries[WebhookMetrics.label(answer)].add()
        let fields =
            [
                LogField("app", job.key.app.name), LogField("webhook", job.key.webhook),
                LogField("delivery", job.delivery), LogField("attempt", job.attempt),
                LogField("answer", Self.words(answer)),
            ] + (job.traceparent.map { [LogField("traceparent", $0)] } ?? [])
        switch effect {
        case .taken:
            parts.metrics.events.add(UInt64(job.events.count))
            parts.log.debug("webhook.delivered", fields)
        case .deactivated(_, let reason):
            parts.metrics.deactivations.add()
            parts.log.warning("webhook.deactivated", fields + [LogField("reason", reason)])
        case .retried: parts.log.info("webhook.failed", fields)
        case .returned, nil: parts.log.debug("webhook.returned", fields)
        }
    }

    private static func words(_ answer: DeliveryAnswer) -> String {
        switch answer {
        case .answered(let status, _): "\(status)"
        case .failed(let reason): reason
        case .notSent: "not sent"
        }
    }

    // MARK: - The end

    /// Takes no more deliveries, waits for the answers of those under way, at most until the
    /// deadline, and calls `done`. Rows without an answer stay to their lease.
    func stop(_ done: @escaping () -> Void) {
        guard stopping == nil else { return done() }
        stopping = (now + parts.configuration.stopDeadline, done)
        endIfStopped()
        if !isEnded { timer?.start(afterMilliseconds: 20) }
    }

    private func endIfStopped() {
        guard !isEnded, let stopping else { return }
        guard open == 0 && !isClaiming || stopping.until <= now else { return }
        if open > 0 { parts.log.warning("webhook.left_to_lease", [LogField("deliveries", open)]) }
        isEnded = true
        timer?.close()
        timer = nil
        // Not in a callback of the client's own: it cannot end there.
        loop.nextTurn { [self] in
            watch?.close()
            watch = nil
            client.stop()
            stopping.done()
        }
    }
}
