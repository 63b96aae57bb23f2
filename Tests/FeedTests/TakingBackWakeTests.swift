import Feed
import Model
import Testing
import Wake
import Wire

/// What an announcement that is taken back asks of phones that sleep.
@Suite struct TakingBackWakeTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)
    private let pushes: Pushes
    private let id: MessageID
    private var world: World { pushes.world }

    init() throws {
        pushes = try Pushes.sleeping().0
        id = pushes.world.fresh()
    }

    private func announce(
        _ text: String?, _ change: (inout PushOptions) -> Void = { _ in }
    ) throws {
        var options = PushOptions()
        change(&options)
        let answer = try world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: id, users: ["bob"],
                    parts: [Part(mimeType: "text/plain", content: [65])],
                    push: text.map { PushText(title: "", body: $0) }, options: options),
                idempotency: nil))
        #expect(answer.refusal == nil)
    }

    private func takeBack() throws {
        try world.ask(.takeBackAnnouncement(app: World.app, id, idempotency: nil))
        try world.finishFanOut()
    }

    @Test func anAnnouncementTakenBackWakesThePhoneThatMayShowIt() throws {
        try announce("news")
        try pushes.nap("bob", phone)
        #expect(try pushes.run(60_000) == [])
        try takeBack()
        #expect(try pushes.run(60_000).first == "silent")
        let silent = String(decoding: try #require(pushes.sent.last).request.payload, as: UTF8.self)
        #expect(silent.contains(#""e":"announcement","o":"\#(id)""#), "\(silent)")
    }

    /// It has been shown, and nothing of it is visible in the feed.
    @Test func soDoesOneWhoseAlertHadATimeOfItsOwn() throws {
        try announce("later") { $0.timing.moment = .at(world.now + 30_000) }
        #expect(try pushes.run(40_000).first == #"alert "later" badge 0 stored"#)
        try pushes.nap("bob", phone)
        #expect(try pushes.run(60_000) == [])
        try takeBack()
        #expect(try pushes.run(60_000).first == "silent")
    }

    @Test("one that was read, or never alerted, wakes nobody", arguments: ["read", "", "passive"])
    func whatIsNotShownWakesNobody(_ how: String) throws {
        try announce(how.isEmpty ? nil : "news") {
            if how == "passive" { $0.urgency = .passive }
        }
        let session = try pushes.open("bob", tablet, token: 2).session
        if how == "read" {
            try pushes.acknowledge(
                session, try pushes.head("bob"), reads: [ReadReceipt(announcement: id)])
        }
        try pushes.run(60_000)
        try pushes.nap("bob", phone)
        #expect(try pushes.run(600_000) == [])
        try takeBack()
        #expect(try pushes.run(60_000) == [])
    }

    @Test func anAlertThatWaitsIsCancelled() throws {
        try announce("news")
        #expect(try pushes.run(0) == ["silent"])
        try takeBack()
        // The phone's grace ends: there is nothing to tell it.
        #expect(try pushes.run(70_000) == [])
    }

    /// The alert is due before the tombstone has come into the feed.
    @Test func norDoesItLeaveWhileTheTombstoneIsOnItsWay() throws {
        try announce("news")
        #expect(try pushes.run(59_000) == ["silent"])
        try world.ask(.takeBackAnnouncement(app: World.app, id, idempotency: nil))
        #expect(try pushes.run(10_000) == [])
        #expect(try world.all(AlertRecord.self).allSatisfy { $0.sentAt == nil })
    }

    @Test func anAlertOfATimeToComeIsNotShown() throws {
        try announce("later") { $0.timing.moment = .at(world.now + 600_000) }
        try takeBack()
        #expect(try pushes.run(700_000) == [])
    }

    /// The session ends before the phone has heard of it, and the phone is woken then.
    @Test func aSessionThatEndsBeforeItHeardOfItIsMadeUpFor() throws {
        try announce("news")
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try takeBack()
        #expect(try pushes.run(10_000) == [])
        try pushes.end(session, within: 0)
        #expect(try pushes.run(60_000).first == "silent")
    }

    @Test func butNotOfOneThatWasReadBefore() throws {
        try announce("news")
        let other = try pushes.open("bob", tablet, token: 2).session
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(
            other, try pushes.head("bob"), reads: [ReadReceipt(announcement: id)])
        for session in [other, session] {
            try pushes.acknowledge(session, try pushes.head("bob"))
        }
        try takeBack()
        try pushes.end(session, within: 0)
        #expect(try pushes.run(60_000) == [])
    }

    /// An announcement is told of with others while it is unread, and not after.
    @Test func aLaterAlertDoesNotNameIt() throws {
        try announce("news")
        #expect(try pushes.run(61_000) == ["silent", #"alert "news" badge 0 stored"#])
        try takeBack()
        try pushes.run(60_000)
        let other: MessageID = world.fresh()
        try world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: other, users: ["bob"],
                    parts: [Part(mimeType: "text/plain", content: [65])],
                    push: PushText(title: "", body: "right")), idempotency: nil))
        #expect(try pushes.run(2_000) == [#"alert "right" badge 0 stored"#])
    }

    @Test func explainTellsOfIt() throws {
        func reasons() throws -> [ExplainReason] {
            let reading = try world.read(
                .explain(World.app, ExplainQuery(message: id, user: UserID("bob"))))
            guard case .explained(let found) = reading else { throw Unexpected(answer: .done) }
            return found.subjects.flatMap(\.steps).map(\.reason)
        }
        try announce("news")
        try pushes.run(0)
        try world.ask(.takeBackAnnouncement(app: World.app, id, idempotency: nil))
        #expect(try reasons().first == .deleted)
        try world.finishFanOut()
        #expect(try reasons().first == .deleted)
    }
}
