import Model
import SyncClient
import SyncServer
import Testing
import Wire

@testable import Feed

/// What a commit hands over goes out without a read only where it follows what was sent.
@Suite struct TailTests {
    private static let written = Timestamp(milliseconds: 5_000)

    /// A commit that appended one message a seq.
    private func change(
        _ seqs: ClosedRange<UInt64>, epoch: Epoch = Desk.epoch, bytes: Int = 100,
        at: Timestamp = written, unread: UnreadChange = UnreadChange()
    ) -> FeedChange {
        let entries = seqs.map { seq in
            let message = MessageState(
                position: seq, sender: "ben",
                parts: [Part(mimeType: "text/plain", content: [UInt8](repeating: 65, count: bytes))]
            )
            let entry = Entry(
                conversation: ConversationID(high: 1, low: 1),
                object: MessageID(high: 2, low: seq).bytes, version: 1, body: .message(message))
            return FeedTail.Element(
                state: TailState(SizedEntry(entry, bytes: bytes)), seq: seq, isVisible: true)
        }
        var change = FeedChange(
            app: Desk.app, user: UserID("anna"), head: seqs.upperBound,
            kinds: 1 << UInt32(EntryKind.message.rawValue))
        change.tail = FeedTail(
            after: seqs.lowerBound - 1, entries, epochHalf: epoch.low, at: at)
        change.unread = unread
        return change
    }

    /// Live at 10, where a page told that 3 messages are unread.
    private func live(
        until: Timestamp? = nil, unread: UInt64 = 3, limits: SessionLimits = SessionLimits()
    ) -> Desk {
        var desk = Desk.open(at: 9, limits: limits)
        desk.move(to: 10, .message)
        desk.give(page(9, [10], unread: unread, until: until))
        desk.receive(.ack(Ack(applied: 10)))
        desk.answer(.acknowledged(head: 10))
        return desk
    }

    private func page(
        _ from: UInt64, _ seqs: [UInt64], unread: UInt64 = 3, until: Timestamp? = nil
    ) -> Page {
        var page = Desk.page(from, seqs)
        page.unread = unread
        page.unreadTime = UnreadTime(from: Timestamp(milliseconds: 4_000), until: until)
        return page
    }

    private func tell(_ change: FeedChange, _ desk: inout Desk) -> [String] {
        desk.run { $0.feedChanged(change, now: $1) }
    }

    /// The page has grown with the ACK before.
    private static let read = "read above 10, 32768 bytes"

    @Test("what follows what was sent goes out at once, commit after commit")
    func pushed() {
        var desk = live()
        #expect(tell(change(11...11), &desk) == ["send DELTA 10>11/11"])
        #expect(desk.delta?.entries.map(\.seq) == [11])
        #expect(desk.delta?.unread == 3)
        #expect(tell(change(12...14), &desk) == ["send DELTA 11>14/14"])
        #expect(desk.delta?.entries.map(\.seq) == [12, 13, 14])
        #expect(desk.session.pushed.byTail == 2)
        #expect(desk.session.pushed.byRead == 1)
        // Told again, or late: it was sent.
        #expect(tell(change(12...14), &desk) == [])
        #expect(tell(change(11...11), &desk) == [])
    }

    @Test("where something is missing between, the feed is read")
    func gap() {
        var desk = live()
        #expect(tell(change(12...12), &desk) == [Self.read])
        // While it is read nothing else goes out; the page tells of all.
        #expect(tell(change(13...13), &desk) == [])
        #expect(desk.give(page(10, [11, 12, 13])) == ["send DELTA 10>13/13"])
        #expect(tell(change(14...14), &desk) == ["send DELTA 13>14/14"])
    }

