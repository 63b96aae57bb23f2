import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// A row of the pushes' own that cannot be read holds up the pushes of nobody else, and whoever
/// runs the server is told.
@Suite struct UnreadablePushTests {
    private let pushes: Pushes
    private let campaigns: Campaigns
    private var world: World { pushes.world }

    init() throws {
        pushes = try Pushes()
        campaigns = try Campaigns(pushes)
    }

    private func damage(
        _ table: Table, _ column: String, _ value: ColumnValue = .integer(-1),
        where isMeant: ([ColumnValue]) -> Bool = { _ in true }
    ) throws {
        let place = try #require(table.columns.firstIndex { $0.name == column })
        try world.tamper { transaction throws(StoreError) in
            for var row in try transaction.rows(table, Scan(limit: 1_000)) where isMeant(row) {
                row[place] = value
                try transaction.put(table, row)
            }
        }
    }

    /// What a server does for so many seconds; returns to whom something was sent.
    private func run(_ seconds: Int) throws -> (names: [String], told: [UnreadableRow]) {
        var names: [String] = []
        var told: [UnreadableRow] = []
        world.committed = { told += $0.flatMap(\.effects.unreadable) }
        defer { world.committed = { _ in } }
        for _ in 0..<seconds {
            try pushes.tick()
            try campaigns.advance()
            for job in try pushes.claim(streams: 100) {
                names.append(job.key.user.name)
                try pushes.finish(job)
            }
            world.pass(1_000)
        }
        return (names.sorted(), told)
    }

    private func other() throws -> AppID {
        let app = AppID("other")
        try world.expectDone(.putApp(AppRecord(app: app, createdAt: world.now)))
        try world.expectDone(
            .putPushCredential(
                PushCredentialRecord(
                    app: app, environment: .development, keyID: "KEY", team: "TEAM",
                    privateKeyPEM: "", topics: "example.chess", host: "localhost", port: 1,
                    changedAt: world.now)))
        return app
    }

    /// The row of one push of the campaign.
    @Test(arguments: ["attempts", "phase", "lane"])
    func oneOfACampaignsPushesHoldsUpNoOther(column: String) throws {
        try campaigns.phones(1...5)
        let id = try campaigns.create()
        try campaigns.advance()
        try damage(CampaignPushRecord.table, column) { $0[1] == .text("u2") }
        let (names, told) = try run(20)
        #expect(names == ["u1", "u3", "u4", "u5"])
        #expect(told.contains { $0.app == World.app }, "\(told)")
        #expect(told.count < 10, "\(told.count)")
        #expect(try campaigns.state(id) == .finished)
        let counts = try campaigns.counts(id)
        #expect(counts.accepted == 4 && counts[.changed] == 1, "\(counts)")
    }

    /// While it is under way: its device gets its own pushes, and the campaign gives it up in time.
    @Test func onePushUnderWayHoldsUpNothing() throws {
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        let jobs = try pushes.claim()
        #expect(jobs.count == 3)
        try damage(CampaignPushRecord.table, "attempts") { $0[1] == .text("u2") }
        for job in jobs { try pushes.finish(job) }
        let room = try world.converse(["anna", "u2"])
        try world.publish("x", to: room, from: "anna")
        let (names, told) = try run(700)
        #expect(names.first == "u2")
        #expect(told.count < 3, "\(told)")
        #expect(try campaigns.state(id) == .finished)
        let counts = try campaigns.counts(id)
        #expect(counts.accepted == 2 && counts[.changed] == 1, "\(counts)")
    }

    @Test func aCancelledCampaignComesToItsEndBesideOne() throws {
        try campaigns.phones(1...3)
        let id = try campaigns.create()
        try campaigns.advance()
        try damage(CampaignPushRecord.table, "attempts") { $0[1] == .text("u2") }
        try campaigns.control(id, .cancel)
        _ = try run(5)
        #expect(try campaigns.view(id).progress.finishedAt != nil)
        #expect(try campaigns.counts(id).cancelled == 3)
    }

    /// How far one campaign got.
    @Test func oneCampaignHoldsUpNoOther() throws {
        try campaigns.phones(1...3)
        let broken = try campaigns.create()
        let sound = try campaigns.create()
        try campaigns.advance()
        try damage(CampaignProgressRecord.table, "counts", .blob([1])) {
            $0[1] == .identifier(broken)
        }
        let (names, told) = try run(20)
        #expect(names == ["u1", "u2", "u3"])
        #expect(!told.isEmpty)
        #expect(told.count < 10, "\(told.count)")
        #expect(try campaigns.state(sound) == .finished)
    }

