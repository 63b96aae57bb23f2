import Model
import Testing
import Wake

/// What a device is owed beside restarts, faults and answers that come late.
@Suite struct ReachabilityTimesTests {
    private let fault = PushReply.answered(
        status: 503, reason: "ServiceUnavailable", timestamp: nil)

    private var sending: Reachability {
        .after {
            _ = $0.changed(change(10), now: start)
            _ = $0.claimWake(isBehind: true, claim: claim(1), now: start)
        }
    }

    @Test("a HELLO before the push that was taken shortens nobody's grace")
    func helloBeforeTheLastAttempt() {
        var machine = sending
        _ = machine.connected(now: start + 1_000)
        _ = machine.answer(fault, now: start + 2_000)
        let again = start + 70_000
        _ = machine.claimWake(isBehind: true, claim: claim(2), now: again)
        _ = machine.answer(ok, now: again)
        #expect(machine.row.deadline == again + 60_000)
    }

    @Test("a push that is refused after its app has synced makes nobody ring")
    func refusedAfterTheSync() {
        var machine = sending
        _ = machine.synced(applied: 10, isComplete: true, now: start + 1)
        let wrong = PushReply.answered(status: 400, reason: "BadPriority", timestamp: nil)
        #expect(!machine.answer(wrong, now: start + 2).contains(.alertPending))
        #expect(machine.row.phase == .none)
    }

    @Test("the faults of pushes to the old token hold those to the new one no longer")
    func newToken() {
        var machine = unreachable
        machine.alertsChanged(queued: 1, open: 1, due: start, now: start)
        for _ in 0..<4 {
            _ = machine.claimAlert(choice(10), unread: 1, claim: claim(2), now: later)
            _ = machine.answer(fault, now: later)
            machine.alertsChanged(queued: 1, open: 0, now: later)
        }
        #expect(machine.row.due == later + 40_000)
        _ = machine.tokenRegistered(generation: 2, now: later)
        _ = machine.claimAlert(choice(10), unread: 1, claim: claim(3), now: later)
        _ = machine.answer(fault, now: later)
        machine.alertsChanged(queued: 1, open: 0, now: later)
        #expect(machine.row.due == later + 5_000)
    }

    @Test("what was left of the grace when the server was last alive is left when it is back")
    func restart() {
        // It was accepted after that moment.
        var machine = waiting
        machine.serviceStarted(lastAlive: time(start.milliseconds - 10_000), now: start + 20_000)
        #expect(machine.row.deadline == start + 80_000)
        // The app came after it: only its time to run is left.
        machine = waiting
        _ = machine.connected(now: start + 5_000)
        machine.serviceStarted(lastAlive: start + 1_000, now: start + 20_000)
        #expect(machine.row.deadline == start + 50_000)
        // Whatever the clock says, no grace gets shorter.
        machine = waiting
        machine.serviceStarted(lastAlive: start + 30_000, now: start + 10_000)
        #expect(machine.row.deadline == start + 60_000)
    }

    @Test("an owner that is gone is waited for no longer than one that is there")
    func ownerGoneLate() {
        var machine = sending
        machine.ownerGone(now: start + 58_000)
        #expect(machine.row.deadline == start + 60_000)
    }

    @Test("a device that waits for nothing does not wait because a suspension ended")
    func resumed() {
        var machine = Reachability.after { _ = $0.changed(change(10), now: start) }
        machine.resumed(now: start)
        #expect(machine.row.due == start)
    }

    @Test("what is counted of alerts without a row goes when the app has all of it, or it is read")
    func folded() {
        func folded(_ count: UInt64) -> Reachability {
            .after {
                for seq in (1...count).reversed() { $0.folded(upTo: seq) }
                $0.alertsChanged(queued: 0, open: Int(count), now: start)
            }
        }
        var machine = folded(9)
        machine.folded(coveredThrough: 8)
        #expect(machine.row.alertsFolded == 9 && machine.row.alertsOpen == 9)
        machine.folded(coveredThrough: 9)
        #expect(machine.row.alertsFolded == 0 && machine.row.alertsOpen == 0)
        machine = folded(9)
        machine.folded(unread: 4)
        #expect(machine.row.alertsFolded == 4 && machine.row.alertsOpen == 4)
        // So many stand for themselves or more.
        machine = folded(1_200)
        machine.folded(unread: 999)
        #expect(machine.row.alertsFolded == 1_200)
    }
}
