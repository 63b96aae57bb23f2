import Crypto
import Wire

/// A frame field by field, right or wrong.
struct RawFrame {
    var type: UInt8
    var flags: UInt8 = 0
    var reserved: UInt8 = 0
    var request: UInt16 = 0
    var body: [UInt8] = []
    /// The length in the header; `nil`: the body's.
    var length: Int?

    init(_ type: UInt8, body: [UInt8] = []) {
        self.type = type
        self.body = body
    }

    init(_ type: FrameType, body: [UInt8] = []) { self.init(type.rawValue, body: body) }

    var bytes: [UInt8] {
        let length = length ?? body.count
        return [
            UInt8(truncatingIfNeeded: length >> 16), UInt8(truncatingIfNeeded: length >> 8),
            UInt8(truncatingIfNeeded: length), type, flags, reserved,
            UInt8(truncatingIfNeeded: request >> 8), UInt8(truncatingIfNeeded: request),
        ] + body
    }

    /// A PING with a request number: what a living server answers at once.
    static func ping(_ request: UInt16) -> RawFrame {
        var frame = RawFrame(.ping)
        frame.request = request
        return frame
    }

    func with(_ change: (inout RawFrame) -> Void) -> RawFrame {
        var changed = self
        change(&changed)
        return changed
    }
}

/// Protobuf fields, right or wrong, as bytes.
enum Field {
    static func varint(_ value: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(truncatingIfNeeded: rest)]
    }

    /// The same value in more bytes than it needs.
    static func longVarint(_ value: UInt64, bytes count: Int) -> [UInt8] {
        var bytes = varint(value)
        while bytes.count < count {
            bytes[bytes.count - 1] |= 0x80
            bytes.append(0)
        }
        return bytes
    }

    static func key(_ number: UInt64, _ wireType: UInt64) -> [UInt8] {
        varint(number << 3 | wireType)
    }

    static func number(_ field: UInt64, _ value: UInt64) -> [UInt8] {
        key(field, 0) + varint(value)
    }

    static func bytes(_ field: UInt64, _ value: [UInt8]) -> [UInt8] {
        key(field, 2) + varint(UInt64(value.count)) + value
    }

    static func text(_ field: UInt64, _ value: String) -> [UInt8] {
        bytes(field, Array(value.utf8))
    }

    /// Unknown fields of all four wire types.
    static let unknown: [UInt8] =
        number(1000, 7) + key(1001, 1) + [1, 2, 3, 4, 5, 6, 7, 8]
        + bytes(1002, [0xFF, 0xFE, 0x0B, 0x0C]) + key(1003, 5) + [1, 2, 3, 4]
        // The highest field number there is.
        + number((1 << 29) - 1, 1)

    /// An unknown field that makes a body so long.
    static func padding(toLength count: Int) -> [UInt8] {
        var size = max(0, count - 8)
        while bytes(1002, [UInt8](repeating: 0, count: size)).count < count { size += 1 }
        return bytes(1002, [UInt8](repeating: 0, count: size))
    }
}
