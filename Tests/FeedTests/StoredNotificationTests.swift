import Feed
import Model
import Testing
import Wake
import Wire

/// APNs stores one notification for a phone that is off. What it holds is what the person sees
/// first: it names what is unread, and nothing that was read or deleted.
@Suite struct StoredNotificationTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)
    private let pushes: Pushes
    private let room: ConversationID
    private var world: World { pushes.world }

    init() throws { (pushes, room) = try Pushes.sleeping() }

    /// The phone misses a wake and is alerted; a tablet has everything.
    private func missed(_ text: String) throws -> SessionKey {
        try pushes.say(text, in: room)
        #expect(try pushes.run(62_000) == ["silent", #"alert "\#(text)" badge 1 stored"#])
        let session = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.run(60_000)
        return session
    }

    private func announce(_ text: String) throws -> MessageID {
        let id: MessageID = world.fresh()
        _ = try world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: id, users: ["bob"],
                    parts: [Part(mimeType: "text/plain", content: [65])],
                    push: PushText(title: "", body: text)), idempotency: nil))
        return id
    }

    private func read(_ positions: ClosedRange<UInt64>, _ session: SessionKey) throws {
        try pushes.acknowledge(
            session, try pushes.head("bob"),
            reads: [
                ReadReceipt(
                    conversation: room,
                    ranges: [
                        InclusiveRange(first: positions.lowerBound, last: positions.upperBound)
                    ])
            ])
    }

    @Test func anUnreadAnnouncementOutlivesABadgeOfNought() throws {
        let session = try missed("1")
        _ = try announce("news")
        #expect(try pushes.run(2_000) == [#"alert "news (and 1 more)" badge 1 stored"#])
        try read(1...1, session)
        #expect(try pushes.run(3_000) == [#"badge "news" badge 0 stored"#])
    }

    @Test(arguments: ["deleted", "without a text"])
    func theNewestLeavesItsPlaceToTheOneBefore(_ how: String) throws {
        _ = try missed("1")
        let second = try pushes.say("2", in: room).message
        #expect(try pushes.run(2_000) == [#"alert "2 (and 1 more)" badge 2 stored"#])
        if how == "deleted" {
            try world.delete(second)
        } else {
            try world.edit(second, "2", push: "")
        }
        #expect(try pushes.run(3_000) == [#"badge "1" badge 1 stored"#])
    }

    @Test func anEditMakesNoOlderAlertTheNewest() throws {
        let session = try missed("1")
        let first = try #require(try world.all(MessageRecord.self).first).message
        try pushes.say("2", in: room)
        #expect(try pushes.run(2_000) == [#"alert "2 (and 1 more)" badge 2 stored"#])
        try world.edit(first, "one")
        try read(2...2, session)
        #expect(try pushes.run(3_000) == [#"badge "one" badge 1 stored"#])
    }

    @Test func whatLeavesLaterSpeaksForWhatWasAlertedBefore() throws {
        try pushes.say("1", in: room)
        #expect(try pushes.run(1_000) == ["silent"])
        try pushes.say("2", in: room, .urgent)
        #expect(try pushes.run(2_000) == [#"alert "2" badge 2 stored"#])
        // Its grace is over.
        #expect(try pushes.run(62_000) == [#"alert "1 (and 1 more)" badge 2 stored"#])
    }

    @Test func whatHasEndedIsNotShownAgain() throws {
        let session = try missed("1")
        var timing = AlertTiming()
        timing.expires = world.now + 20_000
        try pushes.say("ends", in: room, timing)
        try pushes.say("3", in: room)
        #expect(try pushes.run(3_000).last == #"alert "3 (and 2 more)" badge 3 stored"#)
        try pushes.run(20_000)
        try read(1...1, session)
        try read(3...3, session)
        // Nothing is left to name, and no push that APNs would refuse for its expiration.
        let sent = try pushes.run(5_000)
        #expect(sent.last == "badge badge 1 stored", "\(sent)")
    }

    @Test func anAnnouncementReadElsewhereWakesThePhoneThatMayShowIt() throws {
        let id = try announce("news")
        try pushes.nap("bob", phone)
        #expect(try pushes.run(60_000) == [])
        let session = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            session, try pushes.head("bob"), reads: [ReadReceipt(announcement: id)])
        #expect(try pushes.run(60_000).first == "silent")
    }

    @Test(arguments: ["deleted", "muted and deleted"])
    func aDeletedMessageOfATimeWakesThePhoneThatMayShowIt(_ how: String) throws {
        let message = try pushes.say("later", in: room, pushes.at(30_000)).message
        #expect(try pushes.run(40_000) == [#"alert "later" badge 1 stored"#])
        try pushes.nap("bob", phone)
        #expect(try pushes.run(60_000) == [])
        if how != "deleted" {
            let session = try pushes.open("bob", tablet, token: 2).session
            try world.mutate(
                session, 1, .muteConversation(MuteConversation(conversation: room, muted: true)))
            try pushes.run(60_000)
            try pushes.nap("bob", phone)
        }
        try world.delete(message)
        #expect(try pushes.run(60_000).first == (how == "deleted" ? "silent" : nil))
    }
}
