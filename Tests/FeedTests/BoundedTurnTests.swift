import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// What one turn in the background costs the writer, in rows, where there is much to do.
struct BoundedTurnTests {
    private let limits = RuleLimits()

    /// The turns of a duty until there is nothing more to do, and the rows of each.
    private func turns(_ request: StoreRequest, _ world: World) throws -> [Int] {
        var rows: [Int] = []
        while true {
            let answer = try world.ask(request)
            rows.append(world.rows.total)
            guard case .progressed(_, more: true) = answer else { return rows }
        }
    }

    @Test("a removed app's rows go some in each turn, whatever the number of tables")
    func removedApp() throws {
        let world = try World()
        let shop = AppID("shop")
        try world.expectDone(.putApp(AppRecord(app: shop, createdAt: world.now)))
        try world.tamper { transaction throws(StoreError) in
            for number in 0..<1_200 as Range<UInt64> {
                let user = UserID("u\(number)")
                let device = DeviceID(high: 9, low: number)
                try transaction.put(
                    UserRecord(app: shop, user: user, epochHalf: 1, createdAt: world.now))
                try transaction.put(
                    DeviceRecord(
                        app: shop, user: user, device: device, createdAt: world.now,
                        lastSeenAt: world.now))
                try transaction.put(
                    SessionTokenRecord(
                        app: shop, hash: device.bytes, user: user, device: device,
                        issuedAt: world.now, expiresAt: world.now + 1_000_000))
                try transaction.put(
                    HiddenRecord(
                        app: shop, user: user, conversation: ConversationID(high: 1, low: 1),
                        position: 1, message: MessageID(high: 1, low: 1), hiddenAt: world.now))
            }
        }
        try world.expectDone(.removeApp(shop))
        let rows = try turns(.enforceRetention(rows: 1_000), world)
        #expect(try #require(rows.max()) <= limits.rowsPerTurn + 512, "\(rows)")
        // Nothing stays behind.
        for table in Schema.tables where table.columns.first?.name == "app" {
            try world.store.read { snapshot throws(StoreError) in
                #expect(try snapshot.rows(table, Scan(prefix: [.app(shop)], limit: 1)).isEmpty)
            }
        }
        #expect(
            try world.ask(.administer(.putApp(AppRecord(app: shop, createdAt: world.now))))
                == .done)
    }

    @Test("each part of retention has its turn, however much there is of the others")
    func retention() throws {
        let world = try World()
        let room = try world.converse(["anna", "bob"])
        for number in 0..<300 { try world.publish("\(number)", to: room, from: "anna") }
        try world.tamper { transaction throws(StoreError) in
            for number in 0..<4_000 {
                try transaction.put(
                    IdempotencyRecord(
                        app: World.app, key: "\(number)", requestHash: [], status: 0,
                        response: [], expiresAt: world.now))
                try transaction.put(
                    SessionTokenRecord(
                        app: World.app, hash: Array("\(number)".utf8), user: UserID("x"),
                        device: DeviceID(high: 1, low: 1), issuedAt: world.now,
                        expiresAt: world.now))
            }
        }
        try world.end(room)
        world.pass(1)
        let rows = try turns(.enforceRetention(rows: 1_000), world)
        #expect(try #require(rows.max()) <= limits.rowsPerTurn + 1_024, "\(rows)")
        #expect(try world.all(IdempotencyRecord.self).isEmpty)
        #expect(try world.all(SessionTokenRecord.self).isEmpty)
        #expect(try world.all(MessageRecord.self).isEmpty)
        #expect(try world.all(PurgeRecord.self).isEmpty)
    }

    @Test("a user's messages are deleted some in each turn, and each is looked at once")
    func deletedUser() throws {
        let world = try World()
        let count = 12 * 60
        for place in 0..<12 {
            let room = try world.converse(["anna-\(place)", "bob"])
            for number in 0..<60 { try world.publish("\(number)", to: room, from: "bob") }
        }
        let before = try world.all(MessageRecord.self).filter { $0.deletedAt == nil }
        #expect(before.count == count)
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil)) == .done)
        var rows: [Int] = []
        while try !world.all(UserDeletionRecord.self).isEmpty {
            rows += try turns(.continueDeletions(rows: 512), world)
            try world.finishFanOut()
        }
        #expect(try #require(rows.max()) <= limits.rowsPerTurn + 1_024, "\(rows)")
        // What a deletion for everyone costs by itself is about 20 rows.
        #expect(rows.reduce(0, +) < count * 60, "\(rows.reduce(0, +))")
        #expect(try world.all(MessageRecord.self).allSatisfy { $0.deletedAt != nil })
    }

    @Test("a claim of webhooks' batches ends when its turn is spent; the rest is next")
    func webhooks() throws {
        let world = try World()
        for number in 0..<16 as Range<UInt64> {
            let key = WebhookKey(app: World.app, webhook: WebhookID(high: 4, low: number))
            try world.ask(
                .webhooks(
                    .create(
                        NewWebhook(
                            key: key, url: "https://example.org", kinds: .all, secret: "s",
                            series: 1))))
        }
        let room = try world.converse(["anna", "bob"])
        for number in 0..<200 { try world.publish("\(number)", to: room, from: "anna") }
        var jobs: [DeliveryJob] = []
        var more = true
        while more {
            let claim = ClaimDeliveries(
                boot: BootID(high: 9, low: 9),
                ids: (0..<16).map { _ in world.fresh() }, underWay: [:], perApp: 16,
                policy: WebhookPolicy())
            guard case .deliveries(let claimed) = try world.ask(.webhooks(.claim(claim))) else {
                throw Unexpected(answer: .done)
            }
            #expect(world.rows.total <= limits.rowsPerTurn + 1_024, "\(world.rows)")
            jobs += claimed.jobs
            more = claimed.more
        }
        #expect(Set(jobs.map(\.key)).count == 16 && jobs.count == 16)
    }
}
