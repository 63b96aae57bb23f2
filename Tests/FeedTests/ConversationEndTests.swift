import MemoryStore
import Model
import Testing
import Wake
import Wire

@testable import Feed

/// Deleted conversations (MSG-36, MSG-37) and what goes in the background.
struct ConversationEndTests {
    private let world: World
    private let id: ConversationID

    init() throws {
        world = try World()
        id = try world.converse(["a", "b", "c"])
    }

    private func session(_ user: String, _ device: UInt64 = 1) throws -> SessionKey {
        try world.login(user, DeviceID(high: 1, low: device)).session
    }

    private func delete(everyone: Bool) -> Mutation.Operation {
        .deleteConversation(DeleteConversation(conversation: id, forEveryone: everyone))
    }

    private func unread(_ user: String) throws -> UInt64 {
        try world.unread().filter { $0.user.name == user }.reduce(0) {
            $0 + $1.unread
        }
    }

    // MARK: for oneself

    @Test func theMessagesUpToNowGoForOneUser() throws {
        let b = try session("b")
        let first = try world.publish("x", to: id, from: "a")
        try world.publish("y", to: id, from: "a")
        let before = try world.head("b")
        #expect(try world.mutate(b, 1, delete(everyone: false)).code == 0)
        #expect(try unread("b") == 0)
        #expect(try unread("c") == 2)
        #expect(try world.texts("b", after: before) == ["tombstone conversation 2"])
        #expect(try !world.texts("b").contains { $0.hasPrefix("message") }, "before it is purged")
        #expect(try world.texts("a").suffix(2) == ["message 1 x", "message 2 y"])
        // Nothing of what is gone comes back, and deleting again is nothing.
        try world.edit(first.message, "z")
        #expect(try world.mutate(b, 2, delete(everyone: false)).code == 0)
        #expect(try world.texts("b", after: before) == ["tombstone conversation 2"])
        try world.retain()
        #expect(try !world.rows("b").contains { $0.kind == .message })
        #expect(try world.rows("a").filter { $0.kind == .message }.count == 2)
        #expect(try world.all(PurgeRecord.self).isEmpty)
    }

    /// A change on its way keeps the purges of its conversation waiting, however many they are, and
    /// no others.
    @Test func purgesBehindThoseThatWaitGoOn() throws {
        let last = try world.converse(["a", "b", "c"])
        try world.publish("y", to: last)
        try world.finishFanOut()
        let clear = Mutation.Operation.deleteConversation(DeleteConversation(conversation: last))
        #expect(try world.mutate(try session("b"), 1, clear).code == 0)
        try world.tamper { transaction throws(StoreError) in
            for number in 0..<70 {
                try transaction.put(
                    PurgeRecord(app: World.app, conversation: self.id, user: "z\(number)"))
            }
            try transaction.put(
                FanOutRecord(
                    app: World.app, conversation: self.id, revision: 99, change: .join,
                    object: [], cursor: "", createdAt: self.world.now, turnAt: self.world.now))
        }
        try world.retain()
        #expect(try !world.all(PurgeRecord.self).contains { $0.conversation == last })
        #expect(try world.all(PurgeRecord.self).count == 70)
    }

