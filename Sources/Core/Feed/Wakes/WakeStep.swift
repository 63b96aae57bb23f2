import Model
import Wake
import Wire

/// One device inside one transaction: its machine, loaded from rows, told events, and written
/// back with what it asked for.
///
/// Whoever uses it holds the user's row: all writers of a device's push state do.
struct WakeStep {
    let transaction: any StoreTransaction
    let now: Timestamp
    private(set) var device: DeviceRecord
    var machine: Reachability
    /// The push to hand over, if a claim came to one.
    private(set) var sends: PushKind?
    var effects = WakeEffects()
    /// What came back for the push in flight, and the id APNs gave it; set before the machine
    /// is told.
    var reply: PushReply?
    var answeredID: WakeID?
    /// The app's own language.
    let appLocale: String
    private let before: WakeRecord?
    private let deviceBefore: DeviceRecord

    init(
        _ device: DeviceRecord, in transaction: any StoreTransaction, now: Timestamp
    ) throws(StoreError) {
        self.transaction = transaction
        self.now = now
        self.device = device
        deviceBefore = device
        before = try transaction.record(WakeRecord.self, device.wakeKey)
        let app = try transaction.record(AppRecord.self, [.app(device.app)])
        appLocale = app?.locale ?? ""
        var row =
            before ?? WakeRecord(app: device.app, user: device.user, device: device.device)
        row.environment = device.pushEnvironment.rawValue
        row.topic = device.pushTopic
        machine = Reachability(
            policy: app.map { WakePolicy($0) } ?? WakePolicy(),
            tokenGeneration: device.pushToken == nil ? nil : device.tokenGeneration,
            tokenConfirmedAt: device.tokenConfirmedAt,
            isTokenProven: device.tokenProvenAt != nil, isUnreachable: device.isUnreachable,
            wasAlerted: device.wasAlerted,
            isRefreshOff: device.backgroundRefresh == .off,
            isSessionCounted: try transaction.isSessionCounted(of: device, now: now),
            applied: device.applied, budget: SilentBudget(encoded: device.lastSilentAt),
            habit: WakeHabit(encoded: device.wakeHabit), heardAt: device.lastSeenAt,
            row: row)
        machine.mendClock(now: now)
    }

    var row: WakeRecord { machine.row }
    var hadRow: Bool { before != nil }

    /// Writes the wake row and, unless the caller does, the device's row.
    mutating func save(keepsDevice: Bool = true) throws(StoreError) {
        effects.isDue = machine.row.due != nil && machine.row.due != before?.due
        device.isUnreachable = machine.isUnreachable
        device.wasAlerted = machine.wasAlerted
        device.lastSilentAt = machine.budget.encoded
        device.tokenProvenAt = machine.isTokenProven ? device.tokenProvenAt ?? now : nil
        device.wakeHabit = machine.habit.encoded
        if keepsDevice, device != deviceBefore { try transaction.put(device) }
        if machine.isIdle(now: now) {
            if before != nil { try transaction.delete(WakeRecord.self, device.wakeKey) }
        } else if machine.row != before {
            try transaction.put(machine.row)
        }
    }

    /// Carries the machine's actions out.
    mutating func perform(
        _ actions: [WakeAction], entry: EntryRecord? = nil
    ) throws(StoreError) {
        let cause = machine.alertCause(of: actions, now: now)
        for action in actions {
            switch action {
            case .send(let kind): sends = kind
            case .queueAlert(let due, let isUrgent):
                if let entry {
                    try queueAlert(
                        entry, due: due, isUrgent: isUrgent, isUrgent ? .urgent : cause)
                }
            case .alertPending: try alertPending(cause)
            case .settleAlert(let message, let settlement): try settle(message, settlement)
            case .settleCampaign(let campaign, let settlement):
                try settle(campaign, settlement)
            case .dropAlerts: try dropAlerts()
            case .detachToken:
                device.pushToken = nil
                device.tokenConfirmedAt = nil
                device.tokenGeneration += 1
            case .demoted: effects.demotions += 1
            case .recovered: effects.recoveries += 1
            case .note(let wake, let note): try record(wake, note)
            }
        }
    }
}

// MARK: Alert rows

extension WakeStep {
    private static let alertLifetime: Milliseconds = 30 * 86_400_000
    /// Rows looked at or written at a time.
    static let chunk = 128

