import Model
import SyncClient
import Testing
import Wire

/// Read receipts that nothing comes back for: a client does not say them for ever.
@Suite struct EndedReadsTests {
    private let room = ConversationID(high: 1, low: 1)
    private let news = [MessageID(high: 1, low: 1), MessageID(high: 1, low: 2)]

    private func read(_ receipt: ReadReceipt, _ phone: inout Phone) throws -> [String] {
        try phone.store.addRead(receipt)
        return phone.run { $0.readQueued(receipt, now: $1) }
    }

    private func entry(
        _ seq: UInt64, of room: ConversationID? = nil, _ object: [UInt8], _ body: Entry.Body
    ) -> FrameBody {
        let entry = Entry(
            seq: seq, conversation: room, object: object, version: seq, body: body)
        return .delta(
            Delta(
                entries: [entry], from: Cursor(epoch: Phone.epoch, seq: seq - 1),
                to: Cursor(epoch: Phone.epoch, seq: seq), head: seq))
    }

    private func refresh(_ phone: inout Phone) -> [String] {
        phone.run { $0.userRefresh(now: $1) }
    }

    @Test("MSG-52: the receipt of an announcement is repeated until it comes back as read")
    func comesBack() throws {
        var phone = try Phone.inSync()
        for id in news { _ = try read(ReadReceipt(announcement: id), &phone) }
        func come(_ seq: UInt64, _ isRead: Bool) -> FrameBody {
            entry(seq, news[0].bytes, .announcement(AnnouncementState(read: isRead)))
        }
        // Pushed: an ACK has no answer.
        phone.receive(come(11, false))
        #expect(phone.store.state.pendingReads.map(\.announcement) == news)
        phone.receive(come(12, true))
        #expect(phone.store.state.pendingReads.map(\.announcement) == [news[1]])
        #expect(refresh(&phone) == ["send SYNC at 12 user r0"])
    }

    @Test("MSG-57: nor of one that was taken back is it said again")
    func receiptOfOneTakenBack() throws {
        var phone = try Phone.inSync()
        for id in news { _ = try read(ReadReceipt(announcement: id), &phone) }
        phone.receive(
            entry(11, news[0].bytes, .tombstone(TombstoneState(forEveryone: true))))
        #expect(phone.store.state.pendingReads.map(\.announcement) == [news[1]])
    }

    @Test("MSG-52: of an announcement that the server knows nothing of a receipt is said once")
    func neverComesBack() throws {
        var phone = try Phone.inSync()
        phone.receive(entry(11, news[0].bytes, .announcement(AnnouncementState())))
        #expect(try read(ReadReceipt(announcement: news[0]), &phone) == ["send ACK 11 r0"])
        #expect(refresh(&phone) == ["send SYNC at 11 user r0"])
        phone.receive(Phone.delta(11, []), request: 2)
        #expect(phone.store.state.pendingReads.isEmpty)
        #expect(refresh(&phone) == ["send SYNC at 11 user"])
        // The person has put it aside.
        let row = phone.store.rows.values.first { $0.entry.object == news[0].bytes }
        guard case .announcement(let state)? = row?.entry.body else {
            Issue.record("the announcement is gone")
            return
        }
        #expect(state.read)
    }

    @Test("a SYNC that was not answered, or by a refusal or a reset, says nothing of its receipts")
    func saysNothing() throws {
        let ends: [(String, (inout Phone) -> Void)] = [
            (
                "refused",
                {
                    $0.receive(
                        .error(ErrorFrame(code: Code.unavailable.rawValue, retry: .retry)),
                        request: 2)
                    $0.pass(1_000)
                }
            ),
            (
                "reset",
                {
                    $0.receive(Phone.delta(0, [12], reset: .cursorTooOld), request: 2)
                }
            ),
            (
                "challenged",
                {
                    $0.close()
                    $0.pass(5_000)
                    $0.connect()
                    $0.receive(.challenge(Challenge(reason: .expired)), request: 1)
                    $0.run { $0.identityToken("jwt", now: $1) }
                    $0.receive(Phone.welcome(), request: 1)
                }
            ),
        ]
        for (why, end) in ends {
            var phone = try Phone.inSync()
            _ = try read(ReadReceipt(announcement: news[0]), &phone)
            #expect(refresh(&phone) == ["send SYNC at 10 user r0"])
            end(&phone)
            #expect(phone.store.state.pendingReads.count == 1, "\(why)")
            phone.close()
            phone.pass(5_000)
            #expect(phone.connect().first?.hasSuffix(" r0") == true, "\(why)")
        }
    }

    @Test("MSG-19: so is one of a conversation that the user has left, and of one that is gone")
    func leftConversations() throws {
        let ends: [Entry.Body] = [
            .participant(ParticipantState(user: "anna", removed: true)),
            .tombstone(TombstoneState(position: 9, conversation: true, forEveryone: true)),
        ]
        for end in ends {
            var phone = try Phone.inSync()
            phone.receive(Phone.delta(10, [11]))
            phone.receive(entry(12, of: room, room.bytes, end))
            #expect(
                try read(ReadReceipt(conversation: room, through: 4), &phone)
                    == ["send ACK 12 r4"])
            #expect(refresh(&phone) == ["send SYNC at 12 user r4"])
            phone.receive(Phone.delta(12, []), request: 2)
            #expect(refresh(&phone) == ["send SYNC at 12 user"])
            #expect(phone.store.state.pendingReads.isEmpty)
        }
    }

    @Test("what is read meanwhile is said as well")
    func grows() throws {
        var phone = try Phone.inSync()
        _ = try read(ReadReceipt(conversation: room, through: 4), &phone)
        #expect(refresh(&phone) == ["send SYNC at 10 user r4"])
        _ = try read(ReadReceipt(conversation: room, through: 5), &phone)
        phone.receive(Phone.delta(10, []), request: 2)
        #expect(refresh(&phone) == ["send SYNC at 10 user r5"])
    }
}
