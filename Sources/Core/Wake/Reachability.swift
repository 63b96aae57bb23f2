public import Model

/// One device's reachability, and what it is owed in pushes. Pure: facts and `now` in, actions
/// out; the durable half is `row`, the rest are facts of the device read for this step.
///
/// ```
///                  session opens                   silent push accepted
///   +--------+  <--------------  +----------+  ------------------------>  +------------------+
///   | online |  -------------->  | wakeable |  <---- synced -----------   | waking (deadline)|
///   +--------+   expected until  +----------+                             +------------------+
///       ^                                                                   | no-show: demotion
///       |   completed sync of the app, from any state    +-------------+    |
///       +---------------------------------------------   | unreachable | <--+
///                                                        +-------------+
///   tokenless: only a connection helps; a new token leads to wakeable
/// ```
///
/// | event | wakeable, nothing owed | wake due | sending | waiting | unreachable |
/// |---|---|---|---|---|---|
/// | visible change, no session counts | wake due | raise | raise | raise | alert |
/// | urgent change | alert; beside a session a little later | | | | alert |
/// | useful change, no session counts | wake due | raise | raise | raise | probe |
/// | visible change moved up | - | raise | raise | raise | - |
/// | visible change, a session counts; invisible change | - | - | - | - | - |
/// | claim, behind | | send, or put off, or alert at once | | | alerts |
/// | claim, not behind or a session counts | | drop | | | drop |
/// | accepted | | | waiting; synced before: done | | |
/// | no answer, retry later | | | due again | | |
/// | dead token | | | tokenless | | |
/// | HELLO | | | remember | deadline once to + run time | - |
/// | deadline, behind | | | | no-show: demote, alert; connected: alert | |
/// | deadline, not behind | | | | superseded | |
/// | `applied` reaches what was sent | | drop | remember | synced | |
/// | completed sync | recover in any state | | | | recovered |
/// | session gone, behind | wake due | due now | raise | raise | wake due |
/// | service was away | - | - | - | due again, no no-show | - |
/// | service has started, was hardly away | - | - | - | deadline later by as much | - |
/// | token gone | tokenless in any state: nothing is owed any more | | | | |
public struct Reachability: Equatable, Sendable {
    /// The app's, with the grace and the budget that this device has.
    public var policy: WakePolicy {
        var own = appPolicy
        own.grace = habit.grace(appPolicy)
        own.silentBudget = habit.silentBudget(appPolicy)
        return own
    }
    let appPolicy: WakePolicy
    /// Of the token the device holds; `nil`: none.
    public var tokenGeneration: UInt64?
    /// When a HELLO last presented the token.
    public var tokenConfirmedAt: Timestamp?
    /// APNs has accepted a push to the token.
    public var isTokenProven: Bool
    public var isUnreachable: Bool
    /// Alerts were sent that may still be on the screen, and a number on the icon.
    public var wasAlerted: Bool
    /// iOS does not wake the app for a silent push: alert at once.
    public var isRefreshOff: Bool
    /// A session of the app counts now.
    public var isSessionCounted: Bool
    /// The device's `applied`.
    public var applied: UInt64
    public var budget: SilentBudget
    public internal(set) var habit: WakeHabit
    /// When the device was last heard of, in whatever way.
    public var heardAt: Timestamp
    public internal(set) var row: WakeRecord

    public init(
        policy: WakePolicy, tokenGeneration: UInt64?, tokenConfirmedAt: Timestamp? = nil,
        isTokenProven: Bool = true, isUnreachable: Bool = false, wasAlerted: Bool = false,
        isRefreshOff: Bool = false,
        isSessionCounted: Bool = false, applied: UInt64 = 0,
        budget: SilentBudget = SilentBudget(), habit: WakeHabit = WakeHabit(),
        heardAt: Timestamp = Timestamp(milliseconds: .max >> 1), row: WakeRecord
    ) {
        appPolicy = policy
        self.tokenGeneration = tokenGeneration
        self.tokenConfirmedAt = tokenConfirmedAt
        self.isTokenProven = isTokenProven
        self.isUnreachable = isUnreachable
        self.wasAlerted = wasAlerted
        self.isRefreshOff = isRefreshOff
        self.isSessionCounted = isSessionCounted
        self.applied = applied
        self.budget = budget
        self.habit = habit
        self.heardAt = heardAt
        self.row = row
    }

