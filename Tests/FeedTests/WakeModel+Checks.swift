import Feed
import MemoryStore
import Model
import Wake
import Wire

// The promises.

extension WakeModel {
    /// Where a message stands among all.
    func name(_ message: MessageID) -> String {
        order.firstIndex(of: message).map { "m\($0)" } ?? "nothing"
    }

    // MARK: a push that leaves

    func checkAddress(_ job: PushJob, _ index: Int) {
        let phone = phones[index]
        if job.request.token != phone.presented {
            fail("a \(job.kind) to an old token of phone \(index)")
        }
        if buried.contains(job.request.token) {
            fail("a \(job.kind) to a dead token of phone \(index)")
        }
        if let rest = phone.restUntil, now < rest {
            fail("phone \(index) was not left alone: \(job.kind)")
        }
        if suspended.contains(phone.user) {
            fail("a \(job.kind) to a suspended user's phone \(index)")
        }
    }

    func checkSilent(_ job: PushJob, _ index: Int) {
        let phone = phones[index]
        if phone.session != nil, phone.cutAt == nil {
            fail("silent push beside the session of phone \(index)")
        }
        if phone.isRefreshOff { fail("silent push to phone \(index), which ignores it") }
        phones[index].lastSilent = Silent(
            id: job.request.id, token: job.request.token, wasBehind: !pending(index).isEmpty,
            sentAt: time)
    }

    /// - Parameter waits: the alert that waited longest before the claim.
    /// - Returns: the messages that a summary speaks for.
    func checkAlert(
        _ job: PushJob, _ index: Int, waits: AlertRecord?
    ) throws -> Set<MessageID> {
        checkShown(job, index)
        let phone = phones[index]
        guard let message = job.message, let known = said[message] else {
            fail("an alert of no message")
            return []
        }
        if phone.has.contains(message), known.moment == nil {
            fail("phone \(index) was alerted of \(name(message)), which it has")
        }
        if let moment = known.moment, now < moment, known.setsBack == setsBack {
            fail("\(name(message)) was alerted before its time")
        }
        checkUrgentDelay(known, index)
        let record = try world.record(AlertRecord.self, wakeKey(index) + [.identifier(message)])
        guard let record else {
            fail("an alert without a row")
            return []
        }
        if known.urgency != .urgent, known.moment == nil, let row = try wake(index),
            row.phase == .due, max(row.wakeDue, row.wakeNotBefore) <= now
        {
            fail("an alert of phone \(index) overtook its wake")
        }
        // The claim itself may have written an older one than waited before.
        let oldest = [record, waits].compactMap(\.self).min { $0.seq < $1.seq }
        checkPace(job, index, record.summary, waitsSince: oldest?.queuedAt)
        guard record.summary != .none else { return [] }
        count("summary")
        // An edit moves a message up: what is older is what stands below it in the feed.
        let feed = seqs[phone.user] ?? [:]
        let place = feed[message] ?? 0
        let waiting = order.filter {
            // What has yet to come to its time is told then.
            counts($0, for: phone.user) && said[$0]?.moment.map { $0 <= now } ?? true
                && feed[$0].map { $0 < place } ?? false
                && (record.summary != .conversation || said[$0]?.room == known.room)
        }
        return Set(waiting)
    }

    /// Beside a session an ACK has two seconds in which it may cover an urgent one.
    private func checkUrgentDelay(_ known: Said, _ index: Int) {
        let phone = phones[index]
        guard known.urgency == .urgent, known.moment == nil, known.jumpsThen == jumpCount,
            phone.session != nil, phone.cutAt == nil, phone.lastConnected < known.at
        else { return }
        count("urgent beside a session")
        if time.since(known.at) < WakePolicy.urgentDelay {
            fail("\(name(known.id)) was alerted beside the session of phone \(index) too early")
        }
    }

    /// What is on the screen is true.
    func checkShown(_ job: PushJob, _ index: Int) {
        let user = phones[index].user
        if let badge = job.badge {
            let unread = unread(user)
            if badge != unread { fail("phone \(index) is told \(badge) and not \(unread)") }
        } else {
            fail("a push without a badge: \(job.json)")
        }
        guard let message = job.message, let known = said[message] else { return }
        if known.isDeleted { fail("\(name(message)) is deleted, and alerted") }
        if !counts(message, for: user) { fail("\(name(message)) is nothing to phone \(index)") }
        if isRead(message, by: user) { fail("\(name(message)) is read, and alerted") }
        if !job.json.contains(known.text) { fail("\(name(message)) is alerted as it was") }
    }

