/// The trace to which whoever published something counts it: `traceparent` of W3C Trace Context,
/// carried on as it came, for the server records no spans of its own.
public struct TraceContext: Equatable, Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64
    private let parent: UInt64
    private let flags: UInt8

    static let encodedBytes = 25
    /// Of those that the versions known here define: sampled, and random.
    private static let knownFlags: UInt8 = 3

    private init?(high: UInt64, low: UInt64, parent: UInt64, flags: UInt8) {
        // Zeros name nothing.
        guard high | low != 0, parent != 0 else { return nil }
        (self.high, self.low, self.parent) = (high, low, parent)
        self.flags = flags & Self.knownFlags
    }

    /// `nil`: it is none, or of the version that there is not. Of a version to come the part that
    /// all versions share is taken.
    public init?(header: String) {
        let bytes = Array(header.utf8)
        guard bytes.count >= 55, bytes[2] == 0x2D, bytes[35] == 0x2D, bytes[52] == 0x2D,
            let version = Self.number(bytes[0..<2]), version != 0xFF,
            bytes.count == 55 || version > 0 && bytes[55] == 0x2D,
            let high = Self.number(bytes[3..<19]), let low = Self.number(bytes[19..<35]),
            let parent = Self.number(bytes[36..<52]), let flags = Self.number(bytes[53..<55])
        else { return nil }
        self.init(high: high, low: low, parent: parent, flags: UInt8(flags))
    }

    /// Digits in lower case only, as the specification has them.
    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        var number: UInt64 = 0
        for digit in digits {
            switch digit {
            case 0x30...0x39: number = number << 4 | UInt64(digit - 0x30)
            case 0x61...0x66: number = number << 4 | UInt64(digit - 0x61 + 10)
            default: return nil
            }
        }
        return number
    }

    /// The trace alone, which is what all its parts share.
    public var id: String { Self.text(high, 16) + Self.text(low, 16) }

    /// What is handed on.
    public var header: String { "00-\(id)-\(Self.text(parent, 16))-\(Self.text(UInt64(flags), 2))" }

    private static func text(_ number: UInt64, _ width: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: width - digits.utf8.count) + digits
    }

    /// The form in a row.
    public var encoded: [UInt8] {
        var bytes: [UInt8] = []
        for number in [high, low, parent] {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
            }
        }
        return bytes + [flags]
    }

    public init?(encoded: ArraySlice<UInt8>) {
        guard encoded.count == Self.encodedBytes, let flags = encoded.last else { return nil }
        let bytes = Array(encoded)
        func number(_ start: Int) -> UInt64 {
            bytes[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
        }
        self.init(high: number(0), low: number(8), parent: number(16), flags: flags)
    }
}
