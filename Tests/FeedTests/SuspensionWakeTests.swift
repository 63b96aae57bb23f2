import Feed
import Model
import Testing
import Wake

/// A suspended user's phone is let in by nobody: that it does not come says nothing of it.
@Suite struct SuspensionWakeTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let bob = UserID("bob")

    /// A phone that a silent push has just been sent to.
    private func waking() throws -> Pushes {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room)
        #expect(try pushes.run(0) == ["silent"])
        return pushes
    }

    /// How often the phone's row is written meanwhile, to the minute.
    private func writes(_ pushes: Pushes, for time: Milliseconds) throws -> Int {
        var (count, known) = (0, try pushes.world.all(WakeRecord.self))
        for _ in 0..<time / 60_000 {
            #expect(try pushes.run(60_000) == [])
            let row = try pushes.world.all(WakeRecord.self)
            if row != known { count += 1 }
            known = row
        }
        return count
    }

    @Test func whoIsSuspendedMeanwhileIsNotGivenUp() throws {
        let pushes = try waking()
        try pushes.world.expectDone(.suspendUser(World.app, bob))
        #expect(try pushes.run(300_000) == [])
        #expect(try pushes.view(phone).reachability != .unreachable)
        // However long that is, a look each quarter of an hour is all that is written.
        #expect(try writes(pushes, for: 36_000_000) == 40)
        try pushes.world.expectDone(.resumeUser(World.app, bob))
        #expect(try pushes.run(31_000) == ["silent"])
        #expect(try pushes.run(62_000) == [#"alert "1" badge 1 stored"#])
    }

    @Test func whoWasSuspendedForAMomentIsWokenAgain() throws {
        let pushes = try waking()
        try pushes.world.expectDone(.suspendUser(World.app, bob))
        try pushes.run(20_000)
        try pushes.world.expectDone(.resumeUser(World.app, bob))
        // It may have come and been turned away.
        #expect(try pushes.run(59_000) == ["silent"])
        #expect(try pushes.view(phone).reachability == .waking)
    }

    /// What APNs asked for holds after a suspension as it does without one.
    @Test(arguments: [false, true])
    func whatAPNsAskedForOutlivesASuspension(isAnsweredLater: Bool) throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room)
        let job = try #require(try pushes.claim().first)
        let tooMany = PushReply.answered(
            status: 429, reason: "TooManyRequests", timestamp: nil, retryAfter: 600_000)
        if !isAnsweredLater { try pushes.finish(job, tooMany) }
        try pushes.world.expectDone(.suspendUser(World.app, bob))
        if isAnsweredLater { try pushes.finish(job, tooMany) }
        #expect(try pushes.run(5_000) == [])
        try pushes.world.expectDone(.resumeUser(World.app, bob))
        try pushes.say("fire", in: room, .urgent)
        #expect(try pushes.run(590_000) == [])
        #expect(try pushes.run(10_000).first?.hasPrefix(#"alert "fire"#) ?? false)
    }

    /// New messages meanwhile are no reason to look at the phone again, nor do they wait behind.
    @Test func whatComesMeanwhileLeavesWhenTheUserIsResumed() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("0", in: room)
        #expect(try pushes.run(61_000).count == 2)
        try pushes.world.expectDone(.suspendUser(World.app, bob))
        try pushes.say("1", in: room)
        #expect(try pushes.run(2_000) == [])
        try pushes.say("2", in: room)
        try pushes.say("fire", in: room, .urgent)
        #expect(try pushes.run(1_200_000) == [])
        try pushes.world.expectDone(.resumeUser(World.app, bob))
        let words = try pushes.run(31_000)
        #expect(words.first?.hasPrefix(#"alert "fire"#) ?? false, "\(words)")
        #expect(words.count == 3, "\(words)")
    }

    @Test func thePhonesOfASuspendedAppAreNotGivenUp() throws {
        let pushes = try waking()
        try pushes.world.expectDone(.suspendApp(World.app))
        #expect(try pushes.run(300_000) == [])
        // However long that is, nothing is written for a phone that nothing is sent to.
        let row = try pushes.world.all(WakeRecord.self)
        #expect(try pushes.run(3_600_000) == [])
        #expect(try pushes.world.all(WakeRecord.self) == row)
        try pushes.world.expectDone(.resumeApp(World.app))
        #expect(try pushes.run(0) == ["silent"])
    }
}
