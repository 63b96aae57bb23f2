public import Feed
public import Model
public import Wire

/// The server's half of one connection: frames, answers and `now` in, actions out.
///
/// The shell creates it when the TLS handshake is done, calls `progressed` before
/// `deadlineReached`, and keeps it, also after `closed`, until `isFinished`: what a device
/// acknowledged and the end of its session are written even when the socket is gone.
///
/// Memory, at most: one HELLO (16 KiB) until the session is open; then `mutationsUnanswered`
/// mutations of `mutationBytesUnanswered` bytes plus what one chunk of input still held,
/// `receiptsWaiting` read receipts likewise, one page read, and `windowDeltas` pairs of numbers;
/// with signals the names of `signalAudiences` conversations' participants.
/// There is no queue of DELTAs: the feed is the send queue.
///
/// Store writes of one session run one at a time, so that mutations, acknowledgements and the end
/// take effect in the order they came, and a temporary refusal of one mutation can hold back the
/// later ones (MSG-11).
public struct Session: Sendable {
    enum DeliveryMode: Equatable, Sendable { case live, hint, dormant }

    /// How far a device that came with the cursor of another history knows the one in force.
    enum Renewal: Equatable, Sendable {
        case none
        /// What it acknowledges and changes belongs to its own history (SYN-33).
        case awaited
        /// The feed's start was sent: what it acknowledges is that.
        case sent
    }

    let configuration: SessionConfiguration
    var random: SplitMix64
    var phase: Phase
    var tags: UInt64 = 0

    /// The open session was challenged again.
    private var rareReauthentication = Rare<Reauthentication>.none
    var reauthentication: Reauthentication? {
        get { rareReauthentication.value }
        set { rareReauthentication.value = newValue }
    }
    /// When the session token of the last WELCOME is over; `nil`: not open, or challenged for it.
    var tokenExpiresAt: Instant?

    let connectedAt: Instant
    /// As HELLO says.
    var role = RoleKind.app

    // The open session.
    /// The session's name at the store, once it is open.
    public internal(set) var key: SessionKey?
    /// No page was read since it entered the hub: what happened to its row before was told to
    /// nobody, so the next page tells.
    var mustLearnStanding = false
    var mayPush = false
    /// The client takes a SNAPSHOT where the feed cannot be continued.
    var takesSnapshots = false
    /// This session is in the sample that is asked for a digest, and was not asked yet.
    var wantsDigest: Bool
    var appPhase = AppPhase.foreground
    var backgroundUntil: Instant?
    var epoch = Epoch(high: 0, low: 0)
    var mutationFloor: UInt64 = 0
    var hadPushRows = false
    var renewal = Renewal.none

    // Delivery. Invariant: persisted and sent are of `epoch`.
    var head: UInt64 = 0
    /// The highest head that is worth a SYNC_REQUEST: receipts alone are not.
    var headToAsk: UInt64 = 0
    var kindsToAsk: UInt32 = 0
    var isAskUrgent = false
    /// The highest `applied` taken.
    var applied: UInt64 = 0
    var persisted: UInt64 = 0
    /// The `to` of the last DELTA; the base of the next pushed one.
    var sent: UInt64 = 0 { didSet { if sent != oldValue { unread.forget() } } }
    /// The highest seq the client was told to fetch, or sent.
    var told: UInt64 = 0
    /// The head of the unanswered SYNC_REQUEST.
    var askedHead: UInt64?
    var hasSynced = false
    /// The store could continue the cursor of the last SYNC it was asked of: one at or above
    /// `applied` can be continued too, and need not be asked of (SYN-30).
    var isContinued = false
    /// Up to there each page holds one entry: one of them may be more than the client survives.
    var singleThrough: UInt64?
    var isPoisonTold = false
    var hasCompleted = false
    /// Pages pushed, made of what a commit handed over. This and the next stand in gaps between
    /// others, for a session is to be small.
    var pushedByTail: UInt32 = 0
    /// The `to` of the first and the last page without `more` that is not acknowledged.
    var completeFirst: UInt64?
    var completeLast: UInt64 = 0
    /// From the first visible entry sent and not persisted to the `to` of the last page with one.
    var visibleFirst: UInt64?
    /// Pages pushed that were read.
    var pushedByRead: UInt32 = 0
    var visibleLast: UInt64 = 0
    var unread = ToldUnread()
    var window: DeliveryWindow
    var watch = SuspectWatch()

