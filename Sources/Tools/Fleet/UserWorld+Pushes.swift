import DeviceModel
import Model
import Wake

// The server's side of a device: what the rules of the feed do with a machine's actions, with
// rows in memory. What to send, and when, the machine says.

extension UserWorld {
    /// Carries the machine's actions out.
    ///
    /// - Parameter entry: the `seq` of the change that was told.
    mutating func perform(_ actions: [WakeAction], on index: Int, entry: UInt64? = nil) {
        guard !actions.isEmpty else { return }
        let cause = devices[index].machine.alertCause(of: actions, now: now)
        for action in actions {
            switch action {
            // Nobody sends campaigns here.
            case .send, .detachToken, .settleCampaign: break
            case .queueAlert(let due, _):
                if let entry { queueAlert(entry, due: due, cause, on: index) }
            case .alertPending: alertPending(cause, on: index)
            case .settleAlert(let message, let settlement):
                settleAlert(message.low, settlement, on: index)
            case .dropAlerts: devices[index].alerts.removeAll()
            case .demoted: tally.demotions += 1
            case .recovered: tally.recoveries += 1
            case .note(let wake, .outcome(let outcome)): note(wake, outcome, on: index)
            case .note: break
            case .came(let wake, let latency): learn(wake, after: latency)
            }
        }
    }

    /// Sends what is due, and forgets a row in which nothing is owed.
    mutating func settle(_ index: Int) {
        while let due = devices[index].machine.row.due, due <= now { claim(index) }
        devices[index].forgetIdleRow(policy: policy, now: now)
        devices[index].reschedule()
    }

    /// The first outcome of a silent push stands.
    private mutating func note(_ wake: WakeID, _ outcome: WakeOutcome, on index: Int) {
        guard let place = devices[index].silents.lastIndex(where: { $0.wake == wake }),
            devices[index].silents[place].outcome == .pending
        else { return }
        devices[index].silents[place].outcome = outcome
        tally.outcomes[Int(outcome.rawValue)] += 1
    }

    /// HELLO named the push that caused it.
    mutating func attribute(_ wake: WakeID, on index: Int) {
        guard let place = devices[index].silents.lastIndex(where: { $0.wake == wake }),
            devices[index].silents[place].outcome == .noShow
        else { return }
        devices[index].silents[place].outcome = .late
        tally.outcomes[Int(WakeOutcome.late.rawValue)] += 1
        let latency = now.since(devices[index].silents[place].acceptedAt)
        perform(devices[index].machine.cameLate(wake, after: latency), on: index)
    }

    // MARK: Alert rows

    private func makeAlert(
        _ seq: UInt64, _ phase: AlertPhase, _ summary: AlertSummary, _ cause: AlertCause
    ) -> AlertBook.Alert {
        AlertBook.Alert(
            seq: seq, conversation: change(seq).conversation, queuedAt: now, phase: phase,
            summary: summary, cause: cause)
    }

    private mutating func queueAlert(
        _ seq: UInt64, due: Timestamp, _ cause: AlertCause, on index: Int
    ) {
        guard devices[index].alerts.index(of: seq) == nil else { return }
        devices[index].alerts.insert(makeAlert(seq, .queued, .none, cause))
        let row = devices[index].machine.row
        devices[index].machine.alertsChanged(
            queued: 1, open: 1, due: row.alertsQueued == 0 ? due : min(row.alertDue, due),
            now: now)
    }

    private mutating func alertPending(_ cause: AlertCause, on index: Int) {
        let covered = max(devices[index].machine.applied, readSeq)
        var looked = 0
        var queued = 0
        var open = 0
        var seq = newestMessage
        while seq > covered, looked < WakePolicy.pendingAlertsMax {
            defer { seq -= 1 }
            guard entries[Int(seq) - 1].conversation != nil else { continue }
            looked += 1
            guard devices[index].alerts.index(of: seq) == nil else { continue }
            let (phase, summary) = AlertSummary.pending(place: queued)
            if phase == .queued { queued += 1 }
            var alert = makeAlert(seq, phase, summary, cause)
            // Of one moment, in the order in which they came.
            alert.queuedAt = now - min(UInt64(open), now.milliseconds)
            open += 1
            devices[index].alerts.insert(alert)
        }
        devices[index].machine.alertsChanged(
            queued: queued, open: open, due: now, now: now)
    }