    func alertKey(_ message: MessageID) -> [ColumnValue] {
        device.wakeKey + [.identifier(message)]
    }

    func makeAlert(_ entry: EntryRecord, _ message: MessageID, _ phase: AlertPhase)
        -> AlertRecord
    {
        AlertRecord(
            app: device.app, user: device.user, device: device.device, message: message,
            conversation: entry.conversation, position: entry.position, seq: entry.seq,
            phase: phase, openPosition: phase.isOpen ? entry.position : nil, queuedAt: now,
            sentAt: nil, push: nil, expiresAt: now + Self.alertLifetime)
    }

    /// One alert a (device, message) by whatever path: a row that exists only learns the seq.
    private mutating func queueAlert(
        _ entry: EntryRecord, due: Timestamp, isUrgent: Bool, _ cause: AlertCause
    ) throws(StoreError) {
        guard let message = MessageID(entry.object) else { return }
        if var known = try transaction.record(AlertRecord.self, alertKey(message)) {
            known.seq = max(known.seq, entry.seq)
            try transaction.put(known)
            return
        }
        var alert = makeAlert(entry, message, .queued)
        alert.isUrgent = isUrgent
        alert.cause = cause
        try transaction.put(alert)
        alertCame(isUrgent: isUrgent, due: due)
    }

    /// One more alert waits in the queue.
    mutating func alertCame(isUrgent: Bool, due: Timestamp) {
        if row.alertsQueued == 0 || !isUrgent {
            let due = row.alertsQueued == 0 ? due : min(row.alertDue, due)
            machine.alertsChanged(queued: 1, open: 1, due: due)
        } else {
            machine.alertsChanged(queued: 1, open: 1)
        }
        if isUrgent { machine.urgentCame(due: due) }
    }

    /// Those that are sent leave oldest first, so that the newest holds APNs' one slot.
    private mutating func alertPending(_ cause: AlertCause) throws(StoreError) {
        let pending = try transaction.pending(device, atMost: WakePolicy.pendingAlertsMax)
        var queued = 0
        var open = 0
        for entry in pending.entries {
            guard let message = MessageID(entry.object),
                try transaction.record(AlertRecord.self, alertKey(message)) == nil
            else { continue }
            let (phase, summary) = AlertSummary.pending(place: queued)
            if phase == .queued { queued += 1 }
            open += 1
            var alert = makeAlert(entry, message, phase)
            alert.summary = summary
            alert.cause = cause
            try transaction.put(alert)
        }
        machine.alertsChanged(queued: queued, open: open, due: now)
    }

    private mutating func settle(
        _ message: MessageID, _ settlement: AlertSettlement
    ) throws(StoreError) {
        guard var alert = try transaction.record(AlertRecord.self, alertKey(message)),
            alert.phase == .sending
        else { return }
        switch settlement {
        case .sent: return try settleSent(&alert)
        case .unanswered:
            alert.tries += 1
            if alert.tries >= WakePolicy.unansweredMax {
                machine.alertMayBeShown()
                return try settleSent(&alert)
            }
            try queueAgain(&alert)
        case .queuedAgain: try queueAgain(&alert)
        case .refused:
            // Those that it would have told of are told by another.
            machine.alertsChanged(queued: 1, open: 0)
            try drop(alert, .cancelled, countedAs: .queued)
        }
    }

    private mutating func settleSent(_ alert: inout AlertRecord) throws(StoreError) {
        alert.phase = .sent
        alert.sentAt = now
        try settleOlder(than: alert)
        try transaction.put(alert)
    }

    private mutating func queueAgain(_ alert: inout AlertRecord) throws(StoreError) {
        alert.phase = .queued
        // Who waits by then is decided then.
        if alert.summary == .conversation || alert.summary == .device { alert.summary = .none }
        machine.alertsChanged(queued: 1, open: 0)
        if alert.isUrgent { machine.urgentCame(due: row.alertNotBefore) }
        try transaction.put(alert)
    }

    private mutating func dropAlerts() throws(StoreError) {
        while true {
            let rows = try transaction.records(
                AlertRecord.self, Scan(prefix: device.wakeKey, limit: Self.chunk))
            for alert in rows {
                try transaction.delete(AlertRecord.self, alertKey(alert.message))
            }
            if rows.count < Self.chunk { return }
        }
    }

