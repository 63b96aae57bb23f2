public import Model
public import Wire

/// The client's half of the protocol, over as many connections as it takes: events of the app,
/// frames and `now` in, actions out. With the role *extension* it peeks once and closes.
///
/// Memory: `mutationsUnanswered` mutations, the pending read receipts, `fetchesPending` FETCHes,
/// and of the feed, of history and of a snapshot no more than what was handed to the store.
public struct ClientSession: Sendable {
    enum Phase: Equatable, Sendable {
        /// No connection and none wanted: not started, asleep, parked or stopped.
        case idle
        case waiting(until: Instant)
        case connecting(until: Instant)
        /// HELLO was sent.
        case opening(until: Instant)
        /// CHALLENGE came; the identity token is being made, or was sent.
        case authenticating(until: Instant)
        case open
    }

    struct Outgoing: Equatable, Sendable {
        var mutation: Mutation
        var loadedAt: Instant
        var isSent = false
    }

    /// Who connects. `setPush` changes its push registration.
    public var configuration: ClientConfiguration
    /// What the last HELLO presented, and what it said of the app.
    var (presentedPush, helloState): (PushRegistration?, AppState) = (nil, AppState())
    var presentedPlace = ClientPlace()
    /// What a WELCOME has confirmed last, of this process or one before.
    var confirmedPush: PushRegistration?
    var random: SplitMix64
    var phase = Phase.idle
    /// Too old for the server.
    public internal(set) var isStopped = false
    var stoppedAt = Instant(milliseconds: 0)
    /// Logged out by the user: stays so until `start`.
    var isLoggedOut = false
    /// A logout of this process or one before left without an answer: it may be done (MSG-7).
    var hasSentLogout: Bool
    /// What the store knows, or is asked to keep, of the logout that is to leave.
    var logoutMark = LogoutMark.none

    // What the local store holds.
    /// How far this device has durably applied the feed.
    public internal(set) var cursor: Cursor?
    /// Where it stands when every change handed to the store is committed.
    var applying: Cursor?
    var changesInFlight: [InFlight] = []
    var isResetting: Bool
    /// As the local store keeps it, or is about to.
    var historyThrough: UInt64
    /// `historyThrough` of the rows that `cursor` stands for (SYN-34).
    var resetHead: UInt64
    var sessionToken: [UInt8]
    var user: String
    var reads: [ReadReceipt]
    /// What of `reads` this connection has not carried. Invariant: empty, or a SYNC is open, or
    /// there is no cursor, or no session.
    var unsentReads: [ReadReceipt] = []

    /// There is nothing to say and to hear but the logout.
    public internal(set) var isLeaving: Bool

    // The outbox: unanswered mutations, ascending; the store holds those above `loadedThrough`.
    var outbox: [Outgoing] = []
    var loadedThrough: UInt64
    var queuedThrough: UInt64
    /// Up to where the store knows that they may have left; it may know more.
    var markedThrough: UInt64 = 0
    var isLoading = false
    var outboxRetryAt: Instant?
    var mutationsMax: Int
    /// The lowest number that another life of this device has taken: from there on the stored
    /// mutations get new numbers; those refused so are not in `outbox`.
    var takenFrom: UInt64?
    var surelyTakenFrom: UInt64?
    /// The store's numbers have changed since it was asked.
    var mustReload = false
    /// The mutation floor of WELCOME.
    var floor: UInt64 = 0

    // Beside the feed.
    /// A snapshot that is not whole yet; then there is no cursor.
    var snapshot: SnapshotProgress?
    var fetches: [PendingFetch] = []
    var historyInFlight: [PageInHand] = []
    /// Conversations that were fetched because only their entries were here.
    var askedFor: Set<ConversationID> = []
    var wantsDigest = false
    var digestRequest: (request: UInt16, digest: LocalDigest)?
    /// A DIGEST was left without an answer before; one that is answered ends that.
    var hasAskedAgain = false
    var hasRepaired = false
    /// This connection has begun a snapshot anew that could not be gone on with.
    var hasBegunAnew = false

    // The app.
    var appState = AppState(phase: .foreground)
    var wake: WakeID?
    var syncReason = SyncReason.connect

