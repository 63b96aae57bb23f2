import AppLife
import Model
import RouseClient
import SyncClient
import Synchronization
import Testing
import Wire

/// What an app shows, through the library's door: sequences that follow what is durable, over real
/// frames, with what the server took as the judge.
@Suite struct LiveTests {
    static let room = Stage.room

    static func conversation(_ seq: UInt64 = 11) -> Entry {
        Entry(
            seq: seq, conversation: room, object: room.bytes, version: seq,
            body: .conversationState(ConversationState(createdMs: 1_000, creator: "ben")))
    }

    static func member(_ user: String, joined: UInt64 = 0, seq: UInt64) -> Entry {
        Entry(
            seq: seq, conversation: room, version: seq,
            body: .participant(ParticipantState(user: user, joinedPosition: joined)))
    }

    static func receipt(
        _ user: String, delivered: UInt64, read: UInt64 = 0, seq: UInt64
    ) -> Entry {
        Entry(
            seq: seq, conversation: room, version: seq,
            body: .receipt(
                ReceiptState(user: user, deliveredThrough: delivered, readThrough: read)))
    }

    static func message(_ position: UInt64, _ text: String, seq: UInt64) -> Entry {
        Entry(
            seq: seq, conversation: room, object: MessageID(high: 0, low: position).bytes,
            version: seq,
            body: .message(
                MessageState(
                    position: position, sender: "ben", sentMs: 2_000 + position,
                    parts: [Part(text)], push: PushText(title: "Ben", body: text))))
    }

    /// A room with two of them, all synced.
    static func room(_ stage: Stage) async throws -> Rouse {
        stage.server.publish(conversation(), unread: 0)
        stage.server.publish(member("anna", seq: 12), unread: 0)
        stage.server.publish(member("ben", seq: 13), unread: 0)
        let rouse = stage.process()
        try await synced(rouse) { await rouse.scene(.active) }
        return rouse
    }

    /// Until everything that `act` brings is here.
    static func synced(_ rouse: Rouse, _ act: () async throws -> Void) async throws {
        let changes = await rouse.changes()
        try await act()
        for await change in changes where change == .inSync { return }
    }

    /// The connection is gone, and the app knows.
    static func hungUp(_ rouse: Rouse, _ stage: Stage) async {
        stage.server.hangUp()
        for await state in await rouse.connectionStates() where state == .offline { return }
    }

