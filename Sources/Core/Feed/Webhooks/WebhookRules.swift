import Model
import Wire

// What an app's backend does with its webhooks.
extension Work {
    func carryOut(webhooks request: WebhookRequest) throws(RuleFailure) -> StoreAnswer {
        switch request {
        case .create(let new): return .webhook(try create(new))
        case .change(let key, let change): return .webhook(try self.change(key, change))
        case .remove(let key):
            _ = try known(key)
            try delete(WebhookRecord.self, key.columns)
            try settleOutbox(of: key.app)
            return .done
        case .rotate(let key, let secret):
            var webhook = try known(key)
            // Given again, after an answer that was lost.
            if webhook.secret.isExactly(secret) { return .webhook(webhook) }
            try require(
                webhook.secondSecret.isEmpty, .limit,
                "two secrets are live: end the older one (secrets/second) once the receiver "
                    + "knows the newer, or take the newer back (secrets/newest)")
            webhook.secondSecret = webhook.secret
            webhook.secret = secret
            try tryAnew(&webhook)
            return .webhook(webhook)
        case .endRotation(let key):
            var webhook = try known(key)
            webhook.secondSecret = ""
            try put(webhook)
            return .webhook(webhook)
        case .undoRotation(let key):
            var webhook = try known(key)
            if !webhook.secondSecret.isEmpty {
                webhook.secret = webhook.secondSecret
                webhook.secondSecret = ""
                try put(webhook)
            }
            return .webhook(webhook)
        case .test(let key): return .webhookTested(try test(key))
        case .claim(let claim): return .deliveries(try claimDeliveries(claim))
        case .finish(let finish): return .deliveryFinished(try finishDelivery(finish))
        }
    }

    /// An app's outbox protects its webhooks: what happens in the app wakes them.
    private func known(_ key: WebhookKey) throws(RuleFailure) -> WebhookRecord {
        _ = try record(OutboxRecord.self, [.app(key.app)], lock: .wait)
        guard let webhook = try record(WebhookRecord.self, key.columns) else {
            throw .refused(.notFound, "no such webhook")
        }
        return webhook
    }

    private func create(_ new: NewWebhook) throws(RuleFailure) -> WebhookRecord {
        try require(record(AppRecord.self, [.app(new.key.app)]) != nil, .notFound, "no such app")
        let known = try record(OutboxRecord.self, [.app(new.key.app)], lock: .wait)
        try require(
            record(WebhookRecord.self, new.key.columns) == nil, .idInUse, "the webhook exists")
        guard try webhooks(of: new.key.app).count < limits.webhooks else {
            throw .refused(.limit, "an app has at most \(limits.webhooks) webhooks")
        }
        var outbox =
            known
            ?? OutboxRecord(app: new.key.app, series: new.series & UInt64(Int64.max))
        var webhook = WebhookRecord(
            app: new.key.app, webhook: new.key.webhook, url: new.url, kinds: new.kinds,
            secret: new.secret, stateSince: now, createdAt: now, next: outbox.last + 1)
        // One of this id may have been removed while a batch was under way: its claims were lower,
        // for no batch takes a microsecond, and its answer counts for nothing here.
        webhook.claim = now.milliseconds << 10
        try put(webhook)
        try refresh(&outbox)
        try put(outbox)
        return webhook
    }

    private func change(
        _ key: WebhookKey, _ change: WebhookChange
    ) throws(RuleFailure) -> WebhookRecord {
        var webhook = try known(key)
        let newest = try record(OutboxRecord.self, [.app(key.app)])?.last ?? 0
        var isMended = change.isActive == true
        if let url = change.url, !url.isExactly(webhook.url) {
            webhook.url = url
            isMended = true
        }
        if let kinds = change.kinds, kinds != webhook.kinds {
            // The webhook has every event that it asked for. Events of the added kinds that are
            // kept for other webhooks happened before it asked for them.
            if webhook.state == .active, webhook.due == nil { webhook.passed(newest) }
            webhook.kinds = kinds
            // The batch at hand holds other events from now on: it is another one.
            webhook.delivery = nil
        }
        switch (change.isActive, webhook.state) {
        case (true?, .off):
            // Nothing was kept meanwhile.
            webhook.passed(newest)
            webhook.dropped = 0
            webhook.activate(now)
        case (true?, .failed), (true?, .gone): webhook.activate(now)
        case (false?, .active), (false?, .failed), (false?, .gone):
            webhook.state = .off
            webhook.reason = ""
            webhook.stateSince = now
        case (true?, .active), (false?, .off), (nil, _): break
        }
        if isMended { webhook.forgive() }
        if webhook.leasedUntil == nil, webhook.attempts == 0 || webhook.state != .active {
            webhook.wake(newest: newest, now: now)
        }
        try put(webhook)
        try settleOutbox(of: key.app)
        effects.hasDeliveries = webhook.due != nil
        return webhook
    }

