import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// Urgent alerts of one device of which APNs does not take one: the others do not wait for it.
@Suite struct UrgentBackOffTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let fault = PushReply.answered(
        status: 503, reason: "ServiceUnavailable", timestamp: nil)
    private let pushes: Pushes
    private let room: ConversationID

    init() throws {
        (pushes, room) = try Pushes.sleeping()
        try pushes.say("0", in: room)
        try pushes.run(62_000)
        try pushes.run(120_000)
    }

    private func take() throws -> PushJob {
        try pushes.tick()
        return try #require(try pushes.claim().first)
    }

    @Test func oneThatCameWhileAnotherWasUnderWayLeavesAtOnce() throws {
        try pushes.say("fire", in: room, .urgent)
        let first = try take()
        try pushes.say("flood", in: room, .urgent)
        try pushes.finish(first, fault)
        #expect(try take().word.hasPrefix(#"alert "flood"#))
    }

    @Test func oneThatWaitedBehindAnotherLeavesAtOnce() throws {
        try pushes.say("fire", in: room, .urgent)
        try pushes.say("flood", in: room, .urgent)
        let first = try take()
        #expect(first.word.hasPrefix(#"alert "fire"#))
        try pushes.finish(first, fault)
        #expect(try take().word.hasPrefix(#"alert "flood"#))
    }

    /// The first one's own back-off ends when APNs takes pushes again.
    @Test func oneThatComesMeanwhileLeavesAtOnce() throws {
        try pushes.say("fire", in: room, .urgent)
        for wait in [5_000, 10_000, 20_000] as [Milliseconds] {
            try pushes.finish(try take(), fault)
            pushes.world.pass(wait)
        }
        try pushes.finish(try take(), fault)
        pushes.world.pass(1_000)
        try pushes.say("flood", in: room, .urgent)
        let next = try take()
        #expect(next.word.hasPrefix(#"alert "flood"#))
        #expect(try pushes.claim() == [])
        try pushes.finish(next)
        #expect(try take().word.hasPrefix(#"alert "fire"#))
    }

    /// What APNs asks for the device holds them all.
    @Test func whatAPNsAskedForTheDeviceHoldsThemAll() throws {
        try pushes.say("fire", in: room, .urgent)
        try pushes.say("flood", in: room, .urgent)
        let tooMany = PushReply.answered(
            status: 429, reason: "TooManyRequests", timestamp: nil, retryAfter: 30_000)
        try pushes.finish(try take(), tooMany)
        #expect(try pushes.run(29_000) == [])
        #expect(try pushes.run(1_000).count == 2)
    }

    /// Where APNs takes none of them, they do not spur each other on.
    @Test(arguments: [2, 6])
    func whereNoneIsTakenTheyBackOffTogether(count: Int) throws {
        for number in 1...count { try pushes.say("\(number)", in: room, .urgent) }
        let tries = try pushes.run(600_000, answering: { _ in fault }).count
        #expect(tries <= count + 15, "\(tries)")
        #expect(try pushes.run(61_000).count == count)
    }

    /// One that can never be sent is given up, and each of the others has its turns meanwhile.
    @Test func oneThatIsNeverTakenHoldsNoOther() throws {
        try pushes.say("poison", in: room, .urgent)
        try pushes.say("met a fault", in: room, .urgent)
        let nonsense = PushReply.answered(status: 418, reason: "", timestamp: nil)
        var hadFault = false
        var told: [String] = []
        for _ in 0..<1_500 {
            try pushes.tick()
            for job in try pushes.claim() {
                if job.word.contains("poison") {
                    told.append("poison")
                    try pushes.finish(job, nonsense)
                } else if !hadFault {
                    hadFault = true
                    try pushes.finish(job, fault)
                } else {
                    told.append("sent")
                    try pushes.finish(job)
                }
            }
            pushes.world.pass(1_000)
        }
        #expect(told.prefix(4).contains("sent"), "\(told)")
        #expect((7...14).contains(told.count { $0 == "poison" }), "\(told)")
        #expect(try pushes.world.all(AlertRecord.self).allSatisfy { $0.phase != .queued })
    }
}
