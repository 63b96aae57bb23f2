import Crypto
import Feed
import HTTP2
import Model
import PushPool
import Testing
import Wake

@testable import PushGateway

/// What pushes cost on the wire, counted to the byte: the real header lists, HTTP/2 and TLS
/// between two ends in memory.
@Suite struct WireSizeTests {
    /// Both ends of a connection with a client certificate or without, TLS included.
    private final class Wire {
        let client: TLSEngine
        let server: TLSEngine
        let http: HTTP2ClientEngine
        let apns: HTTP2ServerEngine
        /// Bytes that would have been written to the client's socket.
        private(set) var sent = 0
        private(set) var requests: [[HTTP2ReceivedHeader]] = []
        private var lastTag: UInt64 = 0
        private let contexts: [TLSContext]

        init(withCertificate: Bool) throws {
            let authority = try DevelopmentCertificates(names: ["localhost"])
            let own = try authority.issuePushClient(topics: ["com.example.chat"])
            let trusted = Array(authority.authorityPEM.utf8)
            let serving = try TLSContext.server(
                certificateChain: Array(authority.server.certificatePEM.utf8),
                privateKey: Array(authority.server.privateKeyPEM.utf8), protocols: ["h2"],
                clientAuthorities: trusted)
            let asking = try TLSContext.client(
                trustedCertificates: trusted, protocols: ["h2"],
                certificateChain: withCertificate ? Array(own.certificatePEM.utf8) : nil,
                privateKey: withCertificate ? Array(own.privateKeyPEM.utf8) : nil)
            contexts = [serving, asking]
            server = serving.makeEngine()
            client = try asking.makeEngine(serverName: "localhost")
            http = try HTTP2ClientEngine()
            var settings = HTTP2ServerSettings()
            settings.maximumConcurrentStreams = 1_000
            apns = try HTTP2ServerEngine(settings: settings)
            try client.startHandshake()
            while !client.isHandshakeComplete || !server.isHandshakeComplete {
                try exchange()
            }
        }

        /// Moves what waits on either side, answering each request with 200.
        func exchange() throws {
            var upward: [UInt8] = []
            while client.isHandshakeComplete, http.wantsOutput {
                let bytes = http.takeOutput(maximumBytes: 16 * 1024)
                if bytes.isEmpty { break }
                try bytes.withUnsafeBytes { try client.send($0) }
                client.takeOutput { upward += $0 }
            }
            client.takeOutput { upward += $0 }
            sent += upward.count
            var events: [HTTP2ServerEvent] = []
            var failure: (any Error)?
            try upward.withUnsafeBytes { raw in
                try server.received(raw) { plain in
                    do { events += try self.apns.received(plain) } catch { failure = error }
                }
            }
            for event in events {
                guard case .request(let stream, let headers, _) = event else { continue }
                requests.append(headers)
                try apns.respond(stream, status: 200, headers: [], body: [])
            }
            var downward: [UInt8] = []
            server.takeOutput { downward += $0 }
            while server.isHandshakeComplete, apns.wantsOutput {
                let bytes = apns.takeOutput(maximumBytes: 16 * 1024)
                if bytes.isEmpty { break }
                try bytes.withUnsafeBytes { try server.send($0) }
                server.takeOutput { downward += $0 }
            }
            try downward.withUnsafeBytes { raw in
                try client.received(raw) { plain in
                    do { _ = try self.http.received(plain) } catch { failure = error }
                }
            }
            if let failure { throw failure }
        }

        func push(_ push: HeldPush, token: String?) throws {
            lastTag += 1
            try http.submit(
                headers: push.headers(authority: "api.push.apple.com", token: token),
                body: push.job.request.payload, tag: lastTag)
        }
    }

    /// A push with a token of 32 bytes and a payload of 150.
    private func push(_ number: UInt64, lane: PushClass, chance: inout UInt64) -> HeldPush {
        func next() -> UInt64 {
            chance = chance &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return chance
        }
        var token: [UInt8] = []
        for _ in 0..<32 { token.append(UInt8(truncatingIfNeeded: next() >> 40)) }
        let head = #"{"aps":{"alert":""#
        let text = head + String(repeating: "x", count: 150 - head.utf8.count - 3) + #""}}"#
        let request = PushRequest(
            token: token, topic: "com.example.chat", pushType: .alert, priority: 10,
            expiration: 1_800_000_000, collapseID: "0190a1b2-c3d4-7123-8456-789abcdef012",
            id: WakeID(high: next() & ~0xF000 | 0x7000, low: next()),
            payload: Array(text.utf8))
        var job = Fixture.jobs(1, from: number, kind: .alert, lane: lane)[0]
        job.request = request
        return HeldPush(job: job, claimedAt: Instant(milliseconds: 0))
    }

    private func bytes(_ count: Int, withCertificate: Bool, batch: Int = 250) throws -> Int {
        let wire = try Wire(withCertificate: withCertificate)
        let provider = try ProviderSigner(
            ProviderKey(
                team: "TEAM000001", keyID: "KEY0000001",
                pem: PrivateKey.generate(.p256).pem))
        let token =
            withCertificate
            ? nil
            : try provider.sign(wall: 1_700_000_000_000)
        try wire.exchange()
        var chance: UInt64 = 7
        var number: UInt64 = 0
        while number < count {
            for _ in 0..<min(batch, count - Int(number)) {
                number += 1
                try wire.push(push(number, lane: .campaign, chance: &chance), token: token)
            }
            // The server's flow control may want several rounds.
            for _ in 0..<batch where wire.requests.count < Int(number) { try wire.exchange() }
        }
        try wire.exchange()
        #expect(wire.requests.count == count)
        return wire.sent
    }

    @Test("15,000 pushes of 150 bytes with a certificate are at most 4.0 MB on the socket")
    func campaign() throws {
        let certificate = try bytes(15_000, withCertificate: true)
        print("15,000 pushes: \(certificate) bytes with a certificate")
        #expect(certificate <= 4_000_000)
        // Even if each left alone, in a TLS record of its own.
        let single = try bytes(1_000, withCertificate: true, batch: 1)
        #expect(single <= 4_000_000 / 15)
        // A provider token crosses the wire whole with each: the library never indexes it.
        let token = try bytes(1_500, withCertificate: false) * 10
        print("with a provider token: about \(token) bytes")
        #expect(token > certificate)
    }

    @Test("no `:path` and no `apns-id` ever enters the table of header compression")
    func neverIndexed() throws {
        for lane in PushClass.allCases {
            let wire = try Wire(withCertificate: true)
            var chance: UInt64 = 9
            let one = push(1, lane: lane, chance: &chance)
            try wire.push(one, token: nil)
            try wire.exchange()
            let first = wire.sent
            // Twice the same: what was indexed would be one byte now.
            try wire.push(one, token: nil)
            try wire.exchange()
            let second = wire.sent - first
            for request in wire.requests {
                #expect(request.first { $0.name == ":path" }?.indexing == .other)
                let id = request.first { $0.name == "apns-id" }
                #expect(id == nil ? lane == .campaign : id?.indexing == .never, "\(lane)")
                #expect((request["apns-collapse-id"] ?? "").utf8.count == 36)
            }
            // HEADERS, DATA and one record around them, the path's Huffman code among it.
            #expect(second > 22 + 9 + 9 + 150 + 50, "\(lane): \(second)")
        }
    }
}
