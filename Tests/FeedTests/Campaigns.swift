import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// Phones of many users, and a campaign's way to them.
final class Campaigns {
    static let app = World.app
    let pushes: Pushes
    var world: World { pushes.world }
    /// What each phone shows, by collapse id, and how often it was told.
    var shown: [DeviceID: [String: Int]] = [:]

    init(_ pushes: Pushes? = nil) throws { self.pushes = try pushes ?? Pushes() }

    /// A phone that has a token and sleeps.
    @discardableResult
    func phone(
        _ number: UInt64, user: String? = nil, _ change: (inout DeviceRecord) -> Void = { _ in }
    ) throws -> DeviceID {
        let id = DeviceID(high: 2, low: number)
        var device = DeviceRecord(
            app: Self.app, user: UserID(user ?? "u\(number)"), device: id,
            createdAt: world.now, lastSeenAt: world.now, pushToken: id.bytes,
            pushEnvironment: .development, pushTopic: "example.chess", tokenGeneration: 1,
            tokenConfirmedAt: world.now, tokenProvenAt: world.now)
        change(&device)
        let made = device
        try world.tamper { transaction throws(StoreError) in
            try transaction.put(
                UserRecord(
                    app: Self.app, user: made.user, epochHalf: 5, createdAt: self.world.now))
            try transaction.put(made)
        }
        return id
    }

    func phones(_ numbers: ClosedRange<UInt64>) throws {
        for number in numbers { try phone(number) }
    }

    func new(
        _ change: (inout NewCampaign) -> Void = { _ in }
    ) -> NewCampaign {
        var new = NewCampaign(
            app: Self.app, campaign: world.fresh(), name: "spring", title: "", body: "hello",
            plan: CampaignPlan(startsAt: world.now))
        change(&new)
        return new
    }

    @discardableResult
    func create(
        _ change: (inout NewCampaign) -> Void = { _ in }
    ) throws -> CampaignID {
        let answer = try world.ask(.campaigns(.create(new(change), idempotency: nil)))
        guard case .campaign(let record) = answer else { throw Unexpected(answer: answer) }
        return record.campaign
    }

    @discardableResult
    func control(_ campaign: CampaignID, _ control: CampaignControl) throws -> CampaignState {
        let answer = try world.ask(
            .campaigns(.control(Self.app, campaign, control, idempotency: nil)))
        guard case .campaignState(_, let state) = answer else { throw Unexpected(answer: answer) }
        return state
    }

    func tag(_ user: String, _ tags: [String], device: DeviceID? = nil, remove: [String] = [])
        throws -> StoreAnswer
    {
        try world.ask(
            .campaigns(
                .tag(
                    ChangeTags(
                        app: Self.app, user: UserID(user), device: device, add: tags,
                        remove: remove),
                    idempotency: nil)))
    }

    func advance(devices: Int = 100) throws { try pushes.advanceCampaigns(devices: devices) }

    /// Sends what can be sent now; `reply` is APNs'. Returns to whom, in order.
    @discardableResult
    func send(
        _ reply: (PushJob) -> PushReply = { _ in .answered(status: 200, reason: "", timestamp: nil)
        }
    ) throws -> [String] {
        var names: [String] = []
        while true {
            try advance()
            let jobs = try pushes.claim(streams: 100)
            if jobs.isEmpty { return names.sorted() }
            for job in jobs {
                let answer = reply(job)
                if job.kind == .campaign {
                    names.append(job.key.user.name)
                    if case .answered(200, _, _, _) = answer { show(job) }
                }
                try pushes.finish(job, answer)
            }
        }
    }

    func show(_ job: PushJob) {
        shown[job.key.device, default: [:]][job.request.collapseID ?? "", default: 0] += 1
    }

    /// So many seconds, each with all that can be sent in it. Returns to whom in which.
    func run(seconds: Int) throws -> [[String]] {
        var names: [[String]] = []
        for _ in 0..<seconds {
            var second: [String] = []
            for _ in 0..<10 {
                second += try send()
                world.pass(100)
            }
            names.append(second.sorted())
            try pushes.tick()
        }
        return names
    }

    func view(_ campaign: CampaignID) throws -> CampaignView {
        guard
            case .campaigns(.show(let view)) = try world.read(
                .campaigns(Self.app, .show(campaign)))
        else { throw Unexpected(answer: .done) }
        return view
    }

    func state(_ campaign: CampaignID) throws -> CampaignState {
        try view(campaign).progress.state
    }

    /// Whoever looks at them: no device is in two places, and none in none.
    func counts(_ campaign: CampaignID) throws -> CampaignCounts {
        let counts = try view(campaign).progress.counts
        #expect(
            counts.audience
                == counts.waiting + counts.flying + counts.accepted + counts.refused
                + counts.cancelled, "\(counts)")
        let leftOut = CampaignOmission.allCases.reduce(UInt64(0)) { $0 + counts[$1] }
        #expect(counts.audience + leftOut <= counts.seen, "\(counts)")
        #expect(counts.canaryAccepted + counts.canaryRefused <= counts.canary, "\(counts)")
        return counts
    }

    func row(_ number: UInt64, _ campaign: CampaignID) throws -> CampaignPushRecord? {
        try world.record(
            CampaignPushRecord.self,
            [
                .app(Self.app), .user(UserID("u\(number)")),
                .identifier(DeviceID(high: 2, low: number)), .identifier(campaign),
            ])
    }
}

extension Pushes {
    /// As the server does, again and again while it comes to something.
    func advanceCampaigns(devices: Int = 100) throws {
        while case .progressed(_, more: true) = try world.ask(
            .campaigns(.advance(devices: devices)))
        {}
    }
}
