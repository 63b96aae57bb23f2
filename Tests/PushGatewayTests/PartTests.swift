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

    @Test("a push that has waited for long, or whose lease is nearly over, is not sent")
    func lease() {
        let push = HeldPush(job: Fixture.jobs(1)[0], claimedAt: Instant(milliseconds: 1_000))
        var configuration = PushGatewayConfiguration()
        #expect(push.sendBefore(configuration) == Instant(milliseconds: 4_000))
        configuration.waitMax = 600_000
        #expect(push.sendBefore(configuration) == Instant(milliseconds: 46_000))
        var waiting = WaitingPushes()
        waiting.append(push)
        let none = waiting.take { _ in false }
        #expect(none.isEmpty && waiting.count == 1)
        let all = waiting.take { _ in true }
        #expect(all.count == 1 && waiting.isEmpty)
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

    @Test("retry-after is seconds, or a date by the answer's own clock")
    func retryAfter() {
        let date = PushResponse.seconds(httpDate: "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(date == 784_111_777)
        #expect(PushResponse.retryAfter("120", date: nil) == 120_000)
        #expect(
            PushResponse.retryAfter("Sun, 06 Nov 1994 08:50:07 GMT", date: date) == 30_000)
        #expect(PushResponse.retryAfter("Sun, 06 Nov 1994 08:40:07 GMT", date: date) == 0)
        #expect(PushResponse.retryAfter("Sun, 06 Nov 1994 08:50:07 GMT", date: nil) == nil)
        for text in ["", "-1", "soon", "99999999999"] {
            #expect(PushResponse.retryAfter(text, date: date) == nil)
        }
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

    /// A token that says when it was made, in minutes.
    private func dated(_ minutes: UInt64, _ provider: ProviderKey) throws -> String {
        try ProviderSigner(provider).sign(wall: minutes * 60_000)
    }

    @Test("a token that APNs has taken is not replaced within 20 minutes, but tried again")
    func spacing() throws {
        let key = provider()
        let (a, b) = (try dated(1_000, key), try dated(1_021, key))
        var token = ProviderToken()
        func at(_ seconds: UInt64) -> Instant { Instant(milliseconds: seconds * 1_000) }
        func time(_ seconds: UInt64) -> UInt64 { 60_000_000 + seconds * 1_000 }
        func expired(_ sent: String, _ seconds: UInt64) -> ProviderToken.Expiry {
            token.expired(sent: sent, time: time(seconds), now: at(seconds))
        }
        token.take(KeptProviderToken(token: a, age: 0), now: at(0))
        token.believed(a)
        #expect(expired(a, 60) == .goOn)
        #expect(token.current(now: at(60)) == a)
        #expect(expired(a, 61) == .rest(60_000))
        #expect(expired(a, 121) == .goOn)
        #expect(token.current(now: at(121)) == a)
        #expect(expired(a, 1_200) == .goOn)
        #expect(token.refused == a)
        #expect(token.isDue(now: at(1_200)) && token.current(now: at(1_200)) == nil)
        #expect(!token.isReplacedYoung)
        token.take(KeptProviderToken(token: b, age: 0), now: at(1_201))
        #expect(token.current(now: at(1_201)) == b && !token.isTaken)
        // The last pushes that were sent with the one before it.
        #expect(expired(a, 1_202) == .goOn)
        #expect(token.current(now: at(1_202)) == b)
    }

    @Test("a token that APNs never took is replaced at once, and then once a minute")
    func neverTaken() throws {
        let key = provider()
        var token = ProviderToken()
        func at(_ seconds: UInt64) -> Instant { Instant(milliseconds: seconds * 1_000) }
        var made: [UInt64] = []
        for second in UInt64(0)..<200 {
            if token.isDue(now: at(second)) {
                made.append(second)
                token.take(KeptProviderToken(token: try dated(1_000, key), age: 0), now: at(second))
            }
            guard let sent = token.current(now: at(second)) else { continue }
            _ = token.expired(
                sent: sent, time: 60_000_000 + second * 1_000, now: at(second))
            #expect(token.refused == nil || token.isReplacedYoung)
        }
        #expect(made == [0, 1, 60, 120, 180])
    }

    @Test("a token whose date is not that of the clock any more is given up, unless it was taken")
    func misdated() throws {
        let key = provider()
        let now = Instant(milliseconds: 0)
        var token = ProviderToken()
        token.take(KeptProviderToken(token: try dated(1_000, key), age: 0), now: now)
        func isGivenUp(_ minutes: UInt64, _ now: Instant) -> Bool {
            token.checkDate(time: minutes * 60_000, now: now)
        }
        #expect(!isGivenUp(1_004, now) && !isGivenUp(996, now))
        #expect(isGivenUp(1_006, now) && token.refused != nil)
        token.take(KeptProviderToken(token: try dated(1_006, key), age: 0), now: now)
        #expect(!isGivenUp(900, now), "not again and again")
        let later = Instant(milliseconds: 10_000)
        #expect(isGivenUp(900, later))
        let taken = try dated(900, key)
        token.take(KeptProviderToken(token: taken, age: 0), now: later)
        token.believed(taken)
        #expect(!isGivenUp(1_200, Instant(milliseconds: 60_000)))
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
        let plain = provider()
        let key = ProviderKey(team: plain.team, keyID: #"A","x":"B"#, pem: plain.pem)
        #expect(throws: UnusableKey.self) { try ProviderSigner(key) }
    }
}

/// Everything that talks to a scripted server; one after the other, for each has two loops.
@Suite(.serialized) struct GatewayTests {}
