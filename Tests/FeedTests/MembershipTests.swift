import Feed
import Model
import Testing
import Wake
import Wire

/// Removal, leaving and coming back (MSG-30 to MSG-32).
struct MembershipTests {
    private let world: World
    private let id: ConversationID

    init() throws {
        world = try World()
        id = try world.converse(["a", "b", "c"])
    }

    @Test func everyoneConcernedIsToldAndTheRemovedGetsNothingMore() throws {
        try world.publish("x", to: id, from: "a")
        try world.remove(["c"], from: id)
        try world.publish("y", to: id, from: "a")
        #expect(try world.texts("b").suffix(3) == ["message 1 x", "removed c", "message 2 y"])
        #expect(try world.texts("c").suffix(2) == ["message 1 x", "removed c"])
        let record = try #require(
            try world.record(ConversationRecord.self, [.app(World.app), .identifier(id)]))
        #expect(record.participants == 2)
        guard case .conversation(_, let present) = try world.read(.conversation(World.app, id))
        else { return #expect(Bool(false)) }
        #expect(present.map(\.user.name) == ["a", "b"])
    }

    @Test func whoLeftReachesTheConversationNoMore() throws {
        let session = try world.login("c", DeviceID(high: 1, low: 1)).session
        let leave = RemoveParticipants(conversation: id, users: ["c"])
        #expect(try world.mutate(session, 1, .removeParticipants(leave)).code == 0)
        let send = Mutation.Operation.sendMessage(world.message0("x", to: id, world.fresh()))
        #expect(try world.mutate(session, 2, send).code == Code.notFound.rawValue)
        let add = AddParticipants(conversation: id, users: ["d"])
        #expect(
            try world.mutate(session, 3, .addParticipants(add)).code == Code.notFound.rawValue)
        #expect(
            try world.mutate(session, 4, .removeParticipants(leave)).code
                == Code.notFound.rawValue)
        // As the sender of a message of the backend he does not take part either.
        let published = try world.ask(
            .publish(
                app: World.app,
                Publication(message: world.message0("x", to: id, world.fresh()), sender: "c"),
                idempotency: nil))
        #expect(published.refusal == .forbidden)
    }

    @Test func removingTwiceChangesNothing() throws {
        try world.remove(["c"], from: id)
        let before = try world.head("b")
        #expect(try world.remove(["c", "nobody"], from: id).refusal == nil)
        #expect(try world.head("b") == before)
    }

    @Test func openJobsServeWhoTookPartThen() throws {
        world.limits.directRecipients = 0
        let other = try world.converse(["a", "b", "c"])
        try world.publish("x", to: other)
        try world.remove(["b"], from: other)
        try world.publish("y", to: other)
        try world.finishFanOut()
        #expect(try world.texts("b").suffix(2) == ["message 1 x", "removed b"])
        #expect(try world.texts("c").suffix(3) == ["message 1 x", "removed b", "message 2 y"])
    }

    /// P6: a change on its way shows the present state, which may be one from after the removal.
    @Test func whoLeftGetsNoMetadataOfAfter() throws {
        func rename(_ name: String) throws {
            let change = ChangeMetadata(
                conversation: id, changes: [MetadataChange(path: ["name"], value: name)])
            let answer = try world.ask(
                .changeMetadata(app: World.app, change, idempotency: nil))
            #expect(answer.refusal == nil)
        }
        world.limits.directRecipients = 0
        try rename("before")
        try world.remove(["b"], from: id)
        try rename("after")
        try world.finishFanOut()
        #expect(try !world.texts("b").contains("metadata 1"))
        #expect(try world.texts("c").last == "metadata 1")
    }

    @Test func comingBackWaitsForTheRemovalItself() throws {
        world.limits.directRecipients = 0
        try world.remove(["b"], from: id)
        #expect(try world.add(["b"], to: id).refusal == .rateLimited)
        try world.finishFanOut()
        #expect(try world.add(["b"], to: id).refusal == nil)
    }

    @Test func comingBackWaitsForWhatIsOnItsWay() throws {
        world.limits.directRecipients = 0
        let other = try world.converse(["a", "b", "c"])
        try world.publish("x", to: other)
        try world.remove(["b"], from: other)
        #expect(try world.add(["b"], to: other).refusal == .rateLimited)
        try world.finishFanOut()
        try world.publish("y", to: other)
        #expect(try world.add(["b"], to: other).refusal == nil)
        try world.publish("z", to: other)
        try world.finishFanOut()
        let texts = try world.texts("b")
        #expect(texts.filter { $0.hasPrefix("message") } == ["message 1 x", "message 3 z"])
        #expect(texts.filter { $0.contains("conversation") }.count == 2, "\(texts)")
        #expect(try world.texts("c").filter { $0 == "participant b" }.count == 2)
    }

    @Test func whoComesBackLearnsWhoLeftMeanwhile() throws {
        try world.remove(["b"], from: id)
        try world.remove(["c"], from: id)
        #expect(try world.add(["d"], to: id).refusal == nil)
        try world.remove(["d"], from: id)
        #expect(try world.add(["b"], to: id).refusal == nil)
        let texts = try world.texts("b")
        #expect(
            texts.dropFirst() == ["participant a", "participant b", "removed c"],
            "not that d was there")
    }

    /// P6: what was sent before the removal comes, what was changed after it does not.
    @Test func nothingChangedAfterTheRemovalIsShown() throws {
        let kept = try world.publish("kept", to: id)
        let changed = try world.publish("before", to: id)
        let gone = try world.publish("gone", to: id)
        try world.edit(kept.message, "kept too")
        try world.remove(["c"], from: id)
        try world.edit(changed.message, "after")
        try world.delete(gone.message)
        try world.remove(["b"], from: id)
        let texts = try world.texts("c")
        #expect(texts.filter { $0.hasPrefix("message") } == ["message 1 kept too edited"])
        #expect(!texts.contains { $0.contains("tombstone") })
        #expect(!texts.contains("removed b"))
        // Coming back shows nothing of the time between.
        #expect(try world.add(["c"], to: id).refusal == nil)
        try world.edit(changed.message, "again")
        #expect(
            try world.texts("c").filter { $0.hasPrefix("message") }
                == ["message 1 kept too edited"])
    }

    /// The same where the change is made before the message itself has come.
    @Test func nothingChangedAfterTheRemovalIsServed() throws {
        world.limits.directRecipients = 0
        let other = try world.converse(["a", "b", "c"])
        try world.finishFanOut()
        let first = try world.publish("first", to: other)
        let second = try world.publish("second", to: other)
        try world.remove(["c"], from: other)
        try world.edit(first.message, "changed")
        try world.delete(second.message)
        try world.publish("third", to: other)
        try world.finishFanOut()
        #expect(try !world.texts("c").contains { $0.hasPrefix("message") })
        #expect(
            try world.texts("b").suffix(4) == [
                "message 1 changed edited", "tombstone 2 everyone", "removed c",
                "message 3 third",
            ])
    }

    @Test func whoLeftReadsWhatCameBefore() throws {
        let session = try world.login("c", DeviceID(high: 1, low: 1)).session
        try world.publish("x", to: id)
        try world.remove(["c"], from: id)
        try world.publish("y", to: id)
        // The mark is kept for the other devices; unread is nothing there any more (SYN-27).
        #expect(try !world.unread().contains { $0.user.name == "c" })
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: 0,
                    reads: [ReadReceipt(conversation: id, through: 2)], completesSync: false)))
        let mark = try #require(try world.all(ReadMarkRecord.self).first)
        #expect(mark.through == 1)
        #expect(try world.all(ReceiptRecord.self).isEmpty, "the authors are told no more")
    }

    /// HIS: who asks for the participants is told of those there are.
    @Test func historyTellsOfThosePresent() throws {
        try world.remove(["b"], from: id)
        let fetch = Fetch(object: id.bytes)
        let reading = try world.read(
            .history(.fetch(World.app, UserID("a"), fetch, bytes: 1 << 16)))
        guard case .history(.page(let page)) = reading else { return #expect(Bool(false)) }
        #expect(page.entries.map(\.text) == ["conversation", "participant a", "participant c"])
        let snapshot = try world.read(
            .history(.snapshot(World.app, UserID("a"), SnapshotFrame(), bytes: 1 << 16)))
        guard case .history(.snapshotPage(let first)) = snapshot else {
            return #expect(Bool(false))
        }
        let texts = first.conversations.flatMap(\.entries).map(\.text)
        #expect(texts == ["conversation", "participant a", "participant c"])
    }

    @Test func aDistinctConversationKeepsItsParticipants() throws {
        let distinct: ConversationID = world.fresh()
        try world.ask(
            .createConversation(
                app: World.app,
                CreateConversation(
                    conversation: distinct, participants: ["a", "b"], distinct: true),
                idempotency: nil))
        #expect(try world.remove(["b"], from: distinct).refusal == .conflict)
    }

    private func distinct(
        _ id: ConversationID, _ users: [String]
    ) throws -> StoreAnswer {
        try world.ask(
            .createConversation(
                app: World.app,
                CreateConversation(conversation: id, participants: users, distinct: true),
                idempotency: nil))
    }

    /// MSG-24: what comes under an id goes to one conversation for ever.
    @Test func anAliasOfOneDistinctConversationIsNoneOfAnother() throws {
        let (first, second, alias) = (
            world.fresh() as ConversationID, world.fresh() as ConversationID,
            world.fresh() as ConversationID
        )
        #expect(try distinct(first, ["a", "b"]).refusal == nil)
        #expect(try distinct(second, ["a", "c"]).refusal == nil)
        #expect(try distinct(alias, ["a", "b"]).refusal == nil)
        #expect(try distinct(alias, ["a", "b"]).refusal == nil)
        #expect(try distinct(alias, ["a", "c"]).refusal == .forbidden)
        let message = try world.publish("x", to: alias, from: "a")
        #expect(message.conversation == first)
    }

    @Test func aDistinctConversationHasParticipants() throws {
        #expect(try distinct(world.fresh(), []).refusal == .missingField)
        #expect(try distinct(world.fresh(), ["a"]).refusal == nil)
    }

    @Test func aRequestNamesAsManyUsersAsTheLimitSays() throws {
        let most = RuleLimits().participantsPerRequest
        let users = (0...most).map { "user\($0)" }
        func create(_ users: [String]) throws -> StoreAnswer {
            try world.ask(
                .createConversation(
                    app: World.app,
                    CreateConversation(conversation: world.fresh(), participants: users),
                    idempotency: nil))
        }
        #expect(try create(users).refusal == .limit)
        #expect(try create(users.dropLast()).refusal == nil)
        let room = try world.converse(["a"])
        #expect(try world.add(users, to: room).refusal == .limit)
        #expect(try world.add(users.dropLast(), to: room).refusal == nil)
        #expect(try world.remove(users, from: room).refusal == .limit)
        #expect(try world.remove(users.dropLast(), from: room).refusal == nil)
    }
}
