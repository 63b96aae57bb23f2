public import Model

// What the alerts of one device mean to each other, without the rows that keep them: which leaves
// next, what is told with it, and how long APNs may store it.

/// An alert that waits, as far as the rules look at it.
public protocol WaitingAlert {
    var conversation: ConversationID { get }
    var queuedAt: Timestamp { get }
    var isUrgent: Bool { get }
    /// The server alone tells of it, at a time of its own: beside a session too.
    var isTimed: Bool { get }
}

extension WaitingAlert {
    public var isTimed: Bool { false }
}

extension AlertRecord: WaitingAlert {
    /// Newer is what was queued later. What is told with another was older than that one when both
    /// were queued, wherever an edit has moved it in the feed since; and of a conversation's
    /// messages that were queued together the one that came later is newer.
    public func isNewer(than other: AlertRecord) -> Bool {
        guard (queuedAt, place) == (other.queuedAt, other.place) else {
            return (queuedAt, place) > (other.queuedAt, other.place)
        }
        return conversation == other.conversation && position != other.position
            ? position > other.position : seq > other.seq
    }

    /// Whether a summary stands for `other`, too: for what was older when it was claimed.
    public func tells(of other: AlertRecord) -> Bool {
        summary != .none && !other.isNewer(than: self)
            && (summary != .conversation || other.conversation == conversation)
    }

    /// Until when an ACK may cover an urgent one beside a session. One with a time of its own waits
    /// for none, and nothing is known of the time by a clock that was ahead.
    public func ackMoment(now: Timestamp) -> Timestamp {
        isTimed || queuedAt > now ? now : queuedAt + WakePolicy.urgentDelay
    }

    /// Among those that were queued at one moment.
    private var place: Int { phase == .counted || phase == .sent && !isOwnPush ? 0 : 1 }
}

/// Which of the alerts that wait leaves next.
public enum AlertTurn: Equatable, Sendable {
    /// None may leave before.
    case later(Timestamp)
    /// The one at this index, alone.
    case single(Int)
    /// The newest of the conversation of the one at this index, for all of it.
    case conversation(Int)
    /// The newest of all, for all: `AlertSummary.device`.
    case newest
}

/// What an alert's text speaks for.
public enum AlertScope: Equatable, Sendable {
    case own
    /// Older ones of its conversation.
    case conversation
    /// All older ones.
    case older
    /// It is the newest that is open: all that are.
    case all
}

extension Reachability {
    /// Urgent ones first; then, while the burst lasts, the oldest; then the newest of the
    /// conversation that waits longest, for all of it; after many in an hour the newest of all.
    ///
    /// - Parameters:
    ///   - waiting: queued alerts, oldest first, at least one.
    ///   - lastSent: when an alert of the conversation was last sent; asked only for summaries.
    public func alertTurn<Alert: WaitingAlert, Failure: Error>(
        among waiting: [Alert], now: Timestamp,
        lastSent: (ConversationID) throws(Failure) -> Timestamp?
    ) throws(Failure) -> AlertTurn {
        if let urgent = waiting.firstIndex(where: \.isUrgent) { return .single(urgent) }
        let own = waiting.indices.filter { !isSessionCounted || waiting[$0].isTimed }
        guard let first = own.first else { return .later(now + WakePolicy.connectedDelay) }
        if isGone(now: now) {
            let due = goneAlertDue(now: now)
            return due <= now ? .newest : .later(due)
        }
        if let due = wholeAlertDue(now: now) { return due <= now ? .newest : .later(due) }
        if alertPace(oldest: waiting[first].queuedAt) == .single { return .single(first) }
        var next: Timestamp?
        var seen: Set<ConversationID> = []
        for index in own where seen.insert(waiting[index].conversation).inserted {
            let due =
                try lastSent(waiting[index].conversation).map { $0 + WakePolicy.summaryDelay }
                ?? now
            if due <= now { return .conversation(index) }
            next = min(next ?? due, due)
        }
        return .later(max(next ?? now, now + 1))
    }

    /// What alerts are made for that these actions ask for, unless they are urgent.
    public func alertCause(of actions: [WakeAction], now: Timestamp) -> AlertCause {
        for case .note(_, .outcome(let outcome)) in actions {
            switch outcome {
            case .noShow: return .missed
            case .connectedNotSynced: return .notSynced
            case .rejected: return .wakeRejected
            default: break
            }
        }
        if isUnreachable { return .unreachable }
        if isRefreshOff { return .refreshOff }
        if isGone(now: now) { return .gone }
        return isDoubted(now: now) ? .doubted : .noBudget
    }

    /// Until when APNs may store an alert; `nil`: one attempt. It stores one notification: an
    /// older one must not take the place of a newer.
    public func alertExpires(isNewerSent: Bool, now: Timestamp) -> Timestamp? {
        isNewerSent || policy.alertExpiration == 0 ? nil : now + policy.alertExpiration
    }

    /// Until when APNs may store a badge push; `nil`: one attempt. Taking the place of an alert
    /// is the wish when that has been read, and nothing is lost when all is.
    public func badgeExpires(
        unread: UInt64, isNewestAlertRead: Bool, now: Timestamp
    ) -> Timestamp? {
        unread == 0 || isNewestAlertRead ? alertExpires(isNewerSent: false, now: now) : nil
    }
}

extension AlertSummary {
    /// What becomes of one more message that is pending at a demotion, newest first, when so many
    /// were queued before it: the newest few are sent singly, and one below stands for the rest.
    public static func pending(
        place queued: Int
    ) -> (phase: AlertPhase, summary: AlertSummary) {
        if queued < WakePolicy.demotionAlerts { return (.queued, .none) }
        return queued == WakePolicy.demotionAlerts ? (.queued, .everything) : (.counted, .none)
    }

    /// The phases in which older alerts wait that become sent with it.
    public var settledPhases: [AlertPhase] {
        switch self {
        case .none: []
        case .conversation: [.queued]
        case .everything: [.counted]
        case .device: [.queued, .counted]
        }
    }

    /// Whether what it would have told of needs another to tell it, if it is not sent.
    public var needsHeir: Bool { self == .everything || self == .device }

    /// - Parameter isNewest: no newer alert is open.
    public func scope(isNewest: Bool) -> AlertScope {
        if isNewest { return .all }
        return switch self {
        case .none: .own
        case .conversation: .conversation
        case .everything, .device: .older
        }
    }
}
