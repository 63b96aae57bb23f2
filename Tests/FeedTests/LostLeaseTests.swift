import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// Pushes whose process ended before it had their answers: nobody knows whether they left.
@Suite struct LostLeaseTests {
    private let phone = DeviceID(high: 2, low: 1)

    /// The process that has claimed something is killed, and another one starts.
    private func kill(_ pushes: Pushes) throws {
        pushes.boot = BootID(high: 9, low: pushes.boot.low + 1)
        pushes.world.pass(3_000)
        try pushes.world.ask(.start(boot: pushes.boot, epochHalf: 1))
    }

    /// Each process is killed as soon as it has claimed a push, so many times.
    private func killEach(_ pushes: Pushes, _ times: Int, _ kind: PushKind) throws {
        for turn in 0..<times {
            var jobs: [PushJob] = []
            for _ in 0..<1_000 where jobs.isEmpty {
                try pushes.tick()
                try pushes.advanceCampaigns()
                jobs = try pushes.claim()
                if jobs.isEmpty { pushes.world.pass(1_000) }
            }
            #expect(jobs.map(\.kind) == [kind], "turn \(turn)")
            try kill(pushes)
        }
    }

    @Test(arguments: [Urgency.normal, .urgent])
    func anAlertOutlivesManyKilledProcesses(urgency: Urgency) throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("0", in: room)
        #expect(try pushes.run(61_000).count == 2)
        try pushes.say("1", in: room, urgency)
        try killEach(pushes, 12, .alert)
        #expect(try pushes.run(1_000_000).first == #"alert "1 (and 1 more)" badge 2 stored"#)
    }

    @Test func aBadgeOutlivesManyKilledProcesses() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("0", in: room)
        #expect(try pushes.run(61_000).count == 2)
        let other = try pushes.open("bob", DeviceID(high: 2, low: 2), token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"), reads: [ReadReceipt(conversation: room, through: 1)])
        try killEach(pushes, 12, .badge)
        #expect(try pushes.run(1_000_000) == ["badge badge 0 stored"])
    }

    @Test func aCampaignsPushOutlivesManyKilledProcesses() throws {
        let campaigns = try Campaigns()
        try campaigns.phone(1)
        let id = try campaigns.create()
        try killEach(campaigns.pushes, 12, .campaign)
        for _ in 0..<1_000 where try campaigns.state(id) != .finished {
            try campaigns.pushes.tick()
            try campaigns.send()
            campaigns.world.pass(1_000)
        }
        #expect(try campaigns.counts(id).accepted == 1)
    }

    /// The times between them are those of pushes without an answer: each may have rung.
    @Test func itIsNotRepeatedInHaste() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("0", in: room)
        #expect(try pushes.run(61_000).count == 2)
        try pushes.say("1", in: room)
        let began = pushes.world.now
        try killEach(pushes, 8, .alert)
        #expect(pushes.world.now.since(began) > 600_000)
    }
}
