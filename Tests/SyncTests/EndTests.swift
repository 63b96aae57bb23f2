import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// Suspicion, keepalive, slow readers, drain and every end of a session.
@Suite struct EndTests {
    // MARK: - Asking too much

    @Test("CON-18: 16 PINGs and PONGs before WELCOME, one a second more")
    func strangersPings() {
        var desk = Desk()
        desk.receive(.hello(Desk.hello(token: [])), request: 1)
        for _ in 0..<8 {
            #expect(desk.receive(.ping(Ping()), request: 7) == ["send PONG @7"])
            #expect(desk.receive(.pong(Pong())) == [])
        }
        desk.now = desk.now + 1_000
        #expect(desk.receive(.ping(Ping()), request: 7) == ["send PONG @7"])
        #expect(
            desk.receive(.ping(Ping()), request: 7) == ["send CLOSE 1002 applied 0", "close 1002"])
    }

    @Test("CON-18: 100 PINGs after WELCOME, ten a second more")
    func pings() {
        var desk = Desk.open()
        for _ in 0..<100 { desk.receive(.ping(Ping()), request: 7) }
        desk.now = desk.now + 100
        #expect(desk.receive(.ping(Ping()), request: 7) == ["send PONG @7"])
        #expect(desk.receive(.ping(Ping()), request: 7).contains("close 1002"))
    }

    @Test("CON-19: 100 ERRORs, one a second more")
    func errors() {
        var desk = Desk.open()
        for _ in 0..<100 {
            #expect(desk.receive(.signal(Signal()), request: 7) == ["send ERROR 4009 @7"])
        }
        desk.now = desk.now + 1_000
        #expect(desk.receive(.signal(Signal()), request: 7) == ["send ERROR 4009 @7"])
        let last = desk.receive(.signal(Signal()), request: 7)
        #expect(last.prefix(2) == ["send ERROR 4009 @7", "send CLOSE 1002 applied 10"])
        #expect(last.contains("close 1002"))
    }

    // MARK: - Ended before the hub could tell

    @Test("the first page tells what became of the session before it entered the hub")
    func endedBeforeTheHub() {
        for code in [Code.superseded, .revoked, .suspended] {
            var desk = Desk()
            desk.receive(.hello(Desk.hello()), request: 1)
            desk.answer(Desk.opened(Desk.position(head: 0, applied: 0)))
            var page = Desk.page(0, [1])
            page.standing = .ended(code)
            let lines = desk.give(page)
            #expect(
                lines == [
                    "send CLOSE \(code.rawValue) applied 0", "leave anna",
                    "close \(code.rawValue)",
                ])
        }
    }

    @Test("SES-21: a challenge of that time is asked for with the first page, which waits for it")
    func challengedBeforeTheHub() {
        var desk = Desk()
        desk.receive(.hello(Desk.hello()), request: 1)
        desk.answer(Desk.opened(Desk.position(head: 1, applied: 0)))
        var page = Desk.page(0, [1])
        page.standing = .challenged
        let lines = desk.give(page)
        #expect(lines.contains("draw") && !lines.contains { $0.hasPrefix("send DELTA") })
        #expect(desk.session.isOpen)
    }

    @Test("a session in doubt looks once more, and the look decides")
    func doubted() {
        var desk = Desk.open()
        #expect(desk.run { $0.standingDoubted(now: $1) } == ["read above 10, 1 bytes"])
        #expect(desk.give(Desk.page(10, [])) == [])
        desk.run { $0.standingDoubted(now: $1) }
        var page = Desk.page(10, [])
        page.standing = .ended(.revoked)
        #expect(desk.give(page).contains("close 2004"))
    }

    // MARK: - Suspect

    @Test func toldAndSilent() {
        var desk = Desk.open(live: false)
        desk.move(to: 11, .message)
        #expect(desk.pass(9_999) == [])
        #expect(desk.pass(1) == ["send PING", "store state dormant 0"])
        desk.answer(.done)
        #expect(desk.pass(4_999) == [])
        #expect(
            desk.pass(1) == [
                "send CLOSE 1003 applied 10", "leave anna", "close 1003",
                "store end 10 within 0",
            ])
    }

    /// A transfer that stands still: suspect as soon, but closed as a slow reader, for the PING
    /// waits behind it.
    @Test func toldAndStuck() {
        var desk = Desk.open()
        desk.run { $0.progressed(taken: 1_000, unsent: 65_537, outstanding: 100_000, now: $1) }
        desk.move(to: 11, .message)
        desk.give(Desk.page(10, [11]))
        #expect(desk.pass(10_000).contains("send PING"))
        desk.answer(.done)
        for _ in 0..<19 { #expect(desk.pass(1_000) == []) }
        #expect(desk.pass(999) == [])
        #expect(desk.pass(1).contains("close 5009"))
    }

    /// Once it takes bytes again, the PING has its time to be answered.
    @Test func stuckNoMore() {
        var desk = Desk.open()
        desk.run { $0.progressed(taken: 1_000, unsent: 65_537, outstanding: 100_000, now: $1) }
        desk.move(to: 11, .message)
        desk.give(Desk.page(10, [11]))
        desk.pass(10_000)
        desk.answer(.done)
        for _ in 0..<10 { desk.pass(1_000) }
        desk.run { $0.progressed(taken: 101_000, unsent: 0, outstanding: 0, now: $1) }
        #expect(desk.pass(4_999) == [])
        #expect(desk.pass(1).contains("close 1003"))
    }

    @Test func nothingToldNothingSuspected() {
        var desk = Desk.open(live: false)
        #expect(desk.pass(60_000) == [])
        #expect(desk.move(to: 11, .receipt) == [])
        #expect(desk.pass(60_000) == [])
    }

    @Test func anAckThatCoversMakesItCountAgain() {
        var desk = Desk.open(live: false)
        desk.move(to: 11, .message)
        desk.pass(10_000)
        desk.answer(.done)
        // A PONG shows life, but answers nothing.
        desk.receive(.pong(Pong()))
        #expect(desk.pass(5_000) == [])
        let lines = desk.receive(.ack(Ack(applied: 11)))
        #expect(lines == ["store state dormant never"])
        #expect(desk.answer(.done) == ["store ack 11"])
        desk.answer(.acknowledged(head: 11))
        #expect(desk.pass(60_000) == [])
    }

    /// A peer that answers but never syncs is closed too.
    @Test func pongsCountForAMinute() {
        var desk = Desk.open(live: false)
        let told = desk.now
        desk.move(to: 11, .message)
        while desk.session.isOpen, desk.now.since(told) < 300_000 {
            for line in desk.pass(500) where line == "send PING" {
                desk.receive(.pong(Pong()))
            }
            if !desk.actions.isEmpty, desk.actions.contains(where: { line($0) == "close 1003" }) {
                break
            }
        }
        #expect(!desk.session.isOpen)
        #expect((60_000...80_000).contains(desk.now.since(told)))
    }

    /// A kernel takes bytes for an app that sleeps: after a minute they count no more, unless a
    /// transfer is under way.
    @Test(arguments: [(100, false), (50_000, true)])
    func takenBytes(_ outstanding: Int, _ isAlive: Bool) {
        var desk = Desk.open()
        desk.move(to: 11, .message)
        desk.give(Desk.page(10, [11]))
        var taken: UInt64 = 0
        for _ in 0..<50 where desk.session.isOpen {
            desk.pass(2_000)
            taken += 10
            desk.run {
                $0.progressed(taken: taken, unsent: 0, outstanding: outstanding, now: $1)
            }
        }
        #expect(desk.session.isOpen == isAlive)
    }

    // MARK: - Keepalive

    @Test func keepaliveVariesByATenth() {
        var seen: Set<UInt32> = []
        for seed in 0..<20 as Range<UInt64> {
            var desk = Desk(seed: seed)
            desk.receive(.hello(Desk.hello()), request: 1)
            desk.answer(Desk.opened(Desk.position(head: 0, applied: 0)))
            for case .send(let frame) in desk.actions {
                guard case .welcome(let welcome) = frame.body else { continue }
                #expect((162_000...198_000).contains(welcome.keepaliveMs))
                seen.insert(welcome.keepaliveMs)
            }
        }
        #expect(seen.count > 10)
    }

    @Test func aBrokenPromiseClosesAfterTheGrace() throws {
        var desk = Desk.open()
        desk.receive(.ping(Ping(nextMs: 20_000)), request: 3)
        #expect(desk.pass(49_999) == [])
        #expect(desk.pass(1).first == "send CLOSE 5003 applied 10")
    }

    @Test func aLongPromiseDoesNotExtendTheInterval() {
        var desk = Desk.open()
        desk.receive(.ping(Ping(nextMs: .max)), request: 3)
        #expect(desk.pass(198_000 + 30_000).first == "send CLOSE 5003 applied 10")
    }

    // MARK: - Slow readers

    @Test func aSlowReaderIsNotReadAndThenClosed() {
        var desk = Desk.open()
        func progress(_ taken: UInt64, _ unsent: Int) -> [String] {
            desk.run {
                $0.progressed(taken: taken, unsent: unsent, outstanding: unsent, now: $1)
            }
        }
        #expect(progress(1, 65_536) == [])
        #expect(progress(1, 65_537) == ["stop reading"])
        desk.now = desk.now + 29_000
        // Progress counts anew; half of the limit resumes.
        #expect(progress(2, 65_600) == [])
        #expect(desk.pass(29_999) == [])
        #expect(progress(3, 40_000) == [])
        #expect(progress(4, 30_000) == ["resume reading"])
        #expect(progress(4, 70_000) == ["stop reading"])
        #expect(desk.pass(29_999) == [])
        #expect(
            desk.pass(1) == [
                "send CLOSE 5009 applied 10", "leave anna", "close 5009",
                "store end 10 within 10000",
            ])
    }

    // MARK: - Drain

    @Test func drainGivesASlot() {
        var desk = Desk.open()
        #expect(
            desk.run { $0.drain(deadline: 20_000, slot: 50_000, now: $1) } == [
                "send DRAIN 20000 slot 50000"
            ])
        // The session goes on.
        #expect(desk.move(to: 11, .message) == ["read above 10, 16384 bytes"])
        #expect(
            desk.pass(20_000) == [
                "send CLOSE 5001 applied 10", "leave anna", "close 5001",
                "store end 10 within 40000",
            ])
    }

    @Test func drainClosesWhoIsNotInYet() {
        var desk = LoginTests.challenged()
        #expect(
            desk.run { $0.drain(deadline: 20_000, slot: 50_000, now: $1) } == [
                "send CLOSE 5000 applied 0", "close 5000",
            ])
    }

    // MARK: - Ends

    @Test func goingToSleepIsNotExpectedBack() {
        var desk = Desk.open()
        desk.move(to: 11, .message)
        desk.give(Desk.page(10, [11]))
        #expect(
            desk.receive(.close(Close(code: 5000, applied: 11))) == [
                "leave anna", "close 5000", "store end 11 within 0",
            ])
    }

    @Test func aDormantSessionIsNotExpectedBack() {
        var desk = Desk.open(state: AppState(phase: .inactive))
        #expect(desk.run { $0.closed(now: $1) } == ["leave anna", "store end 10 within 0"])
    }

    @Test func whatWasNotPersistedGoesWithTheEnd() {
        var desk = Desk.open()
        desk.move(to: 11, .message)
        desk.give(Desk.page(10, [11]))
        desk.receive(.ack(Ack(applied: 11)))
        #expect(desk.run { $0.closed(now: $1) } == ["leave anna", "store end 11 within 10000"])
        #expect(!desk.session.isFinished)
        #expect(desk.answer(.done) == [])
        #expect(desk.session.isFinished)
    }

    @Test func receiptsInHandAreWrittenBeforeTheEnd() {
        var desk = Desk.open()
        desk.receive(.mutate(Mutation(number: 1)))
        let first = desk.tag
        desk.receive(.ack(Ack(applied: 10, reads: [ReadReceipt(through: 4)])))
        #expect(desk.run { $0.closed(now: $1) } == ["leave anna"])
        #expect(
            desk.answer(.mutated(MutationResult(number: 1), floor: 1), to: first) == [
                "store ack 10 r4"
            ])
        #expect(desk.answer(.acknowledged(head: 10)) == ["store end 10 within 10000"])
    }

    @Test func anEndThatFailsIsTriedAgain() {
        var desk = Desk.open()
        desk.run { $0.closed(now: $1) }
        let tag = desk.tag
        desk.run { $0.storeFailed(tag, .unavailable(""), now: $1) }
        #expect(!desk.session.isFinished)
        #expect(desk.pass(1_000) == ["store end 10 within 10000"])
        desk.answer(.done)
        #expect(desk.session.isFinished)
    }

    @Test func supersededLeavesTheRowAlone() {
        var desk = Desk.open()
        #expect(
            desk.run { $0.ended(.superseded, now: $1) } == [
                "send CLOSE 5002 applied 10", "leave anna", "close 5002",
            ])
        desk.run { $0.closed(now: $1) }
        #expect(desk.session.isFinished)

        // SES-23: a write may be the first to hear of the end, which came through another node.
        for code in [Code.superseded, .revoked, .suspended, .goingAway] {
            var asked = Desk.open()
            asked.receive(.mutate(Mutation(number: 1)))
            #expect(
                asked.answer(.ended(code)) == [
                    "send CLOSE \(code.rawValue) applied 10", "leave anna",
                    "close \(code.rawValue)",
                ])
        }
    }

    @Test func nothingFollowsAClose() {
        var desk = Desk.open()
        desk.receive(.mutate(Mutation(number: 1)))
        let write = desk.tag
        desk.move(to: 11, .message)
        let read = desk.tag
        desk.receive(.hello(Desk.hello()))
        #expect(desk.give(Desk.page(10, [11]), to: read) == [])
        #expect(
            desk.answer(.mutated(MutationResult(number: 1), floor: 1), to: write) == [
                "store end 10 within 10000"
            ])
    }

    @Test func aReadThatFailsEndsIt() {
        var desk = Desk.open()
        desk.move(to: 11, .message)
        let tag = desk.tag
        #expect(
            desk.run { $0.readFailed(tag, .unavailable(""), now: $1) } == [
                "send CLOSE 1001 applied 10", "leave anna", "close 1001",
                "store end 10 within 10000",
            ])
    }
}
