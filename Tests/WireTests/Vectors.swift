import Foundation
import Testing
import Wire

/// The golden vectors of Protocol/vectors.
enum Vectors {
    static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    struct FrameFile: Decodable {
        let frame: String
        let type: UInt8
        let cases: [Case]
        let readings: [Reading]
    }

    struct Case: Decodable {
        let name: String
        let value: JSON
        let body: String
        let request: UInt16
        let more: Bool
        let frame: String
    }

    struct Reading: Decodable {
        let name: String
        let body: String
        let value: JSON
        let canonical: String
    }

    struct Streams: Decodable {
        struct Stream: Decodable {
            let name: String
            let stream: String
            let frames: [String]
        }
        let streams: [Stream]
    }

    struct Invalid: Decodable {
        struct Limits: Decodable {
            let bodyBytes: Int
            let elements: Int
        }
        struct Case: Decodable {
            let name: String
            let stream: String
            let code: UInt32
        }
        let limits: Limits
        let invalid: [Case]
    }

    static func file<Content: Decodable>(_ name: String) throws -> Content {
        let url = root.appending(path: "Protocol/vectors/\(name)")
        return try JSONDecoder().decode(Content.self, from: Data(contentsOf: url))
    }

    static func frames() throws -> [FrameFile] {
        try FrameType.allCases.map { try file("\($0.name.lowercased()).json") }
    }

    /// Every body of the vectors, valid in any form.
    static func bodies() throws -> [(type: FrameType, body: [UInt8])] {
        try frames().flatMap { file in
            let type = try #require(FrameType(rawValue: file.type))
            return try (file.cases.map(\.body) + file.readings.map(\.body)).map {
                (type, try bytes(hex: $0))
            }
        }
    }
}

/// A frame with this body, and a header that fits it.
func framed(_ type: FrameType, _ body: [UInt8]) -> [UInt8] {
    [
        UInt8(body.count >> 16), UInt8(body.count >> 8 & 255), UInt8(body.count & 255),
        type.rawValue, 0, 0, 0, 0,
    ] + body
}

/// All frames of a stream given in chunks of `size` bytes, `nil` for at once.
func decode(
    _ stream: [UInt8], chunk size: Int? = nil, limits: FrameLimits = .afterWelcome
) throws(WireError) -> [Frame] {
    var decoder = FrameDecoder(limits: limits)
    var frames: [Frame] = []
    var position = 0
    repeat {
        let end = min(stream.count, position + (size ?? stream.count))
        decoder.append(stream[position..<end])
        position = end
        while let frame = try decoder.next() { frames.append(frame) }
    } while position < stream.count
    return frames
}
