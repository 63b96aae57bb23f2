import Feed
import Model
import Testing

/// What a webhook hears of kinds of events that it asks for later.
@Suite struct WebhookKindsTests {
    private let hooks: WebhookTests
    private var world: World { hooks.world }

    init() throws { hooks = try WebhookTests() }

    /// What each hears that has something to hear; it takes it.
    private func heard() throws -> [WebhookKey: [String]] {
        var heard: [WebhookKey: [String]] = [:]
        for job in try hooks.claim() {
            heard[job.key] = WebhookTests.words(job)
            try hooks.finish(job)
        }
        return heard
    }

    @Test func addedKindsAreHeardFromThenOn() throws {
        let late = try hooks.hook([.init([.messageDeleted])])
        // Whatever the other one takes, or has not taken: it is not of this one's concern.
        let other = try hooks.hook()
        let conversation = try world.converse(["anna", "bert"])
        try world.publish("one", to: conversation)
        _ = try hooks.change(late, WebhookChange(kinds: .all))
        let first = try heard()
        #expect(first[late] == nil)
        #expect(first[other]?.count == 2)
        try world.publish("two", to: conversation)
        let second = try heard()
        #expect(second[late] == ["message.created 2 v1"])
        #expect(second[other] == ["message.created 2 v1"])
    }

    @Test func whatWaitedIsHeardAfterAChangeOfKinds() throws {
        let hook = try hooks.hook([.init([.messageCreated])])
        let conversation = try world.converse(["anna", "bert"])
        try world.publish("one", to: conversation)
        _ = try hooks.change(hook, WebhookChange(kinds: .all))
        #expect(try heard()[hook] == ["message.created 1 v1"])
    }

    @Test func whatWasKeptForOneThatWasGivenUpIsHeardAfterAChangeOfKinds() throws {
        let hook = try hooks.hook([.init([.messageCreated])])
        let conversation = try world.converse(["anna", "bert"])
        try world.publish("one", to: conversation)
        let job = try #require(try hooks.claim().first)
        try hooks.finish(job, .answered(status: 410, retryAfter: nil))
        _ = try hooks.change(hook, WebhookChange(kinds: .all))
        _ = try hooks.change(hook, WebhookChange(isActive: true))
        #expect(try heard()[hook] == ["message.created 1 v1"])
    }
}
