import Model
import Wake
import Wire

extension WakeRules {
    /// Pushes that have waited for us, not for their moment: so many leave in a second after an
    /// outage of ours.
    static let overduePerSecond: UInt64 = 200
    /// Devices between which a claim looks whether its turn is spent.
    private static let claimedAtOnce = 8
    /// When a device whose user is suspended is looked at again. Each look writes its row, and none
    /// is needed: resuming the user ends the wait. A node of an older version that resumes it does
    /// not, so it is not longer.
    private static let suspendedDelay: Milliseconds = 15 * 60_000

    /// Takes pushes that are due. Everything is checked again: a wake, alert or badge that is
    /// not needed any more goes without being sent.
    func claim(_ request: ClaimPushes) throws(StoreError) -> (ClaimedPushes, WakeEffects) {
        var effects = try noticeGap().effects
        var claimed = ClaimedPushes(jobs: [], more: false, nextDue: nil)
        let streams = min(request.streams, request.ids.count, ClaimPushes.rowsMax)
        guard streams > 0 || request.countsQueues else { return (claimed, effects) }
        var campaigns = try CampaignClaims(request, in: transaction, now: now)
        var queues = PushQueues(request, in: transaction, now: now)
        let rows = try queues.dueRows(atMost: streams - campaigns.reserve(of: streams))
        claimed.more = queues.isMore
        claimed.blocked = queues.blocked
        claimed.nextDue = queues.nextDue
        effects += queues.effects
        let unreadable = queues.unreadable.sorted { SortKey($0) < SortKey($1) }
        for row in unreadable where try putOffUnreadable(row, &claimed) { claimed.more = true }
        if request.countsQueues {
            claimed.queues = try queues.depths() + [campaigns.depth].compactMap { $0 }
        }
        let subjects = WakeSubjects()
        var held = 0
        var rest = rows[...]
        while !rest.isEmpty {
            // The pushes left are due as before. Campaigns have their part of the turn, as they
            // have theirs of the streams.
            if rest.count < rows.count, transaction.hasSpent(campaigns.isEmpty ? 8 : 6, of: 8) {
                claimed.more = true
                break
            }
            try claim(rest.prefix(Self.claimedAtOnce), request, subjects, &claimed, &effects, &held)
            rest = rest.dropFirst(Self.claimedAtOnce)
        }
        // What others hold is no reason to come again at once.
        if held > 0, held == rows.count { claimed.more = false }
        try campaigns.claim(
            rooms: queues.rooms, ids: request.ids[claimed.jobs.count..<streams])
        claimed.take(campaigns)
        effects += campaigns.effects
        return (claimed, effects)
    }

    /// What cannot be read of a device seldom mends itself: its row is out of the way for a while,
    /// and no claim meets it until then.
    ///
    /// - Returns: `false`: another transaction holds something of it.
    private func putOffUnreadable(
        _ found: [ColumnValue], _ claimed: inout ClaimedPushes
    ) throws(StoreError) -> Bool {
        let (table, again) = (WakeRecord.table, now + ClaimedPushes.unreadablePause)
        let isDone = try transaction.passingOver { () throws(StoreError) in
            let key = Array(found.prefix(table.keyCount))
            try transaction.hold(UserRecord.table, key: Array(key.prefix(2)))
            guard let row = try transaction.row(table, key: key, lock: .none),
                table.value(of: "due", in: row) == table.value(of: "due", in: found)
            else { return }
            try transaction.put(table, table.row(row, with: .timestamp(again), as: "due"))
        } unreadable: { _ in
        }
        claimed.comeAgain(at: isDone ? again : now + ClaimedPushes.heldPause)
        return isDone
    }

