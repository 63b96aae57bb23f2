public import Model

// MARK: Times without a push

extension Reachability {
    /// Grace is over. `isBehind` as for `claimWake`.
    public mutating func graceEnded(isBehind: Bool, now: Timestamp) -> [WakeAction] {
        guard row.phase == .waiting, let until = row.graceUntil, until <= now else { return [] }
        guard tokenGeneration != nil else { return dropWake(.superseded, now: now) }
        if row.isUsefulOnly { return usefulEnded(isBehind: isBehind, now: now) }
        guard isBehind else { return dropWake(.superseded, now: now) }
        if row.connectedAt != nil || isSessionCounted {
            return dropWake(.connectedNotSynced, now: now) + [.alertPending]
        }
        habit.ended(missed: true, policy: appPolicy)
        guard habit.isDemoted(by: appPolicy.adaptive) else {
            // Missed, and not given up: what it was for is told all the same.
            return dropWake(.noShow, now: now) + [.alertPending]
        }
        isUnreachable = true
        return dropWake(.noShow, now: now) + [.demoted, .alertPending]
    }

    /// The service could not answer for a while in which the app may have come: that is no
    /// no-show of the device.
    public mutating func serviceWasAway(now: Timestamp) -> [WakeAction] {
        guard row.phase == .waiting else { return [] }
        let actions = row.wake.map { [WakeAction.note($0, .outcome(.expired))] } ?? []
        newWake(now: now)
        reschedule(now: now)
        return actions
    }

    /// A process has started; the one before it was last known alive at `lastAlive`, not so long
    /// ago that the service counts as away. Grace counts only while somebody could answer: what
    /// was left of it then is left now.
    public mutating func serviceStarted(lastAlive: Timestamp, now: Timestamp) {
        guard row.phase == .waiting, let until = row.graceUntil else { return }
        let counted = max(lastAlive, row.waitingSince ?? .zero, row.connectedAt ?? .zero)
        row.graceUntil = max(until, now + until.since(counted))
        reschedule(now: now)
    }

    /// Nothing is to be sent to the device: look again at `time`. Apart from what APNs asks for, so
    /// that this one's end is not that one's.
    public mutating func putOff(until time: Timestamp, now: Timestamp) {
        if row.phase == .due { row.wakeNotBefore = max(row.wakeNotBefore, time) }
        row.alertNotBefore = max(row.alertNotBefore, time)
        row.urgentDue = row.urgentDue.map { max($0, time) }
        row.badgeDue = row.badgeDue.map { max($0, time) }
        reschedule(now: now)
    }

    /// What `putOff` waits for has come. A fault of APNs that something waited for may be over, and
    /// is met again if it is not.
    public mutating func resumed(now: Timestamp) {
        row.wakeNotBefore = min(row.wakeNotBefore, now)
        row.alertNotBefore = min(row.alertNotBefore, now)
        row.urgentDue = row.urgentDue.map { min($0, now) }
        row.badgeDue = row.badgeDue.map { min($0, now) }
        reschedule(now: now)
    }

    /// Nothing waits longer than this for its moment after the store's clock was set back: then
    /// it is decided again.
    public static let setBackWait: Milliseconds = 5_000

    /// The store's clock was set back to `moment`: what waits for a time of the other clock is
    /// decided again now. Answers to pushes in flight are waited for as long as ever, and who APNs
    /// asked to leave alone is left alone as long as ever.
    public mutating func clockSetBack(to moment: Timestamp) {
        let soon = moment + Self.setBackWait
        row.wakeDue = min(row.wakeDue, moment)
        row.wakeNotBefore = min(row.wakeNotBefore, soon)
        row.notBefore = min(row.notBefore, moment + row.notBefore.since(row.writtenAt))
        row.alertDue = min(row.alertDue, moment)
        row.alertNotBefore = min(row.alertNotBefore, soon)
        row.urgentDue = row.urgentDue.map { min($0, soon) }
        row.badgeDue = row.badgeDue.map { min($0, soon) }
        row.lease = row.lease.map { min($0, moment + WakePolicy.lease) }
        row.graceUntil = row.graceUntil.map { min($0, moment + policy.grace) }
        mendClock(now: moment)
        // What stands here now is of this clock.
        row.writtenAt = moment
        reschedule(now: moment)
    }

    /// What is remembered of a time that is still to come was written by a clock that was ahead:
    /// it is taken as of now, so that nothing counts from then.
    public mutating func mendClock(now: Timestamp) {
        budget.mendClock(now: now)
        row.silentAt = min(row.silentAt, now)
        row.lastAlertAt = min(row.lastAlertAt, now)
        row.hourSince = min(row.hourSince, now)
        row.waitingSince = row.waitingSince.map { min($0, now) }
        row.connectedAt = row.connectedAt.map { min($0, now) }
        // Not known: what APNs says of the token holds.
        if let confirmed = tokenConfirmedAt, confirmed > now { tokenConfirmedAt = nil }
    }
}
