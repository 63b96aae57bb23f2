public import FoundationEssentials

/// The golden byte streams beside the protocol: data for the framing cases.
public struct FramingVectors: Sendable {
    struct Invalid: Decodable, Sendable {
        let name: String
        let rule: String
        let stream: String
        let code: UInt32
    }

    struct Stream: Decodable, Sendable {
        let name: String
        let stream: String
        let frames: [String]
    }

    let invalid: [Invalid]
    let streams: [Stream]

    /// - Parameter folder: `Protocol/vectors`, or a copy of it.
    public init(folder: URL) throws {
        struct InvalidFile: Decodable { let invalid: [Invalid] }
        struct StreamFile: Decodable { let streams: [Stream] }
        func read<Value: Decodable>(_ type: Value.Type, _ name: String) throws -> Value {
            let data = try Data(contentsOf: folder.appendingPathComponent(name))
            return try JSONDecoder().decode(type, from: data)
        }
        invalid = try read(InvalidFile.self, "invalid.json").invalid
        streams = try read(StreamFile.self, "streams.json").streams
    }
}
