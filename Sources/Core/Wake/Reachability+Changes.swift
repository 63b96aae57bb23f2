public import Model

// MARK: Useful changes

extension Reachability {
    /// The feed grew by an entry that the app would like to know of: a passive message, or
    /// something it may be showing that is read or gone.
    ///
    /// - Parameter change: at its place in the feed; its message is the one that came, or that is
    ///   read or gone.
    public mutating func usefulCame(_ change: VisibleChange, now: Timestamp) {
        guard tokenGeneration != nil, !isSessionCounted, !isRefreshOff, !isGone(now: now)
        else { return }
        let seq = change.seq
        // A visible change that waits is what the push is for.
        if row.phase == .none || row.visibleTarget <= applied {
            row.conversation = change.conversation
            row.message = change.message
        }
        row.target = max(row.target, seq)
        row.usefulTarget = max(row.usefulTarget, seq)
        guard row.phase == .none else { return }
        newWake(now: now)
        guard let due = usefulDue(now: now) else { return forgetWake() }
        row.wakeDue = due
        reschedule(now: now)
    }

    /// When a silent push may leave for useful changes alone; `nil`: never.
    func usefulDue(now: Timestamp) -> Timestamp? {
        if !isUnreachable, !isDoubted(now: now) {
            return budget.spareTime(now: now, policy: policy)
        }
        guard policy.silentBudget > 0 else { return nil }
        if !isUnreachable {
            return max(now, budget.last.map { $0 + appPolicy.adaptive.doubtRetry } ?? now)
        }
        return max(now, budget.last.map { $0 + WakePolicy.probeDelay } ?? now)
    }

    /// Nothing anybody would see was told: that is no reason to give the device up. But what came
    /// meanwhile need not try the same again: it is alerted.
    mutating func usefulEnded(isBehind: Bool, now: Timestamp) -> [WakeAction] {
        let came = row.connectedAt != nil || isSessionCounted
        let actions = dropWake(came ? .connectedNotSynced : .noShow, now: now)
        return isBehind && !isSessionCounted ? actions + [.alertPending] : actions
    }
}

// MARK: The rate of alerts

extension Reachability {
    /// How the next alert leaves, unless it is urgent. A burst begins anew with the first alert
    /// that nothing held back after a quiet minute.
    ///
    /// - Parameter oldest: when the alert that waits longest was queued.
    public func alertPace(oldest: Timestamp) -> AlertPace {
        row.alertBurst < WakePolicy.alertBurst || isQuiet(before: oldest) ? .single : .summary
    }

    /// The device has not been heard of for so long that it is presumed gone.
    public func isGone(now: Timestamp) -> Bool {
        let after = appPolicy.adaptive.goneAfter
        return after > 0 && !isSessionCounted && heardAt + after <= now
    }

    /// It missed so many of its last wakes that another is tried only once in a while.
    public func isDoubted(now: Timestamp) -> Bool {
        guard habit.isDoubted(by: appPolicy.adaptive), let last = budget.last else { return false }
        return now < last + appPolicy.adaptive.doubtRetry
    }

    /// When a device that is presumed gone may get its next alert.
    public func goneAlertDue(now: Timestamp) -> Timestamp {
        max(now, row.lastAlertAt + AdaptivePolicy.goneInterval)
    }

    /// Alerts that left in the present hour.
    func alertsThisHour(now: Timestamp) -> UInt64 {
        now < row.hourSince + WakePolicy.hour ? row.hourAlerts : 0
    }

    /// When the next alert may leave for the whole device, so many left in this hour; `nil`:
    /// conversations have their own still.
    func wholeAlertDue(now: Timestamp) -> Timestamp? {
        let count = alertsThisHour(now: now)
        guard count >= WakePolicy.hourAlerts, !isSessionCounted else { return nil }
        let delay =
            count >= WakePolicy.hourAlertsMax ? WakePolicy.hourDelay : WakePolicy.summaryDelay
        return max(now, row.lastAlertAt + delay)
    }

    /// HELLO named a push whose grace was over: it came after all.
    public mutating func cameLate(_ wake: WakeID, after latency: Milliseconds) -> [WakeAction] {
        came(wake, after: latency)
    }

