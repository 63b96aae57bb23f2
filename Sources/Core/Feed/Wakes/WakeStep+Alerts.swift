import Model
import Wake

// Which alert leaves next, and what is told with it.

/// What an alert shows, in all languages.
struct AlertContent {
    let title: String
    let body: String
    let options: PushOptions
    let publishedAt: Timestamp

    init(
        _ title: String, _ body: String, _ encoded: [UInt8], publishedAt: Timestamp
    ) throws(StoreError) {
        guard let options = PushOptions(encoded: encoded) else {
            throw .corrupt("push options: cut off")
        }
        self.title = title
        self.body = body
        self.options = options
        self.publishedAt = publishedAt
    }

    /// After it the alert is not shown any more.
    func expiry(of alert: AlertRecord) -> Timestamp? {
        options.timing.expiry(from: max(publishedAt, alert.moment ?? publishedAt))
    }

    func isPast(_ alert: AlertRecord, now: Timestamp) -> Bool {
        expiry(of: alert).map { $0 <= now } ?? false
    }
}

/// Alerts past their end by a clock that may be ahead: they are not shown, and not given up yet.
private struct PastAlerts {
    /// Until when they are not given up; `nil`: there are none.
    private(set) var until: Timestamp?
    private(set) var hasUrgent = false
    private var messages: Set<MessageID> = []

    var count: Int { messages.count }

    func contains(_ alert: AlertRecord) -> Bool { messages.contains(alert.message) }

    mutating func add(_ alert: AlertRecord, until: Timestamp) {
        self.until = until
        messages.insert(alert.message)
        hasUrgent = hasUrgent || alert.isUrgent
    }
}

/// The alert of a claim.
enum NextAlert {
    case none
    /// What was urgent is not there any more: the device's need may be another.
    case another
    /// Some wait, and none may leave before.
    case later(Timestamp)
    case take(AlertRecord, AlertContent, waitsSince: Timestamp)
}

extension WakeStep {
    /// Rows of the queue looked at for one claim.
    private static let queueMax = 64
    /// Rows looked at from the newest on.
    private static let newestMax = 64

    func newestAlerts(atMost most: Int = newestMax) throws(StoreError) -> [AlertRecord] {
        try transaction.records(
            AlertRecord.self,
            Scan(
                index: "alert_by_seq", prefix: device.wakeKey, descending: true, limit: most))
    }

    /// What a clock that was ahead has queued is taken as of now: it would be newer than all that
    /// comes until that time has passed.
    func mendAlerts() throws(StoreError) {
        for var alert in try newestAlerts(atMost: AlertRoom.rows) where alert.queuedAt > now {
            if !alert.isTimed { alert.expiresAt = alert.expiresAt - alert.queuedAt.since(now) }
            alert.queuedAt = now
            try transaction.put(alert)
        }
    }

    private func queue(
        _ phase: AlertPhase = .queued, newestFirst: Bool = false, limit: Int,
        besides past: PastAlerts = PastAlerts()
    ) throws(StoreError) -> [AlertRecord] {
        try alerts(
            "alert_queued", .unsigned(phase.rawValue), newestFirst: newestFirst, limit: limit,
            besides: past)
    }

    /// Alerts that wait and pass the others, oldest first.
    private func express(
        _ way: AlertExpress, limit: Int, besides past: PastAlerts
    ) throws(StoreError) -> [AlertRecord] {
        try alerts("alert_express", .unsigned(way.rawValue), limit: limit, besides: past)
    }

    private func alerts(
        _ index: String, _ kind: ColumnValue, newestFirst: Bool = false, limit: Int,
        besides past: PastAlerts
    ) throws(StoreError) -> [AlertRecord] {
        let found = try transaction.records(
            AlertRecord.self,
            Scan(
                index: index, prefix: device.wakeKey + [kind], descending: newestFirst,
                limit: limit + past.count))
        return past.count == 0 ? found : Array(found.filter { !past.contains($0) }.prefix(limit))
    }

    /// The queued alert to send; those that are not worth it any more are cancelled on the way.
    mutating func nextAlert() throws(StoreError) -> NextAlert {
        var past = PastAlerts()
        var blocked = 0
        while true {
            let urgent = try urgentAlerts(besides: past)
            if urgent.isEmpty, machine.need(now: now) != .alert { return .another }
            guard let oldest = try queue(limit: 1, besides: past).first else {
                return past.until.map { .later($0) } ?? .none
            }
            let chosen: AlertRecord
            // Beside a session only what has a time of its own leaves, wherever it stands.
            let rows =
                if !urgent.isEmpty { urgent } else if machine.isSessionCounted {
                    try express(.timed, limit: Self.queueMax, besides: past)
                } else {
                    // An edit moves an alert up in the feed, and not in the order of leaving.
                    try queue(limit: Self.queueMax, besides: past)
                        .sorted { $1.isNewer(than: $0) }
                }
            guard !rows.isEmpty else { return .later(now + WakePolicy.connectedDelay) }
            switch try choose(among: rows, besides: past) {
            case .failure(let later): return .later(later.time)
            case .success(let alert): chosen = alert
            }
            // Its deletion may still be on its way into this feed.
            let content = try content(of: chosen)
            if try isOfBlocked(chosen) {
                blocked += try dropBlocked(chosen, among: rows)
                // The next claim goes on.
                if blocked >= Self.queueMax { return .later(now + 1) }
                continue
            }
            guard let content, chosen.seq > device.applied || chosen.isTimed,
                !(try transaction.isSettled(chosen, now: now))
            else {
                try drop(chosen, .cancelled)
                continue
            }
            if try isDelayedAgain(chosen) { continue }
            if !content.isPast(chosen, now: now) {
                let since = machine.isSessionCounted ? chosen.queuedAt : oldest.queuedAt
                return .take(chosen, content, waitsSince: since)
            }
            if let until = try WakeRules.endsWait(in: transaction, now: now) {
                past.add(chosen, until: until)
                try addPast(among: rows, to: &past, until: until)
            } else {
                try drop(chosen, .expired)
            }
        }
    }

