import Feed
import Model
import SyncClient
import SyncServer
import Testing
import Wire

/// Read receipts of one SYNC: each costs the only writer a conversation counted anew and every
/// device of the user told, so the store gets few in one write.
@Suite struct ReadPartsTests {
    private let receipts = (1...256).map {
        ReadReceipt(conversation: ConversationID(high: 0, low: $0), through: $0)
    }

    private func sync(
        _ reads: [ReadReceipt], epoch: Epoch = Desk.epoch, at seq: UInt64 = 10
    ) -> SyncFrame {
        SyncFrame(
            cursor: Cursor(epoch: epoch, seq: seq), applied: seq, mode: .advance, reads: reads)
    }

    /// Answers what the session asks of the store until it asks for something else. Returns the
    /// receipts of each write, and what followed.
    private func writes(
        _ desk: inout Desk, reset: ResetReason? = nil
    ) throws -> (acknowledged: [[ReadReceipt]], synced: [[ReadReceipt]], last: [String]) {
        var acknowledged: [[ReadReceipt]] = []
        var synced: [[ReadReceipt]] = []
        var lines: [String] = []
        for _ in 0..<100 {
            let asked = desk.actions.compactMap { action in
                if case .store(_, let request) = action { request } else { nil }
            }
            guard let request = asked.first else { return (acknowledged, synced, lines) }
            switch request {
            case .acknowledge(let told):
                #expect(synced.isEmpty, "after the SYNC that brought it")
                acknowledged.append(told.reads)
                lines = desk.answer(.acknowledged(head: 10))
            case .sync(let write):
                synced.append(write.sync.reads)
                lines = desk.answer(
                    .synced(Desk.position(head: 10, applied: 10, reset: reset)))
            default: throw Unexpected(request: request)
            }
        }
        return (acknowledged, synced, lines)
    }

    private struct Unexpected: Error {
        let request: StoreRequest
    }

    @Test("256 read receipts of a SYNC are taken in parts, all of them before its page is read")
    func parts() throws {
        var desk = Desk.open()
        desk.receive(.sync(sync(receipts)), request: 2)
        let (acknowledged, synced, last) = try writes(&desk)
        let parts = acknowledged + synced
        #expect(parts.count == 16 && parts.allSatisfy { $0.count == 16 }, "\(parts.map(\.count))")
        #expect(synced.count == 1)
        #expect(Set(parts.joined().map(\.through)) == Set(1...256))
        #expect(last == ["read above 10, 16384 bytes"])
        #expect(desk.give(Desk.page(10, [])) == ["send DELTA 10>10/10 @2"])
    }

    @Test("so are those of HELLO's SYNC: the session is opened first")
    func hello() throws {
        var desk = Desk()
        let opening = desk.receive(.hello(Desk.hello(sync: sync(receipts))), request: 1)
        #expect(opening == ["store open token [9] dormant never"])
        desk.answer(Desk.opened(Desk.position(head: 10, applied: 10)))
        let (acknowledged, synced, last) = try writes(&desk)
        let parts = acknowledged + synced
        #expect(parts.count == 16 && parts.allSatisfy { $0.count == 16 }, "\(parts.map(\.count))")
        #expect(last == ["read above 10, 16384 bytes"])
        #expect(desk.give(Desk.page(10, [])) == ["send DELTA 10>10/10 @1"])
    }

    @Test("of a SYNC of another history only those of announcements go ahead of it")
    func anotherHistory() throws {
        let announcements = (1...40).map {
            ReadReceipt(announcement: MessageID(high: 0, low: $0))
        }
        let others: [(Epoch, UInt64, ResetReason)] = [
            (Epoch(high: 1, low: 1), 10, .epochChanged), (Desk.epoch, 11, .cursorAhead),
        ]
        for (epoch, seq, reason) in others {
            var desk = Desk.open()
            let reads = Array(receipts.prefix(100)) + announcements
            desk.receive(.sync(sync(reads, epoch: epoch, at: seq)), request: 2)
            let (acknowledged, synced, _) = try writes(&desk, reset: reason)
            #expect(acknowledged.map(\.count) == [16, 16, 8])
            #expect(Array(acknowledged.joined()) == announcements)
            #expect(synced == [Array(receipts.prefix(16))])
        }
    }

    @Test("what the store cannot take is asked again before the SYNC")
    func asksAgain() throws {
        var desk = Desk.open()
        desk.receive(.sync(sync(Array(receipts.prefix(20)))), request: 2)
        let tag = desk.tag
        #expect(desk.run { $0.storeFailed(tag, .full("disk"), now: $1) } == [])
        desk.pass(60_000)
        let (acknowledged, synced, last) = try writes(&desk)
        #expect(acknowledged == [Array(receipts[16..<20])])
        #expect(synced == [Array(receipts.prefix(16))])
        #expect(last == ["read above 10, 16384 bytes"])
    }
}
