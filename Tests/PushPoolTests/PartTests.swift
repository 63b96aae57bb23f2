import Feed
import Model
import Testing
import Wake

@testable import PushPool

/// The parts of the pool, each by itself.
@Suite struct PartTests {
    private func at(_ milliseconds: UInt64) -> Instant { Instant(milliseconds: milliseconds) }

    @Test("connections that come to nothing are tried again ever later, with jitter")
    func redial() {
        var redial = Redial(delay: 500, delayMax: 30_000, soundAge: 30_000)
        var waits: [[UInt64]] = []
        for _ in 0..<8 {
            var least = redial
            least.lost(age: 0, hasAnswered: false, chance: 0, now: at(1_000))
            redial.lost(age: 0, hasAnswered: false, chance: .max, now: at(1_000))
            waits.append([least, redial].map { ($0.nextAt ?? at(0)).since(at(1_000)) })
            #expect(least.nextAt.map { $0 >= at(1_250) } ?? false)
        }
        #expect(waits.map { $0[0] } == [250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000])
        #expect(waits.allSatisfy { $0[1] >= $0[0] && $0[1] <= 2 * $0[0] })
        redial.worked()
        #expect(redial.failures == 0 && redial.nextAt == nil)
    }

    @Test("one that worked is replaced at once, and the next ones soon, but not ever later")
    func redialAfterWork() {
        var redial = Redial(delay: 500, delayMax: 30_000, soundAge: 30_000)
        redial.lost(age: 5_000, hasAnswered: true, chance: 0, now: at(0))
        #expect(redial.nextAt == nil && redial.failures == 0)
        for _ in 0..<9 {
            redial.lost(age: 5_000, hasAnswered: true, chance: 0, now: at(0))
            #expect(redial.nextAt == at(250) && redial.failures == 0)
        }
        // One without an answer is a failure as any, and an answer ends their row.
        for _ in 0..<3 { redial.lost(age: 0, hasAnswered: false, chance: 0, now: at(0)) }
        #expect(redial.nextAt == at(1_000) && redial.failures == 3)
        redial.lost(age: 0, hasAnswered: true, chance: 0, now: at(0))
        #expect(redial.nextAt == at(250) && redial.failures == 0)
        redial.lost(age: 30_000, hasAnswered: true, chance: 0, now: at(0))
        #expect(redial.nextAt == nil && redial.failures == 0)
    }

    @Test("a few connections at once, then one every three seconds; probes leave half of them")
    func connectRate() {
        var rate = ConnectRate(burst: 4, every: 3_000)
        for _ in 0..<2 {
            #expect(rate.nextAt(.probe, now: at(1_000)) == nil)
            rate.began(now: at(1_000))
        }
        #expect(rate.nextAt(.probe, now: at(1_000)) == at(4_000))
        #expect(rate.nextAt(.campaign, now: at(3_999)) == at(4_000))
        for _ in 0..<2 {
            #expect(rate.nextAt(.alert, now: at(1_000)) == nil)
            rate.began(now: at(1_000))
        }
        #expect(rate.nextAt(.alert, now: at(1_000)) == at(4_000))
        #expect(rate.nextAt(.alert, now: at(4_000)) == nil)
        #expect(rate.nextAt(.probe, now: at(4_000)) == at(10_000))
        // After long quiet no more than the few, too, of which wakes leave one to alerts.
        func begun(_ kind: PushClass) -> Int {
            (0..<9).count { _ in
                guard rate.nextAt(kind, now: at(900_000)) == nil else { return false }
                rate.began(now: at(900_000))
                return true
            }
        }
        #expect(begun(.wake) == 3)
        #expect(begun(.alert) == 1)
    }

    @Test("refusals in a row: half the streams, and twice the wait, until an answer ends it")
    func refusals() {
        var refusals = StreamRefusals(delay: 500, delayMax: 4_000)
        // What is under way together is one round.
        let first = refusals.refused(3, lastTag: 8, open: 8, now: at(0))
        let same = refusals.refused(8, lastTag: 8, open: 7, now: at(0))
        #expect(first == nil && same == nil && refusals.rounds == 1 && refusals.most == 4)
        #expect(!refusals.rests(now: at(0)))
        var waits: [Milliseconds?] = []
        for tag in UInt64(9)...14 {
            waits.append(refusals.refused(tag, lastTag: tag, open: 4, now: at(1_000)))
        }
        #expect(waits == [500, 1_000, 2_000, 4_000, nil, nil], "only what is longer is told")
        #expect(refusals.most == 1)
        #expect(refusals.rests(now: at(4_999)) && !refusals.rests(now: at(5_000)))
        refusals.answered(allowed: 3)
        #expect(!refusals.rests(now: at(1_000)) && refusals.rounds == 0 && refusals.most == 2)
        refusals.answered(allowed: 3)
        #expect(refusals.most == nil)
    }

