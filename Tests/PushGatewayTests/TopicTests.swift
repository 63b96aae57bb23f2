import Crypto
import Feed
import Model
import PushPool
import Telemetry
import Testing
import Wake

@testable import PushGateway

/// What APNs says of one topic is no matter of the others that go out with the same credential.
extension GatewayTests {
    private static let good = "com.example.chat"
    private static let bad = "com.example.typo"

    private func fixture(
        _ server: ScriptedServer, _ change: (inout PushGatewayConfiguration) -> Void = { _ in }
    ) throws -> Fixture {
        var credential = try Fixture.credential("chat", port: server.port)
        credential.topics = Self.good + "\n" + Self.bad
        return try Fixture([credential], change: change)
    }

    @Test(
        "a topic that APNs refuses rests by itself",
        arguments: [(400, "TopicDisallowed"), (400, "BadTopic")])
    func refusedTopic(_ status: Int, _ reason: String) throws {
        let server = try Fixture.server { request in
            request["apns-topic"] == Self.bad ? .refusal(status, reason) : .answer(200)
        }
        let fixture = try fixture(server)
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1, topic: Self.bad))
        eventually("no answer was finished") { fixture.desk.finished.count == 1 }
        fixture.push(
            Fixture.jobs(3, from: 10, topic: Self.bad) + Fixture.jobs(5, from: 20))
        eventually("the other topic's pushes wait") { fixture.desk.accepted.count == 5 }
        #expect(server.seen.count { $0["apns-topic"] == Self.bad } == 1)
        #expect(fixture.desk.dueCount == 3)
        #expect(fixture.count("push.topic_paused") == 1)
        #expect(fixture.count("push.paused") == 0)
    }

    @Test("after its pause one push asks for the topic, and the others follow when it is taken")
    func topicResumes() throws {
        let server = try Fixture.server { request in
            request["apns-topic"] == Self.bad ? .refusal(400, "TopicDisallowed") : .answer(200)
        }
        let fixture = try fixture(server) { $0.pause = 100 }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        fixture.push(Fixture.jobs(1, topic: Self.bad))
        eventually("no answer was finished") { fixture.desk.finished.count == 1 }
        server.setScript { _ in .hold }
        fixture.push(Fixture.jobs(10, from: 10, topic: Self.bad))
        eventually("it was not tried again") { server.held.count == 1 }
        fixture.push(Fixture.jobs(4, from: 30))
        eventually("the good topic waits for the probe") { server.held.count == 5 }
        #expect(server.held.count { $0["apns-topic"] == Self.bad } == 1)
        server.setScript { _ in .answer(200) }
        for request in server.held { server.answerHeld(request, 200) }
        eventually("the rest did not follow") { fixture.desk.accepted.count == 14 }
    }

    @Test("a push that probes for a paused credential may be of a topic that APNs refuses")
    func topicRefusalProves() throws {
        let server = try Fixture.server { _ in .refusal(403, "InvalidProviderToken") }
        let fixture = try fixture(server) { $0.pause = 200 }
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1, topic: Self.bad))
        eventually("it was not paused") { fixture.count("push.paused") == 1 }
        // The key is right again, the topic never was.
        server.setScript { request in
            request["apns-topic"] == Self.bad ? .refusal(400, "TopicDisallowed") : .hold
        }
        fixture.push(Fixture.jobs(1, from: 2, topic: Self.bad))
        eventually("it was not tried again") {
            fixture.desk.finished.contains { $0.reply == .refused(400, "TopicDisallowed") }
        }
        fixture.push(Fixture.jobs(20, from: 10))
        // APNs has looked at the key before the topic: no other push has to show that it is right.
        eventually("the good topic waits") { server.held.count == 20 }
        for request in server.held { server.answerHeld(request, 200) }
        eventually("the good topic waits for more") { fixture.desk.accepted.count == 20 }
        #expect(fixture.count("push.paused") == 1)
    }
}
