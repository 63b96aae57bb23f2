import Model
import Wire

// The outbox: what happened, numbered, in the transaction in which it happens.
extension Work {
    /// The event is written down at the end of the step.
    func note(_ event: WebhookEventRecord) { events.append(event) }

    /// Writes the step's events down. An app's outbox is one row for all that happens in it: it is
    /// locked last, and after every row that the step looks at.
    func writeEvents() throws(RuleFailure) {
        let noted = events
        events = []
        for event in noted { try write(event) }
    }

    /// If a webhook of the app asks for it.
    private func write(_ noted: WebhookEventRecord) throws(RuleFailure) {
        var event = noted
        let app = event.app
        let known = try record(OutboxRecord.self, [.app(app)])
        guard known?.kinds.contains(event.kind) == true,
            var outbox = try record(OutboxRecord.self, [.app(app)], lock: .wait)
        else { return }
        try write(&event, into: &outbox)
        if outbox.idleKinds.contains(event.kind) {
            for var webhook in try webhooks(of: app)
            where webhook.due == nil && webhook.kinds.contains(event.kind) {
                webhook.wake(newest: outbox.last, now: now)
                if webhook.due != nil { try put(webhook) }
            }
            try refresh(&outbox)
            effects.hasDeliveries = true
        }
        try dropSurplus(of: &outbox)
        try put(outbox)
    }

    /// Under the next number.
    private func write(
        _ event: inout WebhookEventRecord, into outbox: inout OutboxRecord
    ) throws(RuleFailure) {
        outbox.last += 1
        outbox.kept += 1
        event.number = outbox.last
        event.at = now
        event.expiresAt = now + limits.webhookEventLifetime
        try insert(event)
    }

    /// One webhook is told of this, whatever it asks for.
    ///
    /// - Returns: the event's number.
    func writeTest(into outbox: inout OutboxRecord) throws(RuleFailure) -> UInt64 {
        var event = WebhookEventRecord(app: outbox.app, kind: .webhookTest)
        try write(&event, into: &outbox)
        try dropSurplus(of: &outbox)
        return event.number
    }

    private func dropSurplus(of outbox: inout OutboxRecord) throws(RuleFailure) {
        guard outbox.kept > limits.webhookEvents else { return }
        let surplus = outbox.kept - limits.webhookEvents + limits.webhookEvents / 64
        let oldest = try rows(
            WebhookEventRecord.table,
            Scan(prefix: [.app(outbox.app)], limit: Int(clamping: min(surplus, 1024))))
        try drop(try readable(oldest, of: &outbox), of: &outbox)
    }

    /// The events that can be read. Nobody can be told of the others: they are deleted, so that
    /// they hold up neither changes of their app nor the events behind them.
    private func readable(
        _ rows: [[ColumnValue]], of outbox: inout OutboxRecord
    ) throws(RuleFailure) -> [WebhookEventRecord] {
        var events: [WebhookEventRecord] = []
        for row in rows {
            do throws(StoreError) {
                events.append(try WebhookEventRecord(row: row))
            } catch {
                notePassedOver(outbox.app, "webhook_event: \(error)")
                try delete(WebhookEventRecord.self, Array(row.prefix(2)))
                outbox.kept -= min(outbox.kept, 1)
            }
        }
        return events
    }

    /// How long a suspended app's webhooks are put off.
    static let suspendedWebhooksDelay: Milliseconds = 60_000

    /// The app is suspended no more: what was put off is due, but for a receiver that has asked for
    /// time.
    func resumeWebhooks(of app: AppID) throws(RuleFailure) {
        guard try record(OutboxRecord.self, [.app(app)], lock: .wait) != nil else { return }
        for var webhook in try webhooks(of: app) where webhook.state == .active {
            let hasAsked = webhook.attempts > 0 && [429, 503].contains(webhook.lastStatus)
            guard let due = webhook.due, due > now, webhook.leasedUntil == nil, !hasAsked,
                due <= now + Self.suspendedWebhooksDelay
            else { continue }
            webhook.due = now
            try put(webhook)
            effects.hasDeliveries = true
        }
    }

    func webhooks(of app: AppID) throws(RuleFailure) -> [WebhookRecord] {
        try records(WebhookRecord.self, Scan(prefix: [.app(app)], limit: limits.webhooks))
    }

    /// Who asks for what, after a webhook changed.
    func refresh(_ outbox: inout OutboxRecord) throws(RuleFailure) {
        outbox.kinds = []
        outbox.idleKinds = []
        for webhook in try webhooks(of: outbox.app) where webhook.state.collects {
            outbox.kinds.formUnion(webhook.kinds)
            if webhook.state == .active, webhook.due == nil {
                outbox.idleKinds.formUnion(webhook.kinds)
            }
        }
    }

