import Model
import Wake

/// How many alert rows one device has, and how many one request touches.
enum AlertRoom {
    /// The newest so many are kept: a device that nobody reaches for weeks costs no more.
    static let rows = 256
    /// Rows that one ACK, reading or registration closes; more is there only of a time before
    /// the bound, and of alerts that wait for a time of their own.
    static let closedMax = 512
    /// Rows dropped with a device's token; the rest is nobody's, and goes when a token comes or
    /// with its retention.
    static let droppedMax = 32
    /// Rows folded when one is added, of each phase.
    fileprivate static let foldedMax = 4
    /// The oldest urgent ones that wait are not folded.
    fileprivate static let urgentMax = 2
}

extension WakeStep {
    /// Makes room for one more alert row and gives the place it has in their order. What is too
    /// old goes into the count of what the newest one tells of; alerts that wait for a time of
    /// their own, and one in flight, stay.
    mutating func makeRoom() throws(StoreError) -> UInt64 {
        let number = try newestNumber() + 1
        let rows = UInt64(AlertRoom.rows)
        // Those that were edited share the place of another: there may be more rows than places.
        let isCrowded = row.alertsOpen >= row.alertsFolded + rows
        guard number > rows || isCrowded else { return number }
        let oldest = try transaction.records(
            AlertRecord.self, Scan(index: "alert_by_seq", prefix: device.wakeKey, limit: 1))
        guard let first = oldest.first else { return number }
        var last = number - min(number, rows)
        if isCrowded { last = max(last, first.number) }
        guard first.number <= last else { return number }
        for phase in AlertPhase.allCases where phase != .delayed && phase != .sending {
            try fold(phase, through: last)
        }
        return number
    }

    /// The place of the newest in the feed, which is the highest; 0: there is none.
    func newestNumber() throws(StoreError) -> UInt64 {
        try transaction.records(
            AlertRecord.self,
            Scan(index: "alert_by_seq", prefix: device.wakeKey, descending: true, limit: 1)
        ).first?.number ?? 0
    }

    private mutating func fold(
        _ phase: AlertPhase, through last: UInt64
    ) throws(StoreError) {
        let rows = try transaction.records(
            AlertRecord.self,
            Scan(
                index: "alert_queued", prefix: device.wakeKey + [.unsigned(phase.rawValue)],
                limit: AlertRoom.foldedMax))
        var urgent = 0
        for alert in rows where alert.number <= last && !paces(alert) {
            if phase == .queued, alert.isUrgent || alert.isTimed {
                urgent += 1
                if urgent <= AlertRoom.urgentMax { continue }
            }
            if phase.isOpen {
                machine.alertsChanged(queued: phase == .queued ? -1 : 0, open: 0, now: now)
                machine.folded(upTo: alert.seq)
            }
            try transaction.delete(AlertRecord.self, alertKey(alert.message))
        }
    }

    /// Its conversation's next summary counts from it: without its row that would leave at once.
    private func paces(_ alert: AlertRecord) -> Bool {
        guard let sentAt = alert.sentAt, sentAt <= now else { return false }
        return now.since(sentAt) < WakePolicy.summaryDelay
    }

    /// What an earlier token's device was told of, or still owed, when that token went.
    mutating func dropAlerts(atMost most: Int) throws(StoreError) {
        var room = most
        for phase in AlertPhase.allCases where room > 0 {
            let rows = try transaction.records(
                AlertRecord.self,
                Scan(
                    index: "alert_queued", prefix: device.wakeKey + [.unsigned(phase.rawValue)],
                    limit: room))
            room -= rows.count
            for alert in rows {
                try transaction.delete(AlertRecord.self, alertKey(alert.message))
            }
        }
    }
}
