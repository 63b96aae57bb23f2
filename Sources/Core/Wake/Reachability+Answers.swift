public import Model

// What comes back for a push, and what it makes of the device.

extension Reachability {
    /// The answer to the push in flight; one to another claim is ignored.
    ///
    /// - Parameters:
    ///   - keepsToken: it is the credential that is wrong, not the token: tried again later.
    ///   - unread: as of now; it may have changed since the push was made.
    public mutating func pushAnswered(
        _ reply: PushReply, keepsToken: Bool = false, owner: BootID, attempt: UInt64,
        unread: UInt64, now: Timestamp
    ) -> [WakeAction] {
        guard let kind = row.flight, row.owner == owner, row.attempt == attempt else { return [] }
        let isCurrent = row.flightGeneration == tokenGeneration
        row.flight = nil
        row.owner = nil
        row.lease = nil
        var actions: [WakeAction] = []
        var answer: PushAnswer
        switch reply {
        case .answered(let status, let reason, let timestamp, let retryAfter):
            answer = PushAnswer(
                status: status, reason: reason,
                timestamp: status == 410 ? Self.timeOfDeath(timestamp, now: now) : timestamp,
                failures: row.failures,
                kind: kind, retryAfter: retryAfter)
            if keepsToken, case .deadToken = answer { answer = .pauseCredential }
            if answer != .accepted {
                actions.append(
                    .note(row.flightWake, .refused(status: status, reason: reason)))
            }
        case .unanswered, .lost: answer = .retryLater(after: unansweredDelay, step: .none)
        case .notSent: answer = .retryLater(after: WakePolicy.unsentDelay, step: .none)
        }
        // The device was not sent anything: the token is not spent. Unanswered, it may have been.
        if kind == .silent, !reply.isUnanswered, answer != .accepted {
            budget.refund(row.silentAt)
        }
        if isCurrent { count(reply, answer) }
        if kind == .alert, reply.isUnanswered { alertMayBeShown() }
        switch answer {
        case .accepted where tokenGeneration != nil && !isCurrent && kind.isShown:
            // The device has another token by now, to which nobody has told it.
            actions += [
                .note(row.flightWake, .accepted), .note(row.flightWake, .outcome(.superseded)),
            ]
            actions += retry(kind, at: now, of: .notSent, now: now)
        case .accepted: actions += accepted(kind, unread: unread, now: now)
        case .deadToken(let since): actions += tokenDied(kind, since, isCurrent, now: now)
        case .retryLater where !isCurrent, .pauseCredential where !isCurrent,
            .pauseTopic where !isCurrent:
            // It was said of a token that the device has no more, and of a topic that may be
            // another.
            actions += retry(kind, at: now, of: .notSent, now: now)
        case .retryLater(let after, _):
            // Only what APNs says of the device holds all of its pushes; a fault holds the one.
            if reply.isAboutDevice { row.notBefore = now + after }
            actions += retry(kind, at: now + after, of: reply, now: now)
        case .pauseCredential, .pauseTopic:
            actions += retry(kind, at: now + WakePolicy.pausedDelay, of: reply, now: now)
        case .ourBug: actions += givenUp(kind, now: now)
        }
        reschedule(now: now)
        return actions
    }

    /// How often in a row what APNs said, or that it said nothing, was worth another try.
    private mutating func count(_ reply: PushReply, _ answer: PushAnswer) {
        if reply == .notSent { return }
        if case .answered(let status, let reason, _, _) = reply, case .retryLater = answer {
            row.failures.add(isUnknown: PushAnswer.isUnknown(status: status, reason: reason))
        } else {
            row.failures = RefusalCount()
        }
        row.unanswered = reply.isUnanswered ? row.unanswered + 1 : 0
    }

    /// Nobody finished the push within its lease: the process that sent it is gone.
    public mutating func leaseEnded(now: Timestamp) -> [WakeAction] {
        guard row.flight != nil, let lease = row.lease, lease <= now, let owner = row.owner
        else { return [] }
        return pushAnswered(
            .lost, owner: owner, attempt: row.attempt, unread: row.badgeShown, now: now)
    }

    /// The process that sent the push is known to be gone: its answer is not waited for longer
    /// than APNs may take.
    public mutating func ownerGone(now: Timestamp) {
        guard row.flight != nil, let lease = row.lease else { return }
        row.lease = min(lease, now + WakePolicy.unansweredDelay)
        reschedule(now: now)
    }

    /// When a token died. What cannot be read, or has yet to come, is taken for a quarter of an
    /// hour ago: a token that was presented since is asked about once more after that time. One
    /// that APNs still calls dead a day after it was presented is so, whatever time it tells.
    private static func timeOfDeath(_ told: Timestamp?, now: Timestamp) -> Timestamp {
        if let told, told <= now + clockTolerance { return max(told, now - presentedCounts) }
        return now - PushAnswer.longDelay
    }

    /// How long a token that was presented after APNs' time of its death is asked about.
    private static let presentedCounts: Milliseconds = 86_400_000

    /// By how much APNs' clock may be ahead of the store's.
    private static let clockTolerance: Milliseconds = 5 * 60_000

