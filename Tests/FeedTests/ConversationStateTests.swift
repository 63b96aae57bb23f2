import Feed
import Model
import Testing
import Wire

/// Metadata, distinct conversations, content by reference (MSG-23 to MSG-25).
struct ConversationStateTests {
    let world: World
    let anna: SessionKey
    let bert: SessionKey

    init() throws {
        world = try World()
        anna = try world.login("anna", DeviceID(high: 5, low: 1)).session
        bert = try world.login("bert", DeviceID(high: 5, low: 2)).session
    }

    private func code(
        _ session: SessionKey, _ number: UInt64, _ operation: Mutation.Operation
    ) throws -> Code? {
        Code(rawValue: try world.mutate(session, number, operation).code)
    }

    private func metadata(_ user: String) throws -> [String] {
        for entry in try world.page(user).entries.reversed() {
            if case .metadata(let state) = entry.body {
                return state.values.map { $0.path.joined(separator: ".") + "=" + $0.value }
            }
        }
        return []
    }

    private func set(_ path: String, _ value: String) -> MetadataChange {
        MetadataChange(path: path.split(separator: ".").map(String.init), value: value)
    }

    private func remove(_ path: String) -> MetadataChange {
        MetadataChange(path: path.split(separator: ".").map(String.init), removed: true)
    }

    private func change(
        _ id: ConversationID, _ changes: [MetadataChange], base: UInt64 = 0
    ) -> Mutation.Operation {
        .changeMetadata(ChangeMetadata(conversation: id, changes: changes, baseVersion: base))
    }

    // MARK: metadata

