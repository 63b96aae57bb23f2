import Testing

@testable import Crypto

@Suite struct HandshakeTests {
    @Test(arguments: Delivery.allCases)
    func connectsAndCarriesData(delivery: Delivery) throws {
        let pair = try Fixture().pair(delivery: delivery)
        try pair.connect()
        #expect(pair.clientError == nil && pair.serverError == nil)
        #expect(pair.client.isHandshakeComplete && pair.server.isHandshakeComplete)
        #expect(pair.client.negotiatedVersion == .tls13)
        #expect(pair.server.negotiatedProtocol == "rouse/1")
        #expect(pair.client.negotiatedProtocol == "rouse/1")
        try pair.sendToServer(pattern(40_000))
        try pair.sendToClient(pattern(3))
        pair.pump()
        #expect(pair.serverReceived == pattern(40_000))
        #expect(pair.clientReceived == pattern(3))
    }

    @Test(arguments: [Delivery.whole, .byteByByte])
    func closeNotifyEndsBothWays(delivery: Delivery) throws {
        let pair = try Fixture().pair(delivery: delivery)
        try pair.connect()
        try pair.sendToServer([1, 2, 3])
        pair.client.close()
        pair.pump()
        #expect(pair.serverReceived == [1, 2, 3])
        #expect(pair.server.peerClosed && !pair.client.peerClosed)
        #expect(throws: TLSError.closed) { try pair.sendToServer([4]) }
        // RFC 8446 section 6.1: the other direction stays open; here its data is dropped.
        try pair.sendToClient([5])
        pair.server.close()
        pair.pump()
        #expect(pair.client.peerClosed && pair.clientReceived.isEmpty)
        #expect(pair.clientError == nil && pair.serverError == nil)
    }

    @Test func sendsNothingBeforeTheHandshake() throws {
        let pair = try Fixture().pair()
        #expect(throws: TLSError.handshakeIncomplete) { try pair.sendToServer([1]) }
        try pair.connect()
        try pair.sendToServer([1])
        pair.pump()
        #expect(pair.serverReceived == [1])
    }

    @Test func picksTheServersFavouriteProtocol() throws {
        let fixture = try Fixture()
        let pair = EnginePair(
            client: try fixture.client(protocols: ["a", "b"]).makeEngine(serverName: "127.0.0.1"),
            server: try fixture.server(protocols: ["c", "b", "a"]).makeEngine())
        try pair.connect()
        #expect(pair.client.negotiatedProtocol == "b" && pair.server.negotiatedProtocol == "b")
    }

    @Test func refusesForeignProtocols() throws {
        let fixture = try Fixture()
        let pair = EnginePair(
            client: try fixture.client(protocols: ["h2"]).makeEngine(serverName: "localhost"),
            server: try fixture.server().makeEngine())
        try pair.connect()
        #expect(pair.serverError == .noCommonProtocol)
        #expect(pair.clientError == .alertReceived(120))
    }

    @Test func refusesClientsWithoutProtocol() throws {
        let fixture = try Fixture()
        let pair = EnginePair(
            client: try fixture.client(protocols: []).makeEngine(serverName: "localhost"),
            server: try fixture.server().makeEngine())
        try pair.connect()
        #expect(pair.serverError == .noCommonProtocol)
        #expect(pair.clientError == .alertReceived(120))
    }

    @Test func clientRefusesServersWithoutProtocol() throws {
        let fixture = try Fixture()
        let pair = EnginePair(
            client: try fixture.client().makeEngine(serverName: "localhost"),
            server: try fixture.server(protocols: []).makeEngine())
        try pair.connect()
        #expect(pair.clientError == .noCommonProtocol)
        #expect(pair.server.peerClosed)
        #expect(!pair.client.isHandshakeComplete)
    }

    @Test func takesClientsWithoutProtocolIfTold() throws {
        let fixture = try Fixture()
        let pair = EnginePair(
            client: try fixture.client(protocols: []).makeEngine(serverName: "localhost"),
            server: try fixture.server(requireProtocol: false).makeEngine())
        try pair.connect()
        #expect(pair.server.isHandshakeComplete && pair.server.negotiatedProtocol == nil)
    }

