import Feed
public import Model
public import Wire

/// What a session that takes part in signals keeps for them: two buckets, and for a short time
/// the participants of the conversations it signalled in last, so that typing costs one read.
struct SignalDesk: Equatable, Sendable {
    struct Audience: Equatable, Sendable {
        var conversation: ConversationID
        var users: [UserID]
        var until: Instant
    }

    struct Waiting: Equatable, Sendable {
        var tag: RequestTag
        var conversation: ConversationID
        var signal: Signal
    }

    private(set) var sending: TokenBucket
    private(set) var receiving: TokenBucket
    /// The newest last; at most `signalAudiences`.
    private var audiences: [Audience] = []
    private var rareWaiting = Rare<Waiting>.none
    /// The one signal whose audience is being read.
    fileprivate(set) var waiting: Waiting? {
        get { rareWaiting.value }
        set { rareWaiting.value = newValue }
    }

    init(_ limits: SessionLimits, now: Instant) {
        sending = TokenBucket(limits.signalsSent, now: now)
        receiving = TokenBucket(limits.signalsReceived, now: now)
    }

    fileprivate mutating func maySend(_ limits: SessionLimits, now: Instant) -> Bool {
        sending.take(limits.signalsSent, now: now) == nil
    }

    fileprivate mutating func mayReceive(_ limits: SessionLimits, now: Instant) -> Bool {
        receiving.take(limits.signalsReceived, now: now) == nil
    }

    fileprivate func audience(of conversation: ConversationID, now: Instant) -> [UserID]? {
        audiences.first { $0.conversation == conversation && now < $0.until }?.users
    }

    fileprivate mutating func remember(
        _ users: [UserID], of conversation: ConversationID, _ limits: SessionLimits, now: Instant
    ) {
        audiences.removeAll { $0.conversation == conversation || now >= $0.until }
        audiences.append(
            Audience(
                conversation: conversation, users: users, until: now + limits.signalAudienceTime))
        audiences.removeFirst(max(0, audiences.count - limits.signalAudiences))
    }

    fileprivate mutating func forget(_ conversation: ConversationID) {
        audiences.removeAll { $0.conversation == conversation }
    }
}

// SIGNAL (signals.md): never stored, and the first to be dropped.
extension Session {
    mutating func receivedSignal(
        _ signal: Signal, request: UInt16, now: Instant, _ actions: inout [SessionAction]
    ) {
        guard signals != nil, let key else {
            return refuse(.signal, .featureNotNegotiated, request: request, &actions)
        }
        guard let conversation = signal.conversation else {
            return refuse(.signal, .missingField, request: request, &actions)
        }
        let limits = limits
        // A kind of a later version: nothing is known of it.
        guard signal.kind != .unspecified, signals?.maySend(limits, now: now) == true else {
            return
        }
        let time = signal.ttlMs == 0 ? limits.signalTime : Milliseconds(signal.ttlMs)
        let told = Signal(
            conversation: conversation, kind: signal.kind,
            ttlMs: UInt32(clamping: min(time, limits.signalTimeMax)), user: key.user.name)
        if let users = signals?.audience(of: conversation, now: now) {
            return handOn(told, to: users, &actions)
        }
        // While another conversation's is being read the signal is dropped.
        if let waiting = signals?.waiting {
            if waiting.conversation == conversation { signals?.waiting?.signal = told }
            return
        }
        lookUp(told, in: conversation, key, &actions)
    }

    private mutating func lookUp(
        _ told: Signal, in conversation: ConversationID, _ key: SessionKey,
        _ actions: inout [SessionAction]
    ) {
        let tag = nextTag()
        signals?.waiting = SignalDesk.Waiting(tag: tag, conversation: conversation, signal: told)
        actions.append(.findAudience(tag, key.app, key.user, conversation))
    }

    private func handOn(
        _ signal: Signal, to users: [UserID], _ actions: inout [SessionAction]
    ) {
        // Who takes no part is told nothing: neither that nor whether the conversation exists.
        guard let key, !users.isEmpty else { return }
        actions.append(.signal(signal, app: key.app, to: users))
    }

    /// Who gets this user's signals in the conversation asked for.
    public mutating func audienceFound(
        _ tag: RequestTag, _ users: [UserID], now: Instant
    ) -> [SessionAction] {
        guard let waiting = signals?.waiting, waiting.tag == tag else { return [] }
        signals?.waiting = nil
        guard phase == .open else { return [] }
        let limits = limits
        signals?.remember(users, of: waiting.conversation, limits, now: now)
        var actions: [SessionAction] = []
        handOn(waiting.signal, to: users, &actions)
        return actions
    }

    /// A signal was to be handed to participants of which some may not get it any more (SIG-5): it
    /// waits until they have been looked up again.
    public mutating func audienceChanged(_ signal: Signal, now: Instant) -> [SessionAction] {
        guard phase == .open, let key, let conversation = signal.conversation else { return [] }
        signals?.forget(conversation)
        if let waiting = signals?.waiting {
            if waiting.conversation == conversation { signals?.waiting?.signal = signal }
            return []
        }
        var actions: [SessionAction] = []
        lookUp(signal, in: conversation, key, &actions)
        return actions
    }

    /// It could not be read: the signal is dropped.
    public mutating func audienceFailed(_ tag: RequestTag) {
        if signals?.waiting?.tag == tag { signals?.waiting = nil }
    }

    /// A participant of one of this user's conversations signals. Dropped unless this client sees
    /// it at once: live, with nothing before it on the way.
    public mutating func signalled(_ signal: Signal, now: Instant) -> [SessionAction] {
        let limits = limits
        guard phase == .open, mode == .live, unsent == 0,
            signals?.mayReceive(limits, now: now) == true
        else { return [] }
        return [.send(Frame(.signal(signal)))]
    }
}
