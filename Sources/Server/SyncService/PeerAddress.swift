import EventLoop

/// A peer's or a listener's numeric address, as far as it matters who it is.
public struct PeerAddress: Hashable, Sendable {
    /// 16 bytes; IPv4 is mapped (RFC 4291, 2.5.5.2).
    private let bytes: [UInt8]

    /// `nil`: not a numeric address.
    public init?(_ text: String) {
        guard let bytes = NumericAddress.bytes(text) else { return nil }
        self.bytes = bytes
    }

    private var isIPv4: Bool { bytes[..<12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff] }

    /// This machine: 127.0.0.0/8 or ::1.
    public var isLoopback: Bool {
        isIPv4
            ? bytes[12] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
    }

    /// This machine or a private network: RFC 1918, link-local addresses, RFC 4193.
    public var isTrusted: Bool {
        if isLoopback { return true }
        guard isIPv4 else {
            return bytes[0] & 0xfe == 0xfc || (bytes[0] == 0xfe && bytes[1] & 0xc0 == 0x80)
        }
        return switch (bytes[12], bytes[13]) {
        case (10, _), (172, 16...31), (192, 168), (169, 254): true
        default: false
        }
    }

    /// Whom a rate is counted against: one host of IPv4, one network of 64 bits of IPv6, which
    /// one subscriber has to himself.
    var holder: [UInt8] { isIPv4 ? Array(bytes[12...]) : Array(bytes[..<8]) }

    /// Whom places are counted against when they run out: one host of IPv4, one network of 48 bits
    /// of IPv6, which is what one site gets (RFC 6177).
    var network: PeerNetwork {
        PeerNetwork(bytes: isIPv4 ? Array(bytes[12...]) : Array(bytes[..<6]))
    }
}

/// The network a connection comes from.
struct PeerNetwork: Hashable, Sendable {
    /// Empty: unknown.
    let bytes: [UInt8]
}

/// Where a connection comes from, as far as limits go.
struct PeerOrigin: Hashable, Sendable {
    /// Against whose rate and share it counts; `nil`: nobody's.
    let holder: [UInt8]?
    let network: PeerNetwork
}
