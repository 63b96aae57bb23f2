import Model
import SyncClient
import Testing
import Wire

/// The rules of a device's replica, on both engines.
@Suite struct LocalStoreTests {
    static let room = ConversationID(high: 1, low: 1)

    func withLocal(
        _ engine: EngineFactory, _ body: (TableLocalStore) throws -> Void
    ) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            try body(TableLocalStore(store: store))
        }
    }

    func message(_ number: UInt64, version: UInt64 = 1, text: String = "") -> Entry {
        Entry(
            seq: number, conversation: Self.room,
            object: MessageID(high: 2, low: number).bytes, version: version,
            body: .message(
                MessageState(
                    position: number, sender: "anna",
                    parts: [Part(mimeType: "text/plain", content: Array(text.utf8))])))
    }

    func cursor(_ seq: UInt64, epoch: UInt64 = 1) -> Cursor {
        Cursor(epoch: Epoch(high: epoch, low: 0), seq: seq)
    }

    func positions(_ local: TableLocalStore) throws -> [UInt64] {
        try local.messages(of: Self.room, limit: .max).map { entry in
            if case .message(let state) = entry.body { state.position } else { 0 }
        }
    }

    @Test("entries apply by version, each is news once, the cursor goes along", arguments: engines)
    func apply(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let first = LocalChange(entries: [message(1), message(2)], to: cursor(2))
            #expect(try local.apply(first).count == 2)
            #expect(try local.apply(first).isEmpty)
            let newer = message(2, version: 2, text: "edited")
            #expect(
                try local.apply(LocalChange(entries: [newer, message(1)], to: cursor(3)))
                    == [newer])
            #expect(try positions(local) == [1, 2])
            #expect(try local.load().cursor == cursor(3))
        }
    }

    @Test("what no server takes is queued and read again like all else", arguments: engines)
    func large(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let now = Timestamp(milliseconds: 5)
            let users = (0..<9_000).map { "u\($0)" }
            let add = Mutation.Operation.addParticipants(
                AddParticipants(conversation: Self.room, users: users))
            let send = Mutation.Operation.sendMessage(
                SendMessage(
                    conversation: Self.room, message: MessageID(high: 2, low: 1),
                    parts: [Part](repeating: Part(mimeType: "a/b"), count: 9_000)))
            for operation in [add, send] { _ = try local.enqueue(operation, at: now) }
            let read = try local.mutations(after: 0, limit: 10, now: now)
            #expect(read.map(\.operation) == [add, send])
        }
    }

    @Test("a reset keeps rows until the sweep, and takes lower versions", arguments: engines)
    func reset(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            _ = try local.apply(
                LocalChange(
                    entries: [message(1, version: 9), message(2), message(3)], to: cursor(3)))
            let applied = try local.apply(
                LocalChange(
                    entries: [message(1), message(2)], to: cursor(2, epoch: 2),
                    marksStale: true))
            #expect(applied == [message(1)], "the equal version is met, not news")
            #expect(try positions(local) == [1, 2, 3])
            #expect(try local.load().isResetting)
            _ = try local.apply(
                LocalChange(entries: [message(4)], to: cursor(4, epoch: 2), sweeps: true))
            #expect(try positions(local) == [1, 2, 4])
            #expect(try local.load().isResetting == false)
            #expect(try local.load().cursor == cursor(4, epoch: 2))
        }
    }

    @Test("the same version of another history replaces a stale row", arguments: engines)
    func anotherHistory(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let lost = [message(1, version: 2, text: "lost"), message(2, version: 2)]
            _ = try local.apply(LocalChange(entries: lost, to: cursor(2)))
            // A restored server gives the versions again that it had given to what it lost.
            let gone = Entry(
                conversation: Self.room, object: lost[1].object, version: 2,
                body: .tombstone(TombstoneState(position: 2, by: "anna", deletedMs: 5)))
            let change = LocalChange(
                entries: [message(1, version: 2, text: "present"), gone],
                to: cursor(2, epoch: 2), marksStale: true, sweeps: true)
            #expect(try local.apply(change) == change.entries)
            #expect(try local.apply(change) == [], "met again, it is no news")
            let held = try local.messages(of: Self.room, limit: 9)
            #expect(held.map(\.body) == change.entries.map(\.body))
        }
    }

    @Test("the outbox gives rising numbers, keeps results, renumbers", arguments: engines)
    func outbox(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let time = Timestamp(milliseconds: 1_000)
            #expect(try local.enqueue(.forgetDevice(ForgetDevice()), at: time) == 1)
            #expect(try local.enqueue(.forgetDevice(ForgetDevice()), at: time) == 2)
            try local.saveResults([
                MutationResult(number: 1), MutationResult(number: 7, code: 4004),
            ])
            #expect(try local.result(of: 1) == MutationResult(number: 1))
            #expect(try local.result(of: 7) == nil, "it was not in the outbox")
            var state = try local.load()
            #expect(state.firstUnanswered == 2 && state.lastMutation == 2)
            try local.raiseMutationNumbers(above: 10)
            #expect(try local.enqueue(.blockUser(BlockUser(user: "kim")), at: time) == 11)
            try local.renumberMutations(from: 2, above: 10)
            let pending = try local.mutations(
                after: 0, limit: 10, now: Timestamp(milliseconds: 1_500))
            #expect(pending.map(\.number) == [12, 13])
            #expect(pending.map(\.delayMs) == [500, 500])
            #expect(
                pending.map(\.operation) == [
                    .forgetDevice(ForgetDevice()), .blockUser(BlockUser(user: "kim")),
                ], "in the order they were queued")
            try local.renumberMutations(from: 13, above: 20)
            #expect(
                try local.mutations(after: 0, limit: 10, now: time).map(\.number) == [12, 21])
            state = try local.load()
            #expect(state.lastMutation == 21)
        }
    }

    @Test("a pending read goes when the own read mark is as far", arguments: engines)
    func reads(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            try local.addRead(ReadReceipt(conversation: Self.room, through: 3))
            try local.addRead(ReadReceipt(conversation: Self.room, through: 5))
            #expect(try local.load().pendingReads.map(\.through) == [5])
            func mark(_ through: UInt64) -> Entry {
                Entry(
                    seq: through, conversation: Self.room, version: through,
                    body: .readMark(ReadMarkState(through: through)))
            }
            _ = try local.apply(LocalChange(entries: [mark(4)], to: cursor(1)))
            #expect(try local.load().pendingReads.count == 1)
            _ = try local.apply(LocalChange(entries: [mark(5)], to: cursor(2)))
            #expect(try local.load().pendingReads.isEmpty)
            #expect(try local.readMark(of: Self.room)?.through == 5)
        }
    }

    @Test("SYN-32: pending reads of conversations end with their epoch", arguments: engines)
    func readsOfAnotherEpoch(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let told = MessageID(high: 1, low: 1)
            func read() throws {
                try local.addRead(ReadReceipt(conversation: Self.room, through: 3))
                try local.addRead(ReadReceipt(announcement: told))
            }
            func reset(_ to: Cursor) throws -> Int {
                _ = try local.apply(LocalChange(entries: [], to: to, marksStale: true))
                return try local.load().pendingReads.count
            }
            try read()
            // A first login has no cursor; a cursor too old is of the same epoch.
            #expect(try reset(cursor(1)) == 2)
            #expect(try reset(cursor(0)) == 2)
            let other = Epoch(high: 7, low: 7)
            #expect(try reset(Cursor(epoch: other, seq: 1)) == 1)
            #expect(try local.load().pendingReads.map(\.announcement) == [told])
            try read()
            func snapshot(of epoch: Epoch, isFirst: Bool) throws -> Int {
                _ = try local.applySnapshot(
                    SnapshotChange(
                        page: SnapshotPage(continuation: [1]), start: Cursor(epoch: epoch, seq: 2),
                        isFirst: isFirst), at: Timestamp(milliseconds: 1))
                return try local.load().pendingReads.count
            }
            #expect(try snapshot(of: other, isFirst: true) == 2)
            #expect(try snapshot(of: other, isFirst: false) == 2)
            let third = Epoch(high: 8, low: 8)
            #expect(try snapshot(of: third, isFirst: true) == 1)
        }
    }

    @Test("a pending read of an announcement goes when it comes back as read", arguments: engines)
    func readAnnouncements(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let ids = [MessageID(high: 1, low: 1), MessageID(high: 1, low: 2)]
            for id in ids { try local.addRead(ReadReceipt(announcement: id)) }
            #expect(try local.load().pendingReads.map(\.announcement) == ids)
            func come(_ version: UInt64) -> Entry {
                Entry(
                    seq: version, object: ids[0].bytes, version: version,
                    body: .announcement(AnnouncementState(read: version > 1)))
            }
            _ = try local.apply(LocalChange(entries: [come(1)], to: cursor(1)))
            #expect(try local.load().pendingReads.count == 2)
            _ = try local.apply(LocalChange(entries: [come(2)], to: cursor(2)))
            #expect(try local.load().pendingReads.map(\.announcement) == [ids[1]])
        }
    }

    @Test("another user's login leaves nothing of the former", arguments: engines)
    func otherUser(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            try local.saveSession(token: [1], user: "anna")
            _ = try local.apply(LocalChange(entries: [message(1)], to: cursor(1)))
            _ = try local.enqueue(
                .forgetDevice(ForgetDevice()), at: Timestamp(milliseconds: 0))
            try local.saveSession(token: [2], user: "anna")
            #expect(try positions(local) == [1])
            try local.saveSession(token: [3], user: "bob")
            let state = try local.load()
            #expect(state.user == "bob" && state.sessionToken == [3] && state.cursor == nil)
            #expect(state.firstUnanswered == nil && state.lastMutation == 1)
            #expect(try positions(local).isEmpty)
            try local.forgetSession()
            #expect(try local.load().sessionToken.isEmpty)
        }
    }
}

