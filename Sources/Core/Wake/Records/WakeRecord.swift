public import Model

/// What one device is owed in pushes, and the push that is in flight to it.
///
/// The silent wake, the queue of alerts and the badge of a device share one row, so that at most
/// one push is in flight by construction, one index finds what is due, and no two rules can
/// disagree. Deleted when nothing is owed and nothing sent is remembered.
public struct WakeRecord: Record, Equatable {
    public static let table = Table(
        "wake",
        key: [Column("app", .text), Column("user", .text), Column("device", .blob)],
        values: [
            Column("due", .integer, optional: true), Column("deadline", .integer, optional: true),
            Column("not_before", .integer), Column("phase", .integer), Column("target", .integer),
            Column("visible_target", .integer), Column("conversation", .blob),
            Column("message", .blob), Column("wake_due", .integer),
            Column("wake_not_before", .integer), Column("sent_target", .integer),
            Column("wake", .blob, optional: true), Column("silent_at", .integer),
            Column("waiting_since", .integer, optional: true),
            Column("grace_until", .integer, optional: true),
            Column("connected_at", .integer, optional: true), Column("is_synced", .integer),
            Column("alerts_queued", .integer), Column("alerts_open", .integer),
            Column("alert_due", .integer), Column("badge_due", .integer, optional: true),
            Column("badge_shown", .integer), Column("flight", .integer, optional: true),
            Column("flight_wake", .blob), Column("flight_message", .blob),
            Column("flight_badge", .integer), Column("flight_generation", .integer),
            Column("owner", .blob, optional: true), Column("lease", .integer, optional: true),
            Column("attempt", .integer), Column("failures", .integer),
            Column("lane", .integer), Column("environment", .integer), Column("topic", .text),
            Column("useful_target", .integer), Column("is_useful_only", .integer),
            Column("alert_burst", .integer), Column("last_alert_at", .integer),
            Column("turn", .integer), Column("urgent_due", .integer, optional: true),
            Column("alert_not_before", .integer), Column("unanswered", .integer),
            Column("hour_since", .integer), Column("hour_alerts", .integer),
            Column("alerts_folded", .integer), Column("folded_through", .integer),
            Column("written_at", .integer),
        ],
        indexes: [
            TableIndex(
                "wake_by_lane", on: "lane", "app", "environment", "topic", "turn", "due",
                present: "due"),
            TableIndex("wake_by_deadline", on: "deadline", present: "deadline"),
            TableIndex("wake_by_waiting", on: "waiting_since", present: "waiting_since"),
            TableIndex("wake_by_owner", on: "owner", present: "owner"),
        ])

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
    public var failures: UInt64 = 0
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
    public var lastAlertAt: Timestamp = .zero
    /// Derived: what is next is urgent, and goes before all that is not.
    public var turn: PushTurn = .plain
    /// When an urgent alert may leave; `nil`: none is known to wait.
    public var urgentDue: Timestamp?
    /// Alerts that are not urgent wait until then for APNs; no upsert lowers it.
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

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        device = try reader.identifier()
        due = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        deadline = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        notBefore = try reader.timestamp()
        phase = try reader.value(WakePhase.self)
        target = try reader.unsigned()
        visibleTarget = try reader.unsigned()
        conversation = try reader.identifier()
        message = try reader.identifier()
        wakeDue = try reader.timestamp()
        wakeNotBefore = try reader.timestamp()
        sentTarget = try reader.unsigned()
        wake = try reader.optional { reader throws(StoreError) in try reader.identifier() }
        silentAt = try reader.timestamp()
        waitingSince = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        graceUntil = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        connectedAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        isSynced = try reader.flag()
        alertsQueued = try reader.unsigned()
        alertsOpen = try reader.unsigned()
        alertDue = try reader.timestamp()
        badgeDue = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        badgeShown = try reader.unsigned()
        flight = try reader.optional { reader throws(StoreError) in try reader.value(PushKind.self)
        }
        flightWake = try reader.identifier()
        flightMessage = try reader.identifier()
        flightBadge = try reader.unsigned()
        flightGeneration = try reader.unsigned()
        owner = try reader.optional { reader throws(StoreError) in try reader.identifier() }
        lease = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        attempt = try reader.unsigned()
        failures = try reader.unsigned()
        lane = try reader.value(PushClass.self)
        environment = try reader.unsigned()
        topic = try reader.text()
        usefulTarget = try reader.unsigned()
        isUsefulOnly = try reader.flag()
        alertBurst = try reader.unsigned()
        lastAlertAt = try reader.timestamp()
        turn = try reader.value(PushTurn.self)
        urgentDue = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        alertNotBefore = try reader.timestamp()
        unanswered = try reader.unsigned()
        hourSince = try reader.timestamp()
        hourAlerts = try reader.unsigned()
        alertsFolded = try reader.unsigned()
        foldedThrough = try reader.unsigned()
        writtenAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app),
            .user(user),
            .identifier(device),
            .optional(due) { .timestamp($0) },
            .optional(deadline) { .timestamp($0) },
            .timestamp(notBefore),
            .unsigned(phase.rawValue),
            .unsigned(target),
            .unsigned(visibleTarget),
            .identifier(conversation),
            .identifier(message),
            .timestamp(wakeDue),
            .timestamp(wakeNotBefore),
            .unsigned(sentTarget),
            .optional(wake) { .identifier($0) },
            .timestamp(silentAt),
            .optional(waitingSince) { .timestamp($0) },
            .optional(graceUntil) { .timestamp($0) },
            .optional(connectedAt) { .timestamp($0) },
            .flag(isSynced),
            .unsigned(alertsQueued),
            .unsigned(alertsOpen),
            .timestamp(alertDue),
            .optional(badgeDue) { .timestamp($0) },
            .unsigned(badgeShown),
            .optional(flight) { .unsigned($0.rawValue) },
            .identifier(flightWake),
            .identifier(flightMessage),
            .unsigned(flightBadge),
            .unsigned(flightGeneration),
            .optional(owner) { .identifier($0) },
            .optional(lease) { .timestamp($0) },
            .unsigned(attempt),
            .unsigned(failures),
            .unsigned(lane.rawValue),
            .unsigned(environment),
            .text(topic),
            .unsigned(usefulTarget),
            .flag(isUsefulOnly),
            .unsigned(alertBurst),
            .timestamp(lastAlertAt),
            .unsigned(turn.rawValue),
            .optional(urgentDue) { .timestamp($0) },
            .timestamp(alertNotBefore),
            .unsigned(unanswered),
            .timestamp(hourSince),
            .unsigned(hourAlerts),
            .unsigned(alertsFolded),
            .unsigned(foldedThrough),
            .timestamp(writtenAt),
        ]
    }
}
