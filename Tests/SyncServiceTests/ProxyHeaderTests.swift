import Testing

@testable import SyncService

/// The bytes a balancer sends first.
@Suite struct ProxyHeaderTests {
    private static let signature: [UInt8] = [
        0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a,
    ]

    private static func binary(
        _ command: UInt8, _ family: UInt8, _ content: [UInt8]
    ) -> [UInt8] {
        signature + [
            0x20 | command, family, UInt8(content.count >> 8), UInt8(content.count & 0xff),
        ]
            + content
    }

    private static let four: [UInt8] = [192, 0, 2, 7, 10, 0, 0, 1, 0x1f, 0x90, 0x1d, 0x13]
    private static let six: [UInt8] =
        [0x20, 0x01, 0x0d, 0xb8] + [UInt8](repeating: 0, count: 11) + [9]
        + [UInt8](repeating: 1, count: 16) + [0, 1, 0, 2]

    /// Headers, and the client that each tells.
    private static let headers: [(bytes: [UInt8], client: String?)] = [
        (Array("PROXY TCP4 192.0.2.7 10.0.0.1 8080 7443\r\n".utf8), "192.0.2.7"),
        (Array("PROXY TCP6 2001:db8::9 ::1 1 65535\r\n".utf8), "2001:db8::9"),
        (Array("PROXY UNKNOWN\r\n".utf8), nil),
        (Array("PROXY UNKNOWN ffff::1 what ever 9\r\n".utf8), nil),
        (binary(1, 0x11, four), "192.0.2.7"),
        (binary(1, 0x21, six), "2001:db8:0:0:0:0:0:9"),
        // Beside the addresses: a unique id, and something that nobody knows.
        (binary(1, 0x11, four + [0x05, 0, 2, 1, 2, 0xee, 0, 1, 7]), "192.0.2.7"),
        (binary(0, 0x00, []), nil),
        (binary(0, 0x11, four), nil),
        (binary(1, 0x00, [1, 2, 3]), nil),
        (binary(1, 0x31, [UInt8](repeating: 0x2f, count: 216)), nil),
    ]

    @Test(
        "a header is read however it is split, and what follows it is not its",
        arguments: headers)
    func reads(_ header: (bytes: [UInt8], client: String?)) {
        for count in 0..<header.bytes.count {
            #expect(ProxyHeader.read(Array(header.bytes[..<count])) == .incomplete, "\(count)")
        }
        let whole = ProxyHeader.Reading.whole(
            ProxyHeader(client: header.client, length: header.bytes.count))
        #expect(ProxyHeader.read(header.bytes) == whole)
        #expect(ProxyHeader.read(header.bytes + [0x16, 3, 1]) == whole)
        #expect(ProxyHeader.isBegun(by: header.bytes))
    }

    private static let faults: [[UInt8]] = [
        [0x16, 3, 1], Array("PROXX".utf8), Array("PROXY TCP4 192.0.2.7 10.0.0.1 8080\r\n".utf8),
        Array("PROXY TCP4 192.0.2.7 10.0.0.1 8080 7443\n".utf8),
        Array("PROXY TCP4 2001:db8::9 ::1 1 2\r\n".utf8),
        Array("PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n".utf8),
        Array("PROXY TCP4 192.0.2.777 10.0.0.1 1 2\r\n".utf8),
        Array("PROXY TCP4 192.0.2.7 10.0.0.1 1 65536\r\n".utf8),
        Array("PROXY TCP4  192.0.2.7 10.0.0.1 1 2\r\n".utf8),
        Array("PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n".utf8),
        Array(("PROXY UNKNOWN " + String(repeating: "x", count: 100)).utf8),
        signature + [0x11, 0x11, 0, 12] + four, signature + [0x2f, 0x11, 0, 12] + four,
        binary(1, 0x11, Array(four.dropLast())), binary(1, 0x21, Array(six.dropLast())),
        signature + [0x21, 0x11, 0xff, 0xff],
    ]

    @Test("what is no header is told", arguments: faults)
    func refuses(_ bytes: [UInt8]) {
        guard case .wrong = ProxyHeader.read(bytes) else {
            Issue.record("\(ProxyHeader.read(bytes))")
            return
        }
    }

    @Test("no record of TLS and no frame begins like a header")
    func others() {
        #expect(!ProxyHeader.isBegun(by: [0x16, 3, 1, 2, 0, 1]))
        #expect(!ProxyHeader.isBegun(by: [0, 0, 40, 1, 0, 0, 0, 0]))
        #expect(!ProxyHeader.isBegun(by: []))
    }
}