    /// In the lock order. They are few, so that a claim that ends with its turn leaves those that
    /// were due last. A push of which another transaction holds something is due as before.
    private func claim(
        _ rows: ArraySlice<DueRow>, _ request: ClaimPushes, _ subjects: WakeSubjects,
        _ claimed: inout ClaimedPushes, _ effects: inout WakeEffects, _ held: inout Int
    ) throws(StoreError) {
        for row in rows.sorted(by: { $0.wake.precedes($1.wake) }) {
            let claim = Claim(owner: request.boot, id: request.ids[claimed.jobs.count])
            var job: PushJob?
            var found = WakeEffects()
            var isUnreadable = false
            let isDone = try transaction.passingOver { () throws(StoreError) in
                // The user's row first: a publish holds it while it looks at the same device.
                let user = try transaction.record(
                    UserRecord.self, [.app(row.wake.app), .user(row.wake.user)], lock: .wait)
                (job, found) = try self.claim(
                    row, claim, subjects, isSuspended: user?.isSuspended ?? false)
            } unreadable: {
                effects.passedOver(row.wake.app, row.wake.user, $0)
                isUnreadable = true
            }
            if isUnreadable, try putOffUnreadable(row.wake.row, &claimed) { continue }
            guard isDone else {
                held += 1
                claimed.comeAgain(at: now + ClaimedPushes.heldPause)
                continue
            }
            if let job { claimed.jobs.append(job) }
            effects += found
        }
    }

    private func claim(
        _ due: DueRow, _ claim: Claim, _ subjects: WakeSubjects, isSuspended: Bool
    ) throws(StoreError) -> (PushJob?, WakeEffects) {
        let row = due.wake
        guard
            let device = try transaction.record(
                DeviceRecord.self, [.app(row.app), .user(row.user), .identifier(row.device)],
                lock: .wait)
        else {
            if let row = try transaction.again(row) {
                try transaction.delete(WakeRecord.self, row.rowKey)
            }
            return (nil, WakeEffects())
        }
        var step = try WakeStep(device, in: transaction, now: now)
        guard !isSuspended else {
            step.machine.putOff(until: now + Self.suspendedDelay, now: now)
            try step.save()
            return (nil, step.effects)
        }
        let lane = step.row.lane
        // A wake may turn into alerts; each round settles one need for good.
        var request: ClaimedRequest?
        while step.sends == nil, let need = step.machine.need(now: now) {
            switch need {
            case .wake: request = try claimWake(&step, claim, subjects)
            case .alert: request = try claimAlert(&step, claim)
            case .badge: request = try claimBadge(&step, claim)
            }
        }
        try step.save()
        guard let kind = step.sends, let request, let lease = step.row.lease else {
            return (nil, step.effects)
        }
        let key = PushJobKey(
            app: device.app, user: device.user, device: device.device, owner: claim.owner,
            attempt: step.row.attempt)
        let job = PushJob(
            key: key, kind: kind, lane: lane == .probe ? .probe : PushClass(kind),
            credential: due.credential, request: request.request, lease: lease,
            publishedAt: request.publishedAt, trace: request.trace)
        return (job, step.effects)
    }

    private func claimWake(
        _ step: inout WakeStep, _ claim: Claim, _ subjects: WakeSubjects
    ) throws(StoreError) -> ClaimedRequest? {
        let pending = try step.transaction.pending(step.device, atMost: 1, now: step.now)
        try step.perform(
            step.machine.claimWake(
                isBehind: !pending.isEmpty, isSure: !pending.entries.isEmpty, claim: claim,
                now: step.now))
        guard step.sends == .silent else { return nil }
        let subject = PushPayload.Subject(
            of: step.row.message, in: step.row.conversation, wake: step.row.flightWake)
        let told = try subjects.told(by: step)
        return ClaimedRequest(
            .silent(subject, options: told.options, to: step.device.destination),
            publishedAt: told.publishedAt, trace: told.options.trace)
    }

    private func claimAlert(
        _ step: inout WakeStep, _ claim: Claim
    ) throws(StoreError) -> ClaimedRequest? {
        let unread = try step.transaction.unread(
            step.device.app, step.device.user, now: step.now)
        let (alert, shown, since): (AlertRecord, AlertContent, Timestamp)
        switch try step.nextAlert() {
        case .none:
            try step.perform(
                step.machine.claimAlert(nil, unread: unread, claim: claim, now: step.now))
            return nil
        case .another: return nil
        case .later(let time):
            step.machine.putOffAlerts(until: time, now: now)
            return nil
        case .take(let next, let content, let waitsSince):
            (alert, shown, since) = (next, content, waitsSince)
        }
        let choice = AlertChoice(
            message: alert.message, id: alert.push, isUrgent: alert.isUrgent,
            isTimed: alert.isTimed, waitsSince: since, goesOn: try step.goesOn(alert))
        try step.perform(
            step.machine.claimAlert(choice, unread: unread, claim: claim, now: step.now))
        guard step.sends == .alert else { return nil }
        try step.markSending(alert)
        let standing = try step.standing(of: alert)
        let text = step.text(
            shown, others: try step.others(than: alert, isNewest: standing.isNewest))
        let subject = PushPayload.Subject(
            of: alert.message, in: alert.conversation, wake: step.row.flightWake)
        let request = PushRequest.alert(
            text, options: shown.options, badge: unread, subject: subject,
            expires: step.limit(
                step.machine.alertExpires(isNewerSent: standing.isNewerSent, now: step.now),
                alert, shown),
            to: step.device.destination)
        return ClaimedRequest(
            request, publishedAt: alert.isTimed ? nil : shown.publishedAt,
            trace: shown.options.trace)
    }

