import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// A user is deleted with everything that is theirs (MSG-53).
struct UserDeletionTests {
    private let pushes: Pushes
    private var world: World { pushes.world }
    private let phone = DeviceID(high: 2, low: 1)
    private let bob = UserID("bob")

    init() throws { pushes = try Pushes() }

    @discardableResult
    private func delete(_ user: String = "bob") throws -> StoreAnswer {
        try world.ask(.deleteUser(app: World.app, UserID(user), idempotency: nil))
    }

    /// Everything the server does by itself, as long as there is something to do.
    private func finish(rows: Int = 64) throws {
        for _ in 0..<10_000 {
            try world.finishFanOut()
            try world.ask(.coalesceReceipts(users: 10))
            try world.ask(.continueDeletions(rows: rows))
            if try world.all(UserDeletionRecord.self).isEmpty { return }
        }
        Issue.record("the deletion does not come to an end")
    }

    private func isKnown(_ user: String) throws -> Bool {
        guard case .nothing = try world.read(.backend(World.app, .user(UserID(user)))) else {
            return true
        }
        return false
    }

    /// Names of the tables that still hold a row with this user.
    private func traces(of user: String) throws -> Set<String> {
        var found: Set<String> = []
        try world.store.read { snapshot throws(StoreError) in
            for table in Schema.tables {
                for row in try snapshot.rows(table, Scan(limit: 10_000))
                where row.contains(.text(user)) { found.insert(table.name) }
            }
        }
        return found
    }

    @Test("webhooks are told once that a user is deleted, after what the deletion ended")
    func toldToWebhooks() throws {
        let group = try world.converse(["anna", "bob"])
        try world.publish("hello", to: group, from: "bob")
        _ = try pushes.open("bob", phone)
        try world.ask(
            .webhooks(
                .create(
                    NewWebhook(
                        key: WebhookKey(app: World.app, webhook: world.fresh()),
                        url: "https://shop.example/", kinds: .all, secret: "s", series: 77))))
        func told() throws -> [String] {
            try world.all(WebhookEventRecord.self).map { "\($0.kind.name) \($0.user)" }
        }
        try delete()
        #expect(try told().isEmpty, "decided is not done")
        try finish()
        let events = try told()
        #expect(events.last == "user.deleted bob")
        #expect(events.count { $0.hasPrefix("user.deleted") } == 1)
        #expect(events.contains { $0.hasPrefix("message.deleted") })
        #expect(events.contains { $0.hasPrefix("conversation.participants-changed") })
        // The name is that of a new user, who can be deleted, too.
        try world.converse(["anna", "bob"])
        try delete()
        try finish()
        #expect(try told().count { $0 == "user.deleted bob" } == 2)
    }