/// What tombstones leave on a device.
extension LocalStoreTests {
    private func tombstone(_ number: UInt64, version: UInt64) -> Entry {
        Entry(
            seq: 50, conversation: Self.room, object: MessageID(high: 2, low: number).bytes,
            version: version,
            body: .tombstone(TombstoneState(position: number, forEveryone: true, by: "anna")))
    }

    private func room(_ version: UInt64) -> Entry {
        Entry(
            seq: 60, conversation: Self.room, object: Self.room.bytes, version: version,
            body: .conversationState(ConversationState(creator: "anna")))
    }

    private func end(_ position: UInt64, version: UInt64, everyone: Bool) -> Entry {
        Entry(
            seq: 70, conversation: Self.room, object: Self.room.bytes, version: version,
            body: .tombstone(
                TombstoneState(position: position, conversation: true, forEveryone: everyone)))
    }

    private func participant(_ user: String) -> Entry {
        Entry(
            seq: 1, conversation: Self.room, version: 1,
            body: .participant(ParticipantState(user: user)))
    }

    private func kinds(_ local: TableLocalStore) throws -> [String] {
        try local.messages(of: Self.room, limit: .max).map { entry in
            switch entry.body {
            case .message(let state): "message \(state.position)"
            case .tombstone(let state): "tombstone \(state.position)"
            default: "other"
            }
        }
    }

