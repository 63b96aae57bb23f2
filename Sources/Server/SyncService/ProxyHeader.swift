/// What a balancer says before the first byte of a client: whose connection it passes on (PROXY
/// protocol, versions 1 and 2, haproxy.org/download/2.6/doc/proxy-protocol.txt).
struct ProxyHeader: Equatable {
    /// The client's numeric address; `nil`: the connection is the balancer's own, or is of a kind
    /// that has none.
    var client: String?
    /// Bytes that it takes.
    var length: Int

    enum Reading: Equatable {
        case incomplete
        case whole(ProxyHeader)
        /// It is none, in words.
        case wrong(String)
    }

    /// The most bytes of a header: version 1 has at most 107, and in version 2 the addresses leave
    /// room for more than balancers say beside them.
    static let bytesMax = 2_048

    private static let signature: [UInt8] = [
        0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a,
    ]
    private static let word: [UInt8] = Array("PROXY ".utf8)
    private static let lineMax = 107

    /// Whether it may be the beginning of a header: no record of TLS and no frame begins so.
    static func isBegun(by bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && (starts(bytes, signature) || starts(bytes, word))
    }

    /// - Parameter bytes: All that has come.
    static func read(_ bytes: [UInt8]) -> Reading {
        if starts(bytes, signature) { return readBinary(bytes) }
        if starts(bytes, word) { return readLine(bytes) }
        return bytes.isEmpty ? .incomplete : .wrong("no PROXY header")
    }

    /// As far as there is something of both.
    private static func starts(_ bytes: some Collection<UInt8>, _ start: [UInt8]) -> Bool {
        zip(bytes, start).allSatisfy { $0 == $1 }
    }

    // MARK: Version 1

    private static func readLine(_ bytes: [UInt8]) -> Reading {
        guard let end = bytes.prefix(lineMax).firstIndex(of: 0x0a) else {
            return bytes.count < lineMax ? .incomplete : .wrong("a line that does not end")
        }
        guard end > 0, bytes[end - 1] == 0x0d else { return .wrong("a line without CR") }
        let line = String(decoding: bytes[..<(end - 1)], as: UTF8.self)
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        let length = end + 1
        if words.count >= 2, words[1] == "UNKNOWN" {
            return .whole(ProxyHeader(client: nil, length: length))
        }
        guard words.count == 6, words[1] == "TCP4" || words[1] == "TCP6",
            PeerAddress(String(words[2])) != nil, PeerAddress(String(words[3])) != nil,
            words[2].contains(":") == (words[1] == "TCP6"), UInt16(words[4]) != nil,
            UInt16(words[5]) != nil
        else { return .wrong("a line with other words than its version has") }
        return .whole(ProxyHeader(client: String(words[2]), length: length))
    }

    // MARK: Version 2

    private static func readBinary(_ bytes: [UInt8]) -> Reading {
        guard bytes.count >= 16 else { return .incomplete }
        let (version, command) = (bytes[12] >> 4, bytes[12] & 0xf)
        guard version == 2, command <= 1 else { return .wrong("an unknown version or command") }
        let length = 16 + (Int(bytes[14]) << 8 | Int(bytes[15]))
        guard length <= bytesMax else { return .wrong("a header of \(length) bytes") }
        guard bytes.count >= length else { return .incomplete }
        // The balancer's own connection: it looks whether somebody is there.
        guard command == 1 else { return .whole(ProxyHeader(client: nil, length: length)) }
        let content = bytes[16..<length]
        let client: String?
        switch bytes[13] {
        case 0x11:
            guard content.count >= 12 else { return .wrong("addresses that are cut off") }
            client = content.prefix(4).map { String($0) }.joined(separator: ".")
        case 0x21:
            guard content.count >= 36 else { return .wrong("addresses that are cut off") }
            client = text(ofIPv6: Array(content.prefix(16)))
        // A socket of the balancer's machine, or a kind that it does not name.
        default: client = nil
        }
        return .whole(ProxyHeader(client: client, length: length))
    }

    private static func text(ofIPv6 bytes: [UInt8]) -> String {
        stride(from: 0, to: 16, by: 2)
            .map { String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16) }
            .joined(separator: ":")
    }
}
