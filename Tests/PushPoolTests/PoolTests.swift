import Model
import Testing
import Wake

@testable import PushPool

/// The pool as a transcript: what happens, and what it does.
@Suite struct PoolTests {
    @Test("a token is fetched before anything is due; the first push has a connection made")
    func first() {
        var stage = Stage()
        #expect(stage.wait() == ["sign"])
        #expect(stage.asked == 5, "one for each class")
        #expect(stage.keep() == [])
        #expect(stage.give([1]) == ["dial 1"])
        #expect(stage.on(1, .up) == ["send 1 on 1 with t1"])
        #expect(stage.answer(1) == ["1 taken"])
    }

    @Test("a claim that found nothing is made again once something was written or has become due")
    func rest() {
        var stage = Stage()
        stage.changes = 7
        _ = stage.wait()
        _ = stage.give([], nextIn: 60_000)
        for _ in 0..<100 { _ = stage.wait() }
        #expect(stage.asked == nil)
        stage.changes = 8
        _ = stage.wait()
        #expect(stage.asked != nil)
        _ = stage.give([], nextIn: 2_000)
        // This one did not count what waits for credentials that cannot send.
        _ = stage.wait()
        _ = stage.give([], nextIn: 60_000)
        _ = stage.wait(5_000)
        _ = stage.give([], nextIn: 2_000)
        _ = stage.wait(1_900)
        #expect(stage.asked == nil)
        _ = stage.wait(200)
        #expect(stage.asked != nil)
        // Where others write, too, nobody knows.
        stage.changes = nil
        _ = stage.give([])
        _ = stage.wait()
        #expect(stage.asked != nil)
    }

