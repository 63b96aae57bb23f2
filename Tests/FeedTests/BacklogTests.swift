import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// What leaves first, and how fast, when many pushes wait.
@Suite struct BacklogTests {
    /// Devices that sleep, each of a user of its own, all in one conversation.
    private func crowd(_ count: Int) throws -> (Pushes, ConversationID) {
        let pushes = try Pushes()
        let world = pushes.world
        let users = (0..<count).map { "user\(1_000 + $0)" }
        let room = try world.converse(["anna"])
        for (index, user) in users.enumerated() {
            let answer = try world.ask(
                .openSession(
                    OpenSession(
                        app: World.app, device: DeviceID(high: 3, low: UInt64(index)),
                        role: .app, credential: .identity(UserID(user)),
                        newTokenHash: world.hash(), freshEpochHalf: 5, boot: pushes.boot,
                        push: PushRegistration(
                            token: [UInt8(index & 255), UInt8(index >> 8), 1],
                            environment: .development, topic: "example.chess"))))
            guard case .opened(let opened) = answer else { throw Unexpected(answer: answer) }
            try pushes.end(opened.session, within: 0)
        }
        _ = try world.add(users, to: room)
        try world.finishFanOut()
        try pushes.tick()
        world.pass(1_000)
        try world.ask(.sweepWakes(rows: 1_000))
        return (pushes, room)
    }

    /// As a gateway with many free streams does: claim upon claim while something is due.
    private func claimAll(_ pushes: Pushes) throws -> [PushJob] {
        var all: [PushJob] = []
        while true {
            let jobs = try pushes.claim(streams: 256)
            if jobs.isEmpty { return all }
            all += jobs
        }
    }

    @Test func withoutAnOutageABacklogLeavesAsFastAsThereAreStreams() throws {
        let (pushes, room) = try crowd(250)
        try pushes.world.publish("1", to: room, from: "anna")
        try pushes.world.finishFanOut()
        // APNs is away for ten seconds; the server is not.
        for _ in 0..<10 {
            pushes.world.pass(1_000)
            try pushes.tick()
        }
        #expect(try claimAll(pushes).count == 250)
    }

    @Test func afterAnOutageOfOursOverdueRowsLeaveAtALimitedRate() throws {
        let (pushes, room) = try crowd(250)
        try pushes.world.publish("1", to: room, from: "anna")
        try pushes.world.finishFanOut()
        // Nobody serves for ten seconds.
        pushes.world.pass(10_000)
        try pushes.tick()
        #expect(try claimAll(pushes).count == 200)
        #expect(try pushes.claim(streams: 250).isEmpty)
        pushes.world.pass(1_000)
        #expect(try claimAll(pushes).count == 50)
    }

    /// What a suspension held has waited for its app, and not for the server.
    @Test func whatASuspensionHeldLeavesAsFastAsThereAreStreams() throws {
        let (pushes, room) = try crowd(250)
        try pushes.world.publish("1", to: room, from: "anna")
        try pushes.world.finishFanOut()
        try pushes.world.expectDone(.suspendApp(World.app))
        try pushes.tick()
        // Nobody serves for ten seconds meanwhile.
        pushes.world.pass(10_000)
        try pushes.tick()
        #expect(try claimAll(pushes).isEmpty)
        try pushes.world.expectDone(.resumeApp(World.app))
        #expect(try claimAll(pushes).count == 250)
    }

    /// What an outage held before the suspension, or after it, has waited for the server.
    @Test(arguments: [true, false])
    func anOutageThatIsNotOfTheSuspensionsTimeCounts(isBefore: Bool) throws {
        let (pushes, room) = try crowd(250)
        try pushes.world.publish("1", to: room, from: "anna")
        try pushes.world.finishFanOut()
        if isBefore {
            pushes.world.pass(10_000)
            try pushes.tick()
        }
        try pushes.world.expectDone(.suspendApp(World.app))
        try pushes.tick()
        pushes.world.pass(1_000)
        try pushes.world.expectDone(.resumeApp(World.app))
        if !isBefore {
            pushes.world.pass(10_000)
            try pushes.tick()
        }
        #expect(try claimAll(pushes).count == 200)
    }

