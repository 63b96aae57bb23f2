import Testing
import Wire

@Suite struct VectorTests {
    @Test func everyFrameTypeHasItsVectors() throws {
        for (file, type) in zip(try Vectors.frames(), FrameType.allCases) {
            #expect(file.frame == type.name)
            #expect(file.type == type.rawValue)
            #expect(file.cases.count >= 4, "\(file.frame)")
        }
    }

    @Test func casesBothWays() throws {
        for file in try Vectors.frames() {
            for item in file.cases {
                let label = "\(file.frame), \(item.name)"
                let frames = try decode(bytes(hex: item.frame))
                let frame = try #require(frames.first, "\(label)")
                #expect(frames.count == 1, "\(label)")
                #expect(frame.body.type.rawValue == file.type, "\(label)")
                #expect(frame.request == item.request, "\(label)")
                #expect(frame.more == item.more, "\(label)")
                #expect(protobufJSON(frame.body.message) == item.value, "\(label)")
                #expect(hex(frame.body.message.encoded) == item.body, "\(label)")
                #expect(hex(frame.encoded) == item.frame, "\(label)")
            }
        }
    }

    @Test func readingsOfOtherEncodings() throws {
        for file in try Vectors.frames() {
            let type = try #require(FrameType(rawValue: file.type))
            for item in file.readings {
                let label = "\(file.frame), \(item.name)"
                let frames = try decode(framed(type, bytes(hex: item.body)))
                let frame = try #require(frames.first, "\(label)")
                #expect(protobufJSON(frame.body.message) == item.value, "\(label)")
                #expect(hex(frame.body.message.encoded) == item.canonical, "\(label)")
            }
        }
    }

    @Test func streamsInChunksOfEverySize() throws {
        let file: Vectors.Streams = try Vectors.file("streams.json")
        for item in file.streams {
            let stream = try bytes(hex: item.stream)
            for size in Array(1...20) + [1000, 16384, stream.count + 1] {
                let frames = try decode(stream, chunk: size, limits: .beforeWelcome)
                #expect(frames.map { hex($0.encoded) } == item.frames, "\(item.name), \(size)")
            }
        }
    }

    /// All cases of all frames as one stream, in chunks of several sizes.
    @Test func allCasesGlued() throws {
        let cases = try Vectors.frames().flatMap(\.cases)
        let stream = try cases.flatMap { try bytes(hex: $0.frame) }
        for size in [1, 2, 3, 7, 8, 9, 64, 1000, stream.count] {
            let frames = try decode(stream, chunk: size)
            #expect(frames.map { hex($0.encoded) } == cases.map(\.frame), "\(size)")
        }
    }

    @Test func aCutFrameWaitsForMore() throws {
        for item in try Vectors.frames().flatMap(\.cases) {
            let stream = try bytes(hex: item.frame)
            for cut in 0..<stream.count {
                #expect(try decode(Array(stream[..<cut])) == [], "\(item.name)")
            }
        }
    }

    @Test func invalidStreams() throws {
        let file: Vectors.Invalid = try Vectors.file("invalid.json")
        #expect(file.limits.bodyBytes == FrameLimits.beforeWelcome.bodyBytes)
        #expect(file.limits.elements == FrameLimits.beforeWelcome.elements)
        for item in file.invalid {
            let stream = try bytes(hex: item.stream)
            for size in [1, 3, stream.count] {
                let error = #expect(throws: WireError.self, "\(item.name)") {
                    _ = try decode(stream, chunk: size, limits: .beforeWelcome)
                }
                #expect(error?.code.rawValue == item.code, "\(item.name)")
            }
        }
    }
}
