import Foundation
import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// Which of the rows that are due a claim takes.
@Suite struct PushQueueTests {
    private let world: World
    private let chess = CredentialKey(app: World.app, environment: .development)

    init() throws {
        world = try World()
        for app in ["chess", "go", "mill"] {
            if app != "chess" {
                try world.expectDone(
                    .putApp(AppRecord(app: AppID(app), createdAt: world.now)))
            }
            try world.expectDone(.putPushCredential(credential(app)))
        }
        world.pass(100_000)
    }

    private func credential(
        _ app: String, name: String = "default", topic: String = "example.game"
    ) -> PushCredentialRecord {
        PushCredentialRecord(
            app: AppID(app), environment: .development, name: name, keyID: "KEY", team: "TEAM",
            privateKeyPEM: "", topics: topic, host: "localhost", port: 1, changedAt: world.now)
    }

    /// Rows of so many devices that wait in one queue since `age` milliseconds.
    private func put(
        _ count: Int, _ lane: PushClass, app: String = "chess", age: Milliseconds = 0,
        topic: String = "example.game"
    ) throws {
        try world.tamper { transaction throws(StoreError) in
            for _ in 0..<count {
                var row = WakeRecord(
                    app: AppID(app), user: UserID("anna"), device: world.fresh())
                row.due = world.now - age
                row.lane = lane
                row.environment = PushEnvironmentKind.development.rawValue
                row.topic = topic
                try transaction.put(row)
            }
        }
    }

    private func room(_ credential: CredentialKey, _ free: [PushClass: Int]) -> PushRoom {
        PushRoom(credential) { free[$0] ?? 0 }
    }

