import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// Campaigns as transcripts: who gets one, when, and what it comes to.
@Suite struct CampaignTests {
    private let campaigns: Campaigns
    private var world: World { campaigns.world }

    init() throws { campaigns = try Campaigns() }

    @Test func eachDeviceOfTheAudienceGetsItOnce() throws {
        try campaigns.phones(1...5)
        try campaigns.phone(9) { $0.clientName = "mac" }
        let id = try campaigns.create()
        #expect(try campaigns.state(id) == .scheduled)
        #expect(try campaigns.send() == ["u1", "u2", "u3", "u4", "u5", "u9"])
        #expect(try campaigns.state(id) == .finished)
        #expect(campaigns.shown.values.allSatisfy { $0 == [id.description: 1] })
        let counts = try campaigns.counts(id)
        #expect(counts.seen == 6 && counts.audience == 6 && counts.accepted == 6)
        #expect(counts.waiting == 0 && counts.flying == 0 && counts.refused == 0)
        world.pass(3_600_000)
        try campaigns.pushes.tick()
        #expect(try campaigns.send() == [])
        let mac = try campaigns.create { $0.filter.clients = ["mac"] }
        #expect(try campaigns.send() == ["u9"])
        #expect(try campaigns.counts(mac).audience == 1)
        // Nothing is left behind of the pushes in the devices' own rows.
        #expect(try world.all(WakeRecord.self).isEmpty)
        #expect(try world.all(WakeHistoryRecord.self).isEmpty)
    }

    /// The times of a message's push would be left out, and a lapsed offer reach everybody.
    @Test func timesInItsPushAreRefused() throws {
        let now = world.now
        for timing in [
            AlertTiming(moment: .at(now + 3_600_000)), AlertTiming(expires: now + 3_600_000),
            AlertTiming(lifetime: 60_000),
        ] {
            let new = campaigns.new { $0.options.timing = timing }
            let answer = try world.ask(.campaigns(.create(new, idempotency: nil)))
            #expect(answer.refusal == .malformed)
        }
    }

    @Test func itsPushCarriesItsIdAndLeavesTheIconAlone() throws {
        try campaigns.phone(1)
        let id = try campaigns.create {
            $0.title = "Sale"
            $0.options.category = "OFFER"
            $0.plan.expiration = 60_000
        }
        try campaigns.advance()
        let job = try #require(try campaigns.pushes.claim().first)
        #expect(job.kind == .campaign && job.lane == .campaign)
        #expect(job.request.collapseID == id.description)
        #expect(job.request.pushType == .alert && job.request.priority == 10)
        #expect(job.request.expiration == (world.now.milliseconds + 60_000) / 1_000)
        let json = String(decoding: job.request.payload, as: UTF8.self)
        #expect(json.contains(#""alert":{"title":"Sale","body":"hello"}"#))
        #expect(json.contains(#""e":"campaign","o":"\#(id)""#))
        #expect(json.contains(#""category":"OFFER""#))
        #expect(!json.contains("badge") && !json.contains("content-available"))
        try campaigns.pushes.finish(job)
        // The id that APNs gave it is kept; without one it is ours, of the probe lane.
        #expect(try campaigns.row(1, id)?.push == job.request.id)
    }