    public var state: ReachabilityState {
        if isSessionCounted { return .online }
        if tokenGeneration == nil { return .tokenless }
        if isUnreachable { return .unreachable }
        return row.phase == .waiting ? .waking : .wakeable
    }

    /// Nothing is owed and nothing sent need be remembered: the row goes.
    public func isIdle(now: Timestamp) -> Bool {
        row.phase == .none && row.flight == nil && row.alertsOpen == 0 && row.alertsQueued == 0
            && row.badgeDue == nil && !wasAlerted && row.notBefore <= now
    }

    // MARK: Changes and sessions

    /// The feed grew by a visible entry. Invisible ones are not told: they wake nobody.
    public mutating func changed(
        _ change: VisibleChange, urgency: Urgency = .normal, now: Timestamp
    ) -> [WakeAction] {
        guard tokenGeneration != nil else { return [] }
        if urgency == .urgent {
            let due = isSessionCounted ? now + WakePolicy.urgentDelay : now
            return [.queueAlert(due: due, isUrgent: true)]
        }
        if isSessionCounted { return [] }
        if isUnreachable || isRefreshOff || isGone(now: now) {
            return [.queueAlert(due: now, isUrgent: false)]
        }
        oweWake(change, now: now)
        return []
    }

    /// The entry of a visible change that the device lacks moved up the feed: only there is it
    /// covered. Nothing is owed that was not.
    public mutating func moved(_ change: VisibleChange) {
        guard row.phase != .none else { return }
        if change.seq >= row.visibleTarget {
            row.conversation = change.conversation
            row.message = change.message
        }
        row.target = max(row.target, change.seq)
        row.visibleTarget = max(row.visibleTarget, change.seq)
    }

    /// The row of the app's session went and `change` is the newest the device has not seen:
    /// for an unreachable device too, whose wake becomes alerts when it is claimed.
    public mutating func sessionExpired(
        behind change: VisibleChange?, unread: UInt64, now: Timestamp
    ) -> [WakeAction] {
        guard tokenGeneration != nil, !isSessionCounted else { return [] }
        if let change { oweWake(change, now: now) }
        badgeMayBeWrong(unread: unread, now: now)
        return []
    }

    /// The app said HELLO, or a socket of it that survived counts again.
    ///
    /// - Parameter cause: the push that HELLO says has caused it.
    public mutating func connected(cause: WakeID? = nil, now: Timestamp) -> [WakeAction] {
        heardAt = max(now, heardAt)
        if let cause, cause == row.wake, row.connectedAt == nil, row.phase != .none {
            habit.came(after: row.waitingSince.map { now.since($0) } ?? 0)
        }

        guard let wake = row.wake, row.connectedAt == nil else { return [] }
        switch row.phase {
        case .none: return []
        case .due, .sending: row.connectedAt = now
        case .waiting:
            row.connectedAt = now
            row.graceUntil = now + policy.runTime
        }
        reschedule()
        return [.note(wake, .connected)]
    }

    /// The app's `applied` rose or a sync of it was completed.
    public mutating func synced(
        applied: UInt64, isComplete: Bool, now: Timestamp
    ) -> [WakeAction] {
        var actions: [WakeAction] = []
        self.applied = applied
        if isComplete {
            if isUnreachable { actions.append(.recovered) }
            if isUnreachable { habit.forgive() }
            isUnreachable = false
            wasAlerted = false
            row.badgeDue = nil
        } else if wasAlerted {
            // The app ran and set its icon to what it knew then.
            row.badgeShown = WakePolicy.badgeUnknown
        }
        if let wake = row.wake, !row.isSynced, applied >= row.sentTarget, row.phase != .none {
            actions += [.note(wake, .synced), .note(wake, .outcome(.synced))]
            row.isSynced = true
            habit.ended(missed: false, policy: appPolicy)
        }
        switch row.phase {
        case .none, .sending: break
        case .due where applied >= max(row.visibleTarget, row.usefulTarget): forgetWake()
        case .due where row.isSynced: newWake(now: now)
        case .due: break
        case .waiting where row.isSynced: afterSync(now: now)
        case .waiting: actions += connected(now: now)
        }
        reschedule()
        return actions
    }

