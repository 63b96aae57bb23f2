import Crypto
import Feed
import Model
import Testing
import Wake

@testable import PushGateway

/// The parts that need no connection.
@Suite struct PartTests {
    @Test("pushes wait in the order of their claims; what comes back goes first")
    func order() {
        var waiting = WaitingPushes()
        for number in UInt64(0)..<5 {
            waiting.append(
                HeldPush(
                    job: Fixture.jobs(1, from: number)[0], claimedAt: Instant(milliseconds: 0)))
        }
        #expect(waiting.count == 5)
        let first = [waiting.takeFirst(), waiting.takeFirst()].compactMap { $0 }
        #expect(first.map(\.job.request.id.low) == [0, 1])
        waiting.giveBack(first)
        #expect(waiting.count == 5)
        var order: [UInt64] = []
        while let push = waiting.takeFirst() { order.append(push.job.request.id.low) }
        #expect(order == [0, 1, 2, 3, 4])
        #expect(waiting.isEmpty && waiting.takeAll().isEmpty)
    }

    @Test("a push whose lease is nearly over is not sent")
    func lease() {
        var waiting = WaitingPushes()
        waiting.append(
            HeldPush(job: Fixture.jobs(1)[0], claimedAt: Instant(milliseconds: 1_000)))
        #expect(
            waiting.takeLate(now: Instant(milliseconds: 45_999), reserve: 15_000).isEmpty)
        #expect(
            waiting.takeLate(now: Instant(milliseconds: 46_000), reserve: 15_000).count == 1)
        #expect(waiting.isEmpty)
    }

    @Test(
        "an answer's body is read strictly, and its status counts without one",
        arguments: [
            (200, "", PushResponse(status: 200)),
            (
                410, #"{"reason":"Unregistered","timestamp":1700000000123}"#,
                PushResponse(
                    status: 410, reason: "Unregistered",
                    timestamp: Timestamp(milliseconds: 1_700_000_000_123))
            ),
            // Apple gives a time with 410 only.
            (
                400, #"{"timestamp":5,"reason":"BadDeviceToken"}"#,
                PushResponse(status: 400, reason: "BadDeviceToken")
            ),
            (
                410, #"{"reason":"Unregistered","timestamp":-5}"#,
                PushResponse(status: 410, reason: "Unregistered")
            ),
            (503, "<html>", PushResponse(status: 503)),
            (403, #"{"reason":7}"#, PushResponse(status: 403)),
            (403, #"{"reason":"Forbidden","reason":"Forbidden"}"#, PushResponse(status: 403)),
            (403, #"{"reason":"a b"}"#, PushResponse(status: 403)),
            (
                403, #"{"reason":"\#(String(repeating: "a", count: 65))"}"#,
                PushResponse(status: 403)
            ),
        ])
    func response(_ status: Int, _ body: String, _ expected: PushResponse) {
        #expect(PushResponse(status: status, body: Array(body.utf8)) == expected)
    }

    @Test("a peer cannot add to the labels of metrics")
    func labels() {
        #expect(PushResponse.label("Unregistered") == "Unregistered")
        #expect(PushResponse.label("Invented17") == "other")
        #expect(PushResponse.label("") == "none")
    }

    private func provider(_ pem: String = PrivateKey.generate(.p256).pem) -> ProviderKey {
        ProviderKey(team: "TEAM000001", keyID: "KEY0000001", pem: pem)
    }

    @Test("a provider token is renewed after 50 minutes of use and not before")
    func renewal() throws {
        var token = try ProviderToken(provider())
        let start: UInt64 = 5_000_000
        func text(_ minutes: UInt64) throws -> String {
            try token.current(
                now: Instant(milliseconds: start + minutes * 60_000),
                wall: 1_700_000_000_000 + minutes * 60_000)
        }
        let first = try text(0)
        #expect(try text(49) == first)
        let second = try text(50)
        #expect(second != first)
        #expect(try text(99) == second)
        #expect(try text(100) != second)
        let claims = try TokenMembers(
            json: CompactToken(second, maximumBytes: 4096).payloadJSON)
        #expect(claims.integer("iat") == 1_700_003_000)
    }

    @Test("an expired token is replaced, but never within 20 minutes of the last")
    func spacing() throws {
        var token = try ProviderToken(provider())
        let first = try token.current(now: Instant(milliseconds: 0), wall: 0)
        #expect(token.expired(now: Instant(milliseconds: 60_000)) == 19 * 60_000)
        #expect(try token.current(now: Instant(milliseconds: 61_000), wall: 61_000) == first)
        #expect(token.expired(now: Instant(milliseconds: 20 * 60_000)) == 0)
        let later = Instant(milliseconds: 20 * 60_000 + 1)
        #expect(try token.current(now: later, wall: 1_201_000) != first)
    }

    @Test("a key that cannot sign is told with its reason")
    func unusable() {
        #expect(throws: UnusableKey.self) { try ProviderToken(self.provider("no key")) }
        let edwards = PrivateKey.generate(.ed25519).pem
        #expect(throws: UnusableKey.self) { try ProviderToken(self.provider(edwards)) }
        var key = provider()
        key.keyID = #"A","x":"B"#
        #expect(throws: UnusableKey.self) { try ProviderToken(key) }
    }
}

/// Everything that talks to a scripted server; one after the other, for each has two loops.
@Suite(.serialized) struct GatewayTests {}
