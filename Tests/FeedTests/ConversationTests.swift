import Feed
import Model
import Testing
import Wire

struct ConversationTests {
    let world: World

    init() throws { world = try World() }

    @Test func aConversationComesBeforeItsParticipantsAndMessages() throws {
        let id = try world.converse(["anna", "bert"])
        try world.publish("hi", to: id, from: "anna")
        let words = ["conversation", "participant anna", "participant bert", "message 1"]
        #expect(try world.page("anna").entries.map(\.word) == words)
        #expect(try world.page("bert").entries.map(\.word) == words)
        #expect(try world.page("bert").entries.map(\.seq) == [1, 2, 3, 4])
    }

    @Test func whoJoinsSeesLaterMessagesOnly() throws {
        let id = try world.converse(["anna", "bert"])
        try world.publish("early", to: id)
        guard case .conversation(let record) = try world.add(["carl", "anna"], to: id) else {
            Issue.record("not added")
            return
        }
        #expect(record.participants == 3)
        #expect(Set(world.changes.map(\.user.name)) == ["anna", "bert", "carl"])
        try world.publish("late", to: id)
        #expect(
            try world.page("carl").entries.map(\.word) == [
                "conversation", "participant anna", "participant bert", "participant carl",
                "message 2",
            ])
        #expect(
            try world.page("anna").entries.map(\.word).suffix(3) == [
                "message 1", "participant carl", "message 2",
            ])
        let joined = try world.page("carl").entries.compactMap { entry -> UInt64? in
            if case .participant(let state) = entry.body { return state.joinedPosition }
            return nil
        }
        #expect(joined == [0, 0, 1])
    }

    @Test func addingWhoIsThereChangesNothing() throws {
        let id = try world.converse(["anna"])
        let head = try world.page("anna").head
        #expect(try world.add(["anna"], to: id).refusal == nil)
        #expect(try world.page("anna").head == head)
        #expect(world.changes.isEmpty)
    }

    @Test func onlyOthersMessagesWithTextAreVisible() throws {
        let id = try world.converse(["anna", "bert"])
        let head = try world.page("anna").head
        try world.publish("mine", to: id, from: "anna")
        try world.publish("silent", to: id, from: "bert", push: "")
        try world.publish("loud", to: id, from: "bert")
        #expect(try world.page("anna").firstVisible == head + 3)
        #expect(try world.page("bert").firstVisible == head + 1)
        let anna = try world.record(UserRecord.self, [.app(World.app), .text("anna")])
        #expect(anna?.visibleHead == head + 3)
    }

    @Test func namesAndCountsAreChecked() throws {
        let id = try world.converse(["anna"])
        #expect(try world.add(["a\u{7}b"], to: id).refusal == .malformed)
        #expect(try world.add([], to: id).refusal == .missingField)
        #expect(
            try world.add((0..<300).map { "u\($0)" }, to: id).refusal == .limit)
        world.limits.participantsPerConversation = 2
        #expect(try world.add(["b", "c"], to: id).refusal == .limit)
        #expect(try world.all(ParticipantRecord.self).count == 1)
        #expect(try world.add(["b"], to: id).refusal == nil, "as many as are allowed")
    }

    @Test func backendIsToldOfIdsInUse() throws {
        let id = try world.converse(["anna"])
        let again = try world.ask(
            .createConversation(
                app: World.app, CreateConversation(conversation: id, participants: ["bert"]),
                idempotency: nil))
        #expect(again.refusal == .idInUse)
        #expect(try world.all(ParticipantRecord.self).count == 1)
        let message = try world.publish("x", to: id)
        let second = try world.ask(
            .publish(
                app: World.app,
                Publication(
                    message: world.message0("y", to: id, message.message), sender: ""),
                idempotency: nil))
        #expect(second.refusal == .idInUse)
        #expect(
            try world.record(
                ConversationRecord.self,
                [
                    .app(World.app), .identifier(id),
                ])?.position == 1)
    }

    @Test func contentIsChecked() throws {
        let id = try world.converse(["anna"])
        func refusal(_ change: (inout SendMessage) -> Void, sender: String = "") throws -> Code? {
            var message = world.message0("x", to: id, world.fresh())
            change(&message)
            return try world.ask(
                .publish(
                    app: World.app, Publication(message: message, sender: sender),
                    idempotency: nil)
            ).refusal
        }
        let part = Part(mimeType: "a/b", content: [])
        #expect(try refusal { _ in } == nil)
        #expect(try refusal { $0.parts = [] } == .missingField)
        #expect(try refusal { $0.parts = Array(repeating: part, count: 33) } == .limit)
        #expect(try refusal { $0.parts = [Part(mimeType: "", content: [])] } == .missingField)
        #expect(try refusal { $0.parts = [Part(mimeType: "a\n", content: [])] } == .malformed)
        #expect(
            try refusal {
                $0.parts = [Part(mimeType: "a/b", content: Array(repeating: 0, count: 65_536))]
            } == .tooLarge)
        #expect(try refusal { $0.push?.body = String(repeating: "x", count: 2049) } == .tooLarge)
        #expect(try refusal { $0.push?.title = "\0" } == .malformed)
        #expect(try refusal { $0.message = nil } == .missingField)
        #expect(try refusal { $0.conversation = nil } == .missingField)
        #expect(try refusal { $0.conversation = world.fresh() } == .notFound)
        #expect(try refusal({ _ in }, sender: "nobody") == .forbidden)
        #expect(try world.page("anna").entries.last?.word == "message 1")
    }

    @Test func appsShareNothing() throws {
        let other = AppID("go")
        try world.expectDone(.putApp(AppRecord(app: other, createdAt: world.now)))
        let id = try world.converse(["anna"])
        let answer = try world.ask(
            .publish(
                app: other,
                Publication(message: world.message0("x", to: id, world.fresh()), sender: ""),
                idempotency: nil))
        #expect(answer.refusal == .notFound)
        #expect(
            try world.ask(
                .createConversation(
                    app: other, CreateConversation(conversation: id, participants: ["anna"]),
                    idempotency: nil)
            ).refusal == nil)
        #expect(try world.page("anna").entries.count == 2)
    }
}