    private mutating func accepted(_ kind: PushKind, unread: UInt64, now: Timestamp)
        -> [WakeAction]
    {
        row.notBefore = .zero
        row.alertNotBefore = .zero
        if row.flightGeneration == tokenGeneration { isTokenProven = true }
        var actions: [WakeAction] = [.note(row.flightWake, .accepted)]
        switch kind {
        case .silent:
            guard row.phase == .sending else { return actions }
            if row.isSynced {
                afterSync(now: now)
            } else {
                row.phase = .waiting
                row.waitingSince = now
                row.graceUntil =
                    row.connectedAt.map { $0 + policy.runTime } ?? now + policy.grace
            }
        case .alert:
            alertLeft(now: now)
            actions += [
                .note(row.flightWake, .outcome(.accepted)),
                .settleAlert(row.flightMessage, .sent),
            ]
            if tokenGeneration == row.flightGeneration {
                wasAlerted = true
                row.badgeShown = row.flightBadge
            }
            badgeMayBeWrong(unread: unread, now: now)
        case .badge:
            actions.append(.note(row.flightWake, .outcome(.accepted)))
            row.badgeShown = row.flightBadge
            badgeMayBeWrong(unread: unread, now: now)
        case .campaign: actions.append(settleCampaign(.sent))
        }
        return actions
    }

    /// APNs has taken an alert, or counts as having taken it: the next ones keep their distance
    /// from here. What it did not take keeps none away.
    public mutating func alertLeft(now: Timestamp) { row.lastAlertAt = now }

    /// APNs did not take the alert: it counts neither in its burst nor in its hour.
    private mutating func alertStayed() {
        row.alertBurst = row.alertBurst > 0 ? row.alertBurst - 1 : 0
        row.hourAlerts = row.hourAlerts > 0 ? row.hourAlerts - 1 : 0
    }

    private mutating func tokenDied(
        _ kind: PushKind, _ since: Timestamp?, _ isCurrent: Bool, now: Timestamp
    ) -> [WakeAction] {
        var actions: [WakeAction] = [.note(row.flightWake, .outcome(.rejected))]
        let isOlder = since.map { $0 > tokenConfirmedAt ?? .zero } ?? true
        if isCurrent && isOlder {
            if kind == .campaign { actions.append(settleCampaign(.refused)) }
            return actions + [.detachToken] + tokenDetached(now: now)
        }
        // Another token by now, or the same one presented after APNs' time of death.
        actions += retry(
            kind, at: now + (isCurrent ? PushAnswer.longDelay : 0), of: .notSent, now: now)
        return actions
    }

    private mutating func retry(
        _ kind: PushKind, at due: Timestamp, of reply: PushReply, now: Timestamp
    ) -> [WakeAction] {
        switch kind {
        case .silent:
            guard row.phase == .sending else { return [] }
            if row.isSynced {
                afterSync(now: now)
            } else {
                row.phase = .due
                row.wakeDue = due
                // What comes meanwhile waits with it, for a minute at most.
                if case .answered = reply { row.wakeNotBefore = max(row.wakeNotBefore, due) }
            }
            return []
        case .alert:
            row.alertDue = due
            row.alertNotBefore = due
            // The fault of a push that was not urgent holds no urgent alert.
            if row.turn == .urgent { row.urgentDue = row.urgentDue.map { max($0, due) } }
            alertStayed()
            let settlement: AlertSettlement =
                switch reply {
                case .unanswered: .unanswered
                case .lost: .lost
                case .answered, .notSent: .queuedAgain
                }
            return [.settleAlert(row.flightMessage, settlement)]
        case .badge:
            // An icon is not worth more; the next change tries again.
            if reply == .lost || row.unanswered < WakePolicy.unansweredMax { row.badgeDue = due }
            return []
        case .campaign: return [settleCampaign(.queuedAgain(due: due))]
        }
    }

    /// 5 s after the first push without an answer, then twice as long each time: APNs may have
    /// taken it, and each that it took may sound.
    private var unansweredDelay: Milliseconds {
        min(WakePolicy.unansweredDelay << min(row.unanswered, 8), PushAnswer.longDelay)
    }

    /// A push without an answer counts as one that may be on the screen.
    private mutating func alertMayBeShown() {
        guard row.flightGeneration == tokenGeneration else { return }
        wasAlerted = true
        row.badgeShown = WakePolicy.badgeUnknown
    }

    /// A request that APNs calls wrong is not repeated; the device is told another way.
    private mutating func givenUp(_ kind: PushKind, now: Timestamp) -> [WakeAction] {
        let rejected = WakeAction.note(row.flightWake, .outcome(.rejected))
        switch kind {
        case .silent:
            guard row.phase == .sending else { return [rejected] }
            if row.isSynced {
                afterSync(now: now)
                return [rejected]
            }
            forgetWake()
            return [rejected, .alertPending]
        case .alert:
            alertStayed()
            return [rejected, .settleAlert(row.flightMessage, .refused)]
        case .badge: return [rejected]
        case .campaign: return [settleCampaign(.refused)]
        }
    }
}
