import Model
import Testing
import Wake
import Wire

@testable import Feed

/// What a device is owed in pushes is its user's row to protect, whoever is at it.
struct TwoWritersPushTests {
    let pushes: Pushes
    let phone = DeviceID(high: 5, low: 1)
    let tablet = DeviceID(high: 5, low: 2)
    private var world: World { pushes.world }
    private var both: TwoWriters { TwoWriters(world) }

    init() throws { pushes = try Pushes() }

    private func asleep(_ user: String, _ device: DeviceID, token: UInt8) throws {
        let session = try pushes.open(user, device, token: token).session
        try pushes.end(session, within: 10)
    }

    private func claim(_ count: UInt64) -> StoreRequest {
        .claimPushes(
            ClaimPushes(
                boot: pushes.boot, streams: Int(count),
                ids: (0..<count).map { WakeID(high: 8, low: $0) }))
    }

    @Test func eachDroppedTokenIsReported() throws {
        try asleep("anna", phone, token: 1)
        try asleep("ben", tablet, token: 2)
        try world.publish("one", to: try world.converse(["anna", "ben"]))
        world.pass(2_000)
        try world.ask(.sweepWakes(rows: 10))
        let jobs = try pushes.claim()
        try #require(jobs.count == 2)
        let dead = jobs.map { job in
            StoreRequest.finishPush(
                FinishPush(
                    key: job.key, id: job.request.id,
                    reply: .answered(
                        status: 410, reason: "Unregistered", timestamp: world.now)))
        }
        try both.meet(dead[0], dead[1]) { met throws in
            let tokens = try met.all(TokenFeedbackRecord.self).map(\.token)
            #expect(Set(tokens).count == 2, "read \(met.read)")
        }
    }

    @Test func anAlertThatExpiresTakesNothingOfAnother() throws {
        try asleep("anna", phone, token: 1)
        let room = try world.converse(["anna", "ben"])
        func publish() -> StoreRequest {
            var options = PushOptions()
            options.urgency = .urgent
            return .publish(
                app: World.app,
                Publication(
                    message: world.message0("one", to: room, world.fresh()), sender: "",
                    options: options), idempotency: nil)
        }
        try world.ask(publish())
        world.pass(31 * 86_400_000)
        for _ in 0..<310 {
            try world.ask(.keepAlive)
            world.pass(2_000)
        }
        try world.ask(.keepAlive)
        try both.meet(.sweepWakes(rows: 10), publish()) { met throws in
            let open = try met.all(AlertRecord.self).filter { $0.phase.isOpen }
            let wake = try #require(try met.all(WakeRecord.self).first)
            #expect(wake.alertsOpen == UInt64(open.count), "read \(met.read)")
            #expect(wake.alertsOpen == 1, "read \(met.read)")
        }
    }

    @Test func aPushTakenBackIsNotUnderWay() throws {
        let campaigns = try Campaigns()
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        let cancel = StoreRequest.campaigns(
            .control(World.app, id, .cancel, idempotency: nil))
        let both = TwoWriters(campaigns.world)
        try both.meet(claim(8), cancel, .campaigns(.advance(devices: 10))) { met throws in
            let flying = try met.all(WakeRecord.self).filter { $0.flight == .campaign }
            let sending = try met.all(CampaignPushRecord.self).filter { $0.phase == .sending }
            #expect(flying.map(\.device) == sending.map(\.device), "read \(met.read)")
            let progress = try #require(try met.all(CampaignProgressRecord.self).first)
            #expect(progress.counts.flying == UInt64(flying.count), "read \(met.read)")
        }
    }

    @Test func aPushIsClaimedOnce() throws {
        try asleep("anna", phone, token: 1)
        try asleep("ben", tablet, token: 2)
        try world.publish("one", to: try world.converse(["anna", "ben"]))
        world.pass(2_000)
        try world.ask(.sweepWakes(rows: 10))
        try both.meet(claim(4), claim(4)) { met throws in
            var keys: [PushJobKey] = []
            for case .pushes(let claimed) in [met.first, met.second] {
                keys += claimed.jobs.map(\.key)
            }
            #expect(Set(keys.map(\.device)).count == 2, "read \(met.read)")
            #expect(keys.count == 2, "read \(met.read)")
        }
    }

    @Test func anOutageIsNoticedOnce() throws {
        try world.ask(.keepAlive)
        world.pass(60_000)
        try both.meet(.keepAlive, .keepAlive) { met throws in
            let alive = try met.record(MetaRecord.self, [.text(MetaRecord.aliveName)])
            #expect(alive?.number == world.now.milliseconds, "read \(met.read)")
        }
    }
}
