import Feed
import Model
import Testing
import Wake
import Wire

struct AccessTests {
    let world: World
    let phone = DeviceID(high: 5, low: 1)
    let tablet = DeviceID(high: 5, low: 2)
    static let anna = UserID("anna")
    static let push = PushRegistration(
        token: [1, 2, 3], environment: .production, topic: "com.example.chess")

    init() throws {
        world = try World()
        try world.expectDone(
            .putPushCredential(
                PushCredentialRecord(
                    app: World.app, environment: .production, keyID: "K", team: "T",
                    privateKeyPEM: "p", topics: "com.example.chess", host: "h", port: 443,
                    changedAt: world.now)))
    }

    @Test("an app with much to push makes no other wait; what is free goes by time")
    func claimsAreShared() throws {
        let quiet = AppID("quiet")
        try world.expectDone(.putApp(AppRecord(app: quiet, createdAt: world.now)))
        try world.expectDone(
            .putPushCredential(
                PushCredentialRecord(
                    app: quiet, environment: .production, keyID: "K", team: "T",
                    privateKeyPEM: "p", topics: "com.example.chess", host: "h", port: 443,
                    changedAt: world.now)))
        func own(_ number: UInt64, _ app: AppID) throws {
            let push = PushRegistration(
                token: [UInt8(number), app == quiet ? 1 : 0], environment: .production,
                topic: "com.example.chess")
            let answer = try world.open(
                .identity(Self.anna), DeviceID(high: 8, low: number), app: app, push: push)
            guard case .opened(let opened) = answer else { throw Unexpected(answer: answer) }
            _ = try world.ask(
                .endSession(EndSession(session: opened.session, applied: 0, expectedWithin: 0)))
        }
        for number in 1...12 { try own(UInt64(number), World.app) }
        try own(1, quiet)
        try world.publish("many", to: try world.converse(["anna"]))
        world.pass(1_000)
        let id: ConversationID = world.fresh()
        for request in [
            StoreRequest.createConversation(
                app: quiet, CreateConversation(conversation: id, participants: ["anna"]),
                idempotency: nil),
            .publish(
                app: quiet,
                Publication(message: world.message0("one", to: id, world.fresh()), sender: ""),
                idempotency: nil),
        ] { _ = try world.ask(request) }
        world.pass(1_000)
        let first = try claim()
        #expect(first.count == 4)
        #expect(first.filter { $0.key.app == quiet }.count == 1)
        let rest = try claim() + claim() + claim()
        #expect(rest.count == 9)
    }

    private func claim() throws -> [PushJob] {
        let answer = try world.ask(
            .claimPushes(
                ClaimPushes(
                    boot: BootID(high: 9, low: 9),
                    streams: 4,
                    ids: (0..<4).map { _ in world.fresh() })))
        guard case .pushes(let claimed) = answer else { throw Unexpected(answer: answer) }
        return claimed.jobs
    }

    /// What a page and the turn over connected users say of the session.
    private func standing(of session: SessionKey) throws -> SessionStanding? {
        let query = PageQuery(
            app: session.app, user: session.user, device: session.device, after: 0, bytes: 1_000,
            session: session)
        guard case .page(let page) = try world.read(.page(query)),
            case .standings(let others) = try world.read(.standings([session]))
        else { return nil }
        return page.standing == others[session] ?? .current ? page.standing : nil
    }

    private func opened(_ device: DeviceID) throws -> SessionKey {
        let answer = try world.open(.identity(Self.anna), device)
        guard case .opened(let opened) = answer else { throw Unexpected(answer: answer) }
        return opened.session
    }

    @Test("a read tells of a session that it was superseded, challenged, suspended or revoked")
    func standings() throws {
        let first = try opened(phone)
        #expect(try standing(of: first) == .current)
        let second = try opened(phone)
        #expect(try standing(of: first) == .ended(.superseded))
        #expect(try standing(of: second) == .current)
        try world.expectDone(
            .revokeSessions(World.app, Self.anna, reauthenticate: true))
        #expect(try standing(of: second) == .challenged)
        let third = try opened(tablet)
        #expect(try standing(of: third) == .current)
        try world.expectDone(.suspendUser(World.app, Self.anna))
        #expect(try standing(of: third) == .ended(.suspended))
        try world.expectDone(.resumeUser(World.app, Self.anna))
        try world.expectDone(
            .revokeSessions(World.app, Self.anna, reauthenticate: false))
        #expect(try standing(of: third) == .ended(.revoked))
    }

