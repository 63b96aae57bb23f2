import Model
import Testing
import Wire

@testable import SyncClient
@testable import SyncServer

/// What a session holds of ACKs until the store takes it.
struct PendingAckTests {
    private func range(_ first: UInt64, _ last: UInt64) -> InclusiveRange {
        InclusiveRange(first: first, last: last)
    }

    @Test("receipts of several announcements stay several")
    func announcements() {
        var ack = PendingAck()
        let reads = (1...3).map { ReadReceipt(announcement: MessageID(high: 0, low: $0)) }
        ack.merge(reads, rangesMax: 256)
        #expect(ack.reads == reads)
        // One of them again is the same one; a conversation is merged as ever.
        let room = ConversationID(high: 0, low: 9)
        let more = [reads[1], ReadReceipt(conversation: room, through: 1)]
        ack.merge(more + [ReadReceipt(conversation: room, through: 2)], rangesMax: 256)
        #expect(ack.reads == reads + [ReadReceipt(conversation: room, through: 2)])
    }

    @Test("ranges that meet are one, and of very many the highest are kept")
    func ranges() {
        var ack = PendingAck()
        ack.merge([range(5, 6), range(1, 2)], request: 7, rangesMax: 4)
        ack.merge([range(3, 3), range(6, 9), range(20, .max)], request: 8, rangesMax: 4)
        #expect(ack.ranges == [range(1, 3), range(5, 9), range(20, .max)])
        #expect(ack.claimRequest == 8)
        ack = PendingAck()
        ack.merge((0..<8_000).map { range($0, $0) }, request: 1, rangesMax: 256)
        #expect(ack.ranges == [range(0, 7_999)])
        ack.merge((4_000..<12_000).map { range(2 * $0, 2 * $0) }, request: 1, rangesMax: 256)
        #expect(ack.ranges.count == 256 && ack.ranges.last == range(23_998, 23_998))
        #expect(ack.ranges.first == range(23_488, 23_488))
    }

    @Test("a range that is none is left for the store to refuse")
    func malformed() {
        var ack = PendingAck()
        ack.merge([range(1, 2), range(9, 3), range(8, 4), range(3, 4)], request: 1, rangesMax: 2)
        #expect(ack.ranges == [range(9, 3), range(1, 4)])
    }
}
