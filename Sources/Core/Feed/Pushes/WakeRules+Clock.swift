import Model
import Wake

// The store's clock was set back, by however much: what waits for a time of the other clock is
// looked at again, a bounded number of rows a step. Found are those whose next push, or deadline,
// is of the other clock; all else is mended when its device is next looked at (`WakeStep`).

extension WakeRules {
    /// Rows of one kind in one step. Where there may be more, the whole step's number is taken for
    /// used, and the next step goes on.
    static let mendedAtOnce = 32

    /// - Returns: whether the rest of it waits for what other transactions hold.
    static func mendSetBack(in transaction: any StoreTransaction) throws(StoreError) -> Bool {
        guard let record = try transaction.record(MetaRecord.self, [.text(setBackName)])
        else { return false }
        var mended = Mended()
        let moment = Timestamp(milliseconds: record.number)
        var left = gapStep
        // A push in flight has its lease; all else is decided again at once.
        left -= try mendWakes(
            index: "wake_by_deadline", [], past: moment + WakePolicy.lease, moment,
            limit: left, in: transaction, &mended)
        for prefix in try PushQueues.prefixes(in: transaction) where left > 0 {
            left -= try mendWakes(
                index: "wake_by_lane", prefix, past: moment + Reachability.setBackWait, moment,
                limit: left, in: transaction, &mended)
        }
        left -= try mendCampaigns(moment, limit: left, in: transaction, &mended)
        left -= try mendSessions(moment, limit: left, in: transaction, &mended)
        left -= try mendWebhooks(moment, limit: left, in: transaction, &mended)
        if left > 0, mended.held == 0 {
            try finish(setBackName, record.number, in: transaction)
        }
        return mended.held > 0 && mended.done == 0
    }

    /// Rows of one step that were mended, and those of which other transactions hold something.
    private struct Mended {
        var done = 0
        var held = 0

        mutating func note(_ isDone: Bool) {
            if isDone { done += 1 } else { held += 1 }
        }
    }

    private static func mendWakes(
        index: String, _ prefix: [ColumnValue], past bound: Timestamp, _ moment: Timestamp,
        limit: Int, in transaction: any StoreTransaction, _ mended: inout Mended
    ) throws(StoreError) -> Int {
        let few = min(limit, mendedAtOnce)
        let (turn, _) = try onDevices(atMost: few, in: transaction, now: moment) {
            limit throws(StoreError) in
            try transaction.records(
                WakeRecord.self,
                Scan(index: index, prefix: prefix, after: [.timestamp(bound)], limit: limit))
        } _: { (step: inout WakeStep) throws(StoreError) in
            step.machine.clockSetBack(to: moment)
        }
        mended.done += turn.looked - turn.held
        mended.held += turn.held
        // Those that the turn left are the next step's.
        return turn.isAtEnd ? turn.looked : limit
    }

    /// One look at each: it decides anew when it is due.
    private static func mendCampaigns(
        _ moment: Timestamp, limit: Int, in transaction: any StoreTransaction,
        _ mended: inout Mended
    ) throws(StoreError) -> Int {
        let few = max(0, min(limit, mendedAtOnce))
        let campaigns = try transaction.records(
            CampaignProgressRecord.self,
            Scan(
                index: "campaign_by_due", after: [.timestamp(moment + gapTolerance)],
                limit: few))
        for key in campaigns.map(\.rowKey).sorted(by: { SortKey($0) < SortKey($1) }) {
            let isDone = try transaction.passingOver { () throws(StoreError) in
                let known = try transaction.record(
                    CampaignProgressRecord.self, key, lock: .wait)
                guard var campaign = known, let due = campaign.due, due > moment else { return }
                campaign.due = moment
                try transaction.put(campaign)
            }
            mended.note(isDone)
        }
        return campaigns.count < few ? campaigns.count : limit
    }

    /// Sessions that ended: their devices are expected for as long as ever from now.
    private static func mendSessions(
        _ moment: Timestamp, limit: Int, in transaction: any StoreTransaction,
        _ mended: inout Mended
    ) throws(StoreError) -> Int {
        let until = moment + WakePolicy.connectedDelay
        let few = max(0, min(limit, mendedAtOnce))
        let sessions = try transaction.records(
            SessionRecord.self,
            Scan(
                index: "session_by_expected", after: [.timestamp(until)], limit: few))
        for found in sessions.sorted(by: { $0.precedes($1) }) {
            let isDone = try transaction.passingOver { () throws(StoreError) in
                try transaction.lockUser(found.app, found.user)
                guard var session = try transaction.again(found),
                    let expected = session.expectedUntil, expected > until
                else { return }
                session.expectedUntil = until
                try transaction.put(session)
            }
            mended.note(isDone)
        }
        return sessions.count < few ? sessions.count : limit
    }

    /// A batch under way is fenced by its claim; a repeat has the same delivery id.
    private static func mendWebhooks(
        _ moment: Timestamp, limit: Int, in transaction: any StoreTransaction,
        _ mended: inout Mended
    ) throws(StoreError) -> Int {
        let soon = moment + Reachability.setBackWait
        let few = max(0, min(limit, mendedAtOnce))
        let webhooks = try transaction.records(
            WebhookRecord.self,
            Scan(index: "webhook_by_due", after: [.timestamp(soon)], limit: few))
        for key in webhooks.map(\.rowKey).sorted(by: { SortKey($0) < SortKey($1) }) {
            let isDone = try transaction.passingOver { () throws(StoreError) in
                try mendWebhook(key, moment, in: transaction)
            }
            mended.note(isDone)
        }
        return webhooks.count < few ? webhooks.count : limit
    }

    private static func mendWebhook(
        _ key: [ColumnValue], _ moment: Timestamp, in transaction: any StoreTransaction
    ) throws(StoreError) {
        let soon = moment + Reachability.setBackWait
        _ = try transaction.record(OutboxRecord.self, Array(key.prefix(1)), lock: .wait)
        guard var webhook = try transaction.record(WebhookRecord.self, key),
            let due = webhook.due, due > soon
        else { return }
        webhook.due = soon
        webhook.leasedUntil = webhook.leasedUntil.map { min($0, soon) }
        webhook.failingSince = webhook.failingSince.map { min($0, moment) }
        try transaction.put(webhook)
    }
}

// A server that has nothing to do writes nothing, not even `alive_at`: it rests. What looks like an
// outage to that row afterwards was none.

extension WakeRules {
    /// The process was there for so long since `alive_at` was written, by a clock that nobody sets.
    /// If the store's clock has gone on as far, the row does, too; if not, that one was set or the
    /// machine was asleep, which the next turn notices by the row.
    static func rested(
        _ elapsed: Milliseconds, in transaction: any StoreTransaction, now: Timestamp
    ) throws(StoreError) {
        try transaction.savepoint { () throws(StoreError) in
            let key: [ColumnValue] = [.text(aliveName)]
            guard let alive = try transaction.record(MetaRecord.self, key, lock: .wait) else {
                return
            }
            let (expected, isOver) = alive.number.addingReportingOverflow(elapsed)
            guard !isOver, now.milliseconds <= expected + gapTolerance,
                expected <= now.milliseconds + gapTolerance
            else { return }
            try transaction.put(MetaRecord(name: aliveName, number: now.milliseconds))
        }
    }

    /// Whether an outage, or a clock that was set back, is being worked off.
    static func isMending(in snapshot: any StoreSnapshot) throws(StoreError) -> Bool {
        for name in [gapName, setBackName]
        where try snapshot.record(MetaRecord.self, [.text(name)]) != nil {
            return true
        }
        return false
    }
}
