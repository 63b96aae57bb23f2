import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// The store's clock is wrong for a while, ahead or behind, by little or by much.
@Suite struct ClockJumpTests {
    private let phone = DeviceID(high: 2, low: 1)

    @Test(arguments: [6, 60, 300, 1_800, 3_300, 7_200, 86_400, 30 * 86_400] as [UInt64])
    func aWakeThatWaitsIsSentAgainAndThenAlerted(seconds: UInt64) throws {
        let (pushes, room) = try Pushes.sleeping()
        pushes.world.pass(100 * 86_400_000)
        try pushes.run(4_000)
        try pushes.say("1", in: room)
        #expect(try pushes.run(10_000) == ["silent"])
        pushes.world.store.clock = pushes.world.now - seconds * 1_000
        // Whichever of the two is right, somebody is told soon.
        let words = try pushes.run(130_000)
        #expect(words.contains(#"alert "1" badge 1 stored"#), "\(words)")
    }

    @Test(arguments: [300, 1_800, 3_300, 86_400, 30 * 86_400] as [UInt64])
    func aClockThatWasAheadSilencesNobody(seconds: UInt64) throws {
        let (pushes, room) = try Pushes.sleeping()
        pushes.world.pass(100 * 86_400_000)
        try pushes.run(4_000)
        try pushes.say("0", in: room)
        try pushes.run(62_000)
        #expect(try pushes.view(phone).reachability == .unreachable)
        try pushes.run(120_000)
        let right = pushes.world.now
        pushes.world.store.clock = right + seconds * 1_000
        for number in 1...6 { try pushes.say("\(number)", in: room) }
        try pushes.run(1_000)
        pushes.world.store.clock = right + 2_000
        try pushes.run(3_000)
        for number in 7...12 {
            try pushes.say("\(number)", in: room)
            try pushes.run(1_000)
        }
        // All are told: the last one singly or in a summary.
        try pushes.run(61_000)
        #expect(try pushes.world.all(AlertRecord.self).allSatisfy { $0.phase == .sent })
        #expect(try pushes.world.all(AlertRecord.self).count == 13)
    }

    @Test(arguments: [300, 1_800, 3_300, 86_400] as [UInt64])
    func aSilentPushOfTheFutureDoesNotHoldTheNext(seconds: UInt64) throws {
        let (pushes, room) = try Pushes.sleeping()
        pushes.world.pass(100 * 86_400_000)
        try pushes.run(4_000)
        let right = pushes.world.now
        pushes.world.store.clock = right + seconds * 1_000
        try pushes.say("1", in: room)
        #expect(try pushes.run(0) == ["silent"])
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(2_000)
        // Nothing is owed now, so no row is there to be mended.
        #expect(try pushes.world.all(WakeRecord.self).isEmpty)
        pushes.world.store.clock = right + 2_000
        try pushes.run(4_000)
        try pushes.say("2", in: room)
        #expect(try pushes.run(62_000).first == "silent")
    }

    @Test(arguments: [60, 300, 1_800, 86_400] as [UInt64])
    func aSessionThatEndedBeforeTheClockWasSetBackIsNotExpectedForLonger(seconds: UInt64) throws {
        let pushes = try Pushes()
        pushes.world.pass(100 * 86_400_000)
        try pushes.tick()
        let room = try pushes.world.converse(["anna", "bob"])
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.say("1", in: room)
        try pushes.end(session)
        try pushes.tick()
        pushes.world.store.clock = pushes.world.now - seconds * 1_000
        #expect(try pushes.run(30_000).first == "silent")
    }

    @Test(arguments: [60, 1_800, 86_400] as [UInt64])
    func webhooksAreNotHeldUpByAClockThatWasSetBack(seconds: UInt64) throws {
        let pushes = try Pushes()
        pushes.world.pass(100 * 86_400_000)
        try pushes.tick()
        let key = WebhookKey(app: World.app, webhook: pushes.world.fresh())
        try pushes.world.ask(
            .webhooks(
                .create(
                    NewWebhook(
                        key: key, url: "https://shop.example/", kinds: .all, secret: "s",
                        series: 77))))
        try pushes.world.converse(["anna", "bob"])
        func claim() throws -> Int {
            let request = ClaimDeliveries(
                boot: BootID(high: 9, low: 9),
                ids: [pushes.world.fresh()], underWay: [:], perApp: 2, policy: WebhookPolicy())
            guard
                case .deliveries(let claimed) = try pushes.world.ask(.webhooks(.claim(request)))
            else { return 0 }
            return claimed.jobs.count
        }
        // Under way when the clock is set back, and its sender is lost.
        #expect(try claim() == 1)
        pushes.world.store.clock = pushes.world.now - seconds * 1_000
        try pushes.tick()
        pushes.world.pass(6_000)
        try pushes.tick()
        #expect(try claim() == 1)
    }

