import Model
import Testing
import Wire

@testable import Feed

/// MSG-38: participants of a large conversation are not told of each other.
struct LargeConversationTests {
    private let world: World
    private let id: ConversationID

    init() throws {
        var limits = RuleLimits()
        limits.participantsTold = 3
        world = try World(limits: limits)
        id = try world.converse(["a", "b", "c"])
    }

    @Test("those who were there learn that it became large, and of nobody who comes then")
    func becomesLarge() throws {
        let before = try world.head("a")
        #expect(try world.add(["d"], to: id).refusal == nil)
        #expect(try world.texts("a", after: before) == ["conversation of 4"])
        #expect(try world.texts("d") == ["conversation of 4", "participant d"])
        #expect(try world.add(["e", "f"], to: id).refusal == nil)
        #expect(try world.head("a") == before + 1)
        #expect(try world.texts("e") == ["conversation of 6", "participant e"])
        let versions = try world.page("a").entries.map(\.version)
        #expect(versions.last == 2, "the conversation's entry is news to a device that has it")
    }

    @Test("messages and changes of it come as before")
    func content() throws {
        #expect(try world.add(["d"], to: id).refusal == nil)
        let message = try world.publish("x", to: id, from: "d")
        try world.edit(message.message, "y")
        for user in ["a", "d"] {
            #expect(try world.texts(user).last == "message 1 y edited", "\(user)")
        }
    }

    @Test("a member who leaves is told; nobody else is")
    func leaving() throws {
        #expect(try world.add(["d"], to: id).refusal == nil)
        let before = try world.head("a")
        try world.remove(["b", "d"], from: id)
        #expect(try world.head("a") == before)
        #expect(try world.texts("d").last == "removed d")
        // It stays large, however few are left, and says no more to those who left.
        #expect(try world.texts("a").last == "conversation of 2")
        #expect(try world.texts("d").first == "conversation of 1")
        #expect(try world.add(["e"], to: id).refusal == nil)
        #expect(try world.head("a") == before)
    }

    @Test("a member who left before it was large does not learn that it is")
    func leftBefore() throws {
        try world.remove(["c"], from: id)
        #expect(try world.add(["d", "e"], to: id).refusal == nil)
        #expect(try world.texts("a").last == "conversation of 4")
        #expect(try world.texts("c").first == "conversation")
    }

    @Test("who comes back gets the conversation anew and the own membership alone")
    func comingBack() throws {
        try world.remove(["c"], from: id)
        #expect(try world.add(["d", "e"], to: id).refusal == nil)
        let before = try world.head("c")
        #expect(try world.add(["c"], to: id).refusal == nil)
        #expect(try world.texts("c", after: before) == ["conversation of 5", "participant c"])
    }

