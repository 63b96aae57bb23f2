import Feed
import Model
import Testing
import Wire

/// Mutes and blocks that a backend sets for a user, as the user's devices see them.
struct BackendSettingTests {
    private let world: World
    private let anna: SessionKey

    init() throws {
        world = try World()
        anna = try world.login("anna", DeviceID(high: 5, low: 1)).session
    }

    @discardableResult
    private func mute(
        _ user: String, _ id: ConversationID, _ isMuted: Bool = true, until: Timestamp? = nil,
        key: Idempotency? = nil
    ) throws -> StoreAnswer {
        let mute = MuteChange(UserID(user), id, isMuted: isMuted, until: until)
        return try world.ask(.mute(app: World.app, mute, idempotency: key))
    }

    @discardableResult
    private func block(
        _ user: String, _ other: String, _ isBlocked: Bool = true
    ) throws -> StoreAnswer {
        let block = BlockChange(UserID(user), UserID(other), isBlocked: isBlocked)
        return try world.ask(.block(app: World.app, block, idempotency: nil))
    }

    private func muteByDevice(_ number: UInt64, _ id: ConversationID, _ muted: Bool) throws {
        let operation = Mutation.Operation.muteConversation(
            MuteConversation(conversation: id, muted: muted))
        #expect(try world.mutate(anna, number, operation).code == 0)
    }

    private func visible(_ user: String) throws -> [UInt64] {
        try world.rows(user).filter(\.isVisible).map(\.position)
    }

    private func mutes(
        of user: String, after: ConversationID? = nil, limit: Int = 100
    ) throws -> (ids: [ConversationID], until: [Timestamp?], next: ConversationID?) {
        let query = BackendQuery.mutes(UserID(user), after: after, limit: limit)
        let reading = try world.read(.backend(World.app, query))
        guard case .backend(.mutes(let all, let next)) = reading else {
            throw Unexpected(answer: .done)
        }
        return (all.map(\.conversation), all.map(\.mutedUntil), next)
    }

    private func blocks(
        of user: String, after: String? = nil, limit: Int = 100
    ) throws -> (names: [String], next: UserID?) {
        let query = BackendQuery.blocks(
            UserID(user), after: after.map { UserID($0) }, limit: limit)
        let reading = try world.read(.backend(World.app, query))
        guard case .backend(.blocks(let all, let next)) = reading else {
            throw Unexpected(answer: .done)
        }
        return (all.map(\.other.name), next)
    }

    // MARK: mutes

    @Test func theDevicesSeeAMuteLikeOneOfTheirOwn() throws {
        let id = try world.converse(["anna", "bert"])
        #expect(try mute("anna", id) == .done)
        #expect(try world.page("anna").entries.last?.word == "muted")
        try world.publish("1", to: id, from: "bert")
        #expect(try visible("anna") == [])
        #expect(try world.page("anna").unread == 0)
        #expect(try world.page("bert").entries.allSatisfy { $0.word != "muted" })
        #expect(try mute("anna", id, false) == .done)
        #expect(try world.page("anna").unread == 1)
        try world.publish("2", to: id, from: "bert")
        #expect(try visible("anna") == [2])
        #expect(try world.rows("anna").filter { $0.kind == .conversationSettings }.count == 1)
    }

    @Test func aMuteEndsByItself() throws {
        let id = try world.converse(["anna", "bert"])
        let end = world.now + 60_000
        try mute("anna", id, until: end)
        try world.publish("1", to: id, from: "bert")
        #expect(try mutes(of: "anna").until == [end])
        world.pass(60_000)
        try world.publish("2", to: id, from: "bert")
        #expect(try visible("anna") == [2])
        #expect(try mutes(of: "anna").ids == [])
        let head = try world.head("anna")
        #expect(try mute("anna", id, false) == .done)
        #expect(try world.head("anna") == head, "it is over already")
    }

    /// The moment that stood beside an unmute would be that of the next mute.
    @Test func anUnmuteHasNoEnd() throws {
        let id = try world.converse(["anna", "bert"])
        try mute("anna", id)
        try mute("anna", id, false, until: world.now + 60_000)
        let settings = try #require(try world.all(SettingsRecord.self).first)
        #expect(!settings.isMuted)
        #expect(settings.mutedUntil == nil)
    }

    @Test func whatIsSoAlreadyTellsNoDevice() throws {
        let id = try world.converse(["anna", "bert"])
        let head = try world.head("anna")
        try mute("anna", id, false)
        #expect(try world.head("anna") == head)
        #expect(try world.all(SettingsRecord.self).isEmpty)
        for _ in 0..<2 { try mute("anna", id) }
        #expect(try world.head("anna") == head + 1)
        for _ in 0..<2 { try mute("anna", id, until: world.now + 60_000) }
        #expect(try world.head("anna") == head + 2, "another end is another mute")
    }

    @Test func devicesAndTheBackendSetTheSame() throws {
        let id = try world.converse(["anna", "bert"])
        try muteByDevice(1, id, true)
        #expect(try mutes(of: "anna").ids == [id])
        try mute("anna", id, false)
        #expect(try mutes(of: "anna").ids == [])
        let key = Idempotency(key: "k", requestHash: [1])
        #expect(try mute("anna", id, key: key) == .done)
        try muteByDevice(2, id, false)
        // A repetition is answered, and does not undo what the user did since.
        #expect(try mute("anna", id, key: key) == .done)
        #expect(try mutes(of: "anna").ids == [])
    }

