import Crypto
import Feed
import Model
import PushPool
import Telemetry
import Testing
import Wake

@testable import PushGateway

extension GatewayTests {
    /// Apple's table, and whether the credential rests after the answer.
    static let refusals: [(status: Int, reason: String, pauses: Bool)] = [
        (400, "BadCollapseId", false), (400, "BadDeviceToken", false),
        (400, "BadExpirationDate", false), (400, "BadMessageId", false),
        (400, "BadPriority", false), (400, "BadTopic", false),
        (400, "DeviceTokenNotForTopic", false), (400, "DuplicateHeaders", false),
        (400, "IdleTimeout", false), (400, "InvalidPushType", false),
        (400, "MissingDeviceToken", false), (400, "MissingTopic", false),
        (400, "PayloadEmpty", false), (400, "TopicDisallowed", false),
        (403, "BadCertificate", true), (403, "BadCertificateEnvironment", true),
        (403, "ExpiredProviderToken", false), (403, "Forbidden", true),
        (403, "InvalidProviderToken", true), (403, "MissingProviderToken", true),
        (403, "UnrelatedKeyIdInToken", false), (403, "BadEnvironmentKeyIdInToken", true),
        (403, "BadEnvironmentKeyInToken", true), (404, "BadPath", false),
        (405, "MethodNotAllowed", false), (410, "ExpiredToken", false),
        (410, "Unregistered", false), (413, "PayloadTooLarge", false),
        (429, "TooManyProviderTokenUpdates", true), (429, "TooManyRequests", false),
        (500, "InternalServerError", false), (503, "ServiceUnavailable", false),
        (503, "Shutdown", false), (418, "NewReason", false),
    ]

