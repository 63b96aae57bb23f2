import Feed
import MemoryStore
import Model
import Testing
import Wake
import Wire

/// A world with a push credential, and the gateway's half of the requests.
final class Pushes {
    let world: World
    /// Of the node that claims and finishes next.
    var boot = BootID(high: 9, low: 9)
    private var nextID: UInt64 = 0
    /// What was sent, in order.
    var sent: [PushJob] = []

    init(_ world: World? = nil) throws {
        let world = try world ?? World()
        self.world = world
        try world.expectDone(
            .putPushCredential(
                PushCredentialRecord(
                    app: World.app, environment: .development, keyID: "KEY", team: "TEAM",
                    privateKeyPEM: "", topics: "example.chess", host: "localhost", port: 1,
                    changedAt: world.now)))
    }

    static func registration(_ token: UInt8 = 1) -> PushRegistration {
        PushRegistration(
            token: [token, token], environment: .development, topic: "example.chess")
    }

    static let accepted = PushReply.answered(status: 200, reason: "", timestamp: nil)

    /// Claims what is due now.
    func claim(streams: Int = 10) throws -> [PushJob] {
        let ids = (0..<streams).map { _ in
            nextID += 1
            return WakeID(high: 5, low: nextID)
        }
        let answer = try world.ask(
            .claimPushes(ClaimPushes(boot: boot, streams: streams, ids: ids)))
        guard case .pushes(let claimed) = answer else { throw Unexpected(answer: answer) }
        sent += claimed.jobs
        return claimed.jobs
    }

    @discardableResult
    func finish(
        _ job: PushJob,
        _ reply: PushReply = accepted
    ) throws -> PushAnswer? {
        let answer = try world.ask(
            .finishPush(FinishPush(key: job.key, id: job.request.id, reply: reply)))
        guard case .pushFinished(let class_) = answer else { throw Unexpected(answer: answer) }
        return class_
    }

    /// Lets time pass as a server does: `alive_at` every 2 s, a sweep each second, and every push
    /// that is due is sent and accepted. Returns what was sent, in words.
    ///
    /// - Parameter answering: what APNs says to each; `nil`: it takes all.
    @discardableResult
    func run(
        _ duration: Milliseconds, answering: ((PushJob) -> PushReply)? = nil
    ) throws -> [String] {
        var words: [String] = []
        let end = world.now + duration
        while true {
            try tick()
            while true {
                let jobs = try claim()
                if jobs.isEmpty { break }
                for job in jobs {
                    words.append(job.word)
                    try finish(job, answering?(job) ?? Self.accepted)
                }
            }
            if world.now >= end { return words }
            world.pass(min(1_000, end.since(world.now)))
        }
    }

    func tick() throws {
        try world.ask(.keepAlive)
        try world.ask(.sweepWakes(rows: 100))
    }

    func view(_ device: DeviceID) throws -> DeviceView {
        guard case .device(let view?) = try world.read(.device(World.app, device)) else {
            throw Unexpected(answer: .done)
        }
        return view
    }

    func wakes(_ device: DeviceID) throws -> [WakeHistoryRecord] {
        guard case .wakes(let wakes) = try world.read(.wakes(World.app, device, limit: 100))
        else { throw Unexpected(answer: .done) }
        return wakes.reversed()
    }

    func end(_ session: SessionKey, applied: UInt64 = 0, within: Milliseconds = 10_000) throws {
        try world.ask(
            .endSession(EndSession(session: session, applied: applied, expectedWithin: within)))
    }

    @discardableResult
    func acknowledge(
        _ session: SessionKey, _ applied: UInt64, completes: Bool = true,
        reads: [ReadReceipt] = [], ranges: [InclusiveRange] = []
    ) throws -> StoreAnswer {
        try world.ask(
            .acknowledge(
                Acknowledge(
                    session: session, applied: applied, ranges: ranges, reads: reads,
                    completesSync: completes)))
    }

    /// Logs in and says HELLO with the wake that woke it.
    func open(_ user: String, _ device: DeviceID, wake: WakeID? = nil, token: UInt8 = 1) throws
        -> OpenedSession
    {
        let answer = try world.ask(
            .openSession(
                OpenSession(
                    app: World.app, device: device, role: .app,
                    credential: .identity(UserID(user)), newTokenHash: world.hash(),
                    freshEpochHalf: 5, boot: boot, push: Self.registration(token), wake: wake)))
        guard case .opened(let opened) = answer else { throw Unexpected(answer: answer) }
        return opened
    }

