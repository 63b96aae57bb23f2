import MemoryStore
import Model
import Testing
import Wake

@testable import Feed

/// Campaigns of a suspended app: nobody looks at them but once in a while, and they go on where the
/// app does.
@Suite struct CampaignRestTests {
    private let campaigns: Campaigns
    private var world: World { campaigns.world }

    init() throws {
        campaigns = try Campaigns()
        world.pass(100 * 86_400_000)
        try world.ask(.keepAlive)
    }

    private func suspend() throws { try world.expectDone(.suspendApp(World.app)) }
    private func resume() throws { try world.expectDone(.resumeApp(World.app)) }

    private func nextDue() throws -> Timestamp? {
        var due: Timestamp?
        try world.store.read { snapshot throws(StoreError) in
            due = try Rules.nextDue(in: snapshot, now: world.now)
        }
        return due
    }

    /// How often something is written for campaigns meanwhile, looked at each second.
    private func writes(for seconds: Int) throws -> Int {
        var count = 0
        for _ in 0..<seconds {
            world.pass(1_000)
            try campaigns.pushes.tick()
            let known = try world.all(CampaignProgressRecord.self)
            try campaigns.advance()
            #expect(try campaigns.pushes.claim().isEmpty)
            if try world.all(CampaignProgressRecord.self) != known { count += 1 }
        }
        return count
    }

    @Test func itRestsAndGoesOnAtOnce() throws {
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        try suspend()
        #expect(try writes(for: 3_600) <= 5)
        let due = try #require(try nextDue())
        #expect(due.since(world.now) > 0)
        // A claim does not look at it either.
        #expect(try campaigns.view(id).progress.sendingSince == nil)
        try resume()
        #expect(try campaigns.pushes.claim().count == 3)
    }

    /// Not before its last pushes are answered, be the app suspended meanwhile or not.
    @Test func whatIsUnderWayIsCountedAndEndsNoRest() throws {
        try campaigns.phones(1...4)
        let id = try campaigns.create()
        try campaigns.advance()
        let jobs = try campaigns.pushes.claim(streams: 2)
        #expect(jobs.count == 2)
        try suspend()
        try campaigns.advance()
        for job in jobs { try campaigns.pushes.finish(job) }
        #expect(try campaigns.counts(id).accepted == 2)
        #expect(try campaigns.view(id).progress.sendingSince == nil)
        #expect(try writes(for: 600) <= 1)
        try resume()
        #expect(try campaigns.send().count == 2)
        #expect(try campaigns.state(id) == .finished)
    }

    /// With its own wait after the share that goes first, and with the hour of each device.
    @Test func whatWaitsForAMomentGoesOnToo() throws {
        try campaigns.phones(1...60)
        let review = try campaigns.create {
            $0.plan.canaryShare = 2_000
            $0.plan.canaryWait = 600_000
        }
        let first = try campaigns.send().count
        let later = try campaigns.create { $0.plan.startsAt = world.now + 1_200_000 }
        try suspend()
        #expect(try writes(for: 3_600) <= 10)
        try resume()
        // A device is sent one at a time.
        #expect(try campaigns.run(seconds: 8).joined().count == 120 - first)
        #expect(try campaigns.state(review) == .finished)
        #expect(try campaigns.state(later) == .finished)
    }

    private func rest(_ duration: Milliseconds) throws {
        world.pass(duration)
        try world.ask(.rested(duration))
    }

    @Test func itEndsThirtyDaysAfterItsStartAllTheSame() throws {
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        try suspend()
        for _ in 0..<30 {
            #expect(try campaigns.state(id) == .canary || campaigns.state(id) == .running)
            try campaigns.advance()
            try rest(86_400_000)
        }
        try campaigns.advance()
        #expect(try campaigns.state(id) == .cancelled)
        #expect(try campaigns.view(id).progress.reason.contains("30 days"))
        #expect(try campaigns.counts(id).cancelled == 3)
        #expect(try nextDue() == nil)
        try resume()
        #expect(try campaigns.send() == [])
    }

    /// Paused before its first look, and while some of it waits.
    @Test(arguments: [true, false], [CampaignControl.resume, .cancel])
    func whatWasPausedGoesOnOrEndsAtOnce(isStarted: Bool, control: CampaignControl) throws {
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        if isStarted { try campaigns.advance() }
        try campaigns.control(id, .pause)
        try campaigns.advance()
        world.pass(1_000)
        try campaigns.control(id, control)
        if control == .resume {
            #expect(try campaigns.send().count == 3)
            #expect(try campaigns.state(id) == .finished)
        } else {
            try campaigns.advance()
            #expect(try campaigns.view(id).progress.finishedAt == world.now)
            #expect(try campaigns.counts(id).cancelled == (isStarted ? 3 : 0))
        }
    }

    /// Paused, or waiting for somebody's look: it is not over then, and is cancelled.
    @Test(arguments: [true, false])
    func whatSomebodyHoldsEndsThirtyDaysAfterItsStart(isPaused: Bool) throws {
        try campaigns.phones(1...60)
        let id = try campaigns.create { $0.plan.canaryShare = isPaused ? 0 : 2_000 }
        if isPaused {
            try campaigns.advance()
            try campaigns.control(id, .pause)
        } else {
            try campaigns.send()
        }
        let state = try campaigns.state(id)
        #expect(state == (isPaused ? .paused : .review))
        try rest(CampaignPlan.lifetime - 1)
        try campaigns.advance()
        #expect(try campaigns.state(id) == state)
        #expect(try campaigns.send() == [])
        try rest(1)
        try campaigns.advance()
        #expect(try campaigns.state(id) == .cancelled)
        #expect(try nextDue() == nil)
    }
}