    /// `nil`: signals were not agreed on.
    var signals: SignalDesk?

    // The store.
    var write: WriteInFlight?
    var page: PageInFlight?
    /// FETCH, SNAPSHOT and DIGEST being read, at most `historyInFlight`.
    var history: [HistoryInFlight] = []
    var queue: [QueuedRequest] = []
    var mutationsUnanswered = 0
    var mutationBytes = 0
    var ack = PendingAck()
    var appState: PendingAppState?
    /// This session's own logout ended it: the result is told first.
    var endAfterLogout: Code?
    /// The lowest mutation number refused for a time: later ones wait for it (MSG-11).
    var heldAt: UInt64?
    var persistAt: Instant?
    var storeRetryAt: Instant?

    // The socket.
    let keepalive: Milliseconds
    var promised: Milliseconds
    var lastFrameAt: Instant
    private var pings: TokenBucket
    private var errors: TokenBucket
    private var hasTooManyErrors = false
    var taken: UInt64 = 0
    var unsent = 0
    var slowSince: Instant?
    var isReading = true
    var isClosed = false
    var drainAt: Instant?
    /// When the drained client is to connect again.
    var slotAt: Instant?

    var limits: SessionLimits { configuration.limits }

    /// A connection whose TLS handshake (if it has one) ended `now`.
    /// - Parameter connectedAt: when it was accepted; `nil`: `now`.
    public init(
        configuration: SessionConfiguration, entropy: SessionEntropy,
        connectedAt: Instant? = nil, now: Instant
    ) {
        self.connectedAt = connectedAt ?? now
        self.configuration = configuration
        let limits = configuration.limits
        random = SplitMix64(seed: entropy.seed)
        window = DeliveryWindow(limits)
        var sample = SplitMix64(seed: ~entropy.seed)
        wantsDigest = limits.digestSample > 0 && sample.upTo(limits.digestSample - 1) == 0
        let tenth = limits.keepalive / 10
        keepalive = limits.keepalive - tenth + random.upTo(2 * tenth)
        promised = keepalive
        lastFrameAt = now
        pings = TokenBucket(limits.pingsBeforeWelcome, now: now)
        errors = TokenBucket(limits.errors, now: now)
        phase = .awaitingHello(
            AwaitedHello(entropy: entropy, deadline: now + limits.helloDeadline))
    }

    /// Nothing is left to do: the socket is closed and every write is answered.
    public var isFinished: Bool {
        isClosed && write == nil && phase.closing?.isWritten ?? false
    }

    /// Whether WELCOME was sent and the connection has not ended.
    public var isOpen: Bool { phase == .open }

    /// Bytes of DELTAs sent and not yet acknowledged.
    public var unacknowledgedBytes: Int { window.unacknowledgedBytes }

    /// When `deadlineReached` is due; `nil`: never. Also after `closed`, until `isFinished`.
    public var nextDeadline: Instant? {
        if phase.isEnded { return storeRetryAt }
        var earliest = phase.loginDeadline
        func consider(_ moment: Instant?) {
            guard let moment else { return }
            earliest = min(earliest ?? moment, moment)
        }
        consider(drainAt)
        consider(slowSince.map { $0 + limits.slowReader })
        if phase == .open {
            if isReading { consider(lastFrameAt + promised + limits.keepaliveGrace) }
            consider(watch.deadline(limits))
            consider(backgroundUntil)
            consider(tokenExpiresAt)
            consider(reauthentication?.deadline)
            consider(persistAt)
            consider(storeRetryAt)
        }
        return earliest
    }