    @Test("growth needs pressure that lasts, and waits after each step")
    func growth() {
        var growth = LaneGrowth(after: 1_000, spacing: 10_000)
        func observe(_ isPressed: Bool, _ time: UInt64) -> Bool {
            growth.observe(isPressed: isPressed, now: at(time))
        }
        #expect(!observe(true, 0) && !observe(true, 900) && !observe(false, 950))
        #expect(!observe(true, 1_000) && !observe(true, 1_999) && observe(true, 2_000))
        #expect(!observe(true, 2_500) && !observe(true, 11_999) && observe(true, 12_000))
    }

    @Test("after a start a few dead tokens among good ones do not trip it, only a row of them does")
    func breakerAfterStart() {
        var breaker = TokenBreaker(count: 5, share: 4, window: 300_000)
        // Three dead ones, one good one, again and again: too few answers to say anything.
        let early = (0..<63).contains { number in
            breaker.answered(isRefusal: number % 4 != 3, now: at(UInt64(number)))
        }
        let isTripping = breaker.answered(isRefusal: true, now: at(64))
        #expect(!early && isTripping)
        var other = TokenBreaker(count: 5, share: 4, window: 300_000)
        let row = (0..<5).map { _ in other.answered(isRefusal: true, now: at(0)) }
        #expect(row == [false, false, false, false, true])
    }

    @Test("a token that was refused when it tripped is wrong, and trips it no more, if others go")
    func suspects() {
        var breaker = TokenBreaker(count: 5, share: 4, window: 300_000)
        func judged(_ tokens: ClosedRange<UInt8>) -> [TokenBreaker.Judgement] {
            tokens.map { breaker.judge([$0]) }
        }
        for token in UInt8(1)...5 { _ = breaker.answered([token], isRefusal: true, now: at(0)) }
        #expect(breaker.isTripped)
        #expect(judged(1...5) == Array(repeating: .known, count: 5))
        // Another one that is refused in the probe joins them; one that is taken leaves them.
        #expect(judged(6...6) == [.none])
        _ = breaker.answered([6], isRefusal: true, now: at(1))
        _ = breaker.answered([1], isRefusal: false, now: at(2))
        breaker.reset()
        #expect(judged(1...1) == [.none] && judged(6...6) == [.known])
        for _ in 0..<3 {
            let trips = breaker.answered([7], isRefusal: false, now: at(3))
            #expect(!trips && judged(2...2) == [.known])
        }
        _ = breaker.answered([7], isRefusal: false, now: at(4))
        #expect(judged(2...6) == Array(repeating: .guilty, count: 5))
        #expect(judged(2...2) == [.none])
    }

    @Test("a wrong environment trips it within 32 answers, however many were taken before")
    func breakerInAStream() {
        var breaker = TokenBreaker(count: 5, share: 4, window: 300_000)
        let early = (0..<2_000).contains { number in
            breaker.answered(isRefusal: number % 10 == 0, now: at(UInt64(number)))
        }
        let tripped = (0..<128).first { _ in breaker.answered(isRefusal: true, now: at(2_000)) }
        #expect(!early && tripped.map { $0 < 32 } ?? false)
    }

    @Test("a refusal is cleared by four that are taken after it, of its own topic")
    func verdicts() {
        func push(_ number: UInt64, _ topic: String = "a") -> HeldPush {
            HeldPush(job: job(number, topic: topic), claimedAt: at(0))
        }
        var verdicts = Verdicts(share: 4, delay: 2_000)
        let reply = PushReply.answered(
            status: 400, reason: "BadDeviceToken", timestamp: nil)
        verdicts.add(push(1), reply, now: at(0))
        verdicts.add(push(2, "b"), reply, now: at(0))
        verdicts.add(push(3), reply, now: at(0))
        let cleared = (0..<8).map { _ in verdicts.taken("a")?.push.job.request.id.low }
        #expect(cleared == [nil, nil, nil, 1, nil, nil, nil, 3])
        // One alone has no more to wait for after its moment.
        let early = verdicts.due(reserve: 15_000, now: at(1_999))
        let due = verdicts.due(reserve: 15_000, now: at(2_000))
        #expect(early.isEmpty && due.map(\.push.job.request.id.low) == [2])
        // Several, and none was taken between: as long as their leases bear it.
        verdicts.add(push(4), reply, now: at(3_000))
        verdicts.add(push(5), reply, now: at(3_001))
        let doubtful = verdicts.due(reserve: 15_000, now: at(40_000))
        let late = verdicts.due(reserve: 15_000, now: at(45_000))
        #expect(doubtful.isEmpty && late.count == 2 && verdicts.isEmpty)
    }

