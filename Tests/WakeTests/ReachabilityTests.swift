import Model
import Testing
import Wake

@Suite struct ReachabilityTests {
    /// A wake in flight that the app outruns.
    private var sending: Reachability {
        .after {
            _ = $0.changed(change(10), now: start)
            _ = $0.claimWake(isBehind: true, claim: claim(1), now: start)
        }
    }

    @Test func syncBeforeTheAnswerEndsTheWakeWithIt() {
        var machine = sending
        _ = machine.synced(applied: 10, isComplete: true, now: start + 1)
        #expect(machine.answer(ok, now: start + 2) == [.note(wakeID(1), .accepted)])
        #expect(machine.row.phase == .none)
        #expect(machine.isIdle(now: start + 2))
    }

    @Test func whatCameAfterThePushGoesOnAsAWakeOfItsOwn() {
        var machine = sending
        _ = machine.changed(change(11), now: start + 1)
        _ = machine.answer(ok, now: start + 2)
        let actions = machine.synced(applied: 10, isComplete: false, now: start + 3)
        #expect(actions == [.note(wakeID(1), .synced), .note(wakeID(1), .outcome(.synced))])
        #expect(machine.row.phase == .due)
        #expect(machine.row.wake == nil)

        machine = sending
        _ = machine.changed(change(11), now: start + 1)
        _ = machine.answer(ok, now: start + 2)
        machine.isSessionCounted = true
        _ = machine.synced(applied: 10, isComplete: false, now: start + 3)
        #expect(machine.row.phase == .none)
    }

    @Test func helloDuringSendingLimitsGraceToTheRunTime() {
        var machine = sending
        _ = machine.connected(now: start + 1_000)
        _ = machine.answer(ok, now: start + 2_000)
        #expect(machine.row.deadline == start + 31_000)
        let actions = machine.graceEnded(isBehind: true, now: start + 31_000)
        #expect(actions == [.note(wakeID(1), .outcome(.connectedNotSynced)), .alertPending])
        #expect(!machine.isUnreachable)
    }

    @Test func helloMovesTheDeadlineOnce() {
        var machine = waiting
        _ = machine.connected(now: start + 10_000)
        #expect(machine.row.deadline == start + 40_000)
        _ = machine.connected(now: start + 20_000)
        #expect(machine.row.deadline == start + 40_000)
    }

    @Test func graceDoesNotEndEarly() {
        var machine = waiting
        #expect(machine.graceEnded(isBehind: true, now: start + 59_999).isEmpty)
        #expect(machine.state == .waking)
        _ = machine.graceEnded(isBehind: true, now: start + 60_000)
        #expect(machine.state == .unreachable)
    }

    @Test func aRetryKeepsItsIdAndSpendsAnotherToken() {
        var machine = sending
        _ = machine.answer(.unanswered, now: start + 10_000)
        #expect(machine.row.due == start + 15_000)
        // Less than a minute after the first: put off, not alerted.
        #expect(machine.claimWake(isBehind: true, claim: claim(2), now: start + 15_000).isEmpty)
        #expect(machine.row.due == start + 60_000)
        let actions = machine.claimWake(isBehind: true, claim: claim(2), now: start + 60_000)
        #expect(actions.contains(.send(.silent)))
        #expect(machine.row.flightWake == wakeID(1))
        #expect(machine.row.attempt == 2)
        #expect(machine.budget.times == [start, start + 60_000])
    }

    @Test func aRefusedPushGivesItsTokenBack() {
        var machine = sending
        _ = machine.answer(
            .answered(status: 503, reason: "Shutdown", timestamp: nil), now: start + 1)
        #expect(machine.budget.times == [])
        #expect(machine.row.due == start + 5_001)
    }

    @Test func withoutATokenLeftItAlertsAndStaysWakeable() {
        var machine = Reachability.fresh()
        for minute in 0..<3 {
            let now = start + UInt64(minute) * 60_000
            _ = machine.changed(change(UInt64(minute) + 1), now: now)
            _ = machine.claimWake(isBehind: true, claim: claim(UInt64(minute)), now: now)
            _ = machine.answer(ok, now: now)
            _ = machine.synced(applied: UInt64(minute) + 1, isComplete: true, now: now + 1)
        }
        _ = machine.changed(change(9), now: start + 180_000)
        let actions = machine.claimWake(isBehind: true, claim: claim(9), now: start + 180_000)
        #expect(actions == [.alertPending])
        #expect(machine.state == .wakeable)
        #expect(machine.row.phase == .none)
    }