    /// Rows at or below `applied` go: the device has what they tell of.
    ///
    /// What the server alone tells of stays until it is told.
    mutating func coverAlerts(through applied: UInt64) throws(StoreError) {
        var after: [ColumnValue]?
        while true {
            let rows = try transaction.records(
                AlertRecord.self,
                Scan(
                    index: "alert_by_seq", prefix: device.wakeKey, after: after,
                    through: [.unsigned(applied)], limit: Self.chunk))
            for alert in rows {
                after = [.unsigned(alert.seq)]
                if alert.isTimed, alert.phase != .sent { continue }
                close(alert)
                try transaction.delete(AlertRecord.self, alertKey(alert.message))
                if let push = alert.push { try record(push, .synced) }
            }
            if rows.count < Self.chunk { return }
        }
    }

    /// A range above `applied` that the app acknowledged: its visible entries need no alert. The
    /// rows are kept, for nothing else remembers the range.
    mutating func coverAlerts(in range: ClosedRange<UInt64>) throws(StoreError) {
        var after = range.lowerBound > 0 ? range.lowerBound - 1 : 0
        while after < range.upperBound {
            let entries = try transaction.records(
                EntryRecord.self,
                Scan(
                    prefix: [.app(device.app), .user(device.user)], after: [.unsigned(after)],
                    through: [.unsigned(range.upperBound)], limit: Self.chunk))
            for entry in entries where entry.isVisible {
                guard let message = MessageID(entry.object) else { continue }
                if var alert = try transaction.record(AlertRecord.self, alertKey(message)) {
                    close(alert)
                    alert.phase = .covered
                    alert.openPosition = nil
                    try transaction.put(alert)
                } else {
                    try transaction.put(makeAlert(entry, message, .covered))
                }
            }
            guard entries.count == Self.chunk, let last = entries.last else { return }
            after = last.seq
        }
    }

    /// Messages of a conversation read on another device are alerted no more.
    mutating func cancelAlerts(
        of conversation: ConversationID, read: PositionSet
    ) throws(StoreError) {
        let highest = read.ranges.last?.last ?? read.through
        var after: UInt64 = 0
        while after < highest {
            let rows = try transaction.records(
                AlertRecord.self,
                Scan(
                    index: "alert_open",
                    prefix: device.wakeKey + [.identifier(conversation)],
                    after: [.unsigned(after)], through: [.unsigned(highest)],
                    limit: Self.chunk))
            for var alert in rows where read.contains(alert.position) {
                close(alert)
                alert.phase = .cancelled
                alert.openPosition = nil
                try transaction.put(alert)
            }
            guard rows.count == Self.chunk, let last = rows.last else { return }
            after = last.position
        }
    }

    /// A message or announcement is nothing to alert of any more.
    mutating func cancelAlert(of message: MessageID) throws(StoreError) {
        guard var alert = try transaction.record(AlertRecord.self, alertKey(message)),
            alert.phase.isOpen || alert.phase == .delayed
        else { return }
        close(alert)
        alert.phase = .cancelled
        alert.openPosition = nil
        try transaction.put(alert)
    }

    /// A visible entry moved up the feed. What remembers that the device has it, or is owed it,
    /// moves along.
    mutating func moveAlert(
        from older: EntryRecord, to entry: EntryRecord, of message: MessageID
    ) throws(StoreError) {
        let known = try transaction.record(AlertRecord.self, alertKey(message))
        if older.seq <= device.applied {
            // It stands above `applied` now, and yet the device has the message.
            if let known { close(known) }
            var covered = makeAlert(entry, message, .covered)
            covered.sentAt = known?.sentAt
            covered.push = known?.push
            return try transaction.put(covered)
        }
        if var known {
            known.seq = entry.seq
            try transaction.put(known)
            if known.phase == .covered { return }
        }
        machine.moved(
            VisibleChange(seq: entry.seq, conversation: entry.conversation, message: message))
    }

    /// What an alert shows; `nil`: what it tells of is gone, or alerts no more.
    func content(of alert: AlertRecord) throws(StoreError) -> AlertContent? {
        let key: [ColumnValue] = [.app(alert.app), .identifier(alert.message)]
        if alert.conversation == .none {
            return try transaction.record(AnnouncementRecord.self, key).map {
                made throws(StoreError) in
                try AlertContent(
                    made.pushTitle, made.pushBody, made.pushOptions, publishedAt: made.sentAt)
            }
        }
        guard let message = try transaction.record(MessageRecord.self, key),
            message.alerts(device.user)
        else { return nil }
        return try AlertContent(
            message.pushTitle, message.pushBody, message.pushOptions,
            publishedAt: message.sentAt)
    }