    // MARK: Claims

    /// What a claim at `now` would be for. The caller finds out the facts it needs and calls one
    /// of the three below; they may send nothing, and leave another need.
    public func need(now: Timestamp) -> WakeNeed? {
        guard row.flight == nil, row.notBefore <= now else { return nil }
        if row.phase == .due, max(row.wakeDue, row.wakeNotBefore) <= now { return .wake }
        if row.alertsQueued > 0, row.alertDue <= now { return .alert }
        if let badgeDue = row.badgeDue, badgeDue <= now { return .badge }
        return nil
    }

    /// - Parameter isBehind: an uncovered, unread visible entry exists.
    public mutating func claimWake(isBehind: Bool, claim: Claim, now: Timestamp)
        -> [WakeAction]
    {
        precondition(row.phase == .due && row.flight == nil, "no wake is due: \(row)")
        guard let generation = tokenGeneration, isBehind || row.usefulTarget > applied,
            !isSessionCounted
        else {
            return dropWake(.superseded)
        }
        if isBehind {
            if isUnreachable || isRefreshOff || isGone(now: now) {
                return dropWake(.superseded) + [.alertPending]
            }
            switch budget.verdict(now: now, policy: policy) {
            case .wait(let until):
                row.wakeNotBefore = until
                reschedule()
                return []
            case .exhausted: return dropWake(.superseded) + [.alertPending]
            case .allowed: break
            }
        } else {
            guard !isRefreshOff, let due = usefulDue(now: now) else {
                return dropWake(.superseded)
            }
            if due > now {
                // Not in `wakeNotBefore`: a visible change meanwhile need not wait for it.
                row.wakeDue = due
                reschedule()
                return []
            }
        }
        row.isUsefulOnly = !isBehind
        budget.spend(now: now, policy: policy)
        let wake = row.wake ?? claim.id
        row.phase = .sending
        row.wake = wake
        row.silentAt = now
        row.sentTarget = row.target
        row.isSynced = false
        row.connectedAt = nil
        take(.silent, id: wake, generation: generation, claim: claim, now: now)
        return [.note(wake, .sent(.silent, badge: nil)), .send(.silent)]
    }

    /// - Parameter choice: a queued alert that is neither covered nor read; `nil`: there is none.
    public mutating func claimAlert(
        _ choice: AlertChoice?, unread: UInt64, claim: Claim, now: Timestamp
    ) -> [WakeAction] {
        precondition(row.flight == nil, "a push is in flight: \(row)")
        guard let choice, let generation = tokenGeneration else {
            row.alertsQueued = 0
            reschedule()
            return []
        }
        if isSessionCounted, !choice.isUrgent {
            putOffAlerts(until: now + WakePolicy.connectedDelay)
            return []
        }
        if isQuiet(before: choice.waitsSince) { row.alertBurst = 0 }
        row.alertBurst += 1
        row.lastAlertAt = now
        let wake = choice.id ?? claim.id
        row.flightMessage = choice.message
        row.flightBadge = unread
        row.alertsQueued = row.alertsQueued > 0 ? row.alertsQueued - 1 : 0
        take(.alert, id: wake, generation: generation, claim: claim, now: now)
        return [.note(wake, .sent(.alert, badge: unread)), .send(.alert)]
    }

    public mutating func claimBadge(unread: UInt64, claim: Claim, now: Timestamp)
        -> [WakeAction]
    {
        precondition(row.flight == nil, "a push is in flight: \(row)")
        row.badgeDue = nil
        guard let generation = tokenGeneration, wasAlerted, !isSessionCounted,
            !isGone(now: now), unread != row.badgeShown
        else {
            reschedule()
            return []
        }
        row.flightBadge = unread
        take(.badge, id: claim.id, generation: generation, claim: claim, now: now)
        return [.note(claim.id, .sent(.badge, badge: unread)), .send(.badge)]
    }