    /// What the client may send in this state (SES-1): for any other frame the connection is
    /// closed, so nobody needs to read its body.
    public var acceptedFrames: FrameTypes {
        switch phase {
        case .awaitingHello: Self.beforeHello
        case .open: Self.whileOpen
        case .ended: .all
        default: Self.duringLogin
        }
    }

    private static let beforeHello: FrameTypes = [.hello, .close]
    private static let duringLogin: FrameTypes = [.authenticate, .ping, .pong, .close]
    private static let whileOpen: FrameTypes = [
        .authenticate, .ping, .pong, .close, .sync, .ack, .mutate, .appState, .fetch, .snapshot,
        .digest, .signal,
    ]

    /// One whole frame came.
    public mutating func received(_ frame: Frame, now: Instant) -> [SessionAction] {
        guard !phase.isEnded else { return [] }
        var actions: [SessionAction] = []
        lastFrameAt = now
        promised = keepalive
        let isWeak =
            switch frame.body {
            case .ping, .pong, .appState, .signal: true
            default: false
            }
        watch.frameCame(isWeak: isWeak, limits: limits, now: now)
        switch frame.body {
        case .hello(let hello):
            if case .awaitingHello(let awaited) = phase {
                receivedHello(hello, request: frame.request, awaited, now: now, &actions)
            } else {
                close(.protocolViolation, now: now, &actions)
            }
        case .authenticate(let body): receivedAuthenticate(body, now: now, &actions)
        case .ping(let ping):
            if mayPing(now: now, &actions) {
                keepPromise(ping.nextMs)
                let pong = Pong(nextMs: UInt32(clamping: keepalive))
                actions.append(.send(Frame(.pong(pong), request: frame.request)))
            }
        case .pong(let pong): if mayPing(now: now, &actions) { keepPromise(pong.nextMs) }
        case .close(let body): receivedClose(body, now: now, &actions)
        case .sync, .ack, .mutate, .appState, .fetch, .snapshot, .digest, .signal:
            if phase == .open {
                receivedRequest(frame, now: now, &actions)
            } else {
                close(.protocolViolation, now: now, &actions)
            }
        case .challenge, .welcome, .delta, .syncRequest, .mutationResult, .drain, .error, .page,
            .snapshotPage, .digestResult:
            // Frames of a server.
            close(.protocolViolation, now: now, &actions)
        }
        settle(now: now, &actions)
        return actions
    }

    /// The bytes that came are no frames.
    public mutating func decodingFailed(_ error: WireError, now: Instant) -> [SessionAction] {
        var actions: [SessionAction] = []
        close(error.code, now: now, &actions)
        settle(now: now, &actions)
        return actions
    }

    /// The hub heard of a longer feed. `kinds`: bits by `EntryKind.rawValue`. `change`: all that
    /// its commit did to the feed, if that is known.
    public mutating func headMoved(
        to newHead: UInt64, kinds: UInt32, isUrgent: Bool = false, change: FeedChange? = nil,
        now: Instant
    ) -> [SessionAction] {
        guard phase == .open else { return [] }
        var actions: [SessionAction] = []
        let page = change.flatMap { tailPage(of: $0) }
        head = max(head, newHead)
        if kinds & ~(1 << UInt32(EntryKind.receipt.rawValue)) != 0 {
            headToAsk = max(headToAsk, newHead)
            kindsToAsk |= kinds
            isAskUrgent = isAskUrgent || isUrgent
        }
        if let page {
            pushedByTail &+= 1
            send(page, nil, now: now, &actions)
        }
        settle(now: now, &actions)
        return actions
    }

    /// Whether it matters what the peer's TCP takes while nothing waits in this process: only as a
    /// sign of life of a peer that was told something and has not covered it.
    public var watchesTaking: Bool { watch.toldSince != nil }

