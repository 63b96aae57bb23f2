import Feed
import Model
import Wake

/// One HTTP/2 connection to APNs: its streams, their deadlines, and whether it still lives.
///
/// Every push that is sent on it comes back exactly once: answered, unanswered or returned.
struct PushConnection {
    enum Standing: Equatable {
        /// TLS is to be up before.
        case dialing(before: Instant)
        /// It takes pushes.
        case active
        /// It takes no new streams; gone when its last has ended. Retired: it is we who want it
        /// closed then, and not APNs alone.
        case leaving(isRetired: Bool)
    }

    private struct Stream {
        var push: HeldPush
        let sentAt: Instant
        /// Until when it is waited for, in time or late.
        var deadline: Instant
        var isLate = false
    }

    let id: ConnectionID
    /// Requests carry provider tokens: APNs allows one stream until it has accepted one (Apple:
    /// Establishing a token-based connection to APNs).
    private let usesTokens: Bool
    private let streamsMax: Int
    private(set) var standing: Standing
    private var readyAt: Instant?
    /// Streams that APNs allows; 1 until its SETTINGS say more.
    private var allowed = 1
    /// Since when it allows none.
    private var shutSince: Instant?
    private var streams: [UInt64: Stream] = [:]
    /// Tags in the order of their deadlines; those answered since are skipped.
    private var order: [UInt64] = []
    private var orderStart = 0
    /// Tags of streams whose deadline has passed, in order; their answers may come yet.
    private var late: [UInt64] = []
    /// The newest push that was answered in time.
    private var lastPrompt: UInt64 = 0
    private var lastTag: UInt64 = 0
    /// The provider token of the newest push.
    private(set) var lastToken: String?
    private var lastHeard: Instant
    /// When a stream was last opened or answered.
    private var lastUsed: Instant
    private var pingBefore: Instant?
    /// The PING under way must be answered before the next push.
    private var isVerifying = false
    /// Bytes wait for the socket.
    var isBehind = false
    /// It did not take a push; it is tried again when something has happened on it.
    private var isRefusing = false
    /// It did nothing with pushes, and goes on living.
    private var refusals: StreamRefusals
    private var silentStreams = 0
    /// Whether APNs has answered a push here: a connection without any came to nothing.
    private(set) var hasAnswered = false
    /// It has shown that APNs takes pushes here.
    var isTrusted: Bool { usesTokens ? isAuthenticated : hasAnswered }
    /// Whether APNs has believed a provider token here, whatever it said of the push.
    private var isAuthenticated = false

    init(_ id: ConnectionID, usesTokens: Bool, _ turn: PushTurn) {
        self.id = id
        self.usesTokens = usesTokens
        streamsMax = turn.configuration.streamsMax
        refusals = StreamRefusals(
            delay: turn.configuration.refusalDelay, delayMax: turn.configuration.refusalDelayMax)
        standing = .dialing(before: turn.now + turn.configuration.connectDeadline)
        lastHeard = turn.now
        lastUsed = turn.now
    }

    // MARK: - What it can do

    /// Pushes sent and not given back.
    var openStreams: Int { streams.count }
    /// The topic of the pushes that are open; `nil`: they have several, or there are none.
    var onlyTopic: String? {
        let topics = streams.values.map(\.push.job.request.topic)
        guard let first = topics.first, topics.allSatisfy({ $0.isExactly(first) }) else {
            return nil
        }
        return first
    }
    var isActive: Bool { standing == .active }
    var isDialing: Bool { if case .dialing = standing { true } else { false } }
    var isRetired: Bool { standing == .leaving(isRetired: true) }

    var streamLimit: Int {
        guard readyAt != nil else { return 0 }
        let most = min(streamsMax, refusals.most ?? .max)
        return min(allowed, usesTokens && !isAuthenticated ? 1 : most)
    }

    /// How many more pushes it takes; before that it may have to prove that it lives.
    func freeStreams(_ now: Instant) -> Int {
        isActive && !refusals.rests(now: now) ? max(0, streamLimit - openStreams) : 0
    }

    /// APNs has refused streams on it: it uses fewer than are allowed.
    var holdsBack: Bool { refusals.most != nil }

