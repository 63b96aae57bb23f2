import Feed
import Model
import Testing
import Wire

/// A user who was deleted, and whose name was erased (MSG-53), comes again: what devices hold of
/// the first one is older than all that is told of the second (SYN-5).
struct NameReuseTests {
    private let world: World
    private let id: ConversationID

    init() throws {
        world = try World()
        id = try world.converse(["anna", "bob", "carl"])
    }

    private func erase(_ user: String) throws {
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID(user), idempotency: nil)) == .done)
        try finish()
        #expect(try world.all(NameErasureRecord.self).map(\.user.name) == [user])
        try passTheNamesLife()
        // What told of the end of blocks.
        if try !world.all(NameErasureRecord.self).isEmpty { try passTheNamesLife() }
        #expect(try world.all(NameErasureRecord.self).isEmpty)
    }

    private func passTheNamesLife() throws {
        world.pass(world.limits.nameLifetime)
        while case .progressed(_, true) = try world.ask(.enforceRetention(rows: 50)) {}
    }

    private func finish() throws {
        for _ in 0..<1_000 where try !world.all(UserDeletionRecord.self).isEmpty {
            try world.finishFanOut()
            try world.ask(.continueDeletions(rows: 100))
        }
    }

    private func version(of kind: EntryKind, _ other: String, for user: String) throws -> UInt64 {
        try world.rows(user).last { $0.kind == kind && $0.object == Array(other.utf8) }?.version
            ?? 0
    }

    @Test func aMembershipIsNewerThanTheOneErased() throws {
        try world.remove(["bob"], from: id)
        #expect(try world.add(["bob"], to: id).refusal == nil)
        try world.remove(["bob"], from: id)
        let old = try version(of: .participant, "bob", for: "anna")
        #expect(old > 0)
        try erase("bob")
        #expect(try version(of: .participant, "bob", for: "anna") == 0)
        #expect(try world.add(["bob"], to: id).refusal == nil)
        for user in ["anna", "carl"] {
            #expect(try version(of: .participant, "bob", for: user) > old)
            #expect(try world.texts(user).last == "participant bob")
        }
        #expect(
            try world.texts("bob") == [
                "conversation", "participant anna", "participant bob", "participant carl",
            ])
        let new = try version(of: .participant, "bob", for: "anna")
        try world.remove(["bob"], from: id)
        #expect(try version(of: .participant, "bob", for: "anna") > new)
        #expect(try world.texts("anna").filter { $0.hasSuffix(" bob") } == ["removed bob"])
    }

    /// A new user of the name took part meanwhile, and nothing of it stands in that one's feed any
    /// more: what the new one wrote goes with the new one, so the membership stays.
    @Test func whatANewUserWroteGoesWithTheNewOne() throws {
        func delete() throws {
            #expect(
                try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil))
                    == .done)
            try finish()
        }
        try delete()
        #expect(try world.add(["bob"], to: id).refusal == nil)
        let new = try world.login("bob", DeviceID(high: 1, low: 9)).session
        try world.publish("mine", to: id, from: "bob")
        try world.remove(["bob"], from: id)
        let clear = Mutation.Operation.deleteConversation(DeleteConversation(conversation: id))
        #expect(try world.mutate(new, 1, clear).code == 0)
        try world.ask(
            .acknowledge(
                Acknowledge(session: new, applied: try world.head("bob"), completesSync: true)))
        try passTheNamesLife()
        #expect(try world.all(MessageRecord.self).count == 1)
        try delete()
        #expect(try world.all(MessageRecord.self).allSatisfy { $0.deletedAt != nil })
        #expect(try world.all(MessageRecord.self).allSatisfy(\.parts.isEmpty))
    }

    @Test func whoIsDeletedIsNotDeletedAgain() throws {
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil)) == .done)
        try finish()
        let due = try world.all(NameErasureRecord.self).map(\.due)
        world.pass(86_400_000)
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil)).refusal
                == .notFound)
        #expect(try world.all(NameErasureRecord.self).map(\.due) == due)
        #expect(try world.all(UserRecord.self).allSatisfy { $0.user.name != "bob" })
    }

    /// Nothing of the new user's joining is in the feed yet.
    @Test func aNewUserWhoIsJoiningIsDeleted() throws {
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil)) == .done)
        try finish()
        world.limits.directRecipients = 0
        #expect(try world.add(["bob"], to: id).refusal == nil)
        #expect(try world.all(UserRecord.self).allSatisfy { $0.user.name != "bob" })
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil)) == .done)
        try finish()
        #expect(try world.all(UserRecord.self).allSatisfy { $0.user.name != "bob" })
        #expect(
            try world.all(ParticipantRecord.self).allSatisfy {
                $0.user.name != "bob" || $0.leftRevision != nil
            })
    }

    /// The end of a conversation leaves memberships as they were, and says who ended it.
    @Test func theNameGoesFromWhatHasEnded() throws {
        let bob = try world.login("bob", DeviceID(high: 1, low: 9)).session
        let room: ConversationID = world.fresh()
        let make = CreateConversation(conversation: room, participants: ["anna", "carl"])
        #expect(try world.mutate(bob, 1, .createConversation(make)).code == 0)
        let end = DeleteConversation(conversation: room, forEveryone: true)
        #expect(try world.mutate(bob, 2, .deleteConversation(end)).code == 0)
        try finish()
        try world.retain()
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil)) == .done)
        try finish()
        // Anna has a device that was not told of the end.
        world.pass(world.limits.nameLifetime / 2)
        _ = try world.login("anna", DeviceID(high: 1, low: 8))
        world.pass(world.limits.nameLifetime / 2)
        try world.retain()
        #expect(try world.all(NameErasureRecord.self).isEmpty)
        let members = try world.all(ParticipantRecord.self)
        #expect(members.filter { $0.conversation == room }.map(\.user.name) == ["anna"])
        let rooms = try world.all(ConversationRecord.self)
        #expect(!rooms.contains { $0.creator == "bob" || $0.deletedBy == "bob" })
    }

    /// What authors' devices hold of the first one's is not above it, though the name stands there.
    @Test func aReceiptIsNewerThanThoseOfWhoHadTheName() throws {
        func told(_ session: SessionKey, reads: [ReadReceipt] = []) throws -> UInt64 {
            _ = try world.ask(
                .acknowledge(
                    Acknowledge(
                        session: session, applied: try world.head("bob"), ranges: [],
                        reads: reads, completesSync: true)))
            world.pass(world.limits.receiptInterval)
            try world.ask(.coalesceReceipts(users: 10))
            return try version(of: .receipt, "bob", for: "anna")
        }
        let first = try world.login("bob", DeviceID(high: 1, low: 2)).session
        for text in ["1", "2", "3"] { try world.publish(text, to: id, from: "anna") }
        let old = try told(first, reads: [ReadReceipt(conversation: id, through: 2)])
        #expect(old == 5)
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil)) == .done)
        try finish()
        #expect(try world.all(ReceiptRecord.self).isEmpty)
        #expect(try world.add(["bob"], to: id).refusal == nil)
        let second = try world.login("bob", DeviceID(high: 1, low: 3)).session
        #expect(try told(second) == old)
        let message = try world.publish("4", to: id, from: "anna")
        #expect(try told(second) > old)
        #expect(try world.texts("anna").last == "receipt bob 4 2")
        let read = ReadReceipt(conversation: id, through: message.position)
        _ = try told(second, reads: [read])
        #expect(try world.texts("anna").last == "receipt bob 4 4")
    }

    @Test func aBlockIsNewerThanTheOneErased() throws {
        let anna = try world.login("anna", DeviceID(high: 1, low: 1)).session
        func block(_ number: UInt64, _ blocked: Bool) throws {
            let request = BlockUser(user: "bob", blocked: blocked)
            #expect(try world.mutate(anna, number, .blockUser(request)).code == 0)
        }
        try block(1, true)
        try block(2, false)
        try block(3, true)
        let old = try version(of: .block, "bob", for: "anna")
        try erase("bob")
        #expect(try world.all(BlockRecord.self).isEmpty)
        try block(4, true)
        let new = try version(of: .block, "bob", for: "anna")
        #expect(new > old)
        try block(5, false)
        #expect(try version(of: .block, "bob", for: "anna") > new)
        #expect(try world.texts("anna").filter { $0.hasSuffix("block bob") } == ["unblock bob"])
    }

    /// A phone that has the block hears of its end, and shows what a new phone shows; so does each
    /// of very many who blocked the user.
    @Test func whoBlockedTheUserHearsThatItIsOver() throws {
        let phone = DeviceID(high: 1, low: 1)
        let opened = try world.login("anna", phone)
        let block = BlockUser(user: "bob", blocked: true)
        #expect(try world.mutate(opened.session, 1, .blockUser(block)).code == 0)
        let others = (1...20).map { "other\($0)" }
        for (number, other) in others.enumerated() {
            let device = DeviceID(high: 2, low: UInt64(number) + 1)
            let session = try world.login(other, device).session
            #expect(try world.mutate(session, 1, .blockUser(block)).code == 0)
        }
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil)) == .done)
        try finish()
        let place = try world.head("anna")
        try passTheNamesLife()
        let frame = SyncFrame(
            cursor: Cursor(epoch: opened.sync.epoch, seq: place), applied: place)
        let sync = try world.login("anna", phone, sync: frame).sync
        #expect(sync.reset == nil)
        #expect(try world.texts("anna").last == "unblock bob")
        #expect(try world.head("anna") > place)
        for other in others { #expect(try world.texts(other) == ["unblock bob"], "\(other)") }
        #expect(try world.all(NameErasureRecord.self).map(\.member) == [""])
        // Nothing of the name is left when that is as old.
        try passTheNamesLife()
        #expect(try world.all(NameErasureRecord.self).isEmpty)
        #expect(try world.all(BlockRecord.self).isEmpty)
        for user in others + ["anna"] {
            #expect(try world.rows(user).allSatisfy { $0.object != Array("bob".utf8) })
        }
    }

    /// The erasure of the first one takes nothing from the second, who has left since.
    /// What is erased from a feed is missing in replicas that are behind it: they cannot go on.
    @Test func aCursorBehindWhatWasErasedIsReset() throws {
        let phone = DeviceID(high: 1, low: 1)
        let opened = try world.login("anna", phone)
        let epoch = opened.sync.epoch
        try world.remove(["bob"], from: id)
        let place = try world.head("anna")
        try world.publish("x", to: id, from: "carl")
        try erase("bob")
        func reset(_ seq: UInt64) throws -> ResetReason? {
            let frame = SyncFrame(cursor: Cursor(epoch: epoch, seq: seq), applied: seq)
            return try world.login("anna", phone, sync: frame).sync.reset
        }
        #expect(try reset(place - 1) == .cursorTooOld)
        #expect(try reset(place) == nil)
    }

    @Test func nothingTellsOfWhatTheUserDeletedAndRead() throws {
        let bob = try world.login("bob", DeviceID(high: 1, low: 2)).session
        let own = try world.publish("own", to: id, from: "bob").message
        let delete = DeleteMessage(message: own, forEveryone: true)
        #expect(try world.mutate(bob, 1, .deleteMessage(delete)).code == 0)
        let read = try world.publish("read", to: id, from: "anna").position
        _ = try world.ask(
            .acknowledge(
                Acknowledge(
                    session: bob, applied: try world.head("bob"),
                    reads: [ReadReceipt(conversation: id, through: read)], completesSync: true)))
        try world.ask(.coalesceReceipts(users: 10))
        #expect(try version(of: .receipt, "bob", for: "anna") > 0)
        try erase("bob")
        let messages = try world.all(MessageRecord.self)
        #expect(messages.allSatisfy { $0.sender != "bob" && $0.deletedBy != "bob" })
        #expect(try world.rows("anna").allSatisfy { $0.object != Array("bob".utf8) })
    }

    @Test func whatTheNewUserWasToldStays() throws {
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil)) == .done)
        try finish()
        #expect(try world.add(["bob"], to: id).refusal == nil)
        try world.publish("x", to: id, from: "anna")
        try world.remove(["bob"], from: id)
        let told = try world.texts("bob")
        #expect(told.last == "removed bob")
        world.pass(world.limits.nameLifetime)
        while case .progressed(_, true) = try world.ask(.enforceRetention(rows: 50)) {}
        #expect(try world.all(NameErasureRecord.self).isEmpty)
        #expect(try world.texts("bob") == told)
    }

    /// MSG-27: whom somebody blocks stays blocked though another of the name was deleted before,
    /// and what was kept away is shown by no snapshot (HIS-4).
    @Test func aBlockOfTheNewUserStays() throws {
        #expect(
            try world.ask(.deleteUser(app: World.app, UserID("bob"), idempotency: nil)) == .done)
        try finish()
        #expect(try world.add(["bob"], to: id).refusal == nil)
        let anna = try world.login("anna", DeviceID(high: 1, low: 1)).session
        let block = BlockUser(user: "bob", blocked: true)
        #expect(try world.mutate(anna, 1, .blockUser(block)).code == 0)
        try world.publish("kept away", to: id, from: "bob")
        world.pass(world.limits.nameLifetime)
        while case .progressed(_, true) = try world.ask(.enforceRetention(rows: 50)) {}
        #expect(try world.all(NameErasureRecord.self).isEmpty)
        #expect(try world.texts("anna").contains("block bob"))
        let query = HistoryQuery.snapshot(
            World.app, UserID("anna"), SnapshotFrame(), bytes: 1 << 20)
        guard case .snapshotPage(let page) = try world.history(query) else {
            return #expect(Bool(false))
        }
        #expect(page.entries.map(\.text).contains("block bob"))
        #expect(!page.conversations.flatMap(\.entries).contains { $0.text.hasPrefix("message") })
        try world.publish("kept away too", to: id, from: "bob")
        #expect(!(try world.texts("anna").contains { $0.hasPrefix("message") }))
    }
}
