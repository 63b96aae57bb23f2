import Feed
public import Model
import Wake

/// The way of pushes to APNs, as a machine without sockets: it claims pushes that are due, spreads
/// them over the connections of their credentials, and says what came of each.
///
///     PushPool          claims and finishes; the provider tokens
///      └ CredentialPool  a credential: pauses, probing, what its answers mean
///         └ Lane          a class of pushes: those that wait, and how many connections
///            └ PushConnection  streams, deadlines, signs of life
///
/// It is told what happens and when, and answers with what is to be done. Every push that it was
/// given by a claim is finished exactly once, unless it ends before. What it holds is bound by
/// what it claims: no more than streams are free, and `waitingMax` a lane.
public struct PushPool: Sendable {
    private let configuration: PushGatewayConfiguration
    private var chance: SplitMix64
    /// By serial; those of credentials that were changed or removed stay until they are gone.
    private var pools: [UInt64: CredentialPool] = [:]
    private var lastSerial: UInt64 = 0
    /// Those in force.
    private var current: [CredentialKey: UInt64] = [:]
    /// The same in the order of their keys.
    private var order: [UInt64] = []
    private var tokens = ProviderTokens()

    private var isClaiming = false
    /// Devices that lost their token since the claim under way was asked for.
    private var detached: Set<DetachedDevice> = []
    /// There were more such devices than are kept: nothing of the claim is sent.
    private var areDetachedTooMany = false
    /// The doorbell rang, or more is due than was claimed.
    private var wantsClaim = true
    private var nextDue: Timestamp?
    /// `PushMoment.changes` when a claim found nothing; `nil`: the last one found something.
    private var emptyAt: UInt64?
    /// More is due in these, and waits for streams.
    private var blocked: Set<PushLane> = []
    private var countAt: Instant?

    /// Answers on their way into the store.
    private var finishing = 0
    /// Answers the store could not take, in the order of their next try; each is of a push that
    /// was claimed and has not been claimed again, so there are no more than streams.
    private var retries: [(at: Instant, finish: PushFinish)] = []

    private enum Life {
        case running
        case stopping(until: Instant)
        case ended
    }
    private var life = Life.running

    /// Devices kept in `detached`.
    private static let detachedMax = 4_096

    /// How long an answer waits that the store could not take.
    private static let finishRetry: Milliseconds = 1_000

    /// - Parameter seed: of the jitter between connections.
    public init(configuration: PushGatewayConfiguration, seed: UInt64) {
        self.configuration = configuration
        chance = SplitMix64(seed: seed)
    }

    private var isRunning: Bool { if case .running = life { true } else { false } }

    /// The one door: something has happened.
    ///
    /// - Returns: what is to be done, in order.
    public mutating func handle(_ input: PushInput, at moment: PushMoment) -> [PushAction] {
        if case .ended = life { return [] }
        var turn = PushTurn(moment: moment, configuration: configuration, chance: chance)
        switch input {
        case .credentials(let all): if isRunning { replace(with: all, &turn) }
        case .ring:
            wantsClaim = true
            claim(&turn)
        case .detached(let devices): withdraw(devices, &turn)
        case .tick: tick(&turn)
        case .claimed(let claim, let result): claimed(claim, result, &turn)
        case .finished(let finish, let error): finished(finish, error, &turn)
        case .token(let key, let answer):
            tokens.take(answer, of: key, moment)
            for serial in order where pools[serial]?.provider == key { pump(serial, &turn) }
        case .connection(let id, let events): received(events, id, &turn)
        case .stop: stop(&turn)
        }
        chance = turn.chance
        finishing += turn.actions.count { if case .finish = $0 { true } else { false } }
        endIfStopped(&turn)
        return turn.actions
    }

    // MARK: - How it stands

    /// How it stands with the credentials in force, in their order, and with those that are going.
    public func status(
        at now: Instant
    ) -> (current: [PushCredentialStatus], leaving: [PushCredentialStatus]) {
        let leaving = pools.values.filter(\.isRetired).sorted { $0.serial < $1.serial }
        return (
            order.compactMap { pools[$0]?.status(now) }, leaving.map { $0.status(now) }
        )
    }

