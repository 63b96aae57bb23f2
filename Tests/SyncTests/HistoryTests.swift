import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

@Suite struct HistoryTests {
    private let conversation = ConversationID(high: 4, low: 4)

    @Test func fetchIsReadAndAnswered() {
        var desk = Desk.open()
        let fetch = Fetch(conversation: conversation, below: 9, limit: 3)
        #expect(desk.receive(.fetch(fetch), request: 5) == ["history FETCH 65536 bytes"])
        let page = PageFrame(first: 6, last: 8, more: true, position: 20)
        #expect(desk.tell(.page(page)) == ["send PAGE @5"])
        // The answer is given once.
        #expect(desk.tell(.page(page)) == [])
    }

    @Test("HIS-12: four at a time, of SNAPSHOT and DIGEST one")
    func fetchesAreLimited() {
        var desk = Desk.open()
        for request in UInt16(1)...3 {
            desk.receive(.fetch(Fetch(conversation: conversation)), request: request)
        }
        #expect(desk.receive(.snapshot(SnapshotFrame()), request: 4).count == 1)
        #expect(desk.receive(.fetch(Fetch()), request: 5) == ["send ERROR 4006 @5"])
        desk.tell(.refused(.epochChanged, detail: ""))
        #expect(desk.receive(.snapshot(SnapshotFrame()), request: 6).count == 1)
        desk.tell(.snapshotPage(SnapshotPage()))
        #expect(desk.receive(.digest(DigestFrame()), request: 7) == ["history DIGEST"])
        var other = Desk.open()
        other.receive(.digest(DigestFrame()), request: 1)
        #expect(other.receive(.digest(DigestFrame()), request: 2) == ["send ERROR 4006 @2"])
    }