    // The connection.
    var isLive = false
    /// The server told of resets without the feed (HIS-13).
    var takesSnapshots = false
    /// The open SYNC is a peek.
    var isPeeking = false
    /// As WELCOME said.
    var serverTime = Timestamp(milliseconds: 0)
    /// When CHALLENGEs of the last minute came, and the last DRAIN, on any connection.
    var challengedAt: [Instant] = []
    var drainedAt: Instant?
    /// The number of times the outbox got new numbers without an answer of another kind between.
    var renumberings: UInt64 = 0
    /// CHALLENGE came on an open session.
    var isRechallenged = false
    /// The epoch WELCOME named; `nil`: none.
    var serverEpoch: Epoch?
    /// WELCOME agreed on signals.
    var maySignal = false
    /// What was signalled last, and until when it need not be said again.
    var lastSignal: LiveSignal?
    /// What the user looks at, and when the next signal of it is due.
    var presence: (conversation: ConversationID, at: Instant)?
    /// Signals of others that hold: at most `limits.liveSignals`.
    var liveSignals: [LiveSignal] = []
    var bodyBytes = FrameLimits.beforeWelcome.bodyBytes
    var lastRequest: UInt16 = 0
    /// The SYNC without a DELTA, and the read receipts that it carries.
    var openSync: UInt16?
    var syncReads: [ReadReceipt] = []
    var syncDeadline: Instant?
    var syncAt: Instant?
    /// No FETCH before: the server asked this device to wait with them.
    var fetchAt: Instant?
    /// No DIGEST before.
    var digestAt: Instant?
    /// No SNAPSHOT before: the server asked this device to wait for its turn.
    var snapshotAt: Instant?
    var wantsSync = false
    var withoutCursor = false
    /// The highest head a SYNC_REQUEST named.
    var askedHead: UInt64 = 0
    /// Answers to SYNCs in a row that brought nothing although the server told of more.
    var emptyAnswers = 0
    /// Resets that this connection brought.
    var resets = 0
    var keepalive: Milliseconds = 180_000
    var lastSentAt = Instant(milliseconds: 0)
    var pingedAt: Instant?
    /// The network has changed, and no frame came since.
    var isOnNewNetwork = false
    /// When the last frame came, or what is awaited was sent, whichever is later.
    var quietSince = Instant(milliseconds: 0)
    var slotAt: Instant?
    var closeFrame: Close?

    // Between connections.
    var backoff = Backoff()
    var wasHealthy = false
    var notBefore: Instant?
    var supersededAt: [Instant] = []

    struct InFlight: Equatable, Sendable {
        var to: Cursor
        /// The page had no `more`.
        var isLast: Bool
        var answersSync: Bool
        var sweeps: Bool
        var marks: [ReadMark]
        /// What the icon shows after it (SYN-27); `nil`: the page does not say.
        var unread: UInt32?
        /// The head named by the first page of a reset; `nil` with every other page.
        var resetHead: UInt64?
    }

    var limits: ClientLimits { configuration.limits }

    /// A client that is not connected and not trying to be: `start` begins.
    public init(configuration: ClientConfiguration, state: LocalState, seed: UInt64) {
        self.configuration = configuration
        random = SplitMix64(seed: seed)
        cursor = state.cursor
        applying = state.cursor
        isResetting = state.isResetting
        historyThrough = state.historyThrough
        resetHead = state.historyThrough
        snapshot = state.snapshot.map { SnapshotProgress(stored: $0) }
        sessionToken = state.sessionToken
        user = state.user
        // One that an older version stored may have more ranges than a server takes.
        reads = state.pendingReads.map(\.normalized)
        queuedThrough = state.lastMutation
        confirmedPush = state.push
        (hasSentLogout, isLeaving) = (state.hasSentLogout, state.isLeaving)
        // Numbers start at 1.
        loadedThrough = state.firstUnanswered.map { $0 > 0 ? $0 - 1 : 0 } ?? state.lastMutation
        mutationsMax = configuration.limits.mutationsUnanswered
    }

    /// Whether WELCOME came and the connection has not ended.
    public var isOpen: Bool { phase == .open }
    /// Whether there is a connection, or one is wanted.
    public var isIdle: Bool { phase == .idle }
    /// Mutations this session knows of without a result.
    public var hasUnanswered: Bool { !outbox.isEmpty || queuedThrough > loadedThrough }
    /// Whose rows the store holds; empty: nobody has logged in yet.
    public var userName: String { user }
    /// The numbers of mutations that are on their way over the present connection.
    public var mutationsSent: Set<UInt64> {
        Set(outbox.lazy.filter { $0.isSent }.map(\.mutation.number))
    }
    /// Whether the feed was applied up to what the server told of last, and nothing is under way.
    public var isInSync: Bool {
        phase == .open && openSync == nil && !wantsSync && changesInFlight.isEmpty
            && snapshot == nil && (cursor?.seq ?? 0) >= askedHead
    }

