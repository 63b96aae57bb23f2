import Feed
import Model
import Testing
import Wire

struct SessionTests {
    let world: World
    let phone = DeviceID(high: 5, low: 1)
    let tablet = DeviceID(high: 5, low: 2)

    init() throws { world = try World() }

    private func tokenAnswer(
        _ token: UInt8, device: DeviceID? = nil, app: AppID = World.app, next: UInt8 = 0,
        role: RoleKind = .app
    ) throws -> StoreAnswer {
        try world.open(
            .sessionToken(hash: [token]), device ?? phone, app: app, role: role, token: next)
    }

    @Test func tokensAreBoundToDeviceAppAndTime() throws {
        try world.login("anna", phone, token: 1)
        #expect(try tokenAnswer(9).refusal == .tokenInvalid)
        #expect(try tokenAnswer(1, device: tablet).refusal == .deviceMismatch)
        let other = AppID("go")
        try world.expectDone(.putApp(AppRecord(app: other, createdAt: world.now)))
        #expect(try tokenAnswer(1, app: other).refusal == .tokenInvalid)
        #expect(try tokenAnswer(1, app: AppID("none")).refusal == .tokenInvalid)
        world.pass(2_592_000_000 - 1)
        guard case .opened(let opened) = try tokenAnswer(1, next: 2) else {
            Issue.record("refused")
            return
        }
        #expect(opened.session.user == UserID("anna"))
        world.pass(1)
        #expect(try tokenAnswer(1).refusal == .expired)
        #expect(try tokenAnswer(2).refusal == nil)
    }

    @Test func theOldTokenWorksUntilTheNewOneHasBeenUsed() throws {
        try world.login("anna", phone, token: 1)
        #expect(try tokenAnswer(1, next: 2).refusal == nil)
        #expect(try tokenAnswer(1, next: 3).refusal == nil)
        #expect(try tokenAnswer(2).refusal == .tokenInvalid)
        #expect(try tokenAnswer(3, next: 4).refusal == nil)
        #expect(try tokenAnswer(1).refusal == .tokenInvalid)
        #expect(try tokenAnswer(4, next: 5).refusal == nil)
        #expect(try world.all(SessionTokenRecord.self).count == 2)
    }

    @Test func anExtensionsTokensAreItsOwn() throws {
        try world.login("anna", phone, token: 1)
        #expect(try tokenAnswer(1, next: 2, role: .extension).refusal == nil)
        #expect(world.ended.isEmpty)
        #expect(try tokenAnswer(2, next: 3, role: .extension).refusal == nil)
        #expect(try tokenAnswer(2, next: 4).refusal == .tokenInvalid)
        #expect(try tokenAnswer(1, next: 4).refusal == nil)
        #expect(try tokenAnswer(3, role: .extension).refusal == nil)
    }

