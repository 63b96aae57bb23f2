/// The peer's bytes break a rule of framing.md. Terminal: the stream's frames can no longer be
/// told apart, or the peer cannot be trusted to keep its side.
public enum WireError: Error, Equatable, Sendable {
    /// A body is not valid protobuf wire format, or breaks a rule of a field (FRM-20 and on).
    case malformed
    /// The header names a body larger than `limit` bytes (FRM-13).
    case tooLarge(bytes: Int, limit: Int)
    /// More elements of repeated fields in one frame than the limit (FRM-15).
    case tooManyElements(limit: Int)
    /// A frame type this side does not know, without the flag IGNORABLE (FRM-9).
    case unknownFrame(UInt8)
    /// A frame that the state of this side lets no peer send now. Its body is not looked at.
    case unexpectedFrame(FrameType)
    /// The header's reserved byte is not 0 (FRM-7).
    case reservedByte(UInt8)
    /// The header has a flag this version does not define (FRM-6).
    case unknownFlags(UInt8)

    /// What the connection is closed with.
    public var code: Code {
        switch self {
        case .malformed: .malformed
        case .tooLarge: .tooLarge
        case .tooManyElements: .limit
        case .unknownFrame: .unknownFrame
        case .unexpectedFrame, .reservedByte, .unknownFlags: .protocolViolation
        }
    }
}

extension WireError: CustomStringConvertible {
    /// For people.
    public var description: String {
        switch self {
        case .malformed: "a frame that cannot be read"
        case .tooLarge(let bytes, let limit):
            "a frame of \(bytes) bytes, where \(limit) are the most"
        case .tooManyElements(let limit): "a frame with more than \(limit) elements"
        case .unknownFrame(let type): "a frame of the unknown type \(type)"
        case .unexpectedFrame(let type): "a frame \(type) that may not be sent now"
        case .reservedByte(let byte): "a frame whose reserved byte is \(byte)"
        case .unknownFlags(let flags): "a frame with the unknown flags \(flags)"
        }
    }
}