    @Test func aFailedReadOnlyFailsTheRequest() {
        var desk = Desk.open()
        desk.receive(.fetch(Fetch(conversation: conversation)), request: 5)
        let tag = desk.tag
        #expect(
            desk.run { $0.historyFailed(tag, .unavailable("gone"), now: $1) } == [
                "send ERROR 1001 @5"
            ])
        #expect(desk.session.isOpen)
        desk.receive(.fetch(Fetch(conversation: conversation)), request: 6)
        #expect(desk.tell(.refused(.notFound, detail: "")) == ["send ERROR 4004 @6"])
    }

    @Test("CON-15: a read that is too much is told to wait, and only that one fails")
    func limitedReads() {
        var desk = Desk.open()
        desk.receive(.fetch(Fetch(conversation: conversation)), request: 5)
        let tag = desk.tag
        #expect(
            desk.run { $0.readLimited(tag, retryAfter: 700, now: $1) } == ["send ERROR 1002 @5"])
        #expect(desk.receive(.digest(DigestFrame()), request: 6) == ["history DIGEST"])
        var background = Desk.open(live: false)
        let peek = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .peek)
        background.receive(.sync(peek), request: 3)
        let peeked = background.tag
        #expect(
            background.run { $0.readLimited(peeked, retryAfter: 700, now: $1) } == [
                "send ERROR 1002 @3"
            ])
        // It may be asked again.
        #expect(background.receive(.sync(peek), request: 4).first?.hasPrefix("read newest") == true)
    }

    @Test("HIS-15: the first page of a snapshot is small, a client may ask for less")
    func snapshotPages() {
        var desk = Desk.open()
        #expect(
            desk.receive(.snapshot(SnapshotFrame()), request: 1) == [
                "history SNAPSHOT 32768 bytes"
            ])
        desk.tell(.snapshotPage(SnapshotPage()))
        #expect(
            desk.receive(.snapshot(SnapshotFrame(continuation: [1])), request: 2) == [
                "history SNAPSHOT 131072 bytes"
            ])
        desk.tell(.snapshotPage(SnapshotPage()))
        #expect(
            desk.receive(.snapshot(SnapshotFrame(pageBytes: 9)), request: 3) == [
                "history SNAPSHOT 9 bytes"
            ])
    }

    /// A session whose client takes snapshots and has no cursor; the feed is at `head`.
    private func resetDesk(features: [String] = ["live", "snapshot"]) -> (Desk, [String]) {
        var desk = Desk()
        desk.receive(
            .hello(Desk.hello(features: features, sync: SyncFrame(mode: .advance))), request: 1)
        let lines = desk.answer(
            Desk.opened(Desk.position(head: 40, applied: 0, reset: .noCursor)))
        return (desk, lines)
    }

    /// After CHALLENGE there was no SYNC in HELLO, and after a reset the client may come with what
    /// was refused: only the store knows what it has removed.
    @Test("SYN-30: a cursor is judged by the store before it is taken as it is")
    func aCursorIsJudged() {
        var desk = Desk()
        desk.receive(.hello(Desk.hello(features: [], sync: nil)), request: 1)
        desk.answer(Desk.opened(Desk.position(head: 40, applied: 10)))
        desk.give(Desk.page(40, []))
        let cursor = Cursor(epoch: Desk.epoch, seq: 10)
        let sync = SyncFrame(cursor: cursor, applied: 10, mode: .advance)
        let refused = Desk.position(head: 40, applied: 0, reset: .cursorTooOld)
        for request in UInt16(2)...3 {
            let lines = desk.receive(.sync(sync), request: request)
            #expect(lines.count == 1 && lines[0].hasPrefix("store sync"), "\(lines)")
            #expect(desk.answer(.synced(refused)).contains { $0.hasPrefix("read above 0,") })
            desk.give(Desk.page(0, [1, 2], head: 40))
        }
        // On its way up, as the store says; from here on it needs no look at the store.
        let begun = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 2), applied: 2, mode: .advance, resetHead: 40)
        let first = desk.receive(.sync(begun), request: 4)
        #expect(first.count == 1 && first[0].hasPrefix("store sync"), "\(first)")
        let accepted = desk.answer(.synced(Desk.position(head: 40, applied: 2)))
        #expect(accepted.contains { $0.hasPrefix("read above 2,") })
        desk.give(Desk.page(2, [3, 4], head: 40))
        var next = begun
        next.cursor?.seq = 4
        next.applied = 4
        #expect(desk.receive(.sync(next), request: 5).first?.hasPrefix("read above 4,") == true)
    }

    @Test("SYN-24: a SYNC that meets a new epoch of another device's making is answered with 3001")
    func anotherDevicesEpoch() {
        var desk = Desk.open()
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .advance,
            reads: [ReadReceipt(conversation: nil, through: 1)])
        desk.receive(.sync(sync), request: 6)
        let other = Epoch(high: 1, low: 99)
        let answer = Desk.position(head: 10, applied: 0, reset: .epochChanged, epoch: other)
        #expect(desk.answer(.synced(answer)).contains("close 3001"))
    }

    /// A client that obeys is not closed: it would come back behind all others.
    @Test("SYN-26: a client that was asked to wait owes nothing before its turn")
    func waitsForItsTurn() {
        var desk = Desk()
        let cursor = Cursor(epoch: Desk.epoch, seq: 10)
        let sync = SyncFrame(cursor: cursor, applied: 10, mode: .advance)
        desk.receive(.hello(Desk.hello(features: [], sync: sync)), request: 1)
        var position = Desk.position(head: 40, applied: 0, reset: .cursorTooOld)
        position.resetAfter = 170_000
        #expect(desk.answer(Desk.opened(position)).contains { $0.hasPrefix("send DELTA") })
        desk.move(to: 41, .message)
        #expect(desk.pass(60_000) == [])
        desk.receive(.ping(Ping()))
        #expect(desk.pass(110_000) == [])
        // From then on it is as silent as any other.
        #expect(desk.pass(9_999) == [])
        #expect(desk.pass(1) == ["send PING", "store state dormant 0"])
        desk.answer(.done)
        #expect(desk.pass(5_000).contains("close 1003"))
    }

    @Test("HIS-13: a client that takes snapshots is told of a reset without the feed")
    func resetWithoutTheFeed() {
        var (desk, lines) = resetDesk()
        #expect(lines.last == "send DELTA 0>0/40 more reset noCursor @1")
        // Nothing is pushed to it until it comes with a cursor, it is only told.
        #expect(desk.move(to: 41, .message) == ["send SYNC_REQUEST 41 kinds 4"])
        #expect(desk.receive(.snapshot(SnapshotFrame()), request: 2).count == 1)
        desk.tell(.snapshotPage(SnapshotPage()))
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 40), applied: 40, mode: .advance)
        #expect(desk.receive(.sync(sync), request: 3) == ["store sync applied 40"])
        #expect(
            desk.answer(.synced(Desk.position(head: 41, applied: 40)))
                == ["read above 40, 16384 bytes"])
        desk.give(Desk.page(40, [41]))
        desk.receive(.ack(Ack(applied: 41)))
        desk.answer(.acknowledged(head: 41))
        // From here on it is live.
        #expect(desk.move(to: 42, .message) == ["read above 41, 32768 bytes"])
    }

    @Test func otherClientsGetTheFeed() {
        let (_, lines) = resetDesk(features: ["live"])
        #expect(lines.last == "read above 0, 16384 bytes")
    }

    @Test("SYN-12: a peek gives the newest and moves nothing")
    func peek() {
        var desk = Desk.open(live: false)
        desk.move(to: 14, .message)
        let peek = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .peek)
        #expect(
            desk.receive(.sync(peek), request: 3) == ["read newest above 10, 16384 bytes"])
        // While it is read no other SYNC.
        #expect(desk.receive(.sync(peek), request: 4) == ["send ERROR 4006 @4"])
        let page = Page(
            entries: [Entry(seq: 14), Entry(seq: 13)], epoch: Desk.epoch, from: 10, to: 10,
            head: 14, more: true, firstVisible: nil)
        #expect(desk.give(page) == ["send DELTA 10>10/14 more @3"])
        // Ranges are told at once; what lies between is still owed.
        #expect(
            desk.receive(.ack(Ack(applied: 10, ranges: [InclusiveRange(first: 13, last: 14)])))
                == ["store ack 10 13-14"])
        desk.answer(.acknowledged(head: 14))
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .advance)
        #expect(desk.receive(.sync(sync), request: 5) == ["read above 10, 16384 bytes"])
    }

    @Test func aPeekTellsNothing() {
        var desk = Desk.open()
        let read = SyncFrame(
            mode: .peek, reads: [ReadReceipt(conversation: conversation, through: 1)])
        #expect(desk.receive(.sync(read), request: 3) == ["send ERROR 4003 @3"])
    }

    @Test("SES-17: an extension peeks in HELLO, acknowledges ranges, and does nothing else")
    func extensionPeeks() {
        var desk = Desk()
        let sync = SyncFrame(mode: .peek)
        desk.receive(.hello(Desk.hello(role: .extension, sync: sync)), request: 1)
        let lines = desk.answer(Desk.opened(Desk.position(head: 8, applied: 5), role: .extension))
        #expect(lines.last == "read newest above 5, 16384 bytes")
        let page = Page(
            entries: [Entry(seq: 8)], epoch: Desk.epoch, from: 5, to: 5, head: 8, more: false,
            firstVisible: nil)
        #expect(desk.give(page) == ["send DELTA 5>5/8 @1"])
        #expect(
            desk.receive(.ack(Ack(ranges: [InclusiveRange(first: 6, last: 8)]))) == [
                "store ack 0 6-8"
            ])
        #expect(desk.receive(.fetch(Fetch()), request: 2) == ["send ERROR 4003 @2"])
        #expect(desk.receive(.digest(DigestFrame()), request: 2) == ["send ERROR 4003 @2"])
        #expect(
            desk.receive(.sync(SyncFrame(mode: .advance)), request: 2) == ["send ERROR 4003 @2"])
    }

    @Test("HIS-33: a session in the sample is asked for a digest once, on a last page")
    func digestIsWanted() {
        var limits = SessionLimits()
        limits.digestSample = 1
        var desk = Desk(limits: limits)
        desk.receive(.hello(Desk.hello()), request: 1)
        desk.answer(Desk.opened(Desk.position(head: 9, applied: 0)))
        desk.give(Desk.page(0, [5], head: 9))
        #expect(desk.delta?.digestWanted == false)
        desk.give(Desk.page(5, [9]))
        #expect(desk.delta?.digestWanted == true)
        desk.move(to: 10, .message)
        desk.give(Desk.page(9, [10]))
        #expect(desk.delta?.digestWanted == false)
        limits.digestSample = 0
        var never = Desk(limits: limits)
        never.receive(.hello(Desk.hello()), request: 1)
        never.answer(Desk.opened(Desk.position(head: 9, applied: 0)))
        never.give(Desk.page(0, [9]))
        #expect(never.delta?.digestWanted == false)
    }

    @Test("HIS-35: what was compared is logged with its counts, unless it says nothing")
    func digestIsCompared() {
        var desk = Desk.open()
        let sum = DigestSum(count: 3, hash: 7)
        desk.receive(.digest(DigestFrame(messages: sum)), request: 1)
        let mine = DigestSum(count: 4, hash: 8)
        desk.tell(.digest(DigestResult(comparable: true, messages: mine)))
        let compared = desk.actions.compactMap { action -> SessionEvent? in
            if case .log(let event) = action { event } else { nil }
        }
        let own = DigestCounts(conversations: nil, readMarks: nil, messages: mine)
        let clients = DigestCounts(conversations: nil, readMarks: nil, messages: sum)
        #expect(compared == [.digestCompared(own: own, clients: clients)])
        desk.receive(.digest(DigestFrame(messages: sum)), request: 2)
        desk.tell(.digest(DigestResult(comparable: false)))
        #expect(desk.actions.count == 1)
    }

    @Test func unreadIsOnTheLastPage() {
        var desk = Desk.open()
        desk.move(to: 11, .message)
        var page = Desk.page(10, [11])
        page.unread = 6
        desk.give(page)
        #expect(desk.delta?.unread == 6)
    }
}
