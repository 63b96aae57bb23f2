import Wire
import XCTest

final class VectorTests: XCTestCase {
    func testEveryFrameTypeHasItsVectors() throws {
        for (file, type) in zip(try Vectors.frames(), FrameType.allCases) {
            XCTAssertEqual(file.frame, type.name)
            XCTAssertEqual(file.type, type.rawValue)
            XCTAssertGreaterThanOrEqual(file.cases.count, 4, file.frame)
        }
    }

    func testCasesBothWays() throws {
        for file in try Vectors.frames() {
            for item in file.cases {
                let label = "\(file.frame), \(item.name)"
                let frames = try decode(bytes(hex: item.frame))
                let frame = try XCTUnwrap(frames.first, label)
                XCTAssertEqual(frames.count, 1, label)
                XCTAssertEqual(frame.body.type.rawValue, file.type, label)
                XCTAssertEqual(frame.request, item.request, label)
                XCTAssertEqual(frame.more, item.more, label)
                XCTAssertEqual(protobufJSON(frame.body.message), item.value, label)
                XCTAssertEqual(hex(frame.body.message.encoded), item.body, label)
                XCTAssertEqual(hex(frame.encoded), item.frame, label)
            }
        }
    }

    func testReadingsOfOtherEncodings() throws {
        for file in try Vectors.frames() {
            let type = try XCTUnwrap(FrameType(rawValue: file.type))
            for item in file.readings {
                let label = "\(file.frame), \(item.name)"
                let frames = try decode(framed(type, bytes(hex: item.body)))
                let frame = try XCTUnwrap(frames.first, label)
                XCTAssertEqual(protobufJSON(frame.body.message), item.value, label)
                XCTAssertEqual(hex(frame.body.message.encoded), item.canonical, label)
            }
        }
    }

    func testStreamsInChunksOfEverySize() throws {
        let file: Vectors.Streams = try Vectors.file("streams.json")
        for item in file.streams {
            let stream = try bytes(hex: item.stream)
            for size in Array(1...20) + [1000, 16384, stream.count + 1] {
                let frames = try decode(stream, chunk: size, limits: .beforeWelcome)
                XCTAssertEqual(
                    frames.map { hex($0.encoded) }, item.frames, "\(item.name), \(size)")
            }
        }
    }

    /// All cases of all frames as one stream, in chunks of several sizes.
    func testAllCasesGlued() throws {
        let cases = try Vectors.frames().flatMap(\.cases)
        let stream = try cases.flatMap { try bytes(hex: $0.frame) }
        for size in [1, 2, 3, 7, 8, 9, 64, 1000, stream.count] {
            let frames = try decode(stream, chunk: size)
            XCTAssertEqual(frames.map { hex($0.encoded) }, cases.map(\.frame), "\(size)")
        }
    }

    func testACutFrameWaitsForMore() throws {
        for item in try Vectors.frames().flatMap(\.cases) {
            let stream = try bytes(hex: item.frame)
            for cut in 0..<stream.count {
                XCTAssertEqual(try decode(Array(stream[..<cut])), [], item.name)
            }
        }
    }

    func testInvalidStreams() throws {
        let file: Vectors.Invalid = try Vectors.file("invalid.json")
        XCTAssertEqual(file.limits.bodyBytes, FrameLimits.beforeWelcome.bodyBytes)
        XCTAssertEqual(file.limits.elements, FrameLimits.beforeWelcome.elements)
        for item in file.invalid {
            let stream = try bytes(hex: item.stream)
            for size in [1, 3, stream.count] {
                XCTAssertThrowsError(
                    try decode(stream, chunk: size, limits: .beforeWelcome), item.name
                ) { error in
                    XCTAssertEqual((error as? WireError)?.code.rawValue, item.code, item.name)
                }
            }
        }
    }
}