    /// - Parameter chance: which of several apps is served first.
    private func take(
        _ most: Int, _ rooms: [PushRoom] = [], chance: UInt64 = 0
    ) throws -> (rows: [DueRow], queues: PushQueues) {
        var rows: [DueRow] = []
        var queues: PushQueues?
        try world.tamper { transaction throws(StoreError) in
            let request = ClaimPushes(
                boot: BootID(high: 9, low: 9), streams: most,
                ids: [WakeID(high: 0, low: chance << 1)], rooms: rooms)
            var found = PushQueues(request, in: transaction, now: world.now)
            rows = try found.dueRows(atMost: most)
            queues = found
        }
        return (rows, try #require(queues))
    }

    @Test("a backlog of alerts without streams keeps no wake waiting, and is told as blocked")
    func classesAreApart() throws {
        try put(300, .alert, age: 4_000)
        try put(5, .wake)
        let (rows, queues) = try take(64, [room(chess, [.wake: 10])])
        #expect(rows.map(\.wake.lane) == Array(repeating: .wake, count: 5))
        #expect(queues.blocked == [PushLane(chess, .alert)])
        #expect(!queues.isMore)
        // With streams of their own they come along.
        let both = try take(64, [room(chess, [.wake: 10, .alert: 3])])
        #expect(both.rows.count { $0.wake.lane == .wake } == 5)
        #expect(both.rows.count { $0.wake.lane == .alert } == 3)
    }

    @Test("what waits is counted for a gateway that can send nothing")
    func countsWithoutStreams() throws {
        try put(3, .alert, age: 4_000)
        let answer = try world.ask(
            .claimPushes(
                ClaimPushes(
                    boot: BootID(high: 9, low: 9), streams: 0, ids: [], rooms: [room(chess, [:])],
                    countsQueues: true)))
        guard case .pushes(let claimed) = answer else { throw Unexpected(answer: answer) }
        #expect(claimed.jobs.isEmpty && claimed.queues.map(\.count) == [3])
    }

    /// We were away until now.
    private func comeBack() throws {
        try world.tamper { transaction throws(StoreError) in
            try transaction.put(
                MetaRecord(name: "outage_end", number: world.now.milliseconds))
        }
    }

    @Test("after an outage each class has its share of the rate, and what one leaves others take")
    func noClassStarvesAfterAnOutage() throws {
        try put(2_000, .wake, age: 60_000)
        try put(500, .alert, age: 90_000)
        try put(10, .badge, age: 30_000)
        try comeBack()
        var counts: [PushClass: Int] = [:]
        for _ in 0..<3 {
            for row in try take(256).rows { counts[row.wake.lane, default: 0] += 1 }
        }
        #expect(counts.values.reduce(0, +) == 200)
        #expect(counts[.badge] == 10)
        #expect(counts[.alert, default: 0] >= 60, "\(counts)")
        #expect(counts[.wake, default: 0] >= 60, "\(counts)")
    }

    @Test("a backlog of wakes leaves something of each claim to the other classes, however old")
    func noClassStarves() throws {
        try put(300, .wake, age: 60_000)
        try put(50, .alert)
        try put(50, .badge)
        let rows = try take(64).rows
        #expect(rows.count == 64)
        #expect(rows.count { $0.wake.lane == .wake } == 48)
        #expect(rows.count { $0.wake.lane == .alert } == 8)
        #expect(rows.count { $0.wake.lane == .badge } == 8)
    }

    @Test("of more queues than one claim looks at, each has its turn")
    func moreQueuesThanOneClaimLooksAt() throws {
        let topics = (0..<5_000).map { String(format: "topic.%05d", $0) }
        for topic in topics { try put(1, .wake, topic: topic) }
        try put(1, .wake)
        try put(1, .alert)
        var seen: [[PushClass]] = []
        for _ in 0..<2 {
            let (rows, queues) = try take(10_000)
            // It comes again for the others, without being told of anything.
            #expect(queues.nextDue.map { $0 <= world.now + 1_000 } ?? false)
            seen.append(rows.map(\.wake.lane))
        }
        // What is taken and not claimed is found again.
        #expect(seen == [[.wake], [.wake, .alert]])
    }

    @Test("what nothing can send stays as it is, and is not counted as what waits")
    func held() throws {
        try put(2, .wake, age: 60_000, topic: "example.unknown")
        let before = try world.all(WakeRecord.self)
        let (rows, queues) = try take(64)
        #expect(rows.isEmpty && !queues.isMore)
        #expect(try queues.depths().isEmpty)
        // Somebody may have ended that whom nobody heard.
        #expect(queues.nextDue == world.now + 300_000)
        #expect(try world.all(WakeRecord.self) == before)
        try world.expectDone(
            .putPushCredential(credential("chess", name: "late", topic: "example.unknown")))
        #expect(try take(64).rows.count == 2)
    }

    @Test("apps share a claim equally, whoever waits longer, and what one leaves the others take")
    func appsTakeTurns() throws {
        try put(300, .wake, app: "chess", age: 4_900)
        try put(300, .wake, app: "go")
        try put(3, .wake, app: "mill")
        for chance in UInt64(0)..<3 {
            let (rows, queues) = try take(60, chance: chance)
            let counts = Dictionary(grouping: rows, by: \.wake.app.name).mapValues(\.count)
            #expect(rows.count == 60 || counts["mill"] == 3 && rows.count >= 43)
            #expect(counts["mill"] == 3)
            #expect(counts["chess"].map { (20...40).contains($0) } ?? false, "\(counts)")
            #expect(counts["go"].map { (20...40).contains($0) } ?? false, "\(counts)")
            #expect(queues.isMore)
        }
    }

    @Test("after an outage what is overdue leaves at 200 a second, shared by the apps")
    func overdue() throws {
        try put(300, .wake, app: "chess", age: 60_000)
        try put(300, .wake, app: "go", age: 60_000)
        try comeBack()
        var counts: [String: Int] = [:]
        for _ in 0..<4 {
            for row in try take(256).rows { counts[row.wake.app.name, default: 0] += 1 }
        }
        #expect(counts["chess", default: 0] + counts["go", default: 0] == 200)
        #expect(counts["chess", default: 0] >= 90 && counts["go", default: 0] >= 90)
        world.pass(1_000)
        #expect(try take(256).rows.count == 200)
    }

    @Test("of several credentials for a topic the first that can send does; others have their own")
    func credentials() throws {
        let spare = CredentialKey(app: World.app, environment: .development, name: "spare")
        try world.expectDone(.putPushCredential(credential("chess", name: "spare")))
        try world.expectDone(
            .putPushCredential(credential("chess", name: "voice", topic: "example.voice")))
        try put(2, .wake)
        try put(1, .wake, topic: "example.voice")
        try put(1, .wake, topic: "example.unknown")
        func used(_ rooms: [PushRoom]) throws -> [String: [String]] {
            Dictionary(grouping: try take(64, rooms).rows, by: \.wake.topic)
                .mapValues { $0.map(\.credential.name) }
        }
        let open = room(chess, [.wake: 9])
        #expect(
            try used([open, room(spare, [.wake: 9])]) == [
                "example.game": ["default", "default"], "example.voice": ["voice"],
            ])
        #expect(
            try used([PushRoom(paused: chess), room(spare, [.wake: 9])])["example.game"]
                == ["spare", "spare"])
        #expect(
            try used([PushRoom(paused: chess), PushRoom(paused: spare)])["example.game"] == nil)
        #expect(try used([room(chess, [.wake: 1])])["example.game"] == ["default"])
    }

    @Test("a topic that rests keeps its own pushes only; one that is asked for gives one")
    func topics() throws {
        let record = credential("chess", topic: "example.game\nexample.typo")
        try world.expectDone(.putPushCredential(record))
        try put(3, .wake, topic: "example.typo")
        try put(2, .alert, topic: "example.typo")
        try put(3, .wake)
        func taken(_ limit: Int?) throws -> (topics: [String: Int], blocked: [PushLane]) {
            let room = PushRoom(chess, topics: limit.map { ["example.typo": $0] } ?? [:]) { _ in 9 }
            let (rows, queues) = try take(64, [room])
            let topics = Dictionary(grouping: rows, by: \.wake.topic).mapValues(\.count)
            return (topics, queues.blocked)
        }
        #expect(try taken(0).topics == ["example.game": 3])
        // Nothing waits for a stream.
        #expect(try taken(0).blocked == [])
        #expect(try taken(1).topics == ["example.game": 3, "example.typo": 1])
        #expect(try taken(nil).topics == ["example.game": 3, "example.typo": 5])
    }

    @Test("topics of push types that are not sent are none of the credential's")
    func otherTypes() {
        let record = credential(
            "chess",
            topic: "example.game\nexample.game.voip\nexample.game.complication\nexample.my.voip")
        #expect(record.hasTopic("example.game") && record.hasTopic("example.my.voip"))
        #expect(!record.hasTopic("example.game.voip"))
        #expect(!record.hasTopic("example.game.complication"))
        #expect(record.topicsByUse.sent == ["example.game", "example.my.voip"])
        #expect(
            record.topicsByUse.others == ["example.game.voip", "example.game.complication"])
    }

    @Test("the next moment is that of the first row that is not due yet")
    func nextDue() throws {
        try put(1, .alert, age: 10)
        try world.tamper { transaction throws(StoreError) in
            var row = WakeRecord(
                app: World.app, user: UserID("anna"), device: world.fresh())
            row.due = world.now + 7_000
            row.lane = .badge
            row.environment = PushEnvironmentKind.development.rawValue
            row.topic = "example.game"
            try transaction.put(row)
        }
        #expect(try take(8).queues.nextDue == world.now + 7_000)
    }

    @Test("what waits is counted by class, with the age of the oldest")
    func depths() throws {
        try put(7, .alert, age: 3_000)
        try put(2, .alert, app: "go", age: 4_000)
        try put(1, .probe, age: 1_000)
        let answer = try world.ask(
            .claimPushes(
                ClaimPushes(
                    boot: BootID(high: 9, low: 9), streams: 1, ids: [world.fresh()],
                    rooms: [PushRoom(paused: chess)], countsQueues: true)))
        guard case .pushes(let claimed) = answer else { throw Unexpected(answer: answer) }
        #expect(
            claimed.queues == [
                PushQueueDepth(lane: .alert, count: 9, oldest: world.now - 4_000),
                PushQueueDepth(lane: .probe, count: 1, oldest: world.now - 1_000),
            ])
    }
}

