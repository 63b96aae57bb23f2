import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// What a push waits for that APNs did not take, and who does not wait for it.
@Suite struct BackOffTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)
    private let fault = PushReply.answered(
        status: 503, reason: "ServiceUnavailable", timestamp: nil)
    private let tooMany = PushReply.answered(
        status: 429, reason: "TooManyRequests", timestamp: nil)

    /// A phone that missed a wake, with one alert on its screen, a quiet while ago.
    private func unreachable() throws -> (Pushes, ConversationID) {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("0", in: room)
        try pushes.run(62_000)
        #expect(try pushes.view(phone).reachability == .unreachable)
        try pushes.run(120_000)
        return (pushes, room)
    }

    @Test func aFaultOfAPNsHoldsThatPushAndNoUrgentOne() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        #expect(try pushes.run(6_000, answering: { _ in fault }).count == 2)
        try pushes.say("fire", in: room, .urgent)
        #expect(try pushes.run(0).first == #"alert "fire (and 2 more)" badge 3 stored"#)
    }

    @Test func anUrgentAlertIsNotHeldByThePushUnderWayWhenItCame() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        // Its fifth try is under way when the urgent one comes.
        #expect(try pushes.run(40_000, answering: { _ in fault }).count == 4)
        while try pushes.claim().isEmpty {
            pushes.world.pass(1_000)
            try pushes.tick()
        }
        let failing = try #require(pushes.sent.last)
        try pushes.say("fire", in: room, .urgent)
        try pushes.finish(failing, fault)
        #expect(try pushes.run(0).first == #"alert "fire (and 2 more)" badge 3 stored"#)
    }

    @Test func anUrgentAlertIsHeldForItsOwnFaultsAlone() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        #expect(try pushes.run(40_000, answering: { _ in fault }).count == 4)
        try pushes.say("fire", in: room, .urgent)
        #expect(try pushes.run(0, answering: { _ in fault }).count == 1)
        // 5 s as any first fault, whatever pushes before it met.
        #expect(try pushes.run(4_000).isEmpty)
        #expect(try pushes.run(3_000).first == #"alert "fire (and 2 more)" badge 3 stored"#)
    }

    @Test func anUrgentAlertBesideAnOverdueOneKeepsItsOwnBackOff() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        pushes.world.pass(3_000)
        try pushes.tick()
        try pushes.say("fire", in: room, .urgent)
        let first = try #require(try pushes.claim().first)
        #expect(first.word.hasPrefix(#"alert "fire"#), "\(first.word)")
        try pushes.finish(first, fault)
        #expect(try pushes.run(4_000) == [])
        #expect(try pushes.run(2_000).first == #"alert "fire (and 2 more)" badge 3 stored"#)
    }

    @Test func aLowerClassBlocksNoHigher() throws {
        let (pushes, room) = try unreachable()
        let side = try pushes.world.converse(["anna", "bob"])
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"), reads: [ReadReceipt(conversation: room, through: 1)])
        // The badge meets a fault; what comes then does not wait for it.
        #expect(try pushes.run(2_000, answering: { _ in fault }) == ["badge badge 0 stored"])
        try pushes.say("1", in: side)
        #expect(try pushes.run(0).first == #"alert "1" badge 1 stored"#)
    }

    @Test func aFaultOfAPNsThatEndsIsOverWithinAMinute() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        let tries = try pushes.run(180_000, answering: { _ in fault })
        #expect(tries.count >= 4 && tries.count <= 12, "\(tries.count)")
        #expect(try pushes.run(61_000) == [#"alert "1 (and 1 more)" badge 2 stored"#])
    }

    @Test func whatAPNsAskedToLeaveAloneIsLeftAlone() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        #expect(try pushes.run(0, answering: { _ in tooMany }).count == 1)
        for number in 2...5 {
            try pushes.say("\(number)", in: room)
            #expect(try pushes.run(10_000) == [])
        }
        #expect(try pushes.run(25_000).count == 5)
    }

    @Test func whatAPNsAskedToLeaveAloneIsNotSentAnythingUrgentEither() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        #expect(try pushes.run(0, answering: { _ in tooMany }).count == 1)
        try pushes.say("fire", in: room, .urgent)
        #expect(try pushes.run(10_000) == [])
        let words = try pushes.run(60_000)
        #expect(words.first == #"alert "fire (and 2 more)" badge 3 stored"#, "\(words)")
    }

    @Test func aNewTokenEndsWhatWasAskedForTheOld() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room)
        #expect(try pushes.run(0, answering: { _ in tooMany }) == ["silent"])
        try pushes.nap("bob", phone, token: 9)
        try pushes.say("2", in: room)
        #expect(try pushes.run(0) == ["silent"])
    }

    @Test func anAlertWithoutAnAnswerBacksOffAndEnds() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        var moments: [UInt64] = []
        let began = pushes.world.now
        for _ in 0..<7_200 {
            try pushes.tick()
            for job in try pushes.claim() {
                moments.append(pushes.world.now.since(began) / 1_000)
                try pushes.finish(job, .unanswered)
            }
            pushes.world.pass(1_000)
        }
        #expect(moments.count >= 4 && moments.count <= 8, "\(moments)")
        for (earlier, later) in zip(moments.dropFirst(), moments.dropFirst(2)) {
            #expect(later >= earlier * 2, "\(moments)")
        }
        // It may have arrived; the next one speaks for it.
        #expect(try pushes.world.all(AlertRecord.self).map(\.phase) == [.sent, .sent])
        try pushes.say("2", in: room)
        #expect(try pushes.run(0) == [#"alert "2 (and 2 more)" badge 3 stored"#])
    }

    @Test func anUrgentAlertIsFoundInALongQueue() throws {
        let (pushes, room) = try Pushes.sleeping()
        var app = try #require(try pushes.world.all(AppRecord.self).first)
        app.adaptive.goneAfter = 14 * 86_400_000
        try pushes.world.expectDone(.putApp(app))
        try pushes.say("0", in: room)
        #expect(try pushes.run(62_000).count == 2)
        for _ in 0..<15 { _ = try pushes.day() }
        #expect(try pushes.view(phone).isPresumedGone)
        try pushes.say("weekly", in: room)
        #expect(try pushes.run(1_000).count == 1)
        for number in 1...80 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(1_000) == [])
        try pushes.say("fire", in: room, .urgent)
        let words = try pushes.run(1_000)
        #expect(words.count == 1 && words[0].hasPrefix(#"alert "fire"#), "\(words)")
    }

    @Test func oneSummaryAMinuteHoweverManyWait() throws {
        let (pushes, room) = try unreachable()
        for number in 1...400 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(50_000).count == 5)
        for number in 401...500 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(5_000).count == 0)
        #expect(try pushes.run(6_000) == [#"alert "500 (and 500 more)" badge 501 stored"#])
    }

    // MARK: what a push that never left costs

    @Test func aPushThatNeverLeftSpendsNoToken() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room)
        let tries = try pushes.run(5_000, answering: { _ in .notSent })
        #expect(tries.count >= 5 && Set(tries) == ["silent"], "\(tries)")
        #expect(try pushes.run(1_000) == ["silent"])
    }

    @Test func anAlertThatNeverLeftIsNoneOfTheBurst() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        try pushes.run(10_000, answering: { _ in .notSent })
        for number in 2...5 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(2_000).count == 5)
    }

    @Test func theWakeLeavesBeforeTheAlerts() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room)
        try pushes.say("fire", in: room, .urgent)
        let first = try #require(try pushes.claim().first)
        #expect(first.kind == .alert, "urgent ones alone go before it")
        let machine = Reachability.owing()
        #expect(machine.need(now: machine.row.alertDue) == .wake)
        #expect(machine.row.lane == .wake)
    }

    @Test func whatAPNsAsksForTheOldTokenHoldsTheNewOneUpInNothing() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room)
        let job = try #require(try pushes.claim().first)
        let session = try pushes.open("bob", phone, token: 9).session
        try pushes.end(session, within: 0)
        try pushes.finish(job, tooMany)
        try pushes.say("2", in: room)
        #expect(try pushes.run(1_000) == ["silent"])
    }

    @Test func whatAPNsSaysOfTheOldTokenHoldsNoAlertToTheNewOne() throws {
        for reply in [fault, .unanswered] {
            let (pushes, room) = try unreachable()
            try pushes.say("fire", in: room, .urgent)
            let job = try #require(try pushes.claim().first)
            let session = try pushes.open("bob", phone, token: 9).session
            try pushes.finish(job, reply)
            try pushes.end(session, within: 0)
            let first = try pushes.run(0).first
            #expect(first?.hasPrefix(#"alert "fire"#) ?? false, "\(first ?? "")")
        }
    }

    @Test func aTokenThatAPNsKeepsCallingDeadIsNotAskedAboutForEver() throws {
        let (pushes, room) = try Pushes.sleeping()
        // By APNs it died before the app came with it.
        let dead = PushReply.answered(
            status: 410, reason: "Unregistered", timestamp: pushes.world.now - 600_000)
        try pushes.say("1", in: room)
        var tries: [Int] = []
        for _ in 0..<110 {
            tries.append(try pushes.run(0, answering: { _ in dead }).count)
            pushes.world.pass(15 * 60_000)
        }
        #expect(tries.prefix(90).allSatisfy { $0 == 1 }, "\(tries)")
        #expect(tries.reduce(0, +) <= 98, "\(tries)")
        #expect(try pushes.view(phone).device.pushToken == nil)
        // The app comes with it again, and it is asked about again.
        try pushes.nap("bob", phone)
        try pushes.say("2", in: room)
        #expect(try pushes.run(0) == ["silent"])
    }

    @Test func anUrgentAlertThatIsReadLetsNoOtherPassTheWake() throws {
        let (pushes, room) = try Pushes.sleeping()
        let side = try pushes.world.converse(["anna", "bob"])
        var app = try #require(try pushes.world.all(AppRecord.self).first)
        app.silentWindow = 600_000
        try pushes.world.expectDone(.putApp(app))
        // Without a token left it alerts at once, and stays wakeable.
        for number in 1...3 {
            try pushes.say("\(number)", in: room)
            #expect(try pushes.run(60_000).first == "silent")
            try pushes.nap("bob", phone)
        }
        try pushes.say("4", in: room)
        #expect(try pushes.run(0, answering: { _ in tooMany }).count == 1)
        // The window is over while APNs still wants to be left alone by this phone.
        for _ in 0..<11 {
            let tries = try pushes.run(60_000, answering: { _ in tooMany })
            #expect(tries.count <= 1)
        }
        try pushes.say("5", in: room)
        let fire = try pushes.say("fire", in: side, .urgent)
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: side, through: fire.position)])
        #expect(try pushes.run(900_000).first == "silent")
    }

    @Test func anAlertToTheOldTokenIsNotOnTheNewOnesScreen() throws {
        let (pushes, room) = try unreachable()
        try pushes.nap("bob", phone)
        try pushes.say("fire", in: room, .urgent)
        let job = try #require(try pushes.claim().first)
        // A new token, and no sync: what was sent to the old one may never arrive.
        let session = try pushes.open("bob", phone, token: 9).session
        try pushes.finish(job)
        #expect(try !pushes.view(phone).device.wasAlerted)
        try pushes.end(session, within: 0)
    }

    @Test func afterPartOfASyncTheIconIsNotKnown() throws {
        let (pushes, _) = try unreachable()
        let side = try pushes.world.converse(["anna", "bob"])
        let first = try pushes.say("1", in: side)
        try pushes.run(0)
        // The app runs for a moment and sets its icon to what it knows then.
        let session = try pushes.open("bob", phone).session
        let position = try #require(
            try pushes.world.rows("bob").first { $0.object == first.message.bytes }
        ).seq
        try pushes.acknowledge(session, position - 2, completes: false)
        try pushes.end(session, within: 0)
        // The number it was last sent is right, and yet it is sent again.
        #expect(try pushes.run(3_000) == ["badge badge 2"])
    }
}

extension Reachability {
    /// Alerts are queued and a wake is due, both now.
    fileprivate static func owing() -> Reachability {
        let now = Timestamp(milliseconds: 1_000_000)
        var machine = Reachability(
            policy: WakePolicy(), tokenGeneration: 1,
            row: WakeRecord(
                app: World.app, user: UserID("bob"), device: DeviceID(high: 2, low: 1)))
        machine.alertsChanged(queued: 1, open: 1, due: now, now: now)
        _ = machine.changed(
            VisibleChange(
                seq: 5, conversation: ConversationID(high: 1, low: 1),
                message: MessageID(high: 1, low: 1)), now: now)
        return machine
    }
}