    func head(_ user: String) throws -> UInt64 {
        try world.record(UserRecord.self, [.app(World.app), .user(UserID(user))])?.head ?? 0
    }
}

extension World {
    func outcome(_ request: StoreRequest) throws -> StoreOutcome {
        try #require(try commit([request]).first).get()
    }

    func hash() -> [UInt8] { (fresh() as PushID).bytes }
}

extension PushJob {
    /// Kind, and what a phone would show.
    var word: String {
        let json = String(decoding: request.payload, as: UTF8.self)
        func value(_ name: String) -> String? {
            guard let start = json.firstRange(of: "\"\(name)\":")?.upperBound else { return nil }
            return String(json[start...].prefix { $0 != "," && $0 != "}" })
        }
        return [
            "\(kind)", value("body"), value("badge").map { "badge \($0)" },
            request.expiration == 0 ? nil : "stored",
        ]
        .compactMap { $0 }.joined(separator: " ")
    }
}

@Suite struct WakeTranscriptTests {
    private let phone = DeviceID(high: 2, low: 1)
    private let tablet = DeviceID(high: 2, low: 2)

    @Test func theStoryOfADevice() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        var session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        #expect(try pushes.view(phone).reachability == .online)

        // Online: the session's row is the record, nothing is pushed.
        try world.publish("1", to: room, from: "anna")
        #expect(try pushes.run(5_000) == [])
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(2_000)
        #expect(try pushes.view(phone).reachability == .wakeable)

        // Asleep: a silent push wakes it, and it syncs in time.
        try world.publish("2", to: room, from: "anna")
        #expect(try pushes.run(0) == ["silent"])
        #expect(try pushes.view(phone).reachability == .waking)
        world.pass(1_500)
        let wake = try #require(pushes.sent.last).request.id
        session = try pushes.open("bob", phone, wake: wake).session
        world.pass(500)
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        #expect(try pushes.run(120_000) == [])
        let record = try #require(try pushes.wakes(phone).last)
        #expect(record.outcome == .synced)
        #expect(record.connectedAt == record.sentAt + 1_500)
        #expect(record.syncedAt == record.sentAt + 2_000)