    @Test("MSG-24: who makes a distinct conversation again has it again, and only that user")
    func madeAgain() throws {
        let (a, b) = (try session("a"), try session("b", 2))
        let room: ConversationID = world.fresh()
        func create(_ id: ConversationID, _ other: String) -> Mutation.Operation {
            .createConversation(
                CreateConversation(conversation: id, participants: [other], distinct: true))
        }
        #expect(try world.mutate(a, 1, create(room, "b")).code == 0)
        try world.publish("x", to: room, from: "a")
        try world.retain()
        let away = Mutation.Operation.deleteConversation(DeleteConversation(conversation: room))
        #expect(try world.mutate(b, 1, away).code == 0)
        let (before, others) = (try world.head("b"), try world.head("a"))
        #expect(try world.mutate(b, 2, create(world.fresh(), "a")).object == room.bytes)
        #expect(
            try world.texts("b", after: before).map { $0.prefix(11) } == [
                "conversatio", "participant", "participant",
            ])
        #expect(try world.head("a") == others)
        // It is within reach, and empty.
        let fetch = Fetch(conversation: room)
        let reading = try world.read(
            .history(.fetch(World.app, UserID("b"), fetch, bytes: 1 << 16)))
        guard case .history(.page(let page)) = reading else { throw Unexpected(answer: .done) }
        #expect(page.entries.isEmpty && page.position == 1)
        // Again is nothing new, and a message brings itself alone.
        let now = try world.head("b")
        #expect(try world.mutate(b, 3, create(world.fresh(), "a")).code == 0)
        #expect(try world.head("b") == now)
        try world.publish("y", to: room, from: "a")
        #expect(try world.texts("b", after: now) == ["message 2 y"])
        try world.retain()
        #expect(try world.rows("b").filter { $0.kind == .message }.count == 1)
    }

    @Test func itComesBackWithTheNextMessage() throws {
        let b = try session("b")
        try world.publish("x", to: id, from: "a")
        let before = try world.head("b")
        #expect(try world.mutate(b, 1, delete(everyone: false)).code == 0)
        try world.publish("y", to: id, from: "a")
        try world.publish("z", to: id, from: "a")
        #expect(
            try world.texts("b", after: before) == [
                "tombstone conversation 1", "conversation", "participant a", "participant b",
                "participant c", "message 2 y", "message 3 z",
            ])
        let versions = try world.page("b", after: before).entries.prefix(2).map(\.version)
        #expect(versions == [2, 3], "above the conversation's first one")
        #expect(try unread("b") == 2)
        #expect(try world.mutate(b, 2, delete(everyone: false)).code == 0)
        #expect(try world.texts("b", after: before).last == "tombstone conversation 3")
        try world.publish("w", to: id, from: "a")
        try world.retain()
        #expect(
            try world.texts("b", after: before) == [
                "tombstone conversation 3", "conversation", "participant a", "participant b",
                "participant c", "message 4 w",
            ])
    }

    @Test func messagesOnTheirWayDoNotBringItBack() throws {
        world.limits.directRecipients = 0
        let b = try session("b")
        try world.publish("x", to: id, from: "a")
        #expect(try world.mutate(b, 1, delete(everyone: false)).code == 0)
        try world.finishFanOut()
        #expect(try world.texts("b").last == "tombstone conversation 1")
        #expect(try world.texts("a").last == "message 1 x")
    }

    /// A deletion that overtook the joining would bring the conversation back with it.
    @Test func whatHasNotComeYetIsNotDeleted() throws {
        world.limits.directRecipients = 0
        let d = try session("d")
        #expect(try world.add(["d"], to: id).refusal == nil)
        let early = try world.mutate(d, 1, delete(everyone: false))
        #expect(early.code == Code.rateLimited.rawValue)
        try world.finishFanOut()
        #expect(try world.mutate(d, 1, delete(everyone: false)).code == 0)
        #expect(try world.texts("d").last == "tombstone conversation 0")
    }

    @Test func whoLeftMayDeleteWhatCameBefore() throws {
        let c = try session("c")
        let stranger = try session("d", 2)
        try world.publish("x", to: id)
        try world.remove(["c"], from: id)
        try world.publish("y", to: id)
        #expect(try world.mutate(c, 1, delete(everyone: false)).code == 0)
        #expect(try world.texts("c").last == "tombstone conversation 1")
        #expect(
            try world.mutate(stranger, 1, delete(everyone: false)).code == Code.notFound.rawValue)
        // Added again, the conversation is one.
        #expect(try world.add(["c"], to: id).refusal == nil)
        #expect(try world.texts("c").contains("conversation"))
    }

    /// MSG-30: whoever left before the end learns nothing of it, not by the own deletion either.
    @Test func whoLeftAndDeletedItLearnsNothingOfTheEnd() throws {
        let c = try session("c")
        try world.publish("x", to: id)
        try world.remove(["c"], from: id)
        #expect(try world.mutate(c, 1, delete(everyone: false)).code == 0)
        try world.publish("y", to: id)
        #expect(try world.end(id).refusal == nil)
        #expect(try world.texts("c").last == "tombstone conversation 1")
        guard case .tombstone(let state) = try world.page("c").entries.last?.body else {
            return #expect(Bool(false))
        }
        #expect(state.by == "c" && !state.forEveryone)
    }

    @Test func hiddenMessagesGoWithTheConversation() throws {
        let b = try session("b")
        let message = try world.publish("x", to: id).message
        let hide = DeleteMessage(message: message)
        #expect(try world.mutate(b, 1, .deleteMessage(hide)).code == 0)
        #expect(try world.all(HiddenRecord.self).count == 1)
        #expect(try world.mutate(b, 2, delete(everyone: false)).code == 0)
        try world.retain()
        #expect(try world.all(HiddenRecord.self).isEmpty)
        #expect(try world.rows("b").filter { $0.kind == .tombstone }.count == 1)
    }

    // MARK: for everyone

    @Test func everyoneGetsATombstoneAndTheContentGoes() throws {
        let a = try session("a")
        for number in 1...9 { try world.publish("\(number)", to: id, from: "b") }
        try world.edit(try world.publish("x", to: id).message, "y")
        try world.remove(["c"], from: id)
        let other = try world.converse(["a", "b"])
        try world.publish("other", to: other, from: "b")
        let head = try world.head("c")
        #expect(try world.end(id).refusal == nil)
        #expect(try world.head("c") == head, "who left gets nothing more")
        for user in ["a", "b"] {
            #expect(
                try world.texts(user).filter { $0.hasPrefix("tombstone") }
                    == ["tombstone conversation 10 everyone"])
        }
        #expect(try unread("a") == 1)
        try world.retain()
        #expect(try world.all(PurgeRecord.self).isEmpty)
        let left = ["conversation", "participant a", "participant b", "message 1 other"]
        #expect(try world.texts("a") == left + ["tombstone conversation 10 everyone"])
        #expect(try !world.texts("c").contains { $0.hasPrefix("message") })
        #expect(try world.all(MessageRecord.self).map(\.conversation) == [other])
        #expect(try world.all(ReadMarkRecord.self).isEmpty)
        // Operations tell those who took part, and nobody else.
        let send = Mutation.Operation.sendMessage(world.message0("x", to: id, world.fresh()))
        #expect(try world.mutate(a, 1, send).code == Code.gone.rawValue)
        let stranger = try session("d", 2)
        #expect(try world.mutate(stranger, 1, send).code == Code.notFound.rawValue)
        #expect(try world.end(id).refusal == .gone)
        #expect(try world.add(["d"], to: id).refusal == .gone)
        #expect(try world.mutate(a, 2, delete(everyone: false)).code == Code.gone.rawValue)
    }

    @Test func onlyTheCreatorAndTheBackendEndIt() throws {
        let a = try session("a")
        let b = try session("b", 2)
        let own: ConversationID = world.fresh()
        let create = CreateConversation(conversation: own, participants: ["b"])
        #expect(try world.mutate(a, 1, .createConversation(create)).code == 0)
        let end = Mutation.Operation.deleteConversation(
            DeleteConversation(conversation: own, forEveryone: true))
        #expect(try world.mutate(b, 1, end).code == Code.forbidden.rawValue)
        #expect(try world.mutate(a, 2, end).code == 0)
        let entry = try #require(try world.page("b").entries.last)
        guard case .tombstone(let state) = entry.body else { return #expect(Bool(false)) }
        #expect(state.by == "a" && state.forEveryone && state.conversation)
        #expect(entry.object == own.bytes)
    }

    /// MSG-53: a new user of the creator's name made nothing of it.
    @Test func aNewUserOfTheCreatorsNameDoesNotEndIt() throws {
        let a = try session("a")
        let own: ConversationID = world.fresh()
        let create = CreateConversation(conversation: own, participants: ["b", "c"])
        #expect(try world.mutate(a, 1, .createConversation(create)).code == 0)
        try world.ask(.deleteUser(app: World.app, UserID("a"), idempotency: nil))
        while try !world.all(UserDeletionRecord.self).isEmpty {
            try world.finishFanOut()
            try world.ask(.continueDeletions(rows: 100))
        }
        world.pass(1_000)
        #expect(try world.add(["a"], to: own).refusal == nil)
        let new = try session("a", 3)
        try world.publish("x", to: own, from: "b")
        let end = Mutation.Operation.deleteConversation(
            DeleteConversation(conversation: own, forEveryone: true))
        #expect(try world.mutate(new, 1, end).code == Code.forbidden.rawValue)
        #expect(try world.texts("b").last == "message 1 x")
    }

    /// A clock that was set back makes conversations that are older than their creators.
    @Test func theCreatorEndsItAlsoAfterTheClockWasSetBack() throws {
        world.pass(86_400_000)
        let d = try session("d")
        world.store.clock = world.now - 3_600_000
        let own: ConversationID = world.fresh()
        let create = CreateConversation(conversation: own, participants: ["b"])
        #expect(try world.mutate(d, 1, .createConversation(create)).code == 0)
        let end = Mutation.Operation.deleteConversation(
            DeleteConversation(conversation: own, forEveryone: true))
        #expect(try world.mutate(d, 2, end).code == 0)
    }

    /// MSG-31: whoever left before learns nothing of the end, whatever is asked.
    @Test func whoLeftBeforeTheEndIsToldNothingOfIt() throws {
        let c = try session("c")
        try world.remove(["c"], from: id)
        try world.publish("x", to: id)
        #expect(try world.end(id).refusal == nil)
        #expect(
            try world.mutate(c, 1, delete(everyone: false)).code == Code.notFound.rawValue)
    }

    /// Jobs from before the end write nothing, and the purge waits for them.
    @Test func theEndOvertakesNothingAndWaitsForJobs() throws {
        world.limits.directRecipients = 0
        try world.publish("x", to: id)
        #expect(try world.end(id).refusal == nil)
        try world.retain()
        #expect(try world.all(PurgeRecord.self).count == 1)
        try world.finishFanOut()
        #expect(try world.texts("b").last == "tombstone conversation 1 everyone")
        #expect(try !world.texts("b").contains { $0.hasPrefix("message") })
        try world.retain()
        #expect(try world.all(MessageRecord.self).isEmpty)
        #expect(try world.all(PurgeRecord.self).isEmpty)
    }

    @Test func aDistinctConversationCanBeMadeAnew() throws {
        func create() throws -> ConversationID {
            let answer = try world.ask(
                .createConversation(
                    app: World.app,
                    CreateConversation(
                        conversation: world.fresh(), participants: ["a", "b"], distinct: true),
                    idempotency: nil))
            guard case .conversation(let made) = answer else { throw Unexpected(answer: answer) }
            return made.conversation
        }
        let first = try create()
        #expect(try create() == first)
        try world.end(first)
        #expect(try create() != first)
    }

    @Test func aPublishIsNotRepeatedIntoAnEndedConversation() throws {
        let once = Idempotency(key: "k", requestHash: [1])
        let message: MessageID = world.fresh()
        let request = StoreRequest.publish(
            app: World.app,
            Publication(message: world.message0("x", to: id, message), sender: ""),
            idempotency: once)
        #expect(try world.ask(request).refusal == nil)
        try world.end(id)
        try world.retain()
        #expect(try world.ask(request).refusal == .gone)
    }
}