    @Test func anExtensionTakesNothingFromAnotherUser() throws {
        let anna = try world.login("anna", phone, token: 1)
        #expect(
            try world.open(.identity(UserID("bert")), phone, role: .extension).refusal
                == .forbidden)
        #expect(try tokenAnswer(1).refusal == nil)
        #expect(world.ended.map(\.session) == [anna.session])
    }

    @Test("an abandoned opening ends the session of its own connection only")
    func abandoned() throws {
        try world.login("anna", phone)
        let row = try #require(try world.all(SessionRecord.self).first)
        func abandon(_ connectedAt: UInt64) throws -> Timestamp? {
            let request = AbandonSession(
                app: World.app, device: phone, role: .app, boot: row.boot,
                connectedAt: connectedAt, expectedWithin: 10_000)
            #expect(try world.ask(.abandonSession(request)) == .done)
            return try world.all(SessionRecord.self).first?.expectedUntil
        }
        #expect(try abandon(row.connectedAt + 1) == nil)
        #expect(try abandon(row.connectedAt) == world.now + 10_000)
    }

    @Test func aNewerSessionSupersedesOfItsOwnRoleOnly() throws {
        let first = try world.login("anna", phone)
        try world.login("anna", tablet)
        #expect(world.ended.isEmpty)
        try world.login("anna", phone, role: .extension)
        #expect(world.ended.isEmpty)
        let second = try world.login("anna", phone)
        #expect(world.ended == [EndedSession(session: first.session, code: .superseded)])
        #expect(second.session.generation > first.session.generation)
        #expect(
            try world.ask(
                .acknowledge(Acknowledge(session: first.session, applied: 0, completesSync: false)))
                == .ended(.superseded))
        let end = EndSession(session: first.session, applied: 0, expectedWithin: 0)
        #expect(try world.ask(.endSession(end)) == .ended(.superseded))
        let row = try world.all(SessionRecord.self).first {
            $0.device == phone && $0.role == .app
        }
        #expect(row?.generation == second.session.generation)
        #expect(row?.expectedUntil == nil)
    }

    @Test func anotherUserOfTheDeviceIsLoggedOut() throws {
        try withPushCredential()
        let push = PushRegistration(token: [7], environment: .production, topic: "org.chess")
        let anna = try world.login("anna", phone, token: 1, push: push)
        #expect(anna.isPushTokenHeld)
        try world.login("bert", phone)
        #expect(world.ended == [EndedSession(session: anna.session, code: .revoked)])
        #expect(try tokenAnswer(1).refusal == .tokenInvalid)
        #expect(try device("anna", phone)?.pushToken == nil)
        guard case .device(let view?) = try world.read(.device(World.app, phone)) else {
            Issue.record("no device")
            return
        }
        #expect(view.device.user == UserID("bert"))
    }

    @Test func aPushTokenLivesOnOneDevice() throws {
        try withPushCredential()
        let push = PushRegistration(token: [7], environment: .production, topic: "org.chess")
        #expect(try world.login("bert", tablet, push: push).isPushTokenHeld)
        let generation = try device("bert", tablet)?.tokenGeneration
        #expect(try world.login("anna", phone, push: push).isPushTokenHeld)
        #expect(try device("bert", tablet)?.pushToken == nil)
        #expect(try device("bert", tablet)?.tokenGeneration == (generation ?? 0) + 1)
        #expect(try device("anna", phone)?.pushToken == [7])
        // The same number in the other environment is another token.
        var other = push
        other.environment = .development
        #expect(try world.login("bert", tablet, push: other).isPushRefused)
        #expect(try device("anna", phone)?.pushToken == [7])
        other = push
        other.topic = "org.other"
        let refused = try world.login("anna", phone, push: other)
        #expect(refused.isPushRefused && refused.isPushTokenHeld)
        // A client certificate names it; no alert can go there.
        other.topic = "org.chess.voip"
        #expect(try world.login("anna", phone, push: other).isPushRefused)
    }

    private func withPushCredential() throws {
        try world.expectDone(
            .putPushCredential(
                PushCredentialRecord(
                    app: World.app, environment: .production, keyID: "k", team: "t",
                    privateKeyPEM: "p", topics: "org.chess\norg.chess.voip", host: "h", port: 443,
                    changedAt: world.now)))
    }

    private func device(_ user: String, _ id: DeviceID) throws -> DeviceRecord? {
        try world.record(DeviceRecord.self, [.app(World.app), .text(user), .identifier(id)])
    }

    @Test func aSessionMeetsItsLateEndOnlyOnce() throws {
        let session = try world.login("anna", phone).session
        let id = try world.converse(["anna"])
        try world.publish("x", to: id)
        let end = EndSession(session: session, applied: 3, expectedWithin: 5000)
        #expect(try world.ask(.endSession(end)) == .done)
        let row = try world.all(SessionRecord.self).first
        #expect(row?.expectedUntil == world.now + 5000)
        #expect(try device("anna", phone)?.applied == 3)
        // An `applied` above head is not believed.
        let above = EndSession(session: session, applied: 99, expectedWithin: 5000)
        #expect(try world.ask(.endSession(above)) == .done)
        #expect(try device("anna", phone)?.applied == 3)
    }

    @Test func switchesAreStoredAsSaid() throws {
        let state = AppState(phase: .foreground, notifications: .on, lowPower: .off)
        let answer = try world.open(
            .identity(UserID("anna")), phone, appState: state)
        guard case .opened(let opened) = answer else {
            Issue.record("refused")
            return
        }
        let change = AppState(phase: .background, notifications: .off)
        #expect(
            try world.ask(
                .changeAppState(
                    ChangeAppState(session: opened.session, appState: change, dormantAfter: 30_000))
            ) == .done)
        let stored = try device("anna", phone)
        #expect(stored?.notifications == .off)
        #expect(stored?.lowPower == .off)
        #expect(stored?.backgroundRefresh == .unknown)
        #expect(try world.all(SessionRecord.self).first?.dormantAt == world.now + 30_000)
    }

    @Test func aRestartExpectsWhoHadGoneBeforeNoLonger() throws {
        let session = try world.login("anna", phone).session
        _ = try world.ask(
            .endSession(EndSession(session: session, applied: 0, expectedWithin: 1_000)))
        let until = world.now + 1_000
        world.pass(500)
        _ = try world.ask(.start(boot: BootID(high: 9, low: 8), epochHalf: 1))
        #expect(try world.all(SessionRecord.self).map(\.expectedUntil) == [until])
    }

    @Test func aRestartExpectsTheSessionsOfOtherBoots() throws {
        try world.login("anna", phone)
        try world.login("bert", tablet)
        world.limits.listRows = 1
        #expect(
            try world.ask(.start(boot: BootID(high: 9, low: 9), epochHalf: 1))
                == .started(storeEpochHalf: 77))
        #expect(try world.all(SessionRecord.self).allSatisfy { $0.expectedUntil == nil })
        #expect(
            try world.ask(.start(boot: BootID(high: 9, low: 8), epochHalf: 1))
                == .started(storeEpochHalf: 77))
        let until = world.now + 10_000
        #expect(try world.all(SessionRecord.self).map(\.expectedUntil) == [until, until])
    }
}
