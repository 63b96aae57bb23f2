import Model
import Testing
import Wake
import Wire

@testable import Feed

/// Rules that rest on locks and on nothing else: another node comes between any two reads.
struct TwoWritersTests {
    let world: World
    let phone = DeviceID(high: 5, low: 1)
    let tablet = DeviceID(high: 5, low: 2)
    private var both: TwoWriters { TwoWriters(world) }

    init() throws {
        var limits = RuleLimits()
        limits.directRecipients = 2
        world = try World(limits: limits)
    }

    private func announce(_ users: [String], id: MessageID? = nil) -> StoreRequest {
        let parts = [Part(mimeType: "text/plain", content: [1])]
        return .announce(
            app: World.app,
            Announcement(announcement: id ?? world.fresh(), users: users, parts: parts),
            idempotency: nil)
    }

    private func publish(
        _ conversation: ConversationID, id: MessageID? = nil, key: Idempotency? = nil
    ) -> StoreRequest {
        .publish(
            app: World.app,
            Publication(
                message: world.message0("one", to: conversation, id ?? world.fresh()), sender: ""),
            idempotency: key)
    }

    private func open(
        _ user: String, _ device: DeviceID, _ credential: Credential? = nil, hash: UInt8 = 77,
        push: PushRegistration? = nil
    ) -> StoreRequest {
        .openSession(
            OpenSession(
                app: World.app, device: device, role: .app,
                credential: credential ?? .identity(UserID(user)), newTokenHash: [hash],
                freshEpochHalf: 5, boot: BootID(high: 9, low: 9), push: push))
    }

    // MARK: numbers and ids

    @Test func everybodyIsToldOfBothAnnouncements() throws {
        let users = ["anna", "ben", "zoe"]
        try both.meet(announce(users), announce(users)) { met throws in
            try met.rest()
            for user in users {
                let told = try met.all(EntryRecord.self).filter { $0.user == UserID(user) }
                #expect(told.count == 2, "\(user), read \(met.read)")
            }
        }
    }

    @Test func aMessageAndAnAnnouncementDoNotShareAnID() throws {
        let id: MessageID = world.fresh()
        let room = try world.converse(["anna", "ben"])
        try both.meet(publish(room, id: id), announce(["anna"], id: id)) { met throws in
            let messages = try met.all(MessageRecord.self).count
            let announcements = try met.all(AnnouncementRecord.self).count
            #expect(messages + announcements == 1, "read \(met.read)")
        }
    }

    @Test func twoMessagesDoNotShareAnID() throws {
        let id: MessageID = world.fresh()
        let rooms = [try world.converse(["anna", "ben"]), try world.converse(["anna", "zoe"])]
        try both.meet(publish(rooms[0], id: id), publish(rooms[1], id: id)) { met throws in
            let refused = [met.first, met.second].filter { $0.refusal == .idInUse }
            #expect(refused.count == 1, "read \(met.read)")
        }
    }

    @Test func aConversationOfThreeIsOne() throws {
        func create(_ id: ConversationID) -> StoreRequest {
            .createConversation(
                app: World.app,
                CreateConversation(
                    conversation: id, participants: ["anna", "ben"], distinct: true),
                idempotency: nil)
        }
        try both.meet(create(world.fresh()), create(world.fresh())) { met throws in
            #expect(try met.all(ConversationRecord.self).count == 1, "read \(met.read)")
            #expect(try met.all(AliasRecord.self).count == 1, "read \(met.read)")
        }
    }

    @Test func anIDIsAConversationsOrAnAlias() throws {
        func create(_ id: ConversationID, _ users: [String], distinct: Bool) -> StoreRequest {
            .createConversation(
                app: World.app,
                CreateConversation(conversation: id, participants: users, distinct: distinct),
                idempotency: nil)
        }
        let lower: ConversationID = world.fresh()
        try world.ask(create(world.fresh(), ["anna", "ben"], distinct: true))
        for id in [lower, world.fresh()] {
            let merged = create(id, ["anna", "ben"], distinct: true)
            try both.meet(merged, create(id, ["anna", "zoe"], distinct: false)) { met throws in
                let own = try met.record(
                    ConversationRecord.self, [.app(World.app), .identifier(id)])
                let alias = try met.record(AliasRecord.self, [.app(World.app), .identifier(id)])
                #expect((own == nil) != (alias == nil), "read \(met.read)")
            }
        }
    }

