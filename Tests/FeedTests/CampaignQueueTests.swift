import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// What a campaign takes of claims, of the store, and of the app's other work.
@Suite struct CampaignQueueTests {
    private let campaigns: Campaigns
    private var world: World { campaigns.world }
    private let credential = CredentialKey(app: World.app, environment: .development)

    init() throws { campaigns = try Campaigns() }

    private func claim(
        _ streams: Int, _ free: [PushClass: Int]
    ) throws -> ClaimedPushes {
        let answer = try world.ask(
            .claimPushes(
                ClaimPushes(
                    boot: campaigns.pushes.boot, streams: streams,
                    ids: (0..<streams).map { _ in world.fresh() },
                    rooms: [PushRoom(credential) { free[$0] ?? 0 }], countsQueues: true)))
        guard case .pushes(let claimed) = answer else { throw Unexpected(answer: answer) }
        return claimed
    }

    private func wakes(_ numbers: ClosedRange<UInt64>) throws {
        try world.tamper { transaction throws(StoreError) in
            for number in numbers {
                var row = WakeRecord(
                    app: World.app, user: UserID("u\(number)"),
                    device: DeviceID(high: 2, low: number))
                row.due = self.world.now
                row.environment = PushEnvironmentKind.development.rawValue
                row.topic = "example.chess"
                row.phase = .due
                row.usefulTarget = 5
                try transaction.put(row)
            }
        }
    }

    @Test func aBacklogOfACampaignTakesNoStreamOfAWake() throws {
        try campaigns.phones(1...300)
        try campaigns.create { $0.plan.rate = 5_000 }
        try campaigns.advance()
        try wakes(291...300)
        // As many streams as the gateway ever asks for, nearly all of them the campaign's.
        let claimed = try claim(64, [.wake: 10, .campaign: 1_000])
        #expect(claimed.jobs.count { $0.lane == .wake } == 10)
        #expect(claimed.jobs.count { $0.lane == .campaign } == 54)
        // Those that get the wake are not sent the campaign beside it.
        #expect(Set(claimed.jobs.map(\.key.device)).count == 64)
        #expect(claimed.queues.first { $0.lane == .campaign }?.count == 300)
    }

    @Test func manyThatCannotSendDoNotStandInTheWayOfOthers() throws {
        // As many as one claim looks at, of an app that is gone.
        try world.tamper { transaction throws(StoreError) in
            for number in UInt64(1)...64 {
                var progress = CampaignProgressRecord(
                    app: AppID("gone"), campaign: CampaignID(high: 8, low: number), due: world.now,
                    now: world.now)
                progress.sendingSince = Timestamp(
                    milliseconds: world.now.milliseconds - 1_000_000 + number)
                // Or the next step would find that its campaign is gone.
                progress.due = nil
                try transaction.put(progress)
            }
        }
        try campaigns.phones(1...3)
        try campaigns.create()
        try campaigns.advance()
        #expect(try world.all(CampaignProgressRecord.self).count == 65)
        var count = 0
        for chance in UInt64(0)..<20 where count < 3 {
            let answer = try world.ask(
                .claimPushes(
                    ClaimPushes(
                        boot: BootID(high: 9, low: 9), streams: 8,
                        ids: (0..<8).map {
                            WakeID(high: chance + 1, low: chance &* 0x9E37_79B9 + $0)
                        })))
            guard case .pushes(let claimed) = answer else { throw Unexpected(answer: answer) }
            count += claimed.jobs.count { $0.kind == .campaign }
        }
        #expect(count == 3)
    }

    @Test func withoutStreamsOfItsOwnItWaitsAndSaysSo() throws {
        try campaigns.phones(1...30)
        try campaigns.create()
        try campaigns.advance()
        let none = try claim(64, [.wake: 10])
        #expect(none.jobs.isEmpty)
        #expect(none.blocked == [PushLane(credential, .campaign)])
        #expect(!none.more)
        let some = try claim(64, [.wake: 10, .campaign: 7])
        #expect(some.jobs.count == 7)
        #expect(some.blocked == [PushLane(credential, .campaign)])
    }

    @Test func aBacklogOfWakesLeavesItAFewStreams() throws {
        // The rows of 64 pushes fit into one turn.
        world.limits.rowsPerTurn = 4_096
        try campaigns.phones(1...400)
        try campaigns.create { $0.filter.tags = ["x"] }
        for number in 390...400 { _ = try campaigns.tag("u\(number)", ["x"]) }
        try campaigns.advance()
        try wakes(1...300)
        let claimed = try claim(64, [.wake: 1_000, .campaign: 1_000])
        #expect(claimed.jobs.count { $0.lane == .wake } == 56)
        #expect(claimed.jobs.count { $0.lane == .campaign } == 8)
    }

