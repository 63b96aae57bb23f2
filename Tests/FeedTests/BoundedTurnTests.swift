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
