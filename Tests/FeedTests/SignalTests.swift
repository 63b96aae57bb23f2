import Feed
import Model
import Testing
import Wire

struct SignalTests {
    let world: World

    init() throws { world = try World() }

    private func audience(_ user: String, _ conversation: ConversationID) throws -> [String] {
        let reading = try world.read(.audience(World.app, UserID(user), conversation))
        guard case .audience(let users) = reading else { throw Unexpected(answer: .done) }
        return users.map(\.name)
    }

    @Test(
        "SIG-3: the other participants; nobody for who takes no part or asks for nothing there is")
    func others() throws {
        let id = try world.converse(["anna", "bob", "carl"])
        #expect(try audience("anna", id) == ["bob", "carl"])
        #expect(try audience("zoe", id) == [])
        #expect(try audience("anna", world.fresh()) == [])
    }

    @Test("SIG-5: who blocks the sender is left out; whom the sender blocks is not")
    func blocked() throws {
        let id = try world.converse(["anna", "bob"])
        let bob = try world.login("bob", DeviceID(high: 5, low: 2)).session
        _ = try world.mutate(bob, 1, .blockUser(BlockUser(user: "anna", blocked: true)))
        #expect(world.audiences == [.sender(World.app, UserID("anna"))])
        #expect(try audience("anna", id) == [])
        #expect(try audience("bob", id) == ["anna"])
        _ = try world.mutate(bob, 2, .blockUser(BlockUser(user: "anna", blocked: false)))
        #expect(try audience("anna", id) == ["bob"])
    }

    @Test("SIG-3: who left neither signals nor is told")
    func left() throws {
        let id = try world.converse(["anna", "bob", "carl"])
        let bob = try world.login("bob", DeviceID(high: 5, low: 2)).session
        _ = try world.mutate(
            bob, 1,
            .removeParticipants(RemoveParticipants(conversation: id, users: ["bob"])))
        #expect(world.audiences == [.conversation(World.app, id)])
        #expect(try audience("anna", id) == ["carl"])
        #expect(try audience("bob", id) == [])
    }

    @Test("SIG-6: in a crowd a signal reaches nobody")
    func crowd() throws {
        world.limits.signalParticipants = 2
        let small = try world.converse(["anna", "bob"])
        let large = try world.converse(["anna", "bob", "carl"])
        #expect(try audience("anna", small) == ["bob"])
        #expect(try audience("anna", large) == [])
    }
}
