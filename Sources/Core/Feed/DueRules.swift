public import Model
import Wake

extension Rules {
    /// Apps with scheduled messages that are looked at; of more, one is taken for due at once.
    private static let scheduledAppsMax = 64

    /// When the writer's duties have something to do again although nothing is written until then:
    /// graces and leases that end, devices that do not come back, alerts that expire or whose hour
    /// comes, receipts, messages for later, campaigns. `nil`: not before something is written.
    ///
    /// Retention is not among them: what it removes is gone for everybody already, and may lie a
    /// while longer.
    public static func nextDue(
        in snapshot: any StoreSnapshot, now: Timestamp
    ) throws(StoreError) -> Timestamp? {
        // An outage, or a clock that was set back, is worked off without a pause.
        if try WakeRules.isMending(in: snapshot) { return now }
        var due: [Timestamp] = []
        func first<R: Record>(
            _ type: R.Type, _ index: String, prefix: [ColumnValue] = [],
            _ moment: (R) -> Timestamp?
        ) throws(StoreError) {
            let row = try snapshot.records(type, Scan(index: index, prefix: prefix, limit: 1)).first
            if let row, let moment = moment(row) { due.append(moment) }
        }
        try first(SessionRecord.self, "session_by_expected") { $0.expectedUntil }
        try first(WakeRecord.self, "wake_by_deadline") { $0.deadline }
        try first(AlertRecord.self, "alert_by_expiry") { $0.expiresAt }
        try first(
            AlertRecord.self, "alert_by_moment", prefix: [.unsigned(AlertPhase.delayed.rawValue)]
        ) { $0.moment }
        try first(ReceiptDueRecord.self, "receipt_due_by_due") { $0.due }
        try first(CampaignProgressRecord.self, "campaign_by_due") { $0.due }
        if let scheduled = try nextScheduled(in: snapshot, now: now) { due.append(scheduled) }
        return due.min()
    }

    /// Whether something waits that nobody else's time tells: devices whose grace runs, for which a
    /// crash must not look like a long outage, and content that is still to be removed.
    public static func isUnfinished(in snapshot: any StoreSnapshot) throws(StoreError) -> Bool {
        let wakes = try snapshot.records(
            WakeRecord.self, Scan(index: "wake_by_waiting", limit: 1))
        if !wakes.isEmpty { return true }
        return try !snapshot.records(PurgeRecord.self, Scan(limit: 1)).isEmpty
    }

    /// Suspended apps publish nothing.
    private static func nextScheduled(
        in snapshot: any StoreSnapshot, now: Timestamp
    ) throws(StoreError) -> Timestamp? {
        // No app has an empty name.
        var after: [ColumnValue] = [.text("")]
        var earliest: Timestamp?
        for _ in 0..<scheduledAppsMax {
            let scan = Scan(index: "scheduled_by_due", after: after, limit: 1)
            guard let next = try snapshot.records(ScheduledRecord.self, scan).first,
                let due = next.due
            else { return earliest }
            after = [.app(next.app)]
            let app = try snapshot.record(AppRecord.self, [.app(next.app)])
            if app?.isSuspended == false { earliest = min(earliest ?? due, due) }
        }
        return now
    }
}
