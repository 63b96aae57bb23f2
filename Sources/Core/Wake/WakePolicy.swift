public import Model

/// What an app's policy and this design fix for wakes. Durations in milliseconds.
public struct WakePolicy: Equatable, Sendable {
    /// How long an accepted silent wake may go unanswered.
    public var grace: Milliseconds
    /// Silent pushes to one device in any `silentWindow`.
    public var silentBudget: UInt64
    public var silentWindow: Milliseconds
    /// Between two silent pushes to one device.
    public var silentSpacing: Milliseconds
    /// How long APNs may store an alert; 0: one attempt.
    public var alertExpiration: Milliseconds
    /// What differs from device to device.
    public var adaptive: AdaptivePolicy

    /// As made it is the classic policy.
    public init(
        grace: Milliseconds = 60_000, silentBudget: UInt64 = 3,
        silentWindow: Milliseconds = 3_600_000, silentSpacing: Milliseconds = 60_000,
        alertExpiration: Milliseconds = 30 * 86_400_000, adaptive: AdaptivePolicy = AdaptivePolicy()
    ) {
        self.grace = grace
        self.silentBudget = silentBudget
        self.silentWindow = silentWindow
        self.silentSpacing = silentSpacing
        self.alertExpiration = alertExpiration
        self.adaptive = adaptive
    }

    /// Once the app has connected it has what iOS lets it run, 30 s; the grace where that is
    /// shorter, so that an app with compressed times keeps the proportion.
    public var runTime: Milliseconds { min(30_000, grace) }

    /// The stream deadline is 10 s and 15 s are left when HEADERS are written: no answer of an
    /// older attempt comes after the lease.
    public static let lease: Milliseconds = 60_000
    /// A push without an answer is due again after this.
    public static let unansweredDelay: Milliseconds = 5_000
    /// After so many pushes without an answer an alert counts as sent.
    public static let unansweredMax: UInt64 = 8
    /// A push that was never written is due again after this.
    public static let unsentDelay: Milliseconds = 1_000
    /// Alerts of a device that has connected meanwhile: an ACK will cancel them, or the session
    /// ends.
    public static let connectedDelay: Milliseconds = 10_000
    /// Reads come in bursts; one badge push tells of all.
    public static let badgeDelay: Milliseconds = 1_000
    /// A paused credential is looked at again after this.
    public static let pausedDelay: Milliseconds = 60_000
    /// More than any badge: what the icon shows is not known.
    public static let badgeUnknown = UnreadCount.most + 1
    /// Demotion alerts so many messages singly; what is older is told in one summary before.
    public static let demotionAlerts = 3
    /// The most alert rows one demotion writes; older messages are told by none.
    public static let pendingAlertsMax = 256
    /// An urgent alert beside a session leaves after this, unless an ACK covers it before.
    public static let urgentDelay: Milliseconds = 2_000
    /// Alerts that leave one by one; then each conversation is summed up, once in `summaryDelay`.
    public static let alertBurst: UInt64 = 5
    public static let summaryDelay: Milliseconds = 60_000
    /// After so many alerts in an hour the next ones are for the whole device, `summaryDelay`
    /// apart; after `hourAlertsMax`, `hourDelay` apart. Urgent ones always leave.
    public static let hour: Milliseconds = 3_600_000
    public static let hourAlerts: UInt64 = 12
    public static let hourAlertsMax: UInt64 = 30
    public static let hourDelay: Milliseconds = 300_000
    /// A campaign's push to a device that is sent something else is looked at again after this.
    public static let campaignDelay: Milliseconds = 5_000
    /// An unreachable device with nothing but useful changes is tried silently this often.
    public static let probeDelay: Milliseconds = 24 * 3_600_000
}
