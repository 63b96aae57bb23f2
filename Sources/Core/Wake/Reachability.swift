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
/// | session gone, only useful changes missing | wake due | raise | raise | raise | probe |
/// | service was away | - | - | - | due again, no no-show | - |
/// | service has started, was hardly away | - | - | - | deadline later by as much | - |
/// | token gone | tokenless in any state: nothing is owed any more | | | | |
public struct Reachability: Equatable, Sendable {
    /// The app's, with the grace and the budget that this device has.
    public var policy: WakePolicy {
        var own = appPolicy
        own.grace = habit.grace(appPolicy, app: appGrace)
        own.silentBudget = habit.silentBudget(appPolicy)
        return own
    }
    public let appPolicy: WakePolicy
    /// What the app's devices have learned of grace, for one that knows too little itself; `nil`:
    /// nothing. It need be known only where a wake is under way.
    public var appGrace: Milliseconds?
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
        appGrace: Milliseconds? = nil,
        heardAt: Timestamp = Timestamp(milliseconds: .max >> 1), row: WakeRecord
    ) {
        appPolicy = policy
        self.appGrace = appGrace
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
        if isUnreachable || isRefreshOff || isGone(now: now) || isDoubted(now: now) {
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
        var actions: [WakeAction] = []
        if let cause, cause == row.wake, row.connectedAt == nil, row.phase != .none {
            actions = came(cause, after: row.waitingSince.map { now.since($0) } ?? 0)
        }

        guard let wake = row.wake, row.connectedAt == nil else { return actions }
        switch row.phase {
        case .none: return actions
        case .due, .sending: row.connectedAt = now
        case .waiting:
            row.connectedAt = now
            row.graceUntil = now + policy.runTime
        }
        reschedule(now: now)
        return actions + [.note(wake, .connected)]
    }

    /// The app's `applied` rose or a sync of it was completed.
    public mutating func synced(
        applied: UInt64, isComplete: Bool, now: Timestamp
    ) -> [WakeAction] {
        var actions: [WakeAction] = []
        self.applied = applied
        if isComplete {
            if isUnreachable { actions.append(.recovered) }
            // Where doubt counts, that a user opens the app says nothing of silent pushes.
            if isUnreachable, appPolicy.adaptive.doubtMisses == 0 { habit.forgive() }
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
        reschedule(now: now)
        return actions
    }

    // MARK: Claims

    /// What a claim at `now` would be for. The caller finds out the facts it needs and calls one
    /// of the three below; they may send nothing, and leave another need.
    public func need(now: Timestamp) -> WakeNeed? {
        guard row.flight == nil, row.notBefore <= now else { return nil }
        if row.alertsQueued > 0, let due = row.urgentDue, due <= now { return .alert }
        if row.phase == .due, max(row.wakeDue, row.wakeNotBefore) <= now { return .wake }
        if row.alertsQueued > 0, max(row.alertDue, row.alertNotBefore) <= now { return .alert }
        if let badgeDue = row.badgeDue, badgeDue <= now { return .badge }
        return nil
    }

    /// - Parameters:
    ///   - isBehind: an uncovered, unread visible entry exists, or may exist.
    ///   - isSure: one was found. What only may be there spends what useful changes may spend, and
    ///     nobody is given up for it.
    public mutating func claimWake(
        isBehind: Bool, isSure: Bool = true, claim: Claim, now: Timestamp
    ) -> [WakeAction] {
        precondition(row.phase == .due && row.flight == nil, "no wake is due: \(row)")
        guard let generation = tokenGeneration, isBehind || row.usefulTarget > applied,
            !isSessionCounted
        else {
            return dropWake(.superseded, now: now)
        }
        if isBehind, isSure {
            if isUnreachable || isRefreshOff || isGone(now: now) || isDoubted(now: now) {
                return dropWake(.superseded, now: now) + [.alertPending]
            }
            switch budget.verdict(now: now, policy: policy) {
            case .wait(let until):
                row.wakeNotBefore = until
                reschedule(now: now)
                return []
            case .exhausted: return dropWake(.superseded, now: now) + [.alertPending]
            case .allowed: break
            }
        } else {
            guard !isRefreshOff, let due = usefulDue(now: now) else {
                return dropWake(.superseded, now: now)
            }
            if due > now {
                // Not in `wakeNotBefore`: a visible change meanwhile need not wait for it.
                row.wakeDue = due
                reschedule(now: now)
                return []
            }
        }
        row.isUsefulOnly = !(isBehind && isSure)
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
            reschedule(now: now)
            return []
        }
        if isSessionCounted, !choice.isUrgent, !choice.isTimed {
            putOffAlerts(until: now + WakePolicy.connectedDelay, now: now)
            return []
        }
        if isQuiet(before: choice.waitsSince) { row.alertBurst = 0 }
        row.alertBurst += 1
        row.hourAlerts = alertsThisHour(now: now) + 1
        if row.hourAlerts == 1 { row.hourSince = now }
        let wake = choice.id ?? claim.id
        // An urgent alert is held for its own faults, and not for those of pushes before it.
        if choice.isUrgent, !choice.goesOn, wake != row.flightWake { row.failures = RefusalCount() }
        row.flightMessage = choice.message
        row.flightBadge = unread
        row.alertsQueued = row.alertsQueued > 0 ? row.alertsQueued - 1 : 0
        take(
            .alert, choice.isUrgent ? .urgent : .plain, id: wake, generation: generation,
            claim: claim, now: now)
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
            reschedule(now: now)
            return []
        }
        row.flightBadge = unread
        take(.badge, id: claim.id, generation: generation, claim: claim, now: now)
        return [.note(claim.id, .sent(.badge, badge: unread)), .send(.badge)]
    }

    // MARK: Tokens

    /// The token is gone: logout, removal, another device, or APNs said so.
    public mutating func tokenDetached(now: Timestamp) -> [WakeAction] {
        tokenGeneration = nil
        isTokenProven = false
        isUnreachable = false
        wasAlerted = false
        row.badgeDue = nil
        row.alertsQueued = 0
        row.alertsOpen = 0
        row.alertsFolded = 0
        return dropWake(.superseded, now: now) + [.dropAlerts]
    }

    /// A new token: what was missed was missed by the old one, and what was sent to that one may
    /// never arrive.
    public mutating func tokenRegistered(generation: UInt64, now: Timestamp) -> [WakeAction] {
        tokenGeneration = generation
        tokenConfirmedAt = now
        isTokenProven = false
        isUnreachable = false
        row.notBefore = .zero
        row.alertNotBefore = .zero
        row.unanswered = 0
        row.failures = RefusalCount()
        var actions: [WakeAction] = []
        if row.phase == .sending || row.phase == .waiting {
            actions = dropWake(.superseded, now: now)
            newWake(now: now)
        }
        reschedule(now: now)
        return actions
    }
}

