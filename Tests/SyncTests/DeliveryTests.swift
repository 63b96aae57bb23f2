import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

@Suite struct DeliveryTests {
    @Test func liveIsPushed() {
        var desk = Desk.open()
        #expect(desk.move(to: 12, .message) == ["read above 10, 16384 bytes"])
        // One page read at a time.
        #expect(desk.move(to: 13, .message) == [])
        // The page is older than the head: the next read follows at once, from what was sent.
        #expect(
            desk.give(Desk.page(10, [12])) == [
                "send DELTA 10>12/12", "read above 12, 16384 bytes",
            ])
        #expect(desk.give(Desk.page(12, [13])) == ["send DELTA 12>13/13"])
        #expect(desk.receive(.ack(Ack(applied: 13))) == [])
    }

    @Test("a page without anything ends the reading, whatever was said of the head")
    func anEmptyPageIsTheEnd() {
        var desk = Desk.open()
        #expect(desk.move(to: 12, .message) == ["read above 10, 16384 bytes"])
        // Of another user's head, or of an entry that is gone again: nothing is above 10.
        #expect(desk.give(Desk.page(10, [], head: 10)) == [])
        #expect(desk.pass(1_000) == [])
        // Even from a store that says there is more and gives none.
        #expect(desk.move(to: 13, .message) == ["read above 10, 16384 bytes"])
        #expect(desk.give(Desk.page(10, [], head: 13)) == [])
        // What is told next is read.
        #expect(desk.move(to: 14, .message) == ["read above 10, 16384 bytes"])
        #expect(desk.give(Desk.page(10, [14])) == ["send DELTA 10>14/14"])
    }

    @Test("a head that rose while a page without anything was read is looked for")
    func theHeadRoseMeanwhile() {
        var desk = Desk.open()
        #expect(desk.move(to: 12, .message) == ["read above 10, 16384 bytes"])
        #expect(desk.move(to: 13, .message) == [])
        #expect(desk.give(Desk.page(10, [], head: 10)) == ["read above 10, 16384 bytes"])
        #expect(desk.give(Desk.page(10, [13])) == ["send DELTA 10>13/13"])
    }

    @Test func theRequestForAnUrgentChangeSaysSo() {
        var desk = Desk.open(live: false)
        #expect(
            desk.move(to: 11, .message, isUrgent: true)
                == ["send SYNC_REQUEST 11 kinds 4 urgent"])
        #expect(desk.move(to: 12, .message) == [])
        #expect(desk.receive(.ack(Ack(applied: 11))) == ["send SYNC_REQUEST 12 kinds 4"])
        // What is urgent while a request is open goes into the next.
        #expect(desk.move(to: 13, .message, isUrgent: true) == [])
        #expect(desk.move(to: 14, .message) == [])
        #expect(desk.receive(.ack(Ack(applied: 12))) == ["send SYNC_REQUEST 14 kinds 4 urgent"])
    }

    @Test func hintIsAskedOnce() {
        var desk = Desk.open(live: false)
        #expect(desk.move(to: 11, .message) == ["send SYNC_REQUEST 11 kinds 4"])
        #expect(desk.move(to: 12, .message, .readMark) == [])
        // Nothing but `applied` answers.
        #expect(desk.receive(.pong(Pong())) == [])
        #expect(
            desk.receive(.sync(sync(10)), request: 7) == ["read above 10, 16384 bytes"])
        #expect(desk.give(Desk.page(10, [11])) == ["send DELTA 10>11/11 @7"])
        // The remembered head is higher: asked again at once.
        #expect(desk.receive(.ack(Ack(applied: 11))) == ["send SYNC_REQUEST 12 kinds 20"])
        #expect(desk.receive(.ack(Ack(applied: 12))) == [])
    }

    private func sync(_ seq: UInt64, reads: [ReadReceipt] = []) -> SyncFrame {
        SyncFrame(
            cursor: Cursor(epoch: Desk.epoch, seq: seq), applied: seq, mode: .advance,
            reads: reads)
    }

    @Test func noSyncRequestWhileASyncIsOpen() {
        var desk = Desk.open(live: false)
        desk.receive(.sync(sync(10)), request: 7)
        #expect(desk.move(to: 11, .message) == [])
        // The page holds it already: nothing more to ask.
        #expect(desk.give(Desk.page(10, [11])) == ["send DELTA 10>11/11 @7"])
    }

    @Test func aPageWithMoreIsNoReasonToAsk() {
        var desk = Desk.open(live: false)
        desk.move(to: 20, .message)
        desk.receive(.sync(sync(10)), request: 7)
        #expect(
            desk.give(Desk.page(10, [15], head: 20)) == ["send DELTA 10>15/20 more @7"])
        #expect(desk.receive(.sync(sync(15)), request: 8) == ["read above 15, 32768 bytes"])
    }

    @Test func receiptsAloneAskForNothing() {
        var hint = Desk.open(live: false)
        #expect(hint.move(to: 11, .receipt) == [])
        #expect(hint.move(to: 12, .message) == ["send SYNC_REQUEST 12 kinds 4"])
        var live = Desk.open()
        #expect(live.move(to: 11, .receipt) == ["read above 10, 16384 bytes"])
    }

    @Test func extensionsAreToldNothing() {
        var desk = StateTableTests.State.openExtension.desk
        #expect(desk.move(to: 12, .message) == [])
        #expect(
            desk.receive(.ack(Ack(applied: 99, ranges: [InclusiveRange(first: 11, last: 12)])))
                == ["store ack 0 11-12"])
        #expect(
            desk.receive(.ack(Ack(reads: [ReadReceipt(through: 1)])), request: 3) == [
                "send ERROR 4003 @3"
            ])
    }

    @Test func modesFollowTheApp() {
        var desk = Desk.open()
        #expect(
            desk.receive(.appState(AppState(phase: .background, remainingMs: 20_000))) == [
                "store state dormant 22000 with switches"
            ])
        desk.answer(.done)
        #expect(desk.move(to: 11, .message) == ["send SYNC_REQUEST 11 kinds 4"])
        #expect(desk.receive(.ack(Ack(applied: 11))) == [])
        desk.pass(1_000)
        // Dormant once the run time is over, and still asked.
        desk.answer(.acknowledged(head: 11))
        desk.pass(22_000)
        #expect(desk.move(to: 12, .message) == ["send SYNC_REQUEST 12 kinds 4"])
        // In the foreground again: pushed from where it stands.
        #expect(
            desk.receive(.appState(AppState(phase: .foreground))) == [
                "read above 11, 16384 bytes", "store state dormant never with switches",
            ])
    }

    @Test func fromLiveToHintNothingIsForgotten() {
        var desk = Desk.open()
        desk.move(to: 20, .message)
        #expect(
            desk.give(Desk.page(10, [15], head: 20)) == [
                "send DELTA 10>15/20 more", "read above 15, 16384 bytes",
            ])
        let tag = desk.tag
        desk.receive(.appState(AppState(phase: .inactive)))
        #expect(
            desk.give(Desk.page(15, [17], head: 20), to: tag) == [
                "send DELTA 15>17/20 more", "send SYNC_REQUEST 20 kinds 4",
            ])
    }

    @Test func theWindowHolds() {
        var limits = SessionLimits()
        limits.windowDeltas = 2
        var desk = Desk.open(limits: limits)
        desk.move(to: 99, .message)
        desk.give(Desk.page(10, [20], head: 99))
        #expect(desk.give(Desk.page(20, [30], head: 99)) == ["send DELTA 20>30/99 more"])
        #expect(desk.move(to: 100, .message) == [])
        // An ACK of the first frees one place. It came at once: the page doubles.
        #expect(desk.receive(.ack(Ack(applied: 20))) == ["read above 30, 32768 bytes"])
    }

    @Test func theWindowIsCountedInBytes() {
        var limits = SessionLimits()
        limits.windowBytes = 40_000
        limits.firstPageBytes = 8_000
        var desk = Desk.open(limits: limits)
        desk.move(to: 99, .message)
        let content = [UInt8](repeating: 0, count: 12_000)
        var from: UInt64 = 10
        var pages = 0
        while desk.session.unacknowledgedBytes < 40_000, pages < 10 {
            var page = Desk.page(from, [from + 1], head: 99)
            page.entries[0].body = .message(
                MessageState(parts: [Part(mimeType: "a/b", content: content)]))
            desk.give(page)
            from += 1
            pages += 1
            if !desk.actions.contains(where: { if case .read = $0 { true } else { false } }) {
                break
            }
        }
        #expect(pages == 3)
    }

    @Test func aSlowLinkGetsSmallPages() {
        var desk = Desk.open()
        desk.move(to: 99, .message)
        desk.give(Desk.page(10, [20], head: 99))
        let tag = desk.tag
        desk.pass(500)
        desk.receive(.ack(Ack(applied: 20)))
        desk.give(Desk.page(20, [30], head: 99), to: tag)
        #expect(desk.actions.compactMap { line($0) }.last == "read above 30, 32768 bytes")
        let slow = desk.tag
        desk.pass(2_100)
        desk.receive(.ack(Ack(applied: 30)))
        desk.give(Desk.page(30, [40], head: 99), to: slow)
        #expect(desk.actions.compactMap { line($0) }.last == "read above 40, 16384 bytes")
    }

    @Test func anAckAboveTheHeadIsTheStoresToJudge() {
        var desk = Desk.open()
        #expect(desk.receive(.ack(Ack(applied: 12)), request: 4) == ["store ack 12"])
        #expect(
            desk.answer(.refused(.ackAhead, detail: "")) == ["send ERROR 3003 @4", "store ack 10"])
        desk.answer(.acknowledged(head: 10))
        // It may name the `to` of a DELTA of an older connection: the hub was late.
        #expect(desk.receive(.ack(Ack(applied: 11))) == ["store ack 11"])
        #expect(desk.answer(.acknowledged(head: 11)) == [])
        // Taken: nothing is pushed again.
        #expect(desk.move(to: 11, .message) == [])
    }

    @Test func aResetStartsFromTheBeginning() {
        var desk = Desk.open()
        let epoch = Epoch(high: 7, low: 9)
        #expect(
            desk.receive(.sync(SyncFrame(cursor: nil, mode: .advance)), request: 2) == [
                "store sync applied 0"
            ])
        #expect(
            desk.answer(
                .synced(Desk.position(head: 4, applied: 0, reset: .noCursor, epoch: epoch)))
                == ["read above 0, 16384 bytes"])
        #expect(
            desk.give(Desk.page(0, [4], epoch: epoch)) == ["send DELTA 0>4/4 reset noCursor @2"])
    }

    @Test func anotherEpochUnderneathEndsTheConnection() {
        var desk = Desk.open()
        desk.move(to: 11, .message)
        #expect(
            desk.give(Desk.page(10, [11], epoch: Epoch(high: 7, low: 9))) == [
                "send CLOSE 3001 applied 10", "leave anna", "close 3001",
                "store end 10 within 10000",
            ])
        desk.answer(.done)
        desk.run { $0.closed(now: $1) }
        #expect(desk.session.isFinished)
    }

    /// P3, also when the ACK overtakes the store's answer to the SYNC.
    @Test func nothingAcknowledgedIsSentAgain() {
        var desk = Desk.open()
        desk.move(to: 12, .message)
        desk.give(Desk.page(10, [11], head: 12))
        desk.receive(.sync(sync(10, reads: [ReadReceipt(through: 1)])), request: 2)
        let write = desk.tag
        desk.receive(.ack(Ack(applied: 11)))
        #expect(
            desk.answer(.synced(Desk.position(head: 12, applied: 10)), to: write) == [
                "read above 11, 32768 bytes"
            ])
    }

    @Test func oneSyncAtATime() {
        var desk = Desk.open()
        desk.receive(.sync(sync(10)), request: 2)
        #expect(desk.receive(.sync(sync(10)), request: 3) == ["send ERROR 4006 @3"])
    }

    @Test func readReceiptsAreWrittenAtOnceAndMerged() {
        var desk = Desk.open()
        let one = ConversationID(high: 1, low: 1)
        func read(_ through: UInt64) -> FrameBody {
            .ack(Ack(applied: 10, reads: [ReadReceipt(conversation: one, through: through)]))
        }
        #expect(desk.receive(read(3)) == ["store ack 10 r3"])
        // While the store works, what comes is merged into one write.
        #expect(desk.receive(read(5)) == [])
        #expect(desk.receive(read(4)) == [])
        #expect(desk.answer(.acknowledged(head: 10)) == ["store ack 10 r5"])
    }

    // MARK: - When `applied` is persisted

    @Test func invisibleLazilyVisibleAtOnce() {
        var desk = Desk.open()
        desk.move(to: 11, .message)
        desk.give(Desk.page(10, [11]))
        #expect(desk.receive(.ack(Ack(applied: 11))) == [])
        #expect(desk.pass(999) == [])
        #expect(desk.pass(1) == ["store ack 11 completes"])
        desk.answer(.acknowledged(head: 11))

        desk.move(to: 14, .message)
        desk.give(Desk.page(11, [12, 14], visible: 12))
        #expect(desk.receive(.ack(Ack(applied: 12))) == ["store ack 12"])
        desk.answer(.acknowledged(head: 14))
        #expect(desk.receive(.ack(Ack(applied: 14))) == ["store ack 14 completes"])
    }

    /// A device may have to recover: its first completed sync is written at once, also when a
    /// SYNC with receipts carries the ACK.
    @Test func theFirstCompletionIsWrittenAtOnce() {
        var desk = Desk()
        desk.receive(.hello(Desk.hello()), request: 1)
        desk.answer(Desk.opened(Desk.position(head: 3, applied: 0)))
        desk.give(Desk.page(0, [3]))
        #expect(
            desk.receive(.sync(sync(3, reads: [ReadReceipt(through: 1)])), request: 2) == [
                "store ack 3 completes"
            ])
        #expect(desk.answer(.acknowledged(head: 3)) == ["store sync applied 3"])
    }

    @Test func atOnceIfTheDeviceHadPushRows() {
        var desk = Desk.open(hadPushRows: true)
        desk.move(to: 11, .receipt)
        desk.give(Desk.page(10, [11]))
        #expect(desk.receive(.ack(Ack(applied: 11))) == ["store ack 11 completes"])
    }

    @Test func aFailedWriteIsTriedAgain() {
        var desk = Desk.open(hadPushRows: true)
        desk.move(to: 11, .message)
        desk.give(Desk.page(10, [11]))
        desk.receive(.ack(Ack(applied: 11)))
        let tag = desk.tag
        #expect(desk.run { $0.storeFailed(tag, .full(""), now: $1) } == [])
        #expect(desk.pass(1_000) == ["store ack 11 completes"])
    }
}