    @Test func valuesAreSetAndRemovedByPath() throws {
        let id = try world.converse(["anna", "bert"])
        #expect(
            try code(
                anna, 1, change(id, [set("title", "Trip"), set("theme.colour", "green")])) == nil)
        #expect(try metadata("bert") == ["theme.colour=green", "title=Trip"])
        #expect(try code(bert, 1, change(id, [set("theme.font", "serif")])) == nil)
        #expect(
            try metadata("anna") == ["theme.colour=green", "theme.font=serif", "title=Trip"])
        // A value takes the place of what lies below it, and the other way round.
        #expect(try code(anna, 2, change(id, [set("theme", "dark")])) == nil)
        #expect(try metadata("anna") == ["theme=dark", "title=Trip"])
        #expect(try code(anna, 3, change(id, [set("theme.colour", "red")])) == nil)
        #expect(try metadata("anna") == ["theme.colour=red", "title=Trip"])
        #expect(try code(anna, 4, change(id, [remove("theme")])) == nil)
        #expect(try metadata("anna") == ["title=Trip"])
        // One entry, whatever happened.
        #expect(try world.rows("bert").filter { $0.kind == .metadata }.count == 1)
    }

    @Test func aChangeFromAnotherVersionIsAConflict() throws {
        let id = try world.converse(["anna", "bert"])
        #expect(try code(anna, 1, change(id, [set("a", "1")])) == nil)
        #expect(try code(anna, 2, change(id, [set("a", "2")], base: 1)) == nil)
        #expect(try code(bert, 1, change(id, [set("a", "3")], base: 1)) == .versionConflict)
        #expect(try metadata("bert") == ["a=2"])
    }

    @Test func whoJoinsGetsTheMetadataOnce() throws {
        world.limits.directRecipients = 1
        let id = try world.converse(["anna", "bert"])
        try world.finishFanOut()
        // The newcomer's job runs when the change is committed already.
        _ = try world.add(["carl"], to: id)
        #expect(try code(anna, 1, change(id, [set("a", "1")])) == nil)
        try world.finishFanOut()
        #expect(try metadata("carl") == ["a=1"])
        #expect(try world.rows("carl").filter { $0.kind == .metadata }.count == 1)
    }

    @Test func metadataIsBounded() throws {
        let id = try world.converse(["anna", "bert"])
        let long = String(repeating: "x", count: 65)
        let deep = (1...9).map { "\($0)" }.joined(separator: ".")
        #expect(try code(anna, 1, change(id, [])) == .missingField)
        #expect(try code(anna, 2, change(id, [set("", "x")])) == .missingField)
        #expect(try code(anna, 3, change(id, [set(long, "x")])) == .malformed)
        #expect(try code(anna, 4, change(id, [set(deep, "x")])) == .limit)
        #expect(
            try code(anna, 5, change(id, [set("a", String(repeating: "x", count: 2049))]))
                == .tooLarge)
        let full = (0..<64).map { set("k\($0)", "x") }
        #expect(try code(anna, 6, change(id, full)) == nil)
        #expect(try code(anna, 7, change(id, [set("other", "x")])) == .limit)
        // All or none.
        #expect(try code(anna, 8, change(id, [remove("k0"), set(long, "x")])) == .malformed)
        #expect(try metadata("bert").count == 64)
        #expect(try code(bert, 9, change(world.fresh(), [set("a", "x")])) == .notFound)
    }

    // MARK: distinct

    private func create(
        _ id: ConversationID, _ users: [String], distinct: Bool = true
    ) -> Mutation.Operation {
        .createConversation(
            CreateConversation(conversation: id, participants: users, distinct: distinct))
    }

    @Test func twoWhoMakeTheSameConversationEndInOne() throws {
        let first: ConversationID = world.fresh()
        let second: ConversationID = world.fresh()
        #expect(try world.mutate(anna, 1, create(first, ["bert"])).object == first.bytes)
        // Made offline at the same time, with a message in it already.
        let merged = try world.mutate(bert, 1, create(second, ["anna"]))
        #expect(merged.code == 0)
        #expect(merged.object == first.bytes)
        let message = try world.mutate(
            bert, 2, .sendMessage(world.message0("hi", to: second, world.fresh())))
        #expect(message.code == 0)
        #expect(message.position == 1)
        let entries = try world.page("anna").entries.filter { $0.word == "message 1" }
        #expect(entries.map(\.conversation) == [first])
        // The same number gives the same result, and another one too.
        #expect(try world.mutate(bert, 1, create(second, ["anna"])) == merged)
        #expect(try world.mutate(bert, 3, create(second, ["anna"])).object == first.bytes)
        // Others are another conversation.
        let third: ConversationID = world.fresh()
        #expect(try world.mutate(bert, 4, create(third, ["anna", "carl"])).object == third.bytes)
        let fourth: ConversationID = world.fresh()
        #expect(
            try world.mutate(bert, 5, create(fourth, ["anna"], distinct: false)).object
                == fourth.bytes)
    }

    @Test("MSG-24: the names of a distinct conversation have 2,000 bytes together, and no more")
    func distinctNames() throws {
        // With "anna", who takes part too.
        func names(bytes: Int) -> [String] {
            let long = (0..<15).map { "\($0 + 10)" + String(repeating: "x", count: 126) }
            return long + [String(repeating: "y", count: bytes - 4 - 15 * 128)]
        }
        let first: ConversationID = world.fresh()
        #expect(try code(anna, 1, create(first, names(bytes: 2_000))) == nil)
        let second: ConversationID = world.fresh()
        #expect(try code(anna, 2, create(second, names(bytes: 2_001))) == .limit)
        #expect(try code(anna, 3, create(second, names(bytes: 2_001), distinct: false)) == nil)
    }

    @Test func aDistinctConversationKeepsItsParticipants() throws {
        let id: ConversationID = world.fresh()
        #expect(try code(anna, 1, create(id, ["bert"])) == nil)
        let add = AddParticipants(conversation: id, users: ["carl"])
        #expect(try code(anna, 2, .addParticipants(add)) == .conflict)
        #expect(try world.add(["carl"], to: id).refusal == .conflict)
    }

    @Test func theIdOfAnotherConversationIsNotTakenAsAnAlias() throws {
        let hidden = try world.converse(["carl"])
        let id: ConversationID = world.fresh()
        #expect(try code(anna, 1, create(id, ["bert"])) == nil)
        #expect(try code(bert, 1, create(hidden, ["anna"])) == .forbidden)
        try world.publish("x", to: hidden)
        #expect(try world.all(AliasRecord.self).isEmpty)
    }

    // MARK: references

    @Test func contentMayBeKeptElsewhere() throws {
        let id = try world.converse(["anna", "bert"])
        let good = PartReference(
            url: "https://example.org/a", size: 9, digest: [UInt8](repeating: 7, count: 32))
        func send(_ number: UInt64, _ part: Part) throws -> Code? {
            try code(
                anna, number,
                .sendMessage(
                    SendMessage(conversation: id, message: world.fresh(), parts: [part])))
        }
        #expect(try send(1, Part(mimeType: "image/png", reference: good)) == nil)
        guard case .message(let state) = try world.page("bert").entries.last?.body else {
            Issue.record("no message")
            return
        }
        #expect(state.parts.first?.reference == good)
        #expect(
            try send(2, Part(mimeType: "a/b", content: [1], reference: good)) == .malformed)
        var bad = good
        bad.digest = [1]
        #expect(try send(3, Part(mimeType: "a/b", reference: bad)) == .malformed)
        bad = good
        bad.url = "a b"
        #expect(try send(4, Part(mimeType: "a/b", reference: bad)) == .malformed)
        bad.url = String(repeating: "x", count: 2049)
        #expect(try send(5, Part(mimeType: "a/b", reference: bad)) == .tooLarge)
        bad = good
        bad.size = 0
        #expect(try send(6, Part(mimeType: "a/b", reference: bad)) == .missingField)
    }
}