    /// How far the peer's TCP got: `taken` counts the bytes it has taken since the start,
    /// `unsent` those that still wait in this process, `outstanding` those and the ones in the
    /// kernel's queue (SIOCOUTQ). Called when writes finish, when `unsent` grows, and before each
    /// `deadlineReached`, unless nothing waits and not `watchesTaking`.
    public mutating func progressed(
        taken total: UInt64, unsent: Int, outstanding: Int, now: Instant
    ) -> [SessionAction] {
        guard !phase.isEnded else { return [] }
        var actions: [SessionAction] = []
        self.unsent = unsent
        if total > taken {
            taken = total
            watch.bytesTaken(outstanding: outstanding, limits: limits, now: now)
            slowSince = nil
        }
        if unsent <= limits.unsentBytes {
            slowSince = nil
        } else if slowSince == nil {
            slowSince = now
        }
        settle(now: now, &actions)
        return actions
    }

    /// The store ended this session: superseded by a newer connection, or its device was removed
    /// or logged out. Its row is gone already.
    public mutating func ended(_ code: Code, now: Instant) -> [SessionAction] {
        if phase == .open, isLoggingOut {
            endAfterLogout = code
            return []
        }
        if phase == .open, case .answer(let answer) = page?.purpose, !answer.results.isEmpty {
            // What the SYNC's mutations came to is known; its page is not read any more.
            page = nil
            let cursor = Cursor(epoch: epoch, seq: sent)
            let delta = Delta(
                from: cursor, to: cursor, head: head, more: head > sent, results: answer.results,
                mutationFloor: answer.floor, reset: answer.reset.map { Reset(reason: $0) })
            var actions: [SessionAction] = [
                .send(Frame(.delta(delta), request: answer.request))
            ]
            close(code, rowIsGone: true, now: now, &actions)
            settle(now: now, &actions)
            return actions
        }
        var actions: [SessionAction] = []
        close(code, rowIsGone: true, now: now, &actions)
        settle(now: now, &actions)
        return actions
    }

    /// The store is at work on this device's own logout: its answer is told before the end
    /// (MSG-7).
    private var isLoggingOut: Bool {
        switch write?.subject {
        case .mutation(_, let mutation): mutation.isLogout
        case .sync(_, let sync, _, _): sync.mutations.contains(where: \.isLogout)
        default: false
        }
    }

    /// The server shuts down: the client comes back `slot` from now, and the connection is closed
    /// at the latest after `deadline`.
    public mutating func drain(
        deadline: Milliseconds, slot: Milliseconds, now: Instant
    ) -> [SessionAction] {
        guard !phase.isEnded else { return [] }
        var actions: [SessionAction] = []
        if phase == .open {
            drainAt = now + deadline
            slotAt = now + slot
            let drain = Drain(
                deadlineMs: UInt32(clamping: deadline), slotMs: UInt32(clamping: slot),
                place: .sameAddressAtSlot)
            actions.append(.send(Frame(.drain(drain))))
        } else {
            close(.goingAway, now: now, &actions)
        }
        settle(now: now, &actions)
        return actions
    }

    /// The server closes this connection for a reason of its own: 5008, or 1001 when the store
    /// is lost.
    public mutating func shutDown(_ code: Code, now: Instant) -> [SessionAction] {
        var actions: [SessionAction] = []
        close(code, now: now, &actions)
        settle(now: now, &actions)
        return actions
    }

    /// The socket is closed, by whichever side.
    public mutating func closed(now: Instant) -> [SessionAction] {
        isClosed = true
        var actions: [SessionAction] = []
        guard !phase.isEnded else {
            // Its end may not be written yet.
            settle(now: now, &actions)
            return actions
        }
        finish(expectedWithin: returnTime(now), rowIsGone: false, now: now, &actions)
        settle(now: now, &actions)
        return actions
    }

    // MARK: - Ending

    /// How long the device may take to come back (wake rows: `expected_until`).
    private func returnTime(_ now: Instant) -> Milliseconds {
        if watch.isSuspect || mode == .dormant { return 0 }
        return (slotAt ?? now).since(now) + limits.returnTime
    }

