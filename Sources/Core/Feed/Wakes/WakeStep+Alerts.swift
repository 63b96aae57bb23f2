import Model
import Wake

// Which alert leaves next, and what is told with it.

/// What an alert shows, in all languages.
struct AlertContent {
    let title: String
    let body: String
    let options: PushOptions

    init(_ title: String, _ body: String, _ encoded: [UInt8]) throws(StoreError) {
        guard let options = PushOptions(encoded: encoded) else {
            throw .corrupt("push options: cut off")
        }
        self.title = title
        self.body = body
        self.options = options
    }
}

/// The alert of a claim.
enum NextAlert {
    case none
    /// Some wait, and none may leave before.
    case later(Timestamp)
    case take(AlertRecord, AlertContent, waitsSince: Timestamp)
}

extension WakeStep {
    /// Rows of the queue looked at for one claim.
    private static let queueMax = 64
    /// Rows looked at from the newest on.
    private static let newestMax = 64

    func newestAlerts() throws(StoreError) -> [AlertRecord] {
        try transaction.records(
            AlertRecord.self,
            Scan(
                index: "alert_by_seq", prefix: device.wakeKey, descending: true,
                limit: Self.newestMax))
    }

    private func queue(
        _ phase: AlertPhase = .queued, newestFirst: Bool = false, limit: Int
    ) throws(StoreError) -> [AlertRecord] {
        try transaction.records(
            AlertRecord.self,
            Scan(
                index: "alert_queued", prefix: device.wakeKey + [.unsigned(phase.rawValue)],
                descending: newestFirst, limit: limit))
    }

    /// The queued alert to send; those that are not worth it any more are cancelled on the way.
    /// Urgent ones first; then, while the burst lasts, the oldest; then the newest of the
    /// conversation that waits longest, for all of it.
    mutating func nextAlert() throws(StoreError) -> NextAlert {
        while true {
            let rows = try queue(limit: Self.queueMax)
            guard let oldest = rows.first else { return .none }
            let chosen: AlertRecord
            switch try choose(among: rows, oldest: oldest) {
            case .failure(let later): return .later(later.time)
            case .success(let alert): chosen = alert
            }
            // Its deletion may still be on its way into this feed.
            if let content = try content(of: chosen), chosen.seq > device.applied,
                !(try transaction.isRead(chosen))
            {
                return .take(chosen, content, waitsSince: oldest.queuedAt)
            }
            try cancel(chosen)
        }
    }

    private struct Later: Error { let time: Timestamp }

    private func choose(
        among rows: [AlertRecord], oldest: AlertRecord
    ) throws(StoreError) -> Result<AlertRecord, Later> {
        if let urgent = rows.first(where: \.isUrgent) { return .success(urgent) }
        if machine.isSessionCounted {
            return .failure(Later(time: now + WakePolicy.connectedDelay))
        }
        if machine.isGone(now: now) {
            let due = machine.goneAlertDue(now: now)
            guard due <= now else { return .failure(Later(time: due)) }
            var newest = try queue(newestFirst: true, limit: 1).first ?? oldest
            newest.summary = .device
            return .success(newest)
        }
        if machine.alertPace(oldest: oldest.queuedAt) == .single { return .success(oldest) }
        let known = try newestAlerts()
        var next: Timestamp?
        var seen: Set<ConversationID> = []
        for row in rows where seen.insert(row.conversation).inserted {
            let last = known.filter { $0.conversation == row.conversation }
                .compactMap(\.sentAt).max()
            let due = last.map { $0 + WakePolicy.summaryDelay } ?? now
            if due <= now {
                let newest = try queue(newestFirst: true, limit: Self.pendingMax).first {
                    $0.conversation == row.conversation
                }
                var summary = newest ?? row
                if summary.summary == .none { summary.summary = .conversation }
                return .success(summary)
            }
            next = min(next ?? due, due)
        }
        return .failure(Later(time: max(next ?? now, now + 1)))
    }

    /// A queued alert is told no more. What it would have told of falls to the next newest.
    private mutating func cancel(_ alert: AlertRecord) throws(StoreError) {
        var alert = alert
        close(alert)
        let stoodForAll = alert.summary == .everything || alert.summary == .device
        alert.phase = .cancelled
        alert.openPosition = nil
        alert.summary = .none
        try transaction.put(alert)
        guard stoodForAll,
            var heir = try queue(.counted, newestFirst: true, limit: 1).first
        else { return }
        heir.phase = .queued
        heir.summary = .everything
        try transaction.put(heir)
        machine.alertsChanged(queued: 1, open: 0)
    }

    /// How many older messages an alert names: the newest speaks for all that are not seen.
    func others(than alert: AlertRecord, isNewest: Bool) throws(StoreError) -> UInt64 {
        if isNewest { return row.alertsOpen - min(1, row.alertsOpen) }
        switch alert.summary {
        case .none: return 0
        case .everything, .device:
            let newer = try newestAlerts().filter { $0.seq > alert.seq && $0.phase.isOpen }
            return row.alertsOpen - min(row.alertsOpen, UInt64(newer.count) + 1)
        case .conversation:
            let older = try transaction.records(
                AlertRecord.self,
                Scan(
                    index: "alert_open",
                    prefix: device.wakeKey + [.identifier(alert.conversation)],
                    through: [.unsigned(alert.position)], limit: Self.pendingMax))
            return UInt64(older.filter { $0.seq < alert.seq }.count)
        }
    }

    /// APNs has taken a summary: what it stands for is told.
    mutating func settleOlder(than alert: AlertRecord) throws(StoreError) {
        switch alert.summary {
        case .none: return
        case .conversation: try settleOlder(than: alert, in: .queued)
        case .everything: try settleOlder(than: alert, in: .counted)
        case .device:
            try settleOlder(than: alert, in: .queued)
            try settleOlder(than: alert, in: .counted)
        }
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
                    after: after, through: [.unsigned(alert.seq)], limit: Self.chunk))
            for var older in rows {
                after = [.unsigned(older.seq)]
                if alert.summary == .conversation, older.conversation != alert.conversation {
                    continue
                }
                close(older)
                machine.alertsChanged(queued: 0, open: 1)
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
