public import Model
public import Wake

/// Why a device was pushed to for a message, or was not: one reason a decision. The raw value is
/// its name in the APIs.
public enum ExplainReason: String, Sendable, CaseIterable {
    // Of the user: for no device anything more is decided.
    case onItsWay = "on-its-way"
    case notRecipient = "not-recipient"
    case ownMessage = "own-message"
    case deleted
    case noPushText = "no-push-text"
    case muted
    case readAlready = "read-already"
    case senderBlocked = "sender-blocked"
    case passive
    case read
    case userSuspended = "user-suspended"
    case appSuspended = "app-suspended"
    case noDevice = "no-device"
    // Of a device.
    case applied
    case appliedAhead = "applied-ahead"
    case session
    case sessionExpected = "session-expected"
    case tokenless
    case noCredential = "no-credential"
    case presumedGone = "presumed-gone"
    case nothingOwed = "nothing-owed"
    // Of its silent wake.
    case wakeDue = "wake-due"
    case wakeSending = "wake-sending"
    case wakeWaiting = "wake-waiting"
    case wakePending = "wake-pending"
    case wakeSynced = "wake-synced"
    case wakeNotSynced = "wake-connected-not-synced"
    case wakeLate = "wake-late"
    case wakeSuperseded = "wake-superseded"
    case wakeExpired = "wake-expired"
    case wakeRejected = "wake-rejected"
    case wakeNoShow = "wake-no-show"
    // Why it was alerted.
    case alertUrgent = "alert-urgent"
    case alertUnreachable = "alert-unreachable"
    case alertRefreshOff = "alert-refresh-off"
    case alertGone = "alert-presumed-gone"
    case alertNoBudget = "alert-no-budget"
    case alertMissed = "alert-wake-missed"
    case alertNotSynced = "alert-not-synced"
    case alertWakeRejected = "alert-wake-rejected"
    case alertTimed = "alert-timed"
    case alertDoubted = "alert-doubted"
    // Where the alert stands.
    case alertQueued = "alert-queued"
    case alertSending = "alert-sending"
    case alertSent = "alert-sent"
    case alertSentWithNewer = "alert-sent-with-newer"
    case alertCounted = "alert-counted"
    case alertCancelled = "alert-cancelled"
    case alertDelayed = "alert-delayed"
    case alertExpired = "alert-expired"
    case alertRejected = "alert-rejected"
}

/// One decision.
public struct ExplainStep: Equatable, Sendable {
    /// When it was taken, as far as rows say; `nil`: it holds now.
    public var at: Timestamp?
    public var reason: ExplainReason
    /// Until when it holds, or when the next step is due.
    public var until: Timestamp?
    /// The push it is about.
    public var push: WakeID?
    /// APNs' answer where it refused.
    public var status: UInt64
    public var answer: String

    public init(
        at: Timestamp? = nil, _ reason: ExplainReason, until: Timestamp? = nil,
        push: WakeID? = nil, status: UInt64 = 0, answer: String = ""
    ) {
        self.at = at
        self.reason = reason
        self.until = until
        self.push = push
        self.status = status
        self.answer = answer
    }
}

/// What was decided for one user, or one device of a user, in the order in which it was.
public struct ExplainSubject: Equatable, Sendable {
    public var user: UserID
    /// `nil`: for all devices of the user.
    public var device: DeviceID?
    public var steps: [ExplainStep]
}

/// Which decisions are asked for: of a message or an announcement.
public struct ExplainQuery: Equatable, Sendable {
    public var message: MessageID
    /// `nil`: all recipients, up to `usersMax`; an announcement's have to be named.
    public var user: UserID?
    public var device: DeviceID?

    public static let usersMax = 100

    public init(message: MessageID, user: UserID? = nil, device: DeviceID? = nil) {
        self.message = message
        self.user = user
        self.device = device
    }
}

public struct Explanation: Equatable, Sendable {
    public var message: MessageID
    /// `nil`: an announcement.
    public var conversation: ConversationID?
    public var sentAt: Timestamp
    public var urgency: Urgency
    public var subjects: [ExplainSubject]
    /// There are more recipients than were looked at.
    public var isCut: Bool
    /// As whoever published it named it; `nil`: it named none.
    public var trace: TraceContext?
}
