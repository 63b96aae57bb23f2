public import Model

// MARK: Times without a push

extension Reachability {
    /// Grace is over. `isBehind` as for `claimWake`.
    public mutating func graceEnded(isBehind: Bool, now: Timestamp) -> [WakeAction] {
        guard row.phase == .waiting, let until = row.graceUntil, until <= now else { return [] }
        guard tokenGeneration != nil else { return dropWake(.superseded) }
        if row.isUsefulOnly { return usefulEnded(isBehind: isBehind, now: now) }
        guard isBehind else { return dropWake(.superseded) }
        if row.connectedAt != nil || isSessionCounted {
            return dropWake(.connectedNotSynced) + [.alertPending]
        }
        habit.ended(missed: true, policy: appPolicy)
        guard habit.isDemoted(by: appPolicy.adaptive) else {
            // Missed, and not given up: what it was for is told all the same.
            return dropWake(.noShow) + [.alertPending]
        }
        isUnreachable = true
        return dropWake(.noShow) + [.demoted, .alertPending]
    }

    /// The service could not answer for a while in which the app may have come: that is no
    /// no-show of the device.
    public mutating func serviceWasAway(now: Timestamp) -> [WakeAction] {
        guard row.phase == .waiting else { return [] }
        let actions = row.wake.map { [WakeAction.note($0, .outcome(.expired))] } ?? []
        newWake(now: now)
        reschedule()
        return actions
    }

    /// A process has started; the one before it was last known alive at `lastAlive`, not so long
    /// ago that the service counts as away. Grace counts only while somebody could answer: what
    /// was left of it then is left now.
    public mutating func serviceStarted(lastAlive: Timestamp, now: Timestamp) {
        guard row.phase == .waiting, let until = row.graceUntil else { return }
        let counted = max(lastAlive, row.waitingSince ?? .zero, row.connectedAt ?? .zero)
        row.graceUntil = max(until, now + until.since(counted))
        reschedule()
    }

    /// The credential cannot send: look again at `time`.
    public mutating func putOff(until time: Timestamp) {
        row.notBefore = max(row.notBefore, time)
        reschedule()
    }

    /// The store's clock was set back: nothing waits for longer than it would have from now.
    public mutating func clockSetBack(now: Timestamp) {
        row.wakeDue = min(row.wakeDue, now)
        row.wakeNotBefore = min(row.wakeNotBefore, now + policy.silentSpacing)
        row.notBefore = min(row.notBefore, now + PushAnswer.longDelay)
        row.alertDue = min(row.alertDue, now + PushAnswer.longDelay)
        row.badgeDue = row.badgeDue.map { min($0, now + PushAnswer.longDelay) }
        row.lastAlertAt = min(row.lastAlertAt, now)
        row.lease = row.lease.map { min($0, now + WakePolicy.lease) }
        row.graceUntil = row.graceUntil.map { min($0, now + policy.grace) }
        reschedule()
    }
}
