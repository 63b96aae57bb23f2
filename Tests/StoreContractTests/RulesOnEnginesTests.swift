import Feed
import Model
import Testing
import Wake
import Wire

/// The server's rules over the engines: the same requests, the same outcomes, the same rows.
@Suite struct RulesOnEnginesTests {
    @Test("rules come to the same in memory and in a file", arguments: UInt64(1)...6)
    func agreement(_ seed: UInt64) throws { try agree(seed, with: .sqlite) }

    @Test(
        "rules come to the same in memory and in PostgreSQL",
        .enabled(if: EngineFactory.postgres.isThere, "PostgreSQL 15 is not installed"),
        arguments: [EngineFactory.postgres, .fetchedPostgres])
    func agreementAfar(_ engine: EngineFactory) throws { try agree(1, with: engine) }

    private func agree(_ seed: UInt64, with engine: EngineFactory) throws {
        try withFolder { folder throws in
            let stores = [
                try EngineFactory.memory.make(
                    tables: Schema.tables, lockRanks: Schema.lockRanks, in: folder),
                try engine.make(
                    tables: Schema.tables, lockRanks: Schema.lockRanks, in: folder),
            ]
            defer { for store in stores { store.close() } }
            var script = RequestScript(seed)
            var answered = 0
            var scheduled = 0
            for round in 0..<480 {
                let request = script.next()
                let outcomes = try stores.map { try script.outcome(of: request, on: $0) }
                try #require(outcomes[0] == outcomes[1], "seed \(seed), round \(round)")
                script.take(outcomes[0].answer)
                scheduled += outcomes[0].effects.schedule.published.count
                if case .refused = outcomes[0].answer {} else { answered += 1 }
                for user in RequestScript.users {
                    let pages = try stores.map { try script.page(of: user, on: $0) }
                    try #require(pages[0] == pages[1], "seed \(seed), round \(round)")
                }
            }
            #expect(script.finished > 0, "no push was claimed and finished")
            #expect(script.changed > 5, "hardly anything was edited or deleted")
            #expect(script.delivered > 0, "nothing was told to webhooks")
            #expect(script.campaigned > 0, "no push of a campaign was claimed")
            for table in Schema.tables {
                let all = try stores.map { store throws in
                    var rows: [[ColumnValue]] = []
                    try store.read { snapshot throws(StoreError) in
                        rows = try snapshot.rows(table, Scan(limit: .max))
                    }
                    return rows
                }
                #expect(all[0] == all[1], "\(table.name)")
            }
            #expect(scheduled > 0, "nothing scheduled came to its time")
            #expect(answered > 180, "most requests were refused: it proves little")
        }
    }
}

/// Requests at random, made from what earlier ones were answered.
private struct RequestScript {
    static let users = ["anna", "bert", "carl", "dora", "emil", "fritz"]
    private static let app = AppID("chess")
    private static let boot = BootID(high: 7, low: 7)

    private var random: SeededRandom
    private var now = Timestamp(milliseconds: 1_700_000_000_000)
    private var limits = RuleLimits()
    private var round = 0
    private var sessions: [OpenedSession] = []
    private var conversations: [ConversationID] = []
    private var messages: [MessageID] = []
    private var number: UInt64 = 0
    private var jobs: [PushJob] = []
    private(set) var finished = 0
    private(set) var changed = 0
    private var deliveries: [DeliveryJob] = []
    private(set) var delivered = 0
    private var campaigns: [CampaignID] = []
    private(set) var campaigned = 0

    init(_ seed: UInt64) {
        random = SeededRandom(seed)
        limits.directRecipients = 3
        limits.fanOutStep = 2
        limits.receiptStep = 3
        limits.mutationResults = 4
        limits.tombstoneLifetime = 20_000
        limits.tombstoneDelay = 5_000
        limits.deviceMemory = 30_000
        limits.webhooks = 3
        limits.webhookEvents = 12
        limits.webhookEventLifetime = 40_000
        limits.webhookBatch = 4
        limits.webhookScan = 6
        limits.campaigns = 6
        limits.campaignQueue = 3
        limits.tags = 2
    }

    func outcome(of request: StoreRequest, on store: any Store) throws -> StoreOutcome {
        var outcome = StoreOutcome(answer: .done)
        try store.write { transaction throws(StoreError) in
            outcome = try Rules.execute(
                request, in: transaction, now: self.now, limits: self.limits)
        }
        return outcome
    }

