import Feed
import Model
import Testing
import Wire

/// What a device is told of memberships and conversations that end and come back.
struct FeedCompletenessTests {
    private let world: World
    private let id: ConversationID

    init() throws {
        world = try World()
        id = try world.converse(["a", "b", "c"])
    }

    private func setTheme(_ value: String) throws {
        let request = ChangeMetadata(
            conversation: id, changes: [MetadataChange(path: ["theme"], value: value)])
        try world.ask(.changeMetadata(app: World.app, request, idempotency: nil))
    }

    /// MSG-30: the removal was on its way when the conversation was deleted for everyone.
    @Test func theRemovedAreToldThoughTheConversationEnds() throws {
        world.limits.directRecipients = 0
        try world.publish("never shown", to: id)
        try world.remove(["b", "c"], from: id)
        try world.end(id)
        try world.finishFanOut()
        let opening = ["conversation", "participant a"]
        #expect(try world.texts("b") == opening + ["removed c", "removed b"])
        #expect(try world.texts("c") == opening + ["removed b", "removed c"])
        #expect(try world.texts("a").last == "tombstone conversation 1 everyone")
        try world.retain()
        #expect(try world.texts("b").last == "removed b")
    }

    /// MSG-30: a device that comes late takes the feed from its start, and what was said before the
    /// removal is still in it. The removal of others is behind every device by then.
    @Test func theOwnRemovalIsToldToDevicesThatComeLate() throws {
        try world.publish("x", to: id, from: "a")
        try world.remove(["b"], from: id)
        try world.remove(["c"], from: id)
        world.pass(31 * 86_400_000)
        try world.retain()
        #expect(
            try world.texts("c") == [
                "conversation", "participant a", "message 1 x", "removed c",
            ])
        #expect(try world.texts("a").contains { $0.hasPrefix("removed") } == false)
    }

    /// The server was away for long: what says that a conversation ended stays until everything
    /// else of it has gone from the feed.
    @Test func theEndIsToldUntilTheConversationIsCleared() throws {
        for text in ["1", "2", "3"] { try world.publish(text, to: id, from: "a") }
        try world.end(id)
        world.pass(31 * 86_400_000)
        for _ in 0..<40 {
            let texts = try world.texts("b")
            #expect(texts.isEmpty || texts.last == "tombstone conversation 3 everyone")
            #expect(try world.unreadFinding("b") == nil)
            try world.ask(.enforceRetention(rows: 1))
        }
        try world.retain()
        world.pass(2 * 86_400_000)
        try world.retain()
        #expect(try world.rows("b").isEmpty)
    }

    /// Who was added and removed again while the addition was on its way hears of neither.
    @Test func whoNeverHeardOfTheConversationHearsOfNoRemoval() throws {
        world.limits.directRecipients = 0
        #expect(try world.add(["d"], to: id).refusal == nil)
        try world.remove(["d"], from: id)
        try world.end(id)
        try world.finishFanOut()
        #expect(try world.rows("d").isEmpty)
    }

    /// HIS-16: a device that took a snapshot while the conversation was deleted for oneself gets
    /// all of it when it comes back.
    @Test func aConversationThatComesBackComesWhole() throws {
        let b = try world.login("b", DeviceID(high: 1, low: 1)).session
        try setTheme("red")
        try world.publish("x", to: id, from: "a")
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: b, applied: try world.head("b"),
                    reads: [ReadReceipt(conversation: id, through: 1)], completesSync: true)))
        let mute = MuteConversation(conversation: id, muted: true)
        #expect(try world.mutate(b, 1, .muteConversation(mute)).code == 0)
        let delete = DeleteConversation(conversation: id, forEveryone: false)
        #expect(try world.mutate(b, 2, .deleteConversation(delete)).code == 0)
        let reading = try world.history(
            .snapshot(World.app, UserID("b"), SnapshotFrame(), bytes: 1 << 20))
        guard case .snapshotPage(let page) = reading else { return #expect(Bool(false)) }
        #expect(page.conversations.isEmpty)
        try world.publish("y", to: id, from: "a")
        #expect(
            try world.texts("b", after: page.start?.seq ?? 0) == [
                "conversation", "metadata 1", "muted", "read 1", "participant a",
                "participant b", "participant c", "message 2 y",
            ])
        // Each of them once in the feed, and nobody else is told anything more.
        #expect(try world.texts("b").filter { $0 == "participant a" }.count == 1)
        #expect(try world.texts("a").last == "message 2 y")
    }

    /// The same for one who was removed, and is added again.
    @Test func whoComesBackGetsTheOwnSettings() throws {
        let b = try world.login("b", DeviceID(high: 1, low: 1)).session
        try world.publish("x", to: id, from: "a")
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: b, applied: 0, reads: [ReadReceipt(conversation: id, through: 1)],
                    completesSync: false)))
        let mute = MuteConversation(conversation: id, muted: true)
        #expect(try world.mutate(b, 1, .muteConversation(mute)).code == 0)
        try world.remove(["b"], from: id)
        let head = try world.head("b")
        #expect(try world.add(["b"], to: id).refusal == nil)
        #expect(
            try world.texts("b", after: head) == [
                "conversation", "muted", "read 1", "participant a", "participant b",
                "participant c",
            ])
    }

    /// Of many participants it brings the user and the sender; FETCH gives the rest.
    @Test func ofManyParticipantsAFewComeBack() throws {
        world.limits.snapshotParticipants = 2
        let b = try world.login("b", DeviceID(high: 1, low: 1)).session
        let delete = DeleteConversation(conversation: id, forEveryone: false)
        #expect(try world.mutate(b, 1, .deleteConversation(delete)).code == 0)
        let head = try world.head("b")
        try world.publish("x", to: id, from: "c")
        #expect(
            try world.texts("b", after: head) == [
                "conversation", "participant b", "participant c", "message 1 x",
            ])
    }
}