// MARK: The row

extension Reachability {
    mutating func oweWake(_ change: VisibleChange, now: Timestamp) {
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
        reschedule(now: now)
    }

    mutating func newWake(now: Timestamp) {
        forgetWake()
        row.phase = .due
        row.wakeDue = now
    }

    /// What came after the push goes on: the session's row is its record, or a wake of its own.
    mutating func afterSync(now: Timestamp) {
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

    mutating func dropWake(_ outcome: WakeOutcome, now: Timestamp) -> [WakeAction] {
        var actions: [WakeAction] = []
        if let wake = row.wake, row.phase != .none, !row.isSynced {
            actions = [.note(wake, .outcome(outcome))]
        }
        forgetWake()
        reschedule(now: now)
        return actions
    }

    /// - Parameter turn: of the push that leaves: what is next may be another by now.
    mutating func take(
        _ kind: PushKind, _ turn: PushTurn = .plain, id: WakeID, generation: UInt64,
        claim: Claim, now: Timestamp
    ) {
        row.flight = kind
        row.flightWake = id
        row.flightGeneration = generation
        row.owner = claim.owner
        row.lease = now + WakePolicy.lease
        row.attempt += 1
        row.turn = turn
        reschedule(now: now)
    }

    /// An urgent alert that was to wait beside what was due before it may leave: it is next now.
    public mutating func urgentTurnCame(now: Timestamp) { reschedule(now: now) }

    /// Derives `due` and `deadline`, and the queue in which the row waits.
    ///
    /// Of what may leave now the urgent alert decides the queue, however long the others wait: it
    /// stands behind no other device's. One that may leave later than they is looked at again then.
    mutating func reschedule(now: Timestamp) {
        if row.phase == .none, row.flight == nil { row.wakeNotBefore = .zero }
        if row.alertsQueued == 0 { row.urgentDue = nil }
        let needs = row.flight == nil ? self.needs : []
        let next = needs.min {
            (max($0.due, now), $0.turn, $0.due, $0.lane)
                < (max($1.due, now), $1.turn, $1.due, $1.lane)
        }
        row.due = next?.due
        if let next {
            row.lane = isTokenProven ? next.lane : .probe
            row.turn = next.turn
        }
        var deadlines: [Timestamp] = []
        if row.flight != nil, let lease = row.lease { deadlines.append(lease) }
        if row.phase == .waiting, let grace = row.graceUntil { deadlines.append(grace) }
        if next?.turn == .plain {
            deadlines += needs.filter { $0.turn == .urgent }.map(\.due)
        }
        row.deadline = deadlines.min()
    }

    private struct Need {
        var due: Timestamp
        let turn: PushTurn
        let lane: PushClass
    }

    /// What waits, and when each of it may leave.
    private var needs: [Need] {
        var needs: [Need] = []
        if row.phase == .due {
            needs.append(
                Need(due: max(row.wakeDue, row.wakeNotBefore), turn: .plain, lane: .wake))
        }
        if row.alertsQueued > 0 {
            needs.append(
                Need(due: max(row.alertDue, row.alertNotBefore), turn: .plain, lane: .alert))
            if let due = row.urgentDue {
                needs.append(Need(due: due, turn: .urgent, lane: .alert))
            }
        }
        if let due = row.badgeDue { needs.append(Need(due: due, turn: .plain, lane: .badge)) }
        for index in needs.indices { needs[index].due = max(needs[index].due, row.notBefore) }
        return needs
    }
}