    private mutating func receivedClose(
        _ body: Close, now: Instant, _ actions: inout [SessionAction]
    ) {
        if phase == .open, role == .app, renewal != .awaited, body.applied > applied,
            body.applied <= head
        {
            raiseApplied(to: body.applied, now: now, &actions)
        }
        let sleeps = body.code == Code.goingAway.rawValue
        actions.append(.log(.closedByPeer(body.code)))
        finish(expectedWithin: sleeps ? 0 : returnTime(now), rowIsGone: false, now: now, &actions)
        actions.append(.close(Code(rawValue: body.code) ?? .goingAway))
    }

    /// Sends CLOSE and ends.
    mutating func close(
        _ code: Code, rowIsGone: Bool = false, retryAfter: Milliseconds? = nil, now: Instant,
        _ actions: inout [SessionAction]
    ) {
        guard !phase.isEnded else { return }
        let retry = code.retryClass
        let frame = Close(
            code: code.rawValue, retry: retry, applied: applied,
            retryAfterMs: retry == .retryAfter
                ? UInt32(clamping: retryAfter ?? limits.retryAfter) : 0)
        actions.append(.send(Frame(.close(frame))))
        finish(expectedWithin: returnTime(now), rowIsGone: rowIsGone, now: now, &actions)
        actions.append(.close(code))
    }

    /// Leaves the hub and lets the end be written. Client requests that the store has not been
    /// asked are dropped: the client sends them again.
    private mutating func finish(
        expectedWithin: Milliseconds, rowIsGone: Bool, now: Instant,
        _ actions: inout [SessionAction]
    ) {
        var closing = Closing()
        defer { phase = .ended(closing) }
        queue = []
        let isPageUnsent = page?.isCounted ?? false
        page = nil
        history = []
        mutationsUnanswered = 0
        mutationBytes = 0
        storeRetryAt = nil
        guard let key else { return }
        actions.append(.leaveHub(key))
        if rowIsGone || endAfterLogout != nil {
            ack = PendingAck()
            appState = nil
        } else {
            closing.end = EndSession(
                session: key, applied: applied, expectedWithin: expectedWithin,
                isPageUnsent: isPageUnsent)
        }
    }

    // MARK: - What a peer may ask for

    /// Whether a PING or PONG is one that the peer may send; if not, the connection is closed.
    private mutating func mayPing(now: Instant, _ actions: inout [SessionAction]) -> Bool {
        if case .awaitingHello = phase {
            // HELLO is the first frame (SES-1).
            close(.protocolViolation, now: now, &actions)
            return false
        }
        let limit = phase == .open ? limits.pings : limits.pingsBeforeWelcome
        guard pings.take(limit, now: now) == nil else {
            close(.rateLimited, now: now, &actions)
            return false
        }
        return true
    }

    /// WELCOME was sent.
    mutating func grantPings(now: Instant) { pings = TokenBucket(limits.pings, now: now) }

    /// An ERROR goes out. Who gets too many of them is closed when the input is carried out.
    mutating func countError() {
        if errors.take(limits.errors, now: lastFrameAt) != nil { hasTooManyErrors = true }
    }

    // MARK: - What follows from every input

    private mutating func keepPromise(_ nextMs: UInt32) {
        // A promise longer than the interval asked for does not extend it.
        if nextMs > 0 { promised = min(Milliseconds(nextMs), keepalive) }
    }

    mutating func nextTag() -> RequestTag {
        tags += 1
        return RequestTag(number: tags)
    }

    /// Runs what has become possible: the next write, the next page, reading on.
    mutating func settle(now: Instant, _ actions: inout [SessionAction]) {
        if hasTooManyErrors { close(.rateLimited, now: now, &actions) }
        deliver(now: now, &actions)
        pumpWrites(now: now, &actions)
        guard !phase.isEnded else { return }
        let isFull =
            mutationBytes > limits.mutationBytesUnanswered || ack.count > limits.receiptsWaiting
        if isReading, isFull || unsent > limits.unsentBytes {
            isReading = false
            actions.append(.stopReading)
        } else if !isReading, !isFull, unsent <= limits.unsentBytes / 2 {
            isReading = true
            // What did not come while we did not read is no broken promise.
            lastFrameAt = now
            actions.append(.resumeReading)
        }
    }
}
