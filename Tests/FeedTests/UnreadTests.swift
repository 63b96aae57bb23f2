import Feed
import Model
import Testing
import Wake
import Wire

/// SYN-27: what counts as unread.
struct UnreadTests {
    let world: World
    let anna: SessionKey
    let ben: SessionKey
    let room: ConversationID

    init() throws {
        world = try World()
        anna = try world.login("anna", DeviceID(high: 5, low: 1)).session
        ben = try world.login("ben", DeviceID(high: 5, low: 2)).session
        room = try world.converse(["anna", "ben", "carl"])
    }

    private func say(_ text: String, from user: String = "ben") throws {
        try world.publish(text, to: room, from: user)
    }

    private func read(_ through: UInt64, alone: InclusiveRange? = nil) throws {
        let receipt = ReadReceipt(
            conversation: room, through: through, ranges: alone.map { [$0] } ?? [])
        _ = try world.ask(
            .acknowledge(
                Acknowledge(session: anna, applied: 0, reads: [receipt], completesSync: false)))
    }

    private func wish(_ number: UInt64, _ operation: Mutation.Operation) throws {
        #expect(try world.mutate(anna, number, operation).code == 0)
    }

    /// The number of DELTA, which the API gives too.
    private func icon() throws -> UInt64 {
        let number = try world.page("anna").unread
        guard
            case .backend(.user(let view)) = try world.read(
                .backend(World.app, .user(UserID("anna"))))
        else { throw Unexpected(answer: .done) }
        #expect(view.unread == number)
        return number
    }

    /// The number of the conversation in SNAPSHOT; `nil`: the conversation is not there.
    private func snapshotCount() throws -> UInt32? {
        guard
            case .history(.snapshotPage(let page)) = try world.read(
                .history(.snapshot(World.app, UserID("anna"), SnapshotFrame(), bytes: 1 << 20)))
        else { throw Unexpected(answer: .done) }
        return page.conversations.first { $0.conversation == room }?.unread
    }

    @Test("who leaves a conversation has nothing to read there, whatever becomes of it")
    func left() throws {
        try say("1")
        try say("2")
        #expect(try icon() == 2)
        try world.remove(["anna"], from: room)
        #expect(try icon() == 0)
        try read(1)
        #expect(try icon() == 0)
        try world.end(room)
        try world.finishFanOut()
        #expect(try icon() == 0)
        try world.retain()
        #expect(try world.unread().allSatisfy { $0.user != anna.user })
    }

    @Test("who comes back begins with what is sent then")
    func cameBack() throws {
        for text in ["1", "2", "3"] { try say(text) }
        try world.remove(["anna"], from: room)
        _ = try world.add(["anna"], to: room)
        #expect(try icon() == 0)
        #expect(try snapshotCount() == 0)
        try say("4")
        #expect(try icon() == 1)
        try read(3)
        #expect(try icon() == 1)
        #expect(try snapshotCount() == 1)
        try read(4)
        #expect(try icon() == 0)
    }

    @Test("a message that a block kept away counts neither then nor later; an earlier one does")
    func blocked() throws {
        try say("1")
        try wish(1, .blockUser(BlockUser(user: "ben", blocked: true)))
        #expect(try icon() == 1)
        try say("2")
        #expect(try icon() == 1)
        try wish(2, .blockUser(BlockUser(user: "ben", blocked: false)))
        try say("3")
        #expect(try icon() == 2)
        try read(1)
        #expect(try icon() == 1)
        try read(3)
        #expect(try icon() == 0)
    }

    @Test("what came while a conversation was muted counts when it is not muted any more")
    func muted() throws {
        try say("1")
        try wish(1, .muteConversation(MuteConversation(conversation: room, muted: true, forMs: 0)))
        #expect(try icon() == 0)
        #expect(try snapshotCount() == 1)
        try say("2")
        #expect(try icon() == 0)
        #expect(try snapshotCount() == 2)
        try wish(2, .muteConversation(MuteConversation(conversation: room, muted: false)))
        #expect(try icon() == 2)
        try say("3")
        #expect(try icon() == 3)
        try read(1)
        #expect(try icon() == 2)
        // For a while: it ends by itself.
        try wish(3, .muteConversation(MuteConversation(conversation: room, muted: true, forMs: 9)))
        #expect(try icon() == 0)
        world.pass(9)
        #expect(try icon() == 2)
    }

    @Test("an edit that gives a message push text makes it count, one that takes it makes it not")
    func edited() throws {
        let quiet = try world.publish("1", to: room, from: "ben", push: "").message
        let loud = try world.publish("2", to: room, from: "ben").message
        #expect(try icon() == 1)
        try world.edit(quiet, "1 again")
        #expect(try icon() == 2)
        try world.edit(loud, "2 again", push: "")
        #expect(try icon() == 1)
        try read(0, alone: InclusiveRange(first: 1, last: 1))
        #expect(try icon() == 0)
        try world.edit(loud, "2 once more")
        #expect(try icon() == 1)
        try world.edit(quiet, "1 once more")
        #expect(try icon() == 1)
    }

    @Test("what was deleted, for everyone or for oneself, does not count")
    func deleted() throws {
        let first = try world.publish("1", to: room, from: "ben").message
        let second = try world.publish("2", to: room, from: "ben").message
        try say("3")
        try say("own", from: "anna")
        #expect(try icon() == 3)
        try world.delete(first)
        #expect(try icon() == 2)
        try wish(1, .deleteMessage(DeleteMessage(message: second)))
        #expect(try icon() == 1)
        try read(2)
        #expect(try icon() == 1)
        try wish(2, .deleteConversation(DeleteConversation(conversation: room)))
        #expect(try icon() == 0)
        #expect(try snapshotCount() == nil)
        try say("5")
        #expect(try icon() == 1)
        try world.retain()
        #expect(try icon() == 1)
        try world.end(room)
        #expect(try icon() == 0)
    }

    @Test("a message counts from when it is in the feed, and one read before does not")
    func onItsWay() throws {
        world.limits.directRecipients = 1
        try say("1")
        try say("2")
        #expect(try icon() == 0)
        try read(1)
        #expect(try icon() == 0)
        try world.finishFanOut()
        #expect(try icon() == 1)
        // What was on its way at the removal comes before it.
        try say("3")
        try world.remove(["anna"], from: room)
        try world.finishFanOut()
        #expect(try icon() == 0)
    }

    @Test("numbers end at 999, and come down from there")
    func manyAreNotCounted() throws {
        for number in 1...1_003 { try say("\(number)") }
        #expect(try icon() == 999)
        #expect(try snapshotCount() == 999)
        try read(3)
        #expect(try icon() == 999)
        try read(4, alone: InclusiveRange(first: 10, last: 19))
        #expect(try icon() == 989)
        try read(1_003)
        #expect(try icon() == 0)
    }
}