    /// What one campaign says.
    @Test(arguments: ["push_options", "filter", "rate"])
    func oneCampaignsTextHoldsUpNoOther(column: String) throws {
        try campaigns.phones(1...3)
        let broken = try campaigns.create()
        let sound = try campaigns.create()
        try campaigns.advance()
        try damage(
            CampaignRecord.table, column, column == "rate" ? .integer(-1) : .blob([255])
        ) { $0[1] == .identifier(broken) }
        let (names, told) = try run(20)
        #expect(names == ["u1", "u2", "u3"])
        #expect(!told.isEmpty)
        #expect(told.count < 45, "\(told.count)")
        #expect(try campaigns.state(sound) == .finished)
    }

    /// The credential of another app, or that app's own row.
    @Test(arguments: [true, false], [true, false])
    func anotherAppsHoldsUpNobody(isCredential: Bool, isCampaign: Bool) throws {
        let other = try other()
        try campaigns.phones(1...2)
        let id = try campaigns.create()
        try campaigns.phone(7, user: "v7") {
            $0.app = other
            $0.topic()
        }
        try world.tamper { transaction throws(StoreError) in
            try transaction.put(
                UserRecord(
                    app: other, user: UserID("v7"), epochHalf: 5, createdAt: self.world.now))
        }
        if isCampaign {
            var new = campaigns.new()
            new.app = other
            try world.ask(.campaigns(.create(new, idempotency: nil)))
        } else {
            try world.tamper { transaction throws(StoreError) in
                var row = WakeRecord(
                    app: other, user: UserID("v7"), device: DeviceID(high: 2, low: 7))
                row.phase = .due
                row.due = self.world.now
                row.environment = PushEnvironmentKind.development.rawValue
                row.topic = "example.chess"
                try transaction.put(row)
            }
        }
        try campaigns.advance()
        try damage(
            isCredential ? PushCredentialRecord.table : AppRecord.table,
            isCredential ? "changed_at" : "created_at"
        ) { $0[0] == .app(other) }
        let (names, told) = try run(20)
        #expect(names == ["u1", "u2"])
        #expect(told.contains { $0.app == other }, "\(told)")
        #expect(told.count < 45, "\(told.count)")
        #expect(try campaigns.state(id) == .finished)
    }

    /// A process starts beside a device of which something cannot be read, be a push to it under way
    /// or its grace.
    @Test(arguments: ["wake", "device"], [true, false])
    func aServerStartsBesideIt(what: String, isUnderWay: Bool) throws {
        let room = try world.converse(["anna"])
        try campaigns.phones(1...2)
        _ = try world.add(["u1", "u2"], to: room)
        try world.finishFanOut()
        try world.publish("x", to: room, from: "anna")
        try world.finishFanOut()
        try pushes.tick()
        let jobs = try pushes.claim()
        #expect(jobs.count == 2)
        if !isUnderWay { for job in jobs { try pushes.finish(job) } }
        if what == "wake" {
            try damage(WakeRecord.table, "attempt") { $0[1] == .text("u1") }
        } else {
            try damage(DeviceRecord.table, "applied") { $0[1] == .text("u1") }
        }
        world.pass(3_000)
        pushes.boot = BootID(high: 9, low: 10)
        let outcome = try world.outcome(.start(boot: pushes.boot, epochHalf: 1))
        #expect(outcome.answer == .started(storeEpochHalf: 77))
        #expect(outcome.effects.unreadable.map(\.user.name) == ["u1"])
        // The other one's push, or grace, goes on as ever.
        for _ in 0..<200 {
            world.pass(1_000)
            try pushes.tick()
            for job in try pushes.claim() where job.key.user.name == "u2" {
                try pushes.finish(job)
            }
        }
        #expect(
            try world.all(WakeHistoryRecord.self).contains {
                $0.user.name == "u2" && $0.kind == .alert
            })
    }

    /// The row of what one device is owed.
    @Test func oneDevicesOwnHoldsUpNoOther() throws {
        let room = try world.converse(["anna"])
        try campaigns.phones(1...4)
        _ = try world.add((1...4).map { "u\($0)" }, to: room)
        try world.finishFanOut()
        try world.publish("x", to: room, from: "anna")
        try world.finishFanOut()
        #expect(try world.all(WakeRecord.self).count == 4)
        try damage(WakeRecord.table, "attempt") { $0[1] == .text("u1") }
        let (names, told) = try run(20)
        #expect(names == ["u2", "u3", "u4"])
        #expect(told.contains { $0.user.name == "u1" }, "\(told)")
        #expect(told.count < 45, "\(told.count)")
    }
}

extension DeviceRecord {
    fileprivate mutating func topic() { pushTopic = "example.chess" }
}
