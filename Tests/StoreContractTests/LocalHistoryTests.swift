import Model
import Testing
import Wire

@testable import SyncClient

/// History, snapshots and digests in a device's replica, on both engines.
@Suite struct LocalHistoryTests {
    static let room = ConversationID(high: 1, low: 1)
    static let epoch = Epoch(high: 1, low: 0)

    func withLocal(
        _ engine: EngineFactory, _ body: (TableLocalStore) throws -> Void
    ) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            try local.saveSession(token: [1], user: "anna")
            try body(local)
        }
    }

    static let hello = PushText(title: "", body: "hello")

    func message(
        _ position: UInt64, version: UInt64 = 1, sender: String = "ben", sent: UInt64 = 0,
        id: UInt64? = nil, room: ConversationID = Self.room,
        push: PushText? = nil
    ) -> Entry {
        Entry(
            seq: position, conversation: room,
            object: MessageID(high: room.low, low: id ?? position).bytes, version: version,
            body: .message(
                MessageState(
                    position: position, sender: sender, sentMs: sent,
                    parts: [Part(mimeType: "a/b", content: [1])], push: push)))
    }

    func state(
        _ room: ConversationID = Self.room, creator: String = "", created: UInt64 = 0
    ) -> Entry {
        Entry(
            seq: 1, conversation: room, object: room.bytes, version: 1,
            body: .conversationState(ConversationState(createdMs: created, creator: creator)))
    }

    func member(_ user: String, removed: Bool = false, room: ConversationID = Self.room) -> Entry {
        Entry(
            seq: 1, conversation: room, version: 1,
            body: .participant(ParticipantState(user: user, removed: removed)))
    }

    func mark(_ through: UInt64) -> Entry {
        Entry(
            seq: 1, conversation: Self.room, version: through,
            body: .readMark(ReadMarkState(through: through)))
    }

    func feed(_ entries: [Entry], _ local: TableLocalStore) throws {
        _ = try local.apply(
            LocalChange(entries: entries, to: Cursor(epoch: Self.epoch, seq: 99)))
    }

    func positions(_ local: TableLocalStore, _ room: ConversationID = Self.room) throws -> [UInt64]
    {
        try local.messages(of: room, limit: .max).map { entry in
            if case .message(let state) = entry.body { state.position } else { 0 }
        }
    }

    func snapshot(
        _ entries: [Entry], from: UInt64, room: ConversationID = Self.room, isFirst: Bool = true,
        next: [UInt8] = [], participants: Bool = true, since: UInt64? = nil
    ) -> SnapshotChange {
        SnapshotChange(
            page: SnapshotPage(
                conversations: [
                    SnapshotConversation(
                        conversation: room, entries: entries, completeFrom: from,
                        participantsComplete: participants)
                ], continuation: next),
            start: Cursor(epoch: Self.epoch, seq: 50), isFirst: isFirst,
            resendSince: since.map { Timestamp(milliseconds: $0) })
    }

    private let time = Timestamp(milliseconds: 5_000)

    @Test(
        "history is stored without a cursor, and removes only where it is whole", arguments: engines
    )
    func history(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            try feed([state(), message(8), message(9, version: 3)], local)
            let change = HistoryChange(entries: [message(6), message(7), message(9)])
            #expect(try local.applyHistory(change) == [message(6), message(7)])
            #expect(try positions(local) == [6, 7, 8, 9])
            #expect(try local.load().cursor?.seq == 99)
            // What came by the feed is not stale: nobody removes it.
            _ = try local.applyHistory(
                HistoryChange(
                    entries: [],
                    complete: CompleteRange(conversation: Self.room, first: 1, last: 9)))
            #expect(try positions(local) == [6, 7, 8, 9])
        }
    }

    @Test(
        "a snapshot keeps what it does not speak of, and goes on after a restart",
        arguments: engines)
    func snapshots(_ engine: EngineFactory) throws {
        let other = ConversationID(high: 1, low: 2)
        let gone = ConversationID(high: 1, low: 3)
        try withLocal(engine) { (local: TableLocalStore) throws in
            try feed(
                [state(), member("anna"), member("kim"), mark(4)] + (1...9).map { message($0) }
                    + [state(other), message(1, room: other), state(gone), message(1, room: gone)],
                local)
            let first = snapshot(
                [state(), member("anna")] + [5, 6, 8].map { message($0) }, from: 5, next: [7])
            #expect(try local.applySnapshot(first, at: time).applied.isEmpty)
            #expect(try positions(local) == [1, 2, 3, 4, 5, 6, 8])
            #expect(try local.readMark(of: Self.room) == nil, "the page holds none")
            #expect(try positions(local, other) == [1])
            let state0 = try local.load()
            #expect(state0.cursor == nil)
            #expect(
                state0.snapshot
                    == LocalSnapshot(
                        start: Cursor(epoch: Self.epoch, seq: 50), continuation: [7]))
            let second = snapshot(
                [state(other), message(1, room: other), message(2, room: other)], from: 1,
                room: other, isFirst: false)
            #expect(try local.applySnapshot(second, at: time).applied == [message(2, room: other)])
            #expect(try positions(local, gone) == [])
            #expect(try local.conversations().count == 2)
            #expect(try positions(local) == [1, 2, 3, 4, 5, 6, 8], "unverified, and still here")
            let end = try local.load()
            #expect(end.cursor?.seq == 50 && end.snapshot == nil && !end.isResetting)
            // Looked at: 3 is gone.
            _ = try local.applyHistory(
                HistoryChange(
                    entries: [message(2), message(4)],
                    complete: CompleteRange(conversation: Self.room, first: 2, last: 4)))
            #expect(try positions(local) == [1, 2, 4, 5, 6, 8])
        }
    }

    @Test("participants stay unless the page holds all of them", arguments: engines)
    func participants(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            try feed([state(), member("anna"), member("kim")], local)
            func users() throws -> UInt64 {
                try local.digest().conversations.count
            }
            let page = snapshot([state(), member("anna")], from: 1, participants: false)
            _ = try local.applySnapshot(page, at: time)
            // kim's row is known still: the same entry is no news.
            #expect(try local.applyHistory(HistoryChange(entries: [member("kim")])).isEmpty)
            _ = try local.applySnapshot(snapshot([state(), member("anna")], from: 1), at: time)
            #expect(
                try local.applyHistory(HistoryChange(entries: [member("kim")]))
                    == [member("kim")])
        }
    }

    @Test(
        "own objects that a restored server lacks go into the outbox, in order", arguments: engines)
    func lost(_ engine: EngineFactory) throws {
        let made = ConversationID(high: 1, low: 2)
        try withLocal(engine) { (local: TableLocalStore) throws in
            try feed(
                [
                    state(), message(1), message(2, sender: "anna", sent: 999),
                    message(3, sender: "anna", sent: 1_000), message(4, sent: 2_000),
                    state(made, creator: "anna", created: 3_000), member("anna", room: made),
                    member("kim", room: made), member("leo", removed: true, room: made),
                    message(1, sender: "anna", sent: 4_000, room: made),
                ], local)
            let change = snapshot([state(), message(1)], from: 1, since: 1_000)
            let (_, last) = try local.applySnapshot(change, at: time)
            #expect(last == 3)
            let pending = try local.mutations(after: 0, limit: 9, now: time)
            #expect(
                pending.map(\.operation) == [
                    .createConversation(
                        CreateConversation(conversation: made, participants: ["kim"])),
                    .sendMessage(
                        SendMessage(
                            conversation: Self.room, message: MessageID(high: 1, low: 3),
                            parts: [Part(mimeType: "a/b", content: [1])])),
                    .sendMessage(
                        SendMessage(
                            conversation: made, message: MessageID(high: 2, low: 1),
                            parts: [Part(mimeType: "a/b", content: [1])])),
                ])
            #expect(try local.conversations().count == 1)
            // It comes back at another position: the same version, and yet news.
            let again = message(2, sender: "anna", id: 3)
            #expect(try local.applyHistory(HistoryChange(entries: [again])) == [again])
        }
    }

    @Test("a conversation is made again as it was", arguments: engines)
    func lostWhole(_ engine: EngineFactory) throws {
        let made = ConversationID(high: 1, low: 2)
        try withLocal(engine) { (local: TableLocalStore) throws in
            let values = [
                MetadataValue(path: ["theme", "colour"], value: "red"),
                MetadataValue(path: ["title"], value: "Chess"),
            ]
            let entries = [
                Entry(
                    seq: 1, conversation: made, object: made.bytes, version: 1,
                    body: .conversationState(
                        ConversationState(
                            createdMs: 3_000, creator: "anna", distinct: true, receiptsOff: true))),
                member("anna", room: made), member("kim", room: made),
                Entry(
                    seq: 2, conversation: made, version: 1,
                    body: .metadata(MetadataState(values: values))),
            ]
            try feed(entries, local)
            _ = try local.applySnapshot(snapshot([state()], from: 1, since: 1_000), at: time)
            #expect(
                try local.mutations(after: 0, limit: 9, now: time).map(\.operation) == [
                    .createConversation(
                        CreateConversation(
                            conversation: made, participants: ["kim"], distinct: true,
                            metadata: values.map { MetadataChange(path: $0.path, value: $0.value) },
                            receiptsOff: true))
                ])
        }
    }

    @Test("so do messages below what the snapshot holds, for it does not say", arguments: engines)
    func lostBelow(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            try feed(
                [
                    state(), message(1, sender: "anna", sent: 5_000),
                    message(2, sender: "ben", sent: 999), message(3, sender: "anna", sent: 1_000),
                    message(4, sender: "ben", sent: 2_000),
                    message(5, sender: "anna", sent: 3_000), message(6, sender: "ben", sent: 4_000),
                ], local)
            // Others wrote meanwhile: what it holds begins above what was lost.
            let held = [state(), message(7, sender: "ben", sent: 9_000, id: 17)]
            _ = try local.applySnapshot(snapshot(held, from: 6, next: [7], since: 1_000), at: time)
            // It moved, and comes again.
            _ = try local.applySnapshot(
                snapshot(held, from: 6, isFirst: false, since: 1_000), at: time)
            let again = try local.mutations(after: 0, limit: 9, now: time).map(\.object)
            #expect(again == [3, 5].map { MessageID(high: 1, low: $0).bytes })
            #expect(try positions(local) == [1, 2, 3, 4, 5, 7], "shown while it is not known")
            // Of a server that was not restored nothing is sent again.
            _ = try local.applySnapshot(snapshot(held, from: 6), at: time)
            #expect(try local.mutations(after: 0, limit: 9, now: time).count == 2)
        }
    }

    @Test(
        "so do messages that the server had accepted and the feed not told of", arguments: engines)
    func lostAccepted(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            try feed([state()], local)
            func send(_ id: UInt64, at time: UInt64, code: UInt32 = 0) throws -> SendMessage {
                let send = SendMessage(
                    conversation: Self.room, message: MessageID(high: 1, low: id),
                    parts: [Part(mimeType: "a/b", content: [UInt8(id)])])
                let number = try local.enqueue(
                    .sendMessage(send), at: Timestamp(milliseconds: time))
                try local.saveResults([
                    MutationResult(number: number, code: code, position: code == 0 ? id : 0)
                ])
                return send
            }
            _ = try send(1, at: 999)
            let lost = try send(2, at: 1_000)
            let told = try send(3, at: 2_000)
            _ = try send(4, at: 3_000, code: Code.forbidden.rawValue)
            let first = snapshot(
                [state(), message(3, sender: "anna")], from: 1, next: [7], since: 1_000)
            _ = try local.applySnapshot(first, at: time)
            // With its conversation's page, while it is known who took part.
            #expect(
                try local.mutations(after: 0, limit: 9, now: time).map(\.operation)
                    == [.sendMessage(lost)])
            let other = ConversationID(high: 1, low: 2)
            let last = snapshot([state(other)], from: 1, room: other, isFirst: false, since: 1_000)
            _ = try local.applySnapshot(last, at: time)
            let again = try local.mutations(after: 0, limit: 9, now: time).map(\.operation)
            #expect(again == [.sendMessage(lost)])
            #expect(!again.contains(.sendMessage(told)))
            // It waits for its answer again, and the text that was refused stays.
            let rows = try local.messageWindow(of: Self.room, newest: 9, sent: []).rows
            #expect(rows.map(\.id.low) == [3, 4, 2])
            #expect(rows.last?.delivery == .queued)
            // Of a server that was not restored nothing is sent twice.
            _ = try send(5, at: 4_000)
            _ = try local.applySnapshot(snapshot([state()], from: 1), at: time)
            #expect(try local.mutations(after: 0, limit: 9, now: time).count == 1)
        }
    }

    @Test("what waits goes behind what was lost, unless it was done", arguments: engines)
    func lostFirst(_ engine: EngineFactory) throws {
        let made = ConversationID(high: 1, low: 2)
        try withLocal(engine) { (local: TableLocalStore) throws in
            try feed([state(made, creator: "anna", created: 3_000)], local)
            let waiting = ["done", "first", "second"].map {
                Mutation.Operation.blockUser(BlockUser(user: $0))
            }
            for operation in waiting { _ = try local.enqueue(operation, at: time) }
            var change = snapshot([state()], from: 1, since: 1_000)
            change.mutationFloor = 1
            #expect(try local.applySnapshot(change, at: time).lastMutation == 6)
            let pending = try local.mutations(after: 0, limit: 9, now: time)
            #expect(pending.map(\.number) == [1, 4, 5, 6])
            #expect(
                pending.map(\.operation) == [
                    waiting[0],
                    .createConversation(CreateConversation(conversation: made)), waiting[1],
                    waiting[2],
                ])
        }
    }

    private func announcement(_ id: UInt64) -> Entry {
        Entry(
            seq: 1, object: MessageID(high: 8, low: id).bytes, version: 1,
            body: .announcement(AnnouncementState()))
    }

    /// The server names those with the highest ids alone.
    @Test("announcements that were taken back, or of a former history, go", arguments: engines)
    func announcements(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            func keeps(
                _ given: [UInt64], since: UInt64?, isComplete: Bool = false
            ) throws -> [UInt64] {
                try feed([1, 2, 3].map { announcement($0) }, local)
                var change = snapshot([state()], from: 1, since: since)
                change.page.entries = given.map { announcement($0) }
                change.page.announcementsComplete = isComplete
                _ = try local.applySnapshot(change, at: time)
                // What is still there is no news.
                return try [1, 2, 3].filter {
                    try local.applyHistory(HistoryChange(entries: [announcement($0)])).isEmpty
                }
            }
            #expect(try keeps([2], since: nil) == [1, 2])
            #expect(try keeps([], since: nil) == [])
            #expect(try keeps([2], since: 1_000) == [1, 2])
            #expect(try keeps([], since: 1_000) == [])
            #expect(try keeps([2], since: nil, isComplete: true) == [2])
            // What went stands on the phone no more, and in no list.
            try feed([1, 2, 3].map { announcement($0) }, local)
            var change = snapshot([state()], from: 1)
            change.page.entries = [announcement(2)]
            change.page.announcementsComplete = true
            _ = try local.applySnapshot(change, at: time)
            #expect(try local.announcements().map(\.id) == [MessageID(announcement(2).object)])
            let known = [1, 2].compactMap { MessageID(announcement($0).object) }.map {
                (object: $0, conversation: ConversationID?.none)
            }
            #expect(try local.standings(of: known, at: time) == [.over, .shows])
            // And nothing at all of it is left after the next.
            _ = try local.applySnapshot(change, at: time)
            #expect(try local.standings(of: known, at: time) == [.unknown, .shows])
        }
    }

    @Test("digests sum up what is within reach, as far as everything is whole", arguments: engines)
    func digest(_ engine: EngineFactory) throws {
        let left = ConversationID(high: 1, low: 2)
        try withLocal(engine) { (local: TableLocalStore) throws in
            let deleted = Entry(
                seq: 1, conversation: Self.room, object: MessageID(high: 1, low: 60).bytes,
                version: 2, body: .tombstone(TombstoneState(position: 60)))
            try feed(
                [state(), member("anna"), mark(3), deleted, state(left)]
                    + [member("anna", removed: true, room: left), message(1, room: left)]
                    + (1...59).map { message($0) }, local)
            var expected = DigestSum()
            for position in 10...59 as ClosedRange<UInt64> {
                expected.add(
                    .message, id: MessageID(high: 1, low: position).bytes, version: 1)
            }
            let all = try local.digest()
            #expect(all.positions == 50)
            #expect(all.messages == expected)
            #expect(all.conversations.count == 1 && all.readMarks.count == 1)
            let page = snapshot(
                [state(), member("anna")] + (40...59).map { message($0) }, from: 40)
            _ = try local.applySnapshot(page, at: time)
            #expect(try local.digest().positions == 20)
            #expect(try local.digest().messages.count == 20)
            _ = try local.applyHistory(
                HistoryChange(
                    entries: (30...39).map { message($0) },
                    complete: CompleteRange(conversation: Self.room, first: 30, last: 39)))
            #expect(try local.digest().messages.count == 30)
        }
    }

    @Test("nothing is summed up below tombstones that are all that is whole", arguments: engines)
    func digestOfTombstones(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let deleted = (40...41).map { position in
                Entry(
                    conversation: Self.room, object: MessageID(high: 1, low: position).bytes,
                    version: 2, body: .tombstone(TombstoneState(position: position)))
            }
            _ = try local.applySnapshot(
                snapshot([state(), member("anna")] + deleted, from: 40), at: time)
            #expect(try local.digest().positions == 0, "a message may lie below")
            _ = try local.applyHistory(
                HistoryChange(
                    entries: [message(39)],
                    complete: CompleteRange(conversation: Self.room, first: 39, last: 39)))
            #expect(try local.digest().positions == 1)
            #expect(try local.digest().messages.count == 1)
        }
    }

    @Test("what is stored says which notifications may stand", arguments: engines)
    func standing(_ engine: EngineFactory) throws {
        let other = ConversationID(high: 1, low: 2)
        try withLocal(engine) { (local: TableLocalStore) throws in
            func standing(
                _ position: UInt64, _ room: ConversationID? = Self.room, at time: UInt64 = 5
            ) throws -> NotificationStanding {
                try local.standing(
                    of: MessageID(high: room?.low ?? 1, low: position), in: room,
                    at: Timestamp(milliseconds: time))
            }
            func news(_ id: UInt64, isRead: Bool, version: UInt64) -> Entry {
                Entry(
                    seq: 1, object: MessageID(high: 1, low: id).bytes, version: version,
                    body: .announcement(AnnouncementState(read: isRead)))
            }
            let mark = Entry(
                seq: 1, conversation: Self.room, version: 1,
                body: .readMark(
                    ReadMarkState(through: 1, ranges: [InclusiveRange(first: 3, last: 3)])))
            let deleted = Entry(
                seq: 1, conversation: Self.room, object: MessageID(high: 1, low: 4).bytes,
                version: 2, body: .tombstone(TombstoneState(position: 4)))
            try feed(
                [state(), state(other)] + (1...5).map { message($0, push: Self.hello) }
                    + [
                        message(1, room: other, push: Self.hello), mark, deleted,
                        news(90, isRead: false, version: 1),
                    ],
                local)
            #expect(try (1...5).map { try standing($0) } == [.over, .shows, .over, .over, .shows])
            #expect(try standing(9) == .missing && standing(1, other) == .shows)
            #expect(try standing(90, nil) == .shows)
            let muted = Entry(
                seq: 2, conversation: other, version: 1,
                body: .conversationSettings(
                    ConversationSettings(muted: true, mutedUntilMs: 100)))
            try feed([muted, news(90, isRead: true, version: 2)], local)
            #expect(try standing(1, other, at: 99) == .muted)
            #expect(try standing(1, other, at: 100) == .shows)
            #expect(try standing(90, nil) == .over)
            let gone = Entry(
                seq: 3, conversation: other, object: other.bytes, version: 2,
                body: .tombstone(
                    TombstoneState(position: 1, conversation: true, forEveryone: true)))
            try feed([gone], local)
            #expect(try standing(1, other) == .over)
        }
    }

    @Test("a notification goes whose message is unread no more", arguments: engines)
    func standingByMembershipAndText(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            try local.saveSession(token: [1], user: "anna")
            func standing(_ position: UInt64) throws -> NotificationStanding {
                try local.standing(
                    of: MessageID(high: Self.room.low, low: position), in: Self.room,
                    at: Timestamp(milliseconds: 5))
            }
            func own(_ version: UInt64, removed: Bool = false, joined: UInt64 = 0) -> Entry {
                Entry(
                    seq: version, conversation: Self.room, version: version,
                    body: .participant(
                        ParticipantState(
                            user: "anna", joinedPosition: joined, removed: removed)))
            }
            #expect(try standing(1) == .missing, "nothing is known of the conversation")
            try feed(
                [state(), own(1), message(1, push: Self.hello), message(2, push: Self.hello)], local
            )
            #expect(try standing(1) == .shows)
            #expect(try standing(7) == .missing, "the conversation is here, whole, without it")
            try feed([message(1, version: 2)], local)
            #expect(try standing(1) == .over, "its text for alerts was taken away")
            try feed([own(2, removed: true)], local)
            #expect(try standing(2) == .over, "the user left")
            #expect(try standing(8) == .missing, "alerted after a return that is not here yet")
            try feed([own(3, joined: 2), message(3, push: Self.hello)], local)
            #expect(try standing(2) == .over, "from before the user came back")
            #expect(try standing(3) == .shows)
            _ = try local.applySnapshot(
                snapshot([state(), own(4), message(3)], from: 3),
                at: Timestamp(milliseconds: 5))
            #expect(try standing(7) == .unknown, "it may be older than what is here")
        }
    }

    @Test("an entry without its conversation is kept and told", arguments: engines)
    func orphans(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            #expect(try local.applyHistory(HistoryChange(entries: [message(4)])) == [message(4)])
            #expect(try local.orphans(limit: 9) == [Self.room])
            #expect(try positions(local) == [4])
            _ = try local.applyHistory(HistoryChange(entries: [state()]))
            #expect(try local.orphans(limit: 9) == [])
        }
    }

    @Test("another user gets nothing of a snapshot that was begun", arguments: engines)
    func otherUser(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            _ = try local.applySnapshot(snapshot([state()], from: 1, next: [7]), at: time)
            try local.saveSession(token: [2], user: "kim")
            #expect(try local.load().snapshot == nil)
            #expect(try local.conversations().isEmpty)
        }
    }
}

