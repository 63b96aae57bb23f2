import Model
import Testing

@testable import Wake

@Suite struct CampaignFilterTests {
    private let now = Timestamp(milliseconds: 100_000_000)
    private var facts: CampaignFacts {
        CampaignFacts(
            topic: "example.chess", client: "ios", version: "2.10.1", locale: "de-AT",
            timeZone: "Europe/Vienna", lastSeenAt: now - 50_000)
    }

    private func mismatch(
        _ change: (inout CampaignFilter) -> Void, state: ReachabilityState = .wakeable,
        tags: Set<String> = ["beta", "paid"]
    ) throws -> CampaignCriterion? {
        var filter = CampaignFilter()
        change(&filter)
        #expect(filter.problem == nil)
        // What is kept is what was meant.
        let kept = try #require(CampaignFilter(encoded: filter.encoded))
        #expect(kept == filter)
        return try kept.mismatch(
            facts, now: now, state: { () throws(StoreError) in state },
            hasTag: { tag throws(StoreError) in tags.contains(tag) })
    }

    @Test func eachCriterionTakesAndLeavesOut() throws {
        #expect(try mismatch { _ in } == nil)
        #expect(try mismatch { $0.topics = ["example.go", "example.chess"] } == nil)
        #expect(try mismatch { $0.topics = ["example.go"] } == .topic)
        #expect(try mismatch { $0.clients = ["ios"] } == nil)
        #expect(try mismatch { $0.clients = ["mac"] } == .client)
        #expect(try mismatch { $0.locales = ["fr", "DE"] } == nil)
        #expect(try mismatch { $0.locales = ["de-CH"] } == .locale)
        #expect(try mismatch { $0.locales = ["den"] } == .locale)
        #expect(try mismatch { $0.timeZones = ["Europe/"] } == nil)
        #expect(try mismatch { $0.timeZones = ["Europe/Vienna"] } == nil)
        #expect(try mismatch { $0.timeZones = ["Europe"] } == .timeZone)
        #expect(try mismatch { $0.tags = ["beta", "paid"] } == nil)
        #expect(try mismatch { $0.tags = ["beta", "old"] } == .tags)
        #expect(try mismatch { $0.anyTags = ["old", "paid"] } == nil)
        #expect(try mismatch { $0.anyTags = ["old", "new"] } == .tags)
        #expect(try mismatch { $0.noTags = ["old"] } == nil)
        #expect(try mismatch { $0.noTags = ["paid"] } == .tags)
        #expect(try mismatch { $0.states = [.wakeable, .waking] } == nil)
        #expect(try mismatch { $0.states = [.unreachable] } == .reachability)
    }

    @Test func versionsAreComparedNumberByNumber() throws {
        #expect(try mismatch { $0.versionMin = "2.9" } == nil)
        #expect(try mismatch { $0.versionMin = "2.10.1" } == nil)
        #expect(try mismatch { $0.versionMin = "2.10.2" } == .version)
        #expect(try mismatch { $0.versionMax = "2.10.1" } == nil)
        #expect(try mismatch { $0.versionMax = "2.10" } == .version)
        #expect(try mismatch { $0.versionMax = "3" } == nil)
        #expect(AppVersion("2.0.0") == AppVersion("2"))
        #expect(AppVersion("3.1-beta") == AppVersion("3.1"))
        #expect(AppVersion("beta") == nil)
        #expect(AppVersion("") == nil)
        #expect(AppVersion(String(repeating: "9", count: 40)) != nil)
    }

    @Test func whoIsConnectedIsHeardOfNow() throws {
        #expect(try mismatch { $0.seenWithin = 60_000 } == nil)
        #expect(try mismatch { $0.seenWithin = 40_000 } == .lastSeen)
        #expect(try mismatch({ $0.seenWithin = 40_000 }, state: .online) == nil)
        #expect(try mismatch { $0.unseenFor = 40_000 } == nil)
        #expect(try mismatch { $0.unseenFor = 60_000 } == .lastSeen)
        #expect(try mismatch({ $0.unseenFor = 40_000 }, state: .online) == .lastSeen)
    }

    @Test func whatCannotBeEvaluatedIsNamed() {
        func problem(_ change: (inout CampaignFilter) -> Void) -> String? {
            var filter = CampaignFilter()
            change(&filter)
            return filter.problem
        }
        #expect(problem { $0.tags = ["a b"] }?.contains("a b") == true)
        #expect(problem { $0.tags = [""] } != nil)
        #expect(problem { $0.anyTags = [String(repeating: "a", count: 65)] } != nil)
        #expect(problem { $0.locales = ["german!"] }?.contains("BCP 47") == true)
        #expect(problem { $0.versionMin = "new" } != nil)
        #expect(
            problem {
                $0.versionMin = "2.10"
                $0.versionMax = "2.9"
            } == "version_min is above version_max")
        #expect(problem { $0.topics = Array(repeating: "a", count: 33) } != nil)
        #expect(CampaignFilter(encoded: [1, 0, 0]) == nil)
        #expect(CampaignFilter(encoded: [12, 0, 0, 0, 1, 65]) == nil)
    }
}

@Suite struct CampaignPlanTests {
    private let noon = Timestamp(milliseconds: 1_000 * 86_400_000)