    @Test func eachLocaleGetsItsText() throws {
        for (number, locale) in [(1, "de-AT"), (2, "fr"), (3, "pt-BR"), (4, "")] as [(UInt64, _)] {
            try campaigns.phone(number) { $0.locale = locale }
        }
        var app = World.classic(createdAt: world.now)
        app.locale = "fr"
        try world.expectDone(.putApp(app))
        try campaigns.create {
            $0.options.texts = [
                PushOptions.LocalText(locale: "de", body: "Hallo"),
                PushOptions.LocalText(locale: "fr", body: "bonjour"),
                PushOptions.LocalText(locale: "en", body: "hello"),
            ]
        }
        try campaigns.advance()
        let jobs = try campaigns.pushes.claim().sorted { $0.key.user < $1.key.user }
        #expect(
            jobs.map(\.word) == [
                #"campaign "Hallo" stored"#, #"campaign "bonjour" stored"#,
                #"campaign "bonjour" stored"#, #"campaign "bonjour" stored"#,
            ])
    }

    @Test func theAudienceIsTheOneOfTheMomentOfSending() throws {
        try campaigns.phones(1...3)
        let start = world.now + 3_600_000
        let id = try campaigns.create {
            $0.plan.startsAt = start
            $0.filter.tags = ["vip"]
        }
        #expect(try campaigns.tag("u1", ["vip"]) == .done)
        #expect(try campaigns.send() == [])
        #expect(try campaigns.tag("u1", [], remove: ["vip"]) == .done)
        #expect(try campaigns.tag("u2", ["vip"]) == .done)
        #expect(try campaigns.tag("u3", ["vip"], device: DeviceID(high: 2, low: 3)) == .done)
        world.pass(start.since(world.now))
        try campaigns.advance()
        #expect(try campaigns.counts(id).waiting == 2)
        // Queued, and not in it any more when its turn comes.
        #expect(
            try campaigns.tag("u3", [], device: DeviceID(high: 2, low: 3), remove: ["vip"])
                == .done)
        #expect(try campaigns.send() == ["u2"])
        #expect(try campaigns.row(3, id)?.phase == .leftOut)
        #expect(try campaigns.row(3, id)?.reason == "changed")
        #expect(try campaigns.counts(id)[.changed] == 1)
        #expect(try campaigns.state(id) == .finished)
    }

    @Test func whoCannotOrShouldNotGetItIsLeftOut() throws {
        var app = World.classic(createdAt: world.now)
        app.adaptive.goneAfter = 30 * 86_400_000
        try world.expectDone(.putApp(app))
        try campaigns.phones(1...2)
        world.pass(40 * 86_400_000)
        try campaigns.pushes.tick()
        try campaigns.phone(2)
        try campaigns.phone(3) { $0.pushToken = nil }
        try campaigns.phone(4) { $0.notifications = .off }
        try campaigns.phone(5)
        try world.expectDone(.suspendUser(World.app, UserID("u5")))
        try campaigns.phone(6) { $0.pushTopic = "example.unknown" }
        try campaigns.phone(7) { $0.expiresAt = world.now + 1_000 }
        let id = try campaigns.create()
        #expect(try campaigns.send() == ["u2"])
        let counts = try campaigns.counts(id)
        for omission in CampaignOmission.allCases where omission != .changed {
            #expect(counts[omission] == 1, "\(omission)")
        }
        #expect(counts.seen == 7 && counts.audience == 1)
    }

    @Test func aDryRunCountsWhatWouldBeSent() throws {
        for number in UInt64(1)...40 {
            try campaigns.phone(number) { $0.clientVersion = "\(number % 4).0" }
        }
        try campaigns.phone(41) { $0.notifications = .off }
        let new = campaigns.new {
            $0.filter.versionMin = "2"
            $0.plan.canaryShare = 3_000
        }
        var tally = CampaignTally()
        var after: CampaignPlace?
        var rounds = 0
        repeat {
            let query = CampaignQuery.count(new, after: after, devices: 7)
            guard
                case .campaigns(.count(let part, let next)) = try world.read(
                    .campaigns(World.app, query))
            else { throw Unexpected(answer: .done) }
            tally += part
            after = next
            rounds += 1
        } while after != nil
        #expect(rounds == 6)
        #expect(tally.seen == 41 && tally.devices == 20)
        #expect(tally[.notificationsOff] == 0, "it has no version: it is not in the audience")
        #expect(try world.all(CampaignRecord.self).isEmpty)
        let answer = try world.ask(.campaigns(.create(new, idempotency: nil)))
        guard case .campaign = answer else { throw Unexpected(answer: answer) }
        #expect(UInt64(try campaigns.send().count) == tally.canary)
        try campaigns.control(new.campaign, .resume)
        #expect(UInt64(try campaigns.send().count) == tally.devices - tally.canary)
        let counts = try campaigns.counts(new.campaign)
        #expect(counts.seen == tally.seen && counts.audience == tally.devices)
    }

    @Test func noMoreLeaveInASecondThanSaid() throws {
        try campaigns.phones(1...23)
        let id = try campaigns.create { $0.plan.rate = 5 }
        try campaigns.advance()
        func claim() throws -> ClaimedPushes {
            let answer = try world.ask(
                .claimPushes(
                    ClaimPushes(
                        boot: campaigns.pushes.boot, streams: 50,
                        ids: (0..<50).map { WakeID(high: 6, low: $0) })))
            guard case .pushes(let claimed) = answer else { throw Unexpected(answer: answer) }
            for job in claimed.jobs { try campaigns.pushes.finish(job) }
            return claimed
        }
        let early = try claim()
        // When it may go on is told, so that the gateway comes then and not before.
        #expect(early.jobs.isEmpty && early.nextDue == world.now + 100)
        world.pass(100)
        #expect(try claim().jobs.count == 1)
        #expect(try claim().jobs.isEmpty)
        world.pass(900)
        #expect(try campaigns.run(seconds: 6).map(\.count) == [5, 5, 5, 5, 2, 0])
        #expect(try campaigns.state(id) == .finished)
    }

    @Test func aSecondsWorthDoesNotLeaveAtItsStart() throws {
        try campaigns.phones(1...60)
        _ = try campaigns.create { $0.plan.rate = 50 }
        var counts: [Int] = []
        for _ in 0..<5 {
            counts.append(try campaigns.send().count)
            world.pass(100)
        }
        #expect(counts == [5, 5, 5, 5, 5])
        // The sender was away for three of them: what it missed does not come all at once.
        world.pass(300)
        #expect(try campaigns.send().count == 10)
    }

    @Test func neverToStopIsNeverToStop() throws {
        try campaigns.phones(1...200)
        let id = try campaigns.create {
            $0.plan.canaryShare = 5_000
            $0.plan.canaryWait = 1_000
            $0.plan.stopPercent = 0
            $0.plan.rate = 1_000
        }
        for _ in 0..<40 {
            try campaigns.send { _ in
                .answered(status: 400, reason: "BadDeviceToken", timestamp: nil)
            }
            world.pass(1_000)
        }
        #expect(try campaigns.state(id) == .finished)
    }

    @Test func itPausesGoesOnAndIsCancelled() throws {
        try campaigns.phones(1...20)
        let id = try campaigns.create { $0.plan.rate = 5 }
        #expect(try campaigns.run(seconds: 1)[0].count == 5)
        #expect(try campaigns.control(id, .pause) == .paused)
        #expect(try campaigns.run(seconds: 3).flatMap { $0 } == [])
        #expect(try campaigns.control(id, .pause) == .paused)
        #expect(try campaigns.control(id, .resume) == .running)
        #expect(try campaigns.control(id, .resume) == .running)
        #expect(try campaigns.run(seconds: 1)[0].count == 5)
        #expect(try campaigns.control(id, .cancel) == .cancelled)
        #expect(try campaigns.run(seconds: 3).flatMap { $0 } == [])
        let counts = try campaigns.counts(id)
        #expect(counts.accepted == 10 && counts.cancelled == 10 && counts.waiting == 0)
        #expect(try campaigns.view(id).progress.finishedAt != nil)
        #expect(try campaigns.control(id, .cancel) == .cancelled)
        for control in [CampaignControl.resume, .pause] {
            let answer = try world.ask(
                .campaigns(.control(World.app, id, control, idempotency: nil)))
            #expect(answer.refusal == .conflict)
        }
    }

    @Test func whatIsUnderWayWhenItIsCancelledIsCounted() throws {
        try campaigns.phones(1...4)
        let id = try campaigns.create()
        try campaigns.advance()
        let jobs = try campaigns.pushes.claim(streams: 2)
        #expect(try campaigns.control(id, .cancel) == .cancelled)
        try campaigns.advance()
        #expect(try campaigns.counts(id).cancelled == 2)
        #expect(try campaigns.view(id).progress.finishedAt == nil)
        try campaigns.pushes.finish(try #require(jobs.first))
        // It is not tried again.
        try campaigns.pushes.finish(try #require(jobs.last), .unanswered)
        world.pass(10_000)
        try campaigns.pushes.tick()
        #expect(try campaigns.send() == [])
        let counts = try campaigns.counts(id)
        #expect(counts.accepted == 1 && counts.cancelled == 3 && counts.flying == 0)
        #expect(try campaigns.view(id).progress.finishedAt != nil)
    }

    @Test func itStopsItselfWhenRejectionsJump() throws {
        try campaigns.phones(1...200)
        let id = try campaigns.create { $0.plan.rate = 20 }
        #expect(try campaigns.run(seconds: 2).flatMap { $0 }.count == 40)
        var rejected = 0
        for _ in 0..<50 {
            rejected += try campaigns.send { _ in
                .answered(status: 400, reason: "BadDeviceToken", timestamp: nil)
            }.count
            world.pass(100)
        }
        // The tenth of 50 answers was no jump, the 14th of 54 was.
        #expect(rejected == 14)
        let progress = try campaigns.view(id).progress
        #expect(progress.state == .stopped)
        #expect(progress.reason.contains("400 BadDeviceToken"))
        #expect(progress.reason.contains("resume"))
        #expect(try campaigns.send() == [])
        #expect(try campaigns.control(id, .resume) == .running)
        #expect(try campaigns.run(seconds: 8).flatMap { $0 }.count == 146)
    }

    @Test func aWrongCredentialStopsItTooAndKeepsTheTokens() throws {
        try campaigns.phones(1...40)
        let id = try campaigns.create()
        try campaigns.advance()
        for job in try campaigns.pushes.claim(streams: 30) {
            try world.ask(
                .finishPush(
                    FinishPush(
                        key: job.key, id: job.request.id,
                        reply: .answered(status: 400, reason: "BadDeviceToken", timestamp: nil),
                        keepsToken: true)))
        }
        #expect(try campaigns.state(id) == .stopped)
        #expect(try campaigns.counts(id).waiting == 40)
        #expect(try world.all(DeviceRecord.self).allSatisfy { $0.pushToken != nil })
    }

    @Test func eachDeviceIsToldAtTheHourOfItsOwnClock() throws {
        // Minutes east of UTC, plus 1,440; 0: not said.
        for (number, offset) in [(1, 1_440), (2, 1_500), (3, 0), (4, 1_440 - 480), (5, 1_770)]
            as [(UInt64, UInt64)]
        {
            try campaigns.phone(number) { $0.utcOffset = offset }
        }
        world.pass(86_400_000)
        let noon = world.now + 86_400_000
        let id = try campaigns.create {
            $0.plan.startsAt = noon
            $0.plan.isLocal = true
        }
        var told: [Int64: [String]] = [:]
        for _ in 0..<(48 * 2) {
            let names = try campaigns.send()
            let minutes =
                (Int64(world.now.milliseconds) - Int64(noon.milliseconds)) / 60_000
            if !names.isEmpty { told[minutes] = names }
            world.pass(30 * 60_000)
            try campaigns.pushes.tick()
        }
        #expect(told == [-330: ["u5"], -60: ["u2"], 0: ["u1", "u3"], 480: ["u4"]])
        #expect(try campaigns.state(id) == .finished)
    }

    /// Where clocks have changed since a device connected, what it told then is wrong by an hour.
    @Test func clocksThatChangedSinceAreTheOnesThatCount() throws {
        world.zones = ChangedClocks()
        let phones: [(number: UInt64, zone: String, offset: UInt64)] = [
            // Told in winter, told in summer: an hour ahead of UTC by now, and level with it.
            (1, "Forward", 1_440), (2, "Back", 1_500),
            // As they were, also where nobody knows the zone or it was not said.
            (3, "Forward", 1_500), (4, "Nowhere", 1_500), (5, "", 1_500), (6, "", 1_440),
            // The zone alone.
            (7, "Forward", 0), (8, "Back", 0),
        ]
        for phone in phones {
            try campaigns.phone(phone.number) {
                $0.timeZone = phone.zone
                $0.utcOffset = phone.offset
            }
        }
        world.pass(86_400_000)
        let noon = world.now + 86_400_000
        let id = try campaigns.create {
            $0.plan.startsAt = noon
            $0.plan.isLocal = true
        }
        var told: [Int64: [String]] = [:]
        for _ in 0..<(48 * 2) {
            let names = try campaigns.send()
            let minutes =
                (Int64(world.now.milliseconds) - Int64(noon.milliseconds)) / 60_000
            if !names.isEmpty { told[minutes, default: []] += names }
            world.pass(30 * 60_000)
            try campaigns.pushes.tick()
        }
        // A device that never told an offset is looked at with UTC.
        #expect(told == [-60: ["u1", "u3", "u4", "u5"], 0: ["u2", "u6", "u7", "u8"]])
        #expect(try campaigns.state(id) == .finished)
        #expect(try campaigns.counts(id).seen == 8)
        #expect(try campaigns.counts(id).accepted == 8)
    }

    @Test func whoSaysOnlyTheZoneIsOfItsOffset() throws {
        world.zones = ChangedClocks()
        let answer = try world.ask(
            .openSession(
                OpenSession(
                    app: World.app, device: DeviceID(high: 3, low: 3), role: .app,
                    credential: .identity(UserID("bob")), newTokenHash: world.hash(),
                    freshEpochHalf: 5, boot: campaigns.pushes.boot,
                    place: DevicePlace(timeZone: "Forward"))))
        guard case .opened = answer else { throw Unexpected(answer: answer) }
        #expect(try world.all(DeviceRecord.self).map(\.utcOffset) == [1_500])
    }

    @Test func aDeviceWithOpenAlertsKeepsItsStoredOne() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room, .urgent)
        #expect(try pushes.run(1_000) == [#"alert "1" badge 1 stored"#])
        let new = NewCampaign(
            app: World.app, campaign: pushes.world.fresh(), name: "", title: "", body: "sale",
            plan: CampaignPlan(startsAt: pushes.world.now))
        _ = try pushes.world.ask(.campaigns(.create(new, idempotency: nil)))
        try pushes.advanceCampaigns()
        #expect(try pushes.run(1_000) == [#"campaign "sale""#])
    }

    @Test func aDeviceKeepsTheBadgeThatClearsIt() throws {
        let (pushes, room) = try Pushes.sleeping()
        try pushes.say("1", in: room, .urgent)
        #expect(try pushes.run(1_000) == [#"alert "1" badge 1 stored"#])
        let other = try pushes.open("bob", DeviceID(high: 2, low: 2), token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"), reads: [ReadReceipt(conversation: room, through: 1)])
        #expect(try pushes.run(2_000) == ["badge badge 0 stored"])
        let new = NewCampaign(
            app: World.app, campaign: pushes.world.fresh(), name: "", title: "", body: "sale",
            plan: CampaignPlan(startsAt: pushes.world.now))
        _ = try pushes.world.ask(.campaigns(.create(new, idempotency: nil)))
        try pushes.advanceCampaigns()
        // In its place the icon would keep its number, and the list what is read.
        let words = try pushes.run(3_000)
        #expect(words.contains(#"campaign "sale""#), "\(words)")
    }

    @Test func itWaitsForWhatTheDeviceIsOwedItself() throws {
        let (pushes, room) = try Pushes.sleeping()
        let new = NewCampaign(
            app: World.app, campaign: pushes.world.fresh(), name: "", title: "", body: "sale",
            plan: CampaignPlan(startsAt: pushes.world.now))
        _ = try pushes.world.ask(.campaigns(.create(new, idempotency: nil)))
        try pushes.advanceCampaigns()
        try pushes.say("1", in: room)
        // One push to a device is in flight over all classes, and the wake is the one.
        let first = try pushes.claim()
        #expect(first.map(\.word) == ["silent"])
        pushes.world.pass(4_000)
        #expect(try pushes.claim().isEmpty)
        try pushes.finish(try #require(first.first))
        pushes.world.pass(2_000)
        // APNs has accepted a push to the token since: into the queue of those first.
        #expect(try pushes.claim().isEmpty)
        let second = try pushes.claim()
        #expect(second.map(\.word) == [#"campaign "sale" stored"#])
        // While it is under way a message waits for its answer, and goes then.
        try pushes.say("2", in: room, .urgent)
        #expect(try pushes.claim().isEmpty)
        try pushes.finish(try #require(second.first))
        #expect(try pushes.claim().map { $0.word.prefix(5) } == ["alert"])
    }

    @Test func aKilledServersPushIsRepeatedUnderTheSameCollapseId() throws {
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        let lost = try campaigns.pushes.claim()
        #expect(lost.count == 3)
        for job in lost { campaigns.show(job) }
        // Killed between APNs' answer and our commit; another process begins.
        world.pass(3_000)
        try world.ask(.start(boot: BootID(high: 8, low: 8), epochHalf: 77))
        #expect(try campaigns.send() == [])
        world.pass(6_000)
        try campaigns.pushes.tick()
        world.pass(6_000)
        #expect(try campaigns.send() == ["u1", "u2", "u3"])
        // An answer to the older claim is nobody's any more.
        #expect(try campaigns.pushes.finish(try #require(lost.first), .unanswered) == nil)
        #expect(campaigns.shown.values.allSatisfy { Array($0.keys) == [id.description] })
        let counts = try campaigns.counts(id)
        #expect(counts.accepted == 3 && counts.audience == 3)
        #expect(try campaigns.state(id) == .finished)
    }

    @Test func whatAPNsPutsOffIsTriedAgainAndGivenUpInTheEnd() throws {
        try campaigns.phones(1...2)
        let id = try campaigns.create()
        var tries = 0
        for _ in 0..<400 where try campaigns.state(id) != .finished {
            try campaigns.send { job in
                guard job.key.user.name == "u1" else {
                    return .answered(status: 200, reason: "", timestamp: nil)
                }
                tries += 1
                return .answered(status: 429, reason: "TooManyRequests", timestamp: nil)
            }
            world.pass(60_000)
            try campaigns.pushes.tick()
        }
        #expect(tries == 8)
        #expect(try campaigns.row(1, id)?.phase == .refused)
        #expect(try campaigns.row(1, id)?.reason == "TooManyRequests")
        #expect(try campaigns.counts(id).refused == 1)
        // That is no rejection of the push.
        #expect(try campaigns.view(id).progress.trend.rejections == 0)
    }

    @Test func whoIsDeletedMeanwhileHoldsNothingUp() throws {
        try campaigns.phones(1...4)
        let id = try campaigns.create()
        try campaigns.advance()
        #expect(try world.ask(.deleteUser(app: World.app, UserID("u2"), idempotency: nil)) == .done)
        while case .progressed(let count, _) = try world.ask(.continueDeletions(rows: 100)),
            count > 0
        {}
        #expect(try campaigns.row(2, id) == nil)
        #expect(try campaigns.send() == ["u1", "u3", "u4"])
        world.pass(5_000)
        try campaigns.advance()
        #expect(try campaigns.state(id) == .finished)
        #expect(try campaigns.counts(id).waiting == 0)
    }
}

/// Zones that have an hour more and an hour less since a moment ago than all the time before.
private struct ChangedClocks: ZoneClock {
    func offset(of zone: String, at time: Timestamp) -> Int64? {
        switch zone {
        case "Forward": 3_600
        case "Back": 0
        default: nil
        }
    }
}
