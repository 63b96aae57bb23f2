public import Model

/// How a device can be reached; what administrators and backends see.
public enum ReachabilityState: String, Sendable, CaseIterable {
    /// A session that counts; it lies over one of the others.
    case online
    /// A silent push is expected to wake it.
    case wakeable
    /// A silent push was accepted; grace runs.
    case waking
    /// It missed a grace: alerts until it has synced.
    case unreachable
    /// No valid token: only a connection helps.
    case tokenless
}

/// A change of the feed that may alert: someone else's message with a push text.
public struct VisibleChange: Equatable, Sendable {
    public var seq: UInt64
    public var conversation: ConversationID
    public var message: MessageID

    public init(seq: UInt64, conversation: ConversationID, message: MessageID) {
        self.seq = seq
        self.conversation = conversation
        self.message = message
    }
}

/// What a claim adds to a push: who sends it, and the id for it should it be a new one.
public struct Claim: Equatable, Sendable {
    public var owner: BootID
    public var id: WakeID

    public init(owner: BootID, id: WakeID) {
        self.owner = owner
        self.id = id
    }
}

/// Whether the next alert may leave alone.
public enum AlertPace: Equatable, Sendable {
    case single
    /// The burst is used up: one summary for each conversation, `WakePolicy.summaryDelay` apart.
    case summary
}

/// The alert a claim takes.
public struct AlertChoice: Equatable, Sendable {
    public var message: MessageID
    /// Its `apns-id` if it was sent before.
    public var id: WakeID?
    public var isUrgent: Bool
    /// It leaves beside a session, as an urgent one does.
    public var isTimed: Bool
    /// When the oldest alert that waits was queued.
    public var waitsSince: Timestamp
    /// An urgent one that was tried before, as the last push was another one that still waits: what
    /// they meet in a row is counted together.
    public var goesOn: Bool

    public init(
        message: MessageID, id: WakeID? = nil, isUrgent: Bool = false, isTimed: Bool = false,
        waitsSince: Timestamp, goesOn: Bool = false
    ) {
        self.message = message
        self.id = id
        self.isUrgent = isUrgent
        self.isTimed = isTimed
        self.waitsSince = waitsSince
        self.goesOn = goesOn
    }
}

/// The push a device's next claim is for.
public enum WakeNeed: Equatable, Sendable {
    case wake
    case alert
    case badge
}

/// What is left to do beside keeping the row; carried out in the same transaction.
public enum WakeAction: Equatable, Sendable {
    /// Hand the push in flight (`WakeRecord.flight`) to the gateway.
    case send(PushKind)
    /// Write the alert row of the change that was told: due then, or when those before it are.
    case queueAlert(due: Timestamp, isUrgent: Bool)
    /// Write alert rows for what is uncovered, unread and not alerted yet: the newest
    /// `WakePolicy.demotionAlerts` singly, the one below as a summary of the older ones.
    case alertPending
    /// The alert row of this message leaves `sending`, unless it was cancelled or covered.
    case settleAlert(MessageID, AlertSettlement)
    /// The campaign's row of this device leaves `sending`.
    case settleCampaign(CampaignID, CampaignSettlement)
    /// Alert rows go with the token.
    case dropAlerts
    /// The token is dead: off the device's row.
    case detachToken
    /// Wakeable -> unreachable.
    case demoted
    /// Unreachable -> wakeable.
    case recovered
    /// Into the record of this push.
    case note(WakeID, WakeNote)
    /// Into what the app's devices know together: this push brought the app, so long after APNs
    /// had taken it.
    case came(WakeID, after: Milliseconds)
}

/// What the answer makes of an alert row.
public enum AlertSettlement: Equatable, Sendable {
    case sent
    case queuedAgain
    /// Nobody knows: queued again, a few times.
    case unanswered
    /// Nor here, for who sent it is gone: queued again as often as that comes.
    case lost
    case refused
}

/// An event in the life of a push, as its record keeps it.
public enum WakeNote: Equatable, Sendable {
    /// Claimed, for the first time or again.
    case sent(PushKind, badge: UInt64?)
    case accepted
    case connected
    case synced
    case refused(status: UInt64, reason: String)
    case outcome(WakeOutcome)
}
