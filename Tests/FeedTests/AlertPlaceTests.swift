import Feed
import Model
import Testing
import Wake
import Wire

/// Which alerts a device keeps, and which of them is the newest, whatever is edited, muted or set
/// in between.
@Suite struct AlertPlaceTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)
    private let pushes: Pushes
    private let room: ConversationID
    private var world: World { pushes.world }

    init() throws {
        (pushes, room) = try Pushes.sleeping()
        try pushes.say("0", in: room)
        try pushes.run(62_000)
        #expect(try pushes.view(phone).reachability == .unreachable)
        try pushes.run(60_000)
    }

    /// - Returns: how many are kept, and how many the device is owed altogether.
    private func kept() throws -> (rows: Int, open: UInt64) {
        let row = try #require(try world.all(WakeRecord.self).first)
        return (try world.all(AlertRecord.self).count, row.alertsOpen)
    }

    @Test(arguments: [1, 3])
    func anEditTakesNoOtherAlertsPlace(edited: Int) throws {
        var said: [MessageID] = []
        for number in 1...8 { said.append(try pushes.say("\(number)", in: room).message) }
        for turn in 0..<300 { try world.edit(said[turn % edited], "edit \(turn)") }
        #expect(try kept() == (9, 9))
        try pushes.run(61_000)
        #expect(try world.all(AlertRecord.self).allSatisfy { $0.phase == .sent })
    }

    /// As many as ever, though each was edited when it was the oldest.
    @Test func editsKeepNoMoreAlertsThanThereMayBe() throws {
        var said: [MessageID] = []
        for number in 1...600 {
            said.append(try pushes.say("\(number)", in: room).message)
            if number % 2 == 0 { try world.edit(said[number / 2 - 1], "edit \(number)") }
            if number % 50 == 0 { try pushes.run(61_000) }
        }
        let (rows, open) = try kept()
        #expect(rows <= 264 && open == 601, "\(rows) \(open)")
    }

    @Test func theBadgeShowsWhatWasQueuedLastWhateverWasEdited() throws {
        let session = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        var said: [MessageRecord] = []
        for number in 1...3 {
            said.append(try pushes.say("\(number)", in: room))
            try pushes.run(2_000)
        }
        try world.edit(said[0].message, "one")
        try pushes.acknowledge(
            session, try pushes.head("bob"),
            reads: [
                ReadReceipt(
                    conversation: room,
                    ranges: [InclusiveRange(first: said[2].position, last: said[2].position)])
            ])
        #expect(try pushes.run(3_000) == [#"badge "2 (and 2 more)" badge 3 stored"#])
    }

    /// Of several that were queued in one millisecond the newest is the one that came last.
    @Test func anEditMakesNoneOfOneMomentTheNewest() throws {
        for number in 1...5 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(1_000).count == 5)
        let said = try (6...9).map { try pushes.say("\($0)", in: room).message }
        try world.edit(said[1], "seven")
        #expect(try pushes.run(61_000) == [#"alert "9 (and 9 more)" badge 10 stored"#])
    }

    /// Nor in a demotion, whose alerts are all of one moment: before it or after.
    @Test(arguments: [true, false])
    func anEditMakesNoneOfADemotionTheNewest(isBefore: Bool) throws {
        let (pushes, room) = try Pushes.sleeping()
        let side = try pushes.world.converse(["anna", "bob"])
        let said = try (1...7).map { try pushes.say("\($0)", in: $0 == 7 ? side : room).message }
        for job in try pushes.claim() { try pushes.finish(job) }
        func edit() throws { try pushes.world.edit(said[4], "five") }
        if isBefore { try edit() }
        for _ in 0..<31 {
            pushes.world.pass(2_000)
            try pushes.tick()
        }
        #expect(try pushes.view(phone).reachability == .unreachable)
        if !isBefore { try edit() }
        #expect(
            try pushes.run(3_000) == [
                #"alert "4 (and 3 more)" badge 7 stored"#, #"alert "five" badge 7 stored"#,
                #"alert "6" badge 7 stored"#, #"alert "7 (and 6 more)" badge 7 stored"#,
            ])
    }

    // MARK: mutes

    private func mute(
        _ muted: Bool, _ number: UInt64, _ session: SessionKey,
        in conversation: ConversationID? = nil
    ) throws {
        let mute = MuteConversation(conversation: conversation ?? room, muted: muted)
        try world.mutate(session, number, .muteConversation(mute))
    }

    /// It was counted nowhere in the summary, and rings by itself.
    @Test func whatWasMutedBeforeASummaryWasMadeRingsAfterwards() throws {
        let side = try world.converse(["anna", "bob"])
        let session = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        for number in 1...40 {
            try pushes.say("\(number)", in: room)
            try pushes.run(13_000)
        }
        try pushes.say("kept", in: side)
        try mute(true, 1, session, in: side)
        try pushes.say("told", in: room)
        var jobs: [PushJob] = []
        for _ in 0..<600 where jobs.isEmpty {
            world.pass(1_000)
            try pushes.tick()
            jobs = try pushes.claim().filter { $0.key.device == phone }
        }
        let leaving = try #require(
            try world.all(AlertRecord.self).first { $0.device == phone && $0.phase == .sending })
        try #require(leaving.summary == .device)
        try mute(false, 2, session, in: side)
        for job in jobs { try pushes.finish(job) }
        let told = try pushes.run(4_000_000)
        #expect(told.contains { $0.contains("kept") }, "\(told)")
    }

    @Test func whatIsUnderWayDuringAMuteRingsOnce() throws {
        let session = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.say("1", in: room)
        try pushes.tick()
        let jobs = try pushes.claim()
        #expect(jobs.map(\.word) == [#"alert "1 (and 1 more)" badge 2 stored"#])
        try mute(true, 1, session)
        try mute(false, 2, session)
        for job in jobs { try pushes.finish(job) }
        #expect(try pushes.run(120_000) == [])
        // What was told before the mute is not counted again.
        #expect(try Set(world.all(AlertRecord.self).map(\.phase)) == [.sent, .cancelled])
        #expect(try kept().open == 1)
    }

    /// What a summary under way tells of is told with it.
    @Test func whatASummaryUnderWayTellsDuringAMuteRingsOnce() throws {
        let session = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        for number in 1...8 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(59_000).count == 5)
        world.pass(2_000)
        try pushes.tick()
        let jobs = try pushes.claim()
        #expect(jobs.map(\.word) == [#"alert "8 (and 8 more)" badge 9 stored"#])
        try mute(true, 1, session)
        try mute(false, 2, session)
        for job in jobs { try pushes.finish(job) }
        #expect(try pushes.run(120_000) == [])
        #expect(try world.all(AlertRecord.self).count { $0.phase == .sent } == 3)
    }

    /// APNs did not take it: it is sent again, once.
    @Test func whatAPNsDidNotTakeDuringAMuteRingsOnce() throws {
        let session = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.say("1", in: room)
        try pushes.tick()
        let job = try #require(try pushes.claim().first)
        try mute(true, 1, session)
        try mute(false, 2, session)
        try pushes.finish(
            job,
            .answered(
                status: 503, reason: "ServiceUnavailable", timestamp: nil, retryAfter: nil))
        let sent = try pushes.run(120_000)
        // The badge push takes what was told before the mute off the screen.
        let alerts = sent.filter { $0.hasPrefix("alert") }
        #expect(alerts.map { $0.prefix(8) } == [#"alert "1"#], "\(sent)")
    }
}