    func page(of user: String, on store: any Store) throws -> StoreReading {
        var reading = StoreReading.nothing
        let query = PageQuery(
            app: Self.app, user: UserID(user), device: DeviceID(high: 1, low: 1),
            after: number % 7, bytes: 700)
        try store.read { snapshot throws(StoreError) in
            reading = try Rules.read(
                .page(query), in: snapshot, now: self.now, limits: self.limits)
        }
        return reading
    }

    mutating func take(_ answer: StoreAnswer) {
        switch answer {
        case .opened(let opened): sessions.append(opened)
        case .conversation(let record): conversations.append(record.conversation)
        case .published(let record): messages.append(record.message)
        case .edited, .done: changed += 1
        case .pushes(let claimed):
            jobs += claimed.jobs
            campaigned += claimed.jobs.count { $0.kind == .campaign }
        case .campaign(let record): campaigns.append(record.campaign)
        case .deliveries(let claimed): deliveries += claimed.jobs
        case .deliveryFinished(.taken): delivered += 1
        default: break
        }
    }

    mutating func next() -> StoreRequest {
        round += 1
        now = now + UInt64(random.below(1500))
        switch round {
        case 1: return .start(boot: Self.boot, epochHalf: 99)
        case 2: return .administer(.putApp(AppRecord(app: Self.app, createdAt: now)))
        case 3:
            return .administer(
                .putPushCredential(
                    PushCredentialRecord(
                        app: Self.app, environment: .production, keyID: "k", team: "t",
                        privateKeyPEM: "p", topics: "org.chess", host: "h", port: 443,
                        changedAt: now)))
        case 4: return open(byToken: false)
        case 5, 6: return createWebhook()
        default: break
        }
        switch random.below(37) {
        case 28: return .schedules(.publishDue(rows: 1 + random.below(3)))
        case 29: return schedule()
        case 30:
            return .schedules(
                .cancel(
                    app: Self.app, MessageID(high: 3, low: UInt64(random.below(Int(number) + 1))),
                    idempotency: nil))
        case 31: return .campaigns(.create(campaign(), idempotency: nil))
        case 32: return control()
        case 33, 34: return .campaigns(.advance(devices: 1 + random.below(4)))
        case 35: return tag()
        case 36: return claim()
        case 25: return random.below(9) == 0 ? createWebhook() : claimDeliveries()
        case 26, 27: return finishDelivery()
        case 18: return random.below(3) == 0 ? remove() : publish()
        case 19, 20: return edit()
        case 21:
            return .deleteMessage(app: Self.app, messageID(), idempotency: nil)
        case 22, 23: return deleteForOneself()
        case 24:
            guard random.below(8) == 0 else { return .enforceRetention(rows: 3) }
            return .deleteConversation(app: Self.app, conversation(), idempotency: nil)
        case 0: return create()
        case 1, 2: return open(byToken: random.below(3) == 0)
        case 3:
            return .addParticipants(
                app: Self.app,
                AddParticipants(conversation: conversation(), users: [user(), user()]),
                idempotency: nil)
        case 4, 5: return publish()
        case 6, 7: return acknowledge()
        case 8: return sync()
        case 9: return .coalesceReceipts(users: 3)
        case 10: return .enforceRetention(rows: 3)
        case 11: return end()
        case 12: return claim()
        case 13: return finish()
        case 14: return .sweepWakes(rows: 5)
        case 15: return .keepAlive
        default: return .continueFanOut(recipients: 1 + random.below(9))
        }
    }

    private mutating func fresh<Noun>() -> Identifier<Noun> {
        number += 1
        return Identifier(high: 3, low: number)
    }

    private mutating func user() -> String { Self.users[random.below(Self.users.count)] }

    private mutating func conversation() -> ConversationID {
        conversations.isEmpty ? fresh() : conversations[random.below(conversations.count)]
    }

    private mutating func messageID() -> MessageID {
        messages.isEmpty ? fresh() : messages[random.below(messages.count)]
    }

