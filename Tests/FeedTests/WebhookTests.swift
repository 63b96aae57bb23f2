import Feed
import MemoryStore
import Model
import Testing
import Wire

/// What goes into the outbox, and what a sender gets of it.
@Suite struct WebhookTests {
    let world: World

    init() throws { world = try World() }

    /// What these tests ask with, for others.
    init(_ world: World) { self.world = world }

    // MARK: helpers

    @discardableResult
    func hook(_ kinds: WebhookEventKinds = .all) throws -> WebhookKey {
        let key = WebhookKey(app: World.app, webhook: world.fresh())
        let answer = try world.ask(
            .webhooks(
                .create(
                    NewWebhook(
                        key: key, url: "https://shop.example/", kinds: kinds,
                        secret: "first secret", series: 77))))
        guard case .webhook = answer else { throw Unexpected(answer: answer) }
        return key
    }

    func claim(
        _ count: Int = 4, underWay: [AppID: Int] = [:], policy: WebhookPolicy = WebhookPolicy()
    ) throws -> [DeliveryJob] {
        let answer = try world.ask(
            .webhooks(
                .claim(
                    ClaimDeliveries(
                        boot: BootID(high: 9, low: 9),
                        ids: (0..<count).map { _ in world.fresh() }, underWay: underWay,
                        perApp: 2, policy: policy))))
        guard case .deliveries(let claimed) = answer else { throw Unexpected(answer: answer) }
        return claimed.jobs
    }

    @discardableResult
    func finish(
        _ job: DeliveryJob, _ answer: DeliveryAnswer = .answered(status: 200, retryAfter: nil),
        policy: WebhookPolicy = WebhookPolicy()
    ) throws -> DeliveryEffect? {
        let answer = try world.ask(
            .webhooks(
                .finish(
                    FinishDelivery(
                        key: job.key, claim: job.claim, answer: answer, chance: 500,
                        policy: policy))))
        guard case .deliveryFinished(let effect) = answer else {
            throw Unexpected(answer: answer)
        }
        return effect
    }

    func change(_ key: WebhookKey, _ change: WebhookChange) throws -> WebhookRecord {
        let answer = try world.ask(.webhooks(.change(key, change)))
        guard case .webhook(let record) = answer else { throw Unexpected(answer: answer) }
        return record
    }

    func state(_ key: WebhookKey) throws -> WebhookRecord {
        var found: WebhookRecord?
        try world.store.read { snapshot throws(StoreError) in
            found = try snapshot.record(
                WebhookRecord.self, [.app(key.app), .identifier(key.webhook)])
        }
        return try #require(found)
    }

    func kept() throws -> [UInt64] {
        var events: [WebhookEventRecord] = []
        try world.store.read { snapshot throws(StoreError) in
            events = try snapshot.records(WebhookEventRecord.self, Scan(limit: .max))
        }
        return events.map(\.number)
    }

    static func words(_ job: DeliveryJob?) -> [String] {
        (job?.events ?? []).map { view in
            let event = view.event
            var words = [event.kind.name]
            if event.position > 0 { words.append("\(event.position)") }
            if event.version > 0 { words.append("v\(event.version)") }
            if !event.user.isEmpty { words.append("by \(event.user)") }
            words += event.joined.map { "+\($0)" } + event.left.map { "-\($0)" }
            return words.joined(separator: " ")
        }
    }

    // MARK: events

