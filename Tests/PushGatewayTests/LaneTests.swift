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
    @Test("a backlog of alerts on a stalled connection does not delay a wake")
    func classesAreApart() throws {
        let server = try Fixture.server(streams: 4) { request in
            request["apns-push-type"] == "background" ? .answer(200) : .hold
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(alerts(40))
        eventually("no alert came") { server.held.count == 1 }
        fixture.push(Fixture.jobs(3, from: 1_001))
        eventually("the wakes wait for the alerts") { fixture.desk.accepted.count == 3 }
        #expect(fixture.desk.dueCount > 30)
        // Each class has its own connection.
        #expect(Set(server.seen.map { "\($0.connection) \($0["apns-push-type"])" }).count == 2)
        #expect(server.accepted == 2)
        server.setScript { _ in .answer(200) }
        for request in server.held { server.answerHeld(request, 200) }
        eventually("the alerts did not follow") { fixture.desk.accepted.count == 43 }
        #expect(server.troubles.isEmpty)
    }

    private func alerts(_ count: Int, from first: UInt64 = 1) -> [PushJob] {
        Fixture.jobs(count, from: first, kind: .alert).map { job in
            var job = job
            job.request.pushType = .alert
            return job
        }
    }

    @Test("pushes to unproven tokens go over a connection of their own")
    func probes() throws {
        let server = try Fixture.server { request in
            request.body.contains(UInt8(ascii: "!"))
                ? .refusal(400, "BadDeviceToken") : .answer(200)
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        var wrong = Fixture.jobs(20, from: 100, lane: .probe)
        for index in wrong.indices { wrong[index].request.payload = Array("!".utf8) }
        fixture.push(wrong + Fixture.jobs(20))
        eventually("not all were answered") { fixture.desk.finished.count == 40 }
        let probes = Set(server.seen.filter { $0.body == [33] }.map(\.connection))
        let others = Set(server.seen.filter { $0.body != [33] }.map(\.connection))
        #expect(probes.count == 1 && probes.isDisjoint(with: others))
        // Twenty wrong tokens that were never right say nothing of the credential.
        #expect(!fixture.log.contains("push.breaker_tripped"))
        #expect(fixture.desk.finished.allSatisfy { !$0.keepsToken })
        #expect(
            fixture.metrics.text.contains(
                #"rouse_pushes_total{class="probe",status="400",reason="BadDeviceToken"} 20"#))
    }

    @Test("proven tokens that are wrong all at once pause the credential and are all kept")
    func breaker() throws {
        let server = try Fixture.server()
        let board = PushStatusBoard()
        let fixture = try Fixture(
            [try Fixture.credential("chat", port: server.port)], board: board
        ) {
            $0.verdictDelay = 60_000
            $0.pause = 300
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        fixture.push(Fixture.jobs(5))
        eventually("no answers") { fixture.desk.accepted.count == 5 }
        // Somebody gave the credential the other environment.
        server.setScript { _ in .refusal(400, "BadDeviceToken") }
        fixture.push(Fixture.jobs(30, from: 100))
        eventually("it was not noticed") {
            fixture.log.contains("level=error event=push.breaker_tripped")
        }
        eventually("the status does not tell") { board.current.first?.isTripped == true }
        eventually("metrics do not tell") {
            fixture.metrics.text.contains("rouse_push_credentials_tripped 1")
        }
        eventually("the credential does not pause") { fixture.log.contains("event=push.paused") }
        let refused = fixture.desk.finished.filter {
            $0.reply == .refused(400, "BadDeviceToken")
        }
        #expect(refused.count >= 5 && refused.allSatisfy(\.keepsToken))
        // Mended: one push shows it, and the rest follows.
        server.setScript { _ in .answer(200) }
        fixture.push(Fixture.jobs(3, from: 500))
        eventually("it did not come back") {
            fixture.log.contains("event=push.breaker_reset") && fixture.desk.accepted.count >= 8
        }
        eventually("the status still tells") { board.current.first?.isTripped == false }
    }

    @Test("one wrong token among good ones is dropped after its moment of doubt")
    func verdict() throws {
        let server = try Fixture.server { request in
            request.id.hasSuffix("3") ? .refusal(400, "BadDeviceToken") : .answer(200)
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.verdictDelay = 50
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(9))
        eventually("not all were finished") { fixture.desk.finished.count == 9 }
        let wrong = fixture.desk.finished.filter { $0.reply != .accepted }
        #expect(wrong.map(\.id.low) == [3] && wrong.allSatisfy { !$0.keepsToken })
    }

    @Test("a client certificate instead of a key: no token, and the streams that SETTINGS say")
    func certificate() throws {
        let authority = try DevelopmentCertificates(names: ["localhost"])
        let client = try authority.issuePushClient(topics: ["com.example.chat"])
        let server = try ScriptedServer(
            authority.server, streams: 100, clientAuthorities: authority.authorityPEM
        ) { _ in .hold }
        var credential = try Fixture.credential(
            "chat", port: server.port, authority: authority.authorityPEM)
        credential.privateKeyPEM = client.privateKeyPEM
        credential.certificatePEM = client.certificatePEM
        (credential.keyID, credential.team) = ("", "")
        // A key stands beside it, for another app.
        let key = try Fixture.credential(
            "mail", port: server.port, authority: authority.authorityPEM)
        let fixture = try Fixture([credential, key])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(10))
        eventually("not all streams were used") { server.held.count == 10 }
        #expect(server.subjects.contains { $0.contains("com.example.chat") })
        #expect(server.held.allSatisfy { $0["authorization"].isEmpty })
        fixture.push(Fixture.jobs(10, app: "mail", from: 100))
        eventually("the key was not used") { server.held.count == 11 }
        for _ in 0..<5 { shortly() }
        // Nothing has accepted its token yet.
        #expect(server.held.count { !$0["authorization"].isEmpty } == 1)
        #expect(fixture.metrics.text.contains("rouse_push_provider_tokens_total 1"))
    }

    @Test("a certificate of the other environment, told in GOAWAY, pauses its credential alone")
    func certificateEnvironment() throws {
        let server = try Fixture.server { _ in .hold }
        let fixture = try Fixture([
            try Fixture.credential("chat", port: server.port),
            try Fixture.credential("mail", port: server.port, keyID: "OTHER00001"),
        ])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("no request") { server.held.count == 1 }
        server.goAway(1, last: 0, debug: #"{"reason":"BadCertificateEnvironment"}"#)
        eventually("it was not paused") {
            fixture.log.contains("event=push.paused")
                && fixture.log.contains("BadCertificateEnvironment")
        }
        server.setScript { _ in .answer(200) }
        fixture.push(Fixture.jobs(1, app: "mail", from: 50))
        eventually("the other credential is paused too") {
            fixture.desk.accepted.map(\.low) == [50]
        }
    }

    @Test("a class whose streams are all taken gets further connections, one at a time, bounded")
    func growth() throws {
        let server = try Fixture.server(streams: 3)
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.growAfter = 30
            $0.growSpacing = 30
            $0.connectionsMax = 2
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        server.setScript { request in request.connection == 1 ? .hold : .answer(200) }
        fixture.push(Fixture.jobs(60))
        eventually("it did not grow to where answers come") { fixture.desk.accepted.count >= 57 }
        // Both are full again, and there may be no third.
        server.setScript { _ in .hold }
        fixture.push(Fixture.jobs(20, from: 100))
        eventually("the second was not used") { server.held.count == 6 }
        for _ in 0..<20 { shortly() }
        #expect(server.accepted == 2)
        #expect(server.closed.isEmpty)
        server.setScript { _ in .answer(200) }
        for request in server.held { server.answerHeld(request, 200) }
        eventually("not all were answered") { fixture.desk.accepted.count == 80 }
        #expect(Set(fixture.desk.accepted).count == 80 && server.troubles.isEmpty)
    }

    @Test("an old connection is replaced before it is given up")
    func age() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.connectionAge = 60
            $0.replaceSpacing = 0
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("the old connection is not replaced") { server.accepted >= 2 }
        // It stays until the new one has had an answer.
        #expect(!server.closed.contains(1))
        var count = 1
        eventually("the old connection stays") {
            if fixture.desk.accepted.count == count {
                count += 1
                fixture.push(Fixture.jobs(1, from: UInt64(count)))
            }
            return server.closed.contains(1)
        }
        eventually("no answer") { fixture.desk.accepted.count == count }
    }

    @Test("a connection of an unrelated key is replaced at once")
    func unrelatedKey() throws {
        let server = try Fixture.server { request in
            request.connection == 1
                ? .refusal(403, "UnrelatedKeyIdInToken") : .answer(200)
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("the connection was not replaced") { server.closed == [1] }
        fixture.push(Fixture.jobs(1, from: 2))
        eventually("no answer") { fixture.desk.accepted.count == 1 }
        #expect(server.accepted == 2)
        #expect(!fixture.log.contains("event=push.paused"))
    }

    @Test("a server that ends each connection after one push is not called again and again")
    func noPattern() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.reconnectDelay = 60_000
            $0.reconnectDelayMax = 60_000
        }
        defer {
            fixture.stop()
            server.stop()
        }
        for round in 1...2 {
            fixture.push(Fixture.jobs(1, from: UInt64(round)))
            eventually("no answer") { fixture.desk.accepted.count == round }
            server.cut(round)
            eventually("the end was not noticed") {
                fixture.log.split(separator: "\n")
                    .count { $0.contains("event=push.connection_lost") } == round
            }
        }
        fixture.push(Fixture.jobs(1, from: 3))
        for _ in 0..<20 { shortly() }
        #expect(server.accepted == 2)
    }
}
