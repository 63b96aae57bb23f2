import Feed
import Model
import Testing
import Wake
import Wire

/// Edits and deletions of messages (MSG-33 to MSG-35).
struct MessageChangeTests {
    private let world: World
    private let id: ConversationID

    init() throws {
        world = try World()
        id = try world.converse(["a", "b", "c"])
    }

    private func session(_ user: String, _ device: UInt64 = 1) throws -> SessionKey {
        try world.login(user, DeviceID(high: 1, low: device)).session
    }

    private func edit(_ message: MessageID, _ text: String) -> Mutation.Operation {
        .editMessage(
            EditMessage(
                message: message,
                parts: [Part(mimeType: "text/plain", content: Array(text.utf8))]))
    }

    private func delete(_ message: MessageID, everyone: Bool) -> Mutation.Operation {
        .deleteMessage(DeleteMessage(message: message, forEveryone: everyone))
    }

    // MARK: edits

    @Test func anEditTakesTheMessagesPlaceInEachFeed() throws {
        let first = try world.publish("x", to: id, from: "a")
        try world.publish("y", to: id, from: "a")
        world.pass(5)
        let edited = try world.edit(first.message, "z")
        guard case .edited(let record) = edited else { throw Unexpected(answer: edited) }
        #expect(record.version == 2)
        #expect(record.editedAt == world.now)
        for user in ["a", "b", "c"] {
            #expect(try world.texts(user).suffix(2) == ["message 2 y", "message 1 z edited"])
            let entry = try #require(try world.page(user).entries.last)
            #expect(entry.version == 2)
        }
        #expect(world.changes.map(\.kinds) == Array(repeating: 1 << 2, count: 3))
    }

