import Feed
import Model
import Testing
import Wire

/// What leaves the server of objects that are deleted while an event of theirs waits (WHK-7).
@Suite struct WebhookContentTests {
    private let hooks: WebhookTests
    private var world: World { hooks.world }

    init() throws { hooks = try WebhookTests() }

    @Test func nothingOfAConversationThatWasDeletedMeanwhile() throws {
        let hook = try hooks.hook()
        let conversation = try world.converse(["anna", "bert"])
        try world.publish("secret", to: conversation, from: "anna")
        let change = ChangeMetadata(
            conversation: conversation, changes: [MetadataChange(path: ["name"], value: "x")])
        try world.ask(.changeMetadata(app: World.app, change, idempotency: nil))
        let job = try #require(try hooks.claim().first)
        #expect(job.events.contains { $0.message != nil }, "it would be seen otherwise")
        #expect(job.events.contains { $0.metadata != nil })
        #expect(job.events.contains { $0.conversation != nil })
        try hooks.finish(job, .answered(status: 500, retryAfter: nil))
        try world.end(conversation)
        world.pass(3_600_000)
        // The same batch again.
        let events = try #require(try hooks.claim().first).events
        #expect(
            events.map(\.event.kind) == [.conversationCreated, .messageCreated, .metadataChanged])
        for event in events {
            #expect(event.message == nil && event.metadata == nil && event.conversation == nil)
        }
        #expect(try hooks.state(hook).attempts == 1)
    }
}
