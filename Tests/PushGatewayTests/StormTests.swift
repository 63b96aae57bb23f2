import APNsSimulator
import Feed
import Foundation
import Model
import PushPool
import Testing
import Wake

@testable import PushGateway

/// APNs in trouble, between a real store and the simulator: each alert is on its screen once.
/// Prints what was sent, answered and sent again.
extension GatewayTests {
    /// One kind of trouble, and how long until Apple wants to hear of the pushes again.
    struct Storm: CustomTestStringConvertible, Sendable {
        var name: String
        /// Hit so many pushes each, the first one first.
        var faults: [(FaultScript.Fault, count: Int)]
        /// So many pushes go well before each that is hit.
        var between = 0
        /// After which time Apple wants to hear of those that were hit again, the last one again
        /// and again.
        var patience: [Milliseconds] = []

        var testDescription: String { name }
    }

    static let storms: [Storm] = [
        Storm(
            name: "GOAWAY in mid-stream",
            faults: [(.goAway(unprocessed: 5, code: 0, reason: nil), count: 4)], between: 8),
        Storm(name: "REFUSED_STREAM", faults: [(.reset(code: 7), count: 60)]),
        Storm(name: "stalls, nothing arrived", faults: [(.silence(delivers: false), count: 20)]),
        Storm(name: "stalls, all arrived", faults: [(.silence(delivers: true), count: 20)]),
        Storm(name: "connections cut", faults: [(.cut, count: 4)], between: 8),
        Storm(
            name: "429 storm",
            faults: [(.answer(status: 429, reason: "TooManyRequests"), count: 120)],
            patience: [60_000]),
        Storm(
            name: "503 storm",
            faults: [(.answer(status: 503, reason: "ServiceUnavailable"), count: 90)],
            patience: [5_000, 900_000]),
    ]

    @Test("a storm loses no alert and doubles none on a screen", arguments: storms)
    func storm(_ storm: Storm) throws {
        var configuration = PushGatewayConfiguration()
        configuration.tick = 20
        configuration.streamDeadline = 300
        configuration.lateDeadline = 600
        configuration.reconnectDelay = 20
        configuration.reconnectDelayMax = 50
        configuration.replaceSpacing = 20
        configuration.connectSpacing = 20
        configuration.refusalDelay = 20
        configuration.refusalDelayMax = 50
        let city = try City(grace: 60_000, configuration: configuration)
        defer { city.stop() }
        let users = (0..<60).map { "user\($0)" }
        for user in users {
            let session = try city.login(user)
            try city.commit(
                .endSession(EndSession(session: session, applied: 0, expectedWithin: 0)))
        }
        let conversation = try city.converse(users + ["bob"])
        // Their tokens are proven then, and the connection has all its streams.
        try city.publish("All is well.", to: conversation, from: "bob", urgency: .urgent)
        eventually("not everybody was told") {
            users.allSatisfy { city.history($0).first?.acceptedAt != nil }
        }
        let before = city.pushes.count
        for (fault, count) in storm.faults {
            for _ in 0..<count { city.script(fault, count: 1, skip: storm.between) }
        }
        city.slow(streams: 1_000, milliseconds: 20)
        try city.publish("Everybody!", to: conversation, from: "bob", urgency: .urgent)
        var patience = storm.patience
        var (seen, looks) = (0, 0)
        eventually("not everybody was told") {
            // The clock goes on when all that can be sent has been.
            let count = city.pushes.count
            (seen, looks) = (count, count == seen ? looks + 1 : 0)
            if let wait = patience.first, looks == 50 {
                if patience.count > 1 { patience.removeFirst() }
                city.advance(milliseconds: wait + 1_000)
                looks = 0
            }
            return users.allSatisfy { user in
                let alerts = city.history(user)
                return alerts.count == 2 && alerts[0].acceptedAt != nil
            }
        }
        let pushes = city.pushes.dropFirst(before)
        let shown = users.map { city.screen($0).count }
        let answered = pushes.count { $0.status != nil }
        let hitPushes = pushes.count { $0.fault != nil }
        print(
            "\(storm.name): 60 alerts, \(hitPushes) pushes hit, \(pushes.count) sent, "
                + "\(answered) answered, \(pushes.count - 60) sent again, "
                + "lost \(shown.count { $0 < 2 }), "
                + "doubled on screens \(shown.count { $0 > 2 })")
        #expect(shown.allSatisfy { $0 == 2 }, "\(shown)")
        #expect(hitPushes == storm.faults.reduce(0) { $0 + $1.count }, "so many were asked for")
        // One push is one id, however often it is sent.
        let ids = Dictionary(grouping: pushes, by: \.token).mapValues { Set($0.map(\.apnsId)) }
        #expect(ids.count == 60 && ids.values.allSatisfy { $0.count == 1 })
    }
}
