import Model
import Wake

// The store's clock was set back, by however much: what waits for a time of the other clock is
// looked at again, a bounded number of rows a step. Found are those whose next push, or deadline,
// is of the other clock; all else is mended when its device is next looked at (`WakeStep`).

extension WakeRules {
    /// Rows of one kind in one step. Where there may be more, the whole step's number is taken for
    /// used, and the next step goes on.
    static let mendedAtOnce = 32
    /// Of what is published later so many are looked at, and so many at a time.
    private static let scheduledLook = 1_024
    private static let scheduledAtOnce = 256

    /// The number of rows in which one of the other clock is looked for, beginning with the row
    /// that is due last.
    private static let wakesLook = 256

    /// - Returns: whether the rest of it waits for what other transactions hold.
    func mendSetBack() throws(StoreError) -> Bool {
        guard let moment = try moment(Self.setBackName) else { return false }
        return try mend(since: moment)
    }

    /// - Parameter moment: when the clock was set, by the clock as it is now.
    private func mend(since moment: Timestamp) throws(StoreError) -> Bool {
        let soon = now + Reachability.setBackWait
        var mended = Mended()
        // A push in flight has its lease; all else is decided again at once.
        try mendWakes("wake_by_deadline", past: now + WakePolicy.lease, since: moment, &mended)
        for prefix in try PushQueues.prefixes(in: transaction) where mended.left > 0 {
            try mendWakes("wake_by_lane", prefix, past: soon, since: moment, &mended)
        }
        // One look at each campaign: it decides anew when it is due.
        try mend("campaign_by_due", past: now + Self.gapTolerance, &mended) {
            (found: CampaignProgressRecord) throws(StoreError) in
            let known = try transaction.record(
                CampaignProgressRecord.self, found.rowKey, lock: .wait)
            guard var campaign = known, let due = campaign.due, due > now else { return }
            campaign.due = now
            try transaction.put(campaign)
        }
        // Sessions that ended: their devices are expected for as long as ever from now.
        let until = now + WakePolicy.connectedDelay
        try mend("session_by_expected", past: until, &mended) {
            (found: SessionRecord) throws(StoreError) in
            try transaction.lockUser(found.app, found.user)
            guard var session = try transaction.again(found),
                let expected = session.expectedUntil, expected > until
            else { return }
            session.expectedUntil = until
            try transaction.put(session)
        }
        try mend("webhook_by_due", past: soon, &mended) {
            (found: WebhookRecord) throws(StoreError) in try mendWebhook(found.rowKey)
        }
        if mended.left > 0, mended.held == 0 { try mendScheduled(&mended) }
        if mended.left > 0, mended.held == 0 {
            try finish(Self.setBackName, moment.milliseconds)
        }
        return mended.held > 0 && mended.done == 0
    }

    /// Rows of one step that were mended, those of which other transactions hold something, and how
    /// many more the step may look at.
    private struct Mended {
        var done = 0
        var held = 0
        var left = WakeRules.gapStep
    }

    /// Decides anew the rows that the other clock wrote. The row that is due last comes first: most
    /// likely a clock that was ahead wrote it. A row that was written since, or is mended, is of
    /// this clock and stays as it is, so that mending comes to its end also where APNs, or a
    /// suspended app, keeps many rows waiting.
    private func mendWakes(
        _ index: String, _ prefix: [ColumnValue] = [], past bound: Timestamp,
        since moment: Timestamp, _ mended: inout Mended
    ) throws(StoreError) {
        let few = min(mended.left, Self.mendedAtOnce)
        var wrong: [WakeRecord] = []
        for limit in [few, Self.wakesLook] where wrong.isEmpty {
            let rows = try transaction.rows(
                WakeRecord.table,
                Scan(
                    index: index, prefix: prefix, after: [.timestamp(bound)], descending: true,
                    limit: limit))
            // Whoever needs a row that cannot be read tells of it.
            wrong = rows.compactMap { try? WakeRecord(row: $0) }
                .filter { $0.writtenAt < moment || $0.writtenAt > now }
            guard rows.count == limit else { break }
        }
        wrong = Array(wrong.prefix(few))
        for (count, row) in wrong.sorted(by: { $0.precedes($1) }).enumerated() {
            // The next step mends the rows that this turn has no time for.
            if count > 0, transaction.isSpent {
                mended.left = 0
                return
            }
            var isUnreadable = false
            let isDone = try transaction.passingOver { () throws(StoreError) in
                _ = try onDevice(of: row) { step throws(StoreError) in
                    step.machine.clockSetBack(to: now)
                }
            } unreadable: { _ in
                isUnreadable = true
            }
            if isDone || isUnreadable { mended.done += 1 } else { mended.held += 1 }
        }
        mended.left = wrong.count < few ? mended.left - wrong.count : 0
    }

