import EventLoop
import Feed
import FoundationEssentials
import Model
import PostgresStore
import StoreService
import SyncService
import Wire

/// What the nodes of a store tell each other of their commits, so that a device is told at once
/// whichever node it is connected to. A hint may be lost: the turn over heads finds what moved
/// within 10 s, and a session that was ended elsewhere finds that its row is gone with its next
/// page. Signals go the same way, last and first to be dropped (SIG-6).
final class NodeHints: Sendable {
    private struct User: Hashable {
        let app: AppID
        let user: UserID
    }

    private struct Pending {
        var moved: [User: FeedChange] = [:]
        var ended: [EndedSession] = []
        var challenged: [SessionKey] = []
        var detached: [DetachedDevice] = []
        var work: BackgroundWork = []
        var hasDeliveries = false
        var audiences: Set<AudienceChange> = []
        var areAudiencesTooMany = false
        var signals = WaitingSignals()

        var count: Int { moved.count + ended.count + challenged.count + detached.count }

        /// Of each user the newest head is enough.
        mutating func add(_ change: FeedChange) {
            let user = User(app: change.app, user: change.user)
            guard var known = moved[user] else {
                moved[user] = change
                return
            }
            known.head = max(known.head, change.head)
            known.kinds |= change.kinds
            known.isUrgent = known.isUrgent || change.isUrgent
            moved[user] = known
        }

        mutating func add(_ changes: [AudienceChange]) {
            guard !areAudiencesTooMany else { return }
            audiences.formUnion(changes)
            guard audiences.count > NodeHints.audiencesMax else { return }
            areAudiencesTooMany = true
            audiences = []
        }

        /// Signals come last: what they say is dropped first, and who gets them is told before.
        func news(now: Instant) -> [NodeNews] {
            var news = detached.map { NodeNews.detached(.init($0)) }
            news += ended.map { NodeNews.ended(.init($0.session), code: $0.code.rawValue) }
            news += challenged.map { .challenged(.init($0)) }
            if !work.isEmpty { news.append(.work(work.rawValue)) }
            if hasDeliveries { news.append(.deliveries) }
            news += moved.values.map { .moved(.init($0)) }
            if areAudiencesTooMany { news.append(.audiences) }
            news += audiences.map { .audience(.init($0)) }
            return news + signals.fresh(now: now).map { .signal(.init($0)) }
        }
    }

    /// Users and sessions that wait to be told; what is above is left to the turn over heads.
    private static let pendingMax = 20_000

    /// Audiences told one by one; above, the others take all for changed.
    private static let audiencesMax = 1_000

    private let from: String
    private let lock = Lock()
    private nonisolated(unsafe) var pending = Pending()  // guarded by `lock`
    private nonisolated(unsafe) var gate: TokenBucket  // guarded by `lock`
    private nonisolated(unsafe) var dropped = DroppedHints()  // guarded by `lock`
    private nonisolated(unsafe) var others = OtherNodes()  // guarded by `lock`
    /// The others are to hear that this node is there.
    private nonisolated(unsafe) var announces = true  // guarded by `lock`
    private nonisolated(unsafe) var way: PostgresHints?  // set before any thread begins

    /// From any thread.
    var drops: DroppedHints { lock.withLock { dropped } }
    /// How often the connection that carries them was lost.
    var losses: UInt64 { way?.losses ?? 0 }

    /// - Parameters:
    ///   - told: Called with what another node tells, on the hints' thread.
    ///   - onNews: Called there when the connection is lost, and when it is back: then something
    ///     that others told may not have come.
    init(
        _ place: StorePlace, _ witness: PostgresWitness, boot: BootID,
        told: @escaping @Sendable (NodeTold) -> Void,
        onNews: @escaping @Sendable (PostgresHints.News) -> Void
    ) {
        from = "\(boot)"
        gate = TokenBucket(WaitingSignals.rate, now: Self.now)
        let own = from
        var options = place.postgresOptions
        options.witness = witness
        way = PostgresHints(
            options, next: { [weak self] in self?.next() ?? [] },
            received: { [weak self] text in
                guard let text = try? JSONDecoder().decode(NodeText.self, from: Data(text.utf8))
                else {
                    self?.noteUnread(1)
                    return
                }
                guard text.from != own else { return }
                self?.heard()
                let heard = NodeTold(text.news)
                self?.noteUnread(text.unread + heard.unread)
                told(heard)
            },
            onNews: { [weak self] news in
                if news == .back { self?.announce() }
                onNews(news)
            })
    }

    private func announce() { lock.withLock { announces = true } }

    private func heard() {
        let now = Self.now
        lock.withLock { others.heard(now: now) }
    }

