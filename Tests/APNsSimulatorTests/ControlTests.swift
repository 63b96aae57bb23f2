import APNsSimulator
import Foundation
import Testing

struct ControlTests {
    @Test func badCommandsAreAnswered() throws {
        let harness = try SimulatorHarness()
        func refusal(_ request: ControlRequest) -> SimulatorClientError? {
            do {
                try harness.client.call(request)
                return nil
            } catch {
                return error as? SimulatorClientError
            }
        }
        #expect(refusal(ControlRequest(.deviceOpen)) == .refused("`device` is missing"))
        #expect(
            refusal(ControlRequest(.deviceOpen, device: "x")) == .refused("unknown device `x`"))
        _ = try harness.device("phone")
        var again = ControlRequest(.deviceCreate, device: "phone")
        again.topic = CheckFixture.topic
        #expect(refusal(again) == .refused("device `phone` exists"))
        #expect(refusal(ControlRequest(.deviceSend, device: "phone")) != nil)
        var key = ControlRequest(.keyAdd)
        key.kid = "K"
        key.team = "T"
        key.publicKey = "nonsense"
        #expect(refusal(key) != nil)
        // The connection has survived it all.
        #expect(try harness.client.call(ControlRequest(.devices)).devices == ["phone"])
    }

    @Test func manyCommandsAtOnceKeepTheirOrder() throws {
        let harness = try SimulatorHarness()
        var requests: [ControlRequest] = []
        for number in 0..<200 {
            var request = ControlRequest(.deviceCreate, device: "phone \(number)")
            request.topic = number == 77 ? "org.example.unknown" : CheckFixture.topic
            requests.append(request)
        }
        let responses = try harness.client.calls(requests)
        #expect(responses.count == 200)
        #expect(responses.enumerated().allSatisfy { $1.ok == ($0 != 77) })
        let names = try harness.client.call(ControlRequest(.devices)).devices
        #expect(names?.count == 199)
    }

    @Test func theLogIsReadWithACursor() throws {
        let harness = try SimulatorHarness()
        _ = try harness.device("phone")
        try harness.client.call(ControlRequest(.deviceOpen, device: "phone"))
        try harness.client.call(ControlRequest(.deviceForceQuit, device: "phone"))
        var request = ControlRequest(.log)
        request.limit = 1
        var states: [String?] = []
        while true {
            let page = try harness.client.call(request)
            guard let event = page.events?.first else { break }
            states.append(event.state)
            request.after = page.next
        }
        #expect(states == ["foreground", "force_quit"])
    }

    @Test func aSubscriberGetsOldAndNewEvents() throws {
        let harness = try SimulatorHarness()
        _ = try harness.device("phone")
        try harness.client.call(ControlRequest(.deviceOpen, device: "phone"))
        let reader = try SimulatorClient(path: harness.directory + "/control")
        try reader.subscribe()
        #expect(try reader.event(timeoutMilliseconds: 10_000)?.event.state == "foreground")
        try harness.client.call(ControlRequest(.deviceSuspend, device: "phone"))
        #expect(try reader.event(timeoutMilliseconds: 10_000)?.event.state == "suspended")
        try harness.client.call(ControlRequest(.deviceOpen, device: "phone"))
        #expect(try reader.event(timeoutMilliseconds: 10_000)?.event.state == "foreground")
        #expect(try reader.event(timeoutMilliseconds: 0) == nil)
    }

    @Test func aLineIsAnsweredByALine() throws {
        let harness = try SimulatorHarness()
        _ = try harness.device("phone")
        let teller = try SimulatorClient(path: harness.directory + "/control")
        let answer = try teller.exchange(line: #"{"cmd":"devices"}"#)
        #expect(answer.contains(#""ok":true"#) && answer.contains("phone"))
        #expect(try teller.exchange(line: "nonsense").contains(#""ok":false"#))
        #expect(try teller.nextLine(timeoutMilliseconds: 0) == nil)
    }

    @Test func theLogIsBoundedAndSaysWhatIsGone() {
        var log = EventLog(limit: 8)
        for number in 1...20 { log.append(SimulatorEvent(.state), at: UInt64(number)) }
        #expect(log.head == 20)
        let all = log.events(after: 0, limit: 100)
        #expect(all.events.count <= 8)
        #expect(all.lost == (all.events.first?.n ?? 0) - 1)
        #expect(all.events.map(\.n) == Array(all.lost + 1...20))
        let rest = log.events(after: 18, limit: 1)
        #expect(rest.events.map(\.n) == [19])
        #expect(rest.lost == 0)
        #expect(log.events(after: 20, limit: 1).events.isEmpty)
        #expect(log.events(after: .max, limit: 1).events.isEmpty)
    }
}