    @Test(
        "every answer is finished as it came, and pauses what it must", arguments: refusals
    )
    func refused(_ status: Int, _ reason: String, _ pauses: Bool) throws {
        let server = try Fixture.server { _ in
            .refusal(status, reason, timestamp: status == 410 ? 1_700_000_000_000 : nil)
        }
        let credential = try Fixture.credential("chat", port: server.port)
        let fixture = try Fixture([credential])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("no answer was finished") { !fixture.desk.finished.isEmpty }
        let time = status == 410 ? Timestamp(milliseconds: 1_700_000_000_000) : nil
        #expect(
            fixture.desk.finished.map(\.reply) == [
                .answered(status: UInt64(status), reason: reason, timestamp: time)
            ])
        server.setScript { _ in .answer(200) }
        // A refused topic rests by itself.
        fixture.push(Fixture.jobs(1, from: 2, topic: "com.example.other"))
        if pauses {
            for _ in 0..<5 { shortly() }
            #expect(fixture.desk.finished.count == 1)
            #expect(server.seen.count == 1)
            #expect(fixture.log.contains("level=error event=push.paused"))
            #expect(fixture.log.contains(reason))
            // Mended by administration: a changed credential begins anew.
            var mended = credential
            mended.changedAt = Timestamp(milliseconds: 2)
            fixture.credentials.set([mended])
        }
        eventually("the next push was not sent") { fixture.desk.accepted.count == 1 }
    }

    @Test("after its pause a credential is tried with one push, then with all")
    func pauseEnds() throws {
        let server = try Fixture.server { _ in .refusal(403, "InvalidProviderToken") }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.pause = 150
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("no answer was finished") { !fixture.desk.finished.isEmpty }
        server.setScript { _ in .hold }
        fixture.push(Fixture.jobs(10, from: 2))
        eventually("it was not tried again") { server.held.count == 1 }
        #expect(server.seen.count == 2)
        server.setScript { _ in .answer(200) }
        server.answerHeld(server.held[0], 200)
        eventually("the rest did not follow") { fixture.desk.accepted.count == 10 }
        #expect(fixture.log.contains("event=push.resumed"))
    }

    @Test("too many provider tokens: every credential of the key rests, the token stays")
    func tokenUpdates() throws {
        let key = PrivateKey.generate(.p256)
        let server = try Fixture.server { request in
            request["apns-topic"].hasSuffix("chat")
                ? .refusal(429, "TooManyProviderTokenUpdates") : .answer(200)
        }
        let fixture = try Fixture([
            try Fixture.credential("chat", port: server.port, key: key),
            try Fixture.credential("mail", port: server.port, key: key),
            try Fixture.credential("news", port: server.port, keyID: "OTHER00001"),
        ])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1, app: "mail"))
        eventually("no answer") { fixture.desk.finished.count == 1 }
        fixture.push(Fixture.jobs(1, app: "chat", from: 2))
        eventually("the key does not rest") {
            fixture.desk.paused.map(\.app) == [AppID("chat"), AppID("mail")]
        }
        fixture.push(Fixture.jobs(1, app: "news", from: 3))
        eventually("another key rests too") { fixture.desk.accepted.count == 2 }
        let tokens = server.seen.filter { $0.keyID == "KEY0000001" }.map(\.token)
        #expect(tokens.count == 2 && Set(tokens).count == 1)
    }

    @Test("one provider token for all connections of a key, renewed after 50 minutes")
    func sharedToken() throws {
        let key = PrivateKey.generate(.p256)
        let server = try Fixture.server()
        let fixture = try Fixture([
            try Fixture.credential("chat", port: server.port, key: key),
            try Fixture.credential("mail", port: server.port, key: key),
        ])
        defer {
            fixture.stop()
            server.stop()
        }
        func push(_ number: UInt64) {
            fixture.push(
                Fixture.jobs(1, app: "chat", from: number)
                    + Fixture.jobs(1, app: "mail", from: 100 + number))
            eventually("no answer") { fixture.desk.accepted.count == 2 * Int(number) }
        }
        push(1)
        fixture.clocks.advance(minutes: 49)
        push(2)
        #expect(Set(server.seen.map(\.token)).count == 1)
        fixture.clocks.advance(minutes: 1)
        push(3)
        #expect(Set(server.seen.suffix(2).map(\.token)).count == 1)
        #expect(Set(server.seen.map(\.token)).count == 2)
        #expect(server.accepted == 2)
    }

    @Test("without a provider token nothing is sent; the store is asked until it gives one")
    func awaitedToken() throws {
        let server = try Fixture.server()
        let fixture = try Fixture(
            [try Fixture.credential("chat", port: server.port)], tokenFailures: 3)
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(3) + Fixture.jobs(1, from: 4, kind: .alert))
        eventually("no answers") { fixture.desk.accepted.count == 4 }
        #expect(fixture.desk.failingTokens == 0)
        #expect(Set(server.seen.map(\.token)).count == 1 && server.seen[0].token.count > 100)
        #expect(fixture.metrics.text.contains("rouse_push_provider_tokens_total 1"))
        #expect(fixture.desk.finished.allSatisfy { $0.attempt == 1 })
    }

    @Test("how long the message of an accepted push has waited is measured, of wakes and of alerts")
    func waits() throws {
        let server = try Fixture.server {
            $0[":path"].hasSuffix("02") ? .refusal(410, "Unregistered") : .answer(200)
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        let published = fixture.clocks.clocks.wall() - 4_000
        var jobs = Fixture.jobs(2) + Fixture.jobs(3, from: 3, kind: .alert)
        for index in 0..<4 { jobs[index].publishedAt = Timestamp(milliseconds: published) }
        fixture.push(jobs)
        eventually("no answers") { fixture.desk.finished.count == 5 }
        let lines = fixture.metrics.text.split(separator: "\n")
        let series = "rouse_publish_told_seconds"
        #expect(lines.contains("\(series)_count{app=\"chat\",by=\"wake\"} 1"))
        #expect(lines.contains("\(series)_count{app=\"chat\",by=\"alert\"} 2"))
        #expect(lines.contains("\(series)_bucket{app=\"chat\",by=\"wake\",le=\"2.5\"} 0"))
    }

    @Test("an expired provider token: another token on another connection")
    func expiredToken() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("no answer") { fixture.desk.accepted.count == 1 }
        fixture.clocks.advance(minutes: 20)
        server.setScript { _ in .refusal(403, "ExpiredProviderToken") }
        fixture.push(Fixture.jobs(1, from: 2))
        eventually("the connection was not replaced") { server.closed == [1] }
        server.setScript { _ in .answer(200) }
        fixture.push(Fixture.jobs(1, from: 3))
        eventually("no answer") { fixture.desk.accepted.count == 2 }
        #expect(server.seen.map(\.connection) == [1, 1, 2])
        let tokens = server.seen.map(\.token)
        #expect(tokens[0] == tokens[1] && tokens[1] != tokens[2])
    }

    @Test("a fault of APNs: another connection first, and the old one goes when that has answered")
    func serverFault() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        server.setScript { _ in .hold }
        fixture.push(Fixture.jobs(2))
        eventually("no requests") { server.held.count == 2 }
        let requests = server.held
        server.answerHeld(requests[0], 503, body: #"{"reason":"Shutdown"}"#)
        eventually("no other connection") { server.accepted == 2 }
        #expect(server.closed.isEmpty)
        server.setScript { _ in .answer(200) }
        server.answerHeld(requests[1], 200)
        eventually("no answer on the old connection") { fixture.desk.accepted.count == 1 }
        #expect(server.closed.isEmpty)
        // Whichever of the two it leaves on before the new one is up.
        eventually("the old connection stays") {
            fixture.push(Fixture.jobs(1, from: 100 + UInt64(fixture.desk.finished.count)))
            shortly()
            return server.closed == [1]
        }
        let (finished, accepted) = (fixture.desk.finished.count, fixture.desk.accepted.count)
        // A second fault so soon must not begin a pattern of connects.
        server.setScript { _ in .refusal(500, "InternalServerError") }
        fixture.push(Fixture.jobs(3, from: 3))
        eventually("no answers") { fixture.desk.finished.count >= finished + 3 }
        server.setScript { _ in .answer(200) }
        fixture.push(Fixture.jobs(1, from: 6))
        eventually("no answer") { fixture.desk.accepted.count > accepted }
        #expect(server.accepted == 2)
    }

    @Test("an answer that the store cannot take is offered again")
    func finishFails() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.desk.failFinishes(2)
        fixture.push(Fixture.jobs(1))
        eventually("the answer was lost") { fixture.desk.accepted.count == 1 }
        #expect(server.seen.count == 1)
        #expect(fixture.metrics.text.contains("rouse_push_finish_failures_total 2"))
    }
}