    /// It goes the way of every event. Asked again while it waits, it is that one, at once.
    private func test(_ key: WebhookKey) throws(RuleFailure) -> WebhookEventID {
        var webhook = try known(key)
        guard var outbox = try record(OutboxRecord.self, [.app(key.app)], lock: .wait) else {
            throw .store(.corrupt("webhook: no outbox"))
        }
        try require(
            webhook.state == .active, .conflict,
            "the webhook is \(webhook.state.name), and nothing is sent to it: make it active first")
        var number = webhook.test ?? 0
        let waits =
            number >= webhook.next
            ? try record(WebhookEventRecord.self, [.app(key.app), .unsigned(number)]) : nil
        if waits == nil {
            number = try writeTest(into: &outbox)
            // What was dropped to make room may have been this webhook's.
            webhook = try known(key)
            webhook.test = number
        }
        // Not while an attempt is under way: its answer says when the next one is.
        if webhook.leasedUntil == nil { webhook.wake(newest: outbox.last, now: now) }
        try put(webhook)
        try refresh(&outbox)
        try put(outbox)
        effects.hasDeliveries = webhook.due != nil
        return WebhookEventID(high: outbox.series, low: number)
    }

    /// Writes a webhook whose receiver may take now what it refused: what waits is due.
    private func tryAnew(_ webhook: inout WebhookRecord) throws(RuleFailure) {
        let newest = try record(OutboxRecord.self, [.app(webhook.app)])?.last ?? 0
        webhook.forgive()
        if webhook.leasedUntil == nil { webhook.wake(newest: newest, now: now) }
        try put(webhook)
        try settleOutbox(of: webhook.app)
        effects.hasDeliveries = webhook.due != nil
    }
}

extension WebhookRecord {
    fileprivate mutating func activate(_ now: Timestamp) {
        state = .active
        reason = ""
        stateSince = now
    }

    /// Its app has mended something: the pauses begin anew, also after an attempt that is under
    /// way, and what was before does not count against it any more.
    fileprivate mutating func forgive() {
        guard state == .active else { return }
        attempts = 0
        failingSince = nil
    }
}

// What the sender does.
extension Work {
    /// Batches released in one turn; further ones wait for the end of their leases.
    private static let releasedAtOnce = 64

    private func claimDeliveries(
        _ claim: ClaimDeliveries
    ) throws(RuleFailure) -> ClaimedDeliveries {
        // Apps that have enough under way are passed over; they have no more rows than this.
        let full = claim.underWay.values.reduce(0) { $0 + ($1 >= claim.perApp ? 1 : 0) }
        let limit = claim.ids.count + (full + claim.ids.count) * limits.webhooks
        let due = try rows(
            WebhookRecord.table,
            Scan(
                index: "webhook_by_due", through: [.timestamp(now)], limit: limit))
        var ids = claim.ids
        var underWay = claim.underWay
        var claimed = ClaimedDeliveries(jobs: [], more: false, nextDue: nil)
        for found in due {
            // Batches of many events are many rows: those left are due as before.
            guard let id = ids.last, claimed.jobs.isEmpty || !isSpent else {
                claimed.more = true
                break
            }
            let name = AppID(found[0].words)
            let hasRoom = underWay[name, default: 0] < claim.perApp
            switch try claimPassingOver(found, id, claim, hasRoom: hasRoom) {
            case .nothing(let isMore): claimed.more = claimed.more || isMore
            case .job(let job):
                ids.removeLast()
                underWay[name, default: 0] += 1
                claimed.jobs.append(job)
            }
        }
        let next = try rows(
            WebhookRecord.table,
            Scan(index: "webhook_by_due", after: [.timestamp(now)], limit: 1)
        ).first
        claimed.nextDue = next.map {
            (try? WebhookRecord(row: $0))?.due ?? now + Self.unreadablePause
        }
        return claimed
    }