    private func claimBadge(
        _ step: inout WakeStep, _ claim: Claim
    ) throws(StoreError) -> ClaimedRequest? {
        let unread = try step.transaction.unread(
            step.device.app, step.device.user, now: step.now)
        try step.perform(step.machine.claimBadge(unread: unread, claim: claim, now: step.now))
        guard step.sends == .badge else { return nil }
        var subject = PushPayload.Subject(event: "badge", wake: step.row.flightWake)
        let isRead = if unread == 0 { true } else { try step.isNewestAlertRead() }
        var expires = step.machine.badgeExpires(
            unread: unread, isNewestAlertRead: isRead, now: step.now)
        guard isRead else {
            return ClaimedRequest(
                .badge(
                    unread, text: nil, subject: subject, expires: nil,
                    to: step.device.destination))
        }
        // It takes APNs' slot, so it carries what is still to be told: with 0 an announcement,
        // which does not count as unread.
        var text: PushPayload.AlertText?
        var options = PushOptions()
        if let (alert, shown) = try step.newestOpenAlert() {
            text = step.text(
                shown, others: step.row.alertsOpen - min(1, step.row.alertsOpen))
            options = shown.options
            expires = step.limit(expires, alert, shown)
            subject = PushPayload.Subject(
                of: alert.message, in: alert.conversation, wake: step.row.flightWake)
        }
        return ClaimedRequest(
            .badge(
                unread, text: text, options: options, subject: subject, expires: expires,
                to: step.device.destination))
    }

    /// The answer to a claimed push.
    ///
    /// - Returns: its class; `nil` if the claim is not the newest of its device any more.
    func finish(_ request: FinishPush) throws(StoreError) -> (PushAnswer?, WakeEffects) {
        let key = request.key
        _ = try transaction.record(
            UserRecord.self, [.app(key.app), .user(key.user)], lock: .wait)
        guard
            let device = try transaction.record(
                DeviceRecord.self, [.app(key.app), .user(key.user), .identifier(key.device)])
        else { return (nil, WakeEffects()) }
        var step = try WakeStep(device, in: transaction, now: now)
        step.reply = request.reply
        step.answeredID = request.answeredID
        let row = step.row
        guard row.flight != nil, row.owner == key.owner, row.attempt == key.attempt,
            row.flightWake == request.id
        else { return (nil, WakeEffects()) }
        let unread = try transaction.unread(key.app, key.user, now: now)
        try step.perform(
            step.machine.pushAnswered(
                request.reply, keepsToken: request.keepsToken, owner: key.owner,
                attempt: key.attempt, unread: unread, now: now))
        try step.save()
        var effects = step.effects
        try writeDown(&effects)
        if step.device.pushToken == nil, device.pushToken != nil,
            case .answered(let status, let reason, let timestamp, _) = request.reply
        {
            let dropped = try transaction.noteDropped(
                device, status: status, reason: reason, since: timestamp, now: now)
            effects.dropped += [dropped].compactMap { $0 }
        }
        switch request.reply {
        case .answered(let status, let reason, let timestamp, let retryAfter):
            let answer = PushAnswer(
                status: status, reason: reason, timestamp: timestamp, failures: row.failures,
                kind: row.flight ?? .silent, retryAfter: retryAfter)
            return (answer, effects)
        case .unanswered, .lost:
            return (.retryLater(after: WakePolicy.unansweredDelay, step: .none), effects)
        case .notSent:
            return (.retryLater(after: WakePolicy.unsentDelay, step: .none), effects)
        }
    }
}

extension ClaimedPushes {
    fileprivate mutating func take(_ campaigns: CampaignClaims) {
        jobs += campaigns.jobs
        more = more || campaigns.isMore
        blocked += campaigns.blocked
        if let due = campaigns.nextDue { nextDue = min(nextDue ?? due, due) }
    }
}