    private mutating func schedule() -> StoreRequest {
        let parts = [Part(mimeType: "text/plain", content: [65])]
        let content: NewScheduled.Content =
            random.below(2) == 0
            ? .announcement(
                Announcement(announcement: fresh(), users: [user(), user()], parts: parts))
            : .message(
                Publication(
                    message: SendMessage(
                        conversation: conversation(), message: fresh(), parts: parts),
                    sender: random.below(2) == 0 ? "" : user()))
        let delay = UInt64(random.below(20_000))
        return .schedules(
            .add(app: Self.app, NewScheduled(content, sendAt: now + delay), idempotency: nil))
    }

    private mutating func remove() -> StoreRequest {
        .removeParticipants(
            app: Self.app,
            RemoveParticipants(conversation: conversation(), users: [user()]), idempotency: nil)
    }

    private mutating func edit() -> StoreRequest {
        number += 1
        let text = random.below(3) == 0 ? nil : PushText(title: "", body: "edit \(number)")
        return .editMessage(
            app: Self.app,
            EditMessage(
                message: messageID(),
                parts: [Part(mimeType: "text/plain", content: Array("edit \(number)".utf8))],
                push: text, baseVersion: UInt64(random.below(2))),
            idempotency: nil)
    }

    private mutating func deleteForOneself() -> StoreRequest {
        number += 1
        let operation: Mutation.Operation =
            random.below(3) == 0
            ? .deleteConversation(DeleteConversation(conversation: conversation()))
            : .deleteMessage(DeleteMessage(message: messageID()))
        return .mutate(
            Mutate(
                session: session().session,
                mutation: Mutation(number: number, operation: operation)))
    }

    private mutating func session() -> OpenedSession {
        precondition(!sessions.isEmpty, "the first sessions are opened before they are used")
        return sessions[random.below(sessions.count)]
    }

    private mutating func create() -> StoreRequest {
        .createConversation(
            app: Self.app,
            CreateConversation(
                conversation: fresh(), participants: (0..<(1 + random.below(4))).map { _ in user() }
            ),
            idempotency: nil)
    }

    private mutating func open(byToken: Bool) -> StoreRequest {
        number += 1
        let user = user()
        var credential = Credential.identity(UserID(user))
        if byToken, let token = UInt8(exactly: number % 200) {
            credential = .sessionToken(hash: [token])
        }
        return .openSession(
            OpenSession(
                app: Self.app, device: DeviceID(high: 1, low: UInt64(random.below(5))), role: .app,
                credential: credential, newTokenHash: [UInt8(truncatingIfNeeded: number)],
                freshEpochHalf: number, boot: Self.boot, dormantAfter: UInt64(random.below(3000)),
                push: PushRegistration(
                    token: [UInt8(random.below(6))], environment: .production,
                    topic: "org.chess")))
    }

    private mutating func claim() -> StoreRequest {
        .claimPushes(
            ClaimPushes(boot: Self.boot, streams: 2, ids: [fresh(), fresh()]))
    }

    private mutating func finish() -> StoreRequest {
        guard !jobs.isEmpty else { return claim() }
        let job = jobs.removeFirst()
        finished += 1
        let replies: [PushReply] = [
            .answered(status: 200, reason: "", timestamp: nil), .unanswered, .notSent,
            .answered(status: 410, reason: "Unregistered", timestamp: now),
        ]
        return .finishPush(
            FinishPush(
                key: job.key, id: job.request.id, reply: replies[random.below(replies.count)]))
    }

    private mutating func campaign() -> NewCampaign {
        var plan = CampaignPlan(startsAt: now + UInt64(random.below(5_000)))
        plan.rate = UInt64(1 + random.below(30))
        if random.below(2) == 0 {
            plan.canaryShare = 5_000
            plan.canaryWait = random.below(2) == 0 ? 3_000 : nil
        } else {
            plan.isLocal = random.below(2) == 0
        }
        var filter = CampaignFilter()
        if random.below(3) == 0 { filter.anyTags = ["a", "b"] }
        return NewCampaign(
            app: Self.app, campaign: fresh(), name: "c\(number)", title: "", body: "hi",
            filter: filter, plan: plan)
    }

    private mutating func control() -> StoreRequest {
        guard !campaigns.isEmpty else { return .campaigns(.create(campaign(), idempotency: nil)) }
        let all: [CampaignControl] = [.pause, .resume, .resume, .resume, .cancel]
        return .campaigns(
            .control(
                Self.app, campaigns[random.below(campaigns.count)],
                all[random.below(all.count)], idempotency: nil))
    }

