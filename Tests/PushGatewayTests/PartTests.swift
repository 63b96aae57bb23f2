import Crypto
import Feed
import Model
import PushPool
import Testing
import Wake

@testable import PushGateway

/// The parts that need no connection.
@Suite struct PartTests {
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