extension DeviceRecord {
    fileprivate var destination: PushRequest.Destination {
        PushRequest.Destination(token: pushToken ?? [], topic: pushTopic)
    }
}

extension WakeStep {
    /// APNs stores nothing for longer than it is to be shown.
    fileprivate func limit(
        _ expires: Timestamp?, _ alert: AlertRecord, _ content: AlertContent
    ) -> Timestamp? {
        guard let expires, let end = content.expiry(of: alert) else { return expires }
        return min(expires, end)
    }

    /// Whether `alert` is the newest that is open, and whether a newer open one was sent: newer is
    /// what was queued later, and one at a time of its own was queued then.
    fileprivate func standing(
        of alert: AlertRecord
    ) throws(StoreError) -> (isNewest: Bool, isNewerSent: Bool) {
        let newer = try newestAlerts().filter { $0.isNewer(than: alert) && $0.phase.isOpen }
        return (newer.isEmpty, newer.contains { $0.phase == .sent })
    }

    /// The newest alert the device was sent has been read elsewhere or is gone: replacing it is
    /// the wish. The newest is the one that was queued last: an edit moves an alert up by its
    /// `seq`, and sends nothing. One without an answer may have been sent.
    fileprivate func isNewestAlertRead() throws(StoreError) -> Bool {
        let sent = try newestAlerts().filter { $0.sentAt != nil || $0.tries > 0 }
            .max { $1.isNewer(than: $0) }
        guard let sent else { return false }
        if sent.phase == .cancelled { return true }
        return try transaction.isSettled(sent, now: now)
    }

    fileprivate func newestOpenAlert() throws(StoreError) -> (AlertRecord, AlertContent)? {
        for alert in try newestAlerts().sorted(by: { $0.isNewer(than: $1) })
        where alert.phase.isOpen {
            if try transaction.isSettled(alert, now: now) { continue }
            if try isOfBlocked(alert) { continue }
            guard let content = try content(of: alert),
                content.expiry(of: alert).map({ now < $0 }) ?? true
            else { continue }
            return (alert, content)
        }
        return nil
    }

    /// In the device's language, else in the app's.
    fileprivate func text(_ content: AlertContent, others: UInt64) -> PushPayload.AlertText {
        content.options.shown(
            title: content.title, body: content.body, locale: device.locale,
            otherwise: appLocale, others: others)
    }
}

extension PushPayload.Subject {
    /// A message, or an announcement, which is in no conversation (PSH-2).
    fileprivate init(of object: MessageID, in conversation: ConversationID, wake: WakeID) {
        // Of a change that is about no single object none is named.
        let isKnown = object != MessageID(high: 0, low: 0)
        let isMessage = conversation != .none || !isKnown
        self.init(
            event: isMessage ? "message" : "announcement", message: isKnown ? object : nil,
            conversation: conversation != .none ? conversation : nil, wake: wake)
    }
}

/// What backends say of the messages and announcements that the wakes of one claim name. A crowd
/// is woken by the same one: it is read once.
private final class WakeSubjects {
    struct Subject {
        var options = PushOptions()
        var publishedAt: Timestamp?
    }

    private var known: [[ColumnValue]: Subject] = [:]

    /// Nothing, if what the wake names is gone.
    func told(by step: WakeStep) throws(StoreError) -> Subject {
        let key: [ColumnValue] = [.app(step.device.app), .identifier(step.row.message)]
        if let subject = known[key] { return subject }
        let found =
            if step.row.conversation == .none {
                try step.transaction.record(AnnouncementRecord.self, key)
                    .map { ($0.pushOptions, $0.sentAt) }
            } else {
                try step.transaction.record(MessageRecord.self, key)
                    .map { ($0.pushOptions, $0.sentAt) }
            }
        let subject = Subject(
            options: PushOptions(encoded: found?.0 ?? []) ?? PushOptions(), publishedAt: found?.1)
        known[key] = subject
        return subject
    }
}

/// What a claim sends, and since when it waits to be told.
private struct ClaimedRequest {
    var request: PushRequest
    var publishedAt: Timestamp?
    var trace: TraceContext?

    init(_ request: PushRequest, publishedAt: Timestamp? = nil, trace: TraceContext? = nil) {
        (self.request, self.publishedAt, self.trace) = (request, publishedAt, trace)
    }
}