    /// It has waited as long as it may between two rounds, more than once.
    var isRefusedForLong: Bool { refusals.rounds >= 10 }

    /// APNs has allowed no stream for so long that it is not for a moment.
    func isShut(_ turn: PushTurn) -> Bool {
        guard isActive, let shutSince else { return false }
        return turn.now.since(shutSince) >= turn.configuration.shutMax
    }

    /// It was of no use to anybody: it had no answer, and somebody wanted one, or it did not last.
    func isInVain(_ turn: PushTurn) -> Bool {
        !hasAnswered && (!streams.isEmpty || age(turn.now) < turn.configuration.soundAge)
    }

    /// Since the end of the handshake.
    func age(_ now: Instant) -> Milliseconds { readyAt.map { now.since($0) } ?? 0 }
    /// How long nothing was sent or answered.
    func idleTime(_ now: Instant) -> Milliseconds { streams.isEmpty ? now.since(lastUsed) : 0 }
    /// Of the stream that waits longest for its answer.
    func oldestStream(_ now: Instant) -> Milliseconds {
        let first =
            late.lazy.compactMap { streams[$0] }.first
            ?? order[orderStart...].lazy.compactMap { streams[$0] }.first
        return first.map { now.since($0.sentAt) } ?? 0
    }

    // MARK: - Sending

    /// Whether a push may be sent on it now; one that was silent for long has to answer a PING
    /// first.
    mutating func isReady(_ turn: inout PushTurn) -> Bool {
        guard freeStreams(turn.now) > 0, !isVerifying, !isBehind, !isRefusing else { return false }
        guard streams.isEmpty, turn.now.since(lastHeard) >= turn.configuration.verifyAfter
        else { return true }
        isVerifying = true
        ping(&turn)
        return false
    }

    mutating func send(_ push: HeldPush, token: String?, _ turn: inout PushTurn) {
        lastTag += 1
        var push = push
        push.providerToken = token
        lastToken = token
        streams[lastTag] = Stream(
            push: push, sentAt: turn.now, deadline: turn.now + turn.configuration.streamDeadline)
        order.append(lastTag)
        lastUsed = turn.now
        turn.actions.append(.send(id, tag: lastTag, push))
    }

    /// If APNs gives pushes to these devices back, they are not sent again.
    mutating func withdraw(_ gone: Set<DetachedDevice>) {
        for (tag, stream) in streams where gone.contains(DetachedDevice(stream.push.job.key)) {
            streams[tag]?.push.isWithdrawn = true
        }
    }

    /// It is no longer wanted.
    mutating func retire() { standing = .leaving(isRetired: true) }

    /// APNs wants no more of it.
    mutating func leave() { if !isRetired { standing = .leaving(isRetired: false) } }

    // MARK: - Time

    /// What the passing of time did.
    struct Expiry {
        /// It is over.
        var loss: ConnectionLoss?
        /// Pushes that no answer is waited for any more.
        var unanswered: [HeldPush] = []
        /// Too many streams in a row had no answer.
        var isSuspect = false
    }

    mutating func tick(_ turn: inout PushTurn) -> Expiry {
        var expiry = Expiry()
        isRefusing = false
        if case .dialing(let before) = standing, before <= turn.now {
            expiry.loss = .connectTimeout
        } else if let pingBefore, pingBefore <= turn.now {
            expiry.loss = .silent
        } else if readyAt != nil {
            expire(&expiry, &turn)
            let isIdle = streams.isEmpty && !isRetired
            if isIdle, turn.now.since(lastHeard) >= turn.configuration.idlePing { ping(&turn) }
        }
        return expiry
    }

    private mutating func expire(_ expiry: inout Expiry, _ turn: inout PushTurn) {
        let before = silentStreams
        while orderStart < order.count {
            let tag = order[orderStart]
            if let stream = streams[tag] {
                guard stream.deadline <= turn.now else { break }
                silentStreams += 1
                if tag > lastPrompt, waitOn(tag, stream, turn) {
                    late.append(tag)
                } else {
                    giveUp(tag, &expiry.unanswered, &turn)
                }
            }
            orderStart += 1
        }
        if orderStart > 64, orderStart * 2 > order.count {
            order.removeFirst(orderStart)
            orderStart = 0
        }
        let over = late.filter { tag in streams[tag].map { $0.deadline <= turn.now } ?? true }
        for tag in over { giveUp(tag, &expiry.unanswered, &turn) }
        late.removeAll { streams[$0] == nil }
        guard silentStreams > before else { return }
        // Is it the connection or the one stream?
        ping(&turn)
        expiry.isSuspect = silentStreams >= turn.configuration.silentStreamsMax
    }