    @Test func tokensNeverAcceptedGoOverTheProbeConnection() throws {
        try campaigns.phones(1...2)
        try campaigns.phone(3) { $0.tokenProvenAt = nil }
        try campaigns.create()
        try campaigns.advance()
        let claimed = try claim(64, [.campaign: 10, .probe: 1])
        #expect(claimed.jobs.count { $0.lane == .campaign } == 2)
        #expect(claimed.jobs.filter { $0.lane == .probe }.map(\.key.user.name) == ["u3"])
        for job in claimed.jobs { try campaigns.pushes.finish(job) }
        // Accepted once: the next campaign takes it along.
        try campaigns.create()
        try campaigns.advance()
        #expect(try claim(64, [.campaign: 10]).jobs.count == 3)
    }

    @Test func fewMoreWaitThanCanBeSent() throws {
        world.limits.campaignQueue = 10
        try campaigns.phones(1...45)
        let id = try campaigns.create()
        try campaigns.advance(devices: 4)
        var counts = try campaigns.counts(id)
        #expect(counts.waiting == 10 && counts.seen == 10)
        #expect(try world.all(CampaignPushRecord.self).count == 10)
        // One of them goes with its user, and its place is used.
        try world.tamper { transaction throws(StoreError) in
            try transaction.delete(
                CampaignPushRecord.self,
                [
                    .app(World.app), .user(UserID("u1")),
                    .identifier(DeviceID(high: 2, low: 1)), .identifier(id),
                ])
        }
        world.pass(3_000)
        try campaigns.pushes.tick()
        try campaigns.advance(devices: 4)
        counts = try campaigns.counts(id)
        #expect(counts.waiting == 10 && counts.seen == 11)
        var names: [String] = []
        for _ in 0..<10 {
            names += try campaigns.send()
            world.pass(3_000)
            try campaigns.pushes.tick()
        }
        #expect(names.count == 44 && Set(names).count == 44)
        #expect(try campaigns.state(id) == .finished)
    }

    @Test func campaignsShareAClaimAndAPausedOneTakesNothing() throws {
        try campaigns.phones(1...100)
        let first = try campaigns.create()
        let second = try campaigns.create()
        try campaigns.advance()
        let claimed = try claim(40, [.campaign: 100])
        var of: [String?: Int] = [:]
        for job in claimed.jobs { of[job.request.collapseID, default: 0] += 1 }
        // A device is sent one at a time: what meets there waits a moment.
        #expect(of[first.description, default: 0] + of[second.description, default: 0] >= 20)
        #expect(of[first.description, default: 0] <= 20)
        #expect(of[second.description, default: 0] <= 20)
        try campaigns.control(first, .pause)
        world.pass(10_000)
        let rest = try claim(40, [.campaign: 100])
        #expect(rest.jobs.allSatisfy { $0.request.collapseID == second.description })
        #expect(!rest.jobs.isEmpty)
    }

    @Test func aSuspendedAppsCampaignWaits() throws {
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        try world.expectDone(.suspendApp(World.app))
        #expect(try claim(10, [.campaign: 10]).jobs.isEmpty)
        try world.expectDone(.resumeApp(World.app))
        #expect(try claim(10, [.campaign: 10]).jobs.count == 3)
        #expect(try campaigns.counts(id).flying == 3)
    }

    @Test func aNewTokenMovesItsPushIntoItsQueue() throws {
        try campaigns.phones(1...2)
        let id = try campaigns.create()
        try campaigns.advance()
        try campaigns.phone(2) {
            $0.tokenProvenAt = nil
            $0.tokenGeneration = 2
            $0.pushToken = [7]
        }
        let claimed = try claim(10, [.campaign: 10])
        #expect(claimed.jobs.map(\.key.user.name) == ["u1"])
        #expect(claimed.more)
        let probe = try claim(10, [.campaign: 10, .probe: 1])
        #expect(probe.jobs.map(\.request.token) == [[7]])
        #expect(try campaigns.counts(id).flying == 2)
    }