/// How long tombstones stay, and what a cursor from before means (SYN-30).
struct CompactionTests {
    private let world: World
    private let id: ConversationID
    private let phone = DeviceID(high: 1, low: 1)
    private let tablet = DeviceID(high: 1, low: 2)
    private static let day: Milliseconds = 86_400_000

    init() throws {
        world = try World()
        id = try world.converse(["a", "b"])
    }

    private func tombstones(_ user: String) throws -> Int {
        try world.rows(user).filter { $0.kind == .tombstone }.count
    }

    private func acknowledge(_ session: SessionKey, _ applied: UInt64) throws {
        try world.ask(
            .acknowledge(Acknowledge(session: session, applied: applied, completesSync: true)))
    }

    private func sync(
        _ session: SessionKey, _ epoch: Epoch, _ seq: UInt64, resetHead: UInt64 = 0
    ) throws -> ResetReason? {
        let answer = try world.ask(
            .sync(
                SyncWrite(
                    session: session,
                    sync: SyncFrame(
                        cursor: Cursor(epoch: epoch, seq: seq), applied: seq,
                        resetHead: resetHead),
                    freshEpochHalf: 5)))
        guard case .synced(let synced) = answer else { throw Unexpected(answer: answer) }
        return synced.reset
    }

    /// A message that stays, three whose tombstones are gone since, and one more.
    ///
    /// - Returns: where the feed of b stood before the deletions.
    private func removeTombstones() throws -> UInt64 {
        try world.publish("kept", to: id)
        let old = try world.head("b")
        for number in 1...3 {
            try world.delete(try world.publish("\(number)", to: id).message)
        }
        try world.publish("last", to: id)
        world.pass(31 * Self.day)
        try world.retain()
        return old
    }