    /// By the other clock it has been failing for a time that is yet to come.
    @Test func aWebhookIsNotGivenUpLaterBecauseAClockWasAhead() throws {
        let hooks = try WebhookTests()
        let world = hooks.world
        func tick() throws {
            try world.ask(.keepAlive)
            try world.ask(.sweepWakes(rows: 100))
        }
        world.pass(100 * 86_400_000)
        try tick()
        let hook = try hooks.hook()
        try world.converse(["anna", "bob"])
        let right = world.now
        let job = try #require(try hooks.claim().first)
        try hooks.finish(job, .answered(status: 500, retryAfter: nil))
        let lease = try #require(try hooks.state(hook).due)
        #expect(lease > right)
        world.store.clock = right - 86_400_000
        try tick()
        let mended = try hooks.state(hook)
        #expect(mended.failingSince.map { $0 <= world.now } ?? false)
        #expect(mended.due.map { $0 <= world.now + 10_000 } ?? false)
        // Under way, it is another's once its lease would be over by the clock as it is.
        world.pass(10_000)
        _ = try #require(try hooks.claim().first)
        world.store.clock = world.now - 86_400_000
        try tick()
        #expect(try hooks.state(hook).leasedUntil.map { $0 <= world.now + 10_000 } ?? false)
    }

    /// What is put off by the clock as it is waits on; it is no reason to look again for ever.
    @Test func mendingEndsThoughManyWhoAreSuspendedWait() throws {
        let pushes = try Pushes()
        let world = pushes.world
        world.pass(100 * 86_400_000)
        try pushes.tick()
        let users = (1...40).map { "user-\($0)" }
        let room = try world.converse(users + ["anna"])
        for (number, user) in users.enumerated() {
            let device = DeviceID(high: 3, low: UInt64(number))
            let session = try pushes.open(user, device, token: UInt8(number + 1)).session
            try pushes.acknowledge(session, try pushes.head(user))
            try pushes.end(session, within: 0)
        }
        try pushes.run(2_000)
        try pushes.say("x", in: room)
        try world.finishFanOut()
        for user in users { try world.expectDone(.suspendUser(World.app, UserID(user))) }
        #expect(try pushes.run(5_000) == [])
        let late = world.now + 5_000
        #expect(try world.all(WakeRecord.self).count { $0.due.map { $0 > late } ?? false } == 40)
        world.store.clock = world.now - 3_600_000
        try pushes.run(10_000)
        #expect(try !world.all(MetaRecord.self).contains { $0.name == "clock_set_back" })
        for user in users { try world.expectDone(.resumeUser(World.app, UserID(user))) }
        let words = try pushes.run(35_000)
        #expect(words.count { $0 == "silent" } == 40, "\(words.count) \(words.first ?? "")")
    }

    @Test func alertsThatWaitOutliveAClockThatWasAhead() throws {
        let (pushes, room) = try Pushes.sleeping()
        pushes.world.pass(100 * 86_400_000)
        try pushes.run(4_000)
        try pushes.say("0", in: room)
        try pushes.run(62_000)
        for number in 1...8 { try pushes.say("\(number)", in: room) }
        try pushes.run(1_000)
        let right = pushes.world.now
        pushes.world.store.clock = right + 31 * 86_400_000
        try pushes.tick()
        pushes.world.store.clock = right + 1_000
        try pushes.run(2_000)
        #expect(try pushes.world.all(AlertRecord.self).count == 9)
        try pushes.run(62_000)
        #expect(try pushes.world.all(AlertRecord.self).allSatisfy { $0.phase == .sent })
    }

    /// Neither of what was sent nor of what waited then.
    @Test(arguments: [false, true])
    func whatAClockThatWasAheadQueuedIsNotTheNewestForEver(waits: Bool) throws {
        let (pushes, room) = try Self.alerted()
        let right = pushes.world.now
        pushes.world.store.clock = right + 86_400_000
        try pushes.say("ahead", in: room)
        if waits { try pushes.tick() } else { try pushes.run(1_000) }
        pushes.world.store.clock = right + 2_000
        try pushes.run(120_000)
        #expect(try pushes.world.all(AlertRecord.self).allSatisfy { $0.phase == .sent })
        try pushes.say("later", in: room)
        #expect(try pushes.run(1_000) == [#"alert "later (and 2 more)" badge 3 stored"#])
    }

