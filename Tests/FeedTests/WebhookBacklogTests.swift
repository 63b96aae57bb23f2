import Feed
import Model
import Testing
import Wire

/// What an operator is told of what waits for webhooks.
@Suite struct WebhookBacklogTests {
    private let world: World
    private let webhooks: WebhookTests

    init() throws {
        world = try World()
        webhooks = WebhookTests(world)
    }

    /// How old what waits is: of webhooks that are to get it.
    @Test func whatNobodyIsToGetIsNotLate() throws {
        func oldest(of events: UInt64? = 2) throws -> Timestamp? {
            guard case .webhookBacklog(let backlog) = try world.read(.webhookBacklog) else {
                throw Unexpected(answer: .done)
            }
            if let events { #expect(backlog.events == events) }
            return backlog.oldest
        }
        let key = try webhooks.hook()
        let room = try world.converse(["anna", "bob"])
        let first = world.now
        world.pass(60_000)
        try world.publish("hello", to: room)
        #expect(try oldest() == first)
        try world.expectDone(.suspendApp(World.app))
        #expect(try oldest() == nil)
        try world.expectDone(.resumeApp(World.app))
        world.pass(3_600_000)
        #expect(try oldest() == first)
        try webhooks.finish(
            try #require(try webhooks.claim().first), .answered(status: 410, retryAfter: nil))
        #expect(try webhooks.state(key).state == .gone)
        #expect(try oldest() == nil)
        // What lies there for it is not late of one that asks for something else, and gets it.
        try webhooks.hook(WebhookEventKinds([.userDeleted]))
        #expect(try oldest() == nil)
        let deleted = world.now
        try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil))
        for _ in 0..<100 {
            try world.finishFanOut()
            try world.ask(.continueDeletions(rows: 100))
        }
        #expect(try oldest(of: nil) == deleted)
        try webhooks.finish(try #require(try webhooks.claim().first))
        #expect(try oldest(of: nil) == nil)
    }
}