    @Test("one stream until APNs has believed a token, then as many as it allows")
    func trust() {
        var stage = Stage()
        _ = stage.wait()
        _ = stage.keep()
        _ = stage.give([1, 2, 3, 4])
        #expect(
            stage.on(1, .up, .heard, .allows(streams: 2)) == ["send 1 on 1 with t1"])
        #expect(stage.answer(1, 403, "ExpiredToken").first == "1 403 ExpiredToken")
        var other = Stage()
        _ = other.wait()
        _ = other.keep()
        _ = other.give([1, 2, 3, 4])
        _ = other.on(1, .up, .heard, .allows(streams: 2))
        #expect(
            other.answer(1) == ["1 taken", "send 2 on 1 with t1", "send 3 on 1 with t1"])
        #expect(other.answer(2) == ["2 taken", "send 4 on 1 with t1"])
    }

    @Test("a certificate needs no token, and has all streams at once")
    func certificate() {
        var stage = Stage(["certificate"])
        #expect(stage.wait() == [])
        #expect(stage.give([1, 2, 3], app: "certificate") == ["dial 1"])
        #expect(
            stage.on(1, .up, .heard, .allows(streams: 100)) == [
                "send 1 on 1", "send 2 on 1", "send 3 on 1",
            ])
    }

    @Test("GOAWAY: what APNs did nothing with goes to another connection, in order, once")
    func goAway() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1, 2, 3, 4])
        let tags = [stage.tag(3), stage.tag(4)]
        #expect(
            stage.on(1, .heard, .goAway(reason: "", code: 0), .refused(tags: tags)) == ["dial 2"])
        #expect(stage.answer(1) == ["1 taken"])
        #expect(stage.on(2, .up) == ["send 3 on 2 with t1"])
        #expect(stage.answer(3) == ["3 taken", "send 4 on 2 with t1"])
        // The streams below the last one go on where they are.
        #expect(stage.answer(2) == ["2 taken"])
        #expect(stage.on(1, .ended(.cut, inOrder: true)) == [])
    }

    @Test("what was claimed for a device does not leave once the device has lost its token")
    func detached() {
        var stage = Stage()
        _ = stage.wait()
        _ = stage.keep()
        #expect(stage.give([1]) == ["dial 1"])
        // Another user logs in on the phone while the connection is made.
        #expect(stage.detach([1, 7]) == ["1 not sent"])
        #expect(stage.on(1, .up, .heard, .allows(streams: 9)) == [])
        _ = stage.wait()
        #expect(stage.give([2]) == ["send 2 on 1 with t1"])
        // Under way: the answer is written down as ever, but what comes back stays here.
        #expect(stage.detach([2]) == [])
        #expect(stage.on(1, .heard, .refused(tags: [stage.tag(2)])) == ["2 not sent"])
        _ = stage.wait()
        #expect(stage.give([3]) == ["send 3 on 1 with t1"])
        #expect(stage.detach([3]) == [])
        #expect(stage.answer(3) == ["3 taken"])
        // The store looks just then: whether it was before or after, nobody knows.
        _ = stage.wait()
        #expect(stage.detach([4]) == [])
        #expect(stage.give([4, 5]) == ["4 not sent", "send 5 on 1 with t1"])
        _ = stage.answer(5)
        _ = stage.wait()
        #expect(stage.give([4]) == ["send 4 on 1 with t1"])
    }

    @Test("a connection that breaks: its pushes are unanswered; another one at once, then later")
    func lost() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1, 2])
        #expect(
            stage.on(1, .ended(.cut, inOrder: false)) == ["1 unanswered", "2 unanswered"])
        #expect(stage.told.last == "1 lost: socket, retry now")
        _ = stage.wait()
        #expect(stage.give([3]) == ["dial 2"])
        _ = stage.on(2, .up)
        _ = stage.answer(3)
        _ = stage.wait()
        _ = stage.give([4])
        #expect(stage.on(2, .ended(.cut, inOrder: false)) == ["4 unanswered"])
        #expect(stage.told.last == "2 lost: socket, retry later")
        _ = stage.wait(1)
        #expect(stage.give([5]) == [], "not before its time")
        #expect(stage.wait(1_000) == ["dial 3"])
    }

    @Test("a connection that is not made in time is given up, and tried again later")
    func notMade() {
        var stage = Stage()
        _ = stage.wait()
        _ = stage.keep()
        #expect(stage.give([1]) == ["dial 1"])
        #expect(stage.wait(3_000) == ["1 not sent"])
        #expect(stage.wait(7_000) == ["close 1 at once"])
        #expect(stage.told == ["1 not made: connect-timeout"])
    }

    @Test("a refused stream is offered again, and then later; three times in all")
    func refused() {
        var stage = Stage()
        stage.warmUp()
        #expect(stage.give([1]) == ["send 1 on 1 with t1"])
        #expect(stage.on(1, .heard, .refused(tags: [stage.tag(1)])) == ["send 1 on 1 with t1"])
        #expect(stage.on(1, .heard, .refused(tags: [stage.tag(1)])) == [])
        #expect(stage.told.last == "1 refuses 1, waits 500 ms")
        #expect(stage.wait(499) == [])
        #expect(stage.wait(1) == ["send 1 on 1 with t1"])
        #expect(stage.on(1, .heard, .refused(tags: [stage.tag(1)])) == ["1 not sent"])
    }

    @Test("what the transport does not take waits until something has come; what is behind, too")
    func notTaken() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1, 2])
        #expect(stage.on(1, .notTaken(tag: stage.tag(1))) == [])
        #expect(stage.on(1, .heard) == ["send 1 on 1 with t1"])
        #expect(stage.on(1, .behind) == [])
        _ = stage.wait()
        #expect(stage.give([3]) == [])
        #expect(stage.on(1, .heard, .pingAnswered) == [])
        #expect(stage.on(1, .caughtUp) == ["send 3 on 1 with t1"])
    }

    @Test("what cannot be sent at all is told to the store, and not sent again")
    func impossible() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        #expect(stage.on(1, .impossible(tag: stage.tag(1), "header")) == ["1 0 Unsendable"])
    }

    @Test("silence: asked whether it lives, waited for while APNs is slow, and then unanswered")
    func silence() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        let tag = stage.tag(1)
        #expect(stage.wait(9_999) == [])
        #expect(stage.wait(1) == ["ping 1"])
        _ = stage.on(1, .heard, .pingAnswered)
        #expect(stage.wait(9_999) == [])
        #expect(stage.wait(1) == ["cancel stream \(tag) of 1", "1 unanswered"])
        // A late answer of a stream that was given up says nothing.
        #expect(stage.answer(1) == [])
    }

    @Test("what was sent before an answer in time, and is late, is not waited for")
    func overtaken() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        let tag = stage.tag(1)
        _ = stage.wait(10_000)
        _ = stage.on(1, .heard, .pingAnswered)
        _ = stage.give([2])
        #expect(stage.answer(2) == ["cancel stream \(tag) of 1", "1 unanswered", "2 taken"])
    }

    @Test("a PING without an answer ends the connection")
    func dead() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        _ = stage.wait(10_000)
        #expect(stage.wait(5_000) == ["close 1 at once", "1 unanswered"])
        #expect(stage.told.last == "1 lost: silent, retry now")
    }

    @Test("a connection that was silent for long proves that it lives before it gets a push")
    func verification() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([])
        _ = stage.wait(300_000)
        #expect(stage.give([1]) == ["ping 1"])
        #expect(stage.on(1, .heard, .pingAnswered) == ["send 1 on 1 with t1"])
    }

    @Test("what gets no stream soon goes back to the store")
    func waitsNotForLong() {
        var stage = Stage()
        stage.warmUp(streams: 1)
        _ = stage.give([1, 2])
        #expect(stage.wait(2_999) == [])
        #expect(stage.wait(1) == ["2 not sent"])
    }

    @Test("retry-after reaches the store")
    func retryAfter() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        #expect(
            stage.answer(1, 429, "TooManyRequests", retryAfter: 3_000)
                == ["1 429 TooManyRequests after 3000"])
    }

    @Test("a refused credential rests; what waits goes back, and one push shows whether it is over")
    func pause() {
        var stage = Stage()
        stage.warmUp(streams: 2)
        _ = stage.give([1, 2, 3])
        #expect(
            stage.answer(1, 403, "InvalidProviderToken") == [
                "1 403 InvalidProviderToken", "3 not sent",
            ])
        #expect(stage.told.last == "paused 60 s: InvalidProviderToken")
        _ = stage.answer(2, 403, "InvalidProviderToken")
        _ = stage.wait()
        #expect(stage.asked == nil, "nothing is claimed that cannot be sent")
        #expect(stage.wait(58_500) == [] && stage.told.last != "resumed")
        _ = stage.wait(1_000)
        #expect(stage.told.last == "resumed")
        #expect(stage.give([4, 5]) == ["send 4 on 1 with t1"])
        #expect(stage.answer(4) == ["4 taken", "send 5 on 1 with t1"])
    }

    @Test("an expired token: one new one is fetched, and sent on another connection")
    func expired() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([])
        _ = stage.wait(1_500_000)
        _ = stage.on(1, .heard)
        _ = stage.give([1, 2])
        #expect(
            stage.answer(1, 403, "ExpiredProviderToken") == [
                "1 403 ExpiredProviderToken", "sign after t1", "dial 2",
            ])
        // It is asked for once, whatever the pushes under way say.
        #expect(stage.answer(2, 403, "ExpiredProviderToken") == ["2 403 ExpiredProviderToken"])
        _ = stage.wait()
        #expect(stage.give([3]) == [])
        #expect(stage.on(2, .up) == ["close 1"])
        #expect(stage.keep() == ["send 3 on 2 with t2"])
    }

    @Test("too many provider tokens: every credential of the key rests, and no other")
    func tooManyTokens() {
        var stage = Stage(["chat", "chat/b", "other"])
        stage.warmUp()
        _ = stage.keep(key: "other")
        _ = stage.give([1])
        _ = stage.answer(1, 429, "TooManyProviderTokenUpdates")
        #expect(
            stage.told.suffix(2)
                == Array(
                    repeating: "paused 300 s: TooManyProviderTokenUpdates", count: 2))
        let status = stage.pool.status(at: Instant(milliseconds: stage.now)).current
        #expect(status.map { $0.pausedFor != nil } == [true, true, false])
    }

    @Test("a key that cannot sign, or a credential without a connection, rests until it is changed")
    func unusable() {
        var stage = Stage()
        _ = stage.wait()
        #expect(stage.cannotSign() == [])
        #expect(stage.give([1]) == ["1 not sent"])
        #expect(stage.told == ["paused until changed: no key"])
        _ = stage.use(["certificate"])
        _ = stage.wait()
        #expect(stage.give([2], app: "certificate") == ["dial 1"])
        #expect(stage.on(1, .unusable("no certificate")) == ["2 not sent"])
        #expect(stage.told.last == "paused until changed: no certificate")
    }

    @Test("a certificate that the clock says is not good is tried again after a minute")
    func untimely() {
        var stage = Stage(["certificate"])
        _ = stage.wait()
        #expect(stage.give([1], app: "certificate") == ["dial 1"])
        #expect(stage.on(1, .untimely("not valid yet")) == ["1 not sent"])
        #expect(stage.told.last == "paused 60 s: not valid yet")
        // The clock is right by now.
        _ = stage.wait(61_000)
        #expect(stage.give([2], app: "certificate") == ["dial 2"])
    }

    @Test("tokens that were good are called wrong all at once: none is dropped, and it rests")
    func breaker() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1, 2, 3, 4, 5])
        for number in UInt64(1)...4 {
            #expect(
                stage.answer(number, 400, "BadDeviceToken") == ["\(number) 400 BadDeviceToken"])
        }
        #expect(
            stage.answer(5, 400, "BadDeviceToken") == ["5 400 BadDeviceToken, token kept"])
        #expect(stage.told.suffix(2) == ["breaker tripped", "paused 60 s: BadDeviceToken"])
    }

    @Test("a few wrong tokens of a quiet app hold the others up once, and are found out then")
    func deadAmongFew() {
        var stage = Stage()
        stage.warmUp()
        let dead = UInt64(1)...5
        func refuse(_ stage: inout Stage) -> [String] {
            dead.flatMap { stage.answer($0, 400, "BadDeviceToken") }
        }
        _ = stage.give(Array(dead))
        #expect(refuse(&stage).last == "5 400 BadDeviceToken, token kept")
        #expect(stage.told.last == "paused 60 s: BadDeviceToken")
        stage.forgetTold()
        _ = stage.wait(60_000)
        // The probe: one of them, and then a good one.
        _ = stage.give([1])
        #expect(stage.answer(1, 400, "BadDeviceToken") == ["1 400 BadDeviceToken, token kept"])
        _ = stage.wait()
        #expect(stage.give([6]) == ["send 6 on 1 with t1"])
        #expect(stage.answer(6) == ["6 taken"])
        for round in 0..<4 {
            _ = stage.wait()
            _ = stage.give(Array(dead) + [7])
            let words = refuse(&stage)
            #expect(words.allSatisfy { $0.hasSuffix("token kept") }, "round \(round): \(words)")
            #expect(stage.answer(7) == ["7 taken"])
        }
        #expect(stage.told == ["resumed"], "nobody waits for them any more")
        _ = stage.wait()
        _ = stage.give(Array(dead))
        #expect(refuse(&stage) == dead.map { "\($0) 400 BadDeviceToken" })
    }

    @Test("what waits is counted also while nothing can be sent")
    func countsInAPause() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        _ = stage.answer(1, 403, "InvalidProviderToken")
        #expect(stage.told.last?.hasPrefix("paused") == true)
        _ = stage.give([])
        _ = stage.wait(10_000)
        #expect(stage.asked == 0 && stage.counts == true)
        #expect(stage.give([]) == [])
        _ = stage.wait(500)
        #expect(stage.asked == nil, "not with each tick")
    }

    @Test("a first push that gets no answer does not hold up the tokens that come after it")
    func stuckProbe() {
        var stage = Stage()
        _ = stage.wait()
        _ = stage.keep()
        _ = stage.give([1], lane: .probe)
        _ = stage.on(1, .up, .heard, .allows(streams: 9))
        var lines: [String] = []
        for _ in 0..<12 {
            lines += stage.wait(1_000)
            if stage.asked != nil { lines += stage.give([], blocked: [.probe]) }
        }
        #expect(lines.contains("dial 2"), "\(lines)")
    }

    @Test("an answer the store cannot take is offered again, until the lease has ended")
    func finishFails() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        stage.storeFails = true
        #expect(stage.answer(1) == ["1 taken"])
        #expect(stage.wait(999) == [])
        #expect(stage.wait(1) == ["1 taken"])
        _ = stage.wait(WakePolicy.lease)
        #expect(stage.wait(1_000) == [])
    }

    @Test("all streams taken for long: one more connection, up to the limit")
    func growth() {
        var stage = Stage {
            $0.connectionsMax = 2
            $0.growAfter = 200
            $0.growSpacing = 200
        }
        stage.warmUp(streams: 2)
        _ = stage.give([1, 2, 3])
        #expect(stage.wait(50) == [])
        #expect(stage.wait(200) == ["dial 2"])
        #expect(stage.told.last == "2 connections")
        #expect(stage.on(2, .up) == ["send 3 on 2 with t1"])
        _ = stage.answer(1)
        #expect(stage.give([4, 5]) == ["send 4 on 1 with t1"])
        #expect(stage.wait(200) == [])
        #expect(stage.wait(200) == [], "two are enough")
    }

    @Test("an old connection makes way for a new one, without a moment in which there is none")
    func age() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        #expect(stage.wait(86_400_000).contains("dial 2"))
    }

    @Test("stop: what waits goes back, what is under way is waited for, and then all is closed")
    func drain() {
        var stage = Stage()
        stage.warmUp(streams: 1)
        _ = stage.give([1, 2])
        #expect(stage.stop() == ["2 not sent"])
        #expect(stage.wait() == [])
        #expect(stage.answer(1) == ["1 taken", "close 1", "ended, 0 left"])
        #expect(stage.wait() == [])
    }

    @Test("stop waits only so long: the rest is left to its lease")
    func drainInVain() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1, 2])
        #expect(stage.stop() == [])
        #expect(stage.wait(11_999) == ["ping 1"])
        #expect(stage.wait(1) == ["ended, 2 left"])
    }

    @Test("what the transport does not take when its credential has just been changed goes back")
    func changedMeanwhile() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        #expect(stage.use([]) == [])
        #expect(stage.on(1, .notTaken(tag: stage.tag(1))) == ["1 not sent", "close 1"])
    }

    @Test("a push that was claimed before its credential was refused goes back at once")
    func claimedBeforePause() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        _ = stage.wait()
        _ = stage.answer(1, 403, "Forbidden")
        #expect(stage.give([2]) == ["2 not sent"])
    }

    @Test("a changed credential: what waits goes on with the new one, what is under way ends")
    func changed() {
        var stage = Stage()
        stage.warmUp(streams: 1)
        _ = stage.give([1, 2])
        let lines = stage.use([])
        #expect(lines == ["2 not sent"])
        #expect(stage.answer(1) == ["1 taken", "close 1"])
    }

    @Test("a changed credential is told with the host that it has now, a removed one with its last")
    func changedHost() {
        var stage = Stage()
        _ = stage.use(["chat"], host: "one.example")
        _ = stage.use(["chat"], host: "two.example")
        _ = stage.use([])
        #expect(stage.changedAt == ["one.example", "two.example", "two.example"])
    }
}