    @Test func aClockThatIsSetBackHoldsNothingUp() throws {
        try campaigns.phones(1...2)
        world.pass(86_400_000)
        try campaigns.pushes.tick()
        let id = try campaigns.create()
        let later = try campaigns.create { $0.plan.startsAt = world.now + 86_400_000 }
        try campaigns.advance()
        world.store.clock = world.now - 40_000_000
        try campaigns.pushes.tick()
        // The claim that notices it says that there is more.
        #expect(try campaigns.send() == [])
        #expect(try campaigns.send() == ["u1", "u2"])
        #expect(try campaigns.state(id) == .finished)
        #expect(try campaigns.state(later) == .scheduled)
    }

    @Test func nodesShareACampaignAndItsRate() throws {
        try campaigns.phones(1...100)
        let id = try campaigns.create { $0.plan.rate = 20 }
        let nodes = [BootID(high: 9, low: 9), BootID(high: 9, low: 10), BootID(high: 9, low: 11)]
        var told: [BootID: [String]] = [:]
        var seconds = 0
        while try campaigns.state(id) != .finished, seconds < 30 {
            var sent = 0
            for tenth in 0..<10 {
                // In turns of their own, as nodes that do not know of each other.
                for node in nodes.indices {
                    campaigns.pushes.boot = nodes[(node + tenth) % nodes.count]
                    try campaigns.advance()
                    let jobs = try campaigns.pushes.claim(streams: 3)
                    for job in jobs {
                        campaigns.show(job)
                        told[campaigns.pushes.boot, default: []].append(job.key.user.name)
                        try campaigns.pushes.finish(
                            job, .answered(status: 200, reason: "", timestamp: nil))
                    }
                    sent += jobs.count
                }
                world.pass(100)
            }
            // One rate for all of them together.
            #expect(sent <= 20, "second \(seconds)")
            try campaigns.pushes.tick()
            seconds += 1
        }
        #expect(seconds >= 5)
        #expect(nodes.allSatisfy { told[$0, default: []].count > 10 }, "\(told.mapValues(\.count))")
        #expect(told.values.reduce(0) { $0 + $1.count } == 100)
        #expect(campaigns.shown.count == 100)
        #expect(campaigns.shown.values.allSatisfy { $0.values.allSatisfy { $0 == 1 } })
    }

    // MARK: Administration