    @Test func onlyTheSenderAndTheBackendEdit() throws {
        let message = try world.publish("x", to: id, from: "a").message
        let a = try session("a")
        let b = try session("b", 2)
        let stranger = try session("d", 3)
        #expect(try world.mutate(b, 1, edit(message, "y")).code == Code.forbidden.rawValue)
        #expect(
            try world.mutate(stranger, 1, edit(message, "y")).code == Code.notFound.rawValue)
        #expect(
            try world.mutate(stranger, 2, edit(world.fresh(), "y")).code
                == Code.notFound.rawValue)
        #expect(try world.mutate(a, 1, edit(message, "y")).code == 0)
        #expect(try world.edit(message, "z").refusal == nil)
        #expect(try world.edit(world.fresh(), "z").refusal == .notFound)
        // What he saw before he joined again is out of his reach.
        try world.remove(["a"], from: id)
        #expect(try world.mutate(a, 2, edit(message, "w")).code == Code.notFound.rawValue)
        #expect(try world.add(["a"], to: id).refusal == nil)
        #expect(try world.mutate(a, 3, edit(message, "w")).code == Code.notFound.rawValue)
    }

    @Test func anEditOfAnotherVersionIsAConflict() throws {
        let message = try world.publish("x", to: id).message
        #expect(try world.edit(message, "y", base: 1).refusal == nil)
        #expect(try world.edit(message, "z", base: 1).refusal == .versionConflict)
        #expect(try world.edit(message, "z", base: 2).refusal == nil)
        #expect(
            try world.ask(
                .editMessage(
                    app: World.app, EditMessage(message: message), idempotency: nil)
            ).refusal == .missingField)
    }

    @Test func whoJoinedLaterGetsNoEdit() throws {
        let message = try world.publish("x", to: id).message
        #expect(try world.add(["d"], to: id).refusal == nil)
        try world.edit(message, "y")
        #expect(try !world.texts("d").contains { $0.hasPrefix("message") })
    }

    @Test func manyEditsWaitInOrder() throws {
        world.limits.directRecipients = 0
        let message = try world.publish("1", to: id).message
        for text in ["2", "3"] { try world.edit(message, text) }
        try world.finishFanOut()
        #expect(try world.texts("b").filter { $0.hasPrefix("message") } == ["message 1 3 edited"])
        let entry = try #require(try world.rows("b").last)
        #expect(entry.version == 3)
    }

    @Test func anEditIsRepeatedWithItsAnswer() throws {
        let message = try world.publish("x", to: id).message
        let once = Idempotency(key: "k", requestHash: [1])
        let request = EditMessage(
            message: message, parts: [Part(mimeType: "text/plain", content: [65])])
        let first = try world.ask(
            .editMessage(app: World.app, request, idempotency: once))
        try world.edit(message, "later")
        let again = try world.ask(.editMessage(app: World.app, request, idempotency: once))
        guard case .edited(let left) = first, case .edited(let right) = again else {
            throw Unexpected(answer: again)
        }
        #expect((left.version, left.editedAt) == (right.version, right.editedAt))
        #expect(try world.texts("b").last == "message 1 later edited")
    }

    // MARK: deletion for everyone

    @Test func aDeletedMessageLeavesATombstoneAndNoContent() throws {
        let first = try world.publish("secret", to: id, from: "a")
        try world.publish("y", to: id, from: "a")
        world.pass(7)
        #expect(try world.delete(first.message).refusal == nil)
        for user in ["a", "b", "c"] {
            #expect(try world.texts(user).suffix(2) == ["message 2 y", "tombstone 1 everyone"])
            let entry = try #require(try world.page(user).entries.last)
            #expect(entry.object == first.message.bytes)
            #expect(entry.version == 2)
            guard case .tombstone(let state) = entry.body else { return #expect(Bool(false)) }
            #expect(state.deletedMs == world.now.milliseconds)
        }
        let record = try #require(
            try world.record(
                MessageRecord.self, [.app(World.app), .identifier(first.message)]))
        #expect(record.parts.isEmpty && record.pushTitle.isEmpty && record.pushBody.isEmpty)
        #expect(try world.edit(first.message, "z").refusal == .gone)
        let head = try world.head("a")
        #expect(try world.delete(first.message).refusal == nil)
        #expect(try world.head("a") == head, "deleting twice is deleting once")
    }

    @Test func onlyTheSenderAndTheBackendDeleteForEveryone() throws {
        let message = try world.publish("x", to: id, from: "a").message
        let a = try session("a")
        let b = try session("b", 2)
        #expect(
            try world.mutate(b, 1, delete(message, everyone: true)).code
                == Code.forbidden.rawValue)
        #expect(try world.mutate(a, 1, delete(message, everyone: true)).code == 0)
        let entry = try #require(try world.page("b").entries.last)
        guard case .tombstone(let state) = entry.body else { return #expect(Bool(false)) }
        #expect(state.by == "a")
    }

    @Test func deletionTakesTheUnreadCountBack() throws {
        let first = try world.publish("x", to: id)
        try world.publish("y", to: id)
        #expect(try unread("a") == 2)
        try world.delete(first.message)
        #expect(try unread("a") == 1)
    }

    private func unread(_ user: String) throws -> UInt64 {
        try world.unread().filter { $0.user.name == user }.reduce(0) {
            $0 + $1.unread
        }
    }

    // MARK: deletion for oneself

    @Test func deletingForOneselfConcernsTheOwnFeedOnly() throws {
        let first = try world.publish("x", to: id, from: "a")
        let second = try world.publish("y", to: id, from: "a")
        let b = try session("b")
        #expect(try world.mutate(b, 1, delete(first.message, everyone: false)).code == 0)
        #expect(try world.texts("b").suffix(2) == ["message 2 y", "tombstone 1"])
        #expect(try world.texts("a").suffix(2) == ["message 1 x", "message 2 y"])
        #expect(try unread("b") == 1)
        #expect(try unread("c") == 2)
        // Later changes of it are nothing to this user.
        try world.edit(first.message, "z")
        try world.delete(first.message)
        #expect(try world.texts("b").suffix(2) == ["message 2 y", "tombstone 1"])
        #expect(try world.mutate(b, 2, delete(first.message, everyone: false)).code == 0)
        // A mark that moves counts anew, and not what was deleted.
        try world.publish("v", to: id, from: "a")
        #expect(try world.mutate(b, 3, delete(second.message, everyone: false)).code == 0)
        #expect(try unread("b") == 1)
        let stranger = try session("d", 3)
        #expect(
            try world.mutate(stranger, 1, delete(second.message, everyone: false)).code
                == Code.notFound.rawValue)
    }

    @Test func whatIsOnItsWayIsNotHiddenYet() throws {
        world.limits.directRecipients = 0
        let b = try session("b")
        try world.finishFanOut()
        let message = try world.publish("x", to: id).message
        #expect(
            try world.mutate(b, 1, delete(message, everyone: false)).code
                == Code.rateLimited.rawValue)
        try world.finishFanOut()
        #expect(try world.mutate(b, 1, delete(message, everyone: false)).code == 0)
        #expect(try world.texts("b").last == "tombstone 1")
    }

    // MARK: receipts

    /// An edited message stands higher in the feed: a device that lacks it has not got it
    /// delivered, though later ones are.
    @Test func anEditedMessageIsNotOverclaimed() throws {
        let b = try session("b")
        let c: ConversationID = try world.converse(["a", "b"])
        let first = try world.publish("1", to: c, from: "a")
        try world.publish("2", to: c, from: "a")
        let applied = try world.head("b")
        try world.edit(first.message, "1+")
        func acknowledge(_ applied: UInt64) throws {
            try world.ask(
                .acknowledge(Acknowledge(session: b, applied: applied, completesSync: true)))
            world.pass(2_000)
            try world.ask(.coalesceReceipts(users: 10))
        }
        func told() throws -> [String] {
            try world.texts("a").filter { $0.hasPrefix("receipt") }
        }
        try acknowledge(applied)
        #expect(try told().isEmpty)
        #expect(
            try world.ask(.coalesceReceipts(users: 10)) == .progressed(count: 0, more: false))
        try acknowledge(try world.head("b"))
        #expect(try told() == ["receipt b 2 0"])
    }

    /// Rows are locked in one order: the own feed has its turn among those of the others.
    @Test func whoDeletedTheConversationForOneselfStillChangesTheMessages() throws {
        let world = try World()
        let room = try world.converse(["anna", "ben", "zoe"])
        let ben = try world.login("ben", DeviceID(high: 7, low: 1)).session
        let first = try world.publish("1", to: room, from: "ben").message
        let second = try world.publish("2", to: room, from: "ben").message
        let clear = DeleteConversation(conversation: room)
        #expect(try world.mutate(ben, 1, .deleteConversation(clear)).code == 0)
        let edit = EditMessage(
            message: first, parts: [Part(mimeType: "text/plain", content: [0x33])])
        #expect(try world.mutate(ben, 2, .editMessage(edit)).code == 0)
        let delete = DeleteMessage(message: second, forEveryone: true)
        #expect(try world.mutate(ben, 3, .deleteMessage(delete)).code == 0)
        #expect(try world.texts("zoe").suffix(2) == ["message 1 3 edited", "tombstone 2 everyone"])
        #expect(try world.texts("ben").last == "tombstone conversation 2")
    }
}