    /// Takes an alert out of the device's counts, as it leaves its phase.
    mutating func close(_ alert: AlertRecord) {
        machine.alertsChanged(
            queued: alert.phase == .queued ? -1 : 0, open: alert.phase.isOpen ? -1 : 0)
    }

}

// MARK: The record

extension WakeStep {
    private static let historyLifetime: Milliseconds = 30 * 86_400_000

    private mutating func record(_ wake: WakeID, _ note: WakeNote) throws(StoreError) {
        let key = device.wakeKey + [.identifier(wake)]
        let known = try transaction.record(WakeHistoryRecord.self, key)
        if case .sent(let kind, let badge) = note {
            var record: WakeHistoryRecord
            if let known { record = known } else { record = try newRecord(wake, kind) }
            record.attempts = known.map { $0.attempts + 1 } ?? 1
            record.sentAt = now
            record.badge = badge
            record.outcome = .pending
            try transaction.put(record)
            return
        }
        guard var record = known else { return }
        switch note {
        case .sent: break
        case .accepted:
            record.acceptedAt = now
            measure(.accepted, record)
        case .connected:
            if record.connectedAt == nil { measure(.connected, record) }
            record.connectedAt = record.connectedAt ?? now
        case .synced:
            if record.syncedAt == nil { measure(.synced, record) }
            record.syncedAt = record.syncedAt ?? now
        case .refused(let status, let reason):
            record.status = status
            record.reason = String(reason.prefix(64))
        case .outcome(let outcome):
            // The first one stands: a dead token's wake was rejected, not superseded.
            if record.outcome == .pending {
                record.outcome = outcome
                if record.kind == .silent { effects.outcomes.append(outcome) }
            }
        }
        try transaction.put(record)
    }

    private mutating func measure(_ stage: WakeLatency.Stage, _ record: WakeHistoryRecord) {
        guard record.kind == .silent else { return }
        effects.latencies.append(WakeLatency(stage, now.since(record.sentAt)))
    }

    private func newRecord(_ wake: WakeID, _ kind: PushKind) throws(StoreError)
        -> WakeHistoryRecord
    {
        var record = WakeHistoryRecord(
            app: device.app, user: device.user, device: device.device, wake: wake, kind: kind,
            seq: 0, conversation: row.conversation, message: row.message, queuedAt: now,
            sentAt: now, expiresAt: now + Self.historyLifetime)
        switch kind {
        case .silent:
            record.seq = row.target
            record.queuedAt = row.wakeDue
        case .alert:
            record.message = row.flightMessage
            if let alert = try transaction.record(
                AlertRecord.self, alertKey(row.flightMessage))
            {
                record.seq = alert.seq
                record.conversation = alert.conversation
                record.queuedAt = alert.queuedAt
            }
        case .badge: record.seq = device.applied
        // Its row is its record.
        case .campaign: break
        }
        return record
    }

    /// HELLO named the push that caused it.
    mutating func attribute(_ wake: WakeID) throws(StoreError) {
        let key = device.wakeKey + [.identifier(wake)]
        guard var record = try transaction.record(WakeHistoryRecord.self, key) else { return }
        if record.connectedAt == nil { measure(.connected, record) }
        record.connectedAt = record.connectedAt ?? now
        if record.outcome == .noShow {
            record.outcome = .late
            if record.kind == .silent { effects.outcomes.append(.late) }
            if let accepted = record.acceptedAt { machine.cameLate(after: now.since(accepted)) }
        }
        try transaction.put(record)
    }
}

extension DeviceRecord {
    /// The key of its wake row, and what the keys of its alerts and records begin with.
    var wakeKey: [ColumnValue] { [.app(app), .user(user), .identifier(device)] }
}

extension WakePolicy {
    init(_ app: AppRecord) {
        self.init(
            grace: app.grace, silentBudget: app.silentBudget, silentWindow: app.silentWindow,
            silentSpacing: app.silentSpacing, alertExpiration: app.alertExpiration,
            adaptive: app.adaptive)
    }
}