    /// What never left is no part of a burst.
    private func checkPace(
        _ job: PushJob, _ index: Int, _ summary: AlertSummary, waitsSince: Timestamp?
    ) {
        var rings = phones[index].rings
        if let waitsSince, waitsSince >= rings.last + WakePolicy.summaryDelay { rings.burst = 0 }
        rings.hour.removeAll { now > $0.at && now.since($0.at) >= WakePolicy.hour }
        if summary == .conversation, rings.burst < Int(WakePolicy.alertBurst) {
            fail("phone \(index) got a summary after \(rings.burst) alerts")
        }
        if summary == .device, rings.hour.count < Int(WakePolicy.hourAlerts) {
            fail("phone \(index) got a summary after \(rings.hour.count) alerts in an hour")
        }
        rings.burst += 1
        rings.hour.append((job.key, now))
        phones[index].rings = rings
    }

    // MARK: what the server decides

    /// How many alerts there are because no silent push was left.
    func noBudgetAlerts(_ index: Int) throws -> Int {
        guard !policy.adaptive.isBudgetAdaptive else { return 0 }
        return try alerts(index, .queued).filter { $0.cause == .noBudget }.count
            + alerts(index, .sending).filter { $0.cause == .noBudget }.count
    }

    /// A push that never left costs no token.
    func checkBudgetIsSpent(_ index: Int) {
        guard now >= budgetIsKnownFrom else { return }
        count("no budget")
        let spent = phones[index].spent.filter { now.since($0.at) < policy.silentWindow }
        if spent.count < Int(policy.silentBudget) {
            fail("phone \(index) is alerted after \(spent.count) silent pushes, for want of more")
        }
    }

    /// A demoted device had its whole grace, for something that everybody would want to see, we
    /// were there, and it neither came nor was synced.
    func checkDemotion(_ index: Int) {
        count("demotion")
        let phone = phones[index]
        guard let silent = phone.lastSilent, let accepted = silent.acceptedAt else {
            return fail("phone \(index) was demoted without a push that APNs took")
        }
        if silent.token != phone.presented { fail("phone \(index) was demoted for an old token") }
        if !silent.wasBehind { fail("phone \(index) was demoted for nothing to see") }
        if phone.lastConnected > silent.sentAt { fail("phone \(index) came and was demoted") }
        if phone.lastRefused > silent.sentAt {
            fail("phone \(index) was turned away and demoted")
        }
        if phone.session != nil, phone.cutAt == nil {
            fail("phone \(index) is online and was demoted")
        }
        if outages.contains(where: {
            $0.until > accepted && $0.until.since($0.from) > 8_000
        }) {
            fail("phone \(index) was demoted because we were down")
        }
        if jumps.count > silent.jumpsThen {
            fail("phone \(index) was demoted by a clock")
        } else if time.since(accepted) + 8_000 < policy.grace {
            fail("phone \(index) was demoted early")
        }
    }

    /// Nothing about a token that the device has no more changes what is known of its new one.
    func checkOldAnswer(_ index: Int, _ before: (DeviceRecord?, WakeRecord?)) throws {
        count("old answer")
        let after = (try device(index), try wake(index))
        let isSame =
            after.0?.pushToken == before.0?.pushToken
            && after.0?.tokenGeneration == before.0?.tokenGeneration
            && after.0?.tokenProvenAt == before.0?.tokenProvenAt
            && after.0?.tokenConfirmedAt == before.0?.tokenConfirmedAt
            && after.0?.wasAlerted == before.0?.wasAlerted
            && after.0?.isUnreachable == before.0?.isUnreachable
        if !isSame { fail("an answer about an old token changed phone \(index)") }
        let old = before.1?.notBefore ?? Timestamp(milliseconds: 0)
        if let rest = after.1?.notBefore, rest > now, rest > old {
            fail("an answer about an old token holds phone \(index) up")
        }
        let oldAlerts = before.1?.alertNotBefore ?? Timestamp(milliseconds: 0)
        if let rest = after.1?.alertNotBefore, rest > now, rest > oldAlerts {
            fail("an answer about an old token holds alerts of phone \(index) up")
        }
    }

