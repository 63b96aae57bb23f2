import Feed
import Model
import Testing
import Wire

/// Webhooks that are tried out (WHK-17).
@Suite struct TriedWebhookTests {
    private let hooks: WebhookTests
    private var world: World { hooks.world }

    init() throws { hooks = try WebhookTests() }

    private func test(_ key: WebhookKey) throws -> WebhookEventID {
        let answer = try world.ask(.webhooks(.test(key)))
        guard case .webhookTested(let event) = answer else { throw Unexpected(answer: answer) }
        return event
    }

    private func jobs() throws -> [WebhookKey: DeliveryJob] {
        Dictionary(uniqueKeysWithValues: try hooks.claim().map { ($0.key, $0) })
    }

    private static let refused = DeliveryAnswer.answered(status: 500, retryAfter: nil)

    @Test func itComesToOneWebhookWhateverThatAsksFor() throws {
        let quiet = try hooks.hook([.init([.messageDeleted])])
        let other = try hooks.hook()
        let event = try test(quiet)
        #expect(world.hasDeliveries, "the sender looks at once")
        #expect(event == WebhookEventID(high: 77, low: 1))
        let jobs = try jobs()
        #expect(jobs[other] == nil)
        let job = try #require(jobs[quiet])
        #expect(WebhookTests.words(job) == ["webhook.test"])
        #expect(job.events.map(\.id) == [event])
        #expect(job.events.first?.event.conversation == nil)
        #expect(try hooks.finish(job) == .taken)
        #expect(try hooks.state(quiet).lastStatus == 200)
        #expect(try hooks.state(quiet).lastSuccessAt == world.now)
        #expect(try hooks.claim().isEmpty)
    }

    /// The other one, which asks for everything, goes on past it.
    @Test func othersPassItOver() throws {
        let tried = try hooks.hook()
        let other = try hooks.hook()
        let conversation = try world.converse(["anna", "bert"])
        _ = try test(tried)
        try world.publish("one", to: conversation)
        let jobs = try jobs()
        #expect(
            WebhookTests.words(jobs[tried]) == [
                "conversation.created +anna +bert", "webhook.test", "message.created 1 v1",
            ])
        #expect(
            WebhookTests.words(jobs[other]) == [
                "conversation.created +anna +bert", "message.created 1 v1",
            ])
    }

    @Test func askedAgainWhileItWaitsItIsTheSame() throws {
        let key = try hooks.hook()
        let first = try test(key)
        #expect(try test(key) == first)
        let job = try #require(try hooks.claim().first)
        #expect(try test(key) == first, "it is under way")
        #expect(try hooks.claim().isEmpty)
        #expect(try hooks.finish(job) == .taken)
        #expect(try hooks.kept().isEmpty, "nobody needs it any more")
        let second = try test(key)
        #expect(second != first)
        #expect(try hooks.claim().first?.events.map(\.id) == [second])
    }

    @Test func afterARefusalItIsSentAtOnceAndFailuresCountOn() throws {
        let key = try hooks.hook()
        try world.converse(["anna", "bert"])
        for attempt in 1...3 as ClosedRange<UInt64> {
            _ = try test(key)
            let job = try #require(try hooks.claim().first)
            #expect(job.attempt == attempt)
            #expect(WebhookTests.words(job).first == "conversation.created +anna +bert")
            guard case .retried = try hooks.finish(job, Self.refused) else {
                Issue.record("attempt \(attempt)")
                return
            }
            #expect(try hooks.claim().isEmpty, "it waits, unless somebody asks")
        }
        let state = try hooks.state(key)
        #expect(state.attempts == 3 && state.failingSince != nil && state.lastStatus == 500)
    }

    /// It waits behind the batch at hand, and is taken after it.
    @Test func itComesInItsTurn() throws {
        let key = try hooks.hook()
        try world.converse(["anna", "bert"])
        try hooks.finish(try #require(try hooks.claim().first), Self.refused)
        let event = try test(key)
        let first = try #require(try hooks.claim().first)
        #expect(WebhookTests.words(first) == ["conversation.created +anna +bert"])
        try hooks.finish(first)
        #expect(try hooks.claim().first?.events.map(\.id) == [event])
    }

    @Test("what is not active is not tried out", arguments: ["off", "failed", "gone"])
    func inactive(_ state: String) throws {
        let key = try hooks.hook()
        switch state {
        case "off": _ = try hooks.change(key, WebhookChange(isActive: false))
        default:
            _ = try test(key)
            var policy = WebhookPolicy()
            policy.attemptsMin = 1
            policy.deactivateAfter = 0
            try hooks.finish(
                try #require(try hooks.claim().first),
                .answered(status: state == "gone" ? 410 : 500, retryAfter: nil), policy: policy)
        }
        #expect(try hooks.state(key).state.name == state)
        let kept = try hooks.kept()
        #expect(
            try world.ask(.webhooks(.test(key)))
                == .refused(
                    .conflict,
                    detail: "the webhook is \(state), and nothing is sent to it: make it active "
                        + "first"))
        #expect(try hooks.kept() == kept)
        #expect(try hooks.claim().isEmpty)
    }

    @Test func switchedOffBeforeTheReceiverHasItItIsNotSentLater() throws {
        let key = try hooks.hook()
        let event = try test(key)
        _ = try hooks.change(key, WebhookChange(isActive: false))
        _ = try hooks.change(key, WebhookChange(isActive: true))
        #expect(try hooks.claim().isEmpty)
        #expect(try test(key) != event, "it waits no more")
        #expect(try hooks.claim().count == 1)
    }

    @Test func whatRetentionTakesOfItIsTold() throws {
        let key = try hooks.hook()
        let other = try hooks.hook([.init([.messageDeleted])])
        _ = try test(key)
        let job = try #require(try hooks.claim().first)
        try hooks.finish(job, .answered(status: 410, retryAfter: nil))
        world.pass(world.limits.webhookEventLifetime + 1)
        try world.retain()
        #expect(try hooks.kept().isEmpty)
        #expect(try hooks.state(key).dropped == 1)
        #expect(try hooks.state(other).dropped == 0)
    }

    /// Making room for the test drops what the same webhook waited for.
    @Test func itHasRoomAmongManyEvents() throws {
        world.limits.webhookEvents = 4
        let key = try hooks.hook()
        let conversation = try world.converse(["anna", "bert"])
        for number in 1...3 { try world.publish("\(number)", to: conversation) }
        _ = try test(key)
        #expect(try hooks.kept() == [2, 3, 4, 5])
        let job = try #require(try hooks.claim().first)
        #expect(job.dropped == 1)
        #expect(WebhookTests.words(job).last == "webhook.test")
    }

    /// Whatever comes between two reads of the other node's.
    @Test func betweenTwoNodesThereIsOne() throws {
        let key = try hooks.hook()
        let request = StoreRequest.webhooks(.test(key))
        try TwoWriters(world).meet(request, request) { met throws in
            #expect(try met.all(WebhookEventRecord.self).count == 1, "read \(met.read)")
            #expect(try met.all(WebhookRecord.self).first?.test == 1)
        }
    }

    @Test func oneThatIsNotThereIsRefused() throws {
        let key = WebhookKey(app: World.app, webhook: world.fresh())
        let answer = StoreAnswer.refused(.notFound, detail: "no such webhook")
        #expect(try world.ask(.webhooks(.test(key))) == answer)
        try hooks.hook()
        #expect(try world.ask(.webhooks(.test(key))) == answer)
    }
}
