import Feed
import MemoryStore
import Model
import Wake
import Wire

// The server's turns, and APNs.

extension WakeModel {
    /// One step of the server: `alive_at`, sweep, pushes; demotions are checked as they happen.
    func serve(calm: Bool) throws {
        let before = try phones.indices.map { try device($0) }
        _ = try ask(.keepAlive)
        _ = try ask(.sweepWakes(rows: 100))
        for index in phones.indices {
            let device = try device(index)
            if device?.isUnreachable ?? false, !(before[index]?.isUnreachable ?? false) {
                checkDemotion(index)
            }
        }
        if calm {
            try coalesceReceipts()
            if !campaigns.isEmpty { try pushes.advanceCampaigns() }
        }
        try claim(streams: calm ? 10 : Int(random.below(4)), calm: calm)
        try answers()
        for index in phones.indices { try checkWaiting(index) }
    }

    private func claim(streams: Int, calm: Bool) throws {
        ids += 1
        let waits = try phones.indices.map { try oldestWaits($0) }
        let alerts = try phones.indices.map { try noBudgetAlerts($0) }
        let request = ClaimPushes(
            boot: boot, streams: streams,
            ids: (0..<streams).map { WakeID(high: ids, low: UInt64($0)) })
        let answer = try ask(.claimPushes(request))
        guard case .pushes(let claimed) = answer else { return fail("claim: \(answer)") }
        for index in phones.indices where try noBudgetAlerts(index) > alerts[index] {
            checkBudgetIsSpent(index)
        }
        for job in claimed.jobs {
            guard let index = phones.firstIndex(where: { $0.id == job.key.device }) else {
                fail("a push to nobody's phone")
                continue
            }
            try send(job, to: index, waits: waits[index], calm: calm)
        }
    }

    /// The alert that waits longest.
    private func oldestWaits(_ index: Int) throws -> AlertRecord? {
        try alerts(index, .queued, limit: 1).first
    }

    func alerts(_ index: Int, _ phase: AlertPhase, limit: Int = 1_000) throws -> [AlertRecord] {
        var found: [AlertRecord] = []
        try world.store.read { snapshot throws(StoreError) in
            found = try snapshot.records(
                AlertRecord.self,
                Scan(
                    index: "alert_queued",
                    prefix: self.wakeKey(index) + [.unsigned(phase.rawValue)],
                    limit: limit))
        }
        return found
    }

    private func send(
        _ job: PushJob, to index: Int, waits: AlertRecord?, calm: Bool
    ) throws {
        if phones[index].inFlight != nil, let lease = phones[index].leaseOf, now < lease {
            fail("two pushes in flight to phone \(index)")
        }
        phones[index].inFlight = job.key
        phones[index].leaseOf = job.lease
        count("\(job.kind)")
        checkAddress(job, index)
        var covered: Set<MessageID> = []
        switch job.kind {
        case .silent: checkSilent(job, index)
        case .alert: covered = try checkAlert(job, index, waits: waits)
        case .badge: checkShown(job, index)
        case .campaign: break
        }
        var (reply, isDelivered) = calm ? (Pushes.accepted, true) : someReply(job, index)
        if let death = deaths[job.request.token] {
            isDelivered = false
            // APNs' clock is as right as the store's is by now.
            let since = now - time.since(death.at)
            reply =
                death.isTimed
                ? .answered(status: 410, reason: "Unregistered", timestamp: since)
                : .answered(status: 400, reason: "BadDeviceToken", timestamp: nil)
            count(death.isTimed ? "unregistered" : "bad token")
        }
        if job.kind == .silent {
            phones[index].spent.append(Spent(push: job.request.id, key: job.key, at: now))
            if reply == .unanswered || isDelivered { spend(index) }
        }
        if isDelivered { deliver(job, to: index, speaksFor: covered) }
        let delay: Milliseconds = reply == .unanswered ? 10_000 : random.below(3_000)
        flights.append(
            Flight(
                job: job, phone: index, reply: reply,
                isDead: deaths[job.request.token] != nil, at: time + delay))
    }