    @Test(
        "a refused text outlives a conversation that somebody ended, not one its user deleted",
        arguments: [true, false], engines)
    func refusedText(_ everyone: Bool, _ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            _ = try local.apply(LocalChange(entries: [room(1), message(1)], to: cursor(61)))
            let time = Timestamp(milliseconds: 5)
            let ids = (7...8 as ClosedRange<UInt64>).map { MessageID(high: 9, low: $0) }
            for id in ids {
                let send = SendMessage(
                    conversation: Self.room, message: id, parts: [Part(mimeType: "a/b")])
                _ = try local.enqueue(.sendMessage(send), at: time)
            }
            // One was taken, and the feed will never tell of it.
            try local.saveResults([
                MutationResult(number: 1, position: 2),
                MutationResult(number: 2, code: Code.gone.rawValue),
            ])
            _ = try local.apply(
                LocalChange(entries: [end(2, version: 9, everyone: everyone)], to: cursor(70)))
            let again = try ids.map { id in
                try local.resend(
                    MessageReference(conversation: Self.room, message: id), at: time)
            }
            #expect(again == (everyone ? [nil, 3] : [nil, nil]))
        }
    }

    @Test(
        "a tombstone takes its message's place, and no older version comes back", arguments: engines
    )
    func messageTombstone(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            _ = try local.apply(
                LocalChange(entries: [message(1), message(2)], to: cursor(2)))
            _ = try local.apply(
                LocalChange(
                    entries: [tombstone(1, version: 3), message(1, version: 2)], to: cursor(4)))
            #expect(try kinds(local) == ["tombstone 1", "message 2"])
        }
    }

    @Test("a conversation deleted for oneself comes back with later messages", arguments: engines)
    func conversationTombstone(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            _ = try local.apply(
                LocalChange(
                    entries: [room(1), participant("anna"), message(1), message(2), message(3)],
                    to: cursor(5)))
            try local.addRead(ReadReceipt(conversation: Self.room, through: 1))
            _ = try local.apply(
                LocalChange(entries: [end(2, version: 2, everyone: false)], to: cursor(6)))
            #expect(try local.conversations().isEmpty)
            #expect(try kinds(local) == ["message 3"])
            _ = try local.apply(LocalChange(entries: [room(1)], to: cursor(7)))
            #expect(try local.conversations().isEmpty, "an older version")
            _ = try local.apply(LocalChange(entries: [room(3), message(4)], to: cursor(8)))
            #expect(try local.conversations().count == 1)
            #expect(try kinds(local) == ["message 3", "message 4"])
            #expect(try local.load().pendingReads.count == 1)
        }
    }

    /// The page was read before the deletion, and came after it.
    @Test("a page brings nothing back that went with its conversation", arguments: engines)
    func clearedPosition(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            _ = try local.apply(LocalChange(entries: [room(1), message(1)], to: cursor(5)))
            // One page holds a message before the end, and one after it.
            let deletion = [message(1), end(2, version: 2, everyone: false), message(2)]
            _ = try local.apply(LocalChange(entries: deletion, to: cursor(6)))
            #expect(try kinds(local) == [])
            let page = HistoryChange(entries: [message(1), message(2), message(3)])
            #expect(try local.applyHistory(page) == [message(3)])
            _ = try local.apply(LocalChange(entries: [room(3), message(4)], to: cursor(8)))
            _ = try local.applyHistory(page)
            #expect(try kinds(local) == ["message 3", "message 4"])
            #expect(try local.counts().entries == 3)
            // Another history gives the positions again.
            let other = LocalChange(
                entries: [room(1), message(1)], to: cursor(3, epoch: 9), marksStale: true,
                sweeps: true)
            _ = try local.apply(other)
            #expect(try kinds(local) == ["message 1"])
        }
    }

    /// A peek brings the newest first.
    @Test("what was deleted goes also after the conversation has come back", arguments: engines)
    func clearedLate(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let held = [room(1)] + (1...5).map { message($0) }
            _ = try local.apply(LocalChange(entries: held, to: cursor(5)))
            let cleared = end(5, version: 2, everyone: false)
            let peek = HistoryChange(entries: [message(6), room(3), cleared])
            #expect(try local.applyHistory(peek) == peek.entries)
            #expect(try kinds(local) == ["message 6"])
            #expect(try local.conversations().count == 1)
            // It comes again by the feed, and is no news; nor are older messages of a PAGE.
            let again = LocalChange(entries: [cleared, room(3), message(6)], to: cursor(8))
            #expect(try local.apply(again) == [])
            #expect(try local.applyHistory(HistoryChange(entries: [message(5)])) == [])
            #expect(try kinds(local) == ["message 6"])
        }
    }

    @Test("of a conversation deleted for everyone nothing stays", arguments: engines)
    func conversationEnd(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let many = (1...1_100).map { message(UInt64($0)) }
            _ = try local.apply(
                LocalChange(entries: [room(1), participant("anna")] + many, to: cursor(5)))
            try local.addRead(ReadReceipt(conversation: Self.room, through: 1))
            _ = try local.apply(
                LocalChange(entries: [end(2, version: 2, everyone: true)], to: cursor(6)))
            #expect(try local.conversations().isEmpty)
            #expect(try kinds(local).isEmpty)
            #expect(try local.load().pendingReads.isEmpty)
            #expect(try local.counts().entries == 1, "the participant is gone, too")
            // A peek brought the end first, and the feed what was before it.
            let late = [participant("anna"), message(1), end(2, version: 2, everyone: true)]
            #expect(try local.apply(LocalChange(entries: late, to: cursor(7))) == [])
            #expect(try local.applyHistory(HistoryChange(entries: [message(2)])) == [])
            #expect(try kinds(local).isEmpty && local.counts().entries == 1)
            // Another history may have it still.
            let other = LocalChange(
                entries: [room(1), message(1)], to: cursor(3, epoch: 9), marksStale: true,
                sweeps: true)
            _ = try local.apply(other)
            #expect(try kinds(local) == ["message 1"])
        }
    }

    /// The conversation came back before the device was told that it had been cleared, and the text
    /// was written into what had come back.
    @Test("a tombstone that comes late takes no text that was refused", arguments: engines)
    func refusedAfterReturn(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let held = [room(1)] + (1...4).map { message($0) }
            _ = try local.apply(LocalChange(entries: held, to: cursor(5)))
            _ = try local.applyHistory(HistoryChange(entries: [message(5), room(5)]))
            let time = Timestamp(milliseconds: 5)
            let codes: [(UInt64, Code?)] = [(3, nil), (6, nil), (0, .limit)]
            let texts = try codes.map { position, code in
                let reference = MessageReference(
                    conversation: Self.room, message: MessageID(high: 9, low: position))
                let send = SendMessage(
                    conversation: Self.room, message: reference.message,
                    parts: [Part(mimeType: "a/b")])
                let number = try local.enqueue(.sendMessage(send), at: time)
                try local.saveResults([
                    MutationResult(
                        number: number, code: code?.rawValue ?? 0, position: position)
                ])
                return reference
            }
            let late = [end(4, version: 4, everyone: false), room(5), message(5)]
            _ = try local.apply(LocalChange(entries: late, to: cursor(9)))
            #expect(try kinds(local) == ["message 5"])
            // What was accepted above the position is still to come.
            let deliveries = try texts.map { try local.delivery(of: $0, sent: []) }
            let refused = Delivery.refused(Refusal(code: Code.limit.rawValue))
            #expect(deliveries == [nil, .accepted, refused])
            // Told of once more after a reset it takes no more.
            let reset = LocalChange(
                entries: late, to: cursor(9), marksStale: true, sweeps: true)
            _ = try local.apply(reset)
            #expect(try local.refusedMessages().map(\.reference) == [texts[2]])
        }
    }

    /// The server removes the messages in the background, and till then its feed gives them.
    @Test("the end of a conversation ends it again after a reset", arguments: engines)
    func endAgain(_ engine: EngineFactory) throws {
        try withLocal(engine) { (local: TableLocalStore) throws in
            let gone = end(2, version: 2, everyone: true)
            let held = [room(1), participant("anna"), message(1), gone]
            _ = try local.apply(LocalChange(entries: held, to: cursor(6)))
            let first = LocalChange(
                entries: [participant("anna"), message(1)], to: cursor(2), marksStale: true)
            #expect(try local.apply(first) == first.entries)
            let last = LocalChange(
                entries: [message(2), gone], to: cursor(6), sweeps: true)
            #expect(try local.apply(last) == last.entries)
            #expect(try kinds(local).isEmpty && local.counts().entries == 1)
            #expect(try local.applyHistory(HistoryChange(entries: [message(2), gone])) == [])
            #expect(try kinds(local).isEmpty && local.counts().entries == 1)
        }
    }
}
