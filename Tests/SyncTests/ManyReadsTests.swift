import Model
import SyncClient
import Testing
import Wire

/// A device that read and wrote much while it was away: what it sends then is what a server takes
/// (MSG-17, FRM-15), or it would be refused again on each connection.
@Suite struct ManyReadsTests {
    private let room = ConversationID(high: 1, low: 1)

    private func single(_ position: UInt64) -> ReadReceipt {
        ReadReceipt(
            conversation: room, ranges: [InclusiveRange(first: position, last: position)])
    }

    /// Each second message of a conversation read alone.
    private func alone(_ count: UInt64, in room: ConversationID) -> ReadReceipt {
        ReadReceipt(
            conversation: room,
            ranges: (1...count).map { number in
                let position = 1 << 60 + 2 * number
                return InclusiveRange(first: position, last: position)
            })
    }

    @Test func rangesThatMeetAreOne() {
        var receipt = single(5)
        for position in [9, 6, 4, 9, 3] as [UInt64] { receipt.merge(single(position)) }
        #expect(
            receipt.ranges == [
                InclusiveRange(first: 3, last: 6), InclusiveRange(first: 9, last: 9),
            ])
        receipt.merge(ReadReceipt(conversation: room, through: 2))
        #expect(receipt.through == 6 && receipt.ranges == [InclusiveRange(first: 9, last: 9)])
        receipt.merge(ReadReceipt(conversation: room, through: 20))
        #expect(receipt.through == 20 && receipt.ranges.isEmpty)
        // The highest there can be.
        receipt.merge(
            ReadReceipt(conversation: room, ranges: [InclusiveRange(first: .max, last: .max)]))
        receipt.merge(ReadReceipt(conversation: room, through: .max))
        #expect(receipt.through == .max && receipt.ranges.isEmpty)
    }

    @Test func theHighestRangesAreKept() {
        var receipt = ReadReceipt(conversation: room)
        for position in 1...300 as ClosedRange<UInt64> { receipt.merge(single(2 * position)) }
        #expect(receipt.ranges.count == ReadReceipt.rangesMax)
        #expect(receipt.ranges.first?.first == 90 && receipt.ranges.last?.last == 600)
    }

    @Test func whatTheServerDidNotKeepIsCovered() {
        let kept = (1...256 as ClosedRange<UInt64>).map {
            InclusiveRange(first: 1_000 + 2 * $0, last: 1_000 + 2 * $0)
        }
        let full = ReadMarkState(through: 4, ranges: kept)
        #expect(single(9).isCovered(by: full))
        #expect(!single(1_101).isCovered(by: full), "it is between those that were kept")
        #expect(!single(9).isCovered(by: ReadMarkState(through: 4, ranges: Array(kept.dropLast()))))
    }

    @Test func aHelloCarriesNoMoreThanAServerReadsBeforeLogin() throws {
        let reads = (1...64 as ClosedRange<UInt64>).map { number in
            alone(number % 4 == 0 ? 200 : 17, in: ConversationID(high: 1, low: number))
        }
        var phone = try Phone(mutations: 32, reads: reads)
        phone.start()
        phone.connect()
        let hello = try #require(phone.frames.last)
        var decoder = FrameDecoder(limits: .beforeWelcome)
        decoder.append(hello.encoded)
        #expect(try decoder.next() == hello, "a server before WELCOME reads it")
        // The rest follows, in frames that a server reads after it.
        phone.receive(Phone.welcome(), request: 1)
        phone.receive(Phone.delta(10, [12]), request: 1)
        var told: Set<[UInt8]> = []
        for frame in phone.frames {
            #expect(frame.encoded.count < 256 << 10)
            switch frame.body {
            case .hello(let hello): told.formUnion(hello.sync?.reads.map(\.subject) ?? [])
            case .ack(let ack): told.formUnion(ack.reads.map(\.subject))
            default: break
            }
        }
        #expect(told.count == 64)
    }

    @Test func whatNoServerTakesIsRefusedHere() throws {
        var phone = try Phone.inSync()
        func queue(_ operation: Mutation.Operation) throws -> [String] {
            let number = try phone.store.enqueue(operation, at: Timestamp(milliseconds: 1))
            return phone.run { $0.mutationQueued(number, now: $1) }
        }
        let large = Part(mimeType: "a/b", content: [UInt8](repeating: 1, count: 17 << 20))
        _ = try queue(.sendMessage(SendMessage(conversation: room, parts: [large])))
        #expect(phone.store.results[1]?.code == Code.tooLarge.rawValue)
        let users = (0..<9_000).map { "u\($0)" }
        _ = try queue(.addParticipants(AddParticipants(conversation: room, users: users)))
        #expect(phone.store.results[2]?.code == Code.limit.rawValue)
        let next = try queue(.sendMessage(SendMessage(conversation: room, parts: [Part()])))
        #expect(next == ["send MUTATE 3"], "what stands behind goes on")
    }
}