    @Test func theyStayThirtyDaysAndForTheSlowestDevice() throws {
        let quick = try world.login("b", phone).session
        let slow = try world.login("b", tablet).session
        try acknowledge(slow, try world.head("b"))
        try world.delete(try world.publish("x", to: id).message)
        try acknowledge(quick, try world.head("b"))
        world.pass(29 * Self.day)
        try world.retain()
        #expect(try tombstones("a") == 1)
        world.pass(2 * Self.day)
        try world.retain()
        #expect(try tombstones("a") == 0, "a has no device that could lack it")
        #expect(try tombstones("b") == 1)
        // Looked at again each day; after 90 days the slow one is not waited for.
        world.pass(30 * Self.day)
        try acknowledge(quick, try world.head("b"))
        try world.retain()
        #expect(try tombstones("b") == 1)
        world.pass(30 * Self.day)
        try acknowledge(quick, try world.head("b"))
        try world.retain()
        #expect(try tombstones("b") == 0)
    }

    @Test func theyGoOnceTheSlowestHasThem() throws {
        let slow = try world.login("b", tablet).session
        try world.delete(try world.publish("x", to: id).message)
        try world.remove(["a"], from: id)
        world.pass(31 * Self.day)
        try world.retain()
        #expect(try tombstones("b") == 1)
        try acknowledge(slow, try world.head("b"))
        try world.retain()
        #expect(try tombstones("b") == 1, "looked at once a day")
        world.pass(Self.day)
        try world.retain()
        #expect(try tombstones("b") == 0)
        #expect(try !world.texts("b").contains("removed a"), "it says that something is gone, too")
        #expect(try world.texts("b").contains("participant b"))
    }

