import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// The app comes with another push token while a push to the old one is under way.
@Suite struct OldTokenTests {
    private let phone = DeviceID(high: 2, low: 1)

    private func unreachable() throws -> (Pushes, ConversationID) {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("0", in: room)
        #expect(try pushes.run(61_000).count == 2)
        #expect(try pushes.view(phone).reachability == .unreachable)
        return (pushes, room)
    }

    /// What APNs took for the old token may never arrive: the new one gets it.
    @Test(arguments: [Urgency.normal, .urgent])
    func anAlertThatTheOldTokenGotIsSentToTheNewOne(urgency: Urgency) throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room, urgency)
        let job = try #require(try pushes.claim().first)
        #expect(job.request.token == [1, 1])
        // It says HELLO, and does not sync.
        let session = try pushes.open("bob", phone, token: 9).session
        try pushes.finish(job)
        try pushes.end(session, within: 0)
        let words = try pushes.run(120_000)
        #expect(words.contains { $0.hasPrefix(#"alert "1"#) }, "\(words)")
        let alerts = pushes.sent.suffix(from: pushes.sent.firstIndex { $0.key == job.key }! + 1)
            .filter { $0.kind == .alert }
        #expect(alerts.map(\.request.token) == [[9, 9]])
        #expect(alerts.first?.request.collapseID == job.request.collapseID)
        #expect(try pushes.view(phone).device.wasAlerted)
    }

    /// What it told of is told to the new one, too.
    @Test func aSummaryThatTheOldTokenGotSettlesNothing() throws {
        let (pushes, room) = try unreachable()
        try pushes.run(60_000)
        for number in 1...8 { try pushes.say("\(number)", in: room) }
        #expect(try pushes.run(1_000).count == 5)
        pushes.world.pass(60_000)
        try pushes.tick()
        let job = try #require(try pushes.claim().first)
        #expect(job.word == #"alert "8 (and 8 more)" badge 9 stored"#)
        let session = try pushes.open("bob", phone, token: 9).session
        try pushes.finish(job)
        try pushes.end(session, within: 0)
        let words = try pushes.run(300_000)
        #expect(words.contains { $0.hasPrefix(#"alert "8 (and 8 more)"#) }, "\(words)")
    }

    /// Who has synced with the new token has seen it.
    @Test func whoHasSyncedMeanwhileGetsNoneOfIt() throws {
        let (pushes, room) = try unreachable()
        try pushes.say("1", in: room)
        let job = try #require(try pushes.claim().first)
        let session = try pushes.open("bob", phone, token: 9).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.finish(job)
        try pushes.end(session, within: 0)
        #expect(try pushes.run(120_000) == [])
    }

    /// The number that the old one shows is not the new one's.
    @Test func aBadgeThatTheOldTokenGotIsSentToTheNewOne() throws {
        let (pushes, room) = try unreachable()
        let other = try pushes.open("bob", DeviceID(high: 2, low: 2), token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"), reads: [ReadReceipt(conversation: room, through: 1)])
        pushes.world.pass(2_000)
        try pushes.tick()
        let job = try #require(try pushes.claim().first)
        #expect(job.kind == .badge)
        let session = try pushes.open("bob", phone, token: 9).session
        try pushes.finish(job)
        try pushes.end(session, within: 0)
        #expect(try pushes.run(5_000) == ["badge badge 0 stored"])
        #expect(pushes.sent.last?.request.token == [9, 9])
    }
}