    /// Deletions that wait are no reason to come again at once, however many rows it took to see.
    @Test func whatWaitsIsNotAskedForAtOnce() throws {
        let rooms = try (0..<8).map { try world.converse(["anna", "u\($0)"]) }
        for number in 0..<8 { try delete("u\(number)") }
        try world.tamper { transaction throws(StoreError) in
            for room in rooms {
                try transaction.put(
                    FanOutRecord(
                        app: World.app, conversation: room, revision: 1, change: .join,
                        object: [], cursor: "", createdAt: self.world.now,
                        turnAt: self.world.now))
            }
        }
        for _ in 0..<100 {
            guard case .progressed(0, _) = try world.ask(.continueDeletions(rows: 64)) else {
                continue
            }
            break
        }
        #expect(try world.all(UserDeletionRecord.self).allSatisfy { $0.stage == .settling })
        world.limits.rowsPerTurn = 8
        for _ in 0..<10 {
            #expect(
                try world.ask(.continueDeletions(rows: 64)) == .progressed(count: 0, more: false))
        }
    }

    // MARK: the decision

    @Test func nobodyIsLetInFromTheDecisionOn() throws {
        let opened = try pushes.open("bob", phone)
        let hash = try #require(try world.all(SessionTokenRecord.self).first).hash
        #expect(try delete() == .done)
        #expect(world.ended == [EndedSession(session: opened.session, code: .revoked)])
        #expect(try !isKnown("bob"))
        #expect(try world.open(.sessionToken(hash: hash), phone).refusal == .tokenInvalid)
        #expect(try world.open(.identity(bob), phone).refusal == .unavailable)
        #expect(
            try world.ask(
                .acknowledge(Acknowledge(session: opened.session, applied: 0, completesSync: true))
            ) == .ended(.revoked))
        // Asked again while it is carried out, and afterwards.
        #expect(try delete() == .done)
        try finish()
        #expect(try delete().refusal == .notFound)
    }

    @Test func whomTheStoreDoesNotKnowCannotBeDeleted() throws {
        #expect(try delete("nobody").refusal == .notFound)
        #expect(try delete("").refusal == .notFound)
        let other = AppID("other")
        try world.expectDone(.putApp(AppRecord(app: other, createdAt: world.now)))
        try world.converse(["bob"])
        #expect(
            try world.ask(.deleteUser(app: other, bob, idempotency: nil)).refusal == .notFound)
    }

    // MARK: what goes

    /// A user with a row in every table there is.
    private func live() throws -> ConversationID {
        let session = try pushes.open("bob", phone).session
        let room = try world.converse(["anna", "bob", "carl"])
        let talk = try world.converse(["anna", "bob"])
        for number in 1...5 {
            try world.publish("a\(number)", to: room, from: "anna")
            try world.publish("b\(number)", to: room, from: "bob")
        }
        _ = try world.mutate(
            session, 1,
            .muteConversation(MuteConversation(conversation: talk, muted: true)))
        _ = try world.mutate(session, 2, .blockUser(BlockUser(user: "zoe", blocked: true)))
        let secret = try world.publish("secret", to: talk, from: "anna")
        _ = try world.mutate(
            session, 3, .deleteMessage(DeleteMessage(message: secret.message)))
        try pushes.acknowledge(
            session, try world.head("bob"),
            reads: [ReadReceipt(conversation: room, through: 3)])
        try world.ask(.coalesceReceipts(users: 10))
        try pushes.end(session, within: 0)
        _ = try pushes.run(1_000)
        try world.publish("wake up", to: room, from: "anna")
        _ = try pushes.run(70_000)
        return room
    }

    @Test(arguments: [1, 3, 64, 10_000])
    func nothingIsLeftOfTheUserButTheName(_ rows: Int) throws {
        let room = try live()
        let before = try traces(of: "bob")
        #expect(
            before.isSuperset(of: [
                "device", "session_token", "entry", "read_mark", "receipt", "receipt_due",
                "mutation", "hidden", "conversation_settings", "block", "alert",
                "wake_history", "wake",
            ]), "\(before)")
        try delete()
        try finish(rows: rows)
        // Where others hold it: who took part, and who sent what is deleted.
        #expect(try traces(of: "bob") == ["participant", "message", "name_erasure"])
        let messages = try world.all(MessageRecord.self)
        let own = messages.filter { $0.sender == "bob" }
        #expect(own.count == 5)
        #expect(own.allSatisfy { $0.deletedAt != nil && $0.parts.isEmpty && $0.pushBody.isEmpty })
        #expect(messages.filter { $0.deletedAt != nil }.count == 5, "others' messages stay")
        for user in ["anna", "carl"] {
            let texts = try world.texts(user)
            #expect(texts.filter { $0.hasSuffix("everyone") }.count == 5, "\(texts)")
            #expect(texts.contains("removed bob"))
            #expect(texts.contains("message 1 a1"))
        }
        // Receipts that were told of him stand in the feeds of others, and break no page.
        #expect(
            try world.all(EntryRecord.self).contains {
                $0.kind == .receipt && $0.object == Array("bob".utf8)
            })
        guard
            case .backend(.conversation(let conversation, _)) = try world.read(
                .backend(World.app, .conversation(room)))
        else { throw Unexpected(answer: .done) }
        #expect(conversation.participants == 2)
        #expect(try pushes.run(70_000) == [])
    }

    @Test func whatAPNsSaidOfTheOwnTokensGoesToo() throws {
        let session = try pushes.open("bob", phone).session
        let room = try world.converse(["anna", "bob"])
        try pushes.end(session, within: 0)
        _ = try pushes.run(1_000)
        try world.publish("x", to: room, from: "anna")
        _ = try pushes.run(5_000) { _ in
            .answered(status: 410, reason: "Unregistered", timestamp: world.now)
        }
        #expect(try traces(of: "bob").contains("token_feedback"))
        try delete()
        try finish()
        #expect(try traces(of: "bob") == ["participant", "name_erasure"])
    }

    @Test func theSameNameIsANewUserAfterwards() throws {
        let epoch = try pushes.open("bob", phone).sync.epoch
        let room = try world.converse(["anna", "bob"])
        try world.publish("x", to: room, from: "anna")
        try delete()
        try finish()
        let opened = try world.login("bob", phone)
        #expect(opened.sync.head == 0)
        #expect(opened.sync.epoch != epoch)
        #expect(try world.add(["bob"], to: room).refusal == nil)
        #expect(try world.texts("bob").contains("participant bob"))
        #expect(try !world.texts("bob").contains { $0.hasPrefix("message") })
    }

    @Test func aDistinctConversationIsLeftTooAndMayBeMadeAnew() throws {
        func make() throws -> StoreAnswer {
            try world.ask(
                .createConversation(
                    app: World.app,
                    CreateConversation(
                        conversation: world.fresh(), participants: ["anna", "bob"],
                        distinct: true), idempotency: nil))
        }
        guard case .conversation(let first) = try make() else {
            throw Unexpected(answer: .done)
        }
        try delete()
        #expect(try make().refusal == nil, "it is there")
        try finish()
        guard case .conversation(let second) = try make() else {
            throw Unexpected(answer: .done)
        }
        #expect(first.conversation != second.conversation)
    }

    @Test func heCanBeBroughtIntoNothingMeanwhile() throws {
        let room = try world.converse(["anna", "carl"])
        try world.converse(["bob"])
        try delete()
        let head = try world.head("bob")
        #expect(try world.add(["bob"], to: room).refusal == .forbidden)
        #expect(
            try world.ask(
                .createConversation(
                    app: World.app,
                    CreateConversation(
                        conversation: world.fresh(), participants: ["anna", "bob"]),
                    idempotency: nil)
            ).refusal == .forbidden)
        _ = try world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: world.fresh(), users: ["bob"],
                    parts: [Part(mimeType: "text/plain", content: [65])]), idempotency: nil))
        #expect(try world.head("bob") == head)
    }

    // MARK: others' work

    @Test func whatWasOnItsWayToHimBringsHimNotBack() throws {
        world.limits.directRecipients = 2
        let users = ["anna", "bob", "carl", "dora"]
        let room = try world.converse(users)
        for number in 1...3 { try world.publish("\(number)", to: room, from: "bob") }
        try delete()
        // Without the fan-out it waits.
        for _ in 1...50 { try world.ask(.continueDeletions(rows: 1_000)) }
        #expect(try world.all(UserDeletionRecord.self).first?.stage == .settling)
        // One that waits holds up no other.
        try world.converse(["erik"])
        try delete("erik")
        for _ in 1...50 { try world.ask(.continueDeletions(rows: 1_000)) }
        #expect(try world.all(UserDeletionRecord.self).map(\.user) == [bob])
        try finish()
        try world.finishFanOut()
        #expect(try traces(of: "bob") == ["participant", "message", "name_erasure"])
        // They came with the message, which was deleted before it came: once.
        #expect(try world.texts("anna").filter { $0.hasPrefix("tombstone") }.count == 3)
    }

    @Test func anAnnouncementOnItsWayIsWaitedForToo() throws {
        world.limits.directRecipients = 2
        try world.converse(["bob"])
        try world.ask(
            .announce(
                app: World.app,
                Announcement(
                    announcement: world.fresh(), users: ["anna", "bob", "carl"],
                    parts: [Part(mimeType: "text/plain", content: [65])]), idempotency: nil))
        try delete()
        for _ in 1...20 { try world.ask(.continueDeletions(rows: 1_000)) }
        #expect(try world.all(UserDeletionRecord.self).first?.stage == .settling)
        try finish()
        try world.finishFanOut()
        #expect(try world.head("anna") == 1)
        #expect(try traces(of: "bob") == ["participant", "name_erasure"])
    }

    /// The announcements of before were served meanwhile: one decided later has another number.
    @Test func anAnnouncementDecidedLaterIsNotWaitedFor() throws {
        world.limits.directRecipients = 1
        func announce() throws {
            let announcement = Announcement(
                announcement: world.fresh(), users: ["anna", "carl"],
                parts: [Part(mimeType: "text/plain", content: [65])])
            let answer = try world.ask(
                .announce(app: World.app, announcement, idempotency: nil))
            #expect(answer.refusal == nil)
        }
        try world.converse(["bob"])
        try announce()
        try delete()
        try world.finishFanOut()
        try announce()
        for _ in 1...50 { try world.ask(.continueDeletions(rows: 1_000)) }
        #expect(try world.all(UserDeletionRecord.self).isEmpty)
        #expect(try world.head("anna") == 1, "the later one has not come yet")
        // Nor does the number outlive its app.
        try world.expectDone(.removeApp(World.app))
        for _ in 1...50 { try world.retain() }
        #expect(try world.all(MetaRecord.self).allSatisfy { !$0.name.contains("/") })
    }

    @Test func aStepIsSmall() throws {
        let room = try world.converse(["anna", "bob"])
        for number in 1...200 { try world.publish("\(number)", to: room, from: "bob") }
        try delete()
        for _ in 1...20 {
            try world.ask(.continueDeletions(rows: 10))
        }
        let deleted = try world.all(MessageRecord.self).filter { $0.deletedAt != nil }.count
        #expect((1..<150).contains(deleted), "\(deleted)")
    }
}