/// Tokens: unproven until a push was accepted, kept when the credential is to blame, told when
/// they are dropped.
@Suite struct PushTokenTests {
    private let pushes: Pushes
    private let room: ConversationID
    private let phone = DeviceID(high: 2, low: 1)
    private var world: World { pushes.world }

    init() throws {
        pushes = try Pushes()
        room = try pushes.world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
    }

    private func nextPush(_ text: String) throws -> PushJob {
        world.pass(3_600_000)
        try pushes.tick()
        try world.publish(text, to: room, from: "anna")
        return try #require(try pushes.claim().first)
    }

    @Test("the first push to a token is a probe, the ones after an acceptance are not")
    func probe() throws {
        let first = try nextPush("1")
        #expect(first.kind == .silent && first.lane == .probe)
        // A refusal for another reason proves nothing.
        try pushes.finish(
            first, .answered(status: 429, reason: "TooManyRequests", timestamp: nil))
        world.pass(120_000)
        try pushes.tick()
        let second = try #require(try pushes.claim().first)
        #expect(second.lane == .probe)
        try pushes.finish(second)
        #expect(try pushes.view(phone).device.tokenProvenAt == world.now)
        // It comes and goes; its alerts and wakes have lanes of their own from now on.
        var session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(2_000)
        let third = try nextPush("2")
        #expect(third.kind == .silent && third.lane == .wake)
        try pushes.finish(third)
        // Another token has to prove itself.
        session = try pushes.open("bob", phone, token: 7).session
        #expect(try pushes.view(phone).device.tokenProvenAt == nil)
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(2_000)
        #expect(try nextPush("3").lane == .probe)
    }

