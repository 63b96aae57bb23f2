import Crypto
import EventLoop
import Failpoints
import Feed
import Model
import Telemetry
import Wake

/// What the gateway's loop is made of; tests put other parts in.
struct GatewayParts: Sendable {
    var boot: BootID
    var configuration: PushGatewayConfiguration
    var credentials: CredentialSource
    var log: Log
    var metrics: GatewayMetrics
    var clocks = GatewayClocks()
    var board = PushStatusBoard()
    var makeQueue: @Sendable (Loop) -> any PushQueue
}

/// The clocks of provider tokens and due times; all other times are the loop's.
struct GatewayClocks: Sendable {
    /// Milliseconds since 1970.
    var wall: @Sendable () -> UInt64 = SystemClock.wallMilliseconds
    var monotonic: @Sendable () -> UInt64 = SystemClock.monotonicMilliseconds
}

/// Claims pushes, hands them to the pools of their credentials, and writes down what came back.
/// Loop-confined.
final class GatewayLoop {
    let tokens: ProviderTokens
    private let loop: Loop
    private let boot: BootID
    private let configuration: PushGatewayConfiguration
    private let credentials: CredentialSource
    private let log: Log
    private let metrics: GatewayMetrics
    private let board: PushStatusBoard
    private let wall: @Sendable () -> UInt64
    private let queue: any PushQueue
    private var timer: LoopTimer?
    private var pools: [CredentialKey: CredentialPool] = [:]
    /// Replaced pools that still have streams open.
    private var leaving: [CredentialPool] = []
    private var contexts: [TLSParts: TLSContext] = [:]
    private var knownGeneration: UInt64?
    private var isClaiming = false
    /// The doorbell rang, or more is due than was claimed.
    private var wantsClaim = false
    private var nextDue: Timestamp?
    /// More is due in these, and waits for streams.
    private var blocked: Set<PushLane> = []
    private var countAt: Instant?
    /// Answers on their way into the store.
    private var finishing = 0
    /// Answers the store could not take, in the order of their next try; each is of a push that
    /// was claimed and has not been claimed again, so there are no more than streams.
    private var retries: [Retry] = []
    private var isEnded = false
    private var stopping: (until: Instant, done: () -> Void)?

    private struct Retry {
        let at: Instant
        let push: HeldPush
        let reply: PushReply
        let keepsToken: Bool
    }

    /// What TLS contexts are told apart by.
    private struct TLSParts: Hashable {
        /// `nil`: the system's.
        let authorities: ExactText?
        let certificate: ExactText?
        let key: ExactText?

        init(_ credential: PushCredentialRecord) {
            authorities = credential.trustedCertificatesPEM.map { ExactText($0) }
            certificate = credential.certificatePEM.map { ExactText($0) }
            key = credential.certificatePEM.map { _ in ExactText(credential.privateKeyPEM) }
        }
    }

    /// How long an answer waits that the store could not take.
    private static let finishRetry: Milliseconds = 1_000

    init(loop: Loop, parts: GatewayParts) {
        self.loop = loop
        boot = parts.boot
        configuration = parts.configuration
        credentials = parts.credentials
        log = parts.log
        metrics = parts.metrics
        board = parts.board
        wall = parts.clocks.wall
        queue = parts.makeQueue(loop)
        tokens = ProviderTokens(clocks: parts.clocks, metrics: parts.metrics, queue: queue)
        tokens.onToken = { [unowned self] key in
            for pool in self.ordered where pool.provider == key { pool.tokenCame() }
        }
        timer = loop.timer { [unowned self] in self.tick() }
        wantsClaim = true
        timer?.start(afterMilliseconds: 1)
    }

    private var now: Instant { Instant(milliseconds: loop.now) }
    private var ordered: [CredentialPool] { pools.values.sorted { $0.key < $1.key } }

    // MARK: - Time

    /// Something may have become due.
    func ring() {
        wantsClaim = true
        claim()
    }

    private func tick() {
        refreshCredentials()
        for pool in ordered + leaving { pool.tick() }
        leaving.removeAll(where: \.isGone)
        retryFinishes()
        wantsClaim = true
        nextDue = nil
        claim()
        gauge()
        endIfStopped()
        armTimer()
    }

    private func retryFinishes() {
        while let first = retries.first, first.at <= now {
            retries.removeFirst()
            finish(first.push, first.reply, keepsToken: first.keepsToken)
        }
    }

