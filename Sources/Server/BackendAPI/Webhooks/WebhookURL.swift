import EventLoop
import FoundationEssentials

/// The address of a webhook's receiver (WHK-1), as far as its text tells. What the host resolves to
/// is looked at when a delivery connects.
enum WebhookURL {
    private static let bytesMax = 2_048

    /// Why nothing can be delivered there, in words that follow the name of a field; `nil`: it can.
    static func flaw(of text: String) -> String? {
        guard text.utf8.count <= bytesMax else { return "must have at most \(bytesMax) bytes" }
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return "must be visible ASCII characters without blanks; write others as %20 and the "
                + "like, and a host's as xn--"
        }
        let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, ["http", "https"].contains(parts[0].lowercased()) else {
            return "must begin with http:// or https://"
        }
        if text.contains("#") { return "must not have a fragment (#)" }
        let authority = parts[1].prefix { !"/?".contains($0) }
        if authority.contains("@") {
            return "must not hold a user or password; a delivery is signed"
        }
        var host = authority
        if !authority.hasSuffix("]"), let colon = authority.lastIndex(of: ":") {
            host = authority[..<colon]
            let digits = authority[colon...].dropFirst()
            guard digits.isEmpty || UInt16(digits).map({ $0 > 0 }) == true,
                digits.utf8.allSatisfy({ (0x30...0x39).contains($0) })
            else { return "must have a port of 1 to 65535, or none" }
        }
        if host.isEmpty { return "must name a host" }
        guard isHost(String(host)), URLComponents(string: text)?.host != nil else {
            return "must name a host of letters, digits, dots and dashes, or an address ([::1] in "
                + "brackets)"
        }
        return nil
    }

    /// RFC 1123, 2.1, and underscores, which private names have.
    private static func isHost(_ host: String) -> Bool {
        if host.hasPrefix("["), host.hasSuffix("]") {
            let address = String(host.dropFirst().dropLast())
            return address.contains(":") && NumericAddress.bytes(address) != nil
        }
        var labels = host.split(separator: ".", omittingEmptySubsequences: false)
        // The root may stand behind the last dot.
        if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
        return host.utf8.count <= 253
            && labels.allSatisfy { label in
                (1...63).contains(label.utf8.count) && !label.hasPrefix("-")
                    && !label.hasSuffix("-")
                    && label.utf8.allSatisfy { byte in
                        byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
                            || (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte & 0xDF)
                    }
            }
    }
}