    private mutating func settleAlert(
        _ seq: UInt64, _ settlement: AlertSettlement, on index: Int
    ) {
        guard let place = devices[index].alerts.index(of: seq),
            devices[index].alerts[place].phase == .sending
        else { return }
        let sent = devices[index].alerts[place]
        switch settlement {
        case .sent:
            devices[index].alerts[place].phase = .sent
            devices[index].alerts[place].sentAt = now
        // The simulated APNs takes everything.
        case .queuedAgain, .unanswered, .lost, .refused: return
        }
        let phases = sent.summary.settledPhases
        guard !phases.isEmpty else { return }
        for older in 0..<place where phases.contains(devices[index].alerts[older].phase) {
            let alert = devices[index].alerts[older]
            if sent.summary == .conversation, alert.conversation != sent.conversation {
                continue
            }
            devices[index].machine.alertsChanged(
                queued: alert.phase == .queued ? -1 : 0, open: 0, now: now)
            devices[index].alerts[older].phase = .sent
            devices[index].alerts[older].sentAt = now
        }
    }

    /// Rows at or below `applied` go: the device has what they tell of.
    mutating func coverAlerts(through applied: UInt64, on index: Int) {
        guard !devices[index].alerts.isEmpty else { return }
        for alert in devices[index].alerts.removeCovered(through: applied) {
            devices[index].machine.alertsChanged(
                queued: alert.phase == .queued ? -1 : 0, open: alert.phase.isOpen ? -1 : 0,
                now: now)
        }
    }

    // MARK: Claims

    /// One claim of the gateway; APNs takes what comes of it at once.
    private mutating func claim(_ index: Int) {
        wakes += 1
        let claim = Claim(owner: Self.boot, id: WakeID(high: 0, low: wakes))
        var isSent = false
        while !isSent, let need = devices[index].machine.need(now: now) {
            switch need {
            case .wake: isSent = claimWake(index, claim)
            case .alert: isSent = claimAlert(index, claim)
            case .badge: isSent = claimBadge(index, claim)
            }
        }
        guard isSent else { return }
        let attempt = devices[index].machine.row.attempt
        let accepted = PushReply.answered(status: 200, reason: "", timestamp: nil)
        perform(
            devices[index].machine.pushAnswered(
                accepted, owner: Self.boot, attempt: attempt, unread: unread, now: now),
            on: index)
    }

    private mutating func claimWake(_ index: Int, _ claim: Claim) -> Bool {
        let isBehind = isBehind(index)
        let actions = devices[index].machine.claimWake(
            isBehind: isBehind, claim: claim, now: now)
        let isSent = actions.contains(.send(.silent))
        if isSent {
            let wake = devices[index].machine.row.flightWake
            tally.silent += 1
            devices[index].remember(FleetDevice.SilentPush(wake: wake, acceptedAt: now))
            deliver(
                PhonePush(
                    .silent, handle: wake.low, expires: 0, priority: 5, hasText: false),
                after: silentTime(index), to: index)
        }
        perform(actions, on: index)
        return isSent
    }

    private mutating func claimAlert(_ index: Int, _ claim: Claim) -> Bool {
        guard let (place, waitsSince) = nextAlert(index) else { return false }
        guard place >= 0 else {
            perform(
                devices[index].machine.claimAlert(
                    nil, unread: unread, claim: claim, now: now),
                on: index)
            return false
        }
        let alert = devices[index].alerts[place]
        let choice = AlertChoice(
            message: MessageID(high: 0, low: alert.seq), isUrgent: alert.isUrgent,
            waitsSince: waitsSince)
        let actions = devices[index].machine.claimAlert(
            choice, unread: unread, claim: claim, now: now)
        guard actions.contains(.send(.alert)) else {
            perform(actions, on: index)
            return false
        }
        devices[index].alerts[place].phase = .sending
        let newer = devices[index].alerts.alerts.filter {
            $0.phase.isOpen && $0.isNewer(than: alert)
        }
        let isNewerSent = newer.contains { $0.phase == .sent }
        let expires = devices[index].machine.alertExpires(isNewerSent: isNewerSent, now: now)
        let handle = devices[index].machine.row.flightWake.low
        devices[index].remember(
            FleetDevice.Telling(
                handle: handle, seq: alert.seq, conversation: alert.conversation,
                scope: alert.summary.scope(isNewest: newer.isEmpty)))
        tally.alerts += 1
        tally.causes[Int(alert.cause.rawValue)] += 1
        deliver(
            PhonePush(
                .alertWithContent, handle: handle, identifier: alert.seq,
                expires: expires?.milliseconds ?? 0, badge: Int32(clamping: unread)),
            after: alertTime(index), to: index)
        perform(actions, on: index)
        return true
    }

