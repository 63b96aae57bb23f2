public import Model
public import Wire

/// A `ClientSession` joined to its `LocalStore`: what is the store's is carried out here, in the
/// session's order, and what is left is a list of effects for whoever has the socket, the clock
/// and the app.
///
/// Entries first, what follows from them last: an app that is told `synced` calls the system's
/// completion handler and is suspended, so by then it has been given everything.
public struct ClientReplica {
    /// What a shell carries out, in the order given.
    public enum Effect: Equatable, Sendable {
        case connect
        case send(Frame)
        /// The decoder's limits from here on.
        case raiseLimits(FrameLimits)
        /// Write what was sent, then close.
        case disconnect
        /// Have the app's backend sign an identity token over the nonce.
        case needIdentityToken(nonce: [UInt8])
        case report(ClientEvent)
        /// New to this device, and durable; `news`: those of them that the user may be notified of
        /// (PSH-8).
        case applied([Entry], news: [Entry])
        /// Final results of mutations, durable.
        case results([MutationResult])
    }

    public var session: ClientSession
    public let store: any LocalStore
    /// Changes of frames that were read together, in order: applied as one, because a transaction
    /// costs more than what is in it. Bounded by what one read of the socket completes.
    private var gathered: [LocalChange] = []
    private var isGathering = false
    private var waiting: [ClientAction] = []
    private var effects: [Effect] = []
    private var now = Instant(milliseconds: 0)
    private var wall = Timestamp(milliseconds: 0)

    /// - Parameter seed: chance for back-off; different for every client.
    /// - Throws: when the local store cannot be read.
    public init(
        store: any LocalStore, configuration: ClientConfiguration, seed: UInt64
    ) throws(LocalStoreError) {
        self.store = store
        var state = try store.load()
        if state.isLeaving, configuration.user != nil {
            // Somebody has logged in: the server hears of that, and lets in nobody else here
            // (SES-14). The credential was to end.
            try store.erase()
            state = try store.load()
        }
        if let user = configuration.user, !state.user.isEmpty, !state.user.isExactly(user) {
            try store.saveSession(token: [], user: user)
            state = try store.load()
        } else {
            if configuration.user != nil { try Self.dropLogouts(store) }
            state = try store.load()
        }
        session = ClientSession(configuration: configuration, state: state, seed: seed)
    }

    /// A logout that an earlier process did not live to finish would end the session of a user who
    /// has logged in again.
    private static func dropLogouts(_ store: any LocalStore) throws(LocalStoreError) {
        var last: UInt64 = 0
        while true {
            let waiting = try store.mutations(
                after: last, limit: 64, now: Timestamp(milliseconds: 0))
            let logouts = waiting.filter(\.isLogout).map {
                // Whether it was carried out is not known, and does not matter any more.
                MutationResult(
                    number: $0.number, code: Code.resultGone.rawValue,
                    retry: Code.resultGone.retryClass)
            }
            if !logouts.isEmpty { try store.saveResults(logouts) }
            guard let end = waiting.last?.number else { return }
            last = end
        }
    }

    // MARK: - Inputs

    /// Lets the session hear of something.
    public mutating func on(
        now: Instant, wall: Timestamp,
        _ input: (inout ClientSession, Instant) -> [ClientAction]
    ) -> [Effect] {
        (self.now, self.wall) = (now, wall)
        waiting += input(&session, now)
        return carryOutAll()
    }

    /// A frame of several that were read together: `framesEnded` comes after the last of them.
    public mutating func received(
        _ frame: Frame, now: Instant, wall: Timestamp
    ) -> [Effect] {
        isGathering = true
        return on(now: now, wall: wall) { $0.received(frame, now: $1) }
    }

    /// All frames of what was read together have been handed over, or the connection is gone.
    public mutating func framesEnded(now: Instant, wall: Timestamp) -> [Effect] {
        (self.now, self.wall) = (now, wall)
        do throws(LocalStoreError) {
            try endGathering()
        } catch {
            storeFailed(error)
        }
        return carryOutAll()
    }

    /// Queues an operation durably. Returns its number; the result comes as an effect, after
    /// however many connections it takes.
    public mutating func enqueue(
        _ operation: Mutation.Operation, now: Instant, wall: Timestamp
    ) throws(LocalStoreError) -> (number: UInt64, effects: [Effect]) {
        if case .deleteMessage(let deletion) = operation, let message = deletion.message,
            let results = try store.withdraw(message), let number = results.last?.number
        {
            let effects = on(now: now, wall: wall) { $0.withdrawn(results, now: $1) }
            return (number, effects + [.results(results)])
        }
        let leaves = session.isOpen
        let number = try store.enqueue(operation, at: wall, leaves: leaves)
        if leaves { session.marked(through: number) }
        return (number, on(now: now, wall: wall) { $0.mutationQueued(number, now: $1) })
    }