    /// A node of an earlier version has resumed the app and knows nothing of this row; or the row
    /// cannot be read. The rate stays, and nobody's pushes are held up.
    @Test(arguments: [true, false])
    func aSuspensionThatHasNoEndCountsForNothing(isReadable: Bool) throws {
        let (pushes, room) = try crowd(250)
        try pushes.world.publish("1", to: room, from: "anna")
        try pushes.world.finishFanOut()
        try pushes.world.tamper { transaction throws(StoreError) in
            var row = MetaRecord(
                name: MetaRecord.suspensionsPrefix + World.app.name,
                number: pushes.world.now.milliseconds, bytes: []
            ).row
            if !isReadable { row[1] = .integer(-1) }
            try transaction.put(MetaRecord.table, row)
        }
        pushes.world.pass(10_000)
        try pushes.tick()
        var told: [UnreadableRow] = []
        pushes.world.committed = { told += $0.flatMap(\.effects.unreadable) }
        defer { pushes.world.committed = { _ in } }
        #expect(try claimAll(pushes).count == 200)
        #expect(told.isEmpty == isReadable, "whoever runs the server is told of it")
    }

    @Test func urgentAlertsDoNotWaitForTheRateAfterAnOutage() throws {
        let (pushes, room) = try crowd(250)
        try pushes.world.publish("1", to: room, from: "anna")
        try pushes.world.finishFanOut()
        let side = try pushes.world.converse(["anna", "user1007"])
        try pushes.say("fire", in: side, .urgent)
        pushes.world.pass(10_000)
        try pushes.tick()
        let all = try claimAll(pushes)
        #expect(all.count == 201)
        #expect(all.prefix(64).count { $0.kind == .alert } == 1)
    }

    @Test func anUrgentAlertThatCameAfterAnOverdueWakeDoesNotWaitForTheRate() throws {
        let (pushes, room) = try crowd(250)
        try pushes.world.publish("1", to: room, from: "anna")
        try pushes.world.finishFanOut()
        let side = try pushes.world.converse(["anna", "user1007"])
        // Its wake is due when the urgent one comes.
        pushes.world.pass(1_000)
        try pushes.say("fire", in: side, .urgent)
        pushes.world.pass(10_000)
        try pushes.tick()
        // A gateway of few streams.
        let first = try pushes.claim(streams: 4)
        #expect(first.count == 4 && first.count { $0.kind == .alert } == 1)
        #expect(try claimAll(pushes).count == 197)
    }

    @Test func anUrgentAlertThatWaitedForAnAckDoesNotStandBehindWakes() throws {
        let (pushes, room) = try crowd(60)
        // Beside a session the urgent one has two seconds; the timed one of the same phone none.
        let side = try pushes.world.converse(["anna", "user1007"])
        let phone = DeviceID(high: 3, low: 7)
        let session = try pushes.open("user1007", phone, token: 9).session
        try pushes.acknowledge(session, try pushes.head("user1007"))
        pushes.world.pass(10_000)
        try pushes.tick()
        try pushes.world.publish("1", to: room, from: "anna")
        try pushes.world.finishFanOut()
        try pushes.say("fire", in: side, .urgent)
        try pushes.say("timed", in: side, pushes.at(0))
        for _ in 0..<3 {
            pushes.world.pass(1_000)
            try pushes.tick()
        }
        let first = try #require(try pushes.claim(streams: 1).first)
        #expect(first.word.hasPrefix(#"alert "fire"#), "\(first.word)")
    }

    @Test func urgentAlertsLeaveBeforeEveryWake() throws {
        let (pushes, room) = try crowd(60)
        try pushes.world.publish("1", to: room, from: "anna")
        try pushes.world.finishFanOut()
        for user in 0..<20 {
            let side = try pushes.world.converse(["anna", "user\(1_000 + user)"])
            try pushes.say("fire", in: side, .urgent)
        }
        let first = try pushes.claim(streams: 32)
        #expect(first.count { $0.kind == .alert } == 20)
    }
}