    private enum Claim {
        case job(DeliveryJob)
        /// Whether there may be something at once.
        case nothing(isMore: Bool)
    }

    /// One webhook, of which something may be unreadable: it is due later then.
    private func claimPassingOver(
        _ found: [ColumnValue], _ id: DeliveryID, _ claim: ClaimDeliveries, hasRoom: Bool
    ) throws(RuleFailure) -> Claim {
        do throws(RuleFailure) {
            return try savepoint { () throws(RuleFailure) in
                try self.claimed(
                    try self.stored(try WebhookRecord(row: found)), id, claim, hasRoom: hasRoom)
            }
        } catch {
            guard case .store(.corrupt(let detail)) = error else { throw error }
            notePassedOver(AppID(found[0].words), "webhook: \(detail)")
            let outbox = try stored(
                try transaction.row(OutboxRecord.table, key: [found[0]], lock: .none))
            let held = try stored(
                try transaction.row(OutboxRecord.table, key: [found[0]], lock: .skip))
            guard outbox == nil || held != nil else { return .nothing(isMore: true) }
            let key = Array(found.prefix(WebhookRecord.table.keyCount))
            let known = try stored(
                try transaction.row(WebhookRecord.table, key: key, lock: .none))
            if var row = known {
                try put(
                    .timestamp(now + Self.unreadablePause), as: "due", of: &row,
                    in: WebhookRecord.table)
            }
            return .nothing(isMore: false)
        }
    }

    private func claimed(
        _ found: WebhookRecord, _ id: DeliveryID, _ claim: ClaimDeliveries, hasRoom: Bool
    ) throws(RuleFailure) -> Claim {
        guard let outbox = try freeOutbox(of: found.app) else { return .nothing(isMore: true) }
        guard var webhook = try record(WebhookRecord.self, found.rowKey),
            let due = webhook.due, due <= now
        else { return .nothing(isMore: false) }
        guard webhook.state == .active else {
            // Switched off while a batch was under way that was never answered.
            webhook.due = nil
            try put(webhook)
            return .nothing(isMore: false)
        }
        guard hasRoom else { return .nothing(isMore: false) }
        guard let app = try record(AppRecord.self, [.app(webhook.app)]), !app.isSuspended
        else {
            webhook.postpone(to: now + Self.suspendedWebhooksDelay)
            try put(webhook)
            return .nothing(isMore: false)
        }
        guard let job = try job(&webhook, outbox, id, claim) else {
            return .nothing(isMore: webhook.due != nil)
        }
        return .job(job)
    }

    /// The outbox, locked; `nil`: another transaction is writing events of the app just now, and
    /// its webhooks stay due.
    private func freeOutbox(of app: AppID) throws(RuleFailure) -> OutboxRecord? {
        guard try record(OutboxRecord.self, [.app(app)]) != nil else {
            throw .store(.corrupt("webhook: no outbox"))
        }
        return try record(OutboxRecord.self, [.app(app)], lock: .skip)
    }

    /// `nil`: nothing up to where was looked is asked for.
    private func job(
        _ webhook: inout WebhookRecord, _ outbox: OutboxRecord, _ id: DeliveryID,
        _ claim: ClaimDeliveries
    ) throws(RuleFailure) -> DeliveryJob? {
        var outbox = outbox
        let (events, last) = try batch(webhook, outbox)
        guard !events.isEmpty || webhook.dropped > 0 else {
            webhook.passed(last)
            webhook.wake(newest: outbox.last, now: now)
            try put(webhook)
            try refresh(&outbox)
            try put(outbox)
            return nil
        }
        // The same events are the same batch.
        let known = webhook.through == last ? webhook.delivery : nil
        webhook.claimed(
            known ?? id, through: last, by: claim.boot, policy: claim.policy, now: now)
        try put(webhook)
        let secrets = [webhook.secret, webhook.secondSecret].filter { !$0.isEmpty }
        return DeliveryJob(
            key: webhook.key, claim: webhook.claim, delivery: known ?? id,
            attempt: webhook.attempts + 1, url: webhook.url, secrets: secrets,
            dropped: webhook.dropped, events: events)
    }