    /// Each change finds what was made before it still on its way.
    @Test("changes that wait come in their order")
    func jobs() throws {
        world.limits.directRecipients = 0
        let other = try world.converse(["a", "b"])
        #expect(try world.add(["c"], to: other).refusal == nil)
        #expect(try world.add(["d"], to: other).refusal == nil)
        try world.remove(["b"], from: other)
        #expect(try world.add(["e"], to: other).refusal == nil)
        try world.publish("x", to: other)
        while case .progressed(_, let more) = try world.ask(.continueFanOut(recipients: 1)), more {}
        let own = try world.page("a").entries.filter { $0.conversation == other }.map(\.text)
        #expect(
            own == ["participant a", "removed b", "participant c", "conversation of 4"]
                + ["message 1 x"])
        #expect(
            try world.texts("d").filter { !$0.hasPrefix("message") }
                == ["conversation of 4", "participant d"])
        #expect(try world.texts("b").last == "removed b")
        #expect(try world.texts("e").suffix(2) == ["participant e", "message 1 x"])
    }

    @Test("a conversation that its user deleted says that it is large when it comes back")
    func deleted() throws {
        let session = try world.login("a", DeviceID(high: 1, low: 1)).session
        let delete = DeleteConversation(conversation: id, forEveryone: false)
        #expect(try world.mutate(session, 1, .deleteConversation(delete)).code == 0)
        let before = try world.head("a")
        #expect(try world.add(["d"], to: id).refusal == nil)
        #expect(try world.head("a") == before, "what is deleted stays deleted")
        try world.publish("x", to: id, from: "b")
        #expect(
            try world.texts("a", after: before)
                == ["conversation of 4", "participant a", "message 1 x"])
    }

    @Test("a snapshot holds the user alone, FETCH everybody")
    func history() throws {
        #expect(try world.add(["d"], to: id).refusal == nil)
        try world.publish("x", to: id, from: "b")
        let user = UserID("a")
        let snapshot = try world.read(
            .history(.snapshot(World.app, user, SnapshotFrame(), bytes: 1 << 16)))
        guard case .history(.snapshotPage(let first)) = snapshot else {
            return #expect(Bool(false))
        }
        let conversation = try #require(first.conversations.first)
        #expect(!conversation.participantsComplete)
        #expect(
            conversation.entries.map(\.text)
                == ["conversation of 4", "participant a", "message 1 x"])
        let page = try world.read(
            .history(.fetch(World.app, user, Fetch(object: id.bytes), bytes: 1 << 16)))
        guard case .history(.page(let page)) = page else { return #expect(Bool(false)) }
        #expect(
            page.entries.map(\.text)
                == ["conversation of 4"] + ["a", "b", "c", "d"].map { "participant \($0)" })
    }

    /// The rows of users are locked in the order of their names, the actor's too.
    @Test("a participant may add and remove others", arguments: [("a", "z"), ("c", "b")])
    func byParticipant(actor: String, other: String) throws {
        #expect(try world.add(["d"], to: id).refusal == nil)
        let session = try world.login(actor, DeviceID(high: 1, low: 1)).session
        let change: Mutation.Operation =
            other == "z"
            ? .addParticipants(AddParticipants(conversation: id, users: [other]))
            : .removeParticipants(RemoveParticipants(conversation: id, users: [other]))
        #expect(try world.mutate(session, 1, change).code == 0)
        try world.finishFanOut()
        #expect(
            try world.texts(other).last == (other == "z" ? "participant z" : "removed b"))
    }

    @Test("who joins a large conversation costs the same whatever number takes part")
    func cost() throws {
        var rows: [Int] = []
        for members in [8, 64] {
            let names = (0..<members).map { "m\($0)" }
            let large = try world.converse(names)
            try world.finishFanOut()
            // Whether it came as a job is looked for with the first change behind it.
            #expect(try world.add(["y"], to: large).refusal == nil)
            #expect(try world.add(["z"], to: large).refusal == nil)
            rows.append(world.rows.total)
            #expect(try world.all(FanOutRecord.self).isEmpty)
        }
        #expect(rows[0] == rows[1])
    }

    /// Whatever the order of changes and of their turns: each device that follows its feed ends
    /// with what the conversation is.
    @Test("devices end with the truth", arguments: 1...24 as ClosedRange<UInt64>)
    func schedule(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        world.limits.directRecipients = Int.random(in: 0...4, using: &generator)
        let names = ["a", "b", "c", "d", "e", "f"]
        var replicas = names.map { Replica(of: $0) }
        for _ in 0..<60 {
            let user = names.randomElement(using: &generator) ?? "a"
            switch Int.random(in: 0..<6, using: &generator) {
            case 0, 1: _ = try world.add([user], to: id)
            case 2: try world.remove([user], from: id)
            case 3: try world.publish("x", to: id)
            case 4: try world.ask(.continueFanOut(recipients: 2))
            default:
                // Who never took part has no feed.
                guard try world.head(user) > 0 else { continue }
                let at = names.firstIndex(of: user) ?? 0
                replicas[at].apply(try world.page(user, after: replicas[at].cursor))
            }
        }
        try world.finishFanOut()
        let record = try #require(
            try world.record(ConversationRecord.self, [.app(World.app), .identifier(id)]))
        let members = try world.all(ParticipantRecord.self).filter { $0.conversation == id }
        let present = Set(members.filter { $0.leftRevision == nil }.map(\.user.name))
        for (name, replica) in zip(names, replicas) {
            var replica = replica
            guard try world.head(name) > 0 else { continue }
            replica.apply(try world.page(name, after: replica.cursor))
            let own = replica.own(id)
            #expect((own.map { !$0.removed } ?? false) == present.contains(name), "\(name)")
            guard present.contains(name) else { continue }
            let shown = Set(replica.participants(of: id))
            #expect(shown == (record.largeRevision == nil ? present : [name]), "\(name)")
            #expect(replica.isLarge(id) == (record.largeRevision != nil), "\(name)")
        }
    }
}
