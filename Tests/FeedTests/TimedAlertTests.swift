import Feed
import Model
import Testing
import Wake
import Wire

extension Pushes {
    /// Publishes with a timing of the alert.
    @discardableResult
    func say(
        _ text: String, in room: ConversationID, _ timing: AlertTiming,
        _ urgency: Urgency = .normal, from sender: String = "anna"
    ) throws -> MessageRecord {
        var options = PushOptions()
        options.timing = timing
        options.urgency = urgency
        let answer = try world.ask(
            .publish(
                app: World.app,
                Publication(
                    message: world.message0(text, to: room, world.fresh()), sender: sender,
                    options: options), idempotency: nil))
        guard case .published(let record) = answer else { throw Unexpected(answer: answer) }
        return record
    }

    func at(_ delay: Milliseconds) -> AlertTiming {
        AlertTiming(moment: .at(world.now + delay))
    }
}

/// The sentences of Protocol/wake-rules.md about times of alerts.
@Suite struct TimedAlertTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)
    private let hour: Milliseconds = 3_600_000

    private func phases(_ pushes: Pushes) throws -> [AlertPhase] {
        try pushes.world.all(AlertRecord.self).map(\.phase)
    }

    // MARK: until its time

    @Test func anAlertWithATimeIsNotShownBefore() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room, pushes.at(120_000))
        // It is in the feed at once, and nothing wakes the phone for it.
        #expect(try pushes.world.page("bob").entries.last?.word == "message 1")
        #expect(try phases(pushes) == [.delayed])
        #expect(try pushes.run(119_000) == [])
        #expect(try pushes.run(1_000) == [#"alert "1" badge 1 stored"#])
        #expect(try pushes.run(120_000) == [])
        // Nothing was missed that could have demoted it.
        #expect(try pushes.view(phone).reachability == .wakeable)
    }

    @Test func whatComesMeanwhileTakesItsOwnWay() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("timed", in: room, pushes.at(300_000))
        try pushes.say("now", in: room)
        // One silent push, and after the grace an alert that does not speak of the other one.
        #expect(try pushes.run(70_000) == ["silent", #"alert "now" badge 2 stored"#])
        // It is the newest by then, and speaks for the one before in APNs' slot.
        #expect(try pushes.run(240_000) == [#"alert "timed (and 1 more)" badge 2 stored"#])
    }

    @Test func aTimeThatHasPassedIsNow() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say(
            "1", in: room, AlertTiming(moment: .at(Timestamp(milliseconds: 1))))
        #expect(try pushes.run(0) == [#"alert "1" badge 1 stored"#])
    }

    @Test func anUnreachableDeviceIsNotToldBeforeEither() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room)
        try pushes.run(62_000)
        #expect(try pushes.view(phone).reachability == .unreachable)
        try pushes.say("2", in: room, pushes.at(120_000))
        #expect(try pushes.run(119_000) == [])
        #expect(try pushes.run(1_000).count == 1)
    }

    @Test func theEndOfASessionOwesNothingForIt() throws {
        let (pushes, room) = try Pushes.sleeping()
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.say("1", in: room, pushes.at(120_000))
        try pushes.end(session, within: 0)
        #expect(try pushes.run(119_000) == [])
        #expect(try pushes.run(1_000) == [#"alert "1" badge 1 stored"#])
    }

    // MARK: what cancels it

    @Test func anAckDoesNotCancelAnAlertWithATime() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room, pushes.at(120_000))
        let session = try pushes.open("bob", phone).session
        // The server alone tells of it: the device is told so.
        #expect(try pushes.world.page("bob", device: phone).entries.last?.alerted == true)
        try pushes.acknowledge(session, try pushes.head("bob"))
        #expect(try phases(pushes) == [.delayed])
        #expect(try pushes.run(119_000) == [])
        // Beside the session.
        #expect(try pushes.run(1_000) == [#"alert "1" badge 1 stored"#])
        // What was told goes with the next ACK, as others do.
        try pushes.acknowledge(session, try pushes.head("bob"))
        #expect(try phases(pushes).isEmpty)
    }

    @Test func manyThatWaitDoNotStandInTheWayOfAnAck() throws {
        let (pushes, room) = try Pushes.sleeping()
        for _ in 0..<130 { try pushes.say("x", in: room, pushes.at(hour)) }
        try pushes.say("now", in: room, .urgent)
        #expect(try pushes.run(0).count == 1)
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        #expect(try phases(pushes) == Array(repeating: .delayed, count: 130))
    }

    @Test func whatIsReadBeforeItsTimeIsNotAlerted() throws {
        let (pushes, room) = try Pushes.sleeping()
        let message = try pushes.say("1", in: room, pushes.at(120_000))
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: room, through: message.position)])
        #expect(try phases(pushes) == [.cancelled])
        #expect(try pushes.run(180_000) == [])
    }

    @Test func anAnnouncementReadBeforeItsTimeIsNotAlerted() throws {
        let (pushes, _) = try Pushes.sleeping()
        let id: MessageID = pushes.world.fresh()
        var options = PushOptions()
        options.timing = pushes.at(120_000)
        _ = try pushes.world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: id, users: ["bob"],
                    parts: [Part(mimeType: "text/plain", content: [65])],
                    push: PushText(title: "", body: "Sale"), options: options),
                idempotency: nil))
        #expect(try phases(pushes) == [.delayed])
        let other = try pushes.open("bob", tablet, token: 2).session
        #expect(try pushes.world.page("bob", device: tablet).entries.last?.alerted == true)
        try pushes.acknowledge(
            other, try pushes.head("bob"), reads: [ReadReceipt(announcement: id)])
        #expect(try phases(pushes) == [.cancelled])
        #expect(try pushes.run(180_000) == [])
    }

    @Test func whatIsDeletedBeforeItsTimeIsNotAlerted() throws {
        let (pushes, room) = try Pushes.sleeping()
        let message = try pushes.say("1", in: room, pushes.at(120_000))
        try pushes.world.delete(message.message)
        #expect(try phases(pushes) == [.cancelled])
        #expect(try pushes.run(180_000) == [])
        // It is not counted any more.
        try pushes.say("2", in: room, .urgent)
        #expect(try pushes.run(0) == [#"alert "2" badge 1 stored"#])
    }

    @Test func aDeletionForEveryoneCancelsAlertsThatWait() throws {
        let (pushes, room) = try Pushes.sleeping()
        let message = try pushes.say("1", in: room, .urgent)
        #expect(try phases(pushes) == [.queued])
        try pushes.world.delete(message.message)
        #expect(try phases(pushes) == [.cancelled])
        #expect(try pushes.run(10_000) == [])
    }

    @Test func theTextIsThatOfTheNewestEdit() throws {
        let (pushes, room) = try Pushes.sleeping()
        let message = try pushes.say("1", in: room, pushes.at(120_000))
        try pushes.world.edit(message.message, "2")
        #expect(try pushes.run(119_000) == [])
        #expect(try pushes.run(1_000) == [#"alert "2" badge 1 stored"#])
        #expect(
            try pushes.world.all(AlertRecord.self).map(\.seq) == [try pushes.head("bob")])
    }

    @Test func whoMutedOrLeftMeanwhileIsNotAlerted() throws {
        for isMuted in [true, false] {
            let (pushes, room) = try Pushes.sleeping()
            let message = try pushes.say("1", in: room, pushes.at(120_000))
            if isMuted {
                let session = try pushes.open("bob", tablet, token: 2).session
                _ = try pushes.world.mutate(
                    session, 1,
                    .muteConversation(MuteConversation(conversation: room, muted: true)))
                try pushes.end(session, within: 0)
            } else {
                try pushes.world.remove(["bob"], from: room)
            }
            #expect(try pushes.run(180_000) == [])
            let refusals = try pushes.world.all(RefusalRecord.self).map(\.message)
            #expect(refusals == (isMuted ? [message.message] : []))
        }
    }

    // MARK: rate

    @Test func alertsOfOneTimeKeepTheRate() throws {
        let (pushes, room) = try Pushes.sleeping()
        for number in 1...8 { try pushes.say("\(number)", in: room, pushes.at(120_000)) }
        let words = try pushes.run(120_000)
        #expect(words.count == 5)
        #expect(try pushes.run(60_000).count == 1)
        // The summary speaks for the rest.
        #expect(try pushes.run(120_000) == [])
        #expect(try pushes.view(phone).reachability == .wakeable)
    }

    @Test func anUrgentAlertWithATimeDoesNotKeepTheRate() throws {
        let (pushes, room) = try Pushes.sleeping()
        for number in 1...8 {
            try pushes.say("\(number)", in: room, pushes.at(120_000), .urgent)
        }
        #expect(try pushes.run(120_000).count == 8)
    }

    // MARK: the device's own clock

    @Test func aLocalTimeIsThatOfEachDevice() throws {
        let pushes = try Pushes()
        pushes.world.zones = TwoZones()
        let room = try pushes.world.converse(["anna", "bob"])
        for (device, zone, token) in [(phone, "East", UInt8(1)), (tablet, "", 2)] {
            let answer = try pushes.world.ask(
                .openSession(
                    OpenSession(
                        app: World.app, device: device, role: .app,
                        credential: .identity(UserID("bob")),
                        newTokenHash: pushes.world.hash(), freshEpochHalf: 5, boot: pushes.boot,
                        push: Pushes.registration(token), place: DevicePlace(timeZone: zone))))
            guard case .opened(let opened) = answer else { throw Unexpected(answer: answer) }
            try pushes.end(opened.session, applied: try pushes.head("bob"), within: 0)
        }
        try pushes.run(2_000)
        // It is 00:16 in UTC and 01:16 in the east; the tablet has not said where it is.
        let nine = LocalMoment(wall: 9 * hour, isDaily: true, zone: "West")
        try pushes.say("1", in: room, AlertTiming(moment: .local(nine)))
        let rows = try pushes.world.all(AlertRecord.self)
        #expect(
            rows.map { [$0.device == phone ? 8 * hour : 11 * hour] }
                == rows.map { [$0.moment?.milliseconds ?? 0] })
        #expect(rows.count == 2)
        // Nobody knows this zone.
        let nowhere = LocalMoment(wall: 9 * hour, isDaily: true, zone: "Nowhere")
        var options = PushOptions()
        options.timing.moment = .local(nowhere)
        #expect(
            try pushes.world.ask(
                .publish(
                    app: World.app,
                    Publication(
                        message: pushes.world.message0("x", to: room, pushes.world.fresh()),
                        sender: "", options: options), idempotency: nil)
            ).refusal == .malformed)
    }

    // MARK: its end

    @Test func anAlertPastItsEndIsNotSent() throws {
        let (pushes, room) = try Pushes.sleeping()
        // The wake is missed after 60 s; by then it is over.
        let timing = AlertTiming(expires: pushes.world.now + 30_000)
        try pushes.say("1", in: room, timing)
        #expect(try pushes.run(120_000) == ["silent"])
        #expect(try phases(pushes) == [.expired])
        // The same with a time to live, and one that is in time.
        try pushes.say("2", in: room, AlertTiming(lifetime: 30_000))
        let jobs = try pushes.claim()
        #expect(jobs.count == 1)
        #expect(
            jobs.first?.request.expiration == (pushes.world.now + 30_000).milliseconds / 1_000)
    }

    @Test func theTimeToLiveCountsFromTheAlertsOwnTime() throws {
        let (pushes, room) = try Pushes.sleeping()
        var timing = pushes.at(120_000)
        timing.lifetime = 60_000
        let shown = pushes.world.now + 120_000
        try pushes.say("1", in: room, timing)
        #expect(try pushes.run(120_000).count == 1)
        #expect(
            pushes.sent.last?.request.expiration == (shown + 60_000).milliseconds / 1_000)
        // As of a backend whose clock is behind.
        let now = pushes.world.now
        timing = AlertTiming(moment: .at(now - 10_000), expires: now - 5_000)
        try pushes.say("2", in: room, timing)
        #expect(try pushes.run(180_000) == [])
        #expect(try phases(pushes).contains(.expired))
    }

    @Test func apnsStoresNoAlertForLongerThanItIsToBeShown() throws {
        let (pushes, room) = try Pushes.sleeping()
        let end = pushes.world.now + 600_000
        try pushes.say("1", in: room, AlertTiming(expires: end), .urgent)
        try pushes.run(0)
        #expect(pushes.sent.last?.request.expiration == end.milliseconds / 1_000)
        // The app's own limit is 30 days.
        try pushes.say(
            "2", in: room, AlertTiming(expires: pushes.world.now + 60 * 24 * hour), .urgent)
        try pushes.run(0)
        #expect(
            pushes.sent.last?.request.expiration
                == (pushes.world.now + 30 * 24 * hour).milliseconds / 1_000)
    }

    @Test func aDeviceThatComesAfterTheEndNotifiesOfNothing() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room, AlertTiming(lifetime: 30_000))
        func isAlerted() throws -> Bool? {
            try pushes.world.page("bob", device: phone).entries.last?.alerted
        }
        #expect(try isAlerted() == false)
        pushes.world.pass(30_000)
        #expect(try isAlerted() == true)
    }

    @Test func whatIsTooFarAheadIsRefused() throws {
        let (pushes, room) = try Pushes.sleeping()
        func refusal(_ timing: AlertTiming) throws -> Code? {
            var options = PushOptions()
            options.timing = timing
            return try pushes.world.ask(
                .publish(
                    app: World.app,
                    Publication(
                        message: pushes.world.message0("x", to: room, pushes.world.fresh()),
                        sender: "", options: options), idempotency: nil)
            ).refusal
        }
        let horizon = pushes.world.limits.scheduleHorizon
        #expect(try refusal(pushes.at(horizon)) == nil)
        #expect(try refusal(pushes.at(horizon + 1)) == .malformed)
        let wall = (pushes.world.now + horizon + 1).milliseconds
        #expect(
            try refusal(
                AlertTiming(moment: .local(LocalMoment(wall: wall, isDaily: false))))
                == .malformed)
    }

    @Test func rowsThatWaitGoWithTheTokenAndTheDevice() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room, pushes.at(120_000))
        try pushes.world.expectDone(.removeDevice(World.app, UserID("bob"), phone))
        #expect(try phases(pushes).isEmpty)
        #expect(try pushes.run(180_000) == [])
    }
}

/// Zones without summer time: one an hour east, one two hours west of UTC.
private struct TwoZones: ZoneClock {
    func offset(of zone: String, at time: Timestamp) -> Int64? {
        switch zone {
        case "East": 3_600
        case "West": -7_200
        default: nil
        }
    }
}