    // MARK: Tokens

    /// The token is gone: logout, removal, another device, or APNs said so.
    public mutating func tokenDetached() -> [WakeAction] {
        tokenGeneration = nil
        isTokenProven = false
        isUnreachable = false
        wasAlerted = false
        row.badgeDue = nil
        row.alertsQueued = 0
        row.alertsOpen = 0
        return dropWake(.superseded) + [.dropAlerts]
    }

    /// A new token: what was missed was missed by the old one, and what was sent to that one may
    /// never arrive.
    public mutating func tokenRegistered(generation: UInt64, now: Timestamp) -> [WakeAction] {
        tokenGeneration = generation
        tokenConfirmedAt = now
        isTokenProven = false
        isUnreachable = false
        row.notBefore = .zero
        var actions: [WakeAction] = []
        if row.phase == .sending || row.phase == .waiting {
            actions = dropWake(.superseded)
            newWake(now: now)
        }
        reschedule()
        return actions
    }
}

// MARK: Answers

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
                status: status, reason: reason, timestamp: timestamp, failures: row.failures,
                kind: kind, retryAfter: retryAfter)
            if keepsToken, case .deadToken = answer { answer = .pauseCredential }
            if answer != .accepted {
                actions.append(
                    .note(row.flightWake, .refused(status: status, reason: reason)))
            }
        case .unanswered: answer = .retryLater(after: WakePolicy.unansweredDelay, step: .none)
        case .notSent: answer = .retryLater(after: WakePolicy.unsentDelay, step: .none)
        }
        // The device was not sent anything: the token is not spent. Unanswered, it may have been.
        if kind == .silent, reply != .unanswered, answer != .accepted {
            budget.refund(row.silentAt)
        }
        if case .answered = reply, case .retryLater = answer {
            row.failures += 1
        } else if reply != .notSent {
            row.failures = 0
        }
        switch answer {
        case .accepted: actions += accepted(kind, unread: unread, now: now)
        case .deadToken(let since): actions += tokenDied(kind, since, isCurrent, now: now)
        case .retryLater(let after, _):
            if case .answered = reply { row.notBefore = now + after }
            actions += retry(kind, at: now + after, now: now)
        case .pauseCredential, .pauseTopic:
            actions += retry(kind, at: now + WakePolicy.pausedDelay, now: now)
        case .ourBug: actions += givenUp(kind, now: now)
        }
        reschedule()
        return actions
    }

    /// Nobody finished the push within its lease: the process that sent it is gone.
    public mutating func leaseEnded(now: Timestamp) -> [WakeAction] {
        guard row.flight != nil, let lease = row.lease, lease <= now, let owner = row.owner
        else { return [] }
        return pushAnswered(
            .unanswered, owner: owner, attempt: row.attempt, unread: row.badgeShown, now: now)
    }

    /// The process that sent the push is known to be gone: its answer is not waited for longer
    /// than APNs may take.
    public mutating func ownerGone(now: Timestamp) {
        guard row.flight != nil, let lease = row.lease else { return }
        row.lease = min(lease, now + WakePolicy.unansweredDelay)
        reschedule()
    }

    private mutating func accepted(_ kind: PushKind, unread: UInt64, now: Timestamp)
        -> [WakeAction]
    {
        row.notBefore = .zero
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

    private mutating func tokenDied(
        _ kind: PushKind, _ since: Timestamp?, _ isCurrent: Bool, now: Timestamp
    ) -> [WakeAction] {
        var actions: [WakeAction] = [.note(row.flightWake, .outcome(.rejected))]
        let isOlder = since.map { $0 > tokenConfirmedAt ?? .zero } ?? true
        if isCurrent && isOlder {
            if kind == .campaign { actions.append(settleCampaign(.refused)) }
            return actions + [.detachToken] + tokenDetached()
        }
        // Another token by now, or the same one presented after APNs' time of death.
        actions += retry(kind, at: now + (isCurrent ? 15 * 60_000 : 0), now: now)
        return actions
    }

    private mutating func retry(_ kind: PushKind, at due: Timestamp, now: Timestamp)
        -> [WakeAction]
    {
        switch kind {
        case .silent:
            guard row.phase == .sending else { return [] }
            if row.isSynced {
                afterSync(now: now)
            } else {
                row.phase = .due
                row.wakeDue = due
            }
            return []
        case .alert:
            row.alertDue = due
            row.alertBurst = row.alertBurst > 0 ? row.alertBurst - 1 : 0
            return [.settleAlert(row.flightMessage, .queuedAgain)]
        case .badge:
            row.badgeDue = due
            return []
        case .campaign: return [settleCampaign(.queuedAgain(due: due))]
        }
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
        case .alert: return [rejected, .settleAlert(row.flightMessage, .refused)]
        case .badge: return [rejected]
        case .campaign: return [settleCampaign(.refused)]
        }
    }
}