    /// The urgent alerts that may leave now. Beside a session each is left the time in which an ACK
    /// may cover it.
    private mutating func urgentAlerts(
        besides past: PastAlerts
    ) throws(StoreError) -> [AlertRecord] {
        let isConnected = machine.isSessionCounted
        if isConnected, let due = row.urgentDue, now < due { return [] }
        var waiting = try express(.urgent, limit: 1, besides: past)
        // Behind one that is over, or that waits, there may be more: they are looked at together.
        if past.count > 0 || isConnected || waiting.contains(where: { $0.push != nil }) {
            waiting = try express(.urgent, limit: Self.queueMax, besides: past)
        }
        let ready = waiting.filter { urgentMoment(of: $0) <= now }
        // The one that APNs has just not taken is behind the others, whatever is wrong with it.
        guard ready.isEmpty else {
            return ready.filter { !isLastTried($0) } + ready.filter { isLastTried($0) }
        }
        var later = waiting.map { urgentMoment(of: $0) }
        if past.hasUrgent, let until = past.until { later.append(until) }
        if let next = later.min() {
            machine.putOffUrgent(until: next, now: now)
        } else {
            machine.noUrgentWaits(now: now)
        }
        return []
    }

    /// When an urgent alert that waits may leave: beside a session there is the time in which an
    /// ACK may cover it, and one that was tried waits for what that met.
    private func urgentMoment(of alert: AlertRecord) -> Timestamp {
        let moment = machine.isSessionCounted ? alert.ackMoment(now: now) : now
        return alert.push == nil ? moment : max(moment, row.alertNotBefore)
    }

    /// The device's last push was of this alert.
    private func isLastTried(_ alert: AlertRecord) -> Bool { alert.push == row.flightWake }

    /// Whether what this urgent alert meets is counted on from what the last push met: that one was
    /// of an urgent alert, too, which still waits.
    func goesOn(_ alert: AlertRecord) throws(StoreError) -> Bool {
        guard alert.isUrgent, alert.push != nil, !isLastTried(alert) else { return false }
        let last = try transaction.record(AlertRecord.self, alertKey(row.flightMessage))
        return last.map { $0.isUrgent && $0.phase == .queued && isLastTried($0) } ?? false
    }

    /// APNs did not take an alert: of the urgent ones each waits for what it met itself.
    mutating func decideUrgentWait() throws(StoreError) {
        guard row.alertsQueued > 0 else { return }
        let waiting = try express(.urgent, limit: Self.queueMax, besides: PastAlerts())
        // The session may end before the one that was tried has its turn: that is seen then.
        let next = waiting.map { $0.push == nil ? urgentMoment(of: $0) : row.alertNotBefore }.min()
        machine.urgentWait(until: next, now: now)
    }

    /// Cancels every alert among `rows` that is of somebody whom the user blocks: there may be
    /// hundreds, and a look for each would hold the writer up.
    ///
    /// - Returns: how many were cancelled.
    private mutating func dropBlocked(
        _ chosen: AlertRecord, among rows: [AlertRecord]
    ) throws(StoreError) -> Int {
        try drop(chosen, .cancelled)
        var count = 1
        for alert in rows where alert.message != chosen.message {
            guard try isOfBlocked(alert),
                // What was dropped may have made another one speak for the rest.
                let alert = try transaction.record(AlertRecord.self, alertKey(alert.message)),
                alert.phase == .queued
            else { continue }
            try drop(alert, .cancelled)
            count += 1
        }
        return count
    }

    /// All of one look, so that it is not looked through anew for each.
    private func addPast(
        among rows: [AlertRecord], to past: inout PastAlerts, until: Timestamp
    ) throws(StoreError) {
        for alert in rows where !past.contains(alert) {
            if try content(of: alert)?.isPast(alert, now: now) ?? false {
                past.add(alert, until: until)
            }
        }
    }

