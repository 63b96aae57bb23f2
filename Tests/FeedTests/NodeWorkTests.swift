import Feed
import Model
import Testing
import Wake

/// What a process was sending to APNs and to webhooks when it went.
@Suite struct NodeWorkTests {
    private let pushes: Pushes
    private let webhooks: WebhookTests
    private var world: World { pushes.world }
    /// Claims everything in these tests.
    private let first = NodeBeat(boot: BootID(high: 9, low: 9), name: "one")
    private let second = NodeBeat(boot: BootID(high: 9, low: 10), name: "two")
    private let room: ConversationID
    private let phone = DeviceID(high: 1, low: 1)

    init() throws {
        pushes = try Pushes()
        webhooks = WebhookTests(pushes.world)
        room = try pushes.world.converse(["anna", "bob"])
        // The phone was pushed to in vain: it gets alerts.
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.world.publish("1", to: room, from: "anna")
        try pushes.run(100_000)
    }

    /// An alert and a batch are under way.
    private func send() throws -> (push: PushJob, batch: DeliveryJob) {
        try webhooks.hook()
        try world.publish("2", to: room, from: "anna")
        return (
            try #require(try pushes.claim().first), try #require(try webhooks.claim().first)
        )
    }

    private func beat(_ nodes: NodeBeat..., seconds: Int) throws {
        for _ in 0..<seconds / 2 {
            for node in nodes { try world.ask(.beat(node)) }
            try pushes.tick()
            world.pass(2_000)
        }
    }

    /// The push and the batch are sent again, and nothing else.
    private func expectAgain(_ batch: DeliveryJob) throws {
        let again = try webhooks.claim()
        #expect(again.map(\.delivery) == [batch.delivery])
        #expect(
            try pushes.claim().map(\.word) == [#"alert "2 (and 1 more)" badge 2 stored"#])
    }

    private func expectNothing() throws {
        #expect(try webhooks.claim().isEmpty)
        #expect(try pushes.claim().isEmpty)
    }

    @Test("of one that was killed the next process sends again, at once")
    func killed() throws {
        let (_, batch) = try send()
        try world.ask(.start(boot: second.boot, epochHalf: 1))
        #expect(world.hasDeliveries)
        for _ in 0..<10 {
            world.pass(1_000)
            try pushes.tick()
        }
        try expectAgain(batch)
    }

    @Test("of a node that is gone the others send again, once it is taken for gone")
    func gone() throws {
        try beat(first, second, seconds: 12)
        let (_, batch) = try send()
        try beat(second, seconds: 8)
        try expectNothing()
        try beat(second, seconds: 18)
        try expectAgain(batch)
    }

    @Test("of a node that ends in order the others send again")
    func ended() throws {
        try beat(first, second, seconds: 12)
        let (_, batch) = try send()
        var last = first
        last.phase = .over
        try world.ask(.beat(last))
        try beat(second, seconds: 12)
        try expectAgain(batch)
    }

    @Test("a node that starts takes nothing from one that is there")
    func there() throws {
        try beat(first, seconds: 2)
        let (push, batch) = try send()
        try world.ask(.beat(second))
        try world.ask(.start(boot: second.boot, epochHalf: 1))
        #expect(!world.hasDeliveries)
        try beat(first, second, seconds: 30)
        try expectNothing()
        #expect(try webhooks.finish(batch) == .taken)
        #expect(try pushes.finish(push) != nil)
    }

    @Test("the answer to a node that only stood still counts, unless its batch was sent again")
    func stoodStill() throws {
        try beat(first, second, seconds: 12)
        let (_, batch) = try send()
        try beat(second, seconds: 30)
        #expect(try webhooks.finish(batch) == .taken)
        #expect(try webhooks.claim().isEmpty)
    }
}
