public import Model

/// What one device is owed in pushes, and the push that is in flight to it.
///
/// The silent wake, the queue of alerts and the badge of a device share one row, so that at most
/// one push is in flight by construction, one index finds what is due, and no two rules can
/// disagree. Deleted when nothing is owed and nothing sent is remembered.
public struct WakeRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    /// Derived: when the next push may leave; `nil`: nothing waits, or one is in flight.
    public var due: Timestamp?
    /// Derived: when something happens without a push: the end of grace, or of the lease.
    public var deadline: Timestamp?
    /// APNs asked to leave this device alone until then.
    public var notBefore: Timestamp = .zero
    /// Of the silent wake.
    public var phase: WakePhase = .none
    /// The highest `seq` worth a wake; only rises.
    public var target: UInt64 = 0
    /// The highest visible `seq`; only rises.
    public var visibleTarget: UInt64 = 0
    /// Of the newest visible change: what the payload names.
    public var conversation: ConversationID = .zero
    public var message: MessageID = .zero
    public var wakeDue: Timestamp = .zero
    /// Set by the silent budget and by APNs' faults; no upsert lowers it.
    public var wakeNotBefore: Timestamp = .zero
    /// What the push in flight or waited for was sent for.
    public var sentTarget: UInt64 = 0
    /// The wake that was sent, or is sent again.
    public var wake: WakeID?
    /// When its budget token was spent.
    public var silentAt: Timestamp = .zero
    /// APNs accepted it then.
    public var waitingSince: Timestamp?
    public var graceUntil: Timestamp?
    /// The app said HELLO after it was sent.
    public var connectedAt: Timestamp?
    /// The app synced before the answer came.
    public var isSynced = false
    /// Alert rows in `queued`.
    public var alertsQueued: UInt64 = 0
    /// Alerts that are neither covered nor cancelled.
    public var alertsOpen: UInt64 = 0
    public var alertDue: Timestamp = .zero
    public var badgeDue: Timestamp?
    /// The number the device was last sent.
    public var badgeShown: UInt64 = 0
    /// The push in flight: at most one a device over all classes.
    public var flight: PushKind?
    /// Its `apns-id`.
    public var flightWake: WakeID = .zero
    /// The alert's.
    public var flightMessage: MessageID = .zero
    public var flightBadge: UInt64 = 0
    /// The token generation it was sent to.
    public var flightGeneration: UInt64 = 0
    /// Who claimed it.
    public var owner: BootID?
    public var lease: Timestamp?
    /// Rises with each claim.
    public var attempt: UInt64 = 0
    /// Refusals in a row that were worth a retry.
    public var failures = RefusalCount()
    /// Derived: the queue in which it waits while `due` is there.
    public var lane: PushClass = .wake
    /// The APNs environment of the device's token: the raw value of its kind.
    public var environment: UInt64 = 0
    /// The topic of the device's token.
    public var topic = ""
    /// The highest `seq` of a change that is useful and not visible; only rises.
    public var usefulTarget: UInt64 = 0
    /// The wake in flight or waited for was sent for useful changes alone.
    public var isUsefulOnly = false
    /// Alerts that left one by one since the last quiet minute.
    public var alertBurst: UInt64 = 0
    /// When APNs last took an alert.
    public var lastAlertAt: Timestamp = .zero
    /// Derived: what is next is urgent, and goes before all that is not.
    public var turn: PushTurn = .plain
    /// When an urgent alert may leave; `nil`: none is known to wait.
    public var urgentDue: Timestamp?
    /// Alerts that are not urgent, or were tried before, wait until then for APNs; no upsert lowers
    /// it.
    public var alertNotBefore: Timestamp = .zero
    /// Pushes in a row that got no answer.
    public var unanswered: UInt64 = 0
    /// The hour in which `hourAlerts` left.
    public var hourSince: Timestamp = .zero
    public var hourAlerts: UInt64 = 0
    /// Those of `alertsOpen` whose rows are gone: they were too many.
    public var alertsFolded: UInt64 = 0
    /// The highest `seq` of these.
    public var foldedThrough: UInt64 = 0
    /// When the row was written: a time to come says that the clock was set back since.
    public var writtenAt: Timestamp = .zero

    /// A device that is owed nothing.
    public init(app: AppID, user: UserID, device: DeviceID) {
        self.app = app
        self.user = user
        self.device = device
    }
}