    /// When `deadlineReached` is due; `nil`: never.
    public var nextDeadline: Instant? {
        [connectionDeadline, signalDeadline].compactMap { $0 }.min()
    }

    private var connectionDeadline: Instant? {
        switch phase {
        case .idle: return nil
        case .waiting(let until), .connecting(let until), .opening(let until),
            .authenticating(let until):
            return until
        case .open: break
        }
        var earliest = pongDue ?? pingAt
        for moment in [
            syncDeadline, syncAt, fetchAt, digestAt, snapshotAt, outboxRetryAt, slotAt,
        ] {
            if let moment { earliest = min(earliest, moment) }
        }
        return earliest
    }

    /// A little before the interval asked for, so that the PING is there in time.
    var pingAfter: Milliseconds { keepalive - keepalive / 10 }

    /// Whether a frame of the server is due: a dead link must not hold a message for minutes.
    var awaitsAnswer: Bool {
        openSync != nil || snapshot?.request != nil || digestRequest != nil
            || outbox.contains { $0.isSent } || fetches.contains { $0.request != nil }
    }

    var pingAt: Instant {
        let keepsAlive = lastSentAt + pingAfter
        return awaitsAnswer ? min(keepsAlive, quietSince + limits.answerPing) : keepsAlive
    }

    // MARK: - The app's events

    /// Connects, and stays connected from here on. `wake`: a push started the app.
    public mutating func start(
        appState: AppState, wake: WakeID? = nil, now: Instant
    ) -> [ClientAction] {
        self.appState = appState
        self.wake = wake
        isLoggedOut = false
        syncReason = wake == nil ? .connect : .wake
        var actions: [ClientAction] = []
        connectNow(now: now, &actions)
        return actions
    }

    /// The app's phase or one of the switches changed. An inactive app keeps the connection it
    /// has (the server counts it as dormant) but opens none.
    public mutating func appStateChanged(_ state: AppState, now: Instant) -> [ClientAction] {
        let wasForeground = appState.phase == .foreground
        appState = state
        var actions: [ClientAction] = []
        if phase == .open {
            send(.appState(state), now: now, &actions)
        } else if state.phase == .inactive {
            if case .waiting = phase { phase = .idle }
        } else if state.phase == .foreground && !wasForeground || phase == .idle {
            backoff.reset()
            connectNow(now: now, &actions)
        }
        presentPush(now: now, &actions)
        presentPlace(now: now, &actions)
        return actions
    }

    /// The app is about to be suspended: says good-bye (CON-12) and closes. The server wakes this
    /// device by pushes from here on.
    public mutating func sleep(now: Instant) -> [ClientAction] {
        var actions: [ClientAction] = []
        appState.phase = .inactive
        if phase == .open {
            let close = Close(
                code: Code.goingAway.rawValue, retry: Code.goingAway.retryClass,
                applied: sharedCursor?.seq ?? 0)
            send(.close(close), now: now, &actions)
        }
        leaveConnection(&actions)
        phase = .idle
        return actions
    }

    /// A silent push, or a tap on an alert, brought the app to run.
    public mutating func pushReceived(
        wake: WakeID?, appState: AppState, now: Instant
    ) -> [ClientAction] {
        self.wake = wake
        backoff.reset()
        var actions = appStateChanged(appState, now: now)
        if phase == .open {
            wantSync(.wake, now: now, &actions)
        } else {
            syncReason = .wake
            connectNow(now: now, &actions)
        }
        return actions
    }

    /// The user asked for news.
    public mutating func userRefresh(now: Instant) -> [ClientAction] {
        var actions: [ClientAction] = []
        if phase == .open {
            wantSync(.user, now: now, &actions)
        } else {
            backoff.reset()
            syncReason = .user
            connectNow(now: now, &actions)
        }
        return actions
    }

    /// The app's backend signed a token, or could not.
    public mutating func identityToken(_ token: String?, now: Instant) -> [ClientAction] {
        guard case .authenticating = phase else { return [] }
        var actions: [ClientAction] = []
        if let token {
            send(.authenticate(Authenticate(identityToken: token)), now: now, &actions)
        } else {
            leaveConnection(&actions)
            wait(now: now, &actions)
        }
        return actions
    }

