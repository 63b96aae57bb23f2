import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// Requests and turns that meet much at once, where a turn has few rows: each ends with its turn,
/// and what is left is done in the next ones, all of it.
struct SmallTurnTests {
    private let campaigns: Campaigns
    private var world: World { campaigns.world }
    private let turn = 256

    init() throws {
        campaigns = try Campaigns()
        world.limits.rowsPerTurn = turn
    }

    /// The turns of a duty until there is nothing more to do, and the rows of each.
    private func turns(_ request: StoreRequest) throws -> [Int] {
        var rows: [Int] = []
        while true {
            let answer = try world.ask(request)
            rows.append(world.rows.total)
            guard case .progressed(_, more: true) = answer else { return rows }
            try #require(rows.count < 5_000, "it comes to no end")
        }
    }

    /// Sleeping phones, each with a wake due at `due`, or that waits for its app since then.
    private func wakes(_ numbers: Range<UInt64>, waitingSince: Timestamp? = nil) throws {
        try world.tamper { transaction throws(StoreError) in
            for number in numbers {
                var row = WakeRecord(
                    app: World.app, user: UserID("u\(number)"),
                    device: DeviceID(high: 2, low: number))
                row.environment = PushEnvironmentKind.development.rawValue
                row.topic = "example.chess"
                row.phase = waitingSince == nil ? .due : .waiting
                row.due = waitingSince == nil ? self.world.now : nil
                row.waitingSince = waitingSince
                row.graceUntil = waitingSince.map { $0 + 60_000 }
                row.usefulTarget = 5
                try transaction.put(row)
            }
        }
    }

