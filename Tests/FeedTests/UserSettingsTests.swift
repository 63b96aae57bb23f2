import Feed
import Model
import Testing
import Wake
import Wire

/// Mutes, blocks, conversations without receipts (MSG-26 to MSG-28).
struct UserSettingsTests {
    let world: World
    let anna: SessionKey
    let bert: SessionKey

    init() throws {
        world = try World()
        anna = try world.login("anna", DeviceID(high: 5, low: 1)).session
        bert = try world.login("bert", DeviceID(high: 5, low: 2)).session
    }

    private func mute(
        _ id: ConversationID, _ muted: Bool, for duration: Milliseconds = 0
    ) -> Mutation.Operation {
        .muteConversation(MuteConversation(conversation: id, muted: muted, forMs: duration))
    }

    private func block(_ user: String, _ blocked: Bool = true) -> Mutation.Operation {
        .blockUser(BlockUser(user: user, blocked: blocked))
    }

    private func visible(_ user: String) throws -> [UInt64] {
        try world.rows(user).filter(\.isVisible).map(\.position)
    }

    @Test func aMutedConversationDoesNotAlert() throws {
        let id = try world.converse(["anna", "bert"])
        try world.publish("1", to: id, from: "bert")
        #expect(try world.mutate(anna, 1, mute(id, true, for: 60_000)).code == 0)
        #expect(try world.page("anna").entries.last?.word == "muted")
        try world.publish("2", to: id, from: "bert")
        #expect(try visible("anna") == [1])
        // It ends by itself.
        world.pass(60_000)
        try world.publish("3", to: id, from: "bert")
        #expect(try visible("anna") == [1, 3])
        #expect(try world.mutate(anna, 2, mute(id, true)).code == 0)
        world.pass(365 * 86_400_000)
        try world.publish("4", to: id, from: "bert")
        #expect(try world.mutate(anna, 3, mute(id, false)).code == 0)
        try world.publish("5", to: id, from: "bert")
        #expect(try visible("anna") == [1, 3, 5])
        #expect(try world.rows("anna").filter { $0.kind == .conversationSettings }.count == 1)
        // Nobody else is concerned, and nobody mutes what he does not see.
        #expect(try world.page("bert").entries.allSatisfy { $0.word != "muted" })
        let hidden = try world.converse(["carl"])
        #expect(
            try world.mutate(anna, 4, mute(hidden, true)).code == Code.notFound.rawValue)
    }

    @Test("a mute that is ended has no end of its own any more, whatever the client says with it")
    func ended() throws {
        let id = try world.converse(["anna", "bert"])
        #expect(try world.mutate(anna, 1, mute(id, true, for: 60_000)).code == 0)
        #expect(try world.mutate(anna, 2, mute(id, false, for: 60_000)).code == 0)
        guard case .conversationSettings(let state) = try world.page("anna").entries.last?.body
        else { return #expect(Bool(false)) }
        #expect(!state.muted && state.mutedUntilMs == 0)
    }

    @Test("MSG-26: a mute with an end is as long as the user asked for, however late it comes")
    func askedForOffline() throws {
        let id = try world.converse(["anna", "bert"])
        func state() throws -> ConversationSettings? {
            let entries = try world.page("anna").entries
            guard case .conversationSettings(let state) = entries.last?.body else { return nil }
            return state
        }
        let start = world.now.milliseconds
        #expect(try world.mutate(anna, 1, mute(id, true, for: 60_000), waited: 20_000).code == 0)
        #expect(try state()?.mutedUntilMs == start + 40_000)
        // It was over before it came: the newest wish is that nothing is muted.
        #expect(try world.mutate(anna, 2, mute(id, true, for: 60_000), waited: 60_000).code == 0)
        #expect(try state()?.muted == false)
        // Without an end it holds, however long it waited.
        #expect(try world.mutate(anna, 3, mute(id, true), waited: .max).code == 0)
        #expect(try state()?.muted == true && state()?.mutedUntilMs == 0)
    }

    @Test func whatIsMutedOrBlockedIsNotCountedAsUnread() throws {
        let id = try world.converse(["anna", "bert", "carl"])
        func count() throws -> UInt64 { try world.page("anna").unread }
        for text in ["1", "2", "3"] { try world.publish(text, to: id, from: "bert") }
        #expect(try count() == 3)
        #expect(try world.mutate(anna, 1, mute(id, true)).code == 0)
        #expect(try count() == 0)
        try world.publish("4", to: id, from: "carl")
        #expect(try count() == 0)
        // When it is muted no more, what came counts again.
        #expect(try world.mutate(anna, 2, mute(id, false)).code == 0)
        #expect(try count() == 4)
        #expect(try world.mutate(anna, 3, block("bert")).code == 0)
        try world.publish("5", to: id, from: "bert")
        #expect(try count() == 4)
        _ = try world.ask(
            .acknowledge(
                Acknowledge(
                    session: anna, applied: 0,
                    reads: [ReadReceipt(conversation: id, through: 1)], completesSync: false)))
        #expect(try count() == 3)
    }

    @Test func whoIsBlockedReachesTheBlockerNoMore() throws {
        let id = try world.converse(["anna", "bert", "carl"])
        #expect(try world.mutate(anna, 1, block("bert")).code == 0)
        #expect(try world.page("anna").entries.last?.word == "block bert")
        try world.publish("from bert", to: id, from: "bert")
        try world.publish("from carl", to: id, from: "carl")
        let heard = try world.page("anna").entries.map(\.word).filter { $0.hasPrefix("message") }
        #expect(heard == ["message 2"])
        #expect(try world.rows("carl").filter { $0.kind == .message }.count == 2)
        #expect(try world.rows("bert").filter { $0.kind == .message }.count == 2)
        // Nor by a new conversation.
        let forbidden = Code.forbidden.rawValue
        #expect(
            try world.mutate(
                bert, 1,
                .createConversation(
                    CreateConversation(conversation: world.fresh(), participants: ["anna"]))
            ).code == forbidden)
        let other = try world.converse(["bert"])
        #expect(
            try world.mutate(
                bert, 2,
                .addParticipants(AddParticipants(conversation: other, users: ["anna"]))
            ).code == forbidden)
        // The other direction, and the backend, are free.
        #expect(
            try world.mutate(
                anna, 2,
                .createConversation(
                    CreateConversation(conversation: world.fresh(), participants: ["bert"]))
            ).code == 0)
        #expect(try world.mutate(anna, 3, block("bert", false)).code == 0)
        try world.publish("again", to: id, from: "bert")
        #expect(try world.page("anna").entries.last?.word == "message 3")
    }

    @Test("what came before a block changes with its author's edits, and calls nobody")
    func editsOfWhatCameBeforeABlock() throws {
        let id = try world.converse(["anna", "bert"])
        let message = try world.publish("from bert", to: id, from: "bert").message
        #expect(try world.mutate(anna, 1, block("bert")).code == 0)
        try world.edit(message, "better")
        let row = try #require(try world.rows("anna").last { $0.kind == .message })
        #expect(row.version == 2 && !row.isVisible)
    }

    @Test func blocksAreBoundedAndOfOthers() throws {
        world.limits.blocks = 2
        let malformed = Code.malformed.rawValue
        #expect(try world.mutate(anna, 1, block("anna")).code == malformed)
        #expect(try world.mutate(anna, 2, block("")).code == malformed)
        #expect(try world.mutate(anna, 3, block("b")).code == 0)
        #expect(try world.mutate(anna, 4, block("c")).code == 0)
        #expect(try world.mutate(anna, 5, block("d")).code == Code.limit.rawValue)
        #expect(try world.mutate(anna, 6, block("b", false)).code == 0)
        #expect(try world.mutate(anna, 7, block("b")).code == 0)
        // To end what never was changes nothing.
        let head = try world.head("anna")
        #expect(try world.mutate(anna, 8, block("b")).code == 0)
        #expect(try world.head("anna") == head)
    }

    @Test func aConversationMayTellNoReceipts() throws {
        let id: ConversationID = world.fresh()
        #expect(
            try world.mutate(
                anna, 1,
                .createConversation(
                    CreateConversation(
                        conversation: id, participants: ["bert"], receiptsOff: true))
            ).code == 0)
        try world.publish("hi", to: id, from: "anna")
        _ = try world.ask(
            .acknowledge(
                Acknowledge(
                    session: bert, applied: try world.head("bert"),
                    reads: [ReadReceipt(conversation: id, through: 1)], completesSync: true)))
        world.pass(10_000)
        try world.ask(.coalesceReceipts(users: 100))
        #expect(try world.rows("anna").allSatisfy { $0.kind != .receipt })
        // Nor does a FETCH tell them to anybody.
        let fetch = Fetch(object: id.bytes, receipts: true)
        let query = HistoryQuery.fetch(World.app, UserID("anna"), fetch, bytes: 1 << 16)
        guard case .page(let page) = try world.history(query) else {
            return #expect(Bool(false))
        }
        #expect(page.entries.map(\.word).suffix(2) == ["participant anna", "participant bert"])
        // How far they got is kept all the same.
        let read = try world.all(ReceiptRecord.self).first { $0.user.name == "bert" }
        #expect(read?.read == 1)
    }
}
