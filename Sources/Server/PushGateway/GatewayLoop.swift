import Crypto
import EventLoop
import Failpoints
import Feed
import Model
import PushPool
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
    var withdrawals = PushGateway.Withdrawals()
    var makeQueue: @Sendable (Loop) -> any PushQueue
}

/// The clocks of provider tokens and due times; all other times are the loop's.
struct GatewayClocks: Sendable {
    /// Milliseconds since 1970.
    var wall: @Sendable () -> UInt64 = SystemClock.wallMilliseconds
    var monotonic: @Sendable () -> UInt64 = SystemClock.monotonicMilliseconds
}

/// Carries out what the pool decides, with sockets, the store and a timer, and tells it what comes
/// of that. Loop-confined.
final class GatewayLoop {
    private let loop: Loop
    private let boot: BootID
    private let configuration: PushGatewayConfiguration
    private let credentials: CredentialSource
    private let clocks: GatewayClocks
    private let journal: GatewayJournal
    private let board: PushStatusBoard
    private let withdrawals: PushGateway.Withdrawals
    private let queue: any PushQueue
    private var pool: PushPool
    private var connections: [ConnectionID: APNsConnection] = [:]
    private var contexts: TLSContexts
    private var signers: [ProviderKey: ProviderSigner] = [:]
    private var knownGeneration: UInt64?
    private var timer: LoopTimer?
    /// What happens while actions are carried out; it has its turn after them.
    private var inbox: [PushInput] = []
    private var isFeeding = false
    private var unflushed: Set<ConnectionID> = []
    private var stopped: (() -> Void)?

    init(loop: Loop, parts: GatewayParts) {
        self.loop = loop
        boot = parts.boot
        configuration = parts.configuration
        credentials = parts.credentials
        clocks = parts.clocks
        journal = GatewayJournal(log: parts.log, metrics: parts.metrics)
        board = parts.board
        withdrawals = parts.withdrawals
        queue = parts.makeQueue(loop)
        contexts = TLSContexts()
        pool = PushPool(
            configuration: parts.configuration, seed: .random(in: 0...UInt64.max))
        timer = loop.timer { [unowned self] in self.tick() }
        timer?.start(afterMilliseconds: 1)
    }

    private var metrics: GatewayMetrics { journal.metrics }
    private var now: Instant { Instant(milliseconds: loop.now) }

    // MARK: - What the pool is told

    /// Something may have become due, or must not be sent any more.
    func ring() {
        let gone = withdrawals.take()
        if !gone.isEmpty { feed(.detached(gone)) }
        feed(.ring)
    }

    /// Takes no more pushes, waits for the answers of those under way, at most until the
    /// deadline, and calls `done`.
    func stop(_ done: @escaping () -> Void) {
        guard stopped == nil else { return done() }
        stopped = done
        feed(.stop)
    }

    private func tick() {
        feed(.tick)
        let status = pool.status(at: now)
        board.set(status.current)
        metrics.gauge(status.current + status.leaving)
        metrics.oldestToken.set(Int(clamping: pool.oldestToken?.milliseconds ?? 0))
    }

    private func feed(_ input: PushInput) {
        inbox.append(input)
        guard !isFeeding else { return }
        isFeeding = true
        refreshCredentials()
        while !inbox.isEmpty {
            let moment = PushMoment(
                now: now, uptime: Instant(milliseconds: clocks.monotonic()), wall: clocks.wall(),
                changes: queue.changes)
            for action in pool.handle(inbox.removeFirst(), at: moment) { carryOut(action) }
            if inbox.isEmpty { flush() }
        }
        isFeeding = false
    }

    private func refreshCredentials() {
        let generation = credentials.generation()
        guard generation != knownGeneration else { return }
        knownGeneration = generation
        let all = credentials.all()
        contexts.keep(all)
        signers = [:]
        inbox.insert(.credentials(all), at: 0)
    }

    private func flush() {
        for id in unflushed { connections[id]?.flush() }
        unflushed = []
    }

    // MARK: - What the pool wants

    private func carryOut(_ action: PushAction) {
        switch action {
        case .claim(let claim): ask(claim)
        case .finish(let finish): write(finish)
        case .keepToken(let request): keep(request)
        case .dial(let id, let credential): dial(id, credential)
        case .send(let id, let tag, let push):
            unflushed.insert(id)
            connections[id]?.submit(push, tag: tag, token: push.providerToken)
            // What is submitted while bytes are received leaves at the end of that.
            if Failpoint.areBuiltIn { loop.nextTurn { Failpoint.hit(.sent(push.job.kind)) } }
        case .cancel(let id, let tag):
            unflushed.insert(id)
            connections[id]?.cancel(tag)
        case .ping(let id):
            unflushed.insert(id)
            connections[id]?.ping()
        case .close(let id, let saysGoodbye):
            connections.removeValue(forKey: id)?.close(saysGoodbye: saysGoodbye)
        case .wait(let wait): timer?.start(afterMilliseconds: wait)
        case .tell(let place, let report):
            journal.note(report, at: place, now: now, wall: clocks.wall())
        case .ended(let left): end(leftToLease: left)
        }
    }

