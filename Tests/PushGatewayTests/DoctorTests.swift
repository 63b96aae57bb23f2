import Crypto
import EventLoop
import Feed
import Model
import PushPool
import Testing

@testable import PushGateway

/// The doctor's words for everything that can be wrong. Against a server that answers as Apple
/// documents; that APNs' own order of checks is the same is an assumption.
extension GatewayTests {
    private func examine(
        _ credential: PushCredentialRecord, wall: UInt64 = SystemClock.wallMilliseconds()
    ) throws -> [CredentialFinding] {
        var configuration = PushGatewayConfiguration()
        configuration.connectDeadline = 2_000
        return try CredentialDoctor.examine(
            credential, wall: wall, configuration: configuration)
    }

    @Test("the doctor sends the provider token that is kept, unless it is old or another key's")
    func doctorsToken() throws {
        let server = try Fixture.server { _ in .refusal(400, "BadDeviceToken") }
        defer { server.stop() }
        let credential = try Fixture.credential("chat", port: server.port)
        let key = ProviderKey(
            team: credential.team, keyID: credential.keyID, pem: credential.privateKeyPEM)
        let wall = SystemClock.wallMilliseconds()
        func sent(minutes: UInt64, fingerprint: [UInt8]) throws -> String? {
            let kept = try ProviderTokenRecord(row: [
                .text(key.team), .text(key.keyID), .blob(fingerprint), .text("kept"),
                .unsigned(wall - minutes * 60_000), .unsigned(wall),
            ])
            server.forget()
            _ = try CredentialDoctor.examine(credential, kept: [kept], wall: wall)
            return server.seen.first?.token
        }
        #expect(try sent(minutes: 49, fingerprint: key.fingerprint) == "kept")
        #expect(try sent(minutes: 51, fingerprint: key.fingerprint) != "kept")
        #expect(try sent(minutes: 49, fingerprint: [1]) != "kept")
    }

    private func bad(_ findings: [CredentialFinding]) -> [String] {
        findings.filter { !$0.isGood }.map(\.check)
    }

