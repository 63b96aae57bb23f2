import Feed
import Model
import Testing
import Wake
import Wire

/// Policies beyond a constant, as transcripts of one phone.
@Suite struct AdaptivePolicyFeedTests {
    private let phone = DeviceID(high: 2, low: 1)

    private func sleeping(
        _ change: (inout AdaptivePolicy) -> Void
    ) throws -> (Pushes, ConversationID) {
        let (pushes, room) = try Pushes.sleeping()
        var app = World.classic(createdAt: pushes.world.now)
        (app.silentBudget, app.silentSpacing) = (8, 0)
        change(&app.adaptive)
        try pushes.world.expectDone(.putApp(app))
        return (pushes, room)
    }

    /// A message, a silent push, and the app comes so long after it, syncs and sleeps again.
    private func wake(
        _ pushes: Pushes, _ room: ConversationID, after latency: Milliseconds,
        naming: Bool = true
    ) throws {
        try pushes.say("x", in: room)
        #expect(try pushes.run(0) == ["silent"])
        try pushes.run(latency)
        let wake = try #require(pushes.sent.last { $0.kind == .silent }).request.id
        let session = try pushes.open("bob", phone, wake: naming ? wake : nil).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(600_000)
    }

    private func learn(_ adaptive: inout AdaptivePolicy) {
        adaptive.graceQuantile = 100
        adaptive.graceMin = 1_000
        adaptive.graceSamples = 3
    }

    // MARK: the default policy

    /// A phone of an app that chose nothing.
    private func plain() throws -> (Pushes, ConversationID) {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.world.expectDone(
            .putApp(AppRecord(app: World.app, createdAt: pushes.world.now)))
        return (pushes, room)
    }

    @Test func theDefaultGraceAndSpacingAreHalfAMinute() throws {
        let (pushes, room) = try plain()
        try pushes.say("1", in: room)
        #expect(try pushes.run(29_000) == ["silent"])
        #expect(try pushes.run(2_000) == [#"alert "1" badge 1 stored"#])
        try pushes.nap("bob", phone)
        try pushes.say("2", in: room)
        #expect(try pushes.run(0) == ["silent"])
        try pushes.nap("bob", phone)
        try pushes.say("3", in: room)
        #expect(try pushes.run(20_000) == [])
        #expect(try pushes.run(10_000) == ["silent"])
        // APNs stores an alert for 30 days.
        let alert = try #require(pushes.sent.first { $0.kind == .alert })
        let days = (alert.request.expiration * 1_000 - 1_000_000) / 86_400_000
        #expect(days == 30)
    }

    @Test func aDeviceThatMissesItsWakesIsDoubtedAndTriedTwiceADay() throws {
        let (pushes, room) = try plain()
        // Missed, each time opened by its user before the next message.
        for number in 1...3 {
            try pushes.say("\(number)", in: room)
            #expect(try pushes.run(40_000).map { $0.prefix(6) } == ["silent", "alert "])
            try pushes.nap("bob", phone)
            #expect(try pushes.view(phone).reachability == .wakeable)
            #expect(try pushes.hours(2) == [])
        }
        // Opening does not forgive: told at once, without a silent push.
        try pushes.say("4", in: room)
        #expect(try pushes.run(0) == [#"alert "4" badge 4 stored"#])
        try pushes.nap("bob", phone)
        #expect(try pushes.hours(9) == [])
        try pushes.say("not yet", in: room)
        #expect(try pushes.run(0) == [#"alert "not yet" badge 5 stored"#])
        try pushes.nap("bob", phone)
        #expect(try pushes.hours(2) == [])
        // Half a day after the last one it is tried again, and it comes.
        try pushes.say("5", in: room)
        #expect(try pushes.run(0) == ["silent"])
        try pushes.nap("bob", phone)
        #expect(try pushes.hours(2) == [])
        // Two of four are left: it is trusted with the next one.
        try pushes.say("6", in: room)
        #expect(try pushes.run(0).map { $0.prefix(5) } == ["alert"])
        try pushes.nap("bob", phone)
        #expect(try pushes.hours(11) == [])
        try pushes.say("7", in: room)
        #expect(try pushes.run(0) == ["silent"])
        try pushes.nap("bob", phone)
        try pushes.say("8", in: room)
        #expect(try pushes.run(31_000).first == "silent")
    }