    @Test func whatOnlyMayBeThereSpendsNoLastTokenAndGivesNobodyUp() {
        var machine = Reachability.fresh()
        _ = machine.changed(change(10), now: start)
        let sent = machine.claimWake(isBehind: true, isSure: false, claim: claim(1), now: start)
        #expect(sent.contains(.send(.silent)))
        _ = machine.answer(ok)
        // Grace is over, and nothing was found: no demotion, and no alert.
        let ended = machine.graceEnded(isBehind: false, now: start + 60_000)
        #expect(ended == [.note(wakeID(1), .outcome(.noShow))])
        #expect(machine.state == .wakeable)
        // The last token but one is spent; the last is for what is known to be there.
        for minute in 1...2 {
            let now = start + UInt64(minute) * 120_000
            _ = machine.changed(change(UInt64(minute) + 10), now: now)
            _ = machine.claimWake(isBehind: true, isSure: false, claim: claim(2), now: now)
            _ = machine.answer(ok, now: now)
            _ = machine.synced(applied: UInt64(minute) + 10, isComplete: true, now: now)
        }
        #expect(machine.budget.times.count == 2)
        _ = machine.changed(change(20), now: start + 400_000)
        let sure = machine.claimWake(
            isBehind: true, claim: claim(3), now: start + 400_000)
        #expect(sure.contains(.send(.silent)))
    }