    @Test(arguments: [1_800, 86_400] as [UInt64])
    func whatWaitsBehindAnotherPushIsNotForgotten(seconds: UInt64) throws {
        let (pushes, room) = try Pushes.sleeping()
        pushes.world.pass(100 * 86_400_000)
        try pushes.run(4_000)
        try pushes.say("0", in: room)
        try pushes.run(62_000)
        try pushes.run(120_000)
        // Five leave, and the rest waits for its minute.
        for number in 1...8 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(1_000).count == 5)
        pushes.world.store.clock = pushes.world.now - seconds * 1_000
        // Its row is due now, for another reason, when it is seen that the clock was set back.
        try pushes.say("fire", in: room, .urgent)
        try pushes.run(62_000)
        #expect(try pushes.world.all(AlertRecord.self).allSatisfy { $0.phase == .sent })
    }

    @Test(arguments: [5, 1_800] as [UInt64])
    func whoIsToBeLeftAloneIsSoByAClockThatWasSetBackToo(seconds: UInt64) throws {
        let (pushes, room) = try Pushes.sleeping()
        pushes.world.pass(100 * 86_400_000)
        try pushes.run(4_000)
        try pushes.say("1", in: room)
        let tooMany = PushReply.answered(
            status: 429, reason: "TooManyRequests", timestamp: nil, retryAfter: 60_000)
        #expect(try pushes.run(0, answering: { _ in tooMany }) == ["silent"])
        pushes.world.store.clock = pushes.world.now - seconds * 1_000
        try pushes.say("2", in: room)
        #expect(try pushes.run(59_000) == [])
        // A clock that is slow by a little looks like a slow second.
        #expect(try pushes.run(7_000) == ["silent"])
    }

    /// An hour and more after its end, by a clock that is wrong for half a minute.
    @Test(arguments: [7_200, 86_400] as [UInt64], [Urgency.normal, .urgent])
    func whatIsOverByAClockThatWasAheadIsToldAllTheSame(
        seconds: UInt64, urgency: Urgency
    ) throws {
        let (pushes, room) = try Self.alerted()
        let right = pushes.world.now
        for timing in [AlertTiming(expires: right + 1_200_000), AlertTiming(lifetime: 3_600_000)] {
            try pushes.say("ends", in: room, timing, urgency)
        }
        pushes.world.store.clock = right + seconds * 1_000
        #expect(try pushes.run(15_000) == [])
        // What comes meanwhile does not wait behind it.
        try pushes.say("new", in: room, urgency)
        #expect(try pushes.run(15_000).map { $0.prefix(10) } == [#"alert "new"#])
        pushes.world.store.clock = right + 30_000
        #expect(try pushes.run(10_000).map { $0.prefix(11) } == [#"alert "ends"#, #"alert "ends"#])
        #expect(try pushes.world.all(AlertRecord.self).allSatisfy { $0.phase == .sent })
    }

    @Test func itIsOverTenMinutesAfterAnOutage() throws {
        let (pushes, room) = try Self.alerted()
        try pushes.say("1", in: room, AlertTiming(lifetime: 60_000))
        try pushes.say("2", in: room, AlertTiming(lifetime: 60_000), .urgent)
        pushes.world.pass(7_200_000)
        #expect(try pushes.run(599_000) == [])
        #expect(try pushes.world.all(AlertRecord.self).count { $0.phase == .queued } == 2)
        #expect(try pushes.run(2_000) == [])
        #expect(try pushes.world.all(AlertRecord.self).count { $0.phase == .expired } == 2)
    }

    @Test func anAlertWithATimeKeepsItWhenTheClockWasAhead() throws {
        let (pushes, room) = try Self.alerted()
        let right = pushes.world.now
        let timing = AlertTiming(moment: .at(right + 300_000), expires: right + 900_000)
        try pushes.say("timed", in: room, timing)
        pushes.world.store.clock = right + 86_400_000
        #expect(try pushes.run(30_000) == [])
        pushes.world.store.clock = right + 30_000
        #expect(try pushes.run(265_000) == [])
        #expect(try pushes.run(10_000).count == 1)
    }

    /// Whoever is alerted, without a wake.
    private static func alerted() throws -> (Pushes, ConversationID) {
        let (pushes, room) = try Pushes.sleeping()
        pushes.world.pass(100 * 86_400_000)
        try pushes.run(4_000)
        try pushes.say("0", in: room)
        try pushes.run(120_000)
        return (pushes, room)
    }
}
