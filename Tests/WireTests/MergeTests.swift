import Model
import Testing

@testable import Wire

/// A message that comes in pieces (FRM-25) costs its pieces, not their square.
@Suite struct MergeTests {
    /// `create_conversation` with one participant.
    private static let piece: [UInt8] = [0x52, 0x05, 0x12, 0x03, 0x61, 0x62, 0x63]

    /// Where the array is, as a number: another one each time that it is copied.
    private func place(of list: [String]) -> Int {
        list.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }
    }

    @Test("a piece of a oneof does not copy the elements of those before it")
    func piecesAreAppended() throws {
        var mutation = Mutation()
        var moves = 0
        var last = 0
        for _ in 0..<4_000 {
            var reader = BodyReader(Self.piece, 0..<Self.piece.count, elements: 10)
            try mutation.merge(from: &reader)
            guard case .createConversation(let create) = mutation.operation else {
                Issue.record("no operation")
                return
            }
            let now = place(of: create.participants)
            if now != last { moves += 1 }
            last = now
        }
        guard case .createConversation(let create) = mutation.operation else { return }
        #expect(create.participants.count == 4_000)
        // Growing doubles: 4,000 elements move a dozen times.
        #expect(moves < 40)
    }

    @Test("pieces merge, whatever stands between them")
    func piecesMerge() throws {
        let skipped: [UInt8] = [0x50, 0x07]
        let mutation = try Mutation(encoded: Self.piece + skipped + Self.piece)
        let create = CreateConversation(participants: ["abc", "abc"])
        #expect(mutation.operation == .createConversation(create))
        let entry = Entry(seq: 1, body: .message(MessageState(position: 4)))
        let more = Entry(body: .message(MessageState(sender: "b")))
        #expect(
            try Entry(encoded: entry.encoded + more.encoded).body
                == .message(MessageState(position: 4, sender: "b")))
    }

    @Test("a piece counts as an element")
    func piecesAreBounded() throws {
        let empty: [UInt8] = [0x52, 0x00]
        let limits = FrameLimits(bodyBytes: 1 << 20, elements: 5)
        let most = [[UInt8]](repeating: empty, count: 6).flatMap { $0 }
        #expect(try Mutation(encoded: most, limits: limits).operation != nil)
        #expect(throws: WireError.tooManyElements(limit: 5)) {
            _ = try Mutation(encoded: most + empty, limits: limits)
        }
    }

    @Test("a frame that is not accepted ends the stream at its header")
    func refusedAtTheHeader() throws {
        var decoder = FrameDecoder()
        decoder.accepted = [.hello, .close]
        let frame = Frame(.mutate(Mutation(number: 1))).encoded
        decoder.append(frame[..<Frame.headerBytes])
        #expect(throws: WireError.unexpectedFrame(.mutate)) { _ = try decoder.next() }
        #expect(decoder.bufferedBytes == 0)
        #expect(WireError.unexpectedFrame(.mutate).code == .protocolViolation)

        var second = FrameDecoder()
        second.accepted = [.hello]
        // What is not valid in its body is not found out: nobody looks.
        second.append([0, 0, 1, FrameType.delta.rawValue, 0, 0, 0, 0, 0xFF])
        #expect(throws: WireError.unexpectedFrame(.delta)) { _ = try second.next() }
        #expect(FrameType.allCases.allSatisfy { FrameTypes.all.contains($0) })
        #expect(FrameType.allCases.filter { FrameTypes([.ping]).contains($0) } == [.ping])
    }
}
