/// A range of addresses: the first bits of 16 bytes, IPv4 mapped (RFC 4291, 2.5.5.2).
public struct Network: Hashable, Sendable {
    private let bytes: [UInt8]
    private let bits: Int

    /// Reads `10.0.0.0/8`, `fc00::/7` or a single address; `nil`: it is none.
    public init?(_ text: some StringProtocol) {
        let halves = text.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...2).contains(halves.count), let bytes = NumericAddress.bytes(String(halves[0]))
        else { return nil }
        let width = halves[0].utf8.contains(UInt8(ascii: ":")) ? 128 : 32
        guard let bits = halves.count == 2 ? Int(halves[1]) : width, (0...width).contains(bits)
        else { return nil }
        self.bytes = bytes
        self.bits = 128 - width + bits
    }

    /// - Parameter address: 16 bytes.
    public func contains(_ address: [UInt8]) -> Bool {
        guard address.count == 16 else { return false }
        for (index, byte) in bytes.enumerated() where index * 8 < bits {
            let wanted = min(8, bits - index * 8)
            let mask = UInt8(truncatingIfNeeded: 0xFF00 >> wanted)
            if (byte ^ address[index]) & mask != 0 { return false }
        }
        return true
    }
}

extension Network {
    /// Reads networks split at commas and blanks; `nil`: one of them is none.
    public static func list(_ text: String) -> [Network]? {
        var networks: [Network] = []
        for word in text.split(whereSeparator: { $0 == "," || $0 == " " }) {
            guard let network = Network(word) else { return nil }
            networks.append(network)
        }
        return networks
    }
}