    @Test func whatAPhoneHeldBackTeachesNothing() throws {
        let (pushes, room) = try sleeping {
            $0.graceQuantile = 85
            $0.graceMin = 1_000
            $0.graceMax = 60_000
            $0.graceSamples = 3
        }
        for _ in 0..<3 {
            try wake(pushes, room, after: 4_000)
            try wake(pushes, room, after: 400_000)
            try pushes.nap("bob", phone)
            #expect(try pushes.hours(1) == [])
        }
        #expect(try pushes.view(phone).policy.grace == 4_100)
    }

    @Test func aPhoneThatComesQuicklyIsGivenUpSooner() throws {
        let (pushes, room) = try sleeping(learn)
        for _ in 0..<2 { try wake(pushes, room, after: 4_000) }
        #expect(try pushes.view(phone).policy.grace == 60_000)
        try wake(pushes, room, after: 6_000)
        #expect(try pushes.view(phone).policy.grace == 6_100)
        pushes.world.pass(3_600_000)
        try pushes.tick()
        try pushes.say("1", in: room)
        #expect(try pushes.run(6_000) == ["silent"])
        #expect(try pushes.run(1_000) == [#"alert "1" badge 4 stored"#])
    }

    @Test func aPhoneThatComesLateTeachesALongerGrace() throws {
        let (pushes, room) = try sleeping(learn)
        for _ in 0..<3 {
            // Demoted, alerted, and there all the same: HELLO names the wake.
            try wake(pushes, room, after: 90_000)
            pushes.world.pass(3_600_000)
            try pushes.tick()
        }
        #expect(
            try pushes.wakes(phone).filter { $0.kind == .silent }.map(\.outcome) == [
                .late, .late, .late,
            ])
        #expect(try pushes.view(phone).policy.grace == 90_100)
        try pushes.say("1", in: room)
        #expect(try pushes.run(89_000) == ["silent"])
        #expect(try pushes.run(3_000).count == 1)
    }

    @Test func whoOpensTheAppTeachesNothing() throws {
        let (pushes, room) = try sleeping(learn)
        for _ in 0..<4 { try wake(pushes, room, after: 4_000, naming: false) }
        #expect(try pushes.view(phone).policy.grace == 60_000)
    }

    @Test func theBudgetShrinksOnNoShowsAndGrowsOnSyncs() throws {
        let (pushes, room) = try sleeping {
            $0.budgetMin = 1
            $0.budgetMax = 10
        }
        #expect(try pushes.view(phone).policy.silentBudget == 8)
        try wake(pushes, room, after: 4_000)
        #expect(try pushes.view(phone).policy.silentBudget == 9)
        for expected in [4, 2, 1, 1] as [UInt64] {
            pushes.world.pass(7_200_000)
            try pushes.tick()
            try pushes.say("x", in: room)
            #expect(try pushes.run(61_000).first == "silent")
            #expect(try pushes.view(phone).policy.silentBudget == expected)
            try pushes.nap("bob", phone)
        }
        // One an hour is left: the second message of an hour is alerted at once.
        try pushes.say("1", in: room)
        #expect(try pushes.run(0).map { $0.prefix(5) } == ["alert"])
        #expect(try pushes.view(phone).reachability == .wakeable)
    }

    @Test func kOfNMissesDemote() throws {
        let (pushes, room) = try sleeping {
            $0.demotionMisses = 2
            $0.demotionOf = 3
        }
        try pushes.say("1", in: room)
        // Missed: told, and not given up.
        #expect(try pushes.run(62_000) == ["silent", #"alert "1" badge 1 stored"#])
        #expect(try pushes.view(phone).reachability == .wakeable)
        try pushes.say("2", in: room)
        #expect(try pushes.run(62_000) == ["silent", #"alert "2 (and 1 more)" badge 2 stored"#])
        #expect(try pushes.view(phone).reachability == .unreachable)
        // Coming back forgives.
        try pushes.nap("bob", phone)
        try pushes.say("3", in: room)
        #expect(try pushes.run(62_000).count == 2)
        #expect(try pushes.view(phone).reachability == .wakeable)
    }

    @Test func aPhoneNotHeardOfForWeeksGetsOneAlertAWeek() throws {
        let (pushes, room) = try sleeping { $0.goneAfter = 14 * 86_400_000 }
        try pushes.say("1", in: room)
        #expect(try pushes.run(62_000).count == 2)
        #expect(try !pushes.view(phone).isPresumedGone)
        var words: [String] = []
        for day in 1...40 {
            try pushes.say("day \(day)", in: room)
            words += try pushes.day()
        }
        #expect(try pushes.view(phone).isPresumedGone)
        // Every day for two weeks, then once a week, and the newest speaks for all.
        #expect(words.prefix(13).allSatisfy { $0.hasPrefix("alert") })
        #expect(words.count >= 16 && words.count <= 18, "\(words)")
        #expect(words.last?.contains("more)") ?? false)
        // A sign of life, and all is as before.
        try pushes.nap("bob", phone)
        #expect(try !pushes.view(phone).isPresumedGone)
        try pushes.say("back", in: room)
        #expect(try pushes.run(0) == ["silent"])
    }

    @Test func aFaultOfAPNsCostsAPhoneThatIsGoneNoWeek() throws {
        let (pushes, room) = try sleeping { $0.goneAfter = 14 * 86_400_000 }
        try pushes.say("1", in: room)
        #expect(try pushes.run(62_000).count == 2)
        pushes.world.pass(15 * 86_400_000)
        try pushes.tick()
        #expect(try pushes.view(phone).isPresumedGone)
        let fault = PushReply.answered(
            status: 503, reason: "ServiceUnavailable", timestamp: nil)
        try pushes.say("2", in: room)
        #expect(try pushes.run(0, answering: { _ in fault }).count == 1)
        // Nothing was shown by then: it is tried again as any other.
        #expect(try pushes.run(6_000) == [#"alert "2 (and 1 more)" badge 2 stored"#])
        // That was the one of this week.
        try pushes.say("3", in: room)
        pushes.world.pass(6 * 86_400_000)
        #expect(try pushes.run(1_000) == [])
        pushes.world.pass(86_400_000)
        #expect(try pushes.run(1_000) == [#"alert "3 (and 2 more)" badge 3 stored"#])
    }

    @Test func anAlertThatCountsAsSentIsTheOneOfItsWeek() throws {
        let (pushes, room) = try sleeping { $0.goneAfter = 14 * 86_400_000 }
        try pushes.say("1", in: room)
        #expect(try pushes.run(62_000).count == 2)
        pushes.world.pass(15 * 86_400_000)
        try pushes.tick()
        try pushes.say("2", in: room)
        // Each may have been shown; after eight nobody waits for an answer any more.
        let tries = try pushes.run(3_600_000, answering: { _ in .unanswered })
        #expect(tries.count == 8, "\(tries)")
        try pushes.say("3", in: room)
        #expect(try pushes.run(60_000) == [])
    }

    @Test func whoIsOnlineIsNotGone() throws {
        let (pushes, _) = try sleeping { $0.goneAfter = 86_400_000 }
        _ = try pushes.open("bob", phone)
        for _ in 0..<3 { _ = try pushes.day() }
        #expect(try !pushes.view(phone).isPresumedGone)
    }
}

extension Pushes {
    /// A day with a look every quarter of an hour; the server is there all the time.
    func day() throws -> [String] {
        var words: [String] = []
        for _ in 0..<96 {
            for _ in 0..<180 {
                world.pass(5_000)
                try world.ask(.keepAlive)
            }
            words += try run(0)
        }
        return words
    }
}