    /// When the oldest provider token in use was made, by `PushMoment.uptime`.
    public var oldestToken: Instant? { tokens.oldest }

    // MARK: - Time

    private mutating func tick(_ turn: inout PushTurn) {
        for serial in pools.keys.sorted() {
            pools[serial]?.tick(blocked: blocked, &turn, &tokens)
            settle(serial, &turn)
        }
        while let first = retries.first, first.at <= turn.now {
            turn.actions.append(.finish(retries.removeFirst().finish))
        }
        if !wouldFindNothing(turn.moment) {
            wantsClaim = true
            nextDue = nil
        }
        claim(&turn)
        wait(&turn)
    }

    /// Nothing was written since a claim found nothing, and nothing has become due.
    private func wouldFindNothing(_ moment: PushMoment) -> Bool {
        guard let emptyAt, emptyAt == moment.changes else { return false }
        return nextDue.map { moment.wall < $0.milliseconds } ?? true
    }

    private func wait(_ turn: inout PushTurn) {
        var wait = configuration.tick
        if let nextDue {
            let (due, wall) = (nextDue.milliseconds, turn.moment.wall)
            wait = min(wait, due > wall ? due - wall : 0)
        }
        // Not less: the store's clock may be behind ours.
        turn.actions.append(.wait(max(min(20, configuration.tick), wait)))
    }

    // MARK: - Connections

    private mutating func received(
        _ events: [ConnectionEvent], _ id: ConnectionID, _ turn: inout PushTurn
    ) {
        guard let key = pools[id.pool]?.key else { return }
        let hasRoom = pools[id.pool]?.receive(events, on: id, &turn, &tokens) ?? false
        settle(id.pool, &turn)
        guard hasRoom else { return }
        if blocked.remove(PushLane(key, id.lane)) != nil { wantsClaim = true }
        claim(&turn)
    }

    /// What follows from what happened to a credential.
    private mutating func settle(_ serial: UInt64, _ turn: inout PushTurn) {
        for rest in turn.resting {
            for other in order where pools[other]?.provider == rest.key {
                pools[other]?.rest(rest.pause, reason: rest.reason, isOfKey: true, &turn)
            }
        }
        turn.resting = []
        pump(serial, &turn)
        if pools[serial]?.isGone ?? false { pools[serial] = nil }
    }

    private mutating func pump(_ serial: UInt64, _ turn: inout PushTurn) {
        pools[serial]?.pump(&turn, &tokens)
    }

    // MARK: - Credentials

    private mutating func replace(
        with credentials: [PushCredentialRecord], _ turn: inout PushTurn
    ) {
        var before = current
        current = [:]
        for credential in credentials {
            let key = CredentialKey(credential)
            if let serial = before[key], pools[serial]?.credential == credential {
                current[key] = serial
                before[key] = nil
            } else {
                lastSerial += 1
                current[key] = lastSerial
                pools[lastSerial] = CredentialPool(
                    credential, serial: lastSerial, configuration)
            }
        }
        order = current.sorted { $0.key < $1.key }.map(\.value)
        tokens.keep(Set(order.compactMap { pools[$0]?.provider }))
        blocked = blocked.filter { current[$0.credential] != nil }
        var moved: [HeldPush] = []
        for (key, serial) in before.sorted(by: { $0.key < $1.key }) {
            guard let last = pools[serial]?.place() else { continue }
            moved += pools[serial]?.retire(&turn) ?? []
            let place = current[key].flatMap { pools[$0]?.place() } ?? last
            turn.tell(place, .credential(.changed(isRemoved: current[key] == nil)))
            settle(serial, &turn)
        }
        deliver(moved, &turn)
    }

    /// Gives pushes to the pools of their credentials.
    private mutating func deliver(_ pushes: [HeldPush], _ turn: inout PushTurn) {
        var given: Set<UInt64> = []
        for push in pushes {
            if isRunning, let serial = current[push.job.credential] {
                pools[serial]?.take(push, &turn)
                given.insert(serial)
            } else {
                turn.finish(push, .notSent)
            }
        }
        for serial in order where given.contains(serial) { pump(serial, &turn) }
    }

    // MARK: - The store

