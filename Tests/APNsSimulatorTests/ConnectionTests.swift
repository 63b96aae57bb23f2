import APNsSimulator
import Crypto
import DeviceModel
import HTTP2
import Testing

/// The simulator over real sockets, TLS and HTTP/2.
struct ConnectionTests {
    func provider(_ harness: SimulatorHarness) throws -> Provider {
        try Provider(
            port: harness.ports.production,
            authority: try #require(SimulatorHarness.certificates).authorityPEM)
    }

    @Test func oneStreamUntilTheFirstAcceptedToken() throws {
        let harness = try SimulatorHarness(maximumStreams: 7)
        let token = try harness.device("phone")
        let provider = try provider(harness)
        try provider.wait { !$0.limits.isEmpty }
        #expect(provider.limits == [1])
        let bad = try provider.push(to: token, authorization: "no.token")
        #expect(try provider.answer(bad)?.status == 403)
        #expect(provider.limits == [1])
        let good = try provider.push(to: token, authorization: harness.providerToken)
        #expect(try provider.answer(good)?.status == 200)
        try provider.wait { $0.limits.count > 1 }
        #expect(provider.limits == [1, 7])
    }

    @Test func answersCarryIDReasonAndTime() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        let provider = try provider(harness)
        let authorization = harness.providerToken
        let id = "00000000-0000-0000-0000-00000000abcd"
        let good = try provider.push(
            to: token, authorization: authorization, headers: [("apns-id", id)])
        #expect(
            try provider.answer(good) == Provider.Answer(status: 200, id: id, body: ""))
        var kill = ControlRequest(.tokenKill)
        kill.token = token
        kill.since = 1_700_000_000_000
        try harness.client.call(kill)
        let dead = try provider.push(
            to: token, authorization: authorization, headers: [("apns-id", id)])
        #expect(
            try provider.answer(dead)
                == Provider.Answer(
                    status: 410, id: id,
                    body: #"{"reason":"Unregistered","timestamp":1700000000000}"#))
        let large = try provider.push(
            to: token, authorization: authorization,
            body: String(repeating: " ", count: 100_000))
        #expect(try provider.answer(large)?.status == 413)
    }