    private func armTimer() {
        guard !isEnded else { return }
        var wait = configuration.tick
        if let nextDue {
            let moment = wall()
            wait = min(wait, nextDue.milliseconds > moment ? nextDue.milliseconds - moment : 0)
        }
        // Not less: the store's clock may be behind ours.
        timer?.start(afterMilliseconds: max(min(20, configuration.tick), wait))
    }

    private func gauge() {
        let all = (ordered + leaving).map(\.status)
        board.set(ordered.map(\.status))
        for lane in PushClass.allCases {
            let lanes = all.flatMap(\.lanes).filter { $0.lane == lane }
            metrics.connectionsOpen[lane.name].set(lanes.reduce(0) { $0 + $1.connections })
            metrics.streamsOpen[lane.name].set(lanes.reduce(0) { $0 + $1.open })
            metrics.streamsAllowed[lane.name].set(lanes.reduce(0) { $0 + $1.allowed })
            metrics.waiting[lane.name].set(lanes.reduce(0) { $0 + $1.waiting })
        }
        let oldest = all.flatMap(\.lanes).map(\.oldestStream).max() ?? 0
        metrics.oldestStream.set(Int(clamping: oldest))
        metrics.paused.set(all.count { $0.pausedFor != nil })
        metrics.tripped.set(all.count(where: \.isTripped))
    }

    private func note(_ queues: [PushQueueDepth]) {
        let moment = wall()
        for lane in PushClass.allCases {
            let queue = queues.first { $0.lane == lane }
            let oldest = queue?.oldest.milliseconds ?? moment
            metrics.queueDepth[lane.name].set(queue?.count ?? 0)
            metrics.queueAge[lane.name].set(
                Int(clamping: (moment > oldest ? moment - oldest : 0) / 1000))
        }
    }

    // MARK: - Credentials

    private func refreshCredentials() {
        let generation = credentials.generation()
        guard generation != knownGeneration, stopping == nil else { return }
        knownGeneration = generation
        var before = pools
        pools = [:]
        var moved: [HeldPush] = []
        for credential in credentials.all() {
            let key = CredentialKey(credential)
            if let pool = before[key], pool.credential == credential {
                pools[key] = pool
                before[key] = nil
            } else {
                pools[key] = CredentialPool(
                    credential, owner: self, loop: loop, configuration: configuration, log: log,
                    metrics: metrics)
            }
        }
        for pool in before.values.sorted(by: { $0.key < $1.key }) {
            moved += pool.retire()
            leaving.append(pool)
            log.info(
                "push.credential_changed",
                [
                    LogField("app", pool.key.app.name),
                    LogField("environment", "\(pool.key.environment)"),
                    LogField("credential", pool.key.name),
                    LogField("removed", pools[pool.key] == nil),
                ])
        }
        tokens.keep(Set(pools.values.compactMap(\.provider)))
        let parts = Set(pools.values.map { TLSParts($0.credential) })
        contexts = contexts.filter { parts.contains($0.key) }
        blocked = blocked.filter { pools[$0.credential] != nil }
        for push in moved { deliver(push) }
    }

    private func deliver(_ push: HeldPush) {
        if let pool = pools[push.job.credential] {
            pool.take(push)
        } else {
            finish(push, .notSent, keepsToken: false)
        }
    }

    // MARK: - Claims

    private func claim() {
        guard wantsClaim, !isClaiming, stopping == nil else { return }
        refreshCredentials()
        let rooms = ordered.map(\.room)
        let free = min(
            rooms.reduce(0) { sum, room in
                PushClass.allCases.reduce(sum) { $0 + room[$1] }
            }, configuration.claimMax)
        // A stream that becomes free comes here again.
        guard free > 0 else { return }
        wantsClaim = false
        isClaiming = true
        let asked = now
        let counts = countAt.map { $0 <= asked } ?? true
        if counts { countAt = asked + configuration.queueCount }
        let request = ClaimPushes(
            boot: boot, streams: free, ids: (0..<free).map { _ in freshID() }, rooms: rooms,
            countsQueues: counts)
        queue.claim(request) { [weak self] result in
            self?.claimed(result, asked: asked, counts: counts)
        }
    }

