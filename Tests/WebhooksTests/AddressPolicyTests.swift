import Crypto
import EventLoop
import Testing

@testable import Webhooks

/// Where webhooks may go, and how they are signed.
@Suite struct AddressPolicyTests {
    private func bytes(_ text: String) throws -> [UInt8] {
        try #require(NumericAddress.bytes(text), "\(text)")
    }

    @Test(
        "what is not the public Internet is refused",
        arguments: [
            "127.0.0.1", "127.255.255.255", "10.1.2.3", "172.16.0.1", "172.31.255.255",
            "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
            "255.255.255.255", "198.18.0.1", "192.0.2.7", "::1", "::", "::ffff:127.0.0.1",
            "::ffff:10.0.0.1", "::127.0.0.1", "fe80::1", "fc00::1", "fd12::1", "ff02::1",
            "64:ff9b::10.0.0.1", "64:ff9b:1::1", "2002:7f00:1::", "2001:db8::1", "fec0::1",
            "2001:0:1::1", "::ffff:0:10.0.0.1", "192.0.0.8", "192.88.99.1", "198.51.100.1",
            "203.0.113.1", "100::1", "3fff::1", "5f00::1",
        ])
    func refused(_ text: String) throws {
        let policy = try #require(AddressPolicy(allowing: ""))
        #expect(try !policy.permits(bytes(text)))
    }

    @Test(
        "what is, is not",
        arguments: [
            "1.1.1.1", "8.8.8.8", "172.15.255.255", "172.32.0.1", "100.128.0.1", "11.0.0.1",
            "2606:4700:4700::1111", "2a00:1450::1", "64:ff9b::8.8.8.8", "2002:808:808::1",
            "::ffff:8.8.8.8",
        ])
    func permitted(_ text: String) throws {
        let policy = try #require(AddressPolicy(allowing: ""))
        #expect(try policy.permits(bytes(text)))
    }

    @Test("four bytes are IPv4; other lengths are nothing")
    func lengths() throws {
        let policy = try #require(AddressPolicy(allowing: "127.0.0.0/8"))
        #expect(policy.permits([127, 0, 0, 1]) && policy.permits([8, 8, 8, 8]))
        #expect(!policy.permits([10, 0, 0, 1]))
        #expect(!policy.permits([]) && !policy.permits([1, 2, 3, 4, 5]))
    }

    @Test("networks are read, and nothing else is")
    func networks() throws {
        let policy = try #require(AddressPolicy(allowing: "10.0.0.0/8, fd00::/8,192.168.7.9"))
        for text in ["10.9.9.9", "fdff::1", "192.168.7.9", "::ffff:10.0.0.1"] {
            #expect(try policy.permits(bytes(text)), "\(text)")
        }
        for text in ["192.168.7.8", "fc00::1", "127.0.0.1"] {
            #expect(try !policy.permits(bytes(text)), "\(text)")
        }
        for text in ["10.0.0.0/33", "10.0.0.0/-1", "ten", "10.0.0.0/8/9", "10.0.0.0/", "::/129"] {
            #expect(AddressPolicy(allowing: text) == nil, "\(text)")
        }
        #expect(try #require(AddressPolicy(allowing: "0.0.0.0/0")).permits([127, 0, 0, 1]))
    }

    /// Computed with Python's hmac module.
    @Test("a delivery is signed with every secret")
    func signature() {
        let value = Signature.value(
            Array(#"{"events":[]}"#.utf8), seconds: 1_795_000_000, secrets: ["new", "old"])
        #expect(
            value == "t=1795000000"
                + ",v1=2dfe36b02f3b3ef19182d7bff1af913b1793c4c9cdc9897979f5bcac6828ff9e"
                + ",v1=73c4a22144e72a1f41177db036d92ae99866f01dd4eaed1b705e27850ada9ec5")
    }
}
