import Feed
import MemoryStore
import Model
import Testing
import Wake

/// The share of a campaign's devices that gets it first.
@Suite struct CampaignCanaryTests {
    private let campaigns: Campaigns
    private var world: World { campaigns.world }

    init() throws { campaigns = try Campaigns() }

    @Test func theCanaryShareGoesFirstAndWaitsForALook() throws {
        try campaigns.phones(1...60)
        let id = try campaigns.create { $0.plan.canaryShare = 2_000 }
        let first = try campaigns.send()
        #expect((2...30).contains(first.count))
        #expect(try campaigns.state(id) == .review)
        world.pass(86_400_000)
        try campaigns.pushes.tick()
        #expect(try campaigns.send() == [])
        #expect(try campaigns.control(id, .resume) == .running)
        let rest = try campaigns.send()
        #expect((first + rest).count == 60 && Set(first + rest).count == 60)
        #expect(try campaigns.state(id) == .finished)
        #expect(try campaigns.counts(id).canaryAccepted == UInt64(first.count))
    }

    @Test func afterItsWaitItGoesOnByItselfWhenFewWereRejected() throws {
        try campaigns.phones(1...60)
        let id = try campaigns.create {
            $0.plan.canaryShare = 2_000
            $0.plan.canaryWait = 600_000
        }
        let first = try campaigns.send()
        world.pass(599_000)
        try campaigns.pushes.tick()
        #expect(try campaigns.send() == [])
        world.pass(1_000)
        #expect(try campaigns.send().count == 60 - first.count)
        #expect(try campaigns.state(id) == .finished)
    }

    @Test func afterItsWaitItStopsWhenManyWereRejected() throws {
        try campaigns.phones(1...60)
        let id = try campaigns.create {
            $0.plan.canaryShare = 2_000
            $0.plan.canaryWait = 600_000
        }
        var number = 0
        try campaigns.send { _ in
            number += 1
            return .answered(
                status: number % 3 == 0 ? 400 : 200,
                reason: number % 3 == 0 ? "BadDeviceToken" : "", timestamp: nil)
        }
        #expect(try campaigns.state(id) == .review)
        world.pass(600_000)
        try campaigns.pushes.tick()
        #expect(try campaigns.send() == [])
        #expect(try campaigns.state(id) == .stopped)
        #expect(try campaigns.view(id).progress.reason.contains("BadDeviceToken"))
        // Somebody looked, and wants it all the same.
        #expect(try campaigns.control(id, .resume) == .running)
        #expect(try campaigns.send().count > 20)
    }

    /// Nobody has looked at anything: the rest is not told without a person, wait or not.
    @Test(arguments: [nil, 600_000] as [Milliseconds?])
    func aCanaryShareWithoutADeviceWaitsForALook(_ wait: Milliseconds?) throws {
        try campaigns.phones(1...3)
        let id = try campaigns.create {
            $0.plan.canaryShare = 1
            $0.plan.canaryWait = wait
        }
        #expect(try campaigns.send() == [])
        world.pass(86_400_000)
        try campaigns.pushes.tick()
        #expect(try campaigns.send() == [])
        let held = try campaigns.view(id).progress
        #expect(held.state == .review && held.reviewUntil == nil)
        #expect(held.reason.contains("resume"), "\(held.reason)")
        #expect(try campaigns.control(id, .resume) == .running)
        #expect(try campaigns.send().count == 3)
        let over = try campaigns.view(id).progress
        #expect(over.state == .finished && over.reason.isEmpty)
    }

    @Test func aCanaryShareThatNobodyAnsweredForWaitsForALook() throws {
        try campaigns.phones(1...60)
        let id = try campaigns.create {
            $0.plan.canaryShare = 2_000
            $0.plan.canaryWait = 1_000
        }
        try campaigns.advance()
        // Every phone gives up its token before its turn comes.
        try world.tamper { transaction throws(StoreError) in
            for var device in try transaction.records(DeviceRecord.self, Scan(limit: 100)) {
                device.pushToken = nil
                device.tokenConfirmedAt = nil
                try transaction.put(device)
            }
        }
        #expect(try campaigns.send() == [])
        world.pass(86_400_000)
        try campaigns.pushes.tick()
        #expect(try campaigns.send() == [])
        #expect(try campaigns.state(id) == .review)
    }

    @Test func itsWaitIsNoLongerForAClockThatWasAhead() throws {
        world.pass(100 * 86_400_000)
        try campaigns.pushes.tick()
        try campaigns.phones(1...60)
        let id = try campaigns.create {
            $0.plan.canaryShare = 2_000
            $0.plan.canaryWait = 600_000
        }
        let right = world.now
        world.store.clock = right + 86_400_000
        try campaigns.pushes.tick()
        let first = try campaigns.send()
        #expect(try campaigns.state(id) == .review)
        world.store.clock = right + 6_000
        try campaigns.pushes.tick()
        #expect(try campaigns.send() == [])
        world.pass(599_000)
        try campaigns.pushes.tick()
        #expect(try campaigns.send() == [])
        world.pass(1_000)
        #expect(try campaigns.send().count == 60 - first.count)
    }

    /// Also where nobody has noticed yet that the clock was set.
    @Test(arguments: [true, false])
    func aClockThatIsAheadForAWhileEndsNoCampaign(isNoticed: Bool) throws {
        world.pass(100 * 86_400_000)
        try campaigns.pushes.tick()
        try campaigns.phones(1...3)
        let right = world.now
        let id = try campaigns.create { $0.plan.startsAt = right + 86_400_000 }
        try campaigns.advance()
        world.store.clock = right + 40 * 86_400_000
        if isNoticed { try campaigns.pushes.tick() }
        #expect(try campaigns.send() == [])
        world.store.clock = right + 6_000
        try campaigns.pushes.tick()
        #expect(try campaigns.send() == [])
        #expect(try campaigns.state(id) == .scheduled)
        world.pass(86_400_000)
        try campaigns.pushes.tick()
        #expect(try campaigns.send().count == 3)
    }
}