    private func end(leftToLease left: Int) {
        if left > 0 { journal.log.warning("push.left_to_lease", [LogField("pushes", left)]) }
        for connection in connections.values { connection.close(saysGoodbye: false) }
        connections = [:]
        timer?.close()
        timer = nil
        stopped?()
        stopped = {}
    }

    // MARK: - Connections

    private func dial(_ id: ConnectionID, _ credential: PushCredentialRecord) {
        do throws(TLSError) {
            let connection = APNsConnection(
                endpoint: APNsEndpoint(
                    host: credential.host, port: UInt16(clamping: credential.port)),
                tls: try contexts.makeEngine(credential), loop: loop,
                bytesSent: metrics.bytesSent
            ) { [unowned self] events in
                if self.connections[id]?.end != nil { self.connections[id] = nil }
                self.feed(.connection(id, events))
            }
            connections[id] = connection
            connection.start(timeout: configuration.connectDeadline)
        } catch {
            feed(
                .connection(
                    id, [error.isOfTime ? .untimely("\(error)") : .unusable("\(error)")]))
        }
    }

    // MARK: - The store

    private func ask(_ claim: PushClaim) {
        let request = ClaimPushes(
            boot: boot, streams: claim.streams, ids: (0..<claim.streams).map { _ in freshID() },
            rooms: claim.rooms, countsQueues: claim.countsQueues)
        queue.claim(request) { [weak self] result in self?.claimed(claim, result) }
    }

    /// What the last claim failed with.
    private var claimFailure: StoreError?

    private func claimed(_ claim: PushClaim, _ result: Result<ClaimedPushes, StoreError>) {
        switch result {
        case .failure(let error):
            metrics.claimFailures.add()
            // It is tried again twice a second, and the store tells of itself (`store.failed`).
            if error != claimFailure {
                journal.log.warning("push.claim_failed", [LogField("error", "\(error)")])
            }
            claimFailure = error
        case .success(let claimed):
            claimFailure = nil
            if claim.countsQueues { metrics.note(claimed.queues, wall: clocks.wall()) }
            if !claimed.jobs.isEmpty {
                metrics.claimSeconds.observe(milliseconds: now.since(claim.asked))
                Failpoint.hit(.pushClaimed)
            }
        }
        feed(.claimed(claim, result))
    }

    /// UUIDv7 (RFC 9562 5.7): those made one after another stay close in the store's indexes.
    private func freshID() -> WakeID {
        let random = Random.bytes(10)
        let low = random[2...].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let high = UInt64(random[0]) << 8 | UInt64(random[1])
        return WakeID(
            high: clocks.wall() << 16 | 0x7000 | high & 0x0FFF,
            low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
    }

    private func write(_ finish: PushFinish) {
        let kind = finish.push.job.kind
        if case .answered = finish.reply { Failpoint.hit(.answered(kind)) }
        queue.finish(finish.request) { [weak self] result in
            var failure: StoreError?
            switch result {
            case .success: Failpoint.hit(.settled(kind))
            case .failure(let error): failure = error
            }
            self?.written(finish, failure)
        }
    }

    private func written(_ finish: PushFinish, _ failure: StoreError?) {
        if let failure {
            metrics.finishFailures.add()
            journal.log.warning(
                "push.finish_failed",
                [
                    LogField("error", "\(failure)"),
                    LogField("push", finish.push.job.request.id),
                ])
        }
        feed(.finished(finish, failure))
    }

    // MARK: - Provider tokens

    private func signer(_ key: ProviderKey) throws(UnusableKey) -> ProviderSigner {
        if let known = signers[key] { return known }
        let made = try ProviderSigner(key)
        signers[key] = made
        return made
    }

    private func keep(_ request: TokenRequest) {
        let key = request.key
        let signed: String
        do throws(UnusableKey) {
            signed = try signer(key).sign(wall: request.issuedAt)
        } catch {
            return feed(.token(key, .unusable(error.description)))
        }
        let asked = KeepProviderToken(
            team: key.team, keyID: key.keyID, fingerprint: key.fingerprint, token: signed,
            refused: request.refused, replacesYoung: request.replacesYoung)
        queue.keepProviderToken(asked) { [weak self] result in
            guard let self else { return }
            guard case .success(let kept) = result else { return feed(.token(key, .failed)) }
            if kept.token == signed { metrics.tokensMade.add() }
            feed(.token(key, .kept(kept, issuedAt: ProviderSigner.issuedAt(kept.token))))
        }
    }
}