    /// Waits on for a late answer.
    ///
    /// - Returns: whether there is time for that.
    private mutating func waitOn(_ tag: UInt64, _ stream: Stream, _ turn: PushTurn) -> Bool {
        let until = min(
            stream.sentAt + turn.configuration.lateDeadline,
            stream.push.leaseEnd(reserve: turn.configuration.lateReserve))
        guard until > turn.now else { return false }
        streams[tag]?.deadline = until
        streams[tag]?.isLate = true
        return true
    }

    private mutating func giveUp(
        _ tag: UInt64, _ unanswered: inout [HeldPush], _ turn: inout PushTurn
    ) {
        guard let stream = streams.removeValue(forKey: tag) else { return }
        turn.actions.append(.cancel(id, tag: tag))
        unanswered.append(stream.push)
    }

    private mutating func ping(_ turn: inout PushTurn) {
        guard pingBefore == nil else { return }
        pingBefore = turn.now + turn.configuration.pingDeadline
        turn.actions.append(.ping(id))
    }

    // MARK: - What APNs says

    mutating func up(_ turn: PushTurn) {
        readyAt = turn.now
        if isDialing { standing = .active }
    }

    mutating func heard(_ now: Instant) {
        lastHeard = now
        isRefusing = false
    }

    mutating func allows(_ count: Int, _ now: Instant) {
        allowed = count
        shutSince = count > 0 ? nil : shutSince ?? now
    }

    mutating func pingAnswered() {
        pingBefore = nil
        isVerifying = false
    }

    /// APNs has answered a push.
    ///
    /// - Returns: the push, whether its answer is late, and pushes that will not be answered any
    ///   more: APNs is not slow, and these were sent before and are late.
    mutating func answered(
        _ tag: UInt64, status: UInt64, _ turn: inout PushTurn
    ) -> (push: HeldPush, isLate: Bool, lost: [HeldPush])? {
        guard let stream = streams.removeValue(forKey: tag) else { return nil }
        silentStreams = 0
        hasAnswered = true
        refusals.answered(allowed: allowed)
        // 403 is about the token, 429 may be.
        if status != 403, status != 429 { isAuthenticated = true }
        lastUsed = turn.now
        var lost: [HeldPush] = []
        if !stream.isLate {
            lastPrompt = max(lastPrompt, tag)
            if let first = late.first, first < tag {
                for older in late where older < tag { giveUp(older, &lost, &turn) }
                late.removeAll { streams[$0] == nil }
            }
        }
        return (stream.push, stream.isLate, lost)
    }

    /// Takes a push off its stream.
    mutating func take(_ tag: UInt64) -> HeldPush? { streams.removeValue(forKey: tag)?.push }

    /// APNs did nothing with these, and the connection goes on.
    ///
    /// - Returns: the pushes, and for how long nothing is sent from now on, if that is news.
    mutating func refused(
        _ tags: [UInt64], _ turn: PushTurn
    ) -> (pushes: [HeldPush], wait: Milliseconds?) {
        let open = streams.count
        let pushes = tags.compactMap { take($0) }
        guard isActive, !pushes.isEmpty, let last = tags.max() else { return (pushes, nil) }
        return (pushes, refusals.refused(last, lastTag: lastTag, open: open, now: turn.now))
    }

    /// It did not take a push that it was sent.
    mutating func notTaken(_ tag: UInt64) -> HeldPush? {
        isRefusing = true
        return take(tag)
    }

    /// Takes all pushes off, in the order in which they were sent.
    mutating func takeAll() -> [HeldPush] {
        defer { streams = [:] }
        return streams.sorted { $0.key < $1.key }.map(\.value.push)
    }
}
