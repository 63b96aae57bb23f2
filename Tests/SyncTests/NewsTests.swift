import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// Of what a client may notify its user (PSH-8): what is new, not what is new to this device.
@Suite struct NewsTests {
    private let room = ConversationID(high: 1, low: 1)

    private func message(
        _ number: UInt64, seq: UInt64, sender: String = "ben", alerted: Bool = false
    ) -> Entry {
        Entry(
            seq: seq, conversation: room, object: MessageID(high: 2, low: number).bytes,
            version: 1, alerted: alerted,
            body: .message(MessageState(position: number, sender: sender)))
    }

    private func seqs(_ phone: Phone) -> [UInt64] { phone.news.map(\.seq) }

    private func connected(at seq: UInt64?, snapshots: Bool = false) throws -> Phone {
        var phone = try Phone(at: seq, snapshots: snapshots)
        phone.start()
        phone.connect()
        phone.receive(
            .welcome(
                Welcome(
                    version: 1, sessionToken: [8], epoch: Phone.epoch, keepaliveMs: 180_000,
                    features: snapshots ? ["live", "snapshot"] : ["live"], user: "anna")),
            request: 1)
        return phone
    }

    @Test("SYN-27: the icon's number comes with the last page, and also without anything new")
    func icon() throws {
        var phone = try Phone.inSync()
        let before = phone.icons.count
        func delta(_ from: UInt64, _ seqs: [UInt64], more: Bool, unread: UInt32) -> FrameBody {
            guard case .delta(var delta) = Phone.delta(from, seqs, head: 12) else {
                preconditionFailure("a DELTA is made")
            }
            delta.more = more
            delta.unread = unread
            return .delta(delta)
        }
        phone.receive(delta(10, [11], more: true, unread: 0))
        #expect(phone.icons.count == before)
        phone.receive(delta(11, [12], more: false, unread: 2))
        #expect(phone.icons.dropFirst(before) == [2])
        // A mute that ended by itself changes the number, and no entry says so.
        phone.receive(delta(12, [], more: false, unread: 5))
        #expect(phone.icons.dropFirst(before) == [2, 5])
    }

    @Test("PSH-8: a first sync by the feed notifies of nothing, what comes after it is news")
    func firstSyncByFeed() throws {
        var phone = try connected(at: nil)
        phone.receive(Phone.delta(0, [1, 2, 3], head: 9, reset: .noCursor), request: 1)
        phone.receive(Phone.delta(3, [4, 5, 9], head: 9), request: 2)
        #expect(phone.session.cursor?.seq == 9)
        #expect(phone.store.rows.count == 6 && phone.news.isEmpty)
        phone.receive(Phone.delta(9, [10]))
        #expect(seqs(phone) == [10])
    }

    @Test("PSH-8: it stays so if the app is killed in the middle of the first sync")
    func killed() throws {
        var phone = try connected(at: nil)
        phone.receive(Phone.delta(0, [1, 2, 3], head: 9, reset: .noCursor), request: 1)
        phone.close()
        phone.session = ClientSession(
            configuration: phone.session.configuration, state: try phone.store.load(), seed: 2)
        phone.start(.background)
        phone.connect()
        phone.receive(Phone.welcome(), request: 1)
        phone.receive(Phone.delta(3, [4, 9, 11], head: 11), request: 1)
        #expect(seqs(phone) == [11])
    }

    @Test("PSH-8: a reset notifies of nothing that was there before it")
    func reset() throws {
        var phone = try Phone.inSync()
        phone.receive(Phone.delta(10, [12]))
        #expect(seqs(phone) == [12])
        let epoch = Epoch(high: 7, low: 9)
        phone.receive(Phone.delta(0, [2, 3], head: 5, epoch: epoch, reset: .epochChanged))
        phone.receive(Phone.delta(3, [5], epoch: epoch))
        #expect(seqs(phone) == [12])
        phone.receive(Phone.delta(5, [6], epoch: epoch))
        #expect(seqs(phone) == [12, 6])
    }

    @Test("PSH-8: a snapshot and a FETCH notify of nothing, the deltas above the start do")
    func snapshot() throws {
        var phone = try connected(at: nil, snapshots: true)
        let zero = Cursor(epoch: Phone.epoch, seq: 0)
        phone.receive(
            .delta(
                Delta(from: zero, to: zero, head: 40, more: true, reset: Reset(reason: .noCursor))),
            request: 1)
        let state = Entry(
            conversation: room, object: room.bytes, version: 1,
            body: .conversationState(ConversationState()))
        phone.receive(
            .snapshotPage(
                SnapshotPage(
                    conversations: [
                        SnapshotConversation(
                            conversation: room,
                            entries: [state] + (5...9).map { message($0, seq: 0) },
                            completeFrom: 5)
                    ], start: Cursor(epoch: Phone.epoch, seq: 40))), request: 2)
        #expect(phone.store.rows.count == 6 && phone.news.isEmpty)
        phone.receive(Phone.delta(40, [41]), request: 3)
        #expect(seqs(phone) == [41])
        _ = phone.run { $0.fetch(Fetch(conversation: self.room, below: 5), ticket: 1, now: $1) }
        let request = phone.frames.last?.request ?? 0
        phone.receive(
            .page(PageFrame(entries: [message(4, seq: 0)], first: 4, last: 4)), request: request)
        #expect(phone.store.rows.count == 8 && seqs(phone) == [41])
    }

    @Test("PSH-5: own messages and those alerted before are no news, and each is so once")
    func once() throws {
        var phone = try connected(at: 10)
        phone.receive(Phone.delta(10, []), request: 1)
        let entries = [
            message(1, seq: 11, sender: "anna"), message(2, seq: 12, alerted: true),
            message(3, seq: 13),
        ]
        func page(_ from: UInt64) -> FrameBody {
            .delta(
                Delta(
                    entries: entries, from: Cursor(epoch: Phone.epoch, seq: from),
                    to: Cursor(epoch: Phone.epoch, seq: 13), head: 13))
        }
        phone.receive(page(10))
        phone.receive(page(10))
        #expect(seqs(phone) == [13])
    }

    @Test("a message that an extension or a peek has stored is no news when the feed brings it")
    func appAndExtension() throws {
        // One store on the phone: the extension peeks into it while the app is away.
        var phone = try connected(at: 10)
        phone.receive(Phone.delta(10, []), request: 1)
        let peeked = try phone.store.applyHistory(
            HistoryChange(entries: [message(3, seq: 13), message(2, seq: 12)]))
        #expect(peeked.count == 2)
        let entries = [message(1, seq: 11), message(2, seq: 12), message(3, seq: 13)]
        phone.receive(
            .delta(
                Delta(
                    entries: entries, from: Cursor(epoch: Phone.epoch, seq: 10),
                    to: Cursor(epoch: Phone.epoch, seq: 13), head: 13)))
        #expect(seqs(phone) == [11])
        #expect(phone.store.rows.count == 3 && phone.session.cursor?.seq == 13)
    }
}