    /// The next events, bounded in number and content, and the number of the last one looked at.
    private func batch(
        _ webhook: WebhookRecord, _ outbox: OutboxRecord
    ) throws(RuleFailure) -> (events: [WebhookEventView], last: UInt64) {
        let end = webhook.delivery == nil ? outbox.last : min(webhook.through, outbox.last)
        let rows = try self.rows(
            WebhookEventRecord.table,
            Scan(
                prefix: [.app(webhook.app)],
                after: webhook.next > 0 ? [.unsigned(webhook.next - 1)] : nil,
                through: [.unsigned(end)], limit: limits.webhookScan))
        var events: [WebhookEventView] = []
        var last = end
        if rows.count >= limits.webhookScan, case .integer(let number)? = rows.last?[1] {
            last = UInt64(max(0, number))
        }
        var bytes = 0
        for stored in rows {
            guard let row = readable(stored), webhook.hears(row) else { continue }
            let view = try readableView(of: row, outbox.series)
            bytes += view.bytes
            let isFull = events.count >= limits.webhookBatch || bytes > limits.webhookBatchBytes
            if isFull, !events.isEmpty {
                last = row.number - 1
                break
            }
            events.append(view)
        }
        return (events, last)
    }

    /// An event that cannot be read is left out.
    private func readable(_ row: [ColumnValue]) -> WebhookEventRecord? {
        do throws(StoreError) {
            return try WebhookEventRecord(row: row)
        } catch {
            notePassedOver(AppID(row[0].words), "webhook_event: \(error)")
            return nil
        }
    }

    /// Without what it tells of, where that cannot be read: as if it were gone by now.
    private func readableView(
        of event: WebhookEventRecord, _ series: UInt64
    ) throws(RuleFailure) -> WebhookEventView {
        do throws(RuleFailure) {
            return try view(of: event, series)
        } catch {
            guard case .store(.corrupt(let detail)) = error else { throw error }
            notePassedOver(event.app, "webhook_event \(event.number): \(detail)")
            return WebhookEventView(
                id: WebhookEventID(high: series, low: event.number), event: event)
        }
    }

    private func view(
        of event: WebhookEventRecord, _ series: UInt64
    ) throws(RuleFailure) -> WebhookEventView {
        var view = WebhookEventView(
            id: WebhookEventID(high: series, low: event.number), event: event)
        if event.feedback > 0, try !isBeingDeleted(UserID(event.user), event.app) {
            view.dropped = try record(
                TokenFeedbackRecord.self, [.app(event.app), .unsigned(event.feedback)])
        }
        guard let id = event.conversation else { return view }
        let key: [ColumnValue] = [.app(event.app), .identifier(id)]
        guard let conversation = try record(ConversationRecord.self, key),
            conversation.deletedAt == nil
        else { return view }
        switch event.kind {
        case .messageCreated, .messageEdited:
            guard let id = event.message,
                let message = try record(
                    MessageRecord.self, [.app(event.app), .identifier(id)]),
                message.deletedAt == nil
            else { break }
            view.message = message
        case .metadataChanged: view.metadata = try record(MetadataRecord.self, key)
        case .conversationCreated: view.conversation = conversation
        case .messageDeleted, .messageDelivered, .messageRead, .participantsChanged,
            .conversationDeleted, .tokenDropped, .userDeleted, .webhookTest:
            break
        }
        return view
    }

    /// A user's rows go in steps.
    private func isBeingDeleted(_ user: UserID, _ app: AppID) throws(RuleFailure) -> Bool {
        try record(UserDeletionRecord.self, [.app(app), .user(user)]) != nil
    }

    /// The process is gone, or has ended, with batches under way: others send them again.
    func releaseDeliveries(of owner: BootID) throws(RuleFailure) {
        try releaseDeliveries(
            try records(
                WebhookRecord.self,
                Scan(
                    index: "webhook_by_owner", prefix: [.identifier(owner)],
                    limit: Self.releasedAtOnce)))
    }

