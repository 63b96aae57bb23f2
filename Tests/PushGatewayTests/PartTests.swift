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

    @Test("a provider token is asked for again after 50 minutes, and sent for 59")
    func renewal() {
        var token = ProviderToken()
        func at(_ minutes: UInt64) -> Instant {
            Instant(milliseconds: 5_000_000 + minutes * 60_000)
        }
        #expect(token.isDue(now: at(0)) && token.current(now: at(0)) == nil)
        // Another process made it ten minutes ago.
        token.take(KeptProviderToken(token: "a", age: 10 * 60_000), now: at(0))
        #expect(token.current(now: at(39)) == "a" && !token.isDue(now: at(39)))
        #expect(token.isDue(now: at(40)))
        #expect(token.current(now: at(48)) == "a", "it is good until its successor is there")
        #expect(token.current(now: at(49)) == nil)
        token.take(KeptProviderToken(token: "b", age: 0), now: at(49))
        #expect(token.current(now: at(50)) == "b" && !token.isDue(now: at(98)))
    }

    @Test("an expired token is replaced, but never within 20 minutes of the last")
    func spacing() {
        var token = ProviderToken()
        token.take(KeptProviderToken(token: "a", age: 0), now: Instant(milliseconds: 0))
        let soon = Instant(milliseconds: 60_000)
        #expect(token.expired(sent: "a", now: soon) == 19 * 60_000)
        #expect(token.current(now: soon) == "a" && token.refused == nil)
        let later = Instant(milliseconds: 20 * 60_000)
        #expect(token.expired(sent: "a", now: later) == 0)
        #expect(token.isDue(now: later) && token.current(now: later) == nil)
        #expect(token.refused == "a")
        // For the store it is younger: it is sent again, and rests if it is refused again.
        token.take(KeptProviderToken(token: "a", age: 19 * 60_000), now: later)
        #expect(token.current(now: later) == "a")
        #expect(token.expired(sent: "a", now: later) == 60_000)
        #expect(token.expired(sent: "a", now: Instant(milliseconds: 21 * 60_000)) == 0)
        token.take(KeptProviderToken(token: "b", age: 0), now: later)
        #expect(token.current(now: later) == "b")
        // The last pushes that were sent with the one before it.
        #expect(token.expired(sent: "a", now: later) == 0)
        #expect(token.current(now: later) == "b", "it was taken for the refused one")
    }

    @Test("no two signatures are alike: the token itself has to be kept")
    func signing() throws {
        let signer = try ProviderSigner(provider())
        let token = try signer.sign(wall: 1_700_003_000_999)
        #expect(try signer.sign(wall: 1_700_003_000_999) != token)
        let claims = try TokenMembers(
            json: CompactToken(token, maximumBytes: 4096).payloadJSON)
        #expect(claims.integer("iat") == 1_700_003_000)
        #expect(claims.string("iss") == "TEAM000001")
    }

    @Test("a key that cannot sign is told with its reason")
    func unusable() {
        #expect(throws: UnusableKey.self) { try ProviderSigner(self.provider("no key")) }
        let edwards = PrivateKey.generate(.ed25519).pem
        #expect(throws: UnusableKey.self) { try ProviderSigner(self.provider(edwards)) }
        var key = provider()
        key.keyID = #"A","x":"B"#
        #expect(throws: UnusableKey.self) { try ProviderSigner(key) }
    }
}

/// Everything that talks to a scripted server; one after the other, for each has two loops.
@Suite(.serialized) struct GatewayTests {}
