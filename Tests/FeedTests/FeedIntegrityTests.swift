import Model
import Testing
import Wire

@testable import Feed

/// Every entry of a feed can be read, whatever has been cleared away behind it, and one that
/// cannot keeps nothing else from its user.
struct FeedIntegrityTests {
    private let world: World
    private let id: ConversationID

    init() throws {
        world = try World()
        id = try world.converse(["a", "b", "c"])
    }

    private func session(_ user: String, _ device: UInt64 = 1) throws -> SessionKey {
        try world.login(user, DeviceID(high: 1, low: device)).session
    }

    private func setTheme(_ value: String) throws {
        let request = ChangeMetadata(
            conversation: id, changes: [MetadataChange(path: ["theme"], value: value)])
        #expect(
            try world.ask(.changeMetadata(app: World.app, request, idempotency: nil)).refusal
                == nil)
    }

    // MARK: who left before the end

    /// Metadata, settings and a read mark are in the feed of somebody who is removed; then the
    /// conversation is deleted and cleared away.
    @Test func whoLeftBeforeTheEndCanReadOn() throws {
        let c = try session("c")
        try setTheme("red")
        try world.publish("x", to: id, from: "a")
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: c, applied: try world.head("c"),
                    reads: [ReadReceipt(conversation: id, through: 1)], completesSync: true)))
        let mute = MuteConversation(conversation: id, muted: true)
        #expect(try world.mutate(c, 1, .muteConversation(mute)).code == 0)
        let gone = try world.publish("y", to: id, from: "a").message
        try world.delete(gone)
        try world.remove(["c"], from: id)
        try world.end(id)
        try world.retain()
        let other = try world.converse(["a", "c"])
        try world.publish("later", to: other, from: "a")
        #expect(
            try world.texts("c") == [
                "conversation", "participant a", "participant b", "tombstone 2 everyone",
                "removed c", "conversation", "participant a", "participant c", "message 1 later",
            ])
        #expect(world.unreadable.isEmpty)
        #expect(try world.all(ReadMarkRecord.self).isEmpty)
        #expect(try world.all(SettingsRecord.self).isEmpty)
    }

    // MARK: what cannot be read

    /// An entry whose object is gone is passed over in every kind of page, and noted.
    @Test func anEntryWithoutItsObjectIsPassedOver() throws {
        try setTheme("red")
        let lost = try world.publish("x", to: id, from: "a").message
        try world.publish("y", to: id, from: "a")
        try world.tamper { transaction throws(StoreError) in
            try transaction.delete(
                MetadataRecord.self, [.app(World.app), .identifier(id)])
            try transaction.delete(MessageRecord.self, [.app(World.app), .identifier(lost)])
        }
        let whole = [
            "conversation", "participant a", "participant b", "participant c", "message 2 y",
        ]
        let page = try world.page("b")
        #expect(page.entries.map(\.text) == whole)
        #expect(page.to == page.head, "the cursor goes past it")
        #expect(world.unreadable.map(\.detail) == ["entry 5: no metadata", "entry 6: no message"])
        #expect(world.unreadable.allSatisfy { $0.conversation == id && $0.user.name == "b" })
        // One entry a page, and a peek.
        var after: UInt64 = 0
        var found: [String] = []
        repeat {
            let page = try world.page("b", after: after, bytes: 1)
            found += page.entries.map(\.text)
            after = page.to
        } while try after < world.head("b")
        #expect(found == whole)
        #expect(try world.peek("b").entries.map(\.text) == whole.reversed())
    }

    /// Content that does not decode is passed over by pages, FETCH and SNAPSHOT alike.
    @Test func contentThatDoesNotDecodeIsPassedOver() throws {
        let c = try session("c")
        try setTheme("red")
        let broken = try world.publish("x", to: id, from: "a").message
        try world.publish("y", to: id, from: "a")
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: c, applied: 0, reads: [ReadReceipt(conversation: id, through: 1)],
                    completesSync: false)))
        try world.tamper { transaction throws(StoreError) in
            let key: [ColumnValue] = [.app(World.app), .identifier(broken)]
            var message = try transaction.record(MessageRecord.self, key)!
            message.parts = [0xFF]
            try transaction.put(message)
            try transaction.put(
                MetadataRecord(app: World.app, conversation: id, state: [0xFF], version: 1))
            try transaction.put(
                ReadMarkRecord(
                    app: World.app, user: UserID("c"), conversation: id, through: 1, ranges: [1],
                    version: 1))
        }
        let people = ["conversation", "participant a", "participant b", "participant c"]
        #expect(try world.texts("c") == people + ["message 2 y"])
        #expect(world.unreadable.count == 3)
        let app = World.app
        let window = try world.history(
            .fetch(app, UserID("c"), Fetch(conversation: id), bytes: 1 << 20))
        guard case .page(let page) = window else { return #expect(Bool(false)) }
        #expect(page.entries.map(\.text) == ["message 2 y"])
        #expect(page.first == 1 && page.last == 2)
        let everyone = try world.history(
            .fetch(app, UserID("c"), Fetch(object: id.bytes), bytes: 1 << 20))
        guard case .page(let members) = everyone else { return #expect(Bool(false)) }
        #expect(members.entries.map(\.text) == people)
        let snapshot = try world.history(
            .snapshot(app, UserID("c"), SnapshotFrame(), bytes: 1 << 20))
        guard case .snapshotPage(let first) = snapshot else { return #expect(Bool(false)) }
        #expect(first.conversations.map { $0.entries.map(\.text) } == [people + ["message 2 y"]])
        #expect(world.unreadable.count == 3, "metadata, read mark and message")
        for descending in [true, false] {
            let range = MessageRange(
                descending: descending, beside: nil, limit: 9, bytes: 9000)
            let listed = try world.read(.backend(app, .messages(id, range)))
            guard case .backend(.messages(let found, next: _)) = listed else {
                return #expect(Bool(false))
            }
            #expect(found.map(\.position) == [2])
            #expect(world.unreadable.count == 1)
        }
    }

    /// A row of the feed that this program cannot read, as a newer one may leave it behind.
    @Test func anEntryThatDoesNotDecodeIsPassedOver() throws {
        try world.publish("x", to: id, from: "a")
        try world.tamper { transaction throws(StoreError) in
            var row = try transaction.row(
                EntryRecord.table, key: [.app(World.app), .text("b"), .integer(2)], lock: .none)!
            row[3] = .integer(99)
            try transaction.put(EntryRecord.table, row)
        }
        let whole = ["conversation", "participant b", "participant c", "message 1 x"]
        #expect(try world.texts("b") == whole)
        #expect(try world.peek("b").entries.map(\.text) == whole.reversed())
        #expect(world.unreadable.map(\.detail) == ["entry 2: entry.kind: 99 is no EntryKind"])
    }

    /// What a backend lists is not kept from it by one conversation that is gone.
    @Test func aMembershipWithoutItsConversationIsPassedOver() throws {
        let other = try world.converse(["a", "b"])
        try world.tamper { transaction throws(StoreError) in
            try transaction.delete(
                ConversationRecord.self, [.app(World.app), .identifier(id)])
        }
        let reading = try world.read(
            .backend(World.app, .conversations(UserID("a"), after: nil, limit: 10, bytes: 1 << 20)))
        guard case .backend(.conversations(let found, next: _)) = reading else {
            return #expect(Bool(false))
        }
        #expect(found.map(\.conversation.conversation) == [other])
        #expect(world.unreadable.map(\.conversation) == [id])
    }
}