/// MSG-38: what a device holds of the participants of a large conversation.
@Suite struct LocalLargeConversationTests {
    private let one = LocalHistoryTests()

    private func large(_ participants: UInt32, version: UInt64) -> Entry {
        var entry = one.state()
        entry.version = version
        entry.body = .conversationState(ConversationState(participants: participants))
        return entry
    }

    private func members(_ local: TableLocalStore) throws -> [String] {
        try local.entries(Scan(prefix: [.unsigned(1)], limit: .max)).compactMap { entry in
            guard case .participant(let state) = entry.body else { return nil }
            return state.user
        }
    }

    @Test(
        "its entry takes away all participants but the user, and each FETCH lists them anew",
        arguments: EngineFactory.allCases)
    func others(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            let own = [one.member("anna"), one.member("ben"), one.member("cleo")]
            try one.feed([one.state()] + own, local)
            #expect(try members(local) == ["anna", "ben", "cleo"])
            try one.feed([large(300, version: 2)], local)
            #expect(try members(local) == ["anna"])
            for listed in ["dora", "emil"] {
                _ = try local.applyHistory(
                    HistoryChange(entries: [
                        large(301, version: 2), one.member("anna"), one.member(listed),
                    ]))
                #expect(try members(local) == ["anna", listed])
            }
        }
    }

    @Test(
        "a restored server that lost it is not given it again", arguments: EngineFactory.allCases)
    func restored(_ engine: EngineFactory) throws {
        try one.withLocal(engine) { local in
            let made = ConversationID(high: 2, low: 2)
            for (participants, number) in [(0, 1), (300, 0)] as [(UInt32, Int)] {
                var own = one.state(made, creator: "anna", created: 3_000)
                own.version = UInt64(participants) + 1
                own.body = .conversationState(
                    ConversationState(
                        createdMs: 3_000, creator: "anna", participants: participants))
                try one.feed([own], local)
                let change = one.snapshot([one.state()], from: 1, since: 1_000)
                _ = try local.applySnapshot(change, at: Timestamp(milliseconds: 5_000))
                let waiting = try local.mutations(
                    after: 0, limit: 9, now: Timestamp(milliseconds: 5_000))
                #expect(waiting.count == number, "\(participants)")
                if let last = waiting.last {
                    try local.saveResults([MutationResult(number: last.number)])
                }
            }
        }
    }
}
