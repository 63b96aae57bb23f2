import Testing

@testable import Crypto

@Suite struct PushCertificateTests {
    private let authority: DevelopmentCertificates

    init() throws { authority = try DevelopmentCertificates(names: ["localhost"]) }

    private func read(_ issued: IssuedCertificate, key: String? = nil) throws -> PushCertificate {
        try PushCertificate(
            chain: Array(issued.certificatePEM.utf8),
            privateKey: Array((key ?? issued.privateKeyPEM).utf8))
    }

    @Test("topics and environments are those of Apple's extensions")
    func extensions() throws {
        let topics = ["org.example.shop", "org.example.shop.voip", "org.example.shop.complication"]
        let both = try read(try authority.issuePushClient(topics: topics))
        #expect(both.topics == topics)
        #expect(both.isForDevelopment && both.isForProduction)
        let one = try read(
            try authority.issuePushClient(topics: topics, isForDevelopment: false))
        #expect(!one.isForDevelopment && one.isForProduction)
        #expect(one.notAfter > both.notAfter - 60_000)
    }

    @Test("without the extension the subject's user id is the topic, and else there is none")
    func userID() throws {
        // The list is empty, as if the extension were not there.
        #expect(try read(try authority.issuePushClient(topics: [])).topics.isEmpty)
        #expect(try read(try authority.issueClient(name: "org.example.shop")).topics.isEmpty)
    }

    @Test("another key, and bytes that are none, are told apart")
    func wrong() throws {
        let issued = try authority.issuePushClient(topics: ["org.example.shop"])
        let other = try authority.issuePushClient(topics: ["org.example.shop"])
        #expect(throws: TLSError.keyMismatch) {
            try self.read(issued, key: other.privateKeyPEM)
        }
        #expect(throws: TLSError.self) {
            try PushCertificate(chain: Array("no".utf8), privateKey: [])
        }
        let late = try DevelopmentCertificates(
            names: ["localhost"], validityDays: 1, validityShift: -2 * 86_400)
        #expect(throws: TLSError.self) {
            try self.read(try late.issuePushClient(topics: ["org.example.shop"]))
        }
    }

    @Test("a malformed list of topics is none, whatever it claims of its length")
    func malformed() {
        let good = PushCertificate.der(topics: ["a.b", String(repeating: "c", count: 300)])
        #expect(PushCertificate.topics(der: good).count == 2)
        for count in 0..<good.count {
            #expect(PushCertificate.topics(der: Array(good.prefix(count))).isEmpty)
        }
        for bytes in [[0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], [0x30, 0x80], [0x0C, 1, 65]]
            as [[UInt8]]
        {
            #expect(PushCertificate.topics(der: bytes).isEmpty)
        }
    }
}