    @Test func whatIsOutOfReachIsNotMuted() throws {
        let id = try world.converse(["anna", "bert"])
        let noSuch = StoreAnswer.refused(.notFound, detail: "no such conversation")
        #expect(try mute("carl", id) == noSuch)
        #expect(try mute("anna", world.fresh()) == noSuch)
        #expect(try mute("carl", id, false) == noSuch)
        #expect(
            try mute("anna", id, until: world.now)
                == .refused(.malformed, detail: "until has passed"))
        try mute("bert", id)
        try world.remove(["bert"], from: id)
        #expect(try mute("bert", id, false) == noSuch)
        #expect(try mutes(of: "bert").ids == [])
        try mute("anna", id)
        try world.end(id)
        #expect(try mute("anna", id).refusal == .gone)
        #expect(try mutes(of: "anna").ids == [])
        #expect(try world.all(UserRecord.self).map(\.user.name).sorted() == ["anna", "bert"])
    }

    @Test func mutesAreListedByPieces() throws {
        let ids = try (0..<5).map { _ in try world.converse(["anna"]) }.sorted()
        for id in ids { try mute("anna", id) }
        try mute("anna", ids[1], false)
        let first = try mutes(of: "anna", limit: 2)
        #expect(first.ids == [ids[0]] && first.next == ids[1], "what is passed over counts")
        let second = try mutes(of: "anna", after: first.next, limit: 2)
        #expect(second.ids == [ids[2], ids[3]] && second.next == ids[3])
        let last = try mutes(of: "anna", after: second.next, limit: 2)
        #expect(last.ids == [ids[4]] && last.next == nil)
        let nobody = BackendQuery.mutes(UserID("nobody"), after: nil, limit: 2)
        #expect(try world.read(.backend(World.app, nobody)) == .nothing)
    }

    // MARK: blocks

    @Test func theDevicesSeeABlockLikeOneOfTheirOwn() throws {
        let id = try world.converse(["anna", "bert", "carl"])
        #expect(try block("anna", "bert") == .done)
        #expect(try world.page("anna").entries.last?.word == "block bert")
        try world.publish("from bert", to: id, from: "bert")
        try world.publish("from carl", to: id, from: "carl")
        #expect(try visible("anna") == [2])
        #expect(try world.page("bert").entries.allSatisfy { !$0.word.hasPrefix("block") })
        #expect(try block("anna", "bert", false) == .done)
        try world.publish("again", to: id, from: "bert")
        #expect(try visible("anna") == [2, 3])
    }

    @Test func aBlockThatIsThereAlreadyTellsNoDevice() throws {
        let head = try world.head("anna")
        #expect(try block("anna", "bert", false) == .done)
        #expect(try world.head("anna") == head)
        for _ in 0..<2 { #expect(try block("anna", "bert") == .done) }
        #expect(try world.head("anna") == head + 1)
        #expect(try blocks(of: "anna").names == ["bert"], "of a name that nobody has yet")
    }

    @Test func usersWhoAreNotThereBlockNobody() throws {
        let noSuch = StoreAnswer.refused(.notFound, detail: "no such user")
        #expect(try block("zoe", "anna") == noSuch)
        #expect(try block("zoe", "anna", false) == noSuch)
        #expect(try block("anna", "anna").refusal == .malformed)
        try world.ask(.deleteUser(app: World.app, UserID("anna"), idempotency: nil))
        #expect(try block("anna", "bert") == noSuch)
        let query = BackendQuery.blocks(UserID("anna"), after: nil, limit: 2)
        #expect(try world.read(.backend(World.app, query)) == .nothing)
        #expect(try world.all(UserRecord.self).map(\.user.name) == ["anna"])
    }

    @Test func aUserWhoIsBeingDeletedMutesNothing() throws {
        let id = try world.converse(["anna", "bert"])
        try world.ask(.deleteUser(app: World.app, UserID("anna"), idempotency: nil))
        #expect(try mute("anna", id).refusal == .notFound)
        #expect(try world.all(SettingsRecord.self).isEmpty)
    }

    @Test func blocksAreBoundedAndListedByPieces() throws {
        world.limits.blocks = 4
        for name in ["b", "c", "d", "e"] { try block("anna", name) }
        #expect(try block("anna", "f").refusal == .limit)
        try block("anna", "c", false)
        let first = try blocks(of: "anna", limit: 2)
        #expect(first.names == ["b"] && first.next == UserID("c"), "what is passed over counts")
        let last = try blocks(of: "anna", after: "c", limit: 2)
        #expect(last.names == ["d", "e"] && last.next == nil)
    }

    // MARK: several nodes

    /// Whatever comes between two reads of the other node's.
    @Test func betweenTwoNodesEachIsToldOnce() throws {
        let id = try world.converse(["anna", "bert"])
        let mute = StoreRequest.mute(
            app: World.app, MuteChange(UserID("anna"), id, isMuted: true), idempotency: nil)
        let block = StoreRequest.block(
            app: World.app, BlockChange(UserID("anna"), UserID("bert"), isBlocked: true),
            idempotency: nil)
        for request in [mute, block] {
            try TwoWriters(world).meet(request, request) { met throws in
                let kind: EntryKind = request == mute ? .conversationSettings : .block
                let entries = try met.all(EntryRecord.self).filter { $0.kind == kind }
                #expect(entries.count == 1, "read \(met.read)")
            }
        }
        try TwoWriters(world).meet(mute, block) { met throws in
            let seqs = try met.all(EntryRecord.self).filter { $0.user == UserID("anna") }.map(\.seq)
            #expect(Set(seqs).count == seqs.count, "read \(met.read)")
        }
    }
}