    private mutating func tag() -> StoreRequest {
        let tags = ["a", "b", "c"]
        return .campaigns(
            .tag(
                ChangeTags(
                    app: Self.app, user: UserID(user()), device: nil,
                    add: [tags[random.below(3)]], remove: [tags[random.below(3)]]),
                idempotency: nil))
    }

    private mutating func createWebhook() -> StoreRequest {
        let kinds: WebhookEventKinds =
            random.below(2) == 0 ? .all : .init([.messageRead, .messageDeleted])
        return .webhooks(
            .create(
                NewWebhook(
                    key: WebhookKey(app: Self.app, webhook: fresh()), url: "http://h",
                    kinds: kinds, secret: "s", series: 5)))
    }

    private mutating func claimDeliveries() -> StoreRequest {
        .webhooks(
            .claim(
                ClaimDeliveries(
                    boot: Self.boot,
                    ids: [fresh(), fresh()], underWay: [:], perApp: 2, policy: WebhookPolicy())))
    }

    private mutating func finishDelivery() -> StoreRequest {
        guard !deliveries.isEmpty else { return claimDeliveries() }
        let job = deliveries.removeFirst()
        let answers: [DeliveryAnswer] = [
            .answered(status: 200, retryAfter: nil), .failed("no connection"), .notSent,
            .answered(status: 503, retryAfter: 1_000), .answered(status: 200, retryAfter: nil),
        ]
        return .webhooks(
            .finish(
                FinishDelivery(
                    key: job.key, claim: job.claim, answer: answers[random.below(answers.count)],
                    chance: UInt64(random.below(1001)), policy: WebhookPolicy())))
    }

    private mutating func message() -> SendMessage {
        SendMessage(
            conversation: conversation(), message: fresh(),
            parts: [Part(mimeType: "text/plain", content: Array("hi \(number)".utf8))],
            push: random.below(4) == 0 ? nil : PushText(title: "", body: "\u{1F3B2} \(number)"))
    }

    /// Some alerts have a time of their own, or an end.
    private mutating func options() -> PushOptions {
        var options = PushOptions()
        let time = now + UInt64(random.below(20_000))
        switch random.below(6) {
        case 0: options.timing.moment = .at(time)
        case 1: options.timing.expires = time
        case 2:
            options.timing.lifetime = 5_000
            options.timing.moment = .local(
                LocalMoment(wall: time.milliseconds % 86_400_000, isDaily: true))
        default: break
        }
        return options
    }

    private mutating func publish() -> StoreRequest {
        let key = Idempotency(key: "k\(random.below(20))", requestHash: [UInt8(random.below(2))])
        return .publish(
            app: Self.app, Publication(message: message(), sender: "", options: options()),
            idempotency: random.below(2) == 0 ? key : nil)
    }

    private mutating func acknowledge() -> StoreRequest {
        let session = session().session
        let first = UInt64(random.below(4))
        let read = ReadReceipt(
            conversation: conversation(), through: UInt64(random.below(3)),
            ranges: [InclusiveRange(first: first, last: first + UInt64(random.below(3)))])
        return .acknowledge(
            Acknowledge(
                session: session, applied: UInt64(random.below(12)), reads: [read],
                completesSync: random.below(2) == 0))
    }

    private mutating func sync() -> StoreRequest {
        let opened = session()
        let seq = UInt64(random.below(15))
        let frame = SyncFrame(
            cursor: Cursor(epoch: opened.sync.epoch, seq: seq), applied: seq,
            mutations: (0..<random.below(4)).map { _ in
                Mutation(number: number / 2, operation: .sendMessage(message()))
            })
        return .sync(SyncWrite(session: opened.session, sync: frame, freshEpochHalf: number))
    }

    private mutating func end() -> StoreRequest {
        let session = session().session
        if random.below(4) == 0 {
            number += 1
            return .mutate(
                Mutate(
                    session: session,
                    mutation: Mutation(number: number, operation: .forgetDevice(ForgetDevice()))))
        }
        return .endSession(
            EndSession(session: session, applied: UInt64(random.below(9)), expectedWithin: 5000))
    }
}
