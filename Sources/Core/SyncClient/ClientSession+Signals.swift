public import Model
public import Wire

/// Something another user does just now, as far as is known: it is over at `until` unless it is
/// said again (SIG-4).
struct LiveSignal: Equatable, Sendable {
    var conversation: ConversationID
    var user: String
    /// `.typing` or `.present`.
    var kind: SignalKind
    var until: Instant
}

// SIGNAL: typing and presence, which nobody stores.
extension ClientSession {
    /// The user types, stopped typing, looks at the conversation, or stopped looking. Call it as
    /// often as it happens: the same is not sent again within `signalInterval`. Without a
    /// connection that agreed on signals it is dropped. That the user looks at a conversation is
    /// said again, on each connection, until something else is looked at or nothing is.
    public mutating func signal(
        _ kind: SignalKind, in conversation: ConversationID, now: Instant
    ) -> [ClientAction] {
        switch kind {
        case .present where presence?.conversation != conversation: presence = (conversation, now)
        case .away where presence?.conversation == conversation: presence = nil
        default: break
        }
        guard phase == .open, maySignal, kind != .unspecified else { return [] }
        if let last = lastSignal, last.conversation == conversation, last.kind == kind,
            now < last.until
        {
            return []
        }
        lastSignal = LiveSignal(
            conversation: conversation, user: user, kind: kind, until: now + limits.signalInterval)
        if kind == .present { presence = (conversation, now + presenceInterval) }
        var actions: [ClientAction] = []
        send(.signal(Signal(conversation: conversation, kind: kind)), now: now, &actions)
        return actions
    }

    /// When a signal of another user is over, or one of this user is due again.
    var signalDeadline: Instant? {
        (liveSignals.map(\.until) + [presenceAt].compactMap { $0 }).min()
    }

    /// When it is said again that the user looks at a conversation; `nil`: it is not.
    private var presenceAt: Instant? {
        phase == .open && maySignal && appState.phase == .foreground ? presence?.at : nil
    }

    private var presenceInterval: Milliseconds {
        max(limits.signalInterval, limits.signalTime * 2 / 3)
    }

    /// SIG-2: before the time of what was said is over.
    mutating func renewPresence(now: Instant, _ actions: inout [ClientAction]) {
        guard let presence, let at = presenceAt, at <= now else { return }
        let next = now + presenceInterval
        self.presence?.at = next
        let signal = Signal(conversation: presence.conversation, kind: .present)
        send(.signal(signal), now: now, &actions)
    }

    /// A signal of another user. Only what changes is reported.
    mutating func receivedSignal(
        _ signal: Signal, now: Instant, _ actions: inout [ClientAction]
    ) {
        guard let conversation = signal.conversation, !signal.user.isEmpty,
            let kind = signal.kind.begun
        else { return }
        let index = liveSignals.firstIndex {
            $0.conversation == conversation && $0.user.isExactly(signal.user) && $0.kind == kind
        }
        guard signal.kind == kind else {
            guard let index else { return }
            return end(liveSignals.remove(at: index), &actions)
        }
        let time = signal.ttlMs == 0 ? limits.signalTime : Milliseconds(signal.ttlMs)
        let until = now + min(time, limits.signalTimeMax)
        if let index {
            liveSignals[index].until = until
            return
        }
        if liveSignals.count >= limits.liveSignals { end(liveSignals.removeFirst(), &actions) }
        liveSignals.append(
            LiveSignal(conversation: conversation, user: signal.user, kind: kind, until: until))
        actions.append(.report(.signalled(kind, conversation: conversation, user: signal.user)))
    }

    /// Ends those whose time is over, with or without a connection.
    mutating func decaySignals(now: Instant, _ actions: inout [ClientAction]) {
        for signal in liveSignals where signal.until <= now { end(signal, &actions) }
        liveSignals.removeAll { $0.until <= now }
    }

    private func end(_ signal: LiveSignal, _ actions: inout [ClientAction]) {
        actions.append(
            .report(
                .signalled(
                    signal.kind == .typing ? .typingEnded : .away,
                    conversation: signal.conversation, user: signal.user)))
    }
}

extension SignalKind {
    /// The kind that this one begins or ends.
    fileprivate var begun: SignalKind? {
        switch self {
        case .typing, .typingEnded: .typing
        case .present, .away: .present
        case .unspecified: nil
        }
    }
}