    /// A process starts: those that held these are gone, unless their node is there.
    func releaseDeliveries(besides nodes: [BootID]) throws(RuleFailure) {
        let held = try records(
            WebhookRecord.self, Scan(index: "webhook_by_owner", limit: Self.releasedAtOnce))
        try releaseDeliveries(
            held.filter { held in nodes.allSatisfy { $0 != held.owner } })
    }

    private func releaseDeliveries(_ held: [WebhookRecord]) throws(RuleFailure) {
        for found in held.sorted(by: { SortKey($0.rowKey) < SortKey($1.rowKey) }) {
            _ = try record(OutboxRecord.self, [.app(found.app)], lock: .wait)
            guard var webhook = try record(WebhookRecord.self, found.rowKey),
                webhook.owner == found.owner
            else { continue }
            webhook.holderGone(now: now)
            try put(webhook)
            effects.hasDeliveries = true
        }
    }

    private func finishDelivery(
        _ finish: FinishDelivery
    ) throws(RuleFailure) -> DeliveryEffect? {
        let outbox = try record(OutboxRecord.self, [.app(finish.key.app)], lock: .wait)
        guard var webhook = try record(WebhookRecord.self, finish.key.columns),
            webhook.claim == finish.claim, webhook.leasedUntil != nil
        else { return nil }
        let newest = outbox?.last ?? 0
        let effect = webhook.answered(
            finish.answer, newest: newest, policy: finish.policy, chance: finish.chance,
            now: now)
        try put(webhook)
        try settleOutbox(of: finish.key.app)
        return effect
    }
}

extension WebhookEventView {
    /// About what it takes in a body: base64 makes content a third more.
    fileprivate var bytes: Int {
        let names = (event.joined + event.left).reduce(0) { $0 + $1.utf8.count + 3 }
        let message = message.map { $0.parts.count * 4 / 3 + $0.pushTitle.utf8.count } ?? 0
        return 512 + names + message + (metadata?.state.count ?? 0) * 2
    }
}

extension PageReader {
    func webhookBacklog(_ limits: RuleLimits) throws(StoreError) -> WebhookBacklog {
        var backlog = WebhookBacklog(events: 0, oldest: nil, deactivated: 0)
        var last: OutboxRecord?
        while true {
            let outboxes = try snapshot.records(
                OutboxRecord.self,
                Scan(after: last.map { [.app($0.app)] }, limit: limits.listRows))
            for outbox in outboxes {
                backlog.events += outbox.kept
                let webhooks = try snapshot.records(
                    WebhookRecord.self,
                    Scan(prefix: [.app(outbox.app)], limit: limits.webhooks))
                backlog.deactivated += webhooks.count { $0.state == .failed || $0.state == .gone }
                guard try isOpen(outbox.app) else { continue }
                for webhook in webhooks {
                    guard let oldest = try oldestUntaken(webhook) else { continue }
                    backlog.oldest = min(backlog.oldest ?? oldest, oldest)
                }
            }
            guard outboxes.count == limits.listRows else { break }
            last = outboxes.last
        }
        return backlog
    }

    /// Nothing is sent for an app that is suspended, nor for one that cannot be read.
    private func isOpen(_ app: AppID) throws(StoreError) -> Bool {
        do throws(StoreError) {
            return try snapshot.record(AppRecord.self, [.app(app)])?.isSuspended == false
        } catch {
            guard case .corrupt = error else { throw error }
            return false
        }
    }

    /// Events looked at for one that the webhook hears; those before it are passed over with its
    /// next delivery.
    private static let oldestLook = 64

    /// When the oldest event happened that the webhook is to get. One that is deactivated gets none
    /// until somebody activates it: how long its events lie there tells nothing of those that are
    /// delivered; and one with nothing to deliver is behind events of other webhooks alone.
    private func oldestUntaken(_ webhook: WebhookRecord) throws(StoreError) -> Timestamp? {
        guard webhook.state == .active, webhook.due != nil else { return nil }
        let next = webhook.next.subtractingReportingOverflow(1).partialValue
        let rows = try snapshot.rows(
            WebhookEventRecord.table,
            Scan(
                prefix: [.app(webhook.app)], after: [.unsigned(next)], limit: Self.oldestLook))
        // What cannot be read is told where it is to be delivered.
        return rows.lazy.compactMap { try? WebhookEventRecord(row: $0) }
            .first { webhook.hears($0) }?.at
    }
}