    @Test func anOlderCursorIsResetAndComesUp() throws {
        let old = try removeTombstones()
        let opened = try world.login("b", phone)
        let session = opened.session
        let epoch = opened.sync.epoch
        #expect(try sync(session, epoch, old) == .cursorTooOld)
        // Page by page from 0, below what was removed: it tells where the feed was then.
        let head = try world.head("b")
        #expect(try sync(session, epoch, 1, resetHead: head) == nil)
        #expect(try sync(session, epoch, old, resetHead: head) == nil)
        #expect(try sync(session, epoch, head, resetHead: head) == nil)
    }

    /// The answer was lost, the app was killed before the first page was stored, or the device
    /// was told to wait: it comes with the same cursor and has not begun. Or an older copy of the
    /// device was put back meanwhile, whose cursor may be any.
    @Test func theResetIsGivenAgainUntilTheDeviceHasBegun() throws {
        let old = try removeTombstones()
        let epoch = try world.login("b", phone).sync.epoch
        let head = try world.head("b")
        func hello(_ seq: UInt64, resetHead: UInt64) throws -> ResetReason? {
            let cursor = Cursor(epoch: epoch, seq: seq)
            let sync = SyncFrame(cursor: cursor, applied: seq, resetHead: resetHead)
            return try world.login("b", phone, sync: sync).sync.reset
        }
        for _ in 1...3 {
            for seq in [old, old - 1, 1, old + 1] {
                // It began long ago, or is not said to have.
                #expect(try hello(seq, resetHead: 0) == .cursorTooOld, "\(seq)")
                #expect(try hello(seq, resetHead: old) == .cursorTooOld, "\(seq)")
            }
        }
        // One of the pages was stored: the way up goes on over connections.
        #expect(try hello(1, resetHead: head) == nil)
        #expect(try hello(old + 1, resetHead: head) == nil)
        // Neither ends it for a copy from before.
        #expect(try hello(old, resetHead: old) == .cursorTooOld)
        #expect(try hello(head, resetHead: head) == nil)
        #expect(try hello(old, resetHead: old) == .cursorTooOld)
    }