    @Test("a page that was read before the commit is followed by a read of the rest")
    func overtaken() {
        var desk = live()
        #expect(desk.move(to: 11, .readMark) == [Self.read])
        #expect(tell(change(12...12), &desk) == [])
        #expect(
            desk.give(page(10, [11])) == [
                "send DELTA 10>11/11", "read above 11, 32768 bytes",
            ])
    }

    @Test("a hint that came out of its order, or knows of more, is read")
    func knownHead() {
        var desk = live()
        #expect(desk.move(to: 12, .message) == [Self.read])
        #expect(desk.give(page(10, [])) == [])
        #expect(tell(change(11...11), &desk) == ["send DELTA 10>11/11"])
    }

    @Test("not live, or asked anew who it is: no tail goes out")
    func modes() {
        var desk = live()
        desk.receive(.appState(AppState(phase: .background, remainingMs: 30_000)))
        #expect(tell(change(11...11), &desk) == ["send SYNC_REQUEST 11 kinds 4"])
        desk = live()
        desk.run { $0.challenged(now: $1) }
        #expect(tell(change(11...11), &desk) == [])
        desk = live()
        desk.run { $0.ended(.revoked, now: $1) }
        #expect(tell(change(11...11), &desk) == [])
        // The turn over the sessions doubts its row: the page says.
        desk = live()
        #expect(desk.run { $0.standingDoubted(now: $1) } == ["read above 10, 1 bytes"])
        #expect(tell(change(11...11), &desk) == [])
    }

    @Test("of another epoch, without room, or with a SYNC open: it is read")
    func others() {
        var desk = live()
        #expect(
            tell(change(11...11, epoch: Epoch(high: 7, low: 9)), &desk) == [Self.read])
        var limits = SessionLimits()
        limits.windowDeltas = 1
        desk = live(limits: limits)
        #expect(tell(change(11...11), &desk) == ["send DELTA 10>11/11"])
        #expect(tell(change(12...12), &desk) == [])
        #expect(desk.receive(.ack(Ack(applied: 11))).first == "read above 11, 65536 bytes")
        desk = live()
        // One entry goes in any case, two as far as a page's bytes go.
        #expect(tell(change(11...11, bytes: 40_000), &desk) == ["send DELTA 10>11/11"])
        desk = live()
        #expect(tell(change(11...12, bytes: 20_000), &desk) == [Self.read])
    }

    @Test("the number of unread messages is the one that a read would tell")
    func unread() {
        var more = UnreadChange()
        more.by = 2
        var desk = live()
        #expect(tell(change(11...11, unread: more), &desk) == ["send DELTA 10>11/11"])
        #expect(desk.delta?.unread == 5)
        // At its most it stands for more: what is less, nobody knows.
        desk = live(unread: 998)
        #expect(tell(change(11...11, unread: more), &desk) == ["send DELTA 10>11/11"])
        #expect(desk.delta?.unread == 999)
        more.by = -1
        #expect(tell(change(12...12, unread: more), &desk) == ["read above 11, 32768 bytes"])
        // A mute ended, or will have.
        desk = live(until: Self.written)
        #expect(tell(change(11...11), &desk) == [Self.read])
        desk = live(until: Self.written + 1)
        #expect(tell(change(11...11), &desk) == ["send DELTA 10>11/11"])
        #expect(tell(change(12...12, at: Self.written + 1), &desk).first?.hasPrefix("read") == true)
        // Muted when it was written, but not when the page before was read.
        more.by = 0
        more.muteEnds = Timestamp(milliseconds: 3_900)
        desk = live()
        let early = change(11...11, at: Timestamp(milliseconds: 3_800), unread: more)
        #expect(tell(early, &desk) == [Self.read])
    }

    @Test("a number that changed without an entry is told by the next page")
    func unreadAlone() {
        var desk = live()
        var less = FeedChange(app: Desk.app, user: UserID("anna"), head: 0, kinds: 0)
        less.unread.by = -1
        #expect(tell(less, &desk) == [])
        #expect(tell(change(11...11), &desk) == [Self.read])
        // It may have come before this page was read, or after.
        #expect(tell(less, &desk) == [])
        #expect(desk.give(page(10, [11])) == ["send DELTA 10>11/11"])
        #expect(tell(change(12...12), &desk) == ["read above 11, 32768 bytes"])
        #expect(desk.give(page(11, [12])) == ["send DELTA 11>12/12"])
        #expect(tell(change(13...13), &desk) == ["send DELTA 12>13/13"])
    }
}