    @Test("while the credential is to blame no token is dropped, and the push is tried again")
    func keptToken() throws {
        let job = try nextPush("1")
        let reply = PushReply.answered(status: 400, reason: "BadDeviceToken", timestamp: nil)
        try world.ask(
            .finishPush(
                FinishPush(key: job.key, id: job.request.id, reply: reply, keepsToken: true)))
        #expect(try pushes.view(phone).device.pushToken != nil)
        #expect(try world.all(TokenFeedbackRecord.self).isEmpty)
        world.pass(60_000)
        try pushes.tick()
        let again = try #require(try pushes.claim().first)
        #expect(again.request.id == job.request.id)
        try pushes.finish(again, reply)
        #expect(try pushes.view(phone).device.pushToken == nil)
    }

    @Test("a dropped token is told once, with its reason, and reading goes on from a number")
    func feedback() throws {
        let job = try nextPush("1")
        let since = world.now
        try pushes.finish(job, .answered(status: 410, reason: "Unregistered", timestamp: since))
        try pushes.end(try pushes.open("bob", phone, token: 7).session, within: 0)
        try pushes.run(2_000)
        try pushes.finish(
            try nextPush("2"),
            .answered(status: 400, reason: "BadDeviceToken", timestamp: nil))
        func read(after: UInt64) throws -> ([TokenFeedbackRecord], UInt64) {
            guard
                case .backend(.tokenFeedback(let rows, let last)) = try world.read(
                    .backend(World.app, .tokenFeedback(after: after, limit: 10)))
            else { throw Unexpected(answer: .done) }
            return (rows, last)
        }
        let (rows, last) = try read(after: 0)
        #expect(rows.map(\.number) == [1, 2] && last == 2)
        #expect(rows.map(\.token) == [[1, 1], [7, 7]])
        #expect(rows.map(\.reason) == ["Unregistered", "BadDeviceToken"])
        #expect(rows.map(\.status) == [410, 400])
        #expect(rows.map(\.deadSince) == [since, nil])
        #expect(rows.allSatisfy { $0.device == phone && $0.user == UserID("bob") })
        #expect(try read(after: 1).0.map(\.number) == [2])
        let (none, end) = try read(after: 2)
        #expect(none.isEmpty && end == 2)
        // A logout is no feedback; after 30 days the rows go.
        world.pass(31 * 86_400_000)
        while case .progressed(_, true) = try world.ask(.enforceRetention(rows: 100)) {}
        #expect(try world.all(TokenFeedbackRecord.self).isEmpty)
    }

