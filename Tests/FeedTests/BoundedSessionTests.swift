import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// How many devices a user has, and how all sessions of an app or of a process end: in turns.
struct BoundedSessionTests {
    let world: World

    init() throws { world = try World() }

    private func device(_ number: Int) -> DeviceID { DeviceID(high: 5, low: UInt64(number)) }

    private func live(_ user: String = "anna") throws -> [DeviceRecord] {
        try world.all(DeviceRecord.self).filter { $0.expiresAt == nil }
    }

    /// Devices and sessions as there were before a bound, without logging in on each.
    private func fill(_ count: Int, user: (Int) -> String = { _ in "anna" }) throws {
        _ = try world.login(user(0), device(0))
        for number in 0..<count where user(number) != user(0) || number == 0 {
            let key: [ColumnValue] = [.app(World.app), .text(user(number))]
            guard try world.record(UserRecord.self, key) == nil else { continue }
            try world.tamper { transaction throws(StoreError) in
                try transaction.put(
                    UserRecord(
                        app: World.app, user: UserID(user(number)), epochHalf: 5,
                        createdAt: self.world.now))
            }
        }
        try world.tamper { transaction throws(StoreError) in
            for number in 1..<count {
                try transaction.put(
                    DeviceRecord(
                        app: World.app, user: UserID(user(number)), device: self.device(number),
                        createdAt: self.world.now, lastSeenAt: self.world.now))
                try transaction.put(
                    SessionRecord(
                        app: World.app, user: UserID(user(number)), device: self.device(number),
                        role: .app, boot: BootID(high: 9, low: 9), generation: 1,
                        openedAt: self.world.now))
            }
        }
    }

    @Test("a user has 32 devices: one more logs out the one that was away for longest")
    func devices() throws {
        var sessions: [SessionKey] = []
        for number in 0..<40 {
            world.pass(1_000)
            sessions.append(try world.login("anna", device(number)).session)
        }
        #expect(try live().count == 32)
        // All are connected: the longest unseen goes, and is told.
        #expect(world.ended == [EndedSession(session: sessions[7], code: .revoked)])
        // One that is not connected goes before them, however lately it was seen.
        _ = try world.ask(
            .endSession(EndSession(session: sessions[39], applied: 0, expectedWithin: 0)))
        world.pass(1)
        try world.login("anna", device(40))
        #expect(world.ended == [EndedSession(session: sessions[39], code: .revoked)])
        #expect(try live().map(\.device).contains(device(8)))
        // Who is known already takes nobody's place.
        try world.login("anna", device(8))
        #expect(try live().count == 32)
    }

    @Test("logins without end leave a bounded number of rows, and each costs the same")
    func logins() throws {
        for number in 0..<200 {
            world.pass(1_000)
            try world.login("anna", device(number))
            #expect(world.rows.total < 400)
        }
        #expect(try world.all(DeviceRecord.self).count <= 65)
        #expect(try world.all(SessionRecord.self).count == 32)
    }

    @Test("all sessions of a user end, also of one with more devices than a page has")
    func revokeAll() throws {
        try fill(1_100)
        world.limits.devicesPerUser = 2_000
        try world.expectDone(
            .revokeSessions(World.app, UserID("anna"), reauthenticate: false))
        #expect(world.ended.count == 1_100)
        #expect(try live().isEmpty)
        #expect(try world.all(SessionRecord.self).isEmpty)
    }

    @Test("a suspended user's sessions end, also of one with more devices than a page has")
    func suspendUser() throws {
        try fill(1_100)
        world.limits.devicesPerUser = 2_000
        try world.expectDone(.suspendUser(World.app, UserID("anna")))
        #expect(world.ended.count == 1_100)
    }

    @Test("a suspended app lets nobody in at once; its sessions end in turns")
    func suspendApp() throws {
        try fill(1_000) { "user\($0)" }
        try world.expectDone(.suspendApp(World.app))
        #expect(world.rows.total < 1_000)
        var ended = world.ended.count
        #expect(try world.open(.identity(UserID("user3")), device(3)).refusal == .suspended)
        while case .progressed(_, true) = try world.ask(.sweepWakes(rows: 100)) {
            ended += world.ended.count
            if ended == 1_000 { break }
        }
        #expect(ended == 1_000)
        #expect(try world.all(SessionEndRecord.self).isEmpty)
    }

    @Test("an app let in again while its sessions still end keeps those that come")
    func resumeApp() throws {
        try fill(1_000) { "user\($0)" }
        try world.expectDone(.suspendApp(World.app))
        try world.expectDone(.resumeApp(World.app))
        let session = try world.login("user999", device(999)).session
        try world.ask(.sweepWakes(rows: 100))
        #expect(!world.ended.map(\.session).contains(session))
        #expect(try world.all(SessionEndRecord.self).isEmpty)
    }

    @Test("a removed app's connections are told before its rows go")
    func removeApp() throws {
        try fill(1_000) { "user\($0)" }
        try world.expectDone(.removeApp(World.app))
        #expect(world.rows.total < 1_000)
        var ended = world.ended.count
        while case .progressed(_, true) = try world.ask(.enforceRetention(rows: 500)) {
            ended += world.ended.count
        }
        #expect(ended == 1_000)
        #expect(try world.all(SessionRecord.self).isEmpty)
        #expect(try world.all(DeviceRecord.self).isEmpty)
    }

    @Test("a start touches few sessions of the process before; the rest follow in turns")
    func start() throws {
        try fill(2_000) { "user\($0)" }
        let until = world.now + RuleLimits().reconnectWindow
        let boot = BootID(high: 9, low: 10)
        try world.ask(.start(boot: boot, epochHalf: 77))
        #expect(world.rows.total < 1_000)
        // One comes back before its row had its turn: it is not ended.
        let answer = try world.ask(
            .openSession(
                OpenSession(
                    app: World.app, device: device(1_999), role: .app,
                    credential: .identity(UserID("user1999")), newTokenHash: world.hash(),
                    freshEpochHalf: 5, boot: boot)))
        guard case .opened(let back) = answer else { throw Unexpected(answer: answer) }
        while case .progressed(_, true) = try world.ask(.sweepWakes(rows: 1)) {
            #expect(world.rows.total < 2_000)
        }
        let sessions = try world.all(SessionRecord.self)
        #expect(sessions.count == 2_000)
        #expect(sessions.filter { $0.expectedUntil == until }.count == 1_999)
        #expect(
            sessions.first { $0.expectedUntil == nil }?.generation == back.session.generation)
    }

    @Test("a message to two is not held up by four thousand who left")
    func manyLeft() throws {
        let id = try world.converse(["anna", "zoe"])
        try world.tamper { transaction throws(StoreError) in
            for number in 0..<4_000 {
                try transaction.put(
                    ParticipantRecord(
                        app: World.app, conversation: id, user: UserID("m\(number)"),
                        joinedPosition: 0, joinedRevision: 0, version: 2, leftRevision: 1))
            }
        }
        try world.publish("x", to: id)
        #expect(world.rows.total < 2_500)
        try world.finishFanOut()
        #expect(try world.page("zoe").entries.last?.word == "message 1")
    }
}