    private func claimed(
        _ result: Result<ClaimedPushes, StoreError>, asked: Instant, counts: Bool
    ) {
        isClaiming = false
        switch result {
        case .failure(let error):
            metrics.claimFailures.add()
            log.warning("push.claim_failed", [LogField("error", "\(error)")])
            nextDue = nil
            return  // The timer tries again.
        case .success(let claimed):
            nextDue = claimed.nextDue
            wantsClaim = wantsClaim || claimed.more
            blocked = Set(claimed.blocked)
            if counts { note(claimed.queues) }
            if !claimed.jobs.isEmpty {
                metrics.claimSeconds.observe(milliseconds: now.since(asked))
                Failpoint.hit(.pushClaimed)
            }
            for job in claimed.jobs {
                let push = HeldPush(job: job, claimedAt: asked)
                if stopping == nil {
                    deliver(push)
                } else {
                    finish(push, .notSent, keepsToken: false)
                }
            }
        }
        claim()
        armTimer()
        endIfStopped()
    }

    /// UUIDv7 (RFC 9562 5.7): those made one after another stay close in the store's indexes.
    private func freshID() -> WakeID {
        let random = Random.bytes(10)
        let low = random[2...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let high = UInt64(random[0]) << 8 | UInt64(random[1])
        return WakeID(
            high: wall() << 16 | 0x7000 | high & 0x0FFF,
            low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }

    // MARK: - The end

    /// Takes no more pushes, waits for the answers of those under way, at most until the
    /// deadline, and calls `done`. Rows without an answer stay to their lease.
    func stop(_ done: @escaping () -> Void) {
        guard stopping == nil else { return done() }
        stopping = (now + configuration.stopDeadline, done)
        for pool in ordered {
            for push in pool.retire() { finish(push, .notSent, keepsToken: false) }
            leaving.append(pool)
        }
        pools = [:]
        endIfStopped()
    }

    private func endIfStopped() {
        guard let stopping else { return }
        leaving.removeAll(where: \.isGone)
        let isDone = leaving.isEmpty && finishing == 0 && !isClaiming
        guard isDone || stopping.until <= now else { return }
        let left = leaving.reduce(0) { $0 + $1.openStreams }
        if left > 0 {
            // Their replies are not written down: the lease is longer than any answer takes.
            log.warning("push.left_to_lease", [LogField("pushes", left)])
        }
        isEnded = true
        for pool in leaving { pool.stop() }
        leaving = []
        timer?.close()
        timer = nil
        self.stopping = (stopping.until, {})
        stopping.done()
    }

}

extension GatewayLoop: CredentialPoolOwner {
    func makeTLS(_ credential: PushCredentialRecord) throws(TLSError) -> TLSEngine {
        let parts = TLSParts(credential)
        let context: TLSContext
        if let known = contexts[parts] {
            context = known
        } else {
            context = try TLSContext.client(
                trustedCertificates: parts.authorities.map { Array($0.text.utf8) },
                protocols: ["h2"], certificateChain: parts.certificate.map { Array($0.text.utf8) },
                privateKey: parts.key.map { Array($0.text.utf8) })
            contexts[parts] = context
        }
        return try context.makeEngine(serverName: credential.host)
    }

    func finish(_ push: HeldPush, _ reply: PushReply, keepsToken: Bool) {
        guard !isEnded else { return }
        finishing += 1
        if case .answered = reply { Failpoint.hit(.answered(push.job.kind)) }
        let request = FinishPush(
            key: push.job.key, id: push.job.request.id, reply: reply, keepsToken: keepsToken,
            answeredID: push.answeredID)
        queue.finish(request) { [weak self] result in
            self?.finished(push, reply, keepsToken: keepsToken, result)
        }
    }

    private func finished(
        _ push: HeldPush, _ reply: PushReply, keepsToken: Bool,
        _ result: Result<Void, StoreError>
    ) {
        finishing -= 1
        guard case .failure(let error) = result else {
            Failpoint.hit(.settled(push.job.kind))
            return endIfStopped()
        }
        metrics.finishFailures.add()
        log.warning(
            "push.finish_failed",
            [LogField("error", "\(error)"), LogField("push", push.job.request.id)])
        // Until the lease has ended nobody else has claimed the device.
        guard stopping == nil, now.since(push.claimedAt) < WakePolicy.lease else {
            return endIfStopped()
        }
        retries.append(
            Retry(
                at: now + Self.finishRetry, push: push, reply: reply, keepsToken: keepsToken))
    }

    func isBlocked(_ lane: PushLane) -> Bool { blocked.contains(lane) }

    func poolHasRoom(_ lane: PushLane) {
        if blocked.remove(lane) != nil { wantsClaim = true }
        claim()
    }

    func rest(_ key: ProviderKey, for pause: Milliseconds, reason: String) {
        for pool in ordered where pool.provider == key {
            pool.restKey(for: pause, reason: reason)
        }
    }
}
