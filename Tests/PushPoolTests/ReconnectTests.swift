import Feed
import Model
import Testing
import Wake

@testable import PushPool

/// Connections that do not last, in transcripts of many steps: how often another one is begun, and
/// what it does to the pushes of others.
@Suite struct ReconnectTests {
    /// The numbers of the connections that these lines begin.
    private func dialed(_ lines: [String]) -> [UInt64] {
        lines.filter { $0.hasPrefix("dial ") }.compactMap { UInt64($0.dropFirst(5)) }
    }

    @Test("a class whose connections fail waits ever longer, however well another class does")
    func failingBesideBusy() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([])
        _ = stage.wait(30_000)
        var (dials, taken) = (0, 0)
        for step in UInt64(1)...600 {
            var lines = stage.wait(100)
            if stage.asked != nil {
                lines += stage.give([step], lane: step % 2 == 0 ? .wake : .probe)
            }
            if lines.contains("send \(step) on 1 with t1") {
                lines += stage.answer(step)
                taken += 1
            }
            var begun = dialed(lines)
            while let number = begun.popLast() {
                dials += 1
                begun += dialed(stage.on(number, .up, .ended(.cut, inOrder: false)))
            }
        }
        #expect(taken > 100 && dials > 3 && dials <= 12, "\(dials) in a minute")
    }

    @Test("refused for long: pushes are offered ever later; then each is taken once")
    func refusedForLong() {
        var stage = Stage()
        stage.warmUp()
        var due = Array(UInt64(1)...40)
        var offered: [Int] = []
        var taken: [UInt64] = []
        for second in 0..<180 {
            var lines = stage.wait(1_000)
            let room = min(stage.room(.wake), due.count)
            if stage.asked != nil {
                lines += stage.give(Array(due.prefix(room)))
                due.removeFirst(room)
            }
            var offers = 0
            while let line = lines.popLast() {
                let words = line.split(separator: " ")
                if words.first == "send", let number = UInt64(words[1]) {
                    offers += 1
                    lines +=
                        second < 120
                        ? stage.on(1, .heard, .refused(tags: [stage.tag(number)]))
                        : stage.answer(number)
                } else if line.hasSuffix("not sent"), let number = UInt64(words[0]) {
                    due.append(number)
                } else if line.hasSuffix("taken"), let number = UInt64(words[0]) {
                    taken.append(number)
                }
            }
            offered.append(offers)
        }
        let asked = offered[60..<120].reduce(0, +)
        #expect(asked >= 2 && asked <= 4, "\(offered)")
        #expect(offered[..<10].reduce(0, +) < 120, "\(offered)")
        #expect(taken.sorted() == Array(1...40))
        let told = stage.told.filter { $0.contains("refuses") }
        #expect(told.count == 7 && told.last?.hasSuffix("waits 30000 ms") ?? false, "\(told)")
    }

    @Test("a connection that allows no stream while pushes wait is given up, ever more slowly")
    func shut() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([])
        _ = stage.wait(60_000)
        _ = stage.give([])
        #expect(stage.on(1, .heard, .allows(streams: 0)) == [])
        // Nobody needs it.
        #expect(stage.wait(60_000) == [])
        #expect(stage.on(1, .heard, .allows(streams: 100)) == [])
        #expect(stage.on(1, .heard, .allows(streams: 0)) == [])
        #expect(stage.give([], blocked: [.wake]) == [])
        #expect(stage.wait(9_999) == [])
        #expect(stage.room(.wake) == 0)
        #expect(stage.wait(1) == ["close 1"])
        #expect(stage.told.last == "1 lost: no-streams, retry now")
        var begun = dialed(stage.give([1]))
        #expect(begun == [2])
        // All that come after it allow none either.
        var times: [UInt64] = []
        for step in UInt64(2)...2_400 {
            while let number = begun.popLast() {
                times.append(stage.now)
                begun += dialed(stage.on(number, .up, .heard, .allows(streams: 0)))
            }
            begun += dialed(stage.wait())
            if stage.asked != nil {
                begun += dialed(
                    stage.give(stage.room(.wake) > 0 ? [step] : [], blocked: [.wake]))
            }
        }
        let gaps = zip(times.dropFirst(), times).map { $0 - $1 }
        #expect(gaps.first.map { $0 < 13_000 } ?? false, "\(gaps)")
        #expect(gaps.suffix(10).allSatisfy { $0 > 24_000 && $0 < 46_000 }, "\(gaps)")
    }

    @Test("after a fault the old connection goes on until the new one has had its first answer")
    func succession() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        #expect(
            stage.answer(1, 503, "ServiceUnavailable") == ["1 503 ServiceUnavailable", "dial 2"])
        #expect(stage.on(2, .up, .heard, .allows(streams: 100)) == [])
        _ = stage.wait()
        // The first push on the new one hangs, and the others leave.
        #expect(
            stage.give([2, 3, 4]) == [
                "send 2 on 2 with t1", "send 3 on 1 with t1", "send 4 on 1 with t1",
            ])
        #expect(stage.answer(3) == ["3 taken"])
        _ = stage.wait(9_000)
        #expect(stage.give([5]) == ["send 5 on 1 with t1"])
        #expect(stage.answer(2) == ["2 taken"])
        _ = stage.wait()
        #expect(stage.give([6]) == ["send 6 on 2 with t1"])
        // What is under way on the old one ends there.
        #expect(stage.answer(4) == ["4 taken"])
        #expect(stage.answer(5) == ["5 taken", "close 1"])
        #expect(stage.answer(6) == ["6 taken"])
    }

    @Test("of two that have nothing to do for long the one goes whose place is taken")
    func successionAtRest() {
        var stage = Stage { $0.surplusIdle = 20_000 }
        stage.warmUp()
        _ = stage.give([1])
        _ = stage.answer(1, 503, "ServiceUnavailable")
        _ = stage.on(2, .up, .heard, .allows(streams: 100))
        #expect(stage.wait(19_000) == [])
        #expect(stage.wait(2_000) == ["close 1"])
    }

    @Test("a new connection that ends before it has had an answer leaves the old one in its place")
    func successionInVain() {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        _ = stage.answer(1, 503, "ServiceUnavailable")
        _ = stage.on(2, .up, .heard, .allows(streams: 100))
        _ = stage.wait()
        #expect(stage.give([2]) == ["send 2 on 2 with t1"])
        #expect(stage.on(2, .ended(.cut, inOrder: false)) == ["2 unanswered"])
        _ = stage.wait()
        #expect(stage.give([3]) == ["send 3 on 1 with t1"])
        #expect(stage.answer(3) == ["3 taken"])
        // The next fault has another one made.
        _ = stage.wait(30_000)
        _ = stage.give([4])
        #expect(stage.answer(4, 500, "InternalServerError").last == "dial 3")
        _ = stage.on(3, .up)
        _ = stage.wait()
        #expect(stage.give([5]) == ["send 5 on 3 with t1"])
        #expect(stage.answer(5) == ["5 taken", "close 1"])
    }

    @Test("GOAWAY with ExpiredProviderToken has the token renewed, once a minute at most")
    func expiredByGoAway() {
        var stage = Stage()
        _ = stage.wait()
        _ = stage.keep()
        _ = stage.give([1])
        _ = stage.on(1, .up, .heard, .allows(streams: 9))
        func end(_ connection: UInt64, _ push: UInt64) -> [String] {
            stage.on(
                connection, .heard, .goAway(reason: "ExpiredProviderToken", code: 0),
                .refused(tags: [stage.tag(push)]), .ended(.cut, inOrder: true))
        }
        #expect(end(1, 1) == [])
        #expect(stage.wait() == ["sign after t1", "dial 2"])
        #expect(stage.on(2, .up, .heard, .allows(streams: 9)) == [])
        #expect(stage.keep() == ["send 1 on 2 with t2"])
        // That is no better: it is the clock, or APNs, and a new one now would be punished.
        #expect(end(2, 1) == ["1 not sent"])
        #expect(stage.told.contains("token refused young"))
        #expect(stage.told.last == "paused 59 s: ExpiredProviderToken")
        var lines: [String] = []
        for _ in 0..<110 { lines += stage.wait() }
        #expect(lines == [], "nothing in the pause")
        for _ in 0..<20 { lines += stage.wait() }
        #expect(lines == ["sign after t2"])
    }

    @Test(
        "a reason means the same for the credential in a GOAWAY as in an answer",
        arguments: [
            ("InvalidProviderToken", "paused 60 s: InvalidProviderToken"),
            ("BadCertificateEnvironment", "paused 60 s: BadCertificateEnvironment"),
            ("TooManyProviderTokenUpdates", "paused 300 s: TooManyProviderTokenUpdates"),
            ("TopicDisallowed", "topic com.chat rests 60 s: TopicDisallowed"),
            ("BadDeviceToken", nil), ("PayloadTooLarge", nil), ("Shutdown", nil), ("", nil),
        ])
    func reasonsOfGoAway(_ reason: String, _ told: String?) {
        var stage = Stage()
        stage.warmUp()
        _ = stage.give([1])
        stage.forgetTold()
        let lines = stage.on(
            1, .heard, .goAway(reason: reason, code: 0), .refused(tags: [stage.tag(1)]))
        #expect(stage.told.filter { !$0.contains("lost") } == [told].compactMap { $0 })
        #expect(lines == (told == nil ? ["dial 2"] : ["1 not sent"]))
    }

    @Test("new tokens that APNs refuses, and hangs up for, hold no other new one up for long")
    func refusedProbes() {
        var stage = Stage()
        _ = stage.wait()
        _ = stage.keep()
        var (answered, slowest, lastAt) = (0, UInt64(0), stage.now)
        var lines = stage.give([1], lane: .probe)
        for step in 0..<1_200 {
            while let line = lines.popLast() {
                let words = line.split(separator: " ")
                if words[0] == "dial", let number = UInt64(words[1]) {
                    lines += stage.on(number, .up, .heard, .allows(streams: 1))
                } else if words[0] == "send", let push = UInt64(words[1]),
                    let number = UInt64(words[3])
                {
                    lines += stage.answer(push, 400, "BadDeviceToken")
                    lines += stage.on(
                        number, .goAway(reason: "", code: 0), .ended(.cut, inOrder: true))
                    answered += 1
                    slowest = max(slowest, stage.now - lastAt)
                    lastAt = stage.now
                }
            }
            lines = stage.wait(100)
            if stage.asked != nil {
                let room = min(1, stage.room(.probe))
                lines += stage.give(Array([UInt64(step + 2)].prefix(room)), lane: .probe)
            }
        }
        // In two minutes.
        #expect(answered >= 40 && answered <= 50 && slowest < 5_000, "\(answered), \(slowest)")
    }

    @Test("each class tells by itself that its connections come to nothing, and when it tries")
    func statusOfClasses() {
        var stage = Stage()
        stage.warmUp()
        func failures() -> [String] {
            let status = stage.pool.status(at: Instant(milliseconds: stage.now)).current
            return status.flatMap(\.lanes).filter { !$0.failure.isEmpty }.map {
                "\($0.lane.name): \($0.failure), \($0.nextTry.map { $0 > 0 } ?? false)"
            }
        }
        #expect(failures() == [])
        _ = stage.give([1], lane: .probe)
        #expect(failures() == [], "the first one is being made")
        _ = stage.on(2, .up, .heard, .ended(.cut, inOrder: false))
        #expect(failures() == ["probe: cut, true"])
        var lines = stage.wait(1_000)
        #expect(lines == ["dial 3"])
        _ = stage.on(3, .up, .heard, .goAway(reason: "Shutdown", code: 0))
        #expect(failures() == ["probe: GOAWAY Shutdown, true"])
        // It is up, and has still to show that it takes pushes.
        _ = stage.wait(1_000)
        lines = stage.on(4, .up, .heard, .allows(streams: 9))
        #expect(failures() == ["probe: GOAWAY Shutdown, false"])
        #expect(lines == ["send 1 on 4 with t1"])
        _ = stage.answer(1, 400, "BadDeviceToken")
        #expect(failures() == [])
    }

    @Test("connections that APNs binds to another key each time are begun no more often")
    func boundToAnotherKey() {
        var stage = Stage()
        _ = stage.wait()
        _ = stage.keep()
        var begun = dialed(stage.give([1]))
        var dials = 0
        for number in UInt64(2)...600 {
            while let connection = begun.popLast() {
                dials += 1
                begun += dialed(stage.on(connection, .up, .heard, .allows(streams: 9)))
            }
            begun += dialed(stage.answer(number - 1, 403, "UnrelatedKeyIdInToken"))
            begun += dialed(stage.wait(100))
            if stage.asked != nil { begun += dialed(stage.give([number])) }
        }
        #expect(dials > 15 && dials <= 36, "\(dials) in a minute")
    }
}