    @Test func anAnswerToAnotherClaimIsIgnored() {
        var machine = sending
        let before = machine
        let attempt = machine.row.attempt
        #expect(
            machine.pushAnswered(
                ok, owner: otherBoot, attempt: attempt, unread: 0, now: start
            ).isEmpty)
        #expect(
            machine.pushAnswered(ok, owner: boot, attempt: attempt + 1, unread: 0, now: start)
                .isEmpty)
        #expect(machine == before)
    }

    @Test func aTokenPresentedAfterApnsBuriedItIsKept() {
        var machine = sending
        machine.tokenConfirmedAt = start
        let dead = PushReply.answered(status: 410, reason: "Unregistered", timestamp: start)
        let actions = machine.answer(dead, now: start + 1)
        #expect(!actions.contains(.detachToken))
        #expect(machine.row.phase == .due)
        #expect(machine.row.due == start + 1 + 15 * 60_000)
    }

    @Test("a death without a time that can be read is one of a quarter of an hour ago")
    func aDeathWithoutATimeDropsNoTokenOfTheMoment() {
        for told in [nil, Timestamp(milliseconds: .max)] {
            var machine = sending
            machine.tokenConfirmedAt = start
            let dead = PushReply.answered(status: 410, reason: "Unregistered", timestamp: told)
            #expect(!machine.answer(dead, now: start + 1_000).contains(.detachToken))
            let again = start + 1_000 + 15 * 60_000
            #expect(machine.row.phase == .due && machine.row.due == again)
            // Nobody has presented it since: the second time counts.
            _ = machine.claimWake(isBehind: true, claim: claim(2), now: again)
            #expect(machine.answer(dead, now: again + 1).contains(.detachToken))
        }
        // APNs' clock may be a little ahead.
        var machine = sending
        machine.tokenConfirmedAt = start
        let dead = PushReply.answered(
            status: 410, reason: "Unregistered", timestamp: start + 60_000)
        #expect(machine.answer(dead, now: start + 1).contains(.detachToken))
    }

    @Test func aDeadAnswerToTheOldTokenDoesNotTouchTheNew() {
        var machine = sending
        let superseded = machine.tokenRegistered(generation: 2, now: start + 1)
        #expect(superseded == [.note(wakeID(1), .outcome(.superseded))])
        let dead = PushReply.answered(status: 400, reason: "BadDeviceToken", timestamp: nil)
        let actions = machine.answer(dead, now: start + 2)
        #expect(!actions.contains(.detachToken))
        #expect(machine.tokenGeneration == 2)
        #expect(machine.row.phase == .due)
    }

    @Test func aDeviceWithASessionGetsNoSilentPushAndNoAlert() {
        var machine = Reachability.fresh()
        _ = machine.changed(change(10), now: start)
        machine.isSessionCounted = true
        #expect(machine.claimWake(isBehind: true, claim: claim(1), now: start).isEmpty)
        #expect(machine.row.phase == .none)
        machine.alertsChanged(queued: 1, open: 1, due: start, now: start)
        #expect(
            machine.claimAlert(choice(1), unread: 1, claim: claim(1), now: start)
                .isEmpty)
        #expect(machine.row.due == start + 10_000)
    }

    @Test func anUnreachableDevicesWakeBecomesAlerts() {
        var machine = unreachable
        _ = machine.sessionExpired(behind: change(11), unread: 1, now: later)
        #expect(
            machine.claimWake(isBehind: true, claim: claim(5), now: later) == [.alertPending])
        #expect(machine.budget.times == [start])
    }

    @Test func theBadgeIsSentOnlyWhereItIsTooHigh() {
        var machine = unreachable
        machine.alertsChanged(queued: 1, open: 1, due: start, now: start)
        _ = machine.claimAlert(choice(10), unread: 2, claim: claim(2), now: later)
        // Read while the alert was in flight: the number it carried is wrong already.
        _ = machine.answer(ok, unread: 1, now: later)
        #expect(machine.need(now: later) == nil)
        #expect(machine.need(now: later + 1_000) == .badge)
        let actions = machine.claimBadge(unread: 0, claim: claim(3), now: later + 1_000)
        #expect(actions == [.note(wakeID(3), .sent(.badge, badge: 0)), .send(.badge)])
        _ = machine.answer(ok, unread: 0, now: later + 2_000)
        #expect(machine.row.badgeShown == 0)
        #expect(machine.row.due == nil)
        machine.badgeMayBeWrong(unread: 3, now: later + 3_000)
        #expect(machine.row.due == nil)
    }

    @Test func aFaultIsRetriedAfterTwiceAsLongEachTimeUpToAMinute() {
        var machine = unreachable
        let fault = PushReply.answered(
            status: 500, reason: "InternalServerError", timestamp: nil)
        machine.alertsChanged(queued: 1, open: 1, due: start, now: start)
        var now = later
        for delay in [5_000, 10_000, 20_000, 40_000, 60_000, 60_000] as [UInt64] {
            _ = machine.claimAlert(
                choice(10, id: wakeID(2)), unread: 1, claim: claim(2), now: now)
            #expect(machine.row.flightWake == wakeID(2))
            let actions = machine.answer(fault, now: now)
            #expect(actions.contains(.settleAlert(messageID(10), .queuedAgain)))
            machine.alertsChanged(queued: 1, open: 0, due: now, now: now)
            #expect(machine.row.due == now + delay)
            #expect(machine.row.notBefore == time(0), "it holds no other class")
            now = now + delay
        }
    }

    @Test func aPushWithoutAnAnswerIsRepeatedAfterTwiceAsLongEachTime() {
        var machine = unreachable
        machine.alertsChanged(queued: 1, open: 1, due: start, now: start)
        var now = later
        for seconds in [5, 10, 20, 40, 80, 160, 320, 640, 900, 900] as [UInt64] {
            _ = machine.claimAlert(choice(10), unread: 1, claim: claim(2), now: now)
            let actions = machine.answer(.unanswered, now: now)
            #expect(actions == [.settleAlert(messageID(10), .unanswered)])
            machine.alertsChanged(queued: 1, open: 0, due: now, now: now)
            #expect(machine.row.due == now + seconds * 1_000)
            now = now + seconds * 1_000
        }
        _ = machine.claimAlert(choice(10), unread: 1, claim: claim(2), now: now)
        _ = machine.answer(ok, now: now)
        #expect(machine.row.unanswered == 0)
    }

    @Test func aPushWhoseSenderIsGoneIsNotWaitedForWholeLease() {
        var machine = sending
        machine.ownerGone(now: start + 1_000)
        #expect(machine.row.deadline == start + 6_000)
        #expect(machine.leaseEnded(now: start + 5_999).isEmpty)
        #expect(machine.row.flight != nil)
        _ = machine.leaseEnded(now: start + 6_000)
        #expect(machine.row.phase == .due)
    }
}
