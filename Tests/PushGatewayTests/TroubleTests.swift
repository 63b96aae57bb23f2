import Crypto
import EventLoop
import Feed
import HTTP2
import Model
import PushPool
import Telemetry
import Testing
import Wake

@testable import PushGateway

extension GatewayTests {
    @Test("GOAWAY in the middle: what was not processed goes to another connection, nothing twice")
    func goAway() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        server.setScript { _ in .hold }
        fixture.push(Fixture.jobs(10))
        eventually("no requests") { server.held.count == 10 }
        let old = server.held.sorted { $0.stream < $1.stream }
        server.answerHeld(old[0], 200)
        eventually("no answer") { fixture.desk.accepted.count == 1 }
        server.setScript { _ in .answer(200) }
        server.goAway(1, last: old[4].stream, debug: #"{"reason":"ServiceUnavailable"}"#)
        // Those above the last stream: again with the same apns-id, on another connection.
        eventually("they were not sent again") { fixture.desk.accepted.count == 6 }
        let again = server.seen.filter { $0.connection == 2 }
        #expect(again.map(\.id) == old[5...].map(\.id))
        #expect(again.map(\.body) == old[5...].map(\.body))
        #expect(!server.closed.contains(1))
        // Those up to the last stream: their answers still come on the old one.
        for request in old[1...4] { server.answerHeld(request, 200) }
        eventually("the old connection's answers were lost") { fixture.desk.accepted.count == 10 }
        eventually("the old connection stays") { server.closed == [1] }
        #expect(Set(fixture.desk.accepted).count == 10)
        #expect(fixture.desk.finished.allSatisfy { $0.attempt == 1 && $0.reply == .accepted })
        #expect(server.seen.count == 15)
        #expect(fixture.log.contains("reason=ServiceUnavailable"))
        #expect(
            fixture.metrics.text.contains(
                #"rouse_push_goaways_total{reason="ServiceUnavailable"} 1"#))
    }

    @Test("a connection that breaks: only the unanswered are sent again, as another attempt")
    func cut() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        server.setScript { _ in .hold }
        fixture.push(Fixture.jobs(6))
        eventually("no requests") { server.held.count == 6 }
        let old = server.held
        for request in old[..<2] { server.answerHeld(request, 200) }
        eventually("no answers") { fixture.desk.accepted.count == 2 }
        server.setScript { _ in .answer(200) }
        server.cut(1)
        eventually("not all were sent again") { fixture.desk.accepted.count == 6 }
        #expect(Set(fixture.desk.accepted).count == 6)
        let unanswered = fixture.desk.finished.filter { $0.reply == .unanswered }
        #expect(unanswered.count == 4 && unanswered.allSatisfy { $0.attempt == 1 })
        let again = server.seen.filter { $0.connection == 2 }
        #expect(Set(again.map(\.id)) == Set(old[2...].map(\.id)))
    }

    @Test("a refused stream is offered again with the same apns-id")
    func refusedStream() throws {
        let first = FirstOnly()
        let server = try Fixture.server { request in
            first.isFirst(request.id) ? .refuse : .answer(200)
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(5))
        eventually("not all were answered") { fixture.desk.accepted.count == 5 }
        #expect(fixture.desk.finished.allSatisfy { $0.attempt == 1 })
        #expect(server.seen.count == 10)
        #expect(server.accepted == 1)
    }

    @Test("a server that refuses every stream gets the push back to the store")
    func refusedAlways() throws {
        let server = try Fixture.server { _ in .refuse }
        let fixture = try Fixture(
            [try Fixture.credential("chat", port: server.port)], retries: false)
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("it was not given back") { fixture.desk.finished.map(\.reply) == [.notSent] }
        #expect(server.seen.count == 3)
    }

    @Test("silence on a stream: reset at its deadline, retried as another attempt")
    func silence() throws {
        let first = FirstOnly()
        let server = try Fixture.server { request in
            first.isFirst(request.id) ? .hold : .answer(200)
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.streamDeadline = 100
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("it was not sent again") { fixture.desk.accepted.count == 1 }
        #expect(fixture.desk.finished.map(\.reply) == [.unanswered, .accepted])
        #expect(fixture.desk.finished.map(\.attempt) == [1, 2])
        eventually("the stream was not reset") { server.resets == 1 }
        // One stream's silence is not the connection's.
        #expect(server.accepted == 1)
        #expect(server.pings == 1)
    }

    @Test("streams that stay silent one after the other: the connection is replaced")
    func suspect() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.streamDeadline = 50
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        server.setScript { request in request.connection == 1 ? .hold : .answer(200) }
        fixture.push(Fixture.jobs(3))
        eventually("the connection was not replaced") { fixture.desk.accepted.count == 3 }
        #expect(server.accepted == 2)
        #expect(server.closed == [1])
    }

