import Feed
import Model
import Testing
import Wire

/// Two users whose names Unicode takes for one text (P6): each is a user of his own to every rule.
struct EquivalentNamesTests {
    static let composed = "caf\u{e9}"
    static let decomposed = "cafe\u{301}"

    private let world: World

    init() throws { world = try World() }

    private func session(_ user: String, _ device: UInt64) throws -> SessionKey {
        try world.login(user, DeviceID(high: 1, low: device)).session
    }

    private func edit(_ message: MessageID) -> Mutation.Operation {
        .editMessage(
            EditMessage(
                message: message,
                parts: [Part(mimeType: "text/plain", content: Array("forged".utf8))]))
    }

    @Test func aConversationOfBothHasBoth() throws {
        let id = try world.converse([Self.composed, Self.decomposed, "ben"])
        let members = try world.all(ParticipantRecord.self)
        #expect(members.map(\.user.name.utf8.count).sorted() == [3, 5, 6])
        #expect(
            try world.record(ConversationRecord.self, [.app(World.app), .identifier(id)])?
                .participants == 3)
    }

    @Test func neitherChangesTheOthersMessage() throws {
        let id = try world.converse([Self.composed, Self.decomposed])
        let message = try world.publish("mine", to: id, from: Self.composed).message
        let other = try session(Self.decomposed, 1)
        #expect(try world.mutate(other, 1, edit(message)).code == Code.forbidden.rawValue)
        let deletion = Mutation.Operation.deleteMessage(
            DeleteMessage(message: message, forEveryone: true))
        #expect(try world.mutate(other, 2, deletion).code == Code.forbidden.rawValue)
        let end = Mutation.Operation.deleteConversation(
            DeleteConversation(conversation: id, forEveryone: true))
        #expect(try world.mutate(other, 3, end).code == Code.forbidden.rawValue)
        let own = try session(Self.composed, 2)
        #expect(try world.mutate(own, 1, edit(message)).code == 0)
    }

    @Test func aMessageOfTheOneIsUnreadToTheOther() throws {
        let id = try world.converse([Self.composed, Self.decomposed])
        try world.publish("hello", to: id, from: Self.composed)
        #expect(try world.page(Self.decomposed).unread == 1)
        #expect(try world.page(Self.composed).unread == 0)
    }

    @Test func theOneCanBlockTheOther() throws {
        let id = try world.converse([Self.composed, Self.decomposed, "ben"])
        let composed = try session(Self.composed, 1)
        let block = Mutation.Operation.blockUser(BlockUser(user: Self.decomposed, blocked: true))
        #expect(try world.mutate(composed, 1, block).code == 0)
        try world.publish("unwanted", to: id, from: Self.decomposed)
        try world.publish("wanted", to: id, from: "ben")
        #expect(try world.texts(Self.composed).last == "message 2 wanted")
        #expect(try !world.texts(Self.composed).contains("message 1 unwanted"))
        // Of his own messages none is missing.
        try world.publish("own", to: id, from: Self.composed)
        #expect(try world.texts(Self.composed).last == "message 3 own")
    }

    @Test func theOnesEndTakesNothingOfTheOther() throws {
        let id = try world.converse([Self.composed, Self.decomposed, "ben"])
        try world.publish("gone", to: id, from: Self.composed)
        try world.publish("stays", to: id, from: Self.decomposed)
        let asked = try world.ask(
            .deleteUser(app: World.app, UserID(Self.composed), idempotency: nil))
        #expect(asked == .done)
        for _ in 0..<1_000 where try !world.all(UserDeletionRecord.self).isEmpty {
            try world.finishFanOut()
            try world.ask(.continueDeletions(rows: 64))
        }
        try world.finishFanOut()
        let texts = try world.texts("ben")
        #expect(texts.contains("message 2 stays"))
        #expect(!texts.contains("message 1 gone"))
        #expect(try world.texts(Self.decomposed).contains("message 2 stays"))
    }

    @Test func signalsReachTheOther() throws {
        let id = try world.converse([Self.composed, Self.decomposed])
        let asked = try world.read(
            .audience(World.app, UserID(Self.composed), id))
        #expect(asked == .audience([UserID(Self.decomposed)]))
    }

    @Test func anAnnouncementComesToBoth() throws {
        let answer = try world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: world.fresh(), users: [Self.composed, Self.decomposed],
                    parts: [Part(mimeType: "text/plain", content: [0x41])]),
                idempotency: nil))
        #expect(answer.refusal == nil)
        while case .progressed(_, let more) = try world.ask(.continueFanOut(recipients: 50)), more {
        }
        for user in [Self.composed, Self.decomposed] {
            #expect(try world.page(user).entries.map(\.word) == ["announcement"])
        }
    }

    @Test func metadataKeysAreTwo() throws {
        let id = try world.converse(["ben"])
        let changes = [
            MetadataChange(path: [Self.composed], value: "1"),
            MetadataChange(path: [Self.decomposed], value: "2"),
        ]
        let answer = try world.ask(
            .changeMetadata(
                app: World.app, ChangeMetadata(conversation: id, changes: changes),
                idempotency: nil))
        guard case .metadata(let record) = answer else { throw Unexpected(answer: answer) }
        #expect(try MetadataState(encoded: record.state).values.map(\.value) == ["2", "1"])
    }

    /// Whoever takes part in one may not see what is in the other.
    @Test func feedsAndKeysAreApart() throws {
        let id = try world.converse([Self.composed, "ben"])
        try world.publish("private", to: id, from: "ben")
        #expect(try world.page(Self.composed).entries.count == 4)
        #expect(try world.head(Self.decomposed) == 0)
        let first = Idempotency(key: Self.composed, requestHash: [1])
        let second = Idempotency(key: Self.decomposed, requestHash: [2])
        try world.publish("one", to: id, idempotency: first)
        try world.publish("two", to: id, idempotency: second)
        #expect(try world.texts("ben").suffix(2) == ["message 2 one", "message 3 two"])
    }
}
