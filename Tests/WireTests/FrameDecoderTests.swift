import Testing
import Wire

@Suite struct FrameDecoderTests {
    private func message(of bytes: Int) -> Frame {
        Frame(.error(ErrorFrame(detail: String(repeating: "x", count: bytes))))
    }

    /// The largest body the limit allows is taken, one byte more is refused at its header.
    @Test func limitIsInclusive() throws {
        var limits = FrameLimits.beforeWelcome
        let stream = message(of: 5000).encoded
        limits.bodyBytes = stream.count - Frame.headerBytes
        #expect(try decode(stream, limits: limits).count == 1)
        limits.bodyBytes -= 1
        #expect(throws: WireError.tooLarge(bytes: limits.bodyBytes + 1, limit: limits.bodyBytes)) {
            _ = try decode(Array(stream[..<8]), limits: limits)
        }
    }

    @Test func elementLimitIsInclusiveAndForAllListsTogether() throws {
        let limits = FrameLimits(bodyBytes: 1000, elements: 5)
        func sync(_ reads: Int) -> [UInt8] {
            Frame(
                .sync(
                    SyncFrame(
                        reads: [ReadReceipt](
                            repeating: ReadReceipt(ranges: [InclusiveRange(), InclusiveRange()]),
                            count: 1),
                        mutations: [Mutation](repeating: Mutation(), count: reads)))
            ).encoded
        }
        #expect(try decode(sync(2), limits: limits).count == 1)
        // The count begins anew with every frame.
        #expect(try decode(sync(2) + sync(2), limits: limits).count == 2)
        #expect(throws: WireError.tooManyElements(limit: 5)) {
            _ = try decode(sync(3), limits: limits)
        }
    }

    @Test func raisedLimitHoldsForFramesAlreadyBuffered() throws {
        let welcome = Frame(.welcome(Welcome(version: 1)))
        let large = message(of: 100_000)
        var decoder = FrameDecoder()
        decoder.append(welcome.encoded + large.encoded)
        #expect(try decoder.next() == welcome)
        decoder.limits = .afterWelcome
        #expect(try decoder.next() == large)
    }

    @Test func anErrorIsTerminalAndDropsWhatIsBuffered() throws {
        var decoder = FrameDecoder()
        let ping = Frame(.ping(Ping(nextMs: 1))).encoded
        decoder.append(ping + [0, 0, 0, 0x4F, 0, 0, 0, 0] + ping)
        #expect(try decoder.next() != nil)
        #expect(throws: WireError.self) { _ = try decoder.next() }
        #expect(decoder.bufferedBytes == 0)
        decoder.append(ping)
        #expect(decoder.bufferedBytes == 0)
        #expect(throws: WireError.unknownFrame(0x4F)) { _ = try decoder.next() }
    }

    @Test func aSkippedFrameIsNotKept() throws {
        var decoder = FrameDecoder()
        decoder.append([0, 0x40, 0, 0x80, 4, 0, 0, 0])
        for _ in 0..<16 {
            #expect(try decoder.next() == nil)
            #expect(decoder.bufferedBytes == 0)
            decoder.append([UInt8](repeating: 0xFF, count: 1024))
        }
        #expect(try decoder.next() == nil)
        let ping = Frame(.ping(Ping(nextMs: 1)))
        decoder.append(ping.encoded)
        #expect(try decoder.next() == ping)
    }

    @Test func aHalfFrameIsHeld() throws {
        let stream = message(of: 3000).encoded
        var decoder = FrameDecoder()
        for end in [7, 9] {
            decoder.append(stream[decoder.bufferedBytes..<end])
            #expect(try decoder.next() == nil)
            #expect(decoder.bufferedBytes == end)
        }
        decoder.append(stream[9...])
        #expect(try decoder.next() != nil)
        #expect(decoder.bufferedBytes == 0)
    }

    @Test func memoryFollowsWhatCameAndIsGivenBack() throws {
        var decoder = FrameDecoder(limits: .afterWelcome)
        let large = message(of: 200_000).encoded
        decoder.append(large[..<100])
        #expect(try decoder.next() == nil)
        #expect(decoder.heldBytes < 1024)
        for start in stride(from: 100, to: large.count, by: 999) {
            #expect(try decoder.next() == nil)
            decoder.append(large[start..<min(large.count, start + 999)])
            #expect(decoder.heldBytes < 2 * large.count + 1024)
        }
        decoder.append(large[..<50])
        #expect(try decoder.next() != nil)
        #expect(try decoder.next() == nil)
        #expect(decoder.heldBytes < 1024)
        #expect(decoder.bufferedBytes == 50)
        decoder.append(large[50...])
        #expect(try decoder.next() != nil)
        #expect(try decoder.next() == nil)
        #expect(decoder.heldBytes < 1024)
    }

    @Test func spansAndCollectionsAreTheSame() throws {
        let unknown: [UInt8] = [0, 0, 3, 0x80, 4, 0, 0, 0, 1, 2, 3]
        let stream = unknown + message(of: 300).encoded + unknown
        for size in [1, 5, 100, stream.count] {
            var decoder = FrameDecoder()
            var frames: [Frame] = []
            for start in stride(from: 0, to: stream.count, by: size) {
                let chunk = Array(stream[start..<min(stream.count, start + size)])
                decoder.append(chunk.span)
                while let frame = try decoder.next() { frames.append(frame) }
            }
            #expect(frames == [message(of: 300)])
            #expect(decoder.bufferedBytes == 0)
        }
    }

    /// A body of its own, as stores keep entries.
    @Test func messagesAlone() throws {
        let entry = Entry(seq: 5, body: .readMark(ReadMarkState(through: 9)))
        #expect(try Entry(encoded: entry.encoded) == entry)
        #expect(throws: WireError.malformed) { _ = try Entry(encoded: [0x08]) }
    }
}
