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

/// Answers that come late, or not at all.
extension GatewayTests {
    @Test("an answer that comes after the stream's deadline is an answer: nothing is sent again")
    func lateAnswer() throws {
        let server = try Fixture.server { _ in .hold }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.streamDeadline = 50
            $0.lateDeadline = 30_000
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("no request") { server.held.count == 1 }
        // The deadline has passed when the PING that asks for the connection comes.
        eventually("the connection was not looked at") { server.pings == 1 }
        for request in server.held { server.answerHeld(request, 200) }
        eventually("no answer") { fixture.desk.finished.count == 1 }
        #expect(fixture.desk.accepted.count == 1 && server.seen.count == 1)
    }

    @Test("a new connection whose first answer is late gets another beside it")
    func lateFirstAnswer() throws {
        let server = try Fixture.server { request in
            request.connection == 1 ? .hold : .answer(200)
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.streamDeadline = 50
            $0.growAfter = 30
            $0.growSpacing = 30
            $0.lateDeadline = 30_000
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(20))
        eventually("one stream holds all up") { fixture.desk.accepted.count == 19 }
        for request in server.held { server.answerHeld(request, 200) }
        eventually("the late one is lost") { fixture.desk.accepted.count == 20 }
        #expect(server.seen.count == 20)
    }

    @Test("a stream that later ones have overtaken is lost: it is not waited for")
    func overtaken() throws {
        let first = FirstOnly()
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.streamDeadline = 100
            $0.lateDeadline = 600_000
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        server.setScript { _ in first.isFirst("lost") ? .hold : .answer(200) }
        fixture.push(Fixture.jobs(10))
        eventually("it was not sent again") { fixture.desk.accepted.count == 10 }
        #expect(server.seen.count == 11)
        #expect(fixture.desk.finished.count { $0.reply == .unanswered } == 1)
    }

    @Test("a refusal that is cut off says nothing: its push is unanswered")
    func halfAnswer() throws {
        let server = try Fixture.server { _ in .half(400) }
        let fixture = try Fixture(
            [try Fixture.credential("chat", port: server.port)], retries: false)
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("nothing came of it") { fixture.desk.finished.map(\.reply) == [.unanswered] }
    }

    @Test("what APNs says of its patience reaches the store")
    func retryAfter() throws {
        let server = try Fixture.server { _ in
            .refusal(
                429, "TooManyRequests", headers: [HTTP2Header("retry-after", "3")])
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("no answer") { !fixture.desk.finished.isEmpty }
        #expect(
            fixture.desk.finished.map(\.reply) == [
                .answered(
                    status: 429, reason: "TooManyRequests", timestamp: nil, retryAfter: 3_000)
            ])
    }

    @Test("a push that gets no stream soon goes back: what it tells may be over")
    func waitsNotForLong() throws {
        // Takes connections and says nothing.
        let (silent, port) = try LoopThread.startReturning(name: "silent") { loop in
            let listener = try Listener.listen(loop: loop, host: "127.0.0.1", port: 0)
            listener.pauseAccepting()
            return listener.port
        }
        let fixture = try Fixture(
            [try Fixture.credential("chat", port: port)], retries: false
        ) { $0.connectDeadline = 600_000 }
        defer {
            fixture.stop()
            silent.stop()
            silent.join()
        }
        fixture.push(Fixture.jobs(1))
        eventually("it is held to its lease") {
            fixture.desk.finished.map(\.reply) == [.notSent]
        }
    }

    @Test("stop() waits for as long as an answer may take")
    func stopOutlastsAnswers() {
        let configuration = PushGatewayConfiguration()
        #expect(configuration.stopDeadline > configuration.streamDeadline)
    }

    @Test("a wrong token is dropped once others of its topic have been taken after it")
    func verdictByAcceptances() throws {
        let server = try Fixture.server { request in
            request.id.hasSuffix("05") ? .refusal(400, "BadDeviceToken") : .answer(200)
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.verdictDelay = 600_000
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        fixture.push(Fixture.jobs(5))
        eventually("not all were answered") { server.seen.count == 5 }
        fixture.push(Fixture.jobs(4, from: 0x10))
        eventually("the verdict waits for its time") { fixture.desk.finished.count == 9 }
        let wrong = fixture.desk.finished.filter { $0.reply != .accepted }
        #expect(wrong.map(\.id.low) == [5] && wrong.allSatisfy { !$0.keepsToken })
    }

    /// A campaign counts what is written down: refusals that are all held for their time would
    /// stand in a row there.
    @Test("dead tokens strewn over a campaign are written down among the accepted, and stop it not")
    func strewnVerdicts() throws {
        let server = try Fixture.server { request in
            request[":path"].hasSuffix("3") ? .refusal(400, "BadDeviceToken") : .answer(200)
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)]) {
            $0.verdictDelay = 4_000
        }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        fixture.push(Fixture.jobs(640, from: 0x100, lane: .campaign))
        eventually("not all were finished") { fixture.desk.finished.count == 640 }
        var trend = RejectionTrend()
        var (refused, hasJumped) = (0, false)
        for push in fixture.desk.finished {
            let isRejected = push.reply != .accepted
            refused += isRejected ? 1 : 0
            trend.add(isRejected: isRejected)
            hasJumped = hasJumped || trend.isJump(percent: 25)
        }
        #expect(refused == 40 && !hasJumped, "\(refused) refused")
        #expect(!fixture.log.contains("push.breaker_tripped"))
    }
}