    /// - Returns: where the alert is that leaves next, or -1 for none; `nil`: not yet.
    private mutating func nextAlert(_ index: Int) -> (Int, Timestamp)? {
        while true {
            let book = devices[index].alerts
            let queued = book.alerts.indices.filter { book.alerts[$0].phase == .queued }
            guard let oldest = queued.first else { return (-1, now) }
            let turn = devices[index].machine.alertTurn(
                among: queued.map { book.alerts[$0] }, now: now
            ) { book.lastSent(of: $0) }
            var place: Int
            switch turn {
            case .later(let time):
                devices[index].machine.putOffAlerts(until: time, now: now)
                return nil
            case .single(let waiting): place = queued[waiting]
            case .newest:
                place = book.newestQueued() ?? oldest
                devices[index].alerts[place].summary = .device
            case .conversation(let waiting):
                place = queued[waiting]
                place = book.newestQueued(of: book.alerts[place].conversation) ?? place
                if book.alerts[place].summary == .none {
                    devices[index].alerts[place].summary = .conversation
                }
            }
            let alert = devices[index].alerts[place]
            if alert.seq > max(devices[index].machine.applied, readSeq) {
                return (place, book.alerts[oldest].queuedAt)
            }
            cancel(place, on: index)
        }
    }

    /// A queued alert is told no more. What it would have told of falls to the next newest.
    private mutating func cancel(_ place: Int, on index: Int) {
        let needsHeir = devices[index].alerts[place].summary.needsHeir
        devices[index].machine.alertsChanged(queued: -1, open: -1, now: now)
        devices[index].alerts[place].phase = .cancelled
        devices[index].alerts[place].summary = .none
        guard needsHeir,
            let heir = devices[index].alerts.alerts.lastIndex(where: { $0.phase == .counted })
        else { return }
        devices[index].alerts[heir].phase = .queued
        devices[index].alerts[heir].summary = .everything
        devices[index].machine.alertsChanged(queued: 1, open: 0, now: now)
    }

    private mutating func claimBadge(_ index: Int, _ claim: Claim) -> Bool {
        let actions = devices[index].machine.claimBadge(
            unread: unread, claim: claim, now: now)
        guard actions.contains(.send(.badge)) else {
            perform(actions, on: index)
            return false
        }
        let newestSent = devices[index].alerts.alerts.filter { $0.sentAt != nil }
            .max { $1.isNewer(than: $0) }
        let isRead = newestSent.map { $0.seq <= readSeq } ?? false
        let expires = devices[index].machine.badgeExpires(
            unread: unread, isNewestAlertRead: isRead, now: now)
        let handle = devices[index].machine.row.flightWake.low
        var hasText = false
        // It takes APNs' slot, so it carries what is still to be told.
        if unread > 0, isRead,
            let open = devices[index].alerts.alerts.filter({ $0.phase.isOpen })
                .max(by: { $1.isNewer(than: $0) })
        {
            hasText = true
            devices[index].remember(
                FleetDevice.Telling(
                    handle: handle, seq: open.seq, conversation: open.conversation,
                    scope: .all))
        }
        tally.badges += 1
        deliver(
            PhonePush(
                .badgeWithContent, handle: handle, identifier: Self.badgeIdentifier,
                expires: expires?.milliseconds ?? 0,
                badge: Int32(clamping: unread), priority: 5, hasText: hasText),
            after: silentTime(index), to: index)
        perform(actions, on: index)
        return true
    }

    private mutating func deliver(
        _ push: PhonePush, after delay: Milliseconds, to index: Int
    ) {
        sent?.append((now, index, push))
        devices[index].deliveries.append(FleetDevice.Delivery(at: now + delay, push: push))
    }
}