    /// What APNs, and the way to it, make of a push; whether it arrived.
    private func someReply(_ job: PushJob, _ index: Int) -> (PushReply, Bool) {
        switch random.below(24) {
        case 0: return (.unanswered, true)
        case 1: return (.unanswered, false)
        case 2:
            count("not sent")
            return (.notSent, false)
        case 3:
            return (
                .answered(status: 503, reason: "ServiceUnavailable", timestamp: nil), false
            )
        case 4:
            let after = chance(0.3) ? nil : 2_000 + random.below(200_000)
            return (
                .answered(
                    status: 429, reason: "TooManyRequests", timestamp: nil, retryAfter: after),
                false
            )
        case 5 where phones[index].jumpsThen == jumpCount && chance(0.3):
            // The token is of a time before the app came with it again.
            guard job.request.token == phones[index].presented else {
                return (Pushes.accepted, true)
            }
            count("late burial")
            let since = now - time.since(phones[index].presentedAt) - 1_000
            return (
                .answered(status: 410, reason: "Unregistered", timestamp: since), false
            )
        default: return (Pushes.accepted, true)
        }
    }

    private func spend(_ index: Int) {
        phones[index].silents.append(now)
        let recent = phones[index].silents.filter { now.since($0) < policy.silentWindow }
        if recent.count > Int(max(policy.silentBudget, policy.adaptive.budgetMax)) {
            fail("budget of phone \(index)")
        }
        if recent.count > 1, now.since(recent[recent.count - 2]) < policy.silentSpacing {
            fail("two silent pushes at once to phone \(index)")
        }
    }

    private func answers() throws {
        for flight in flights where flight.at <= time { try answer(flight) }
        flights.removeAll { $0.at <= time }
    }

    private func answer(_ flight: Flight) throws {
        let (job, index) = (flight.job, flight.phone)
        if phones[index].inFlight == job.key { phones[index].inFlight = nil }
        let before = try phones.indices.map { (try device($0), try wake($0)) }
        let answer = try ask(
            .finishPush(
                FinishPush(key: job.key, id: job.request.id, reply: flight.reply)))
        guard case .pushFinished(let finished) = answer else { return fail("\(answer)") }
        for other in phones.indices where other != index {
            let after = (try device(other), try wake(other))
            if after.0 != before[other].0 || after.1 != before[other].1 {
                fail("an answer to phone \(index) changed phone \(other)")
            }
        }
        let isCurrent = job.request.token == phones[index].presented
        let isHeld = before[index].0?.pushToken == job.request.token
        if !isHeld { try checkOldAnswer(index, before[index]) }
        guard let finished else { return }
        if finished != .accepted, flight.reply != .unanswered {
            // It was not sent: that costs nothing.
            phones[index].spent.removeAll { $0.push == job.request.id && $0.key == job.key }
        }
        // What APNs took for an older token is sent to the one that the device has now.
        let isTaken = finished == .accepted && (isHeld || before[index].0?.pushToken == nil)
        if job.kind == .alert, !isTaken {
            phones[index].rings.burst -= phones[index].rings.burst > 0 ? 1 : 0
            phones[index].rings.hour.removeAll { $0.key == job.key }
        }
        if job.kind == .alert, isTaken { phones[index].rings.last = now }
        guard isCurrent, isHeld else { return }
        if case .answered(let status, let reason, _, let retryAfter) = flight.reply {
            if reason == "TooManyRequests" {
                count("429")
                phones[index].restUntil = now + min(max(retryAfter ?? 60_000, 1_000), 900_000)
            }
            if status == 410 || reason == "BadDeviceToken" {
                try bury(index, flight)
            }
        }
        if finished == .accepted { try accepted(job, index) }
    }