    @Test func theSameKeyMakesOneCampaign() throws {
        let new = campaigns.new()
        let key = Idempotency(key: "k", requestHash: [1])
        let first = try world.ask(.campaigns(.create(new, idempotency: key)))
        #expect(try world.ask(.campaigns(.create(new, idempotency: key))) == first)
        let other = Idempotency(key: "k", requestHash: [2])
        #expect(
            try world.ask(.campaigns(.create(new, idempotency: other))) == .idempotencyMismatch)
        #expect(try world.ask(.campaigns(.create(new, idempotency: nil))).refusal == .idInUse)
        #expect(try world.all(CampaignRecord.self).count == 1)
        let pause = Idempotency(key: "p", requestHash: [1])
        let request = CampaignRequest.control(
            World.app, new.campaign, .pause, idempotency: pause)
        let paused = try world.ask(.campaigns(request))
        try campaigns.control(new.campaign, .resume)
        // Told again, not done again.
        #expect(try world.ask(.campaigns(request)) == paused)
        #expect(try campaigns.state(new.campaign) != .paused)
    }

    @Test func whatCannotBeSentIsRefused() throws {
        func refusal(_ change: (inout NewCampaign) -> Void) throws -> Code? {
            try world.ask(.campaigns(.create(campaigns.new(change), idempotency: nil))).refusal
        }
        #expect(try refusal { $0.body = "" } == .missingField)
        #expect(try refusal { $0.body = String(repeating: "x", count: 3_000) } == .tooLarge)
        #expect(try refusal { $0.filter.tags = ["a b"] } == .malformed)
        #expect(try refusal { $0.plan.rate = 0 } == .malformed)
        #expect(try refusal { $0.options.titleKey = PushOptions.LocalKey("") } == .malformed)
        #expect(try refusal { $0.app = AppID("nobody") } == .notFound)
        world.limits.campaigns = 1
        try campaigns.create()
        #expect(try refusal { _ in } == .limit)
        let unknown = CampaignRequest.control(World.app, world.fresh(), .pause, idempotency: nil)
        #expect(try world.ask(.campaigns(unknown)).refusal == .notFound)
    }

    @Test func tagsAreBoundedAndGoWithTheirUser() throws {
        try campaigns.phone(1)
        let device = DeviceID(high: 2, low: 1)
        #expect(try campaigns.tag("u1", ["a", "b"]) == .done)
        #expect(try campaigns.tag("u1", ["c"], device: device) == .done)
        #expect(try campaigns.tag("u1", ["b", "d"], remove: ["a", "z"]) == .done)
        func tags(_ device: DeviceID?) throws -> StoreReading {
            try world.read(.campaigns(World.app, .tags(UserID("u1"), device)))
        }
        #expect(try tags(nil) == .campaigns(.tags(["b", "d"])))
        #expect(try tags(device) == .campaigns(.tags(["c"])))
        #expect(try tags(DeviceID(high: 2, low: 9)) == .nothing)
        world.limits.tags = 3
        #expect(try campaigns.tag("u1", ["e", "f"]).refusal == .limit)
        #expect(try tags(nil) == .campaigns(.tags(["b", "d"])))
        #expect(try campaigns.tag("u1", ["no space"]).refusal == .malformed)
        #expect(try campaigns.tag("nobody", ["a"]).refusal == .notFound)
        #expect(try campaigns.tag("u1", ["a"], device: world.fresh()).refusal == .notFound)
        _ = try world.ask(.deleteUser(app: World.app, UserID("u1"), idempotency: nil))
        while case .progressed(let count, _) = try world.ask(.continueDeletions(rows: 100)),
            count > 0
        {}
        #expect(try world.all(TagRecord.self).isEmpty)
        #expect(try tags(nil) == .nothing)
    }

    /// A device that is forgotten is no longer tagged, and no tag outlives it.
    @Test func tagsGoWithTheirDevice() throws {
        try campaigns.phones(1...20)
        for number in 1...20 {
            let device = DeviceID(high: 2, low: UInt64(number))
            #expect(try campaigns.tag("u\(number)", ["a"], device: device) == .done)
        }
        #expect(try campaigns.tag("u1", ["b"]) == .done)
        for number in 1...19 {
            let session = try world.login(
                "u\(number)", DeviceID(high: 2, low: UInt64(number))
            ).session
            #expect(try world.mutate(session, 1, .forgetDevice(ForgetDevice())).code == 0)
        }
        #expect(try world.all(TagRecord.self).count == 21)
        world.pass(world.limits.forgottenLifetime)
        try world.retain()
        #expect(try world.all(DeviceRecord.self).map(\.user.name) == ["u20"])
        #expect(try world.all(TagRecord.self).map(\.tag) == ["b", "a"])
    }

    @Test func aCampaignThatCannotBeReadHoldsUpNoOther() throws {
        try campaigns.phones(1...3)
        let (broken, sound) = (try campaigns.create(), try campaigns.create())
        try world.tamper { transaction throws(StoreError) in
            let key: [ColumnValue] = [.app(World.app), .identifier(broken)]
            var row = try transaction.row(CampaignRecord.table, key: key, lock: .none)!
            let place = CampaignRecord.table.columns.firstIndex { $0.name == "filter" }!
            row[place] = .blob([255])
            try transaction.put(CampaignRecord.table, row)
        }
        #expect(try campaigns.send().count == 3)
        #expect(try campaigns.state(sound) == .finished)
        let progress = try #require(
            try world.all(CampaignProgressRecord.self).first { $0.campaign == broken })
        #expect(progress.due.map { $0 > world.now } ?? false, "it is looked at again later")
    }

    @Test func aRestoredStorePausesWhatWasNotOver() throws {
        try campaigns.phones(1...3)
        let over = try campaigns.create()
        try campaigns.send()
        let open = try campaigns.create()
        try campaigns.advance()
        try world.ask(.restore(epochHalf: 1_234))
        #expect(try campaigns.state(over) == .finished)
        #expect(try campaigns.state(open) == .paused)
        #expect(try campaigns.view(open).progress.reason.contains("backup"))
        #expect(try campaigns.send() == [])
        try campaigns.control(open, .resume)
        #expect(try campaigns.send().count == 3)
    }

    @Test func aCampaignThatIsNeverOverIsCancelled() throws {
        try campaigns.phones(1...2)
        let id = try campaigns.create { $0.plan.canaryShare = 9_999 }
        try campaigns.send()
        #expect(try campaigns.state(id) == .review)
        try campaigns.control(id, .resume)
        try campaigns.phone(3) { $0.tokenProvenAt = nil }
        try campaigns.control(id, .pause)
        world.pass(CampaignPlan.lifetime)
        // After an outage nothing ends at once.
        try campaigns.pushes.run(601_000)
        try campaigns.control(id, .resume)
        try campaigns.advance()
        #expect(try campaigns.state(id) == .cancelled)
        #expect(try campaigns.view(id).progress.reason.contains("30 days"))
        // In the end nothing of it is kept.
        world.pass(CampaignPushRecord.lifetime)
        while case .progressed(_, more: true) = try world.ask(.enforceRetention(rows: 100)) {}
        #expect(try world.all(CampaignPushRecord.self).isEmpty)
        #expect(try world.all(CampaignRecord.self).isEmpty)
        #expect(try world.all(CampaignProgressRecord.self).isEmpty)
    }

    @Test func whyADeviceGotItOrDidNotIsTold() throws {
        try campaigns.phone(1) { $0.clientName = "ios" }
        try campaigns.phone(2, user: "u1") { $0.clientName = "mac" }
        try campaigns.phone(3, user: "u1") {
            $0.clientName = "ios"
            $0.notifications = .off
        }
        let id = try campaigns.create { $0.filter.clients = ["ios"] }
        try campaigns.send { [world] _ in
            .answered(status: 410, reason: "Unregistered", timestamp: world.now + 1)
        }
        guard
            case .campaigns(.explain(let fates)) = try world.read(
                .campaigns(World.app, .explain(id, UserID("u1"))))
        else { throw Unexpected(answer: .done) }
        try #require(fates.map(\.device.low) == [1, 2, 3])
        #expect(fates[0].push?.phase == .refused)
        #expect(fates[0].push?.status == 410 && fates[0].push?.reason == "Unregistered")
        #expect(fates[0].verdict == .leftOut(.tokenless))
        #expect(fates[1].push == nil && fates[1].verdict == .outside(.client))
        #expect(fates[2].push == nil && fates[2].verdict == .leftOut(.notificationsOff))
    }

    @Test func theListIsGivenAPieceAtATime() throws {
        var ids: [CampaignID] = []
        for _ in 0..<5 { ids.append(try campaigns.create()) }
        var found: [CampaignID] = []
        var before: CampaignID?
        repeat {
            guard
                case .campaigns(.list(let views, let next)) = try world.read(
                    .campaigns(World.app, .list(before: before, limit: 2)))
            else { throw Unexpected(answer: .done) }
            #expect(views.count <= 2)
            found += views.map(\.campaign.campaign)
            before = next
        } while before != nil
        #expect(found == ids.reversed())
    }
}