    /// A wake brought the app: the device learns from it, and so may the others of its app.
    mutating func came(_ wake: WakeID, after latency: Milliseconds) -> [WakeAction] {
        habit.came(after: latency)
        return appPolicy.adaptive.graceQuantile > 0 ? [.came(wake, after: latency)] : []
    }

    /// APNs took no alert in the minute before `time`.
    func isQuiet(before time: Timestamp) -> Bool {
        time >= row.lastAlertAt + WakePolicy.summaryDelay
    }

    /// An urgent alert waits: it goes before all that do not.
    public mutating func urgentCame(due: Timestamp, now: Timestamp) {
        row.urgentDue = row.urgentDue.map { min($0, due) } ?? due
        reschedule(now: now)
    }

    /// When the first of the urgent alerts that wait may leave; `nil`: none waits.
    public mutating func urgentWait(until time: Timestamp?, now: Timestamp) {
        row.urgentDue = time
        reschedule(now: now)
    }

    /// No urgent alert waits any more.
    public mutating func noUrgentWaits(now: Timestamp) {
        guard row.urgentDue != nil else { return }
        row.urgentDue = nil
        reschedule(now: now)
    }

    /// Urgent alerts wait, and none of them may leave before `time`.
    public mutating func putOffUrgent(until time: Timestamp, now: Timestamp) {
        guard row.urgentDue != nil else { return }
        row.urgentDue = time
        reschedule(now: now)
    }

    /// Alerts wait, and none may leave before `time`.
    public mutating func putOffAlerts(until time: Timestamp, now: Timestamp) {
        row.alertDue = time
        reschedule(now: now)
    }
}

extension WakeRecord {
    /// Until when an alert that waits has to.
    public func alertMoment(isUrgent: Bool) -> Timestamp {
        let own = isUrgent ? urgentDue ?? alertDue : max(alertDue, alertNotBefore)
        return max(own, notBefore)
    }
}

// MARK: Alerts and badges

extension Reachability {
    /// Alert rows were written, settled or closed by the caller: how their numbers changed.
    public mutating func alertsChanged(
        queued: Int, open: Int, due: Timestamp? = nil, now: Timestamp
    ) {
        func sum(_ count: UInt64, _ change: Int) -> UInt64 {
            change >= 0
                ? count + UInt64(change)
                : count - min(count, UInt64(change.magnitude))
        }
        row.alertsQueued = sum(row.alertsQueued, queued)
        row.alertsOpen = sum(row.alertsOpen, open)
        if let due { row.alertDue = due }
        reschedule(now: now)
    }

    /// The row of an open alert went, for there are too many; it is counted on.
    public mutating func folded(upTo seq: UInt64) {
        row.alertsFolded += 1
        row.foldedThrough = max(row.foldedThrough, seq)
    }

    /// The app has everything up to `applied`: what was folded below it is not open any more.
    public mutating func folded(coveredThrough applied: UInt64) {
        guard row.alertsFolded > 0, row.foldedThrough <= applied else { return }
        forgetFolded(keeping: 0)
    }

    /// At most so many can be unread yet: the folded ones are not known singly.
    public mutating func folded(unread: UInt64) {
        guard unread < row.alertsFolded, unread < UnreadCount.most else { return }
        forgetFolded(keeping: unread)
    }

    private mutating func forgetFolded(keeping kept: UInt64) {
        let gone = row.alertsFolded - kept
        row.alertsOpen -= min(row.alertsOpen, gone)
        row.alertsFolded = kept
    }

    /// The icon may show more than there is to read.
    public mutating func badgeMayBeWrong(unread: UInt64, now: Timestamp) {
        folded(unread: unread)
        if unread < row.badgeShown { oweBadge(now: now) }
    }

    /// An alert without an answer is nothing to alert of any more: it is not sent again, and may
    /// be on the screen all the same.
    public mutating func unansweredAlertWent(now: Timestamp) { oweBadge(now: now) }

    private mutating func oweBadge(now: Timestamp) {
        guard wasAlerted, tokenGeneration != nil, !isSessionCounted, row.badgeDue == nil
        else { return }
        row.badgeDue = now + WakePolicy.badgeDelay
        reschedule(now: now)
    }
}
