import Feed
import Model
import Testing
import Wake
import Wire

extension Pushes {
    /// A phone of bob's that was connected and sleeps, with a room where anna writes to him.
    static func sleeping(_ device: DeviceID = DeviceID(high: 2, low: 1)) throws
        -> (Pushes, ConversationID)
    {
        let pushes = try Pushes()
        let room = try pushes.world.converse(["anna", "bob"])
        try pushes.nap("bob", device)
        return (pushes, room)
    }

    /// The device connects, syncs, and falls asleep.
    func nap(_ user: String, _ device: DeviceID, token: UInt8 = 1) throws {
        let session = try open(user, device, token: token).session
        try acknowledge(session, try head(user))
        try end(session, within: 0)
        try run(2_000)
    }

    @discardableResult
    func say(
        _ text: String, in room: ConversationID, _ urgency: Urgency = .normal,
        from sender: String = "anna"
    ) throws -> MessageRecord {
        var options = PushOptions()
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
}

/// The sentences of Protocol/wake-rules.md about urgency and useful changes.
@Suite struct UrgencyTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)

    @Test func anUrgentMessageIsAlertedAtOnceWithoutASession() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room, .urgent)
        // In the publish's own transaction, and no silent push before it.
        #expect(try pushes.world.all(AlertRecord.self).map(\.phase) == [.queued])
        #expect(try pushes.run(0) == [#"alert "1" badge 1 stored"#])
        #expect(try pushes.run(120_000) == [])
        #expect(try pushes.view(phone).reachability == .wakeable)
    }

    @Test func anUrgentMessageBesideASessionIsAlertedInTwoSeconds() throws {
        let (pushes, room) = try Pushes.sleeping()
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.say("1", in: room, .urgent)
        #expect(pushes.world.changes.map(\.isUrgent).contains(true))
        #expect(try pushes.run(1_000) == [])
        #expect(try pushes.run(1_000) == [#"alert "1" badge 1 stored"#])
        // The session ends without having covered it: it was told.
        try pushes.end(session, within: 0)
        #expect(try pushes.run(120_000) == [])
    }

    @Test func anAlertOfItsTimeBringsNoUrgentOneForward() throws {
        let (pushes, room) = try Pushes.sleeping()
        let session = try pushes.open("bob", phone).session
        try pushes.say("timed", in: room, pushes.at(5_000))
        try pushes.acknowledge(session, try pushes.head("bob"))
        #expect(try pushes.run(4_000) == [])
        try pushes.say("fire", in: room, .urgent)
        // An ACK may still come for the urgent one; the other one does not wait for any.
        #expect(try pushes.run(1_000) == [#"alert "timed (and 1 more)" badge 2 stored"#])
        try pushes.acknowledge(session, try pushes.head("bob"))
        #expect(try pushes.run(10_000) == [])
    }

    @Test func eachOfTwoUrgentAlertsHasItsOwnTwoSeconds() throws {
        for isEdited in [false, true] {
            let (pushes, room) = try Pushes.sleeping()
            let session = try pushes.open("bob", phone).session
            try pushes.acknowledge(session, try pushes.head("bob"))
            let first = try pushes.say("1", in: room, .urgent)
            #expect(try pushes.run(1_000) == [])
            try pushes.say("2", in: room, .urgent)
            // Above the other in the feed, it is the first all the same.
            if isEdited { try pushes.world.edit(first.message, "1") }
            #expect(try pushes.run(1_000) == [#"alert "1" badge 2 stored"#], "\(isEdited)")
            if isEdited {
                #expect(try pushes.run(1_000) == [#"alert "2 (and 1 more)" badge 2 stored"#])
            } else {
                try pushes.acknowledge(session, try pushes.head("bob"))
            }
            #expect(try pushes.run(10_000) == [], "\(isEdited)")
        }
    }

    @Test func anAckInTimeCancelsTheUrgentAlert() throws {
        let (pushes, room) = try Pushes.sleeping()
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.say("1", in: room, .urgent)
        try pushes.run(1_000)
        try pushes.acknowledge(session, try pushes.head("bob"))
        #expect(try pushes.run(10_000) == [])
        #expect(try pushes.world.all(AlertRecord.self).isEmpty)
    }

    @Test func anAlertThatWasAllThatWaitedOutlivesAMuteThatIsTakenBack() throws {
        let (pushes, room) = try Pushes.sleeping()
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.say("fire", in: room, .urgent)
        try pushes.acknowledge(other, try pushes.head("bob"))
        for (number, muted) in [(1, true), (2, false)] as [(UInt64, Bool)] {
            try pushes.world.mutate(
                other, number,
                .muteConversation(MuteConversation(conversation: room, muted: muted)))
        }
        #expect(try pushes.run(0) == [#"alert "fire" badge 1 stored"#])
    }

    @Test func aNormalMessageBesideASessionIsNotUrgent() throws {
        let (pushes, room) = try Pushes.sleeping()
        _ = try pushes.open("bob", phone)
        try pushes.say("1", in: room)
        #expect(!pushes.world.changes.map(\.isUrgent).contains(true))
        #expect(try pushes.world.all(AlertRecord.self).isEmpty)
    }

    @Test func aPassiveMessageNeverAlerts() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room, .passive)
        #expect(try pushes.run(0) == ["silent"])
        #expect(try pushes.run(7_200_000) == [])
        #expect(try pushes.view(phone).reachability == .wakeable)
        // Nor does it count as unread.
        try pushes.say("2", in: room, .urgent)
        #expect(try pushes.run(0) == [#"alert "2" badge 1 stored"#])
        // An own one wakes nobody.
        try pushes.nap("bob", phone)
        try pushes.say("3", in: room, .passive, from: "bob")
        #expect(try pushes.run(0) == [])
    }

    @Test func aPassiveAnnouncementNeverAlerts() throws {
        let (pushes, _) = try Pushes.sleeping()
        var options = PushOptions()
        for (urgency, expected) in [
            (Urgency.passive, "silent"), (.urgent, #"alert "Sale" badge 0 stored"#),
        ] {
            options.urgency = urgency
            _ = try pushes.world.ask(
                .announce(
                    app: World.app,
                    Announcement(
                        announcement: pushes.world.fresh(), users: ["bob"],
                        parts: [Part(mimeType: "text/plain", content: [65])],
                        push: PushText(title: "", body: "Sale"), options: options),
                    idempotency: nil))
            #expect(try pushes.run(0) == [expected])
        }
    }

    // MARK: useful changes

    @Test func aUsefulNoShowDoesNotDemote() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room, .passive)
        #expect(try pushes.run(62_000) == ["silent"])
        #expect(try pushes.view(phone).reachability == .wakeable)
        #expect(try pushes.wakes(phone).map(\.outcome) == [.noShow])
    }

    @Test func whatBecameVisibleMeanwhileIsAlertedAtOnce() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room, .passive)
        #expect(try pushes.run(30_000) == ["silent"])
        try pushes.say("2", in: room)
        #expect(try pushes.run(29_000) == [])
        // Grace of the useful one is over: the phone would not come for this one either.
        #expect(try pushes.run(3_000) == [#"alert "2" badge 1 stored"#])
        #expect(try pushes.view(phone).reachability == .wakeable)
        #expect(try pushes.wakes(phone).map(\.outcome) == [.noShow, .accepted])
    }

    @Test func usefulChangesLeaveTheLastTokenToVisibleOnes() throws {
        let (pushes, room) = try Pushes.sleeping()
        var silents = 0
        for _ in 0..<10 {
            try pushes.say("x", in: room, .passive)
            silents += try pushes.run(120_000).count
        }
        #expect(silents == 2)
        // A visible one need not wait for the token the useful ones wait for.
        try pushes.say("1", in: room)
        #expect(try pushes.run(0) == ["silent"])
    }

    @Test func withoutATokenToSpareAUsefulChangeIsDueAtTheNextOne() throws {
        let (pushes, room) = try Pushes.sleeping()
        for _ in 0..<2 {
            try pushes.say("x", in: room, .passive)
            #expect(try pushes.run(120_000) == ["silent"])
        }
        try pushes.say("x", in: room, .passive)
        // The first token comes back an hour after it was spent, 4 minutes of which are over.
        #expect(try pushes.run(3_350_000) == [])
        #expect(try pushes.run(20_000) == ["silent"])
    }

    @Test func aReadMarkWakesWhoMayBeShowingTheMessage() throws {
        let (pushes, room) = try Pushes.sleeping()
        // The phone has the message, and showed it itself: no alert of ours is on its screen.
        try pushes.say("1", in: room)
        try pushes.run(0)
        try pushes.nap("bob", phone)
        #expect(try pushes.hours(1) == [])
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: room, through: 1)])
        #expect(try pushes.run(2_000) == ["silent"])
        // What it does not have it does not show.
        #expect(try pushes.hours(1) == [])
        try pushes.acknowledge(other, try pushes.head("bob"))
        let text = try pushes.say("2", in: room, .urgent)
        #expect(try pushes.run(0) == [#"alert "2" badge 1 stored"#])
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: room, through: text.position)])
        // This one was alerted: the badge push wakes the app as well.
        #expect(try pushes.run(2_000) == ["badge badge 0 stored"])
    }

    @Test func aDeletionWakesWhoMayBeShowingTheMessage() throws {
        let (pushes, room) = try Pushes.sleeping()
        let shown = try pushes.say("1", in: room)
        try pushes.run(0)
        try pushes.nap("bob", phone)
        pushes.world.pass(3_600_000)
        try pushes.tick()
        _ = try pushes.world.ask(
            .deleteMessage(app: World.app, shown.message, idempotency: nil))
        #expect(try pushes.run(2_000) == ["silent"])
        // Not of one it never had.
        try pushes.nap("bob", phone)
        pushes.world.pass(7_200_000)
        try pushes.tick()
        let unseen = try pushes.say("2", in: room)
        _ = try pushes.world.ask(
            .deleteMessage(app: World.app, unseen.message, idempotency: nil))
        #expect(try pushes.run(2_000) == [])
    }

    @Test func aSessionThatEndsBeforeItHeardOfAUsefulChangeIsMadeUpFor() throws {
        let changes: [(what: String, (Pushes, ConversationID, MessageRecord) throws -> Void)] = [
            ("nothing", { _, _, _ in }),
            ("a passive message", { pushes, room, _ in try pushes.say("2", in: room, .passive) }),
            (
                "an own passive message",
                { pushes, room, _ in try pushes.say("2", in: room, .passive, from: "bob") }
            ),
            (
                "a deletion",
                { pushes, _, shown in
                    _ = try pushes.world.ask(
                        .deleteMessage(app: World.app, shown.message, idempotency: nil))
                }
            ),
            (
                "read on the tablet",
                { pushes, room, shown in
                    let other = try pushes.open("bob", tablet, token: 2).session
                    try pushes.acknowledge(
                        other, try pushes.head("bob"),
                        reads: [ReadReceipt(conversation: room, through: shown.position)])
                }
            ),
            (
                "edited, and read on the tablet",
                { pushes, room, shown in
                    try pushes.world.edit(shown.message, "2")
                    let other = try pushes.open("bob", tablet, token: 2).session
                    try pushes.acknowledge(
                        other, try pushes.head("bob"),
                        reads: [ReadReceipt(conversation: room, through: shown.position)])
                }
            ),
            (
                "read and answered on the tablet",
                { pushes, room, shown in
                    let other = try pushes.open("bob", tablet, token: 2).session
                    for own in [nil, "2"] {
                        let said = try own.map { try pushes.say($0, in: room, from: "bob") }
                        try pushes.acknowledge(
                            other, try pushes.head("bob"),
                            reads: [
                                ReadReceipt(
                                    conversation: room,
                                    through: said?.position ?? shown.position)
                            ])
                    }
                }
            ),
            (
                "a deletion in a muted conversation",
                { pushes, room, shown in
                    let other = try pushes.open("bob", tablet, token: 2).session
                    try pushes.world.mutate(
                        other, 1,
                        .muteConversation(MuteConversation(conversation: room, muted: true)))
                    _ = try pushes.world.ask(
                        .deleteMessage(app: World.app, shown.message, idempotency: nil))
                }
            ),
        ]
        for (what, change) in changes {
            let (pushes, room) = try Pushes.sleeping()
            let session = try pushes.open("bob", phone).session
            let shown = try pushes.say("1", in: room)
            try pushes.acknowledge(session, try pushes.head("bob"))
            try change(pushes, room, shown)
            // The session counts: it is told there, and nothing is pushed.
            #expect(try pushes.run(1_000) == [], "\(what)")
            // Its socket is gone, and it never heard.
            try pushes.end(session, within: 10_000)
            let isMissed =
                !["nothing", "an own passive message"].contains(what)
                && !what.hasSuffix("muted conversation")
            #expect(try pushes.run(15_000) == (isMissed ? ["silent"] : []), "\(what)")
            try pushes.nap("bob", phone)
            #expect(try pushes.hours(1) == [], "\(what)")
        }
    }

    @Test func whatAPhoneReadItselfDoesNotWakeIt() throws {
        let (pushes, room) = try Pushes.sleeping()
        let session = try pushes.open("bob", phone).session
        let shown = try pushes.say("1", in: room)
        try pushes.acknowledge(
            session, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: room, through: shown.position)])
        // It is gone before it acknowledged the entry of its own mark.
        try pushes.end(session, within: 10_000)
        #expect(try pushes.run(15_000) == [])
    }

    @Test func anUnreachableDeviceIsProbedOnceADay() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room)
        try pushes.run(62_000)
        #expect(try pushes.view(phone).reachability == .unreachable)
        // All of it is read elsewhere: nothing visible is pending.
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: room, through: 1)])
        try pushes.run(5_000)
        try pushes.say("2", in: room, .passive)
        try pushes.acknowledge(other, try pushes.head("bob"))
        #expect(try pushes.hours(23) == [])
        #expect(try pushes.hours(2) == ["silent"])
        // It stays unreachable, and has a day before the next.
        #expect(try pushes.view(phone).reachability == .unreachable)
        try pushes.say("3", in: room, .passive)
        try pushes.acknowledge(other, try pushes.head("bob"))
        #expect(try pushes.hours(20) == [])
        // A visible change is alerted at once all the same.
        try pushes.say("4", in: room)
        try pushes.acknowledge(other, try pushes.head("bob"))
        #expect(try pushes.run(0) == [#"alert "4" badge 1 stored"#])
    }
}

extension Pushes {
    /// Lets hours pass, looking once a minute; the server is there all the time.
    func hours(_ count: UInt64) throws -> [String] {
        var words: [String] = []
        for _ in 0..<count * 60 {
            for _ in 0..<12 {
                world.pass(5_000)
                try world.ask(.keepAlive)
            }
            words += try run(0)
        }
        return words
    }
}