    /// The clock was ahead when its time came: it waits for that again.
    private mutating func isDelayedAgain(_ alert: AlertRecord) throws(StoreError) -> Bool {
        guard alert.isTimed, let moment = alert.moment, moment > now + WakeRules.gapTolerance else {
            return false
        }
        var alert = alert
        closeAlert(alert)
        alert.phase = .delayed
        alert.summary = .none
        try transaction.put(alert)
        return true
    }

    private func choose(
        among rows: [AlertRecord], besides past: PastAlerts
    ) throws(StoreError) -> Result<AlertRecord, Later> {
        let turn = try machine.alertTurn(among: rows, now: now) {
            conversation throws(StoreError) in try lastSent(in: conversation)
        }
        switch turn {
        case .later(let time): return .failure(Later(time: time))
        case .single(let index): return .success(rows[index])
        case .newest:
            var newest = try newestQueued(besides: past) { _ in true } ?? rows[0]
            newest.summary = .device
            return .success(newest)
        case .conversation(let index):
            let newest = try newestQueued(besides: past) {
                $0.conversation == rows[index].conversation
                    && ($0.isTimed || !machine.isSessionCounted)
            }
            var summary = newest ?? rows[index]
            if summary.summary == .none { summary.summary = .conversation }
            return .success(summary)
        }
    }

    /// An edit moves an alert up in the feed, and makes it none of the newer.
    private func newestQueued(
        besides past: PastAlerts, where isMeant: (AlertRecord) -> Bool
    ) throws(StoreError) -> AlertRecord? {
        try queue(newestFirst: true, limit: WakePolicy.pendingAlertsMax, besides: past)
            .filter(isMeant).max { $1.isNewer(than: $0) }
    }

    /// When an alert of the conversation was last sent. A time to come is of a clock that was
    /// ahead: it holds nothing up.
    private func lastSent(in conversation: ConversationID) throws(StoreError) -> Timestamp? {
        try transaction.records(
            AlertRecord.self,
            Scan(
                index: "alert_sent", prefix: device.wakeKey + [.identifier(conversation)],
                through: [.timestamp(now)], descending: true, limit: 1)
        ).first?.sentAt
    }

    private struct Later: Error { let time: Timestamp }

    /// A queued alert is told no more. What it would have told of falls to the next newest.
    ///
    /// - Parameter counted: the phase in which the device's row counts it; `nil`: its own.
    mutating func drop(
        _ alert: AlertRecord, _ phase: AlertPhase, countedAs counted: AlertPhase? = nil
    ) throws(StoreError) {
        var alert = alert
        alert.phase = counted ?? alert.phase
        closeAlert(alert)
        let needsHeir = alert.summary.needsHeir
        alert.phase = phase
        alert.openPosition = nil
        alert.summary = .none
        try transaction.put(alert)
        guard needsHeir,
            var heir = try queue(.counted, newestFirst: true, limit: 1).first
        else { return }
        heir.phase = .queued
        heir.summary = .everything
        try transaction.put(heir)
        machine.alertsChanged(queued: 1, open: 0, now: now)
    }

    /// How many older messages an alert names: the newest speaks for all that are not seen.
    func others(than alert: AlertRecord, isNewest: Bool) throws(StoreError) -> UInt64 {
        switch alert.summary.scope(isNewest: isNewest) {
        case .all: return row.alertsOpen - min(1, row.alertsOpen)
        case .own: return 0
        case .older:
            let newer = try newestAlerts().filter { $0.isNewer(than: alert) && $0.phase.isOpen }
            return row.alertsOpen - min(row.alertsOpen, UInt64(newer.count) + 1)
        case .conversation:
            let all = try transaction.records(
                AlertRecord.self,
                Scan(
                    index: "alert_open",
                    prefix: device.wakeKey + [.identifier(alert.conversation)],
                    limit: WakePolicy.pendingAlertsMax))
            return UInt64(all.filter { alert.isNewer(than: $0) && $0.phase.isOpen }.count)
        }
    }

    /// APNs has taken a summary: what it stands for is told. What was queued after its claim is
    /// newer, and has an alert of its own.
    mutating func settleOlder(than alert: AlertRecord) throws(StoreError) {
        for phase in alert.summary.settledPhases { try settleOlder(than: alert, in: phase) }
    }

    private mutating func settleOlder(
        than alert: AlertRecord, in phase: AlertPhase
    ) throws(StoreError) {
        var after: [ColumnValue]?
        while true {
            let rows = try transaction.records(
                AlertRecord.self,
                Scan(
                    index: "alert_queued", prefix: device.wakeKey + [.unsigned(phase.rawValue)],
                    after: after, limit: Self.chunk))
            for var older in rows {
                after = [.unsigned(older.seq)]
                guard alert.tells(of: older) else { continue }
                closeAlert(older)
                machine.alertsChanged(queued: 0, open: 1, now: now)
                older.phase = .sent
                older.sentAt = now
                older.push = older.push ?? alert.push
                try transaction.put(older)
            }
            if rows.count < Self.chunk { return }
        }
    }

    mutating func markSending(_ alert: AlertRecord) throws(StoreError) {
        var alert = alert
        alert.phase = .sending
        alert.push = row.flightWake
        alert.isOwnPush = true
        try transaction.put(alert)
    }
}