    @Test(arguments: ["example.org", "127.0.0.2", "localhost.example.org"])
    func refusesWrongHosts(name: String) throws {
        let fixture = try Fixture()
        let pair = EnginePair(
            client: try fixture.client().makeEngine(serverName: name),
            server: try fixture.server().makeEngine())
        try pair.connect()
        #expect(pair.clientError == .peerCertificate(.wrongHost))
        #expect(pair.serverError != nil && !pair.server.isHandshakeComplete)
        let lax = EnginePair(
            client: try fixture.client().makeEngine(serverName: name, verifyHost: false),
            server: try fixture.server().makeEngine())
        try lax.connect()
        #expect(lax.client.isHandshakeComplete)
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.0.0.7", true), ("::1", true), ("0:0:0:0:0:0:0:1", true),
        ("LOCALHOST", true), ("a.example.test", true), ("example.test", false),
        ("a.b.example.test", false), ("::2", false),
    ])
    func takesEveryNameOfTheCertificate(name: String, isTaken: Bool) throws {
        let certificates = try DevelopmentCertificates(
            names: ["localhost", "127.0.0.1", "127.0.0.7", "::1", "*.example.test"])
        let server = try TLSContext.server(
            certificateChain: Array(certificates.server.certificatePEM.utf8),
            privateKey: Array(certificates.server.privateKeyPEM.utf8), protocols: ["rouse/1"])
        let client = try TLSContext.client(
            trustedCertificates: Array(certificates.authorityPEM.utf8), protocols: ["rouse/1"])
        let pair = EnginePair(
            client: try client.makeEngine(serverName: name), server: server.makeEngine())
        try pair.connect()
        #expect(pair.client.isHandshakeComplete == isTaken)
        #expect(pair.clientError == (isTaken ? nil : .peerCertificate(.wrongHost)))
    }

    @Test func refusesUnknownAuthorities() throws {
        let pair = EnginePair(
            client: try Fixture().client().makeEngine(serverName: "localhost"),
            server: try Fixture().server().makeEngine())
        try pair.connect()
        #expect(pair.clientError == .peerCertificate(.untrusted))
        #expect(pair.serverError == .alertReceived(48))
    }

    @Test func clientRefusesExpiredCertificates() throws {
        let fixture = try Fixture(validityShift: -10 * 86_400)
        let notAfter = try #require(try fixture.server().notAfter)
        var limits = TLSLimits()
        limits.checkTime = notAfter + 2000
        let pair = EnginePair(
            client: try fixture.client(limits: limits).makeEngine(serverName: "localhost"),
            server: try fixture.server().makeEngine())
        try pair.connect()
        #expect(pair.clientError == .peerCertificate(.expired))
        #expect(pair.serverError == .alertReceived(45))
    }

    @Test func speaksTLS12OnlyIfAllowed() throws {
        let fixture = try Fixture()
        var limits = TLSLimits()
        limits.maximumVersion = .tls12
        for (minimum, version) in [(TLSVersion.tls12, TLSVersion.tls12), (.tls13, nil)] {
            let pair = EnginePair(
                client: try fixture.client(limits: limits).makeEngine(serverName: "localhost"),
                server: try fixture.server(minimumVersion: minimum).makeEngine())
            try pair.connect()
            #expect(pair.server.negotiatedVersion == version)
            if version == nil {
                #expect(pair.serverError == .unsupportedVersion)
                #expect(pair.clientError == .alertReceived(70))
            } else {
                try pair.sendToServer(pattern(20_000))
                pair.client.close()
                pair.pump()
                #expect(pair.serverReceived == pattern(20_000) && pair.server.peerClosed)
            }
        }
    }

    @Test func asksForClientCertificates() throws {
        let fixture = try Fixture()
        let authority = Array(fixture.certificates.authorityPEM.utf8)
        let server = try fixture.server(clientAuthorities: authority)
        let issued = try fixture.certificates.issueClient(name: "com.example.app")
        let context = try TLSContext.client(
            trustedCertificates: authority, protocols: ["rouse/1"],
            certificateChain: Array(issued.certificatePEM.utf8),
            privateKey: Array(issued.privateKeyPEM.utf8))
        let known = EnginePair(
            client: try context.makeEngine(serverName: "localhost"), server: server.makeEngine())
        try known.connect()
        #expect(known.server.peerCertificateSubject == "CN=com.example.app")
        let bare = EnginePair(
            client: try fixture.client().makeEngine(serverName: "localhost"),
            server: server.makeEngine())
        try bare.connect()
        #expect(bare.server.isHandshakeComplete && bare.server.peerCertificateSubject == nil)
    }
}
