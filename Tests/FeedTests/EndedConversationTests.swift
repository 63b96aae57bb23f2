import Model
import Testing
import Wire

@testable import Feed

/// What the server still knows of a conversation that ended, after the time in which a device may
/// need it (MSG-37, SYN-30, SYN-35).
struct EndedConversationTests {
    private let world: World
    private let id: ConversationID
    private static let day: Milliseconds = 86_400_000

    init() throws {
        world = try World()
        id = try world.converse(["a", "b", "c"])
    }

    private func members() throws -> [String] {
        try world.all(ParticipantRecord.self).filter { $0.conversation == id }.map(\.user.name)
    }

    private func conversation() throws -> ConversationRecord {
        try #require(try world.all(ConversationRecord.self).first { $0.conversation == id })
    }

    private func end() throws {
        try world.publish("x", to: id, from: "b")
        #expect(try world.end(id).refusal == nil)
        try world.retain()
    }

    @Test func whoTookPartIsForgottenWithTheTombstone() throws {
        let other = try world.converse(["a", "b"])
        let slow = try world.login("b", DeviceID(high: 1, low: 1)).session
        try end()
        world.pass(29 * Self.day)
        try world.retain()
        #expect(try members() == ["a", "b", "c"])
        let send = Mutation.Operation.sendMessage(world.message0("y", to: id, world.fresh()))
        #expect(try world.mutate(slow, 1, send).code == Code.gone.rawValue)
        world.pass(2 * Self.day)
        try world.retain()
        #expect(try members() == ["b"], "b has a device that was not told of the end")
        #expect(try world.texts("b").last == "tombstone conversation 1 everyone")
        try world.ask(
            .acknowledge(
                Acknowledge(session: slow, applied: try world.head("b"), completesSync: true)))
        world.pass(Self.day)
        try world.retain()
        #expect(try members() == [])
        let sent = Mutation.Operation.sendMessage(world.message0("y", to: id, world.fresh()))
        #expect(try world.mutate(slow, 2, sent).code == Code.notFound.rawValue)
        // The id stays in use, and nothing of the other conversation has changed.
        #expect(try world.end(id).refusal == .gone)
        #expect(try world.texts("b") == ["conversation", "participant a", "participant b"])
        try world.publish("z", to: other, from: "a")
        #expect(try world.texts("b").last == "message 1 z")
    }

    @Test func whoMadeAndEndedItIsForgottenToo() throws {
        let a = try world.login("a", DeviceID(high: 1, low: 1)).session
        let room: ConversationID = world.fresh()
        let create = CreateConversation(conversation: room, participants: ["b"], distinct: true)
        #expect(try world.mutate(a, 1, .createConversation(create)).code == 0)
        #expect(try world.end(room).refusal == nil)
        try world.retain()
        var row = try #require(
            try world.all(ConversationRecord.self).first { $0.conversation == room })
        #expect(row.creator == "a" && row.distinctKey.contains("b"))
        try world.ask(
            .acknowledge(
                Acknowledge(session: a, applied: try world.head("a"), completesSync: true)))
        world.pass(31 * Self.day)
        try world.retain()
        row = try #require(
            try world.all(ConversationRecord.self).first { $0.conversation == room })
        #expect(row.creator == "" && row.deletedBy == "" && !row.distinctKey.contains("b"))
        #expect(!row.distinctKey.isEmpty && row.deletedAt != nil)
        // The same two make another one.
        let again = CreateConversation(
            conversation: world.fresh(), participants: ["b"], distinct: true)
        let made = try world.mutate(a, 2, .createConversation(again))
        #expect(made.code == 0 && made.object == again.conversation?.bytes)
    }

    /// A deleted participant has no tombstone any more, and a row for a while; and a version before
    /// this one left rows behind.
    @Test func rowsWithoutATombstoneKeepNoName() throws {
        let a = try world.login("a", DeviceID(high: 1, low: 1)).session
        let room: ConversationID = world.fresh()
        let create = CreateConversation(conversation: room, participants: ["b"])
        #expect(try world.mutate(a, 1, .createConversation(create)).code == 0)
        #expect(try world.end(room).refusal == nil)
        try world.retain()
        try world.ask(.deleteUser(app: World.app, UserID("b"), idempotency: nil))
        while try !world.all(UserDeletionRecord.self).isEmpty {
            try world.finishFanOut()
            try world.ask(.continueDeletions(rows: 100))
        }
        try world.tamper { transaction throws(StoreError) in
            let key: [ColumnValue] = [.app(World.app), .identifier(room), .text("b")]
            var row = try transaction.row(ParticipantRecord.table, key: key, lock: .none)!
            row[2] = .text("z")
            try transaction.put(ParticipantRecord.table, row)
        }
        try world.ask(
            .acknowledge(
                Acknowledge(session: a, applied: try world.head("a"), completesSync: true)))
        world.pass(31 * Self.day)
        try world.retain()
        let row = try #require(
            try world.all(ConversationRecord.self).first { $0.conversation == room })
        #expect(row.creator == "" && row.deletedBy == "")
    }

    /// A user who left before keeps the own entry; the others' go when no device needs them.
    @Test func whoLeftBeforeTheEndKeepsTheOwnMembershipAlone() throws {
        let c = try world.login("c", DeviceID(high: 1, low: 3)).session
        try world.remove(["c"], from: id)
        try end()
        world.pass(31 * Self.day)
        try world.retain()
        #expect(try world.rows("c").count == 4, "the device has not been there since")
        // The rows of the others have gone with their own tombstones.
        #expect(try world.texts("c") == ["conversation", "removed c"])
        #expect(world.unreadable.isEmpty, "no operator is told of a row that is damaged")
        try world.ask(
            .acknowledge(
                Acknowledge(session: c, applied: try world.head("c"), completesSync: true)))
        world.pass(Self.day)
        try world.retain()
        #expect(try world.texts("c") == ["conversation", "removed c"])
        #expect(try members() == ["c"])
        #expect(try world.rows("c").count == 2, "no other row of it is kept")
        #expect(try conversation().creator == "")
    }

    /// The tombstone of a deletion for oneself goes, and the membership of a conversation that
    /// goes on does not.
    @Test func aDeletionForOneselfEndsNoMembership() throws {
        let b = try world.login("b", DeviceID(high: 1, low: 1)).session
        try world.publish("x", to: id, from: "a")
        let clear = Mutation.Operation.deleteConversation(DeleteConversation(conversation: id))
        #expect(try world.mutate(b, 1, clear).code == 0)
        try world.ask(
            .acknowledge(
                Acknowledge(session: b, applied: try world.head("b"), completesSync: true)))
        world.pass(31 * Self.day)
        try world.retain()
        #expect(try !world.rows("b").contains { $0.kind == .tombstone })
        #expect(try members() == ["a", "b", "c"])
        try world.publish("y", to: id, from: "a")
        #expect(try world.texts("b").last == "message 2 y")
    }
}
