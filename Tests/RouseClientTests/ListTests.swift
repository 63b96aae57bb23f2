import MemoryStore
import Model
import SyncClient
import Testing
import Wire

/// The list of conversations goes on from what it knows; it must show what reading everything anew
/// shows, and cost no more than what has changed.
@Suite struct ListTests {
    static let rooms = (1...3).map { ConversationID(high: 7, low: $0) }

    struct Random {
        var generator: SplitMix64

        mutating func below(_ bound: UInt64) -> UInt64 { generator.next() % bound }
    }

    /// Any entry of a small world, with the next number.
    static func entry(_ seq: UInt64, _ random: inout Random) -> Entry {
        let room = rooms[Int(random.below(3))]
        let user = ["anna", "ben", "zoe"][Int(random.below(3))]
        let position = 1 + random.below(12)
        var entry = Entry(seq: seq, conversation: room, version: seq)
        switch random.below(20) {
        case 0, 1:
            entry.object = room.bytes
            entry.body = .conversationState(ConversationState(createdMs: seq, creator: user))
        case 2:
            entry.body = .participant(
                ParticipantState(
                    user: user, joinedPosition: random.below(6), removed: random.below(3) == 0))
        case 3:
            entry.body = .receipt(
                ReceiptState(
                    user: user, deliveredThrough: position, readThrough: random.below(position)))
        case 4:
            entry.body = .readMark(
                ReadMarkState(
                    through: random.below(6),
                    ranges: [InclusiveRange(first: position, last: position + 1)]))
        case 5:
            entry.body = .metadata(
                MetadataState(values: [MetadataValue(path: ["title"], value: "\(seq)")]))
        case 6:
            entry.body = .conversationSettings(
                ConversationSettings(muted: true, mutedUntilMs: random.below(2) * seq))
        case 7:
            entry.object = room.bytes
            entry.body = .tombstone(
                TombstoneState(
                    position: random.below(8), conversation: true,
                    forEveryone: random.below(4) == 0))
        case 8:
            entry.object = MessageID(high: room.low, low: position).bytes
            entry.body = .tombstone(TombstoneState(position: position, forEveryone: true))
        default:
            let position = random.below(2) == 0 ? 12 + seq : position
            entry.object = MessageID(high: room.low, low: position).bytes
            entry.body = .message(
                MessageState(
                    position: position, sender: user, sentMs: seq,
                    push: random.below(3) > 0 ? PushText(title: user, body: "\(seq)") : nil))
        }
        return entry
    }

    @Test("following shows what reading anew shows", arguments: 1...12 as ClosedRange<UInt64>)
    func followingIsReading(_ seed: UInt64) throws {
        var random = Random(generator: SplitMix64(seed: seed))
        let store = TableLocalStore(store: MemoryStore(tables: LocalSchema.tables))
        try store.saveSession(token: [1], user: "anna")
        var list = ConversationList()
        try list.reload(from: store, sent: [])
        var seq: UInt64 = 0
        for step in 0..<80 {
            let page = (0...random.below(3)).map { _ in
                seq += 1
                return Self.entry(seq, &random)
            }
            let change = LocalChange(
                entries: page, to: Cursor(epoch: Epoch(high: 1, low: 1), seq: seq))
            try list.applied(try store.apply(change), in: store, sent: [])
            if random.below(8) == 0 {
                let room = Self.rooms[Int(random.below(3))]
                try store.addRead(ReadReceipt(conversation: room, through: random.below(9)))
                try list.read(room, from: store, sent: [])
            }
            if random.below(8) == 0 {
                let room = Self.rooms[Int(random.below(3))]
                let send = SendMessage(
                    conversation: room, message: MessageID(high: 99, low: seq),
                    parts: [Part(mimeType: "a/b")])
                _ = try store.enqueue(.sendMessage(send), at: Timestamp(milliseconds: seq))
                try list.read(room, from: store, sent: [])
            } else if random.below(6) == 0,
                let waiting = try store.mutations(
                    after: 0, limit: 1, now: Timestamp(milliseconds: seq)
                ).first
            {
                let code = random.below(2) == 0 ? 0 : Code.forbidden.rawValue
                try store.saveResults([MutationResult(number: waiting.number, code: code)])
                try list.readPending(from: store, sent: [])
            }
            var anew = ConversationList()
            try anew.reload(from: store, sent: [])
            try #require(list.rows == anew.rows, "seed \(seed), step \(step)")
        }
    }

    @Test("a message of somebody else at the end of a conversation costs the list no read")
    func readsNothing() throws {
        let disk = FaultyStore(MemoryStore(tables: LocalSchema.tables))
        let store = TableLocalStore(store: disk)
        try store.saveSession(token: [1], user: "anna")
        let room = Self.rooms[0]
        func page(_ entries: [Entry]) -> LocalChange {
            LocalChange(
                entries: entries,
                to: Cursor(epoch: Epoch(high: 1, low: 1), seq: entries.last?.seq ?? 0))
        }
        func message(_ number: UInt64) -> Entry {
            Entry(
                seq: number, conversation: room, object: MessageID(high: 1, low: number).bytes,
                version: number,
                body: .message(
                    MessageState(
                        position: number, sender: "ben", push: PushText(title: "", body: "x"))))
        }
        var list = ConversationList()
        let made = Entry(
            seq: 1, conversation: room, object: room.bytes, version: 1,
            body: .conversationState(ConversationState(creator: "ben")))
        try list.applied(try store.apply(page([made, message(2)])), in: store, sent: [])
        disk.isUnreadable = true
        for number in 3...40 as ClosedRange<UInt64> {
            try list.applied(try store.apply(page([message(number)])), in: store, sent: [])
        }
        #expect(list.rows.map(\.unread) == [39])
    }

    @Test("who joined later has not received what came before")
    func lateJoiner() throws {
        let store = TableLocalStore(store: MemoryStore(tables: LocalSchema.tables))
        try store.saveSession(token: [1], user: "anna")
        let room = Self.rooms[0]
        func own(_ position: UInt64) -> Entry {
            Entry(
                seq: position, conversation: room,
                object: MessageID(high: 1, low: position).bytes,
                version: position,
                body: .message(MessageState(position: position, sender: "anna")))
        }
        let entries = [
            own(1), own(2), own(3),
            Entry(
                seq: 4, conversation: room, version: 4,
                body: .participant(ParticipantState(user: "zoe", joinedPosition: 1))),
            Entry(
                seq: 5, conversation: room, version: 5,
                body: .receipt(ReceiptState(user: "zoe", deliveredThrough: 3, readThrough: 2))),
            Entry(
                seq: 6, conversation: room, version: 6,
                body: .receipt(ReceiptState(user: "ben", deliveredThrough: 2, readThrough: 0))),
        ]
        _ = try store.apply(
            LocalChange(entries: entries, to: Cursor(epoch: Epoch(high: 1, low: 1), seq: 6)))
        let window = try store.messageWindow(of: room, newest: 9, sent: [])
        #expect(
            window.rows.map(\.delivery) == [
                .delivered(to: 1), .read(by: 1, deliveredTo: 2), .delivered(to: 1),
            ])
    }
}