    @Test func everyChangeIsTold() throws {
        try hook()
        let conversation = try world.converse(["anna", "bert"])
        let message = try world.publish("one", to: conversation, from: "anna").message
        try world.edit(message, "uno")
        try world.delete(message)
        _ = try world.add(["carl"], to: conversation)
        try world.remove(["bert"], from: conversation)
        _ = try world.ask(
            .changeMetadata(
                app: World.app,
                ChangeMetadata(
                    conversation: conversation,
                    changes: [MetadataChange(path: ["name"], value: "x")], baseVersion: 0),
                idempotency: nil))
        try world.end(conversation)
        let jobs = try claim()
        #expect(jobs.count == 1)
        #expect(
            Self.words(jobs.first) == [
                "conversation.created +anna +bert", "message.created 1 v1 by anna",
                "message.edited 1 v2", "message.deleted 1 v3",
                "conversation.participants-changed +carl",
                "conversation.participants-changed -bert",
                "conversation.metadata-changed v1", "conversation.deleted",
            ])
        #expect(jobs.first?.events.map(\.event.number) == Array(1...8))
        #expect(jobs.first?.events.first?.id == WebhookEventID(high: 77, low: 1))
    }

    @Test func receiptsAreWatermarks() throws {
        let conversation = try world.converse(["anna", "bert"])
        let bert = try world.login("bert", DeviceID(high: 5, low: 2)).session
        try hook([.init([.messageDelivered, .messageRead])])
        for text in ["one", "two", "three"] { try world.publish(text, to: conversation) }
        let head = try world.head("bert")
        _ = try world.ask(
            .acknowledge(
                Acknowledge(
                    session: bert, applied: head,
                    reads: [ReadReceipt(conversation: conversation, through: 2, ranges: [])],
                    completesSync: true)))
        try world.ask(.coalesceReceipts(users: 10))
        let jobs = try claim()
        #expect(
            Self.words(jobs.first) == [
                "message.delivered 3 by bert", "message.read 2 by bert",
            ])
        try finish(try #require(jobs.first))
        // Told again: nothing new.
        world.pass(5_000)
        try world.ask(.coalesceReceipts(users: 10))
        #expect(try claim().isEmpty)
    }

    @Test func nobodyAsksNothingIsKept() throws {
        let conversation = try world.converse(["anna", "bert"])
        try world.publish("one", to: conversation)
        #expect(try kept().isEmpty)
        let key = try hook([.init([.messageDeleted])])
        try world.publish("two", to: conversation)
        #expect(try kept().isEmpty)
        #expect(try change(key, WebhookChange(isActive: false)).state == .off)
        let message = try world.publish("three", to: conversation).message
        try world.delete(message)
        #expect(try kept().isEmpty)
        // Switched on again it hears of what happens from then on.
        #expect(try change(key, WebhookChange(isActive: true)).due == nil)
        #expect(try claim().isEmpty)
    }

    @Test func anEventIsUndoneWithItsChange() throws {
        try hook()
        let conversation = try world.converse(["anna", "bert"])
        let refused = try world.ask(
            .publish(
                app: World.app,
                Publication(
                    message: world.message0("x", to: conversation, world.fresh()),
                    sender: "stranger"), idempotency: nil))
        guard case .refused = refused else { throw Unexpected(answer: refused) }
        #expect(try kept() == [1])
    }

    @Test func repeatedRequestsAreToldOnce() throws {
        try hook()
        let conversation = try world.converse(["anna", "bert"])
        let key = Idempotency(key: "k", requestHash: [1])
        let id: MessageID = world.fresh()
        for _ in 0..<2 {
            try world.publish("one", to: conversation, idempotency: key, message: id)
        }
        #expect(try kept() == [1, 2])
    }

    @Test func contentIsThatOfNow() throws {
        try hook()
        let conversation = try world.converse(["anna", "bert"])
        let stays = try world.publish("one", to: conversation).message
        let goes = try world.publish("two", to: conversation).message
        try world.delete(goes)
        let events = try #require(try claim().first).events
        #expect(events[0].conversation?.conversation == conversation)
        #expect(events[1].message?.message == stays)
        #expect(events[2].event.message == goes)
        #expect(events[2].message == nil, "what was deleted must not leave the server")
    }

    // MARK: delivery

    @Test func oneBatchAtATimeInOrder() throws {
        let key = try hook()
        let conversation = try world.converse(["anna", "bert"])
        let first = try #require(try claim().first)
        try world.publish("one", to: conversation)
        #expect(try claim().isEmpty, "one in flight")
        #expect(try finish(first) == .taken)
        let second = try #require(try claim().first)
        #expect(Self.words(second) == ["message.created 1 v1"])
        #expect(second.delivery != first.delivery)
        #expect(try finish(second) == .taken)
        #expect(try kept().isEmpty, "what everybody has goes")
        #expect(try state(key).due == nil)
        #expect(try finish(second) == nil, "an answer counts once")
    }

    @Test func aRetryIsTheSameDelivery() throws {
        let key = try hook()
        let conversation = try world.converse(["anna", "bert"])
        let first = try #require(try claim().first)
        #expect(first.attempt == 1)
        #expect(
            try finish(first, .answered(status: 500, retryAfter: nil))
                == .retried(at: world.now + 3_750))
        try world.publish("later", to: conversation)
        #expect(try claim().isEmpty, "it is not due")
        world.pass(3_750)
        let again = try #require(try claim().first)
        #expect(
            again.delivery == first.delivery && again.events.map(\.id) == first.events.map(\.id))
        #expect(again.attempt == 2 && again.claim > first.claim)
        #expect(try finish(first) == nil, "an older claim is fenced off")
        #expect(try state(key).lastError == "the receiver answered 500")
        #expect(try finish(again) == .taken)
        #expect(Self.words(try claim().first) == ["message.created 1 v1"])
    }

    @Test func aLostSenderLosesNothing() throws {
        try hook()
        try world.converse(["anna", "bert"])
        let lost = try #require(try claim().first)
        world.pass(WebhookPolicy().lease - 1)
        #expect(try claim().isEmpty)
        world.pass(1)
        let again = try #require(try claim().first)
        #expect(again.delivery == lost.delivery && again.events == lost.events)
        #expect(try finish(lost) == nil)
    }

    @Test("after a restore no new event has the id of one of the lost history")
    func restored() throws {
        try hook()
        let conversation = try world.converse(["anna", "bert"])
        let before = try #require(try claim().first)
        try finish(before)
        _ = try world.ask(.restore(epochHalf: 78))
        try world.publish("new", to: conversation, from: "anna")
        let after = try #require(try claim().first)
        let last = try #require(before.events.map(\.id.low).max())
        #expect(!after.events.isEmpty)
        #expect(after.events.allSatisfy { $0.id.low > last + world.limits.restoreHeadStep })
    }

    @Test func batchesAreBounded() throws {
        world.limits.webhookBatch = 3
        try hook()
        let conversation = try world.converse(["anna", "bert"])
        for number in 1...5 { try world.publish("\(number)", to: conversation) }
        var sizes: [Int] = []
        while let job = try claim().first {
            sizes.append(job.events.count)
            try finish(job)
        }
        #expect(sizes == [3, 3])
        world.limits.webhookBatch = 100
        world.limits.webhookBatchBytes = 2_000
        for _ in 1...4 {
            try world.publish(String(repeating: "x", count: 1_000), to: conversation)
        }
        sizes = []
        while let job = try claim().first {
            sizes.append(job.events.count)
            try finish(job)
        }
        #expect(sizes == [1, 1, 1, 1])
    }

    @Test func otherKindsArePassedOver() throws {
        world.limits.webhookScan = 2
        try hook([.init([.messageDeleted])])
        try hook()
        let conversation = try world.converse(["anna", "bert"])
        for number in 1...5 { try world.publish("\(number)", to: conversation) }
        try world.delete(try world.publish("six", to: conversation).message)
        var told: [String] = []
        for _ in 0..<20 {
            for job in try claim() where job.events.allSatisfy({ $0.event.kind == .messageDeleted })
            {
                told += Self.words(job)
                try finish(job)
            }
        }
        #expect(told == ["message.deleted 6 v2"])
    }

    @Test func appsHaveTheirShare() throws {
        for _ in 0..<3 { try hook() }
        try world.converse(["anna", "bert"])
        #expect(try claim(8).count == 2, "two of one app at a time")
        #expect(try claim(8, underWay: [World.app: 2]).isEmpty)
        #expect(try claim(8, underWay: [World.app: 1]).count == 1)
    }

    @Test func theServerDeactivatesAndGoesOn() throws {
        let key = try hook()
        let conversation = try world.converse(["anna", "bert"])
        var policy = WebhookPolicy()
        policy.deactivateAfter = 60_000
        policy.retryMax = 10_000
        var last: DeliveryEffect?
        var attempts = 0
        while let job = try claim(policy: policy).first {
            last = try finish(job, .failed("no connection"), policy: policy)
            attempts += 1
            world.pass(10_000)
        }
        guard case .deactivated(.failed, let reason) = last else {
            Issue.record("\(String(describing: last))")
            return
        }
        #expect(attempts == 7)
        #expect(reason == "7 attempts failed in 60 s; the last: no connection")
        #expect(try state(key).reason == reason)
        try world.publish("meanwhile", to: conversation)
        #expect(try change(key, WebhookChange(isActive: true)).state == .active)
        #expect(
            Self.words(try claim().first).count == 1, "the batch that failed is sent first")
        world.pass(100_000)
        let job = try #require(try claim().first)
        try finish(job)
        #expect(Self.words(try claim().first) == ["message.created 1 v1"])
    }

    @Test func goneIsGone() throws {
        let key = try hook()
        try world.converse(["anna", "bert"])
        let job = try #require(try claim().first)
        #expect(
            try finish(job, .answered(status: 410, retryAfter: nil))
                == .deactivated(.gone, reason: "the receiver answered 410"))
        #expect(try state(key).state == .gone)
        world.pass(1_000_000)
        #expect(try claim().isEmpty)
    }

    // MARK: retention

    @Test func whatIsTooMuchIsDroppedAndTold() throws {
        world.limits.webhookEvents = 4
        try hook()
        let conversation = try world.converse(["anna", "bert"])
        for number in 1...6 { try world.publish("\(number)", to: conversation) }
        #expect(try kept() == [4, 5, 6, 7])
        let job = try #require(try claim().first)
        #expect(job.dropped == 3)
        #expect(job.events.map(\.event.number) == [4, 5, 6, 7])
        try finish(job)
        try world.publish("seven", to: conversation)
        #expect(try claim().first?.dropped == 0)
    }

    @Test func whatIsTooOldIsDroppedAndTold() throws {
        let key = try hook()
        try world.converse(["anna", "bert"])
        _ = try change(key, WebhookChange(kinds: .all))
        let job = try #require(try claim().first)
        try finish(job, .answered(status: 410, retryAfter: nil))
        world.pass(world.limits.webhookEventLifetime + 1)
        try world.retain()
        #expect(try kept().isEmpty)
        _ = try change(key, WebhookChange(isActive: true))
        let told = try #require(try claim().first)
        #expect(told.dropped == 1 && told.events.isEmpty)
        #expect(try finish(told) == .taken)
        #expect(try state(key).dropped == 0)
        #expect(try claim().isEmpty)
    }

    @Test func whatIsBeingSentIsNotDropped() throws {
        world.limits.webhookEvents = 2
        try hook()
        let conversation = try world.converse(["anna", "bert"])
        let job = try #require(try claim().first)
        for number in 1...3 { try world.publish("\(number)", to: conversation) }
        #expect(try kept().contains(1))
        try finish(job, .answered(status: 500, retryAfter: nil))
        world.pass(10_000)
        #expect(try claim().first?.events.first?.event.number == 1)
    }

    // MARK: administration

    @Test func secretsRotate() throws {
        let key = try hook()
        try world.converse(["anna", "bert"])
        _ = try world.ask(.webhooks(.rotate(key, secret: "second secret")))
        let refused = try world.ask(.webhooks(.rotate(key, secret: "third secret")))
        guard case .refused(.limit, _) = refused else { throw Unexpected(answer: refused) }
        let job = try #require(try claim().first)
        #expect(job.secrets == ["second secret", "first secret"])
        try finish(job)
        _ = try world.ask(.webhooks(.endRotation(key)))
        #expect(try state(key).secondSecret.isEmpty)
    }

    @Test("a secret given again, after an answer that was lost, is taken as the same rotation")
    func rotationIsRepeated() throws {
        let key = try hook()
        for _ in 0..<2 {
            let answer = try world.ask(.webhooks(.rotate(key, secret: "second secret")))
            guard case .webhook(let webhook) = answer else { throw Unexpected(answer: answer) }
            #expect(webhook.secret == "second secret" && webhook.secondSecret == "first secret")
        }
        _ = try world.ask(.webhooks(.endRotation(key)))
        _ = try world.ask(.webhooks(.rotate(key, secret: "second secret")))
        let alone = try state(key)
        #expect(alone.secret == "second secret" && alone.secondSecret.isEmpty)
    }

    @Test(
        "what is mended is tried at once, and pauses begin anew",
        arguments: ["active", "url", "secret"])
    func mendedIsTried(_ what: String) throws {
        let key = try hook()
        try world.converse(["anna", "bert"])
        let failed = DeliveryAnswer.answered(status: 503, retryAfter: 3_600_000)
        for _ in 0..<4 {
            try finish(try #require(try claim().first), failed)
            world.pass(3_600_000)
        }
        try finish(try #require(try claim().first), failed)
        #expect(try claim().isEmpty)
        func mend() throws {
            switch what {
            case "active": _ = try change(key, WebhookChange(isActive: true))
            case "url": _ = try change(key, WebhookChange(url: "https://shop.example/2"))
            default: _ = try world.ask(.webhooks(.rotate(key, secret: "second secret")))
            }
        }
        try mend()
        #expect(world.hasDeliveries, "the sender looks at once")
        let job = try #require(try claim().first)
        #expect(job.attempt == 1)
        if what == "secret" {
            _ = try world.ask(.webhooks(.endRotation(key)))
            _ = try world.ask(.webhooks(.rotate(key, secret: "third secret")))
        } else if what == "url" {
            _ = try change(key, WebhookChange(url: "https://shop.example/3"))
        } else {
            try mend()
        }
        #expect(try claim().isEmpty, "it is under way, whatever is mended meanwhile")
        #expect(
            try finish(job, .failed("no answer")) == .retried(at: world.now + 3_750))
    }

    @Test func limitsAndRemoval() throws {
        world.limits.webhooks = 2
        let first = try hook()
        try hook()
        let refused = try world.ask(
            .webhooks(
                .create(
                    NewWebhook(
                        key: WebhookKey(app: World.app, webhook: world.fresh()), url: "u",
                        kinds: .all, secret: "s", series: 1))))
        guard case .refused(.limit, _) = refused else { throw Unexpected(answer: refused) }
        try world.converse(["anna", "bert"])
        for job in try claim() where job.key != first { try finish(job) }
        #expect(try kept() == [1])
        #expect(try world.ask(.webhooks(.remove(first))) == .done)
        #expect(try kept().isEmpty, "nobody waits for it any more")
        #expect(
            try world.ask(.webhooks(.remove(first)))
                == .refused(.notFound, detail: "no such webhook"))
    }

    @Test func suspendedAppsAreNotToldOf() throws {
        try hook()
        try world.converse(["anna", "bert"])
        try world.expectDone(.suspendApp(World.app))
        #expect(try claim().isEmpty)
        try world.expectDone(.resumeApp(World.app))
        #expect(try claim().count == 1)
    }

    @Test func aReceiverThatHasAskedForTimeHasItOverASuspension() throws {
        let key = try hook()
        try world.converse(["anna", "bert"])
        try finish(try #require(try claim().first), .answered(status: 503, retryAfter: 30_000))
        try world.expectDone(.suspendApp(World.app))
        try world.expectDone(.resumeApp(World.app))
        #expect(try claim().isEmpty)
        #expect(try state(key).attempts == 1)
        world.pass(40_000)
        #expect(try claim().count == 1)
    }

    /// The one that was removed had a batch under way.
    @Test func anAnswerToARemovedWebhookIsNotOneToItsSuccessor() throws {
        let key = try hook()
        try world.converse(["anna", "bert"])
        let old = try #require(try claim().first)
        world.pass(50)
        #expect(try world.ask(.webhooks(.remove(key))) == .done)
        _ = try world.ask(
            .webhooks(
                .create(
                    NewWebhook(
                        key: key, url: "https://new.example/", kinds: .all, secret: "another",
                        series: 77))))
        try world.converse(["anna", "carl"])
        let new = try #require(try claim().first)
        #expect(try finish(old) == nil)
        #expect(try finish(new, .answered(status: 500, retryAfter: nil)) != nil)
        world.pass(60_000)
        #expect(try claim().first?.events.map(\.event.number) == new.events.map(\.event.number))
    }

    /// More of them than one step deletes.
    @Test(arguments: [false, true])
    func whatNoWebhookAsksForAnyMoreGoes(_ isRemoved: Bool) throws {
        let (key, limit) = (try hook(), UInt64(RuleLimits().webhookScan))
        let room = try world.converse(["anna", "bert"])
        for number in 0..<limit * 2 { try world.publish("\(number)", to: room, from: "anna") }
        // It is retention's to delete, whose turns are bounded.
        if isRemoved {
            #expect(try world.ask(.webhooks(.remove(key))) == .done)
        } else {
            _ = try change(key, WebhookChange(isActive: false))
        }
        #expect(try kept().count > limit)
        var turns = 0
        while case .progressed(_, true) = try world.ask(.enforceRetention(rows: 100)) {
            turns += 1
            try #require(turns < 100)
        }
        #expect(try kept().isEmpty)
        let outbox = try #require(try world.all(OutboxRecord.self).first)
        #expect(outbox.kept == 0 && outbox.trimDue == nil)
    }

    /// Another webhook's failures keep the events in the outbox.
    @Test func whatHappenedWhileAWebhookWasOffIsNotToldAfterALateAnswer() throws {
        let key = try hook()
        try hook()
        try world.converse(["anna", "bert"])
        let jobs = try claim()
        let late = try #require(jobs.first { $0.key == key })
        _ = try change(key, WebhookChange(isActive: false))
        try world.converse(["anna", "off"])
        _ = try change(key, WebhookChange(isActive: true))
        try world.converse(["anna", "on"])
        try finish(late)
        let next = try #require(try claim().first { $0.key == key })
        #expect(Self.words(next) == ["conversation.created +anna +on"])
    }

    /// The row of the outbox is locked behind the device's own, whatever the device asks for.
    @Test func whatADeviceDoesIsAnEvent() throws {
        try hook()
        let ben = try world.login("ben", DeviceID(high: 7, low: 1)).session
        let room = try world.converse(["anna", "ben", "zoe"])
        let text = world.message0("1", to: room, world.fresh())
        let asked: [Mutation.Operation] = [
            .sendMessage(text),
            .changeMetadata(
                ChangeMetadata(
                    conversation: room, changes: [MetadataChange(path: ["a"], value: "b")])),
            .sendMessage(text),
            .deleteMessage(DeleteMessage(message: text.message, forEveryone: true)),
        ]
        let codes = try asked.enumerated().map {
            try world.mutate(ben, UInt64($0.offset) + 1, $0.element).code
        }
        #expect(codes == [0, 0, Code.idInUse.rawValue, 0])
        #expect(
            try claim().first?.events.map(\.event.kind) == [
                .conversationCreated, .messageCreated, .metadataChanged, .messageDeleted,
            ])
    }
}