/// Nodes of several versions count in the same rows while the newer one is brought in.
@Suite struct CampaignCountTests {
    private let campaigns: Campaigns
    private var world: World { campaigns.world }

    init() throws { campaigns = try Campaigns() }

    /// Sends a campaign to one device after its counts were written anew with that many numbers.
    private func sent(with numbers: Int) throws -> [UInt8] {
        try campaigns.phones(1...1)
        let id = try campaigns.create()
        var bytes = try campaigns.counts(id).encoded.prefix(numbers * 8)
        while bytes.count < numbers * 8 { bytes += [0, 0, 0, 0, 0, 0, 0, 5] }
        let counts = try #require(CampaignCounts(encoded: Array(bytes)))
        let key: [ColumnValue] = [.app(World.app), .identifier(id)]
        try world.tamper { transaction throws(StoreError) in
            let found = try transaction.record(CampaignProgressRecord.self, key, lock: .wait)
            guard var progress = found else { return }
            progress.counts = counts
            try transaction.put(progress)
        }
        #expect(try campaigns.send() == ["u1"])
        #expect(try campaigns.counts(id).accepted == 1)
        return try campaigns.counts(id).encoded
    }

    @Test func whatALaterVersionCountsIsKept() throws {
        let own = CampaignCounts().encoded.count
        let sent = try sent(with: own / 8 + 2)
        #expect(sent.count == own + 16)
        #expect(sent.suffix(16) == [0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 5])
    }

    @Test func whatAnEarlierVersionDidNotCountIsNothing() throws {
        let own = CampaignCounts().encoded.count
        #expect(try sent(with: own / 8 - 1).count == own)
    }

    @Test func otherBytesAreNoCounts() {
        let own = CampaignCounts().encoded
        #expect(CampaignCounts(encoded: own) == CampaignCounts())
        #expect(CampaignCounts(encoded: own.dropLast()) == nil)
        #expect(CampaignCounts(encoded: Array(own.prefix(72))) == nil)
        #expect(CampaignCounts(encoded: []) == nil)
    }
}
