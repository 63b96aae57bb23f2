import Testing

@testable import Crypto

@Suite struct ConfigurationTests {
    private func serverError(_ certificate: String, _ key: String) -> TLSError? {
        do throws(TLSError) {
            _ = try TLSContext.server(
                certificateChain: Array(certificate.utf8), privateKey: Array(key.utf8),
                protocols: ["rouse/1"])
            return nil
        } catch {
            return error
        }
    }

    @Test func refusesTheKeyOfAnotherCertificate() throws {
        let certificates = try DevelopmentCertificates(names: ["localhost"])
        let other = try certificates.issueServer(names: ["localhost"])
        #expect(
            serverError(certificates.server.certificatePEM, other.privateKeyPEM) == .keyMismatch)
        let rsa = PrivateKey.generate(.rsa2048).pem
        #expect(serverError(certificates.server.certificatePEM, rsa) == .keyMismatch)
        #expect(serverError(other.certificatePEM, other.privateKeyPEM) == nil)
    }

    @Test func refusesUnreadablePEM() throws {
        let certificates = try DevelopmentCertificates(names: ["localhost"])
        let server = certificates.server
        for bad in ["", "no PEM", String(server.certificatePEM.dropLast(60)), server.privateKeyPEM]
        {
            guard case .invalidCertificate = serverError(bad, server.privateKeyPEM) else {
                Issue.record("taken: \(bad)")
                continue
            }
        }
        for bad in ["", "no PEM", String(server.privateKeyPEM.dropLast(60)), encryptedKey] {
            guard case .invalidPrivateKey = serverError(server.certificatePEM, bad) else {
                Issue.record("taken: \(bad)")
                continue
            }
        }
        #expect(throws: TLSError.self) {
            try TLSContext.client(trustedCertificates: Array("x".utf8), protocols: [])
        }
    }

    @Test func refusesCertificatesOutsideTheirTime() throws {
        let expired = try DevelopmentCertificates(
            names: ["localhost"], validityDays: 30, validityShift: -31 * 86_400)
        let server = expired.server
        guard
            case .certificateExpired(let notAfter) = serverError(
                server.certificatePEM, server.privateKeyPEM)
        else {
            Issue.record("an expired certificate was taken")
            return
        }
        // Thirty days after a start 31 days and an hour ago: a day and an hour ago.
        let fresh = try Fixture().server()
        let distance = try #require(fresh.notAfter) - notAfter
        #expect((31 * 86_400_000 - 60_000...31 * 86_400_000 + 60_000).contains(distance))
        let early = try DevelopmentCertificates(
            names: ["localhost"], validityDays: 30, validityShift: 2 * 86_400)
        guard
            case .certificateNotYetValid = serverError(
                early.server.certificatePEM, early.server.privateKeyPEM)
        else {
            Issue.record("a certificate of the future was taken")
            return
        }
    }

    @Test func refusesNamesThatAreNone() throws {
        let client = try Fixture().client()
        for name in ["", "two words", "zero\u{0}byte", String(repeating: "a", count: 256)] {
            #expect(throws: TLSError.self) { try client.makeEngine(serverName: name) }
        }
        for name in ["a,DNS:b", "", "b c", "ü.example"] {
            #expect(throws: CertificateError.invalidName(name)) {
                try DevelopmentCertificates(names: ["localhost", name])
            }
        }
        #expect(throws: CertificateError.self) { try DevelopmentCertificates(names: []) }
    }

    @Test func sendsTheWholeChain() throws {
        let fixture = try Fixture()
        let chain = fixture.certificates.server.certificatePEM + fixture.certificates.authorityPEM
        let context = try TLSContext.server(
            certificateChain: Array(chain.utf8),
            privateKey: Array(fixture.certificates.server.privateKeyPEM.utf8),
            protocols: ["rouse/1"])
        let bare = try fixture.server()
        var sizes: [Int] = []
        for server in [context, bare] {
            let client = try fixture.client().makeEngine(serverName: "localhost")
            try client.startHandshake()
            let engine = server.makeEngine()
            _ = try engine.receive(client.output())
            sizes.append(engine.output().count)
        }
        #expect(sizes[0] > sizes[1] + 300)
    }
}

/// A P-256 key under the password "secret".
let encryptedKey = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjsCxpvITl4vgICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEOmnmYkgNvD1cLe6DlQoe1kEgZDx
    h1g98LOvCbHq1G8EHQhL0Imk4XztpokZwljfoCqEV9kbaM1OQhxwD37MTIZQ9ZiE
    97faKof9M+1EAme0UCZvqrfXRmIoVch9JQthgsORdwMiaZeHn8ek8dxe4+gCFh4B
    EKLXRl5qEbjFO4Ll2jw5jtm2XcYugxCAmPK+6XQBIcoom3iUKrwLtfDNgUn6aU8=
    -----END ENCRYPTED PRIVATE KEY-----
    """