    @Test("a dropped token is told to webhooks in the transaction that drops it")
    func toldDrop() throws {
        let key = WebhookKey(app: World.app, webhook: world.fresh())
        try world.ask(
            .webhooks(
                .create(
                    NewWebhook(
                        key: key, url: "https://shop.example/", kinds: .init([.tokenDropped]),
                        secret: "s", series: 77))))
        let job = try nextPush("1")
        let wrong = PushReply.answered(status: 400, reason: "BadDeviceToken", timestamp: nil)
        // The credential is to blame: nothing is dropped, nobody is told.
        try world.ask(
            .finishPush(
                FinishPush(key: job.key, id: job.request.id, reply: wrong, keepsToken: true)))
        #expect(try world.all(WebhookEventRecord.self).isEmpty)
        world.pass(60_000)
        try pushes.tick()
        let again = try #require(try pushes.claim().first)
        let finish = FinishPush(key: again.key, id: again.request.id, reply: wrong)
        let outcomes = try world.commit([.finishPush(finish)])
        #expect(
            try #require(outcomes.first).get().effects.hasDeliveries, "the sender is not rung for")
        let row = try #require(try world.all(TokenFeedbackRecord.self).first)
        func claim() throws -> WebhookEventView? {
            let request = ClaimDeliveries(
                boot: BootID(high: 9, low: 9),
                ids: [world.fresh()], underWay: [:], perApp: 2, policy: WebhookPolicy())
            guard
                case .deliveries(let claimed) = try world.ask(.webhooks(.claim(request)))
            else { return nil }
            return claimed.jobs.first?.events.first
        }
        let told = try #require(try claim())
        #expect(told.event.kind == .tokenDropped && told.event.conversation == nil)
        #expect(told.event.device == phone && told.event.user == "bob")
        #expect(told.dropped == row && told.id == WebhookEventID(high: 77, low: 1))
        // Of a user who is being deleted nothing but his name is told.
        try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil))
        world.pass(WebhookPolicy().lease)
        #expect(try world.all(TokenFeedbackRecord.self).count == 1)
        let repeated = try #require(try claim())
        #expect(repeated.id == told.id && repeated.dropped == nil)
    }

    @Test("after a restore a backend that goes on from its number misses nothing")
    func feedbackAfterRestore() throws {
        let gone = PushReply.answered(status: 410, reason: "Unregistered", timestamp: world.now)
        _ = try world.ask(.restore(epochHalf: 78))
        _ = try world.ask(.restore(epochHalf: 79))
        try pushes.finish(try nextPush("1"), gone)
        let numbers = try world.all(TokenFeedbackRecord.self).map(\.number)
        #expect(numbers == [2 * world.limits.restoreHeadStep + 1])
    }

    @Test("of a removed app no number is left, and those of a new one of its name are above it")
    func feedbackOfARemovedApp() throws {
        let gone = PushReply.answered(status: 410, reason: "Unregistered", timestamp: world.now)
        try pushes.finish(try nextPush("1"), gone)
        func names() throws -> [String] {
            try world.all(MetaRecord.self).map(\.name).filter { $0.hasSuffix(World.app.name) }
        }
        #expect(try names().contains("token_feedback/\(World.app.name)"))
        try world.expectDone(.removeApp(World.app))
        while case .progressed(_, true) = try world.ask(.enforceRetention(rows: 100)) {}
        #expect(try names() == [])
        let base = try world.all(MetaRecord.self).first { $0.name == MetaRecord.numberBaseName }
        #expect(base?.number == 1)
    }

    @Test("410 with a time before the token was confirmed again leaves it alone")
    func timestampRule() throws {
        let job = try nextPush("1")
        try pushes.finish(
            job,
            .answered(
                status: 410, reason: "Unregistered", timestamp: Timestamp(milliseconds: 1)))
        #expect(try pushes.view(phone).device.pushToken != nil)
        #expect(try world.all(TokenFeedbackRecord.self).isEmpty)
    }
}
