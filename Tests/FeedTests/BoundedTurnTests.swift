import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

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