    @Test func onlyHTTP2IsSpoken() throws {
        let harness = try SimulatorHarness()
        let authority = try #require(SimulatorHarness.certificates).authorityPEM
        #expect(throws: (any Error).self) {
            try Provider(
                port: harness.ports.production, protocols: ["http/1.1"], authority: authority)
        }
    }

    @Test func streamsAboveTheLimitAreRefusedBeforeTheFirstSettings() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        // Pushes leave with the preface, before the server's limit is known.
        let provider = try provider(harness)
        let authorization = harness.providerToken
        #expect(provider.limits.isEmpty)
        let tags = try (0..<3).map { _ in
            try provider.push(to: token, authorization: authorization)
        }
        for tag in tags { try provider.answer(tag) }
        #expect(provider.answers[tags[0]]?.status == 200)
        #expect(!provider.isEnded)
        for tag in tags.dropFirst() where provider.answers[tag] == nil {
            #expect(provider.resets[tag]?.refused == true)
        }
    }

    @Test func scriptedAnswers() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        let other = try harness.device("other")
        let provider = try provider(harness)
        let authorization = harness.providerToken
        var fault = ControlRequest(.fault)
        fault.fault = .answer
        fault.status = 503
        fault.reason = "ServiceUnavailable"
        fault.count = 2
        fault.token = token
        try harness.client.call(fault)
        let untouched = try provider.push(to: other, authorization: authorization)
        #expect(try provider.answer(untouched)?.status == 200)
        for _ in 0..<2 {
            let tag = try provider.push(to: token, authorization: authorization)
            #expect(try provider.answer(tag)?.body == #"{"reason":"ServiceUnavailable"}"#)
        }
        let after = try provider.push(to: token, authorization: authorization)
        #expect(try provider.answer(after)?.status == 200)
    }

    @Test func silenceResetAndGoAway() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        let provider = try provider(harness)
        let authorization = harness.providerToken
        let first = try provider.push(to: token, authorization: authorization)
        try provider.answer(first)
        try provider.wait { $0.limits.count > 1 }

        var reset = ControlRequest(.fault)
        reset.fault = .reset
        try harness.client.call(reset)
        let refused = try provider.push(to: token, authorization: authorization)
        try provider.answer(refused)
        #expect(provider.resets[refused]?.refused == true)

        // Delivered but not answered, then two that never were looked at.
        var silence = ControlRequest(.fault)
        silence.fault = .silence
        silence.delivers = true
        try harness.client.call(silence)
        silence.delivers = false
        silence.count = 2
        try harness.client.call(silence)
        let tags = try (0..<3).map { _ in
            try provider.push(to: token, authorization: authorization)
        }
        let last = try harness.event { $0.fault == "silence" && $0.status == nil }
        #expect(last != nil)
        let delivered = try harness.event { event in
            event.kind == .push && event.fault == "silence" && event.status == 200
        }
        let received = try harness.event(after: delivered?.n ?? 0) { $0.kind == .received }
        #expect(received?.apnsId == delivered?.apnsId)

        // All three are open when the third has been seen.
        _ = try harness.event(after: last?.n ?? 0) { $0.fault == "silence" }
        var goaway = ControlRequest(.fault)
        goaway.fault = .goaway
        goaway.unprocessed = 2
        goaway.reason = "Shutdown"
        try harness.client.call(goaway)
        try provider.wait { $0.goAway != nil }
        #expect(provider.goAway?.debug == #"{"reason":"Shutdown"}"#)
        #expect(provider.unprocessed == Array(tags.suffix(2)))
        // Taken, and never answered.
        #expect(!provider.finished.contains(tags[0]))
    }

    @Test func refusedAndCutConnections() throws {
        let harness = try SimulatorHarness()
        let provider = try provider(harness)
        var cut = ControlRequest(.fault)
        cut.fault = .cut
        try harness.client.call(cut)
        try provider.wait { _ in false }
        #expect(provider.isEnded)
        var refuse = ControlRequest(.fault)
        refuse.fault = .refuse
        refuse.on = true
        try harness.client.call(refuse)
        #expect(throws: (any Error).self) { try self.provider(harness) }
        refuse.on = false
        try harness.client.call(refuse)
        _ = try self.provider(harness)
    }

    @Test func delayedAnswersCome() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        let provider = try provider(harness)
        var delay = ControlRequest(.fault)
        delay.fault = .delay
        delay.delayMs = 20
        try harness.client.call(delay)
        let tag = try provider.push(to: token, authorization: harness.providerToken)
        #expect(try provider.answer(tag)?.status == 200)
    }

    @Test func theTwoEnvironmentsAreApart() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        let provider = try Provider(
            port: harness.ports.development,
            authority: try #require(SimulatorHarness.certificates).authorityPEM)
        let tag = try provider.push(to: token, authorization: harness.providerToken)
        #expect(try provider.answer(tag)?.body == #"{"reason":"BadDeviceToken"}"#)
    }

    @Test func pushesReachTheirDevice() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        let provider = try provider(harness)
        let authorization = harness.providerToken
        try provider.answer(
            try provider.push(
                to: token, authorization: authorization,
                body: #"{"aps":{"content-available":1},"rouse":{"w":"w7"}}"#))
        #expect(try harness.event { $0.kind == .wake }?.wake == "w7")
        try harness.client.call(ControlRequest(.deviceForceQuit, device: "phone"))
        try provider.answer(
            try provider.push(
                to: token, authorization: authorization,
                headers: [
                    ("apns-push-type", "alert"), ("apns-priority", "10"),
                    ("apns-collapse-id", "m1"),
                ],
                body: #"{"aps":{"alert":{"title":"Anna","body":"Hi"},"badge":2}}"#))
        #expect(try harness.event { $0.kind == .shown }?.identifier == "m1")
        let status = try harness.client.call(ControlRequest(.deviceStatus, device: "phone")).status
        #expect(status?.state == .forceQuit)
        #expect(status?.badge == 2)
        let screen = try harness.client.call(ControlRequest(.deviceScreen, device: "phone")).screen
        #expect(screen?.map(\.body) == ["Hi"])
    }
}
