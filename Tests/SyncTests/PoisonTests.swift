import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

@Suite struct PoisonTests {
    static func opened(failures: UInt64) -> Desk {
        var desk = Desk()
        desk.receive(.hello(Desk.hello()), request: 1)
        var position = Desk.position(head: 9, applied: 0)
        position.deliveryFailures = failures
        let tag = desk.tag
        desk.run(log: true) {
            $0.storeAnswered(
                tag, Desk.opened(position), now: $1, wall: Timestamp(milliseconds: 5_000_000))
        }
        return desk
    }

    static func told(_ desk: Desk) -> [SessionEvent] {
        desk.actions.compactMap { action in
            if case .log(let event) = action, case .poisonPage = event { return event }
            return nil
        }
    }

    @Test("SYN-31: the page sent five times is sent as ever, the sixth time entry by entry")
    func threshold() {
        var fifth = Self.opened(failures: 5)
        #expect(Self.told(fifth) == [])
        #expect(fifth.actions.compactMap { line($0) }.last == "read above 0, 16384 bytes")
        fifth.give(Desk.page(0, [1, 5, 9]))
        var sixth = Self.opened(failures: 6)
        #expect(Self.told(sixth) == [.poisonPage(Desk.key(), after: 0)])
        #expect(sixth.actions.compactMap { line($0) }.last == "read above 0, 1 bytes")
        // Each is acknowledged before the next leaves.
        #expect(
            sixth.give(Desk.page(0, [1], head: 9)) == ["send DELTA 0>1/9 more @1"])
        #expect(sixth.move(to: 12, .message) == [])
        #expect(sixth.receive(.ack(Ack(applied: 1))) == ["read above 1, 1 bytes"])
        sixth.give(Desk.page(1, [9], head: 12))
        // What stood above when it began is through: pages as ever.
        #expect(sixth.receive(.ack(Ack(applied: 9))) == ["read above 9, 65536 bytes"])
    }

    @Test("SYN-31: of a page that was counted and could not be read the store is told so")
    func unsent() {
        func ended(_ desk: Desk) -> EndSession? {
            for case .store(_, .endSession(let end)) in desk.actions { return end }
            return nil
        }
        var desk = Self.opened(failures: 1)
        let tag = desk.tag
        desk.run { $0.readFailed(tag, .unavailable("no connection"), now: $1) }
        #expect(ended(desk)?.isPageUnsent == true)
        // One that nobody has counted, and one that was sent.
        var uncounted = Desk.open(live: false)
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .advance)
        uncounted.move(to: 11, .message)
        uncounted.receive(.sync(sync), request: 2)
        let read = uncounted.tag
        uncounted.run { $0.readFailed(read, .unavailable("no connection"), now: $1) }
        #expect(ended(uncounted)?.isPageUnsent == false)
        var sent = Self.opened(failures: 1)
        sent.give(Desk.page(0, [1, 5, 9]))
        sent.run { $0.closed(now: $1) }
        #expect(ended(sent)?.isPageUnsent == false)
    }

    @Test("within a connection a SYNC from where a page was sent goes to the store, which counts")
    func counted() {
        var desk = Desk.open(live: false)
        let sync = SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: 10), applied: 10, mode: .advance)
        desk.move(to: 11, .message)
        #expect(desk.receive(.sync(sync), request: 2) == ["read above 10, 16384 bytes"])
        desk.give(Desk.page(10, [11]))
        #expect(desk.receive(.sync(sync), request: 3) == ["store sync applied 10"])
        var position = Desk.position(head: 11, applied: 10)
        position.deliveryFailures = 6
        #expect(desk.answer(.synced(position)) == ["read above 10, 1 bytes"])
    }
}