    @Test("the list has what came before the app is told that it is in sync")
    func listBeforeInSync() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        // Asked for before, and not taken: the buffer holds the newest.
        let lists = await rouse.conversations()
        stage.server.publish(
            Entry(
                seq: 14, conversation: Self.room, version: 14,
                body: .metadata(
                    MetadataState(values: [MetadataValue(path: ["title"], value: "Chess")]))),
            unread: 0)
        stage.server.publish(Self.message(1, "e4", seq: 15), unread: 1)
        stage.server.publish(Self.message(2, "your turn", seq: 16), unread: 2)
        try await Self.synced(rouse) { stage.server.ring() }
        for await rows in lists {
            #expect(rows.map(\.id) == [Self.room])
            #expect(rows.first?.title == "Chess")
            #expect(rows.first?.participants == ["anna", "ben"])
            #expect(rows.first?.unread == 2)
            #expect(rows.first?.last?.text == "your turn")
            #expect(rows.first?.last?.delivery == nil)
            break
        }
    }

    @Test("a message is queued, sent, accepted, delivered and read, and each is told once")
    func lifeOfAMessage() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        await Self.hungUp(rouse, stage)
        stage.server.feed.withLock { $0.isMute = true }
        let sent = try await rouse.send("hello", to: Self.room, title: "Anna")
        var life = await rouse.delivery(of: sent).makeAsyncIterator()
        #expect(await life.next() == .queued)
        #expect(stage.server.feed.withLock { $0.sent }.isEmpty)
        // In the foreground it need not wait for the back-off.
        await rouse.scene(.background(remaining: 9_000))
        await rouse.scene(.active)
        #expect(await life.next() == .sent)
        await Self.hungUp(rouse, stage)
        #expect(await life.next() == .queued)
        stage.server.feed.withLock { $0.isMute = false }
        await rouse.scene(.background(remaining: 9_000))
        await rouse.scene(.active)
        #expect(await life.next() == .sent)
        #expect(await life.next() == .accepted)
        stage.server.publish(Self.receipt("ben", delivered: 1, seq: 15), unread: 0)
        stage.server.ring()
        #expect(await life.next() == .delivered(to: 1))
        stage.server.publish(Self.receipt("ben", delivered: 1, read: 1, seq: 16), unread: 0)
        stage.server.ring()
        #expect(await life.next() == .read(by: 1, deliveredTo: 1))
        let taken = stage.server.feed.withLock { $0.sent }
        #expect(taken.map(\.message) == [sent.message])
        #expect(taken.first?.push == PushText(title: "Anna", body: "hello"))
    }

    @Test("a text that the server refuses is not lost, nor by a restart, until it is discarded")
    func refused() async throws {
        let stage = try Stage()
        let first = try await Self.room(stage)
        stage.server.feed.withLock { $0.refusal = .forbidden }
        let sent = try await first.send("psst", to: Self.room)
        let refusal = Delivery.refused(Refusal(code: Code.forbidden.rawValue))
        for await state in await first.delivery(of: sent) where state == refusal { break }
        #expect("\(Refusal(code: Code.forbidden.rawValue))" == "this user may not do that")

        let second = stage.process()
        var windows = await second.messages(in: Self.room, newest: 9).makeAsyncIterator()
        try await Self.synced(second) { await second.scene(.active) }
        let shown = await windows.next()
        #expect(shown?.rows.map(\.text) == ["psst"])
        #expect(shown?.rows.map(\.delivery) == [refusal])
        // Sent anew it is the same message.
        stage.server.feed.withLock { $0.refusal = nil }
        var life = await second.delivery(of: sent).makeAsyncIterator()
        #expect(await life.next() == refusal)
        #expect(try await second.resend(sent))
        while let state = await life.next(), state != .accepted {}
        #expect(stage.server.feed.withLock { $0.sent }.map(\.message) == [sent.message])

        stage.server.feed.withLock { $0.refusal = .tooLarge }
        let other = try await second.send("no", to: Self.room)
        var end = await second.delivery(of: other).makeAsyncIterator()
        while let state = await end.next() {
            if state == .refused(Refusal(code: Code.tooLarge.rawValue)) { break }
        }
        #expect(try await second.discard(other))
        #expect(await end.next() == nil)
        #expect(try await !second.discard(other))
    }

    @Test("a text that was refused is found also where its conversation is not listed")
    func refusedElsewhere() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        stage.server.feed.withLock { $0.refusal = .notFound }
        let unmade = ConversationID(high: 77, low: 7)
        #expect(try await rouse.refusedMessages().isEmpty)
        for (text, room) in [("one", unmade), ("two", Self.room)] {
            let sent = try await rouse.send(text, to: room)
            for await state in await rouse.delivery(of: sent) {
                if case .refused = state { break }
            }
        }
        let second = stage.process()
        try await Self.synced(second) { await second.scene(.active) }
        let refused = try await second.refusedMessages()
        #expect(refused.map(\.text) == ["one", "two"])
        #expect(refused.map(\.conversation) == [unmade, Self.room])
        #expect(
            refused.allSatisfy {
                $0.delivery == .refused(Refusal(code: Code.notFound.rawValue))
            })
        let first = try #require(refused.first)
        #expect(
            try await second.discard(
                MessageReference(conversation: first.conversation, message: first.id)))
        #expect(try await second.refusedMessages().map(\.text) == ["two"])
    }

    @Test("why there is no connection can be asked, until there is one")
    func disconnectReason() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        #expect(await rouse.disconnectReason == nil)
        await Self.hungUp(rouse, stage)
        #expect(await rouse.disconnectReason == "broken")
        try await Self.synced(rouse) { await rouse.networkChanged() }
        #expect(await rouse.disconnectReason == nil)
    }

    @Test("a text takes a message's place with as much of it as an alert can show")
    func edited() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        let sent = try await rouse.send("short", to: Self.room, title: "Anna")
        for await state in await rouse.delivery(of: sent) where state == .accepted { break }
        let text = String(repeating: "ж", count: 1_100)
        for await window in await rouse.messages(in: Self.room, newest: 9) {
            guard let row = window.rows.first else { continue }
            let results = await rouse.changes()
            try await rouse.edit(row, text: text)
            for await change in results { if case .results = change { break } }
            break
        }
        let edits = stage.server.feed.withLock { $0.edits }
        #expect(edits.map(\.parts) == [[Part(text)]])
        #expect(edits.first?.push?.title == "Anna")
        #expect(edits.first?.push?.body == String(repeating: "ж", count: 510) + "…")
    }

    @Test("an edit of the text keeps a message's pictures")
    func editedBesidePicture() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        let picture = Part(mimeType: "image/png", content: [1, 2])
        var entry = Self.message(1, "look", seq: 21)
        if case .message(var state) = entry.body {
            state.parts = [picture, Part("look"), Part("again")]
            entry.body = .message(state)
        }
        stage.server.publish(entry, unread: 0)
        try await Self.synced(rouse) { stage.server.ring() }
        var windows = await rouse.messages(in: Self.room, newest: 9).makeAsyncIterator()
        let row = try #require(await windows.next()?.rows.first)
        try await rouse.edit(row, text: "Look!")
        let edited = try #require(await windows.next()?.rows.first)
        #expect(edited.parts == [picture, Part("Look!")])
    }

    @Test("what others wrote is read though an edit of one's newest message waits")
    func readBesideAnEdit() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        for position in 1...2 as ClosedRange<UInt64> {
            stage.server.publish(
                Self.message(position, "\(position)", seq: 20 + position), unread: 2)
        }
        try await Self.synced(rouse) { stage.server.ring() }
        stage.server.feed.withLock { $0.isSilent = true }
        await Self.hungUp(rouse, stage)
        var windows = await rouse.messages(in: Self.room, newest: 9).makeAsyncIterator()
        let row = try #require(await windows.next()?.rows.last)
        try await rouse.edit(row, text: "better")
        #expect(await windows.next()?.rows.last?.version == 0)
        // Sent, and not told of: of no use here.
        try await rouse.send("later", to: Self.room)
        try await rouse.markRead(Self.room)
        var lists = await rouse.conversations().makeAsyncIterator()
        #expect(await lists.next()?.first?.unread == 0)
    }

    @Test("what was queued is shown and sent by the next process")
    func queuedOverARestart() async throws {
        let stage = try Stage()
        let first = try await Self.room(stage)
        stage.server.feed.withLock { $0.isSilent = true }
        await Self.hungUp(first, stage)
        let sent = try await first.send("later", to: Self.room)
        let second = stage.process()
        var windows = await second.messages(in: Self.room, newest: 9).makeAsyncIterator()
        var lists = await second.conversations().makeAsyncIterator()
        await second.scene(.active)
        for await state in await second.connectionStates() where state == .connecting { break }
        let window = await windows.next()
        #expect(window?.rows.map(\.id) == [sent.message])
        #expect(window?.rows.first?.position == nil)
        #expect(await lists.next()?.first?.last?.text == "later")
        stage.server.feed.withLock { $0.isSilent = false }
        await Self.hungUp(second, stage)
        await second.scene(.background(remaining: 9_000))
        try await Self.synced(second) { await second.scene(.active) }
        #expect(stage.server.feed.withLock { $0.sent }.map(\.message) == [sent.message])
        let told = await windows.next()
        #expect(told?.rows.map(\.position) == [1])
        #expect(told?.rows.map(\.delivery) == [.accepted])
    }

    @Test("a window follows the newest messages: edits come, what is deleted goes")
    func window() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        for position in 1...4 as ClosedRange<UInt64> {
            stage.server.publish(
                Self.message(position, "\(position)", seq: 20 + position), unread: 4)
        }
        try await Self.synced(rouse) { stage.server.ring() }
        var windows = await rouse.messages(in: Self.room, newest: 3).makeAsyncIterator()
        let first = await windows.next()
        #expect(first?.rows.map(\.text) == ["2", "3", "4"])
        #expect(first?.hasOlder == true)
        #expect(first?.rows.allSatisfy { $0.isUnread } == true)
        stage.server.publish(
            Entry(
                seq: 25, conversation: Self.room, object: MessageID(high: 0, low: 3).bytes,
                version: 25, body: .tombstone(TombstoneState(position: 3, forEveryone: true))),
            unread: 3)
        var edited = Self.message(4, "four", seq: 26)
        if case .message(var state) = edited.body {
            state.editedMs = 9_000
            edited.body = .message(state)
        }
        stage.server.publish(edited, unread: 3)
        try await Self.synced(rouse) { stage.server.ring() }
        let second = await windows.next()
        #expect(second?.rows.map(\.text) == ["1", "2", "four"])
        #expect(second?.rows.last?.editedAt == Timestamp(milliseconds: 9_000))
        #expect(second?.hasOlder == false)
    }

    @Test("what is read here is unread no more at once, and the server hears of it")
    func reading() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        for position in 1...3 as ClosedRange<UInt64> {
            stage.server.publish(
                Self.message(position, "\(position)", seq: 20 + position), unread: 3)
        }
        try await Self.synced(rouse) { stage.server.ring() }
        var lists = await rouse.conversations().makeAsyncIterator()
        #expect(await lists.next()?.first?.unread == 3)
        var windows = await rouse.messages(in: Self.room, newest: 9).makeAsyncIterator()
        let window = try #require(await windows.next())
        try await rouse.read(window.rows[1])
        #expect(await lists.next()?.first?.unread == 2)
        #expect(await windows.next()?.rows.map(\.isUnread) == [true, false, true])
        try await rouse.markRead(Self.room)
        #expect(await lists.next()?.first?.unread == 0)
        stage.server.publish(Self.receipt("zoe", delivered: 0, seq: 30), unread: 0)
        try await Self.synced(rouse) { stage.server.ring() }
        let told = stage.server.feed.withLock { $0.reads }
        #expect(told.contains { $0.through == 3 })
        #expect(told.contains { $0.ranges == [InclusiveRange(first: 2, last: 2)] })
    }

    @Test("what the device does not hold is fetched when it is asked for, and the window grows")
    func older() async throws {
        let stage = try Stage()
        _ = try TableLocalStore(store: stage.disk).applySnapshot(
            SnapshotChange(
                page: SnapshotPage(conversations: [
                    SnapshotConversation(
                        conversation: Self.room,
                        entries: [
                            Self.conversation(1), Self.message(5, "5", seq: 0),
                            Self.message(6, "6", seq: 0),
                        ], completeFrom: 5, unread: 6)
                ]), start: Cursor(epoch: ScriptedServer.epoch, seq: 10), isFirst: true),
            at: stage.clock.wall)
        let rouse = stage.process()
        try await Self.synced(rouse) { await rouse.scene(.active) }
        var windows = await rouse.messages(in: Self.room, newest: 9).makeAsyncIterator()
        let first = await windows.next()
        #expect(first?.rows.map(\.text) == ["5", "6"])
        #expect(first?.mayFetchOlder == true)
        for await rows in await rouse.conversations() {
            #expect(rows.map(\.unread) == [2])
            #expect(rows.map(\.hasOlderUnread) == [true])
            break
        }
        stage.server.feed.withLock {
            $0.page = PageFrame(
                entries: [Self.message(3, "3", seq: 0), Self.message(4, "4", seq: 0)], first: 3,
                last: 4, more: true)
        }
        try await rouse.fetchOlder(in: Self.room)
        let second = await windows.next()
        #expect(second?.rows.map(\.text) == ["3", "4", "5", "6"])
        #expect(second?.mayFetchOlder == true)
        // The oldest were deleted: the answer is that there is nothing.
        stage.server.feed.withLock { $0.page = PageFrame(first: 1, last: 2) }
        try await rouse.fetchOlder(in: Self.room)
        let whole = await windows.next()
        #expect(whole?.rows == second?.rows)
        #expect(whole?.mayFetchOlder == false)
        #expect(stage.server.feed.withLock { $0.fetches.map(\.below) } == [5, 3])
        for await rows in await rouse.conversations() {
            #expect(rows.map(\.unread) == [4])
            #expect(rows.map(\.hasOlderUnread) == [false])
            break
        }
    }

    @Test("who types is told of, and told to others, and stored by nobody")
    func typing() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        let changes = await rouse.changes()
        stage.server.signal(Signal(conversation: Self.room, kind: .typing, user: "ben"))
        for await change in changes {
            #expect(change == .signal(.typing, conversation: Self.room, user: "ben"))
            break
        }
        await rouse.typing(in: Self.room)
        await rouse.typing(in: Self.room)
        // Behind them on the same connection.
        stage.server.publish(Self.receipt("zoe", delivered: 0, seq: 30), unread: 0)
        try await Self.synced(rouse) { stage.server.ring() }
        #expect(stage.server.feed.withLock { $0.signals.map(\.kind) } == [.typing])
    }

    @Test("a conversation that a reset does not bring is listed no more")
    func reset() async throws {
        let stage = try Stage()
        let rouse = try await Self.room(stage)
        let lists = await rouse.conversations()
        stage.server.feed.withLock { feed in
            feed.entries = [Self.receipt("zoe", delivered: 0, seq: 30)]
            feed.isReset = true
        }
        try await Self.synced(rouse) { stage.server.ring() }
        for await rows in lists {
            #expect(rows.isEmpty)
            break
        }
    }

    @Test("a store that is full or locked says so, and nothing is queued")
    func troubles() async throws {
        let stage = try Stage()
        let locked = stage.process(isLocked: true)
        await locked.scene(.active)
        await #expect {
            try await locked.send("hello", to: Self.room)
        } throws: { error in
            "\(error)" == "the device's store cannot be used: not unlocked"
        }
        let disk = FaultyStore(stage.disk)
        let rouse = stage.process(over: disk)
        try await Self.synced(rouse) { await rouse.scene(.active) }
        disk.isFull = true
        await #expect {
            try await rouse.send("hello", to: Self.room)
        } throws: { error in
            "\(error)" == "the device's store cannot be written: no space is left"
        }
        disk.isFull = false
        try await rouse.send("once", to: Self.room)
        try await Self.synced(rouse) { stage.server.ring() }
        #expect(stage.server.feed.withLock { $0.sent }.count == 1)
    }

    @Test("a store that cannot be read for a while is read anew, and nothing is missed")
    func unreadable() async throws {
        let stage = try Stage()
        stage.server.publish(Self.conversation(), unread: 0)
        let disk = FaultyStore(stage.disk)
        let rouse = stage.process(over: disk)
        try await Self.synced(rouse) { await rouse.scene(.active) }
        let changes = await rouse.changes()
        disk.isUnreadable = true
        let lists = await rouse.conversations()
        for await change in changes {
            if case .storeFailed(let error) = change {
                #expect("\(error)" == "the device's store cannot be used: busy")
                break
            }
        }
        disk.isUnreadable = false
        stage.server.publish(Self.message(1, "e4", seq: 20), unread: 1)
        try await Self.synced(rouse) { stage.server.ring() }
        for await rows in lists {
            #expect(rows.map(\.unread) == [1])
            break
        }
    }
}

/// A store that fails when it is told to.
final class FaultyStore: Store, @unchecked Sendable {
    // @unchecked: what goes wrong is said between two calls of the one process that uses it.
    private let disk: any Store
    private let faults = Mutex((isFull: false, isUnreadable: false))

    init(_ disk: any Store) { self.disk = disk }

    var isFull: Bool {
        get { faults.withLock { $0.isFull } }
        set { faults.withLock { $0.isFull = newValue } }
    }
    var isUnreadable: Bool {
        get { faults.withLock { $0.isUnreadable } }
        set { faults.withLock { $0.isUnreadable = newValue } }
    }

    func write(_ body: (any StoreTransaction) throws(StoreError) -> Void) throws(StoreError) {
        if isFull { throw .full("no space is left") }
        try disk.write(body)
    }

    func read(_ body: (any StoreSnapshot) throws(StoreError) -> Void) throws(StoreError) {
        if isUnreadable { throw .unavailable("busy") }
        try disk.read(body)
    }

    func reader() throws(StoreError) -> any StoreReader { try disk.reader() }
    func now() -> Timestamp { disk.now() }
    func checkpoint() throws(StoreError) { try disk.checkpoint() }
    /// Whoever opens it next finds the disk.
    func close() {}
}