    @Test("SES-12: the old token stays good until the new one has been used, then it is gone")
    func twoSlots() throws {
        try world.login("anna", phone, token: 1)
        func resume(with old: UInt8, new: UInt8) throws -> Code? {
            try world.open(.sessionToken(hash: [old]), phone, token: new).refusal
        }
        // The answers that held tokens 2 and 3 were lost: 1 still lets in.
        for new in 2...4 as ClosedRange<UInt8> { #expect(try resume(with: 1, new: new) == nil) }
        #expect(try resume(with: 2, new: 5) == .tokenInvalid)
        #expect(try resume(with: 3, new: 5) == .tokenInvalid)
        #expect(try resume(with: 4, new: 5) == nil)
        #expect(try resume(with: 1, new: 6) == .tokenInvalid)
        for new in 7...8 as ClosedRange<UInt8> { #expect(try resume(with: 4, new: new) == nil) }
    }

    @Test("SES-23: revoking ends every session of the user, at once and for good")
    func revoked() throws {
        let first = try world.login("anna", phone, token: 1, push: Self.push).session
        let second = try world.login("anna", tablet, token: 2).session
        let other = try world.login("bob", DeviceID(high: 5, low: 3), token: 3).session
        try world.expectDone(
            .revokeSessions(World.app, Self.anna, reauthenticate: false))
        #expect(
            world.ended == [first, second].map { EndedSession(session: $0, code: .revoked) })
        for (token, device) in [(1, phone), (2, tablet)] as [(UInt8, DeviceID)] {
            #expect(
                try world.open(.sessionToken(hash: [token]), device).refusal == .tokenInvalid)
        }
        #expect(try world.open(.sessionToken(hash: [3]), other.device).refusal == nil)
        // Nothing is owed to who is logged out.
        try world.publish("x", to: try world.converse(["anna"]))
        #expect(try claim().isEmpty)
        #expect(
            try world.ask(
                .administer(.revokeSessions(World.app, UserID("none"), reauthenticate: false))
            ).refusal == .notFound)
        try world.login("anna", phone, token: 4)
    }

    @Test("SES-21 SES-22: asked to log in anew the session stays, and is no socket meanwhile")
    func reauthenticated() throws {
        let session = try world.login("anna", phone, token: 1, push: Self.push).session
        let id = try world.converse(["anna"])
        try world.expectDone(.revokeSessions(World.app, Self.anna, reauthenticate: true))
        #expect(world.ended == [])
        #expect(world.challenged == [session])
        #expect(try world.open(.sessionToken(hash: [1]), tablet).refusal == .tokenInvalid)
        try world.publish("x", to: id)
        #expect(try claim().map(\.kind) == [.silent])

        let request = Reauthenticate(session: session, newTokenHash: [2], dormantAfter: nil)
        guard case .opened(let opened) = try world.ask(.reauthenticate(request)) else {
            Issue.record("not accepted")
            return
        }
        #expect(opened.session == session)
        try world.publish("y", to: id)
        #expect(try claim().isEmpty)
        #expect(try world.open(.sessionToken(hash: [2]), phone, token: 3).refusal == nil)
        // A newer session has taken over: the older one's login comes too late.
        #expect(try world.ask(.reauthenticate(request)) == .ended(.superseded))
    }

    @Test("SES-24: a suspended user is out at once, gets no push, and is let in again as before")
    func suspended() throws {
        let id = try world.converse(["anna"])
        let session = try world.login("anna", phone, token: 1, push: Self.push).session
        let gone = try world.login("anna", tablet, token: 2).session
        _ = try world.ask(
            .endSession(EndSession(session: gone, applied: 0, expectedWithin: 10_000)))
        try world.expectDone(.suspendUser(World.app, Self.anna))
        #expect(world.ended == [EndedSession(session: session, code: .suspended)])
        #expect(try world.open(.sessionToken(hash: [1]), phone).refusal == .suspended)
        #expect(try world.open(.identity(Self.anna), phone).refusal == .suspended)
        _ = try world.ask(.sweepWakes(rows: 100))
        try world.publish("x", to: id)
        #expect(try claim().isEmpty)
        world.pass(31_000)
        #expect(try claim().isEmpty)
        #expect(
            try world.ask(
                .reauthenticate(
                    Reauthenticate(session: session, newTokenHash: [9], dormantAfter: nil))
            ) == .ended(.suspended))

        try world.expectDone(.resumeUser(World.app, Self.anna))
        world.pass(31_000)
        // Nothing that came meanwhile is lost, and the old token is still good.
        #expect(try claim().map(\.kind) == [.silent])
        #expect(try world.open(.sessionToken(hash: [1]), phone).refusal == nil)
    }

    @Test("SES-24: a suspended app: its users are out, and nothing leaves in its name")
    func suspendedApp() throws {
        world.limits.listRows = 1
        let id = try world.converse(["anna", "bob"])
        let session = try world.login("anna", phone, push: Self.push).session
        let other = try world.login("bob", tablet).session
        try world.expectDone(.suspendApp(World.app))
        #expect(Set(world.ended.map(\.session)) == [session, other])
        #expect(Set(world.ended.map(\.code)) == [.suspended])
        #expect(try world.open(.identity(Self.anna), phone).refusal == .suspended)
        world.limits.listRows = 100
        _ = try world.ask(.sweepWakes(rows: 100))
        try world.publish("x", to: id)
        #expect(try claim().isEmpty)
        try world.expectDone(.resumeApp(World.app))
        world.pass(31_000)
        #expect(try claim().map(\.kind) == [.silent])
        try world.login("anna", phone)
    }

    @Test("SES-15: a HELLO that was long on its way takes nothing from a newer connection")
    func late() throws {
        func open(at connected: UInt64) throws -> StoreAnswer {
            try world.ask(
                .openSession(
                    OpenSession(
                        app: World.app, device: phone, role: .app, credential: .identity(Self.anna),
                        newTokenHash: [UInt8(connected)], freshEpochHalf: 1,
                        boot: BootID(high: 9, low: 9), connectedAt: connected)))
        }
        guard case .opened(let newer) = try open(at: 20) else {
            Issue.record("not opened")
            return
        }
        #expect(try open(at: 10).refusal == .superseded)
        #expect(world.ended == [])
        #expect(try world.open(.sessionToken(hash: [20]), tablet).refusal == .deviceMismatch)
        _ = try world.ask(
            .endSession(EndSession(session: newer.session, applied: 0, expectedWithin: 10_000)))
        // Nobody is there any more from whom it could take anything.
        #expect(try open(at: 15).refusal == nil)
        #expect(try open(at: 30).refusal == nil)
    }

    // MARK: SYN-31

    private func failures(_ user: String) throws -> UInt64 {
        try world.record(
            DeviceRecord.self, [.app(World.app), .text(user), .identifier(phone)]
        )?.deliveryFailures ?? 0
    }

    private func connect(at seq: UInt64, _ token: UInt8) throws -> OpenedSession {
        let epoch = try world.page("anna").epoch
        return try world.login(
            "anna", phone, token: token,
            sync: SyncFrame(
                cursor: Cursor(epoch: epoch, seq: seq), applied: seq, mode: .advance))
    }

    @Test("SYN-31: SYNCs from the same place are counted across connections; an ACK ends it")
    func poison() throws {
        try world.login("anna", phone)
        let id = try world.converse(["anna"])
        try world.publish("x", to: id)
        for number in 1...6 as ClosedRange<UInt64> {
            let opened = try connect(at: 0, UInt8(number))
            #expect(opened.sync.deliveryFailures == number)
            #expect(try failures("anna") == number)
        }
        let session = try connect(at: 0, 7).session
        _ = try world.ask(
            .acknowledge(Acknowledge(session: session, applied: 1, completesSync: false)))
        #expect(try failures("anna") == 0)
        #expect(try connect(at: 1, 8).sync.deliveryFailures == 1)
        #expect(try connect(at: 3, 9).sync.deliveryFailures == 0)
        // Nothing above: nothing is sent, nothing fails.
        #expect(try connect(at: 3, 10).sync.deliveryFailures == 0)
        try world.publish("y", to: id)
        let last = try connect(at: 3, 11)
        #expect(last.sync.deliveryFailures == 1)
        _ = try world.ask(
            .endSession(EndSession(session: last.session, applied: 4, expectedWithin: 0)))
        #expect(try failures("anna") == 0)
    }

    @Test("SYN-31: a page that the store kept from being sent was not sent")
    func pageUnsent() throws {
        try world.login("anna", phone)
        let id = try world.converse(["anna"])
        try world.publish("x", to: id)
        func end(_ session: SessionKey) throws {
            _ = try world.ask(
                .endSession(
                    EndSession(
                        session: session, applied: 0, expectedWithin: 0, isPageUnsent: true)))
        }
        #expect(try connect(at: 0, 1).sync.deliveryFailures == 1)
        for number in 2...9 as ClosedRange<UInt8> {
            let opened = try connect(at: 0, number)
            #expect(opened.sync.deliveryFailures == 2)
            try end(opened.session)
            #expect(try failures("anna") == 1)
        }
        // None is less than none.
        let reset = try connect(at: 1, 10)
        try end(reset.session)
        let nothing = try connect(at: 3, 11)
        try end(nothing.session)
        #expect(try failures("anna") == 0)
    }
}