    @Test("a right credential is called right for each of its topics, by pushes to no device")
    func rightCredential() throws {
        let server = try Fixture.server { _ in .refusal(400, "BadDeviceToken") }
        defer { server.stop() }
        var credential = try Fixture.credential("chat", port: server.port)
        credential.topics = "com.example.chat\ncom.example.chat.voip\ncom.example.mail.voip"
        let findings = try examine(credential)
        #expect(bad(findings).isEmpty, "\(findings)")
        #expect(findings.map(\.check) == ["key", "topic", "connection", "topic", "topic"])
        // One stands beside its bundle id and is of calls; the other is a bundle id itself.
        #expect(findings[1].text.hasPrefix("com.example.chat.voip: of push types"))
        #expect(
            server.seen.map { $0["apns-topic"] } == ["com.example.chat", "com.example.mail.voip"])
        #expect(
            Set(server.seen.map { $0[":path"] })
                == ["/3/device/" + String(repeating: "0", count: 64)])
        // A month's end and a leap day, both ways.
        #expect(PushResponse.seconds(httpDate: "Thu, 29 Feb 2024 23:59:59 GMT") == 1_709_251_199)
        #expect(PushResponse.seconds(httpDate: "Thu, 29 Feb 2024 25:61 GMT") == nil)
        #expect(CredentialVerdict.clock(skew: -299).isGood)
        #expect(CredentialVerdict.clock(skew: 600).text.contains("10 minutes ahead"))
        #expect(CredentialVerdict.clock(skew: -600).text.contains("10 minutes behind"))
    }

    @Test(
        "what APNs refuses is told with what is wrong",
        arguments: [
            (403, "InvalidProviderToken", "key", "must belong together"),
            (403, "ExpiredProviderToken", "clock", "set this host's clock"),
            (403, "BadEnvironmentKeyInToken", "endpoint", "is not for development"),
            (403, "BadEnvironmentKeyIdInToken", "endpoint", "is not for development"),
            (403, "Forbidden", "key", "forbids"),
            (400, "TopicDisallowed", "topic", "may not push to com.example.chat"),
            (400, "BadTopic", "topic", "is the bundle id right?"),
            (429, "TooManyProviderTokenUpdates", "key", "another process"),
            (503, "ServiceUnavailable", "connection", "try again later"),
            (200, "", "endpoint", "is it APNs?"),
        ])
    func refusedCredential(_ status: Int, _ reason: String, _ check: String, _ words: String)
        throws
    {
        let server = try Fixture.server { _ in
            status == 200 ? .answer(200) : .refusal(status, reason)
        }
        defer { server.stop() }
        let findings = try examine(try Fixture.credential("chat", port: server.port))
        #expect(bad(findings) == [check], "\(findings)")
        #expect(findings.last?.text.contains(words) == true, "\(findings)")
    }

    @Test("no listener, another host's certificate and an unknown authority are told apart")
    func connectionFindings() throws {
        let reserved = try Fixture.server()
        let port = reserved.port
        reserved.stop()
        let nobody = try examine(try Fixture.credential("chat", port: port))
        #expect(bad(nobody) == ["connection"])
        #expect(nobody.last?.text.contains("ECONNREFUSED") == true)
        let server = try Fixture.server(names: ["elsewhere.example"])
        defer { server.stop() }
        let wrong = try examine(try Fixture.credential("chat", port: server.port))
        #expect(wrong.last?.text.contains("does not name localhost") == true, "\(wrong)")
        let stranger = try DevelopmentCertificates(names: ["localhost"]).authorityPEM
        let unknown = try examine(
            try Fixture.credential("chat", port: server.port, authority: stranger))
        #expect(unknown.last?.text.contains("USERTrust") == true, "\(unknown)")
    }

    @Test("a key that cannot sign, and an endpoint of the other environment, need no connection")
    func readings() throws {
        var credential = try Fixture.credential("chat", port: 1)
        credential.privateKeyPEM = "nothing"
        #expect(try examine(credential).map(\.check) == ["key"])
        credential = try Fixture.credential("chat", port: 1)
        credential.host = "api.push.apple.com"
        credential.keyID = "SHORT"
        #expect(
            CredentialReading(credential: credential, wall: 0).findings.first?.text
                .contains("has not 10 characters") == true)
        credential.keyID = "KEY0000001"
        let findings = CredentialReading(credential: credential, wall: 0).findings
        #expect(bad(findings) == ["endpoint"])
        #expect(findings.last?.text.contains("api.sandbox.push.apple.com") == true)
    }

    @Test("a certificate: topics, environment, end, and a GOAWAY that refuses it")
    func certificateFindings() throws {
        let authority = try DevelopmentCertificates(names: ["localhost"], validityDays: 90)
        let server = try ScriptedServer(
            authority.server, clientAuthorities: authority.authorityPEM
        ) { _ in .hold }
        defer { server.stop() }
        func credential(
            _ topics: [String], of listed: String, forDevelopment: Bool = true
        ) throws -> PushCredentialRecord {
            let client = try authority.issuePushClient(
                topics: topics, isForDevelopment: forDevelopment)
            var record = try Fixture.credential(
                "chat", port: server.port, authority: authority.authorityPEM)
            record.topics = listed
            record.privateKeyPEM = client.privateKeyPEM
            record.certificatePEM = client.certificatePEM
            return record
        }
        let foreign = try credential(["com.example.chat"], of: "com.example.mail")
        let wall = SystemClock.wallMilliseconds()
        func read(_ record: PushCredentialRecord, days: UInt64 = 0) -> [CredentialFinding] {
            CredentialReading(credential: record, wall: wall + days * 86_400_000).findings
        }
        #expect(bad(read(foreign)) == ["certificate"])
        #expect(read(foreign)[0].text.contains("not for com.example.mail"))
        let production = try credential(
            ["com.example.chat"], of: "com.example.chat", forDevelopment: false)
        #expect(read(production).contains { $0.text.contains("environment development") })
        let right = try credential(["com.example.chat"], of: "com.example.chat")
        #expect(read(right).allSatisfy { $0.isGood })
        #expect(read(right, days: 80).last?.text.contains("make another one soon") == true)
        #expect(bad(read(right, days: 91)) == ["expiry"])
        server.setScript { request in
            // From another thread than the server's: it only posts.
            server.goAway(
                request.connection, last: 0, debug: #"{"reason":"BadCertificateEnvironment"}"#)
            return .hold
        }
        let refused = try examine(right)
        #expect(bad(refused) == ["endpoint"], "\(refused)")
        var other = right
        other.privateKeyPEM = foreign.privateKeyPEM
        #expect(read(other)[0].text == "the key is not the certificate's")
    }
}