    // MARK: sessions and devices

    @Test func aSessionThatCameBackIsNotSweptAway() throws {
        let session = try world.login("anna", phone).session
        try world.ask(
            .endSession(EndSession(session: session, applied: 0, expectedWithin: 10)))
        world.pass(11)
        try both.meet(.sweepWakes(rows: 10), open("anna", phone)) { met throws in
            guard case .opened(let opened) = met.second else {
                throw Unexpected(answer: met.second)
            }
            let rows = try met.all(SessionRecord.self)
            #expect(rows.map(\.generation) == [opened.session.generation], "read \(met.read)")
        }
    }

    @Test func aTokenThatWasRevokedDoesNotComeBack() throws {
        try world.login("anna", phone, token: 1)
        let revoke = StoreRequest.administer(
            .revokeSessions(World.app, UserID("anna"), reauthenticate: false))
        let open = open("anna", phone, .sessionToken(hash: [1]))
        try both.meet(open, revoke) { met throws in
            #expect(try met.all(SessionTokenRecord.self).isEmpty, "read \(met.read)")
            #expect(try met.all(SessionRecord.self).isEmpty, "read \(met.read)")
        }
    }

    @Test func nobodyGetsIntoASuspendedApp() throws {
        let suspend = StoreRequest.administer(.suspendApp(World.app))
        try both.meet(open("anna", phone), suspend) { met throws in
            let live = try met.all(SessionRecord.self).filter { $0.expectedUntil == nil }
            #expect(live.isEmpty, "read \(met.read)")
        }
    }

    @Test func aMutationOfARevokedSessionHasNoEffect() throws {
        let session = try world.login("anna", phone).session
        let room = try world.converse(["anna", "ben"])
        let send = StoreRequest.mutate(
            Mutate(
                session: session,
                mutation: Mutation(
                    number: 1,
                    operation: .sendMessage(world.message0("x", to: room, world.fresh())))))
        let revoke = StoreRequest.administer(
            .revokeSessions(World.app, UserID("anna"), reauthenticate: false))
        var refused = 0
        try both.meet(send, revoke) { met throws in
            let isSent = try !met.all(MessageRecord.self).isEmpty
            if case .ended(let code) = met.first {
                #expect(code == .revoked, "read \(met.read)")
                #expect(!isSent, "read \(met.read)")
                refused += 1
            } else {
                #expect(isSent, "read \(met.read)")
                // It came first: the user's row was locked.
                let device = try #require(try met.all(DeviceRecord.self).first)
                #expect(device.mutationFloor == 1)
            }
        }
        #expect(refused > 4)
    }

    @Test func aDeviceIsOneUsers() throws {
        try both.meet(open("anna", phone), open("ben", phone, hash: 78)) { met throws in
            let live = try met.all(DeviceRecord.self).filter { $0.expiresAt == nil }
            #expect(live.count == 1, "read \(met.read)")
            let sessions = try met.all(SessionRecord.self)
            #expect(sessions.map(\.user) == live.map(\.user), "read \(met.read)")
        }
    }

    @Test func aPushTokenLivesOnOneDevice() throws {
        try world.expectDone(
            .putPushCredential(
                PushCredentialRecord(
                    app: World.app, environment: .development, keyID: "KEY", team: "TEAM",
                    privateKeyPEM: "", topics: "example.chess", host: "localhost", port: 1,
                    changedAt: world.now)))
        let push = PushRegistration(
            token: [1, 1], environment: .development, topic: "example.chess")
        try world.login("zoe", DeviceID(high: 5, low: 3), push: push)
        let ben = open("ben", tablet, hash: 78, push: push)
        try both.meet(open("anna", phone, push: push), ben) { met throws in
            let holders = try met.all(DeviceRecord.self).filter { $0.pushToken != nil }
            #expect(holders.count == 1, "read \(met.read)")
        }
    }