// MARK: The row

extension Reachability {
    private mutating func oweWake(_ change: VisibleChange, now: Timestamp) {
        if change.seq >= row.visibleTarget {
            row.conversation = change.conversation
            row.message = change.message
        }
        row.target = max(row.target, change.seq)
        row.visibleTarget = max(row.visibleTarget, change.seq)
        switch row.phase {
        case .none: newWake(now: now)
        case .due: row.wakeDue = min(row.wakeDue, now)
        case .sending, .waiting: break
        }
        if row.phase == .due {
            // It goes before them, not with them in their queue.
            if row.alertsQueued > 0 { row.alertDue = max(row.alertDue, row.wakeDue) }
            row.badgeDue = row.badgeDue.map { max($0, row.wakeDue) }
        }
        reschedule()
    }

    mutating func newWake(now: Timestamp) {
        forgetWake()
        row.phase = .due
        row.wakeDue = now
    }

    /// What came after the push goes on: the session's row is its record, or a wake of its own.
    private mutating func afterSync(now: Timestamp) {
        if max(row.visibleTarget, row.usefulTarget) > applied, !isSessionCounted {
            newWake(now: now)
        } else {
            forgetWake()
        }
    }

    mutating func forgetWake() {
        row.phase = .none
        row.wake = nil
        row.waitingSince = nil
        row.graceUntil = nil
        row.connectedAt = nil
        row.isSynced = false
        row.isUsefulOnly = false
    }

    mutating func dropWake(_ outcome: WakeOutcome) -> [WakeAction] {
        var actions: [WakeAction] = []
        if let wake = row.wake, row.phase != .none, !row.isSynced {
            actions = [.note(wake, .outcome(outcome))]
        }
        forgetWake()
        reschedule()
        return actions
    }

    mutating func take(
        _ kind: PushKind, id: WakeID, generation: UInt64, claim: Claim, now: Timestamp
    ) {
        row.flight = kind
        row.flightWake = id
        row.flightGeneration = generation
        row.owner = claim.owner
        row.lease = now + WakePolicy.lease
        row.attempt += 1
        reschedule()
    }

    /// Derives `due` and `deadline`.
    mutating func reschedule() {
        if row.phase == .none, row.flight == nil { row.wakeNotBefore = .zero }
        var needs: [(due: Timestamp, lane: PushClass)] = []
        if row.phase == .due { needs.append((max(row.wakeDue, row.wakeNotBefore), .wake)) }
        if row.alertsQueued > 0 { needs.append((row.alertDue, .alert)) }
        if let badgeDue = row.badgeDue { needs.append((badgeDue, .badge)) }
        let next =
            row.flight == nil
            ? needs.map { (due: max($0.due, row.notBefore), lane: $0.lane) }.min { $0 < $1 } : nil
        row.due = next?.due
        if let next { row.lane = isTokenProven ? next.lane : .probe }
        var deadlines: [Timestamp] = []
        if row.flight != nil, let lease = row.lease { deadlines.append(lease) }
        if row.phase == .waiting, let grace = row.graceUntil { deadlines.append(grace) }
        row.deadline = deadlines.min()
    }
}
