import EventLoop

/// Which addresses webhooks may be delivered to. A URL is chosen by an app's backend, the network
/// the server stands in is not that backend's: without this a webhook reaches whatever the server
/// reaches (WHK-5).
public struct AddressPolicy: Equatable, Sendable {
    private let allowed: [Network]

    /// Reads networks such as `10.0.0.0/8, fd00::/8`, split at commas and blanks; these are
    /// allowed besides the public Internet. `nil`: one of them is none.
    public init?(allowing text: String) {
        guard let allowed = Network.list(text) else { return nil }
        self.allowed = allowed
    }

    /// - Parameter address: 4 or 16 bytes.
    public func permits(_ address: [UInt8]) -> Bool {
        guard let address = Self.mapped(address) else { return false }
        if allowed.contains(where: { $0.contains(address) }) { return true }
        return !Self.special.contains { $0.contains(address) }
            && Self.embedded(in: address).allSatisfy(permits)
    }

    private static let mappedPrefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

    private static func mapped(_ address: [UInt8]) -> [UInt8]? {
        switch address.count {
        case 4: mappedPrefix + address
        case 16: address
        default: nil
        }
    }

    /// IPv4 addresses that a translator or tunnel on the way would make of it: NAT64 (RFC 6052)
    /// and 6to4 (RFC 3056).
    private static func embedded(in address: [UInt8]) -> [[UInt8]] {
        if let nat64, nat64.contains(address) { return [Array(address[12...])] }
        if address[0] == 0x20, address[1] == 0x02 { return [Array(address[2..<6])] }
        return []
    }

    private static let nat64 = Network("64:ff9b::/96")

    /// Not globally reachable, by IANA's registries of special-purpose addresses (RFC 6890), and
    /// multicast.
    private static let special: [Network] = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32",
        "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
    ].compactMap { Network($0) }
}
