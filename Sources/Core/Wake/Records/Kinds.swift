public import Model

// Numbers stored in rows. They are never reused.

/// The classes of pushes, in the order in which a device's own are sent.
public enum PushKind: UInt64, StoredNumber, CaseIterable {
    /// Wakes the app and shows nothing.
    case silent = 1
    case alert = 2
    /// Sets the number on the icon.
    case badge = 3
    /// A text for many devices; its row is the campaign's.
    case campaign = 4

    /// It changes what the device shows, and is owed to the device until it does.
    var isShown: Bool { self == .alert || self == .badge }
}

/// The queues of the gateway, best first. Each has streams and connections of its own, so that
/// a backlog of one never delays another.
public enum PushClass: UInt64, NamedByCase, StoredNumber, Comparable {
    case wake = 1
    case alert = 2
    case badge = 3
    case campaign = 4
    /// To tokens that APNs has never accepted a push for: many of them may be wrong, and APNs
    /// slows down connections that are told so.
    case probe = 5

    public init(_ kind: PushKind) {
        switch kind {
        case .silent: self = .wake
        case .alert: self = .alert
        case .badge: self = .badge
        case .campaign: self = .campaign
        }
    }

    /// As in logs and metrics.
    public static let names = caseNames()

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The order in which devices of one queue are served: all of the first before any of the next.
public enum PushTurn: UInt64, StoredNumber, CaseIterable, Comparable {
    case urgent = 0
    case plain = 1

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// Alerts that need not wait for those before them in the queue, and how they are found in it.
public enum AlertExpress: UInt64, StoredNumber, CaseIterable {
    case urgent = 1
    case timed = 2
}

/// Where a device's silent wake stands.
public enum WakePhase: UInt64, StoredNumber, CaseIterable {
    case none = 0
    case due = 1
    /// Claimed; APNs has not answered.
    case sending = 2
    /// Accepted; grace runs.
    case waiting = 3
}

/// Where the alert of one message for one device stands.
public enum AlertPhase: UInt64, StoredNumber, CaseIterable {
    case queued = 1
    case sending = 2
    case sent = 3
    /// Not sent alone: told with a newer one.
    case counted = 4
    /// Read on another device, or it cannot be sent; not alerted again.
    case cancelled = 5
    /// In a range the app acknowledged, above `applied`.
    case covered = 6
    /// Waits for a time of its own; counted nowhere until then.
    case delayed = 7
    /// Its time was over before it could leave.
    case expired = 8

    /// Neither covered nor cancelled: the count in an alert's text includes it.
    public var isOpen: Bool {
        switch self {
        case .queued, .sending, .sent, .counted: true
        case .cancelled, .covered, .delayed, .expired: false
        }
    }
}

/// Why an alert was made.
public enum AlertCause: UInt64, NamedByCase, StoredNumber {
    case unknown = 0
    case urgent = 1
    case unreachable = 2
    /// The device does not wake its app for silent pushes.
    case refreshOff = 3
    case gone = 4
    /// No silent push was left.
    case noBudget = 5
    /// A silent wake was missed.
    case missed = 6
    /// The app came and did not sync.
    case notSynced = 7
    /// APNs would not take the silent push.
    case wakeRejected = 8
    /// The backend has given it a time.
    case timed = 9
    /// It missed most of its last wakes.
    case doubted = 10

    /// As in results of simulations.
    public static let names = caseNames()
}

/// Which older alerts become sent with one.
public enum AlertSummary: UInt64, StoredNumber, CaseIterable {
    case none = 0
    /// Those of its conversation that wait.
    case conversation = 1
    /// All that were counted: at a demotion.
    case everything = 2
    /// All that wait, too: to a device that is presumed gone.
    case device = 3
}

/// What came of a push.
public enum WakeOutcome: UInt64, NamedByCase, StoredNumber {
    case pending = 0
    /// `applied` reached what it was sent for.
    case synced = 1
    /// The app connected and did not sync in time.
    case connectedNotSynced = 2
    /// A no-show whose app came after all.
    case late = 3
    /// Nothing was left to see: read elsewhere, or the token went.
    case superseded = 4
    /// We were away while the app may have answered.
    case expired = 5
    /// APNs refused it: status and reason say why.
    case rejected = 6
    case noShow = 7
    /// An alert or badge that APNs took; nothing more is expected of it.
    case accepted = 8

    /// As in the backend API and in metrics.
    public static let names = caseNames()
}

/// The number of unread messages of a conversation, or of all of them.
public enum UnreadCount {
    /// An icon shows no more: counting further would cost more than it tells.
    public static let most: UInt64 = 999
}

extension Timestamp {
    /// 1970: earlier than everything.
    static let zero = Timestamp(milliseconds: 0)
}

extension Identifier {
    /// No object.
    static var zero: Self { Self(high: 0, low: 0) }
}