    /// Retention takes events, delivered or not. Every webhook that still waited for one is told
    /// how many they were. What is just being sent stays.
    private func drop(
        _ events: [WebhookEventRecord], of outbox: inout OutboxRecord
    ) throws(RuleFailure) {
        var webhooks = try webhooks(of: outbox.app)
        let before = webhooks
        for event in events {
            let isUnderWay = webhooks.contains { webhook in
                webhook.leasedUntil.map { now < $0 } == true
                    && (webhook.next...max(webhook.next, webhook.through)).contains(event.number)
            }
            if isUnderWay { continue }
            for index in webhooks.indices
            where webhooks[index].state.collects && webhooks[index].next <= event.number
                && webhooks[index].hears(event)
            {
                webhooks[index].dropped += 1
            }
            try delete(event)
            outbox.kept -= min(outbox.kept, 1)
        }
        for (webhook, known) in zip(webhooks, before) where webhook != known { try put(webhook) }
    }

    private func delete(_ event: WebhookEventRecord) throws(RuleFailure) {
        try delete(WebhookEventRecord.self, [.app(event.app), .unsigned(event.number)])
    }

    /// Events that are too old, or that no webhook asks for any more, of one app in one step.
    ///
    /// - Returns: how many were looked at, and whether there may be more at once.
    func dropEvents(_ limit: Int) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        let passed = try records(
            OutboxRecord.self,
            Scan(index: "webhook_outbox_by_trim", through: [.timestamp(now)], limit: 1))
        if let found = passed.first,
            var outbox = try record(OutboxRecord.self, [.app(found.app)], lock: .wait)
        {
            let deleted = try trim(&outbox)
            try put(outbox)
            return (max(1, deleted), true)
        }
        let table = WebhookEventRecord.table
        let old = try rows(
            table,
            Scan(
                index: "webhook_event_by_expiry", through: [.timestamp(now)], limit: limit))
        guard let app = old.first?[0] else { return (0, false) }
        let own = old.filter { $0[0] == app }.map { Array($0.prefix(table.keyCount)) }
        guard var outbox = try record(OutboxRecord.self, [app], lock: .wait) else {
            for key in own { try delete(WebhookEventRecord.self, key) }
            return (own.count, old.count > own.count)
        }
        let before = outbox.kept
        var present: [[ColumnValue]] = []
        for key in own {
            let found = try stored(try transaction.row(table, key: key, lock: .none))
            if let found { present.append(found) }
        }
        try drop(try readable(present, of: &outbox), of: &outbox)
        try put(outbox)
        let deleted = Int(clamping: before - outbox.kept)
        return (deleted, deleted > 0 && (old.count == limit || own.count < old.count))
    }

    /// Deletes events that every webhook has behind it.
    ///
    /// - Returns: how many; what is left has its turn with `dropEvents`.
    @discardableResult
    private func trim(_ outbox: inout OutboxRecord) throws(RuleFailure) -> Int {
        var floor = outbox.last + 1
        for webhook in try webhooks(of: outbox.app) where webhook.state.collects {
            floor = min(floor, webhook.next)
        }
        outbox.trimDue = nil
        guard floor > 0 else { return 0 }
        let passed = try deleteRows(
            of: WebhookEventRecord.table,
            Scan(
                prefix: [.app(outbox.app)], through: [.unsigned(floor - 1)],
                limit: limits.webhookScan))
        outbox.kept -= min(outbox.kept, UInt64(passed))
        outbox.trimDue = passed < limits.webhookScan ? nil : now
        return passed
    }

    /// After a webhook of the app changed: who asks for what, and what nobody needs any more.
    func settleOutbox(of app: AppID) throws(RuleFailure) {
        guard var outbox = try record(OutboxRecord.self, [.app(app)], lock: .wait) else { return }
        try refresh(&outbox)
        try trim(&outbox)
        try put(outbox)
    }
}

extension WebhookEventRecord {
    init(_ kind: WebhookEventKind, _ message: MessageRecord, by user: String) {
        self.init(
            app: message.app, kind: kind, conversation: message.conversation,
            message: message.message, position: message.position, version: message.version,
            user: user)
    }
}

extension WebhookRecord {
    /// A test is for one webhook, and the newest alone: there is none before it that waits.
    func hears(_ event: WebhookEventRecord) -> Bool {
        event.kind == .webhookTest ? event.number == test : kinds.contains(event.kind)
    }

    /// Due now if there is something to deliver, else never.
    mutating func wake(newest: UInt64, now: Timestamp) {
        due = state == .active && (next <= newest || dropped > 0) ? now : nil
    }
}