    // MARK: - The connection

    /// The TLS handshake is done.
    public mutating func connected(now: Instant) -> [ClientAction] {
        guard case .connecting = phase else { return [] }
        var actions: [ClientAction] = []
        phase = .opening(until: now + limits.answerTimeout)
        sayHello(now: now, &actions)
        return actions
    }

    /// The connection could not be made, or is gone.
    public mutating func closed(now: Instant) -> [ClientAction] {
        if phase == .idle { return [] }
        if case .waiting = phase { return [] }
        var actions: [ClientAction] = [.report(.closed(closeFrame?.code))]
        let (close, isByNetwork) = (closeFrame, isOnNewNetwork && slotAt == nil)
        forgetConnection()
        if close == nil, isByNetwork {
            connectNow(now: now, &actions)
        } else {
            afterClose(close, now: now, &actions)
        }
        return actions
    }

    /// `nextDeadline` has come.
    public mutating func deadlineReached(now: Instant) -> [ClientAction] {
        var actions: [ClientAction] = []
        decaySignals(now: now, &actions)
        renewPresence(now: now, &actions)
        switch phase {
        case .idle: break
        case .waiting(let until):
            if now >= until { connectNow(now: now, &actions) }
        case .connecting(let until), .opening(let until), .authenticating(let until):
            if now >= until { giveUp(now: now, &actions) }
        case .open: openDeadline(now: now, &actions)
        }
        return actions
    }

    private mutating func openDeadline(now: Instant, _ actions: inout [ClientAction]) {
        if let slotAt, now >= slotAt {
            // The drained server's slot for this client: the same address, a new connection.
            leaveConnection(&actions)
            return connectNow(now: now, &actions)
        }
        if let pongDue, now >= pongDue { return giveUp(now: now, &actions) }
        if let syncDeadline, now >= syncDeadline { return giveUp(now: now, &actions) }
        if let snapshotAt, now >= snapshotAt {
            self.snapshotAt = nil
            sendSnapshot(now: now, &actions)
        }
        if let fetchAt, now >= fetchAt {
            self.fetchAt = nil
            sendFetches(now: now, &actions)
        }
        if let digestAt, now >= digestAt {
            self.digestAt = nil
            startDigest(&actions)
        }
        if let syncAt, now >= syncAt {
            self.syncAt = nil
            if snapshot != nil {
                sendSnapshot(now: now, &actions)
            } else if wantsSync {
                startSync(now: now, &actions)
            }
        }
        if let outboxRetryAt, now >= outboxRetryAt {
            self.outboxRetryAt = nil
            sendMutations(now: now, &actions)
        }
        if pingedAt == nil, now >= pingAt { ping(now: now, &actions) }
    }

    // MARK: - Connecting

    /// Opens a connection unless there is one, or the app has no run time.
    mutating func connectNow(now: Instant, _ actions: inout [ClientAction]) {
        if isStopped, now.since(stoppedAt) >= limits.longestWait { isStopped = false }
        guard !isStopped, !isLoggedOut, appState.phase != .inactive else {
            if case .waiting = phase { phase = .idle }
            return
        }
        switch phase {
        case .connecting, .opening, .authenticating, .open: return
        case .idle, .waiting: break
        }
        if let notBefore, now < notBefore {
            phase = .waiting(until: notBefore)
            return
        }
        notBefore = nil
        phase = .connecting(until: now + limits.answerTimeout)
        load(&actions)
        actions.append(.connect)
    }

    /// The peer does not answer: the connection counts as lost.
    mutating func giveUp(now: Instant, _ actions: inout [ClientAction]) {
        actions.append(.report(.closed(nil)))
        let isByNetwork = isOnNewNetwork && slotAt == nil
        leaveConnection(&actions)
        if isByNetwork { connectNow(now: now, &actions) } else { wait(now: now, &actions) }
    }

    mutating func wait(now: Instant, _ actions: inout [ClientAction]) {
        guard appState.phase != .inactive else {
            phase = .idle
            return
        }
        var delay = backoff.next(
            wasHealthy: wasHealthy, isForeground: appState.phase != .background, limits: limits,
            random: &random)
        wasHealthy = false
        if let slotAt {
            // The server spread its clients itself (CON-8).
            delay = slotAt.since(now)
            self.slotAt = nil
        }
        var until = now + delay
        if let notBefore, notBefore > until { until = notBefore }
        phase = .waiting(until: until)
        actions.append(.report(.retrying(after: until.since(now))))
    }