    private mutating func claim(_ turn: inout PushTurn) {
        guard wantsClaim, !isClaiming, isRunning else { return }
        let rooms = order.compactMap { pools[$0]?.room(turn) }
        let all = rooms.reduce(0) { sum, room in
            PushClass.allCases.reduce(sum) { $0 + room[$1] }
        }
        let counts = countAt.map { $0 <= turn.now } ?? true
        // A stream that becomes free comes here again. What waits meanwhile is counted: it waits
        // the longest where nothing can be sent.
        guard all > 0 || counts && !order.isEmpty else { return }
        if all > 0 { wantsClaim = false }
        isClaiming = true
        // While the store looks, what will be sent with the pushes is put in order.
        for serial in order { pools[serial]?.renewToken(&turn, &tokens) }
        if counts { countAt = turn.now + configuration.queueCount }
        turn.actions.append(
            .claim(
                PushClaim(
                    asked: turn.now, streams: min(all, configuration.claimMax), rooms: rooms,
                    countsQueues: counts, changes: turn.moment.changes)))
    }

    private mutating func claimed(
        _ claim: PushClaim, _ result: Result<ClaimedPushes, StoreError>,
        _ turn: inout PushTurn
    ) {
        isClaiming = false
        emptyAt = nil
        switch result {
        case .failure:
            nextDue = nil
            return  // The next tick tries again.
        case .success(let claimed):
            nextDue = claimed.nextDue
            wantsClaim = wantsClaim || claimed.more
            blocked = Set(claimed.blocked)
            // What is due and cannot be sent now waits for more than the store.
            if claim.countsQueues, claimed.queues.isEmpty, claimed.jobs.isEmpty, !claimed.more {
                emptyAt = claim.changes
            }
            deliver(
                claimed.jobs.map { HeldPush(job: $0, claimedAt: claim.asked) }.filter { push in
                    guard areDetachedTooMany || detached.contains(DetachedDevice(push.job.key))
                    else { return true }
                    // Whether the store claimed it before the device lost its token or after,
                    // nobody knows: a push that is still owed is claimed again.
                    turn.finish(push, .notSent)
                    return false
                }, &turn)
        }
        detached = []
        areDetachedTooMany = false
        self.claim(&turn)
        wait(&turn)
    }

    /// What these devices were claimed for, and has not left, stays here (product: P6).
    private mutating func withdraw(_ devices: [DetachedDevice], _ turn: inout PushTurn) {
        let gone = Set(devices)
        for serial in pools.keys.sorted() { pools[serial]?.withdraw(gone, &turn) }
        guard isClaiming else { return }
        if detached.count + gone.count > Self.detachedMax { areDetachedTooMany = true }
        if !areDetachedTooMany { detached.formUnion(gone) }
    }

    private mutating func finished(
        _ finish: PushFinish, _ error: StoreError?, _ turn: inout PushTurn
    ) {
        finishing -= 1
        // Until the lease has ended nobody else has claimed the device.
        guard error != nil, isRunning,
            turn.now.since(finish.push.claimedAt) < WakePolicy.lease
        else { return }
        retries.append((turn.now + Self.finishRetry, finish))
    }

    // MARK: - The end

    /// Takes no more pushes, waits for the answers of those under way, at most until the
    /// deadline. Rows without an answer stay to their lease.
    private mutating func stop(_ turn: inout PushTurn) {
        guard isRunning else { return }
        life = .stopping(until: turn.now + configuration.stopDeadline)
        for serial in order {
            for push in pools[serial]?.retire(&turn) ?? [] { turn.finish(push, .notSent) }
            settle(serial, &turn)
        }
        current = [:]
        order = []
    }

    private mutating func endIfStopped(_ turn: inout PushTurn) {
        guard case .stopping(let until) = life else { return }
        let isDone = pools.isEmpty && finishing == 0 && !isClaiming
        guard isDone || until <= turn.now else { return }
        life = .ended
        // What was sent and has no answer is not written down: the lease is longer than any answer
        // takes.
        let left = pools.values.reduce(0) { $0 + $1.openStreams }
        turn.actions.append(.ended(leftToLease: left))
        pools = [:]
    }
}
