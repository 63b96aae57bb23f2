import Model
import Testing
import Wake

@testable import Feed

/// Each device stands once in a campaign's counts, where it is (`Campaigns.counts` compares the
/// sums), whoever comes, changes and goes meanwhile.
@Suite struct CampaignTallyTests {
    private let campaigns: Campaigns
    private var world: World { campaigns.world }

    init() throws { campaigns = try Campaigns() }

    private func delete(_ user: String) throws {
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID(user), idempotency: nil)) == .done)
        while case .progressed(let count, _) = try world.ask(.continueDeletions(rows: 100)),
            count > 0
        {}
    }

    /// Numbers of phones of the canary share, or of the rest.
    private func numbers(_ campaign: CampaignID, isCanary: Bool, _ count: Int) -> [UInt64] {
        var plan = CampaignPlan(startsAt: world.now)
        plan.canaryShare = 2_000
        return (1...1_000).lazy.filter {
            plan.isCanary(DeviceID(high: 2, low: $0), of: campaign) == isCanary
        }.prefix(count).map { $0 }
    }

    @Test func aDeviceThatIsLeftOutAtItsTurnIsInTheAudienceNoMore() throws {
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        #expect(try campaigns.counts(id).audience == 3)
        try campaigns.phone(2) { $0.notifications = .off }
        #expect(try campaigns.send() == ["u1", "u3"])
        let counts = try campaigns.counts(id)
        #expect(counts.audience == 2 && counts.accepted == 2 && counts.waiting == 0)
        #expect(counts[.notificationsOff] == 1)
    }

    @Test func aDeletedUsersDeviceCountsAsChanged() throws {
        try campaigns.phones(1...4)
        let id = try campaigns.create()
        try campaigns.advance()
        try delete("u2")
        #expect(try campaigns.send() == ["u1", "u3", "u4"])
        world.pass(5_000)
        try campaigns.advance()
        #expect(try campaigns.state(id) == .finished)
        let counts = try campaigns.counts(id)
        #expect(counts.audience == 3 && counts.waiting == 0 && counts[.changed] == 1)
    }

    @Test func aUserWhoGoesWhileAPushIsUnderWayCountsAsChanged() throws {
        try campaigns.phones(1...2)
        let id = try campaigns.create()
        try campaigns.advance()
        let jobs = try campaigns.pushes.claim(streams: 100)
        #expect(jobs.count == 2)
        try delete("u2")
        for job in jobs {
            try campaigns.pushes.finish(
                job, .answered(status: 200, reason: "", timestamp: nil))
        }
        world.pass(5_000)
        try campaigns.advance()
        #expect(try campaigns.state(id) == .finished)
        let counts = try campaigns.counts(id)
        #expect(counts.audience == 1 && counts.accepted == 1 && counts[.changed] == 1)
    }

    @Test func aCancelledCampaignCountsWhoWentMeanwhile() throws {
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        try delete("u3")
        #expect(try campaigns.control(id, .cancel) == .cancelled)
        world.pass(5_000)
        try campaigns.advance()
        let counts = try campaigns.counts(id)
        #expect(counts.audience == 2 && counts.cancelled == 2, "\(counts)")
        #expect(counts[.changed] == 1)
    }

    @Test func aCanaryShareThatGoesBeforeItsTurnWaitsForALook() throws {
        let id = try campaigns.create { $0.plan.canaryShare = 2_000 }
        let share = numbers(id, isCanary: true, 2)
        let rest = numbers(id, isCanary: false, 3)
        for number in share + rest { try campaigns.phone(number) }
        try campaigns.advance()
        #expect(try campaigns.counts(id).canary == 2)
        try delete("u\(share[0])")
        try campaigns.phone(share[1]) { $0.pushToken = nil }
        #expect(try campaigns.send() == [])
        world.pass(5_000)
        // There is nobody to learn from.
        #expect(try campaigns.send() == [])
        #expect(try campaigns.state(id) == .review)
        try campaigns.control(id, .resume)
        #expect(try campaigns.send() == rest.map { "u\($0)" }.sorted())
        world.pass(5_000)
        try campaigns.advance()
        #expect(try campaigns.state(id) == .finished)
        let counts = try campaigns.counts(id)
        #expect(counts.canary == 0 && counts.audience == 3 && counts.seen == 5)
        #expect(counts[.changed] == 1 && counts[.tokenless] == 1)
    }

    @Test func bothPassesOfACanaryShareCountADeviceOnce() throws {
        let id = try campaigns.create { $0.plan.canaryShare = 2_000 }
        let share = numbers(id, isCanary: true, 5)
        let rest = numbers(id, isCanary: false, 2)
        for number in share.dropLast() + rest { try campaigns.phone(number) }
        try campaigns.phone(share[1]) { $0.pushToken = nil }
        try campaigns.phone(share[2]) { $0.pushToken = nil }
        try campaigns.advance()
        // Left out when its turn comes.
        try campaigns.phone(share[3]) { $0.notifications = .off }
        #expect(try campaigns.send() == ["u\(share[0])"])
        var counts = try campaigns.counts(id)
        #expect(counts.seen == 4 && counts.audience == 1 && counts.canary == 1)
        #expect(counts[.tokenless] == 2 && counts[.notificationsOff] == 1)

        // One gets a token before the others' turn, and one joins.
        try campaigns.phone(share[1])
        world.pass(1_000)
        try campaigns.phone(share[4])
        #expect(try campaigns.control(id, .resume) == .running)
        #expect(
            try campaigns.send() == (rest + [share[1], share[4]]).map { "u\($0)" }.sorted())
        counts = try campaigns.counts(id)
        #expect(counts.seen == 7 && counts.audience == 5 && counts.accepted == 5)
        #expect(counts[.tokenless] == 1 && counts[.notificationsOff] == 1)
    }
}
