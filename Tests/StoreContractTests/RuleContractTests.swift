import Feed
import Model
import Testing
import Wake
import Wire

/// The server's own tables and rules, on every engine. Rules that read and write through the
/// contract are run here over `engines`; each gets the server's schema and its lock order.
@Suite struct RuleContractTests {
    /// Runs `body` on an empty store of the server's schema.
    static func withServerStore<Result>(
        _ engine: EngineFactory, _ body: (any Store) throws -> Result
    ) throws -> Result {
        try engine.withStore(tables: Schema.tables, lockRanks: Schema.lockRanks, body)
    }

    @Test(
        "every table of the server can be made, written and read by each of its indexes",
        arguments: engines)
    func schema(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Schema.tables) { store throws in
            for table in Schema.tables {
                #expect(table.problem() == nil)
                let row = table.columns.map { column -> ColumnValue in
                    switch column.type {
                    case .integer: .integer(1)
                    case .text: .text("t")
                    case .blob: .blob([1])
                    }
                }
                try store.put(table, row)
                for index in [nil] + table.scanned.map(\.name) {
                    #expect(try store.rows(table, Scan(index: index, limit: 2)) == [row])
                }
            }
        }
    }

    @Test("a typed record comes back as it was put", arguments: engines)
    func record(_ engine: EngineFactory) throws {
        try engine.withStore(tables: Schema.tables) { store throws in
            let record = MetaRecord(name: "epoch", number: 7, bytes: [0, 1, 0])
            try store.write { transaction throws(StoreError) in try transaction.put(record) }
            var found: MetaRecord?
            try store.read { snapshot throws(StoreError) in
                found = try snapshot.record(MetaRecord.self, [.text("epoch")])
            }
            #expect(found == record)
        }
    }

    @Test(
        "a dropped token and the webhooks' event of it are in one transaction", arguments: engines)
    func droppedToken(_ engine: EngineFactory) throws {
        let app = AppID("chess")
        let boot = BootID(high: 7, low: 7)
        let device = DeviceID(high: 1, low: 1)
        var now = Timestamp(milliseconds: 1_700_000_000_000)
        try Self.withServerStore(engine) { store throws in
            @discardableResult
            func ask(_ request: StoreRequest) throws -> StoreAnswer {
                var answer = StoreAnswer.done
                try store.write { transaction throws(StoreError) in
                    answer = try Rules.execute(
                        request, in: transaction, now: now, limits: RuleLimits()
                    ).answer
                }
                now = now + 5_000
                return answer
            }
            try ask(.start(boot: boot, epochHalf: 99))
            try ask(.administer(.putApp(AppRecord(app: app, createdAt: now))))
            try ask(
                .administer(
                    .putPushCredential(
                        PushCredentialRecord(
                            app: app, environment: .production, keyID: "k", team: "t",
                            privateKeyPEM: "p", topics: "org.chess", host: "h", port: 443,
                            changedAt: now))))
            try ask(
                .webhooks(
                    .create(
                        NewWebhook(
                            key: WebhookKey(app: app, webhook: WebhookID(high: 2, low: 1)),
                            url: "http://h", kinds: .all, secret: "s", series: 5))))
            let opened = try ask(
                .openSession(
                    OpenSession(
                        app: app, device: device, role: .app,
                        credential: .identity(UserID("bert")), newTokenHash: [1],
                        freshEpochHalf: 8, boot: boot, dormantAfter: nil,
                        push: PushRegistration(
                            token: [9, 9], environment: .production, topic: "org.chess"))))
            guard case .opened(let session) = opened else {
                Issue.record("not opened: \(opened)")
                return
            }
            try ask(
                .endSession(EndSession(session: session.session, applied: 0, expectedWithin: 0)))
            let room = ConversationID(high: 3, low: 1)
            try ask(
                .createConversation(
                    app: app,
                    CreateConversation(conversation: room, participants: ["anna", "bert"]),
                    idempotency: nil))
            let message = SendMessage(
                conversation: room, message: MessageID(high: 3, low: 2),
                parts: [Part(mimeType: "text/plain", content: [65])],
                push: PushText(title: "", body: "hi"))
            try ask(
                .publish(
                    app: app, Publication(message: message, sender: "anna"), idempotency: nil))
            let claimed = try ask(
                .claimPushes(
                    ClaimPushes(boot: boot, streams: 1, ids: [WakeID(high: 4, low: 1)])))
            guard case .pushes(let pushes) = claimed, let job = pushes.jobs.first else {
                Issue.record("nothing was claimed: \(claimed)")
                return
            }
            let dead = PushReply.answered(status: 410, reason: "Unregistered", timestamp: now)
            try ask(.finishPush(FinishPush(key: job.key, id: job.request.id, reply: dead)))
            var events: [WebhookEventRecord] = []
            var dropped: [TokenFeedbackRecord] = []
            try store.read { snapshot throws(StoreError) in
                events = try snapshot.records(WebhookEventRecord.self, Scan(limit: 100))
                dropped = try snapshot.records(TokenFeedbackRecord.self, Scan(limit: 100))
            }
            let event = try #require(events.last)
            #expect(event.kind == .tokenDropped && event.user == "bert")
            #expect(event.conversation == nil && event.device == device)
            #expect(dropped.map(\.number) == [event.feedback])
        }
    }
}