    @Test("a connection that was silent for long must answer a PING before it gets a push")
    func verification() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.verifyAfter = 30
            $0.pingDeadline = 300
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("no answer") { fixture.desk.accepted.count == 1 }
        for _ in 0..<6 { shortly() }
        fixture.push(Fixture.jobs(1, from: 2))
        eventually("no answer") { fixture.desk.accepted.count == 2 }
        #expect(server.pings == 1 && server.accepted == 1)
        for _ in 0..<6 { shortly() }
        // Dead, but its socket does not say so: the push must not be lost on it.
        server.mute(true)
        fixture.push(Fixture.jobs(1, from: 3))
        eventually("the dead connection stays") { server.closed.contains(1) }
        #expect(server.seen.filter { $0.connection == 1 }.count == 2)
        server.mute(false)
        eventually("no answer") { fixture.desk.accepted.count == 3 }
        #expect(fixture.desk.finished.allSatisfy { $0.attempt == 1 })
    }

    @Test("an idle connection is kept, and probed")
    func idle() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.idlePing = 50
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("no PING") { server.pings >= 2 }
        #expect(server.accepted == 1 && server.closed.isEmpty)
    }

    @Test("nobody listens, then somebody does")
    func refusedConnection() throws {
        let reserved = try Fixture.server()
        let port = reserved.port
        reserved.stop()
        let fixture = try Fixture([try Fixture.credential("chat", port: port)])
        fixture.push(Fixture.jobs(3))
        eventually("the refusal was not told") {
            fixture.log.contains("event=push.connect_failed")
                && fixture.log.contains("ECONNREFUSED")
        }
        eventually("it was not tried again") {
            fixture.log.split(separator: "\n").count {
                $0.contains("event=push.connect_failed")
            } > 3
        }
        let server = try Fixture.server(port: port)
        defer {
            fixture.stop()
            server.stop()
        }
        eventually("it did not come back") { fixture.desk.accepted.count == 3 }
        #expect(Set(fixture.desk.accepted).count == 3)
        #expect(server.seen.count == 3)
    }

    @Test("a certificate for another name, or of an unknown authority, is told in plain words")
    func certificates() throws {
        let server = try Fixture.server(names: ["elsewhere.example"])
        let stranger = try DevelopmentCertificates(names: ["localhost"]).authorityPEM
        let fixture = try Fixture([
            try Fixture.credential("chat", port: server.port),
            try Fixture.credential("mail", port: server.port, authority: stranger),
        ])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1) + Fixture.jobs(1, app: "mail", from: 2))
        eventually("the name was not told") {
            fixture.log.contains("the certificate does not name localhost: check the credential")
        }
        eventually("the authority was not told") {
            fixture.log.contains("does not lead to a trusted authority: check the credential")
        }
        #expect(server.seen.isEmpty)
        #expect(fixture.metrics.text.contains(#"rouse_push_connections_total{outcome="tls"}"#))
    }

    @Test("a signing key that cannot be read rests until it is changed")
    func unusableKey() throws {
        let server = try Fixture.server()
        var credential = try Fixture.credential("chat", port: server.port)
        let sound = credential
        credential.privateKeyPEM = "nothing"
        let fixture = try Fixture([credential])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("it was not told") {
            fixture.log.contains("event=push.paused") && fixture.log.contains("signing key")
        }
        fixture.credentials.set([sound])
        eventually("it did not come back") { fixture.desk.accepted.count == 1 }
    }

    @Test("stop waits for the answers of what is under way and gives back what is not")
    func stopWaits() throws {
        let server = try Fixture.server()
        // Takes connections and says nothing: what is claimed for it waits.
        let (silent, port) = try LoopThread.startReturning(name: "silent") { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            listener.pauseAccepting()
            return listener.port
        }
        let fixture = try Fixture(
            [
                try Fixture.credential("chat", port: server.port),
                try Fixture.credential("mail", port: port),
            ], retries: false)
        defer {
            fixture.stop()
            server.stop()
            silent.stop()
            silent.join()
        }
        fixture.warmUp(server)
        server.setScript { _ in .hold }
        fixture.push(Fixture.jobs(2) + Fixture.jobs(1, app: "mail", from: 3))
        eventually("no requests") { server.held.count == 2 && fixture.desk.dueCount == 0 }
        let stopped = Latch()
        let gateway = fixture.gateway
        let stopping = try LoopThread.start(name: "stop") { _ in }
        stopping.perform { _ in
            gateway.stop()
            stopped.arrive()
        }
        // What waits comes back first: so the two are answered while stop() waits for them.
        eventually("it was not given back") {
            fixture.desk.finished.map(\.reply) == [.notSent]
        }
        #expect(server.closed.isEmpty)
        for request in server.held { server.answerHeld(request, 200) }
        #expect(stopped.wait(seconds: 30), "stop does not end")
        #expect(Set(fixture.desk.accepted) == Set(Fixture.jobs(2).map(\.request.id)))
        #expect(fixture.desk.finished.count == 3)
        eventually("the connection was not closed") { server.closed == [1] }
        stopping.stop()
        stopping.join()
    }

    @Test("stop leaves what has no answer to its lease")
    func stopGivesUp() throws {
        let server = try Fixture.server { _ in .hold }
        let fixture = try Fixture(
            [try Fixture.credential("chat", port: server.port)], retries: false
        ) {
            $0.stopDeadline = 100
        }
        defer { server.stop() }
        fixture.push(Fixture.jobs(3))
        eventually("no requests") { server.held.count >= 1 }
        fixture.stop()
        #expect(!fixture.desk.finished.contains { $0.reply == .unanswered })
    }
}
