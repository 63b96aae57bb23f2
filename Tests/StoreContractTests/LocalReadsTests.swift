import Model
import Testing
import Wire

@testable import SyncClient

/// Which read receipts a device drops when a SYNC that carried them is answered, on both engines.
@Suite struct LocalReadsTests {
    private let room = ConversationID(high: 1, low: 1)

    private func entry(_ seq: UInt64, _ object: [UInt8], _ body: Entry.Body) -> Entry {
        let isOfRoom = if case .announcement = body { false } else { true }
        return Entry(
            seq: seq, conversation: isOfRoom ? room : nil, object: object, version: seq, body: body)
    }

    private func apply(_ entry: Entry, to local: TableLocalStore) throws {
        let epoch = Epoch(high: 1, low: 0)
        _ = try local.apply(
            LocalChange(entries: [entry], to: Cursor(epoch: epoch, seq: entry.seq)))
    }

    @Test("of an announcement the receipt goes, and it counts as read here", arguments: engines)
    func announcement(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            let (told, unknown) = (MessageID(high: 8, low: 1), MessageID(high: 8, low: 2))
            let state = AnnouncementState(push: PushText(title: "", body: "sale"))
            try apply(entry(1, told.bytes, .announcement(state)), to: local)
            let receipts = [told, unknown].map { ReadReceipt(announcement: $0) }
            for receipt in receipts { try local.addRead(receipt) }
            let now = Timestamp(milliseconds: 1)
            // What this device has said counts here before the server has heard of it.
            #expect(try local.standing(of: told, in: nil, at: now) == .over)
            #expect(try local.endReads(receipts) == receipts)
            #expect(try local.load().pendingReads.isEmpty)
            #expect(try local.standing(of: told, in: nil, at: now) == .over)
            #expect(try local.endReads(receipts) == [])
            // Of another history, where it is told anew.
            _ = try local.apply(
                LocalChange(
                    entries: [entry(1, told.bytes, .announcement(state))],
                    to: Cursor(epoch: Epoch(high: 2, low: 0), seq: 1), marksStale: true))
            #expect(try local.standing(of: told, in: nil, at: now) == .shows)
        }
    }

    @Test("one that was taken back is over, and no receipt of it waits", arguments: engines)
    func takenBack(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            let now = Timestamp(milliseconds: 1)
            let ids = [1, 2].map { MessageID(high: 8, low: $0) }
            for id in ids {
                try apply(
                    entry(
                        id.low, id.bytes,
                        .announcement(
                            AnnouncementState(push: PushText(title: "", body: "sale")))),
                    to: local)
            }
            try local.addRead(ReadReceipt(announcement: ids[0]))
            let tombstone = Entry(
                seq: 3, object: ids[0].bytes, version: 3,
                body: .tombstone(TombstoneState(forEveryone: true, deletedMs: 1)))
            try apply(tombstone, to: local)
            #expect(try local.standings(of: ids.map { ($0, nil) }, at: now) == [.over, .shows])
            #expect(try local.announcements().map(\.id) == [ids[1]])
            #expect(try local.load().pendingReads.isEmpty)
            // An older page may bring it once more (HIS-2).
            let late = entry(1, ids[0].bytes, .announcement(AnnouncementState()))
            _ = try local.applyHistory(HistoryChange(entries: [late]))
            #expect(try local.announcements().map(\.id) == [ids[1]])
        }
    }

    @Test("what the read mark or what waits says already is kept once", arguments: engines)
    func saidAlready(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            try local.saveSession(token: [1], user: "anna")
            let ranges = [InclusiveRange(first: 7, last: 8)]
            try apply(
                entry(1, room.bytes, .readMark(ReadMarkState(through: 5, ranges: ranges))),
                to: local)
            for receipt in [
                ReadReceipt(conversation: room, through: 5),
                ReadReceipt(conversation: room, ranges: ranges),
            ] { #expect(try !local.addRead(receipt)) }
            #expect(try local.load().pendingReads.isEmpty)
            #expect(try local.addRead(ReadReceipt(conversation: room, through: 6)))
            #expect(try !local.addRead(ReadReceipt(conversation: room, through: 6)))
            #expect(try local.load().pendingReads.map(\.through) == [6])
            let id = MessageID(high: 8, low: 1)
            try apply(
                entry(2, id.bytes, .announcement(AnnouncementState(read: true))), to: local)
            #expect(try !local.addRead(ReadReceipt(announcement: id)))
            // A mark of another history says nothing.
            _ = try local.apply(
                LocalChange(
                    entries: [], to: Cursor(epoch: Epoch(high: 2, low: 0), seq: 1),
                    marksStale: true))
            #expect(try local.addRead(ReadReceipt(conversation: room, through: 5)))
        }
    }

    @Test("one that an older program stored in vain ends with the next answer", arguments: engines)
    func storedInVain(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            try local.saveSession(token: [1], user: "anna")
            try apply(entry(1, [], .conversationState(ConversationState())), to: local)
            try apply(entry(2, [], .participant(ParticipantState(user: "anna"))), to: local)
            let receipt = ReadReceipt(conversation: room, through: 5)
            try local.addRead(receipt)
            #expect(try local.endReads([receipt]) == [])
            try apply(entry(3, room.bytes, .readMark(ReadMarkState(through: 5))), to: local)
            // As it stands in the file of such a program.
            try store.write { transaction throws(StoreError) in
                try transaction.put(
                    LocalReadRecord(subject: receipt.subject, receipt: receipt.encoded))
            }
            #expect(try local.endReads([receipt]) == [receipt])
            #expect(try local.load().pendingReads.isEmpty)
        }
    }

    @Test("of a conversation it goes where no read mark need come", arguments: engines)
    func conversation(_ engine: EngineFactory) throws {
        try engine.withStore(tables: LocalSchema.tables) { store in
            let local = TableLocalStore(store: store)
            try local.saveSession(token: [1], user: "anna")
            let receipt = ReadReceipt(conversation: room, through: 3)
            func ends() throws -> Bool {
                try local.addRead(receipt)
                return try local.endReads([receipt]) == [receipt]
            }
            #expect(try ends(), "nothing of it is here")
            // A message may come before its conversation.
            try apply(
                entry(1, MessageID(high: 2, low: 1).bytes, .message(MessageState(position: 1))),
                to: local)
            #expect(try !ends())
            try apply(entry(2, [], .conversationState(ConversationState())), to: local)
            #expect(try !ends())
            try apply(entry(3, [], .participant(ParticipantState(user: "anna"))), to: local)
            #expect(try !ends())
            // It has grown since it was sent.
            try local.addRead(ReadReceipt(conversation: room, through: 4))
            try apply(
                entry(4, [], .participant(ParticipantState(user: "anna", removed: true))), to: local
            )
            #expect(try local.endReads([receipt]) == [])
            #expect(
                try local.endReads([ReadReceipt(conversation: room, through: 4)]).count == 1)
            try apply(entry(5, [], .participant(ParticipantState(user: "anna"))), to: local)
            try local.addRead(receipt)
            let end = TombstoneState(position: 1, conversation: true)
            try apply(entry(6, room.bytes, .tombstone(end)), to: local)
            #expect(try ends(), "it was deleted")
            #expect(try local.load().pendingReads.isEmpty)
        }
    }
}