    @Test("an announcement is in feeds until the turn is spent, and in the others' afterwards")
    func announcement() throws {
        let users = (0..<256).map { "user\($0)" }
        let answer = try world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: world.fresh(), users: users,
                    parts: [Part(mimeType: "text/plain", content: [1])],
                    push: PushText(title: "News", body: "Sale")),
                idempotency: nil))
        #expect(answer.refusal == nil)
        #expect(world.rows.total <= turn + 32, "\(world.rows)")
        // Some have it at once.
        #expect(try users.count { try world.head($0) == 1 } > 10)
        let rows = try turns(.continueFanOut(recipients: 512))
        #expect(try #require(rows.max()) <= turn + 64, "\(rows)")
        #expect(try users.allSatisfy { try world.head($0) == 1 })
        #expect(try world.all(AnnouncementBatchRecord.self).isEmpty)
    }

    @Test("announcements leave the conversations' changes their half of a turn")
    func announcementsBesideMessages() throws {
        world.limits.directRecipients = 64
        let users = (0..<1_000).map { "user\($0)" }
        let room = try world.converse((0..<100).map { "member\($0)" })
        try world.finishFanOut()
        for _ in 0..<4 {
            try world.ask(
                .announce(
                    app: World.app,
                    Announcement(
                        announcement: world.fresh(), users: users,
                        parts: [Part(mimeType: "text/plain", content: [1])], push: nil),
                    idempotency: nil))
        }
        try world.publish("hello", to: room)
        while try !world.all(FanOutRecord.self).isEmpty {
            try world.ask(.continueFanOut(recipients: 512))
            #expect(world.rows.total <= turn + 300, "\(world.rows)")
        }
        #expect(try !world.all(AnnouncementBatchRecord.self).isEmpty)
        try world.finishFanOut()
        #expect(try users.allSatisfy { try world.head($0) == 4 })
    }

    @Test("those who join are told of each other until the turn is spent, and then go on")
    func join() throws {
        let users = (0..<44).map { "user\($0)" }
        try world.converse(users)
        #expect(world.rows.total <= turn + 64 + 6 * users.count, "\(world.rows)")
        let rows = try turns(.continueFanOut(recipients: 512))
        #expect(try #require(rows.max()) <= turn + 128, "\(rows)")
        for user in users { #expect(try world.head(user) == 45) }
    }

    @Test("a claim takes pushes until its turn is spent; the rest is due as before")
    func claim() throws {
        try campaigns.phones(0...199)
        try wakes(0..<200)
        var names: Set<String> = []
        for _ in 0..<200 where names.count < 200 {
            let jobs = try campaigns.pushes.claim(streams: 256)
            // The rows that were found due are read once more than they are taken.
            #expect(world.rows.total <= turn + 300, "\(world.rows)")
            try #require(!jobs.isEmpty)
            names.formUnion(jobs.map(\.key.user.name))
        }
        #expect(names.count == 200)
    }

    @Test("a claim of a campaign's pushes ends with its turn, too")
    func claimOfCampaign() throws {
        try campaigns.phones(0...199)
        try campaigns.create { $0.plan.rate = 100_000 }
        try campaigns.advance()
        var names: Set<String> = []
        for _ in 0..<200 where names.count < 200 {
            let jobs = try campaigns.pushes.claim(streams: 256)
            #expect(world.rows.total <= turn + 300, "\(world.rows)")
            try #require(!jobs.isEmpty)
            names.formUnion(jobs.map(\.key.user.name))
        }
        #expect(names.count == 200)
    }

    @Test("a campaign goes through devices until the turn is spent, and leaves none out")
    func campaign() throws {
        try campaigns.phones(0...599)
        let id = try campaigns.create()
        let rows = try turns(.campaigns(.advance(devices: 256)))
        #expect(try #require(rows.max()) <= turn + 128, "\(rows)")
        let counts = try campaigns.counts(id)
        #expect(counts.seen == 600 && counts.waiting == 600)
        try campaigns.control(id, .cancel)
        world.pass(3_000)
        let back = try turns(.campaigns(.advance(devices: 256)))
        #expect(try #require(back.max()) <= turn + 128, "\(back)")
        #expect(try campaigns.counts(id).cancelled == 600)
    }

    @Test("a campaign whose queue is full does not count all of it at each look")
    func fullQueue() throws {
        world.limits.campaignQueue = 2_000
        try campaigns.phones(0...2_099)
        let id = try campaigns.create()
        _ = try turns(.campaigns(.advance(devices: 256)))
        #expect(try campaigns.counts(id).waiting == 2_000)
        world.pass(3_000)
        let rows = try turns(.campaigns(.advance(devices: 256)))
        #expect(try #require(rows.max()) <= 640, "\(rows)")
    }

    @Test("sessions of a suspended app end, and their devices are looked at, in small turns")
    func suspendedApp() throws {
        try campaigns.phones(0...599)
        try world.tamper { transaction throws(StoreError) in
            for number in 0..<600 as Range<UInt64> {
                try transaction.put(
                    SessionRecord(
                        app: World.app, user: UserID("u\(number)"),
                        device: DeviceID(high: 2, low: number), role: .app,
                        boot: BootID(high: 9, low: 9), generation: 1, openedAt: self.world.now))
            }
        }
        try world.expectDone(.suspendApp(World.app))
        #expect(world.rows.total <= turn + 64, "\(world.rows)")
        world.pass(1)
        let rows = try turns(.sweepWakes(rows: 256))
        #expect(try #require(rows.max()) <= turn + 64, "\(rows)")
        #expect(try world.all(SessionRecord.self).isEmpty)
        #expect(try world.all(SessionEndRecord.self).isEmpty)
    }

    @Test("after an outage, devices that waited are looked at in small turns, all of them")
    func outage() throws {
        try world.ask(.keepAlive)
        try campaigns.phones(0...299)
        try wakes(0..<300, waitingSince: world.now)
        world.pass(60_000)
        var left = 300
        while left > 0 {
            try world.ask(.keepAlive)
            #expect(world.rows.total <= turn + 64, "\(world.rows)")
            let now = try world.all(WakeRecord.self).count { $0.phase == .waiting }
            try #require(now < left)
            left = now
        }
    }

    @Test("what is due at one moment is published in small turns")
    func schedule() throws {
        let room = try world.converse(["anna", "bob"])
        let moment = world.now + 60_000
        for _ in 0..<64 {
            try world.ask(
                .schedules(
                    .add(
                        app: World.app,
                        NewScheduled(
                            .message(
                                Publication(
                                    message: world.message0("1", to: room, world.fresh()),
                                    sender: "anna")),
                            sendAt: moment), idempotency: nil)))
        }
        world.pass(60_000)
        let rows = try turns(.schedules(.publishDue(rows: 64)))
        #expect(try #require(rows.max()) <= turn + 200, "\(rows)")
        try world.finishFanOut()
        #expect(try world.all(MessageRecord.self).count == 64)
    }
}