    /// Else a device that reads the feed from its start would hold a conversation which its user
    /// has left.
    @Test func theOwnRemovalStaysAsLongAsTheConversation() throws {
        let session = try world.login("b", phone).session
        try world.publish("seen", to: id)
        try world.remove(["b"], from: id)
        try acknowledge(session, try world.head("b"))
        world.pass(32 * Self.day)
        try world.retain()
        let own = try world.texts("b")
        #expect(own.contains("removed b"), "\(own)")
        let others = try world.texts("a")
        #expect(!others.contains("removed b"), "\(others)")
    }

    @Test func aCursorAboveWhatWasRemovedGoesOn() throws {
        try world.delete(try world.publish("x", to: id).message)
        let cursor = try world.head("b")
        try world.publish("y", to: id)
        world.pass(31 * Self.day)
        try world.retain()
        let opened = try world.login("b", phone)
        #expect(try sync(opened.session, opened.sync.epoch, cursor) == nil)
        #expect(try sync(opened.session, opened.sync.epoch, cursor - 1) == .cursorTooOld)
    }

    /// A device that began anew before more was removed may have what that told to remove.
    @Test func aHalfWayDeviceIsResetByALaterRemoval() throws {
        try world.delete(try world.publish("x", to: id).message)
        world.pass(31 * Self.day)
        try world.retain()
        let opened = try world.login("b", phone)
        #expect(try sync(opened.session, opened.sync.epoch, 1) == .cursorTooOld)
        let began = try world.head("b")
        let message = try world.publish("y", to: id).message
        #expect(try sync(opened.session, opened.sync.epoch, 2, resetHead: began) == nil)
        try world.delete(message)
        // 90 days: the device is not waited for.
        world.pass(91 * Self.day)
        try world.retain()
        #expect(try tombstones("b") == 0)
        let answer = try sync(opened.session, opened.sync.epoch, 2, resetHead: began)
        #expect(answer == .cursorTooOld)
    }

    @Test func aStepIsBounded() throws {
        for number in 1...7 {
            try world.delete(try world.publish("\(number)", to: id).message)
        }
        world.pass(31 * Self.day)
        let before = try world.all(EntryRecord.self).count
        #expect(
            try world.ask(.enforceRetention(rows: 3)) == .progressed(count: 3, more: true))
        #expect(try world.all(EntryRecord.self).count == before - 3)
        try world.retain()
        #expect(try tombstones("a") + tombstones("b") == 0)
    }
}
