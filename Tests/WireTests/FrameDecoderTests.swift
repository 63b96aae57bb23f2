import Wire
import XCTest

final class FrameDecoderTests: XCTestCase {
    private func message(of bytes: Int) -> Frame {
        Frame(.error(ErrorFrame(detail: String(repeating: "x", count: bytes))))
    }

    /// The largest body the limit allows is taken, one byte more is refused at its header.
    func testLimitIsInclusive() throws {
        var limits = FrameLimits.beforeWelcome
        let stream = message(of: 5000).encoded
        limits.bodyBytes = stream.count - Frame.headerBytes
        XCTAssertEqual(try decode(stream, limits: limits).count, 1)
        limits.bodyBytes -= 1
        XCTAssertThrowsError(try decode(Array(stream[..<8]), limits: limits)) { error in
            XCTAssertEqual(
                error as? WireError,
                .tooLarge(bytes: limits.bodyBytes + 1, limit: limits.bodyBytes))
        }
    }

    func testElementLimitIsInclusiveAndForAllListsTogether() throws {
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
        XCTAssertEqual(try decode(sync(2), limits: limits).count, 1)
        // The count begins anew with every frame.
        XCTAssertEqual(try decode(sync(2) + sync(2), limits: limits).count, 2)
        XCTAssertThrowsError(try decode(sync(3), limits: limits)) { error in
            XCTAssertEqual(error as? WireError, .tooManyElements(limit: 5))
        }
    }

    func testRaisedLimitHoldsForFramesAlreadyBuffered() throws {
        let welcome = Frame(.welcome(Welcome(version: 1)))
        let large = message(of: 100_000)
        var decoder = FrameDecoder()
        decoder.append(welcome.encoded + large.encoded)
        XCTAssertEqual(try decoder.next(), welcome)
        decoder.limits = .afterWelcome
        XCTAssertEqual(try decoder.next(), large)
    }

    func testAnErrorIsTerminalAndDropsWhatIsBuffered() throws {
        var decoder = FrameDecoder()
        let ping = Frame(.ping(Ping(nextMs: 1))).encoded
        decoder.append(ping + [0, 0, 0, 0x4F, 0, 0, 0, 0] + ping)
        XCTAssertNotNil(try decoder.next())
        XCTAssertThrowsError(try decoder.next())
        XCTAssertEqual(decoder.bufferedBytes, 0)
        decoder.append(ping)
        XCTAssertEqual(decoder.bufferedBytes, 0)
        XCTAssertThrowsError(try decoder.next()) { error in
            XCTAssertEqual(error as? WireError, .unknownFrame(0x4F))
        }
        XCTAssertFalse(decoder.isBetweenFrames)
    }

    func testASkippedFrameIsNotKept() throws {
        var decoder = FrameDecoder()
        decoder.append([0, 0x40, 0, 0x80, 4, 0, 0, 0])
        for _ in 0..<16 {
            XCTAssertNil(try decoder.next())
            XCTAssertEqual(decoder.bufferedBytes, 0)
            XCTAssertEqual(decoder.pendingBodyBytes, 0)
            XCTAssertFalse(decoder.isBetweenFrames)
            decoder.append([UInt8](repeating: 0xFF, count: 1024))
        }
        XCTAssertNil(try decoder.next())
        XCTAssertTrue(decoder.isBetweenFrames)
    }

    func testWhatAHalfFrameMayComeToHold() throws {
        let stream = message(of: 3000).encoded
        var decoder = FrameDecoder()
        decoder.append(stream[..<7])
        XCTAssertNil(try decoder.next())
        XCTAssertEqual(decoder.pendingBodyBytes, 0)
        decoder.append(stream[7..<9])
        XCTAssertNil(try decoder.next())
        XCTAssertEqual(decoder.pendingBodyBytes, stream.count - 8)
        XCTAssertEqual(decoder.bufferedBytes, 9)
        decoder.append(stream[9...])
        XCTAssertNotNil(try decoder.next())
        XCTAssertEqual(decoder.pendingBodyBytes, 0)
        XCTAssertEqual(decoder.bufferedBytes, 0)
    }

    func testMemoryFollowsWhatCameAndIsGivenBack() throws {
        var decoder = FrameDecoder(limits: .afterWelcome)
        let large = message(of: 200_000).encoded
        decoder.append(large[..<100])
        XCTAssertNil(try decoder.next())
        XCTAssertLessThan(decoder.heldBytes, 1024)
        for start in stride(from: 100, to: large.count, by: 999) {
            XCTAssertNil(try decoder.next())
            decoder.append(large[start..<min(large.count, start + 999)])
            XCTAssertLessThan(decoder.heldBytes, 2 * large.count + 1024)
        }
        decoder.append(large[..<50])
        XCTAssertNotNil(try decoder.next())
        XCTAssertNil(try decoder.next())
        XCTAssertLessThan(decoder.heldBytes, 1024)
        XCTAssertEqual(decoder.bufferedBytes, 50)
        decoder.append(large[50...])
        XCTAssertNotNil(try decoder.next())
        XCTAssertNil(try decoder.next())
        XCTAssertLessThan(decoder.heldBytes, 1024)
    }

    func testSpansAndCollectionsAreTheSame() throws {
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
            XCTAssertEqual(frames, [message(of: 300)])
            XCTAssertTrue(decoder.isBetweenFrames)
        }
    }

    /// A body of its own, as stores keep entries.
    func testMessagesAlone() throws {
        let entry = Entry(seq: 5, body: .readMark(ReadMarkState(through: 9)))
        XCTAssertEqual(try Entry(encoded: entry.encoded), entry)
        XCTAssertThrowsError(try Entry(encoded: [0x08])) { error in
            XCTAssertEqual(error as? WireError, .malformed)
        }
    }
}
