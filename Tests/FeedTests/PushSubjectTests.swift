import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// What a push names (PSH-2, PSH-6).
@Suite struct PushSubjectTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)

    private func json(_ job: PushJob?) throws -> String {
        String(decoding: try #require(job).request.payload, as: UTF8.self)
    }

    @Test func aSilentPushForAPassiveMessageNamesIt() throws {
        let (pushes, room) = try Pushes.sleeping()
        let told = try pushes.say("1", in: room, .passive)
        #expect(try pushes.run(0) == ["silent"])
        let text = try json(pushes.sent.last)
        #expect(text.contains(#""e":"message""#))
        #expect(text.contains(told.message.description) && text.contains(room.description))
    }

    @Test func aPushTellsSinceWhenItsMessageWaits() throws {
        let (pushes, room) = try Pushes.sleeping()
        let told = try pushes.say("1", in: room)
        #expect(try pushes.run(0) == ["silent"])
        #expect(pushes.sent.last?.publishedAt == told.sentAt)
        #expect(try pushes.hours(1).map { $0.prefix(5) } == ["alert"])
        #expect(pushes.sent.last?.publishedAt == told.sentAt)
    }

    /// PSH-2: also what the app itself calls it.
    @Test func aSilentPushCarriesTheAppsEventAndObject() throws {
        let (pushes, room) = try Pushes.sleeping()
        var options = PushOptions()
        (options.event, options.object) = ("order", "4\"2")
        options.custom = try CustomData(["k": .integer(7)])
        _ = try pushes.world.ask(
            .publish(
                app: World.app,
                Publication(
                    message: pushes.world.message0("1", to: room, pushes.world.fresh()),
                    sender: "anna", options: options), idempotency: nil))
        #expect(try pushes.run(0) == ["silent"])
        let text = try json(pushes.sent.last)
        #expect(text.hasPrefix(#"{"aps":{"content-available":1},"rouse":{"e":"message","o":""#))
        #expect(text.hasSuffix(#"","t":"order","i":"4\"2"}}"#), "\(text)")
        try pushes.nap("bob", phone)
        #expect(try pushes.hours(1) == [])
        options.urgency = .passive
        _ = try pushes.world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: pushes.world.fresh(), users: ["bob"],
                    parts: [Part(mimeType: "text/plain", content: [65])],
                    push: PushText(title: "", body: "Sale"), options: options),
                idempotency: nil))
        #expect(try pushes.run(0) == ["silent"])
        let told = try json(pushes.sent.last)
        #expect(told.contains(#""e":"announcement""#))
        #expect(told.hasSuffix(#"","t":"order","i":"4\"2"}}"#), "\(told)")
    }

    @Test func aSilentPushForAReadMarkNamesTheNewestMessageRead() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room)
        let newest = try pushes.say("2", in: room)
        try pushes.run(0)
        try pushes.nap("bob", phone)
        #expect(try pushes.hours(1) == [])
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"), reads: [ReadReceipt(conversation: room, through: 2)])
        #expect(try pushes.run(2_000) == ["silent"])
        let text = try json(pushes.sent.last)
        #expect(text.contains(newest.message.description), "\(text)")
    }

    @Test func aSilentPushForADeletionNamesWhatIsGone() throws {
        let (pushes, room) = try Pushes.sleeping()
        let shown = try pushes.say("1", in: room)
        try pushes.say("2", in: room)
        try pushes.run(0)
        try pushes.nap("bob", phone)
        #expect(try pushes.hours(1) == [])
        _ = try pushes.world.ask(.deleteMessage(app: World.app, shown.message, idempotency: nil))
        #expect(try pushes.run(2_000) == ["silent"])
        #expect(try json(pushes.sent.last).contains(shown.message.description))
    }

    @Test func theBadgeThatShowsAMessageAgainTakesThatMessagesPlace() throws {
        let (pushes, room) = try Pushes.sleeping()
        let side = try pushes.world.converse(["anna", "bob"])
        let left = try pushes.say("1", in: room)
        try pushes.say("2", in: side)
        try pushes.run(62_000)
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"), reads: [ReadReceipt(conversation: side, through: 1)])
        #expect(try pushes.run(2_000) == [#"badge "1" badge 1 stored"#])
        #expect(pushes.sent.last?.request.collapseID == left.message.description)
        try pushes.acknowledge(
            other, try pushes.head("bob"), reads: [ReadReceipt(conversation: room, through: 1)])
        #expect(try pushes.run(2_000) == ["badge badge 0 stored"])
        #expect(pushes.sent.last?.request.collapseID == "badge")
    }
}
