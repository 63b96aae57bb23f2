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
        let policy = app.map { WakePolicy($0) } ?? WakePolicy()
        let habit = WakeHabit(encoded: device.wakeHabit)
        // A grace begins, or runs, only then.
        let needsGrace = row.phase == .sending || row.phase == .waiting
        let appGrace =
            needsGrace ? try transaction.appGrace(device.app, policy, for: habit) : nil
        machine = Reachability(
            policy: policy, tokenGeneration: device.pushToken == nil ? nil : device.tokenGeneration,
            tokenConfirmedAt: device.tokenConfirmedAt,
            isTokenProven: device.tokenProvenAt != nil, isUnreachable: device.isUnreachable,
            wasAlerted: device.wasAlerted,
            isRefreshOff: device.backgroundRefresh == .off,
            isSessionCounted: try transaction.isSessionCounted(of: device, now: now),
            applied: device.applied, budget: SilentBudget(encoded: device.lastSilentAt),
            habit: habit, appGrace: appGrace, heardAt: device.lastSeenAt, row: row)
        // What a row says that nobody has looked at since is of the other clock, all of it.
        if row.writtenAt > now + WakeRules.gapTolerance {
            machine.clockSetBack(to: now)
            try mendAlerts()
        } else {
            machine.mendClock(now: now)
        }
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
            var row = machine.row
            row.writtenAt = now
            try transaction.put(row)
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
            case .settleAlert(let message, let settlement):
                try settle(message, settlement)
                if settlement != .sent { try decideUrgentWait() }
            case .settleCampaign(let campaign, let settlement):
                try settle(campaign, settlement)
            case .dropAlerts: try dropAlerts(atMost: AlertRoom.droppedMax)
            case .detachToken:
                device.pushToken = nil
                device.tokenConfirmedAt = nil
                device.tokenGeneration += 1
            case .demoted: effects.demotions += 1
            case .recovered: effects.recoveries += 1
            case .note(let wake, let note): try record(wake, note)
            case .came(let wake, let latency):
                try transaction.keepLatency(latency, of: wake, device.app, now: now)
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
            expiresAt: now + Self.alertLifetime)
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
        alert.number = try makeRoom()
        alert.isUrgent = isUrgent
        alert.cause = cause
        try transaction.put(alert)
        alertCame(isUrgent: isUrgent, due: due)
    }

    /// One more alert waits in the queue.
    mutating func alertCame(isUrgent: Bool, due: Timestamp) {
        if row.alertsQueued == 0 || !isUrgent {
            let due = row.alertsQueued == 0 ? due : min(row.alertDue, due)
            machine.alertsChanged(queued: 1, open: 1, due: due, now: now)
        } else {
            machine.alertsChanged(queued: 1, open: 1, now: now)
        }
        if isUrgent { machine.urgentCame(due: due, now: now) }
    }

    /// Those that are sent leave oldest first, so that the newest holds APNs' one slot.
    private mutating func alertPending(_ cause: AlertCause) throws(StoreError) {
        let pending = try transaction.pending(
            device, atMost: WakePolicy.pendingAlertsMax, now: now)
        var fresh: [(entry: EntryRecord, message: MessageID)] = []
        for entry in pending.entries {
            guard let message = MessageID(entry.object),
                try transaction.record(AlertRecord.self, alertKey(message)) == nil
            else { continue }
            fresh.append((entry, message))
        }
        var queued = 0
        let number = fresh.isEmpty ? 0 : try makeRoom() + UInt64(fresh.count) - 1
        // The order of their places is that of the feed, newest first. Told they are in the order
        // in which they came, which an edit does not change.
        let came = fresh.enumerated()
            .sorted { $0.element.entry.firstSeq > $1.element.entry.firstSeq }
        for (age, (place, (entry, message))) in came.enumerated() {
            let (phase, summary) = AlertSummary.pending(place: queued)
            if phase == .queued { queued += 1 }
            var alert = makeAlert(entry, message, phase)
            alert.queuedAt = now - min(UInt64(age), now.milliseconds)
            alert.number = number - UInt64(place)
            alert.summary = summary
            alert.cause = cause
            try transaction.put(alert)
        }
        machine.alertsChanged(queued: queued, open: fresh.count, due: now, now: now)
    }

    private mutating func settle(
        _ message: MessageID, _ settlement: AlertSettlement
    ) throws(StoreError) {
        var alert = try transaction.record(AlertRecord.self, alertKey(message))
        switch settlement {
        case .unanswered: alert?.tries += 1
        // It is no try of the push: it only may be on the screen.
        case .lost: if alert?.tries == 0 { alert?.tries = 1 }
        case .sent, .queuedAgain, .refused: break
        }
        guard var alert, alert.phase == .sending else {
            // It left before it was read, muted or covered: it is on the screen, or will be.
            if settlement == .sent { alert?.sentAt = now }
            let isUnanswered = settlement == .unanswered || settlement == .lost
            if let alert, settlement == .sent || isUnanswered { try transaction.put(alert) }
            if isUnanswered { machine.unansweredAlertWent(now: now) }
            return
        }
        switch settlement {
        case .sent: return try settleSent(&alert)
        case .unanswered where alert.tries >= WakePolicy.unansweredMax:
            machine.alertLeft(now: now)
            return try settleSent(&alert)
        case .unanswered, .lost, .queuedAgain: try queueAgain(&alert)
        case .refused:
            // Those that it would have told of are told by another.
            machine.alertsChanged(queued: 1, open: 0, now: now)
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
        machine.alertsChanged(queued: 1, open: 0, now: now)
        try transaction.put(alert)
    }

    /// Rows at or below `applied` go: the device has what they tell of.
    ///
    /// What the server alone tells of stays until it is told. A device that was owed more than
    /// one turn closes is left with rows below `applied`: these are not sent, and go later.
    mutating func coverAlerts(through applied: UInt64) throws(StoreError) {
        machine.folded(coveredThrough: applied)
        var room = AlertRoom.closedMax
        // One push may have told of many.
        var pushes: Set<WakeID> = []
        for phase in AlertPhase.allCases where phase != .delayed && room > 0 {
            let rows = try transaction.records(
                AlertRecord.self,
                Scan(
                    index: "alert_queued", prefix: device.wakeKey + [.unsigned(phase.rawValue)],
                    through: [.unsigned(applied)], limit: room))
            room -= rows.count
            for alert in rows where !alert.isTimed || alert.phase == .sent {
                closeAlert(alert)
                try transaction.delete(AlertRecord.self, alertKey(alert.message))
                if let push = alert.push, pushes.insert(push).inserted {
                    try record(push, .synced)
                }
            }
        }
    }

    /// What the app acknowledged above `applied` needs no alert. The rows stay, for they say
    /// what was shown; that the device has the entries stands in its own row.
    mutating func coverAlerts(in ranges: [InclusiveRange]) throws(StoreError) {
        guard let first = ranges.first, let last = ranges.last, device.pushToken != nil else {
            return
        }
        let stored = try device.stored()
        let rows = try transaction.records(
            AlertRecord.self,
            Scan(
                index: "alert_by_seq", prefix: device.wakeKey,
                after: [.unsigned(max(first.first, 1) - 1)], through: [.unsigned(last.last)],
                limit: AlertRoom.closedMax))
        for var alert in rows
        where alert.phase != .covered && stored.contains(alert.seq)
            && (!alert.isTimed || alert.phase == .sent)
        {
            closeAlert(alert)
            alert.phase = .covered
            alert.openPosition = nil
            try transaction.put(alert)
        }
    }

    /// Messages of a conversation read on another device are alerted no more. What one turn
    /// leaves is looked at again before it is sent.
    mutating func cancelAlerts(
        of conversation: ConversationID, read: PositionSet
    ) throws(StoreError) {
        let highest = read.ranges.last?.last ?? read.through
        for alert in try openAlerts(of: conversation, through: highest)
        where read.contains(alert.position) {
            try cancel(alert)
        }
    }

    /// A conversation is muted or left. An alert that waits for a time of its own is looked at
    /// then: the mute may have ended.
    mutating func cancelAlerts(of conversation: ConversationID) throws(StoreError) {
        for alert in try openAlerts(of: conversation, through: .halfMask)
        where alert.phase.isOpen {
            try cancel(alert)
        }
    }

    /// Alerts of the conversation's messages that were cancelled before they left wait again. What
    /// a push under way tells of is told with it, and rings once.
    mutating func queueCancelled(of conversation: ConversationID) throws(StoreError) {
        let cancelled = try transaction.records(
            AlertRecord.self,
            Scan(
                index: "alert_queued",
                prefix: device.wakeKey + [.unsigned(AlertPhase.cancelled.rawValue)],
                limit: AlertRoom.closedMax)
        ).filter { $0.conversation == conversation && $0.sentAt == nil }
        // Mostly there are none, and what the device lacks need not be looked for.
        guard !cancelled.isEmpty else { return }
        let pending = try transaction.pending(
            device, atMost: WakePolicy.pendingAlertsMax, now: now)
        let lacking = Set(pending.entries.map(\.object))
        let leaving = try leaving()
        for var alert in cancelled where lacking.contains(alert.message.bytes) {
            // One that was cancelled before the summary was made is counted nowhere in it.
            let isTold = alert.push == row.flightWake && leaving?.tells(of: alert) ?? false
            alert.openPosition = alert.position
            if alert.message == leaving?.message {
                alert.phase = .sending
            } else if isTold, leaving?.summary == .everything {
                alert.phase = .counted
            } else {
                alert.phase = .queued
                alert.summary = .none
                if !isTold { alert.queuedAt = now }
            }
            try transaction.put(alert)
            if alert.phase == .queued {
                alertCame(isUrgent: alert.isUrgent, due: now)
            } else {
                machine.alertsChanged(queued: 0, open: 1, now: now)
            }
        }
    }

    private func openAlerts(
        of conversation: ConversationID, through highest: UInt64
    ) throws(StoreError) -> [AlertRecord] {
        try transaction.records(
            AlertRecord.self,
            Scan(
                index: "alert_open", prefix: device.wakeKey + [.identifier(conversation)],
                through: [.unsigned(highest)], limit: AlertRoom.closedMax))
    }

    private mutating func cancel(_ alert: AlertRecord) throws(StoreError) {
        var alert = alert
        closeAlert(alert)
        alert.phase = .cancelled
        alert.openPosition = nil
        // Should it be wanted again before APNs has answered, it is told already.
        if try leaving()?.tells(of: alert) ?? false { alert.push = row.flightWake }
        try transaction.put(alert)
    }

    /// The alert whose push is under way, or what stands for others in it.
    private func leaving() throws(StoreError) -> AlertRecord? {
        guard row.flight == .alert else { return nil }
        return try transaction.record(AlertRecord.self, alertKey(row.flightMessage))
    }

    /// A message or announcement is nothing to alert of any more.
    mutating func cancelAlert(of message: MessageID) throws(StoreError) {
        guard let alert = try transaction.record(AlertRecord.self, alertKey(message)),
            alert.phase.isOpen || alert.phase == .delayed
        else { return }
        try cancel(alert)
    }

    /// A visible entry moved up the feed. What remembers that the device has it, or is owed it,
    /// moves along.
    mutating func moveAlert(
        from older: EntryRecord, to entry: EntryRecord, of message: MessageID
    ) throws(StoreError) {
        let isStored = try device.stored().contains(older.seq)
        let known = try transaction.record(AlertRecord.self, alertKey(message))
        guard isStored || known != nil else { return moved(to: entry, of: message) }
        // An edit is no further alert, and takes no other's place: however often a message is
        // edited, its row is one, beside the newest.
        let number = known == nil ? try makeRoom() : try newestNumber()
        if isStored {
            // It stands above `applied` now, and yet the device has the message.
            if let known { closeAlert(known) }
            var covered = makeAlert(entry, message, .covered)
            covered.number = number
            covered.sentAt = known?.sentAt
            covered.push = known?.push
            return try transaction.put(covered)
        }
        if var known {
            known.seq = entry.seq
            known.number = number
            try transaction.put(known)
            if known.phase == .covered { return }
        }
        moved(to: entry, of: message)
    }

    private mutating func moved(to entry: EntryRecord, of message: MessageID) {
        machine.moved(
            VisibleChange(seq: entry.seq, conversation: entry.conversation, message: message))
    }

    /// What an alert shows; `nil`: what it tells of is gone, or alerts no more.
    func content(of alert: AlertRecord) throws(StoreError) -> AlertContent? {
        let key: [ColumnValue] = [.app(alert.app), .identifier(alert.message)]
        if alert.conversation == .none {
            guard let made = try transaction.record(AnnouncementRecord.self, key),
                made.deletedAt == nil
            else { return nil }
            return try AlertContent(
                made.pushTitle, made.pushBody, made.pushOptions, publishedAt: made.sentAt)
        }
        guard let message = try transaction.record(MessageRecord.self, key),
            message.alerts(device.user)
        else { return nil }
        return try AlertContent(
            message.pushTitle, message.pushBody, message.pushOptions,
            publishedAt: message.sentAt)
    }

    /// Takes an alert out of the device's counts, as it leaves its phase.
    mutating func closeAlert(_ alert: AlertRecord) {
        machine.alertsChanged(
            queued: alert.phase == .queued ? -1 : 0, open: alert.phase.isOpen ? -1 : 0, now: now)
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
            if let accepted = record.acceptedAt {
                try perform(machine.cameLate(wake, after: now.since(accepted)))
            }
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