    /// APNs has called the device's own token dead.
    private func bury(_ index: Int, _ flight: Flight) throws {
        let token = flight.job.request.token
        let isHeld = try device(index)?.pushToken == token
        guard flight.isDead else {
            // It came after the time APNs speaks of.
            if !isHeld, phones[index].jumpsThen == jumpCount {
                fail("phone \(index) lost a token that it has presented since")
            }
            if !isHeld { deaths[token] = Death(at: time, isTimed: false) }
            return
        }
        if isHeld {
            // By a clock that was set back since, the app came with it after APNs' time.
            if case .answered(_, _, let died?, _) = flight.reply,
                let confirmed = try device(index)?.tokenConfirmedAt, died <= confirmed,
                phones[index].jumpsThen != jumpCount
            {
                return count("kept over a clock")
            }
            return fail("phone \(index) keeps a token that APNs calls dead")
        }
        count("token death")
        buried.insert(token)
        phones[index].timed = []
        phones[index].wasAlerted = false
        phones[index].restUntil = nil
        phones[index].lastSilent = nil
        forgetMoved(index)
    }

    private func accepted(_ job: PushJob, _ index: Int) throws {
        switch job.kind {
        case .alert:
            guard let message = job.message else { return fail("an alert of nothing") }
            let told = Told(token: job.request.token, message: message)
            phones[index].alertsAccepted[told, default: 0] += 1
            if phones[index].alertsAccepted[told] != 1 {
                fail("phone \(index) was alerted of \(name(message)) twice")
            }
        case .campaign:
            let campaign = job.request.collapseID ?? ""
            phones[index].campaignsAccepted[campaign, default: 0] += 1
            if phones[index].campaignsAccepted[campaign] != 1 {
                fail("phone \(index) got a campaign twice")
            }
        case .silent:
            if phones[index].lastSilent?.id == job.request.id {
                phones[index].lastSilent?.acceptedAt = time
                phones[index].lastSilent?.jumpsThen = jumps.count
            }
        case .badge: break
        }
    }

    // MARK: outages and clocks

    func crash() {
        count("crash")
        let length = chance(0.5) ? 1_000 + random.below(2_000) : 9_000 + random.below(80_000)
        downUntil = time + length
        outages.append((time, time + length))
        flights.removeAll()
        for index in phones.indices {
            phones[index].inFlight = nil
            guard phones[index].session != nil else { continue }
            phones[index].session = nil
            phones[index].cutAt = nil
            phones[index].syncAt = nil
            phones[index].sleepAt = nil
            if chance(0.6) { phones[index].connectAt = time + length + random.below(15_000) }
        }
    }

    func restart() throws {
        downUntil = nil
        boots += 1
        _ = try ask(.start(boot: boot, epochHalf: 1))
    }

    func jumpSomehow() {
        guard rightAt == nil else { return }
        let seconds: [UInt64] = [1, 4, 6, 60, 300, 1_800, 3_300, 7_200, 86_400, 40 * 86_400]
        let size = seconds[Int(random.below(UInt64(seconds.count)))] * 1_000
        let isBack = chance(0.5)
        jump(size, isBack: isBack)
        // A clock that is ahead by so much for long ends what it should not, and is put right.
        if !isBack && size > 600_000 || chance(0.3) {
            rightAt = (time + random.below(60_000), size, !isBack)
        }
    }

    func jump(_ size: Milliseconds, isBack: Bool) {
        count(isBack ? "clock back" : "clock ahead")
        jumpCount += 1
        world.store.clock = isBack ? now - size : now + size
        for index in phones.indices {
            phones[index].silents = []
            phones[index].leaseOf = nil
            guard isBack else { continue }
            // As long as ever from now.
            phones[index].restUntil = phones[index].restUntil.map {
                $0 - min(size, $0.milliseconds)
            }
            // The last alert stays where it was: the server takes it as of the moment at which it
            // looks at the device again, and only if the clock is not right again by then.
            for ring in phones[index].rings.hour.indices {
                phones[index].rings.hour[ring].at = min(phones[index].rings.hour[ring].at, now)
            }
        }
        if isBack {
            setsBack += 1
            budgetIsKnownFrom = now + policy.silentWindow + 10_000
        }
        // Less than that looks like a slow second.
        if size > 9_000 { jumps.append(time) }
    }
}