        // It stays away: grace passes, it is demoted and alerted of what is pending.
        try world.publish("3", to: room, from: "anna")
        #expect(try pushes.run(0) == ["silent"])
        for text in ["4", "5", "6"] { try world.publish(text, to: room, from: "anna") }
        #expect(try pushes.run(59_000) == [])
        #expect(
            try pushes.run(2_000) == [
                #"alert "3" badge 6 stored"#, #"alert "4" badge 6 stored"#,
                #"alert "5" badge 6 stored"#,
                #"alert "6 (and 3 more)" badge 6 stored"#,
            ])
        #expect(try pushes.view(phone).reachability == .unreachable)
        #expect(try pushes.wakes(phone).filter { $0.outcome == .noShow }.count == 1)

        // Unreachable: the next message alerts at once, and speaks for all.
        try world.publish("7", to: room, from: "anna")
        #expect(try pushes.run(0) == [#"alert "7 (and 4 more)" badge 7 stored"#])
        #expect(try pushes.run(600_000) == [])

        // Read on the tablet: the badge goes.
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: room, through: 7)])
        #expect(try pushes.run(2_000) == ["badge badge 0 stored"])
        #expect(try pushes.run(60_000) == [])

        // One more message alerts it; it opens the app, syncs, and is wakeable again.
        try world.publish("8", to: room, from: "anna")
        #expect(try pushes.run(0) == [#"alert "8" badge 1 stored"#])
        session = try pushes.open("bob", phone).session
        #expect(try pushes.view(phone).reachability == .online)
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(2_000)
        #expect(try pushes.view(phone).reachability == .wakeable)
        #expect(try world.all(AlertRecord.self).isEmpty)
        try world.publish("9", to: room, from: "anna")
        #expect(try pushes.run(0) == ["silent"])
    }

    @Test("the gateway is told of each device that loses its push token")
    func whoLosesATokenIsTold() throws {
        let pushes = try Pushes()
        let world = pushes.world
        func device(_ user: String) -> DetachedDevice {
            DetachedDevice(app: World.app, user: UserID(user), device: phone)
        }
        try pushes.open("bob", phone)
        try pushes.open("bob", phone)
        #expect(world.detached == [])
        // Another user logs in on the phone, and is logged out; then another device has the token.
        try pushes.open("carl", phone)
        #expect(world.detached == [device("bob")])
        try world.ask(.administer(.removeDevice(World.app, UserID("carl"), phone)))
        #expect(world.detached == [device("carl")])
        try pushes.open("bob", phone)
        #expect(world.detached == [])
        try pushes.open("anna", DeviceID(high: 3, low: 3))
        #expect(world.detached == [device("bob")])
        try world.ask(.deleteUser(app: World.app, UserID("anna"), idempotency: nil))
        #expect(world.detached.map(\.user.name) == ["anna"])
    }

    @Test func aKilledServerFindsWhoIsBehind() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        // Committed for an online device, and then kill -9: nobody told it.
        try world.publish("1", to: room, from: "anna")
        world.pass(3_000)
        try world.ask(.start(boot: BootID(high: 9, low: 10), epochHalf: 1))
        #expect(try pushes.run(9_000) == [])
        #expect(try pushes.run(2_000) == ["silent"])
        // It does not come either: demotion, after one more restart inside the grace.
        world.pass(4_000)
        try world.ask(.start(boot: BootID(high: 9, low: 11), epochHalf: 1))
        // Grace is longer by the 4 s in which nobody could have answered the phone.
        #expect(try pushes.run(58_000) == [])
        #expect(try pushes.run(3_000) == [#"alert "1" badge 1 stored"#])
        #expect(try pushes.view(phone).reachability == .unreachable)
    }

    @Test func aRestartDoesNotUseUpAShortGrace() throws {
        let pushes = try Pushes()
        let world = pushes.world
        var app = try #require(try world.all(AppRecord.self).first)
        app.grace = 3_000
        try world.expectDone(.putApp(app))
        let room = try world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try world.publish("1", to: room, from: "anna")
        #expect(try pushes.run(1_000) == ["silent"])
        // Down for longer than the grace, and too short for an outage: 2 s of it are left.
        world.pass(5_000)
        try world.ask(.start(boot: BootID(high: 9, low: 10), epochHalf: 1))
        #expect(try pushes.run(1_000) == [])
        #expect(try pushes.view(phone).reachability == .waking)
        #expect(try pushes.run(2_000) == [#"alert "1" badge 1 stored"#])
    }

    @Test func anOutageIsNoNoShow() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        #expect(try pushes.run(10_000) == ["silent"])
        // Down for longer than grace: the phone came to a closed door.
        world.pass(300_000)
        try world.ask(.start(boot: BootID(high: 9, low: 10), epochHalf: 1))
        #expect(try pushes.run(1_000) == ["silent"])
        #expect(try pushes.view(phone).reachability == .waking)
        #expect(try pushes.wakes(phone).map(\.outcome) == [.expired, .pending])
        #expect(try pushes.run(62_000) == [#"alert "1" badge 1 stored"#])
        #expect(try pushes.view(phone).reachability == .unreachable)
    }

    @Test func aClockSetBackDoesNotFreezeAnything() throws {
        let pushes = try Pushes()
        let world = pushes.world
        world.pass(100 * 86_400_000)
        let room = try world.converse(["anna", "bob"])
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        #expect(try pushes.run(10_000) == ["silent"])
        world.store.clock = world.now - 86_400_000
        // The budget's token of tomorrow counts as one of now: a spacing later it goes out again.
        #expect(try pushes.run(62_000) == ["silent"])
        #expect(try pushes.run(61_000) == [#"alert "1" badge 1 stored"#])
    }

    @Test func alertsAreOnePerMessageAndBudgetIsKept() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        for text in 1...3 {
            let session = try pushes.open("bob", phone).session
            try pushes.acknowledge(session, try pushes.head("bob"))
            try pushes.end(session, within: 0)
            try pushes.run(70_000)
            try world.publish("\(text)", to: room, from: "anna")
            #expect(try pushes.run(0) == ["silent"])
        }
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        try pushes.end(session, within: 0)
        try pushes.run(70_000)
        // No token left: alert at once, without demotion.
        try world.publish("4", to: room, from: "anna")
        #expect(try pushes.run(0) == [#"alert "4" badge 4 stored"#])
        #expect(try pushes.view(phone).reachability == .wakeable)
        #expect(try pushes.run(7_200_000) == [])
    }

    @Test func aSyncBeforeTheAnswerAndALateAnswer() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        let job = try #require(try pushes.claim().first)
        let session = try pushes.open("bob", phone, wake: job.request.id).session
        try pushes.acknowledge(session, try pushes.head("bob"))
        #expect(try pushes.finish(job) == .accepted)
        #expect(try world.all(WakeRecord.self).isEmpty)
        #expect(try pushes.wakes(phone).map(\.outcome) == [.synced])
        // The same answer again belongs to nobody.
        #expect(try pushes.finish(job) == nil)
    }

    @Test func theBadgeThatTakesTheSlotCarriesTheNewestText() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        let side = try world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        try world.publish("2", to: side, from: "anna")
        try pushes.run(62_000)
        let other = try pushes.open("bob", tablet, token: 2).session
        // The newest alerted is read: replacing it is the wish.
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: side, through: 1)])
        #expect(try pushes.run(2_000) == [#"badge "1" badge 1 stored"#])
        let payload = try #require(pushes.sent.last).request.payload
        let json = String(decoding: payload, as: UTF8.self)
        #expect(!json.contains("sound"))
        try world.publish("3", to: side, from: "anna")
        #expect(try pushes.run(0) == [#"alert "3 (and 1 more)" badge 2 stored"#])
        // An older one is read: the stored alert of "3" must stay.
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: room, through: 1)])
        #expect(try pushes.run(2_000) == ["badge badge 1"])
    }

    @Test func readBeforeItIsAlertedIsNotAlerted() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        #expect(try pushes.run(30_000) == ["silent"])
        let other = try pushes.open("bob", tablet, token: 2).session
        try pushes.acknowledge(
            other, try pushes.head("bob"),
            reads: [ReadReceipt(conversation: room, through: 1)])
        #expect(try pushes.run(60_000) == [])
        #expect(try pushes.view(phone).reachability == .wakeable)
        #expect(try pushes.wakes(phone).map(\.outcome) == [.superseded])
    }

    @Test func rangesOfTheAppCoverAndThoseOfAnExtensionDoNot() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        let opened = try pushes.open("bob", phone)
        let applied = try pushes.head("bob")
        try pushes.acknowledge(opened.session, applied)
        try pushes.end(opened.session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        try world.publish("2", to: room, from: "anna")
        #expect(try pushes.run(62_000).count == 3)
        let range = InclusiveRange(first: applied + 2, last: applied + 2)
        let beside = try world.login("bob", phone, role: .extension)
        try pushes.acknowledge(beside.session, 0, completes: false, ranges: [range])
        #expect(try world.all(AlertRecord.self).map(\.phase) == [.sent, .sent])
        let session = try pushes.open("bob", phone).session
        try pushes.acknowledge(session, applied, completes: false, ranges: [range])
        #expect(Set(try world.all(AlertRecord.self).map(\.phase)) == [.sent, .covered])
        // Still unreachable: no sync was completed.
        try pushes.end(session, within: 0)
        try pushes.run(2_000)
        #expect(try pushes.view(phone).reachability == .unreachable)
        try world.publish("3", to: room, from: "anna")
        #expect(try pushes.run(0) == [#"alert "3 (and 1 more)" badge 3 stored"#])
    }

    @Test func aTokenLivesOnOneDevice() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob", "carl"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        #expect(try pushes.run(61_000).count == 2)
        #expect(try world.all(AlertRecord.self).count == 1)
        // Carl's device presents the same token.
        _ = try pushes.open("carl", tablet)
        #expect(try pushes.view(phone).reachability == .tokenless)
        #expect(try world.all(AlertRecord.self).isEmpty)
        try world.publish("2", to: room, from: "anna")
        #expect(try pushes.run(120_000) == [])
    }

    @Test func aDeadTokenIsDropped() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        let job = try #require(try pushes.claim().first)
        let answer = try pushes.finish(
            job, .answered(status: 410, reason: "Unregistered", timestamp: world.now))
        #expect(answer == .deadToken(since: world.now))
        #expect(try pushes.view(phone).reachability == .tokenless)
        #expect(try pushes.view(phone).device.pushToken == nil)
        let record = try #require(try pushes.wakes(phone).first)
        #expect(record.outcome == .rejected)
        #expect(record.reason == "Unregistered")
        #expect(try pushes.run(120_000) == [])
    }

    @Test func anUnansweredPushIsRepeatedUnderTheSameId() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        let first = try #require(try pushes.claim().first)
        // The process dies with the push in flight; nobody else may claim it meanwhile.
        #expect(try pushes.claim().isEmpty)
        world.pass(3_000)
        try world.ask(.start(boot: BootID(high: 9, low: 10), epochHalf: 1))
        world.pass(5_000)
        try pushes.tick()
        world.pass(5_000)
        try pushes.tick()
        #expect(try pushes.claim().isEmpty)
        try pushes.run(49_000)
        let second = try #require(pushes.sent.last)
        #expect(second.request.id == first.request.id)
        #expect(second.key.attempt == first.key.attempt + 1)
        #expect(try pushes.finish(first) == nil)
    }

    @Test func deltaMarksWhatWasAlerted() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        #expect(try pushes.run(62_000).count == 2)
        try world.publish("2", to: room, from: "anna")
        let marks = try world.page("bob", device: phone).entries.map(\.alerted)
        #expect(marks.filter { $0 }.count == 1)
        #expect(try world.page("bob", device: tablet).entries.allSatisfy { !$0.alerted })
    }

    @Test func aLateComerIsNotedAndOneThatDoesNotSyncIsNotDemoted() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
        try world.publish("1", to: room, from: "anna")
        #expect(try pushes.run(0) == ["silent"])
        let wake = try #require(pushes.sent.last).request.id
        #expect(try pushes.run(61_000).count == 1)
        var opened = try pushes.open("bob", phone, wake: wake)
        #expect(opened.sync.hadPushRows)
        #expect(try pushes.wakes(phone).first?.outcome == .late)
        try pushes.acknowledge(opened.session, try pushes.head("bob"))
        try pushes.end(opened.session, within: 0)
        try pushes.run(2_000)

        // It connects, does not sync, and goes: alerted, and still wakeable.
        try world.publish("2", to: room, from: "anna")
        #expect(try pushes.run(10_000) == ["silent"])
        opened = try pushes.open("bob", phone, wake: try #require(pushes.sent.last).request.id)
        #expect(opened.sync.hadPushRows)
        try pushes.end(opened.session, within: 0)
        #expect(try pushes.run(29_000) == [])
        #expect(try pushes.run(2_000) == [#"alert "2" badge 2 stored"#])
        #expect(try pushes.view(phone).reachability == .wakeable)
        #expect(try pushes.wakes(phone).dropLast().last?.outcome == .connectedNotSynced)
    }

    @Test func demotionsAndRecoveriesAreTold() throws {
        let pushes = try Pushes()
        let world = pushes.world
        let room = try world.converse(["anna", "bob"])
        try pushes.end(try pushes.open("bob", phone).session, within: 0)
        try pushes.run(2_000)
        let published = try world.outcome(
            .publish(
                app: World.app,
                Publication(message: world.message0("1", to: room, world.fresh()), sender: ""),
                idempotency: nil))
        #expect(published.effects.background == .pushes)
        for job in try pushes.claim() { try pushes.finish(job) }
        for _ in 0..<30 {
            world.pass(2_000)
            try world.ask(.keepAlive)
        }
        let swept = try world.outcome(.sweepWakes(rows: 10))
        #expect(swept.effects.wakes.demotions == 1)
        #expect(swept.effects.background == .pushes)
        let session = try pushes.open("bob", phone).session
        let acknowledged = try world.outcome(
            .acknowledge(
                Acknowledge(
                    session: session, applied: try pushes.head("bob"), completesSync: true)))
        #expect(acknowledged.effects.wakes.recoveries == 1)
    }
}