    @Test("a topic that is refused again and again rests ever longer, and asks with one push")
    func topicPauses() {
        var topics = TopicPauses(pause: 60_000, pauseMax: 900_000)
        var time: UInt64 = 0
        var waits: [Milliseconds?] = []
        for _ in 0..<6 {
            waits.append(topics.refused("a", reason: "BadTopic", now: at(time)))
            let again = topics.refused("a", reason: "BadTopic", now: at(time))
            #expect(again == nil)
            #expect(topics.limits(now: at(time)) == ["a": 0])
            time += 900_000
            #expect(topics.limits(now: at(time)) == ["a": 1])
            let isTaken = topics.take("a", now: at(time))
            let isTakenTwice = topics.take("a", now: at(time))
            #expect(isTaken && !isTakenTwice && topics.limits(now: at(time)) == ["a": 0])
        }
        #expect(waits == [60_000, 120_000, 240_000, 480_000, 900_000, 900_000])
        topics.cameBack("a")
        #expect(topics.limits(now: at(time)) == ["a": 1])
        let isOver = topics.taken("a")
        #expect(isOver && topics.limits(now: at(time)) == [:])
        let isOther = topics.take("b", now: at(time))
        #expect(isOther)
    }

    @Test("refusals count against answers of the last minutes, and only many at once trip")
    func breaker() {
        var breaker = TokenBreaker(count: 5, share: 4, window: 300_000)
        func answered(isRefusal: Bool, _ time: UInt64) -> Bool {
            breaker.answered(isRefusal: isRefusal, now: at(time))
        }
        for number in UInt64(0)..<16 { #expect(!answered(isRefusal: false, number)) }
        // 5 of 21 are less than a quarter, 6 of 22 are more.
        for number in UInt64(0)..<5 { #expect(!answered(isRefusal: true, 100 + number)) }
        #expect(answered(isRefusal: true, 200))
        #expect(breaker.isTripped)
        #expect(!answered(isRefusal: true, 201))
        breaker.reset()
        #expect(!breaker.isTripped)
        // Single ones, each long after the one before.
        for number in UInt64(1)...50 {
            #expect(!answered(isRefusal: true, number * 300_001))
        }
    }

    @Test("pushes wait in the order of their claims; what comes back goes first")
    func order() {
        var waiting = WaitingPushes()
        for number in UInt64(0)..<5 {
            waiting.append(
                HeldPush(
                    job: job(number), claimedAt: Instant(milliseconds: 0)))
        }
        #expect(waiting.count == 5)
        let first = [waiting.takeFirst(), waiting.takeFirst()].compactMap { $0 }
        #expect(first.map(\.job.request.id.low) == [0, 1])
        waiting.giveBack(first)
        #expect(waiting.count == 5)
        var order: [UInt64] = []
        while let push = waiting.takeFirst() { order.append(push.job.request.id.low) }
        #expect(order == [0, 1, 2, 3, 4])
        #expect(waiting.isEmpty && waiting.takeAll().isEmpty)
    }

    @Test("a push that has waited for long, or whose lease is nearly over, is not sent")
    func lease() {
        let push = HeldPush(job: job(1), claimedAt: Instant(milliseconds: 1_000))
        var configuration = PushGatewayConfiguration()
        #expect(push.sendBefore(configuration) == Instant(milliseconds: 4_000))
        configuration.waitMax = 600_000
        #expect(push.sendBefore(configuration) == Instant(milliseconds: 46_000))
        var waiting = WaitingPushes()
        waiting.append(push)
        let none = waiting.take { _ in false }
        #expect(none.isEmpty && waiting.count == 1)
        let all = waiting.take { _ in true }
        #expect(all.count == 1 && waiting.isEmpty)
    }
}

extension TokenBreaker {
    /// Of a token that nobody else has.
    fileprivate mutating func answered(isRefusal: Bool, now: Instant) -> Bool {
        let token = Array("\(UInt64.random(in: 0...(.max)))".utf8)
        return answered(token, isRefusal: isRefusal, now: now)
    }
}