    /// Each offset in use twice: `+1` an hour before its own turn.
    private func order(of inUse: [UInt64]) throws -> [String] {
        var order: [String] = []
        var last: CampaignTurn?
        let highest = { (bound: UInt64) throws(StoreError) in inUse.last { $0 < bound } }
        while let next = try CampaignTurn.next(after: last, highest: highest) {
            order.append("\(next.offset)\(next.isEarly ? "+1" : "")")
            #expect(CampaignTurn(form: next.form) == next)
            #expect(next.clock <= last?.clock ?? .max)
            last = next
            try #require(order.count < 20)
        }
        return order
    }

    @Test func theEastIsFirstAndWhoSaidNothingComesWithUTC() throws {
        let inUse: [UInt64] = [1_440 - 480, 1_440, 1_440 + 60, 1_440 + 330]
        #expect(
            try order(of: inUse) == [
                "1770+1", "1770", "1500+1", "1500", "1440+1", "1440", "0", "960+1", "960",
            ])
        let plan = CampaignPlan(startsAt: noon, isLocal: true)
        let hours = ([1_770, 1_500, 1_440, 960] as [UInt64]).map { clock in
            Int64(plan.moment(onClock: clock).milliseconds) - Int64(noon.milliseconds)
        }.map { Double($0) / 3_600_000 }
        #expect(hours == [-5.5, -1, 0, 8])
    }

    @Test func eachOffsetHasItsTwoTurnsWhateverOthersThereAre() throws {
        #expect(try order(of: []) == ["0"])
        #expect(try order(of: [900]) == ["0", "900+1", "900"])
        #expect(try order(of: [1_380]) == ["1380+1", "0", "1380"])
        #expect(try order(of: [1_380, 1_440]) == ["1440+1", "1440", "1380+1", "0", "1380"])
        #expect(
            try order(of: [1, 2, 60, 61]) == [
                "0", "61+1", "60+1", "2+1", "61", "1+1", "60", "2", "1",
            ])
        #expect(try order(of: [2_880]) == ["2880+1", "2880", "0"])
        #expect(CampaignTurn(offset: 2_880, isEarly: true).clock == CampaignTurn.clockMax)
    }

    @Test func theShareIsAboutAsLargeAsSaidAndDiffersByCampaign() {
        var plan = CampaignPlan(startsAt: noon)
        plan.canaryShare = 500
        let devices = (0..<20_000).map { DeviceID(high: 7, low: UInt64($0)) }
        let first = CampaignID(high: 1, low: 1)
        let chosen = devices.filter { plan.isCanary($0, of: first) }
        #expect((800...1_200).contains(chosen.count))
        #expect(chosen.allSatisfy { plan.isCanary($0, of: first) })
        let other = devices.filter { plan.isCanary($0, of: CampaignID(high: 1, low: 2)) }
        #expect(Set(chosen).intersection(other).count < chosen.count / 2)
        plan.canaryShare = 0
        #expect(!devices.contains { plan.isCanary($0, of: first) })
    }

    @Test func rejectionsJumpWhenManyOfTheLatestAre() throws {
        var trend = RejectionTrend()
        for _ in 0..<9 { trend.add(isRejected: true) }
        // Nine wrong tokens are nine wrong tokens.
        #expect(!trend.isJump(percent: 25))
        trend.add(isRejected: true)
        #expect(trend.isJump(percent: 25))
        #expect(!trend.isJump(percent: 0))
        for _ in 0..<31 { trend.add(isRejected: false) }
        #expect(trend.answers == 41)
        #expect(!trend.isJump(percent: 25))
        for _ in 0..<200 { trend.add(isRejected: false) }
        #expect(trend.rejections == 0)
        #expect(trend.answers == RejectionTrend.answersMax)
        for _ in 0..<32 { trend.add(isRejected: true) }
        #expect(trend.isJump(percent: 25))
        let kept = try #require(RejectionTrend(encoded: trend.encoded))
        #expect(kept == trend)
        #expect(RejectionTrend(encoded: [1, 2]) == nil)
    }

    @Test func whatMakesNoSenseIsNamed() {
        func problem(_ change: (inout CampaignPlan) -> Void) -> String? {
            var plan = CampaignPlan(startsAt: noon)
            change(&plan)
            return plan.problem(now: noon)
        }
        #expect(problem { _ in } == nil)
        #expect(problem { $0.rate = 0 } != nil)
        #expect(problem { $0.canaryShare = 10_000 } != nil)
        #expect(problem { $0.canaryWait = 5 } != nil)
        #expect(problem { $0.stopPercent = 101 } != nil)
        #expect(problem { $0.startsAt = noon + 31 * 86_400_000 } != nil)
        // A start that has just been is meant for now; one that is long over is a slip.
        func before(_ minutes: UInt64) -> Timestamp {
            Timestamp(milliseconds: noon.milliseconds - minutes * 60_000)
        }
        #expect(problem { $0.startsAt = before(9) } == nil)
        #expect(problem { $0.startsAt = before(11) }?.contains("in the past") == true)
        // On walls in the west it is not over yet.
        #expect(
            problem {
                $0.startsAt = before(11)
                $0.isLocal = true
            } == nil)
        #expect(
            problem {
                $0.startsAt = before(24 * 60 + 11)
                $0.isLocal = true
            } != nil)
        #expect(
            problem {
                $0.canaryShare = 100
                $0.isLocal = true
            } != nil)
    }
}