    /// Rows that are due too late by the clock as it is now.
    private func mend<R: Record>(
        _ index: String, past bound: Timestamp, _ mended: inout Mended,
        _ body: (R) throws(StoreError) -> Void
    ) throws(StoreError) {
        let few = min(mended.left, Self.mendedAtOnce)
        let rows = try transaction.records(
            R.self, Scan(index: index, after: [.timestamp(bound)], limit: few))
        for row in rows.sorted(by: { SortKey($0.rowKey) < SortKey($1.rowKey) }) {
            // Whoever needs a row that cannot be read tells of it, and nobody waits for it here.
            var isUnreadable = false
            let isDone = try transaction.passingOver { () throws(StoreError) in
                try body(row)
            } unreadable: { _ in
                isUnreadable = true
            }
            if isDone || isUnreadable { mended.done += 1 } else { mended.held += 1 }
        }
        mended.left = rows.count < few ? mended.left - rows.count : 0
    }

    /// What is published later, and was put off by a clock that was ahead. Beside thousands of
    /// others whose time is to come it may be missed, and is late then; what was mended is not
    /// found again.
    private func mendScheduled(_ mended: inout Mended) throws(StoreError) {
        let soon = now + Reachability.setBackWait
        // A message that a restore has put off stays put off: no clock that was ahead did that.
        let until = try moment(MetaRecord.schedulesHeldName) ?? now
        let held = min(until, now + ScheduledRecord.restoreHold)
        let apps = try transaction.records(ScheduleRecord.self, Scan(limit: Self.scheduledLook))
            .filter { $0.pending > 0 }
        for schedule in apps {
            // Each app has an equal share: one with many messages hides none of another's.
            var left = max(1, Self.scheduledLook / apps.count)
            var after: [ColumnValue] = [.timestamp(soon)]
            while left > 0 {
                let few = min(left, Self.scheduledAtOnce)
                let rows = try transaction.records(
                    ScheduledRecord.self,
                    Scan(
                        index: "scheduled_by_due", prefix: [.app(schedule.app)], after: after,
                        limit: few))
                for row in rows where row.due.map({ $0 > max(row.sendAt, held) }) ?? false {
                    var isUnreadable = false
                    let isDone = try transaction.passingOver { () throws(StoreError) in
                        try mend(row, past: soon, held: held)
                    } unreadable: { _ in
                        isUnreadable = true
                    }
                    if isDone || isUnreadable { mended.done += 1 } else { mended.held += 1 }
                    mended.left -= 1
                    // What was mended is not found again: the next step goes on.
                    if mended.left <= 0 || transaction.isSpent {
                        mended.left = 0
                        return
                    }
                }
                left -= rows.count
                guard rows.count == few, let last = rows.last, let due = last.due else { break }
                after = [.timestamp(due), .identifier(last.message)]
            }
        }
    }

    private func mend(
        _ found: ScheduledRecord, past soon: Timestamp, held: Timestamp
    ) throws(StoreError) {
        let known = try transaction.record(ScheduledRecord.self, found.rowKey, lock: .wait)
        guard var row = known, let due = row.due, due > max(soon, row.sendAt, held) else { return }
        row.due = max(row.sendAt, now, held)
        try transaction.put(row)
    }

    /// A batch under way is fenced by its claim; a repeat has the same delivery id.
    private func mendWebhook(_ key: [ColumnValue]) throws(StoreError) {
        let soon = now + Reachability.setBackWait
        _ = try transaction.record(OutboxRecord.self, Array(key.prefix(1)), lock: .wait)
        guard var webhook = try transaction.record(WebhookRecord.self, key),
            let due = webhook.due, due > soon
        else { return }
        webhook.due = soon
        webhook.leasedUntil = webhook.leasedUntil.map { min($0, soon) }
        webhook.failingSince = webhook.failingSince.map { min($0, now) }
        try transaction.put(webhook)
    }
}

// A server that has nothing to do writes nothing, not even `alive_at`: it rests. What looks like an
// outage to that row afterwards was none.

extension WakeRules {
    /// The process was there for so long since `alive_at` was written, by a clock that nobody sets.
    /// If the store's clock has gone on as far, the row does, too; if not, that one was set or the
    /// machine was asleep, which the next turn notices by the row.
    func rested(_ elapsed: Milliseconds) throws(StoreError) {
        try transaction.savepoint { () throws(StoreError) in
            let key: [ColumnValue] = [.text(Self.aliveName)]
            guard let alive = try transaction.record(MetaRecord.self, key, lock: .wait) else {
                return
            }
            let (expected, isOver) = alive.number.addingReportingOverflow(elapsed)
            guard !isOver, now.milliseconds <= expected + Self.gapTolerance,
                expected <= now.milliseconds + Self.gapTolerance
            else { return }
            try transaction.put(MetaRecord(name: Self.aliveName, number: now.milliseconds))
        }
    }

    /// Whether an outage, or a clock that was set back, is being worked off.
    static func isMending(in snapshot: any StoreSnapshot) throws(StoreError) -> Bool {
        for name in [Self.gapName, Self.setBackName]
        where try snapshot.record(MetaRecord.self, [.text(name)]) != nil {
            return true
        }
        return false
    }
}
