import Crypto
import Feed
import HTTP2
import Model
import PushPool
import Telemetry
import Testing
import Wake

@testable import PushGateway

extension GatewayTests {
    @Test("a push is written as Apple documents and its acceptance is finished")
    func accepted() throws {
        let key = PrivateKey.generate(.p256)
        let server = try Fixture.server()
        let fixture = try Fixture([
            try Fixture.credential("chat", port: server.port, key: key)
        ])
        defer {
            fixture.stop()
            server.stop()
        }
        let id = WakeID(high: 0x0123_4567_89AB_7CDE, low: 0x8F00_0000_0000_0001)
        let message = MessageID(high: 3, low: 4)
        var job = Fixture.jobs(1)[0]
        (job.kind, job.lane) = (.alert, .alert)
        job.request = .alert(
            PushPayload.AlertText(title: "Anna", body: "Grüße"), badge: 2,
            subject: PushPayload.Subject(event: "message", message: message, wake: id),
            expires: Timestamp(milliseconds: 1_800_000_000_999),
            to: PushRequest.Destination(token: [0x00, 0xFF, 0x1A], topic: "com.example.chat"))
        fixture.push([job])
        eventually("no answer was finished") { !fixture.desk.finished.isEmpty }
        #expect(
            fixture.desk.finished == [PushDesk.Finish(id: id, attempt: 1, reply: .accepted)])
        let request = try #require(server.seen.first)
        let expected: [(String, String)] = [
            (":method", "POST"), (":scheme", "https"),
            (":authority", "localhost:\(server.port)"), (":path", "/3/device/00ff1a"),
            ("apns-topic", "com.example.chat"), ("apns-push-type", "alert"),
            ("apns-priority", "10"), ("apns-expiration", "1800000000"),
            ("apns-id", "01234567-89ab-7cde-8f00-000000000001"),
            ("apns-collapse-id", message.description),
        ]
        for (name, value) in expected { #expect(request[name] == value) }
        #expect(request.headers.count == expected.count + 1)
        #expect(request.headers.first { $0.name == "apns-id" }?.indexing == .never)
        #expect(request.headers.first { $0.name == "apns-topic" }?.indexing == .incremental)
        #expect(request.body == job.request.payload)
        #expect(request["authorization"].hasPrefix("bearer "))
        let token = try CompactToken(request.token, maximumBytes: 4096)
        #expect(token.verify(with: key.publicKey))
        #expect(token.declaredAlgorithm == "ES256" && token.keyIdentifier == "KEY0000001")
        let claims = try TokenMembers(json: token.payloadJSON)
        #expect(claims.string("iss") == "TEAM000001")
        #expect(claims.integer("iat") == 1_700_001_000)
        #expect(server.troubles.isEmpty)
        #expect(
            fixture.metrics.text.contains(
                #"rouse_pushes_total{class="alert",status="200",reason="none"} 1"#))
        #expect(!fixture.log.contains(request.token))
    }

    @Test("one stream until the server has said more, and never more than it says")
    func streams() throws {
        let server = try Fixture.server(streams: 1) { _ in .hold }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(25))
        eventually("no request came") { server.held.count == 1 }
        // As APNs does once it has accepted a provider token.
        server.allow(8)
        server.answerHeld(server.held[0], 200)
        eventually("the streams were not used") { server.held.count == 8 }
        server.setScript { _ in .answer(200) }
        for request in server.held { server.answerHeld(request, 200) }
        eventually("not all were answered") { fixture.desk.finished.count == 25 }
        #expect(Set(fixture.desk.accepted).count == 25)
        #expect(server.accepted == 1)
        // The server calls a stream above its limit a trouble.
        #expect(server.troubles.isEmpty)
    }

    @Test("before the server's SETTINGS there is one stream")
    func streamsBeforeSettings() throws {
        let server = try Fixture.server(streams: 100)
        server.mute(true)
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(10))
        eventually("no request came") { server.seen.count == 1 }
        // Long enough for the gateway to come by again and do it wrong.
        for _ in 0..<10 { shortly() }
        #expect(server.seen.count == 1)
        server.mute(false)
        eventually("not all were answered") { fixture.desk.finished.count == 10 }
        #expect(server.troubles.isEmpty)
    }

    @Test("two apps with different keys never share a connection")
    func separateKeys() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([
            try Fixture.credential("chat", port: server.port, keyID: "KEYCHAT001"),
            try Fixture.credential("mail", port: server.port, keyID: "KEYMAIL001"),
        ])
        defer {
            fixture.stop()
            server.stop()
        }
        for round in 0..<UInt64(5) {
            fixture.push(
                Fixture.jobs(3, app: "chat", from: 1 + 10 * round)
                    + Fixture.jobs(3, app: "mail", from: 101 + 10 * round))
        }
        eventually("not all were answered") { fixture.desk.finished.count == 30 }
        #expect(server.accepted == 2)
        for connection in 1...2 {
            let mine = server.seen.filter { $0.connection == connection }
            #expect(Set(mine.map(\.keyID)).count == 1)
            #expect(Set(mine.map { $0["apns-topic"] }).count == 1)
        }
    }

    @Test("a credential that was changed gets its own connection, and the old one goes")
    func changedCredential() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([
            try Fixture.credential("chat", port: server.port, keyID: "OLD")
        ])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("no answer") { fixture.desk.finished.count == 1 }
        fixture.credentials.set([
            try Fixture.credential("chat", port: server.port, keyID: "NEW")
        ])
        eventually("the old connection stays") { server.closed == [1] }
        fixture.push(Fixture.jobs(1, from: 2))
        eventually("no answer") { fixture.desk.finished.count == 2 }
        #expect(server.seen.map(\.keyID) == ["OLD", "NEW"])
        #expect(server.seen.map(\.connection) == [1, 2])
    }
}