    /// The user has read something.
    public mutating func read(
        _ receipt: ReadReceipt, now: Instant, wall: Timestamp
    ) throws(LocalStoreError) -> [Effect] {
        guard try store.addRead(receipt) else { return [] }
        return on(now: now, wall: wall) { $0.readQueued(receipt, now: $1) }
    }

    // MARK: - Carrying out

    private mutating func carryOutAll() -> [Effect] {
        while !waiting.isEmpty {
            let action = waiting.removeFirst()
            do throws(LocalStoreError) {
                try carryOut(action)
            } catch {
                if case .markSent = action {
                    // The next process would think that they have not left.
                    waiting.removeAll { if case .send = $0 { true } else { false } }
                }
                storeFailed(error)
            }
        }
        defer { effects = [] }
        return effects
    }

    private mutating func hear(_ actions: [ClientAction]) { waiting += actions }

    private mutating func storeFailed(_ error: LocalStoreError) {
        // None after one that failed: a later page would leave a gap below its cursor.
        gathered = []
        waiting.removeAll { action in
            if case .apply = action { true } else { false }
        }
        hear(session.storeFailed(error, now: now))
    }

    private mutating func endGathering() throws(LocalStoreError) {
        isGathering = false
        guard var whole = gathered.first else { return }
        for change in gathered.dropFirst() {
            whole.entries += change.entries
            whole.to = change.to
        }
        let count = gathered.count
        gathered = []
        try apply(whole, standingFor: count)
    }

    private mutating func apply(
        _ change: LocalChange, standingFor count: Int = 1
    ) throws(LocalStoreError) {
        let applied = try store.apply(change)
        var actions: [ClientAction] = []
        for _ in 0..<count { actions += session.committed(now: now) }
        tell(applied, actions)
    }

    /// The icon's number comes before the entries: on a phone its change to 0 clears what stands
    /// on the screen. All else that follows from the commit comes after them.
    private mutating func tell(_ applied: [Entry], _ actions: [ClientAction]) {
        var actions = actions
        if case .report(.unread(let count)) = actions.first {
            actions.removeFirst()
            effects.append(.report(.unread(count)))
        }
        if !applied.isEmpty {
            effects.append(.applied(applied, news: session.news(among: applied)))
        }
        hear(actions)
    }

    private mutating func carryOut(_ action: ClientAction) throws(LocalStoreError) {
        switch action {
        case .apply, .send, .raiseLimits, .saveResults, .loadMutations, .markSent, .report: break
        default: try endGathering()
        }
        switch action {
        case .connect: effects.append(.connect)
        case .send(let frame): effects.append(.send(frame))
        case .raiseLimits(let limits): effects.append(.raiseLimits(limits))
        case .disconnect: effects.append(.disconnect)
        case .needIdentityToken(let nonce, _): effects.append(.needIdentityToken(nonce: nonce))
        case .report(let event):
            effects.append(.report(event))
            if case .synced = event, let last = try store.sendAwaited(at: wall) {
                // Nothing was answered; what waits is another, and what is refused.
                effects.append(.results([]))
                hear(session.mutationQueued(last, now: now))
            }
        case .apply(let change):
            if isGathering, !change.marksStale, !change.sweeps {
                gathered.append(change)
            } else {
                try endGathering()
                try apply(change)
            }
        case .applyHistory(let change):
            tell(try store.applyHistory(change), session.historyCommitted(now: now))
        case .applySnapshot(let change):
            let (applied, last) = try store.applySnapshot(change, at: wall)
            tell(applied, session.snapshotCommitted(lastMutation: last, now: now))
        case .sumUp: hear(session.digestComputed(try store.digest(), now: now))
        case .loadOrphans(let limit):
            let orphans = try store.orphans(limit: limit)
            if !orphans.isEmpty { hear(session.orphansLoaded(orphans, now: now)) }
        case .saveResults(let results):
            try store.saveResults(results)
            effects.append(.results(results))
        case .endReads(let reads): hear(session.readsEnded(try store.endReads(reads), now: now))
        case .saveSession(let token, let user): try store.saveSession(token: token, user: user)
        case .forgetSession: try store.forgetSession()
        case .savePush(let push): try store.savePush(push)
        case .loadMutations(let number, let limit):
            let mutations = try store.mutations(after: number, limit: limit, now: wall)
            hear(session.mutationsLoaded(mutations, now: now))
        case .markSent(let number): try store.markSent(through: number)
        case .markLogoutSent(let number):
            try store.markLogoutSent(number)
            hear(session.logoutMarked(now: now))
        case .raiseMutationNumbers(let floor): try store.raiseMutationNumbers(above: floor)
        case .renumberMutations(let first, let floor):
            try store.renumberMutations(from: first, above: floor)
            let last = try store.load().lastMutation
            hear(session.mutationsRenumbered(last: last, now: now))
        }
    }
}