    /// Nothing waits for longer than any rule lets it.
    func checkWaiting(_ index: Int) throws {
        guard let row = try wake(index) else { return }
        // The longest back-off; and a clock that was set back by no more looks like a slow one.
        let latest = now + 15 * 60_000 + 60_000
        let isUnreachable = try device(index)?.isUnreachable ?? true
        // Where useful changes alone are owed, or only those by silent pushes, that may take a day.
        // While the session's row is there that is the record, also for a while after its end.
        let session = try world.record(
            SessionRecord.self, wakeKey(index) + [.unsigned(RoleKind.app.rawValue)])
        let isOwed =
            row.phase == .due && phones[index].session == nil && session == nil
            && time.since(phones[index].lastConnected) > 30_000 && !isUnreachable
            && row.visibleTarget > phones[index].applied
            && !pending(index).isEmpty
        if isOwed, max(row.wakeDue, row.wakeNotBefore, row.notBefore) > latest {
            fail("the wake of phone \(index) waits for another clock")
        }
        if row.alertsQueued > 0, row.alertMoment(isUrgent: false) > latest {
            fail("the alert of phone \(index) waits for another clock")
        }
        if row.alertsQueued > 0, row.flight == nil, row.turn != .urgent, row.urgentDue != nil,
            row.alertMoment(isUrgent: true) <= now
        {
            fail("the urgent alert of phone \(index) waits behind those of others")
        }
    }

    // MARK: the end

    func checkEnd() throws {
        for index in phones.indices { try checkEnd(index) }
        for row in try world.all(ReceiptRecord.self) where row.pendingSince != nil {
            fail("a receipt of \(row.user.name) is told to nobody")
        }
        for user in Self.people {
            let rows = try world.rows(user.name).filter { $0.kind == .message }
            let feed = seqs[user] ?? [:]
            if rows.count != feed.count
                || !rows.allSatisfy({ MessageID($0.object).flatMap { feed[$0] } == $0.seq })
            {
                fail("the model has lost the feed of \(user.name)")
            }
        }
    }

    private func checkEnd(_ index: Int) throws {
        let phone = phones[index]
        let isAlive = deaths[phone.presented] == nil
        let device = try device(index)
        if isAlive, device?.pushToken != phone.presented {
            fail("phone \(index) lost its token")
        }
        guard isAlive else { return count("dead at the end") }
        if let newest = pending(index).last {
            count("behind at the end")
            if !isTold(newest, phone) {
                fail("phone \(index) is behind and was not told of \(name(newest))")
            }
        } else {
            count("in sync at the end")
        }
        let unread = unread(phone.user)
        // One that waits for its time counts at once, and is no reason for a push.
        let waiting = order.filter {
            counts($0, for: phone.user) && !isRead($0, by: phone.user)
                && said[$0]?.moment.map { $0 > now } ?? false
        }
        // Too low it is left, where the app has shown what it knew itself.
        let isTrue =
            phone.icon <= unread
            && (phone.isIconOwn || phone.icon + UInt64(waiting.count) >= unread)
        if phone.wasAlerted, !isTrue {
            fail("phone \(index) shows \(phone.icon), not \(unread)")
        }
        for message in phone.timed where isOwed(message, phone) {
            count("timed at the end")
            let isTold =
                phone.everShown.contains(message)
                || phone.summaries.contains { $0.covers.contains(message) }
            if !isTold { fail("phone \(index) was not told of \(name(message)) in time") }
        }
    }

    /// It is on the screen, or a summary spoke for it whose own message is no more to be seen.
    private func isTold(_ message: MessageID, _ phone: Phone) -> Bool {
        if phone.shown.contains(message) { return true }
        return phone.summaries.contains {
            $0.covers.contains(message)
                && (!counts($0.named, for: phone.user) || isRead($0.named, by: phone.user)
                    || phone.has.contains($0.named))
        }
    }

    private func isOwed(_ message: MessageID, _ phone: Phone) -> Bool {
        guard let known = said[message], let moment = known.moment else { return false }
        return moment < now && counts(message, for: phone.user)
            && !isRead(message, by: phone.user) && !known.isSilenced
    }
}