extension WakeRecord {
    public static let table = Table(
        "wake", of: Self.self,
        indexes: [
            TableIndex(
                "wake_by_lane", on: "lane", "app", "environment", "topic", "turn", "due",
                present: "due"),
            TableIndex("wake_by_deadline", on: "deadline", present: "deadline"),
            TableIndex("wake_by_waiting", on: "waiting_since", present: "waiting_since"),
            TableIndex("wake_by_owner", on: "owner", present: "owner"),
        ])

    @inlinable
    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        device = c.key("device", row?.device)
        due = c.value("due", row?.due)
        deadline = c.value("deadline", row?.deadline)
        notBefore = c.value("not_before", row?.notBefore)
        phase = c.value("phase", row?.phase)
        target = c.value("target", row?.target)
        visibleTarget = c.value("visible_target", row?.visibleTarget)
        conversation = c.value("conversation", row?.conversation)
        message = c.value("message", row?.message)
        wakeDue = c.value("wake_due", row?.wakeDue)
        wakeNotBefore = c.value("wake_not_before", row?.wakeNotBefore)
        sentTarget = c.value("sent_target", row?.sentTarget)
        wake = c.value("wake", row?.wake)
        silentAt = c.value("silent_at", row?.silentAt)
        waitingSince = c.value("waiting_since", row?.waitingSince)
        graceUntil = c.value("grace_until", row?.graceUntil)
        connectedAt = c.value("connected_at", row?.connectedAt)
        isSynced = c.value("is_synced", row?.isSynced)
        alertsQueued = c.value("alerts_queued", row?.alertsQueued)
        alertsOpen = c.value("alerts_open", row?.alertsOpen)
        alertDue = c.value("alert_due", row?.alertDue)
        badgeDue = c.value("badge_due", row?.badgeDue)
        badgeShown = c.value("badge_shown", row?.badgeShown)
        flight = c.value("flight", row?.flight)
        flightWake = c.value("flight_wake", row?.flightWake)
        flightMessage = c.value("flight_message", row?.flightMessage)
        flightBadge = c.value("flight_badge", row?.flightBadge)
        flightGeneration = c.value("flight_generation", row?.flightGeneration)
        owner = c.value("owner", row?.owner)
        lease = c.value("lease", row?.lease)
        attempt = c.value("attempt", row?.attempt)
        failures = c.value("failures", row?.failures)
        lane = c.value("lane", row?.lane)
        environment = c.value("environment", row?.environment)
        topic = c.value("topic", row?.topic)
        usefulTarget = c.value("useful_target", row?.usefulTarget)
        isUsefulOnly = c.value("is_useful_only", row?.isUsefulOnly)
        alertBurst = c.value("alert_burst", row?.alertBurst)
        lastAlertAt = c.value("last_alert_at", row?.lastAlertAt)
        turn = c.value("turn", row?.turn)
        urgentDue = c.value("urgent_due", row?.urgentDue)
        alertNotBefore = c.value("alert_not_before", row?.alertNotBefore)
        unanswered = c.value("unanswered", row?.unanswered)
        hourSince = c.value("hour_since", row?.hourSince)
        hourAlerts = c.value("hour_alerts", row?.hourAlerts)
        alertsFolded = c.value("alerts_folded", row?.alertsFolded)
        foldedThrough = c.value("folded_through", row?.foldedThrough)
        writtenAt = c.value("written_at", row?.writtenAt)
    }
}