    @Test func aForgottenDeviceThatComesBackIsNotDeleted() throws {
        let session = try world.login("anna", phone).session
        #expect(try world.mutate(session, 1, .forgetDevice(ForgetDevice())).code == 0)
        world.pass(world.limits.forgottenLifetime + 1)
        try both.meet(.enforceRetention(rows: 50), open("anna", phone)) { met throws in
            guard case .opened = met.second else { throw Unexpected(answer: met.second) }
            #expect(try met.all(DeviceRecord.self).count == 1, "read \(met.read)")
        }
    }

    // MARK: what is given once

    @Test func anAnswerKeptAnewIsNotDeleted() throws {
        let room = try world.converse(["anna", "ben"])
        let key = Idempotency(key: "k", requestHash: [1])
        try world.ask(publish(room, key: key))
        world.pass(world.limits.idempotencyLifetime + 1)
        try both.meet(.enforceRetention(rows: 50), publish(room, key: key)) { met throws in
            #expect(try met.all(IdempotencyRecord.self).count == 1, "read \(met.read)")
        }
    }

    @Test func aBlockedUsersMessageDoesNotStandAboveTheBlock() throws {
        let session = try world.login("anna", phone).session
        let room = try world.converse(["anna", "ben"])
        let block = StoreRequest.mutate(
            Mutate(
                session: session,
                mutation: Mutation(
                    number: 1, operation: .blockUser(BlockUser(user: "ben", blocked: true)))))
        let send = StoreRequest.publish(
            app: World.app,
            Publication(
                message: world.message0("one", to: room, world.fresh()), sender: "ben"),
            idempotency: nil)
        try both.meet(send, block) { met throws in
            let feed = try met.all(EntryRecord.self).filter { $0.user == UserID("anna") }
            let blocked = feed.first { $0.kind == .block }?.seq ?? 0
            let come = feed.first { $0.kind == .message }?.seq ?? 0
            #expect(come < blocked, "read \(met.read)")
        }
    }

    @Test func twoPublishesHaveAnEventEach() throws {
        let hook = NewWebhook(
            key: WebhookKey(app: World.app, webhook: world.fresh()), url: "https://x.example/",
            kinds: .all, secret: "s", series: 7)
        let room = try world.converse(["anna", "ben"])
        try world.ask(.webhooks(.create(hook)))
        try both.meet(publish(room), publish(room)) { met throws in
            #expect(try met.all(WebhookEventRecord.self).count == 2, "read \(met.read)")
            #expect(try met.all(OutboxRecord.self).map(\.kept) == [2], "read \(met.read)")
        }
    }

    @Test func anEventWakesAWebhookThatHasJustDelivered() throws {
        let key = WebhookKey(app: World.app, webhook: world.fresh())
        let room = try world.converse(["anna", "ben"])
        try world.ask(
            .webhooks(
                .create(
                    NewWebhook(
                        key: key, url: "https://x.example/", kinds: .all, secret: "s", series: 7))))
        try world.ask(publish(room))
        let claim = ClaimDeliveries(
            boot: BootID(high: 9, low: 9),
            ids: [world.fresh()], underWay: [:], perApp: 4, policy: WebhookPolicy())
        guard case .deliveries(let claimed) = try world.ask(.webhooks(.claim(claim))),
            let job = claimed.jobs.first
        else {
            Issue.record("nothing to deliver")
            return
        }
        let finish = FinishDelivery(
            key: key, claim: job.claim, answer: .answered(status: 200, retryAfter: nil),
            chance: 0, policy: WebhookPolicy())
        try both.meet(.webhooks(.finish(finish)), publish(room)) { met throws in
            let webhook = try #require(try met.all(WebhookRecord.self).first)
            #expect(webhook.due != nil, "read \(met.read)")
        }
        try both.meet(publish(room), .webhooks(.finish(finish))) { met throws in
            let webhook = try #require(try met.all(WebhookRecord.self).first)
            #expect(webhook.due != nil, "read \(met.read)")
        }
    }
}