    /// What a CLOSE asks for (CON-11), or plain back-off.
    private mutating func afterClose(
        _ close: Close?, now: Instant, _ actions: inout [ClientAction]
    ) {
        guard let close else { return wait(now: now, &actions) }
        if close.code == Code.superseded.rawValue { return parkSuperseded(now: now, &actions) }
        switch Code(rawValue: close.code)?.retryClass ?? close.retry {
        case .none: park(&actions)
        case .retry, .resync: wait(now: now, &actions)
        case .retryAfter:
            notBefore = now + asked(close.retryAfterMs)
            wait(now: now, &actions)
        case .reauthenticate:
            if close.code == Code.revoked.rawValue, let number = sentLogout {
                return logOut(number, &actions)
            }
            dropToken(&actions)
            wait(now: now, &actions)
        case .upgrade:
            phase = .idle
            stop(now: now, &actions)
        }
    }

    private mutating func parkSuperseded(now: Instant, _ actions: inout [ClientAction]) {
        supersededAt.removeAll { now.since($0) > 60_000 }
        supersededAt.append(now)
        if supersededAt.count > limits.supersededPerMinute {
            // Two installations share one identity (SES-16).
            supersededAt = []
            dropToken(&actions)
        } else if supersededAt.count == 1, appState.phase == .foreground {
            // It may have been this client's own older connection, whose HELLO came late: the
            // user who looks at the screen must not be left without one (SES-16).
            let delay = limits.supersededRetry + random.upTo(limits.supersededRetry)
            phase = .waiting(until: now + delay)
            return actions.append(.report(.retrying(after: delay)))
        }
        park(&actions)
    }

    private mutating func park(_ actions: inout [ClientAction]) {
        phase = .idle
        actions.append(.report(.parked))
    }

    mutating func dropToken(_ actions: inout [ClientAction]) {
        sessionToken = []
        actions.append(.forgetSession)
    }

    /// Closes what there is of a connection.
    mutating func leaveConnection(_ actions: inout [ClientAction]) {
        switch phase {
        case .idle, .waiting: break
        case .connecting, .opening, .authenticating, .open: actions.append(.disconnect)
        }
        forgetConnection()
    }

    /// Back to what is durable: a new connection starts from there.
    private mutating func forgetConnection() {
        phase = .idle
        if takenFrom != nil { reloadOutbox() }
        serverEpoch = nil
        floor = 0
        for index in outbox.indices { outbox[index].isSent = false }
        outboxRetryAt = nil
        openSync = nil
        syncReads = []
        isPeeking = false
        snapshot?.request = nil
        for index in fetches.indices { fetches[index].request = nil }
        askedFor = []
        // A sum that was not answered is asked for again, once: it may be what ends connections.
        if digestRequest != nil, !hasAskedAgain { (wantsDigest, hasAskedAgain) = (true, true) }
        digestRequest = nil
        hasRepaired = false
        hasBegunAnew = false
        takesSnapshots = false
        syncDeadline = nil
        syncAt = nil
        fetchAt = nil
        digestAt = nil
        snapshotAt = nil
        wantsSync = false
        askedHead = 0
        (emptyAnswers, resets) = (0, 0)
        isLive = false
        isRechallenged = false
        maySignal = false
        lastSignal = nil
        bodyBytes = FrameLimits.beforeWelcome.bodyBytes
        (pingedAt, isOnNewNetwork) = (nil, false)
        closeFrame = nil
        lastRequest = 0
    }

    // MARK: - Sending

    mutating func nextRequest() -> UInt16 {
        lastRequest = lastRequest == .max ? 1 : lastRequest + 1
        return lastRequest
    }

    mutating func send(
        _ body: FrameBody, request: UInt16 = 0, now: Instant, _ actions: inout [ClientAction]
    ) {
        lastSentAt = now
        actions.append(.send(Frame(body, request: request)))
    }

    mutating func ping(now: Instant, _ actions: inout [ClientAction]) {
        pingedAt = now
        send(
            .ping(Ping(nextMs: UInt32(clamping: keepalive))), request: nextRequest(), now: now,
            &actions)
    }
}
