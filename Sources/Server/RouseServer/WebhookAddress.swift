import EventLoop
import FoundationEssentials
import Glibc
import Webhooks

/// Whether a webhook's address can be delivered to, as far as this machine sees it.
public enum WebhookAddress {
    /// Why no delivery to the URL would leave a server with these settings; `nil`: one would.
    public static func problem(of url: String, _ settings: Configuration) -> String? {
        guard let policy = AddressPolicy(allowing: settings.webhookNetworks),
            let host = URLComponents(string: url)?.host
        else { return nil }
        let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        let addresses = addresses(of: name)
        guard !addresses.isEmpty else {
            return "the name \(name) cannot be resolved here: deliveries fail until it can be"
        }
        guard !addresses.contains(where: { policy.permits($0.bytes) }) else { return nil }
        let shown = addresses[0].text
        return "\(name) is \(shown == name ? "" : "\(shown), ")an address of no public network: "
            + "deliveries are refused unless webhooks.allow_networks names it, "
            + "as \(shown)/\(shown.contains(":") ? 128 : 32)"
    }

    private static func addresses(of name: String) -> [(text: String, bytes: [UInt8])] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        var found: [(text: String, bytes: [UInt8])] = []
        var entry = list
        while let current = entry {
            var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
            let status = getnameinfo(
                current.pointee.ai_addr, current.pointee.ai_addrlen, &text,
                socklen_t(text.count), nil, 0, NI_NUMERICHOST)
            let shown = String(
                decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if status == 0, let bytes = NumericAddress.bytes(shown) {
                found.append((shown, bytes))
            }
            entry = current.pointee.ai_next
        }
        return found
    }
}