    /// Told by the store's writer with each beat.
    func take(_ standing: NodeStanding) { lock.withLock { others.take(standing) } }

    private static var now: Instant {
        Instant(milliseconds: SystemClock.monotonicMilliseconds())
    }

    private func noteUnread(_ count: Int) {
        guard count > 0 else { return }
        lock.withLock { dropped.unread += UInt64(count) }
    }

    func start() {
        guard let way else { return }
        WorkThread.start("hints") { way.run() }
    }

    func stop() { way?.stop() }

    /// Told by the store's writer after each commit of this node.
    func committed(_ effects: Effects) {
        let now = Self.now
        let isTold = lock.withLock {
            guard others.mayBeThere(now: now) else { return false }
            // A change of the number of unread messages alone is told by the next page.
            for change in effects.changes.all where change.kinds != 0 {
                guard pending.count < Self.pendingMax else {
                    dropped.untold += 1
                    continue
                }
                pending.add(change)
            }
            let room = max(0, Self.pendingMax - pending.count)
            pending.ended += effects.ended.prefix(room)
            pending.challenged += effects.challenged.prefix(room)
            pending.detached += effects.detached.prefix(room)
            dropped.untold += UInt64(max(0, effects.ended.count - room))
            dropped.untold += UInt64(max(0, effects.challenged.count - room))
            dropped.untold += UInt64(max(0, effects.detached.count - room))
            pending.work.formUnion(effects.background)
            pending.hasDeliveries = pending.hasDeliveries || effects.hasDeliveries
            pending.add(effects.audiences)
            return true
        }
        if isTold { way?.ring() }
    }

    /// Somebody signals through this node. What is above the rate is dropped.
    func signal(_ signal: NodeSignal) {
        let now = Self.now
        let isTaken = lock.withLock {
            others.mayBeThere(now: now) && gate.take(WaitingSignals.rate, now: now) == nil
                && pending.signals.add(signal, now: now)
        }
        if isTaken { way?.ring() }
    }

    private func next() -> [String] {
        let now = Self.now
        let (news, isNew) = lock.withLock {
            defer { (pending, announces) = (Pending(), false) }
            return (pending.news(now: now), announces)
        }
        let told = NodeText.texts(from: from, news, bytesMax: PostgresHints.bytesMax)
        if told.leftOut > 0 { lock.withLock { dropped.untold += UInt64(told.leftOut) } }
        return (isNew ? [NodeText.announcement(from: from)] : []) + told.texts
    }
}

/// Whether anybody is there to be told: a node that is alone saves what telling costs it and the
/// database. What is not told to one that has just come, the turn over heads finds.
struct OtherNodes {
    private var isAlone = false
    private var heardAt: Instant?

    /// A node that was heard may not have said in its row yet that it is there: so long it is
    /// counted all the same.
    static let heardFor: Milliseconds = 10_000

    /// What the last beat found.
    mutating func take(_ standing: NodeStanding) { isAlone = standing.isAlone }

    mutating func heard(now: Instant) { heardAt = now }

    func mayBeThere(now: Instant) -> Bool {
        !isAlone || heardAt.map { now.since($0) < Self.heardFor } ?? false
    }
}

/// Hints that nobody acted on; what was kept is found by the turn over heads.
struct DroppedHints: Equatable {
    /// Of this node: too many waited, or one was too long.
    var untold: UInt64 = 0
    /// Of others: of a kind that only a newer version knows, or not readable.
    var unread: UInt64 = 0
}

/// Signals that wait to be told to other nodes, the newest of each user in each conversation.
struct WaitingSignals {
    private struct Origin: Hashable {
        let app: AppID
        let conversation: ConversationID
        let sender: UserID
    }

    private var waiting: [Origin: (signal: NodeSignal, since: Instant)] = [:]

    /// What one node tells the others, so that typing never crowds out what is kept.
    static let rate = RateLimit(perSecond: 200, burst: 400)

    /// Signals that wait.
    static let max = 400

    /// Milliseconds after which nobody is told any more.
    static let freshFor: Milliseconds = 2_000

    /// - Returns: whether there was room.
    mutating func add(_ signal: NodeSignal, now: Instant) -> Bool {
        let origin = Origin(
            app: signal.app, conversation: signal.conversation, sender: signal.sender)
        guard waiting.count < Self.max || waiting[origin] != nil else { return false }
        waiting[origin] = (signal, now)
        return true
    }

    /// Those that did not wait too long for the way to the others.
    func fresh(now: Instant) -> [NodeSignal] {
        waiting.values.filter { now.since($0.since) <= Self.freshFor }.map(\.signal)
    }
}
