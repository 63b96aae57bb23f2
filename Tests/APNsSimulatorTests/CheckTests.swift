import APNsSimulator
import Crypto
import Model
import Testing

/// One row of the check table: what is wrong with an otherwise good request, and the answer.
struct CheckRow: Sendable, CustomTestStringConvertible {
    let name: String
    let status: Int
    let reason: String
    let spoil: @Sendable (inout CheckFixture) -> Void

    init(
        _ name: String, _ status: Int, _ reason: String,
        _ spoil: @escaping @Sendable (inout CheckFixture) -> Void
    ) {
        self.name = name
        self.status = status
        self.reason = reason
        self.spoil = spoil
    }

    var testDescription: String { name }

    static let requests: [CheckRow] = [
        CheckRow("method", 405, "MethodNotAllowed") { $0.push.method = "GET" },
        CheckRow("path", 404, "BadPath") { $0.push.path = "/4/device/ab" },
        CheckRow("no device token", 400, "MissingDeviceToken") { $0.push.path = "/3/device/" },
        CheckRow("repeated apns header", 400, "DuplicateHeaders") {
            $0.push.headers.append(ReceivedPush.Header("apns-topic", CheckFixture.topic))
        },
        CheckRow("repeated authorization", 400, "DuplicateHeaders") {
            $0.push.headers.append($0.push.headers[0])
        },
        CheckRow("id is no UUID", 400, "BadMessageId") { $0.set("apns-id", "17") },
        CheckRow("expiration is negative", 400, "BadExpirationDate") {
            $0.set("apns-expiration", "-1")
        },
        CheckRow("expiration is empty", 400, "BadExpirationDate") {
            $0.set("apns-expiration", "")
        },
        CheckRow("expiration has a sign", 400, "BadExpirationDate") {
            $0.set("apns-expiration", "+1")
        },
        CheckRow("priority", 400, "BadPriority") { $0.set("apns-priority", "6") },
        CheckRow("push type", 400, "InvalidPushType") { $0.set("apns-push-type", "silent") },
        CheckRow("no topic", 400, "MissingTopic") { $0.set("apns-topic", nil) },
        CheckRow("malformed topic", 400, "BadTopic") { $0.set("apns-topic", "org example") },
        CheckRow("push type without its suffix", 400, "BadTopic") {
            $0.set("apns-push-type", "voip")
        },
        CheckRow("topic of another team", 400, "TopicDisallowed") {
            $0.set("apns-topic", "org.example.foreign")
        },
        CheckRow("unknown topic", 400, "TopicDisallowed") {
            $0.set("apns-topic", "org.example.nobody")
        },
        CheckRow("collapse id of 65 bytes", 400, "BadCollapseId") {
            $0.set("apns-collapse-id", String(repeating: "é", count: 32) + "x")
        },
        CheckRow("no payload", 400, "PayloadEmpty") { $0.push.body = [] },
        CheckRow("payload of 4097 bytes", 413, "PayloadTooLarge") {
            $0.push.body = [UInt8](repeating: 0x20, count: 4_097)
        },
        CheckRow("payload beyond what is read", 413, "PayloadTooLarge") {
            $0.push.body = []
            $0.push.bodyIsTooLong = true
        },
        CheckRow("device token is no hexadecimal", 400, "BadDeviceToken") {
            $0.push.path = "/3/device/zz"
        },
        CheckRow("device token not issued here", 400, "BadDeviceToken") {
            $0.push.path = "/3/device/" + Hex.encode([UInt8](repeating: 1, count: 32))
        },
        CheckRow("device token of the other environment", 400, "BadDeviceToken") {
            $0.push.path = "/3/device/" + CheckFixture.developmentToken
        },
        CheckRow("device token of another topic", 400, "DeviceTokenNotForTopic") {
            $0.push.path = "/3/device/" + CheckFixture.otherTopicToken
        },
        CheckRow("too many requests to one token", 429, "TooManyRequests") {
            $0.state.limits.burst = 2
            _ = $0.answer()
            _ = $0.answer()
        },
    ]

    static let providerTokens: [CheckRow] = [
        CheckRow("none", 403, "MissingProviderToken") { $0.set("authorization", nil) },
        CheckRow("empty bearer", 403, "MissingProviderToken") {
            $0.set("authorization", "bearer ")
        },
        CheckRow("another scheme", 403, "MissingProviderToken") {
            $0.set("authorization", "basic YWJj")
        },
        CheckRow("two parts", 403, "InvalidProviderToken") { $0.authorize("YQ.YQ") },
        CheckRow("alg of another key kind", 403, "InvalidProviderToken") {
            let key = PrivateKey.generate(.ed25519)
            let header = Array(#"{"alg":"EdDSA","kid":"KEY0000001"}"#.utf8)
            let payload = Array(#"{"iss":"TEAM000001","iat":1700000000}"#.utf8)
            let token = try? CompactToken.sign(
                headerJSON: header, payloadJSON: payload, with: key)
            $0.authorize(token ?? "")
        },
        CheckRow("no kid", 403, "InvalidProviderToken") {
            let payload = Array(#"{"iss":"TEAM000001","iat":1700000000}"#.utf8)
            let token = try? CompactToken.sign(
                headerJSON: Array(#"{"alg":"ES256"}"#.utf8), payloadJSON: payload,
                with: CheckFixture.key)
            $0.authorize(token ?? "")
        },
        CheckRow("unknown kid", 403, "InvalidProviderToken") {
            $0.authorize(CheckFixture.providerToken(kid: "KEY9999999"))
        },
        CheckRow("revoked key", 403, "InvalidProviderToken") {
            try? $0.state.revokeKey(CheckFixture.keyID)
        },
        CheckRow("key revoked on an open connection", 403, "InvalidProviderToken") {
            _ = $0.answer()
            try? $0.state.revokeKey(CheckFixture.keyID)
        },
        CheckRow("iss of another team", 403, "InvalidProviderToken") {
            $0.authorize(CheckFixture.providerToken(iss: "TEAM000002"))
        },
        CheckRow("signed by another key", 403, "InvalidProviderToken") {
            $0.authorize(CheckFixture.providerToken(with: CheckFixture.otherKey))
        },
        CheckRow("no iat", 403, "InvalidProviderToken") {
            $0.authorize(CheckFixture.providerToken(iat: "null"))
        },
        CheckRow("iat over an hour old", 403, "ExpiredProviderToken") {
            $0.authorize(CheckFixture.providerToken(iat: "1699996399"))
        },
        CheckRow("a token that grows old on its connection", 403, "ExpiredProviderToken") {
            _ = $0.answer()
            $0.now = CheckFixture.now + 3_601_000
        },
        CheckRow("iat over an hour ahead", 403, "InvalidProviderToken") {
            $0.authorize(CheckFixture.providerToken(iat: "1700003601"))
        },
        CheckRow("key of the other environment", 403, "BadEnvironmentKeyIdInToken") {
            $0.authorize(
                CheckFixture.providerToken(kid: "KEY0000003", with: CheckFixture.otherKey))
        },
        CheckRow("another team on the same connection", 403, "InvalidProviderToken") {
            _ = $0.answer()
            $0.authorize(
                CheckFixture.providerToken(
                    kid: "KEY0000002", iss: "TEAM000002", with: CheckFixture.otherKey))
        },
        CheckRow("renewed before 20 minutes", 429, "TooManyProviderTokenUpdates") {
            _ = $0.answer()
            $0.now = CheckFixture.now + 1_199_999
            $0.authorize(CheckFixture.providerToken(at: $0.now))
        },
    ]
}

struct CheckTests {
    @Test func aGoodRequestIsAccepted() throws {
        var fixture = try CheckFixture()
        let answer = fixture.answer()
        #expect(answer.status == 200)
        #expect(answer.body.isEmpty)
        #expect(answer.apnsID == "00000000-0000-0000-0000-0000000000aa")
        #expect(answer.lints.isEmpty)
        let delivery = try #require(answer.delivery)
        #expect(delivery.token == CheckFixture.token)
        #expect(delivery.content.title == "Anna")
        #expect(delivery.expiration == 0)
        #expect(fixture.connection.isProven)
    }

    @Test(arguments: CheckRow.requests + CheckRow.providerTokens)
    func eachRowOfTheTable(_ row: CheckRow) throws {
        var fixture = try CheckFixture()
        row.spoil(&fixture)
        let answer = fixture.answer()
        #expect(answer.status == row.status)
        #expect(answer.reason == row.reason)
        #expect(answer.delivery == nil)
        #expect(String(decoding: answer.body, as: UTF8.self) == #"{"reason":"\#(row.reason)"}"#)
        let isFresh = row.reason == "BadMessageId"
        #expect(
            answer.apnsID
                == (isFresh
                    ? CheckFixture.freshID.description : "00000000-0000-0000-0000-0000000000aa"))
    }

    @Test func refusedTokensProveNothing() throws {
        var fixture = try CheckFixture()
        fixture.authorize(CheckFixture.providerToken(kid: "KEY9999999"))
        _ = fixture.answer()
        #expect(!fixture.connection.isProven)
    }

    @Test func anIDIsMadeWhenThereIsNone() throws {
        var fixture = try CheckFixture()
        fixture.set("apns-id", nil)
        let answer = fixture.answer()
        #expect(answer.status == 200)
        #expect(answer.apnsID == CheckFixture.freshID.description)
    }

    @Test func theOrderIsFixed() throws {
        // Everything is wrong at once; each mending uncovers the next reason.
        var fixture = try CheckFixture()
        let good = fixture.push
        fixture.push = ReceivedPush(method: "GET", path: "/", headers: [], body: [])
        var seen: [String?] = [fixture.answer().reason]
        fixture.push.method = "POST"
        seen.append(fixture.answer().reason)
        fixture.push.path = "/3/device/00"
        fixture.push.headers = [
            ReceivedPush.Header("apns-id", "1"), ReceivedPush.Header("apns-id", "2"),
        ]
        seen.append(fixture.answer().reason)
        fixture.push.headers = [
            ReceivedPush.Header("apns-id", "1"), ReceivedPush.Header("apns-expiration", "x"),
            ReceivedPush.Header("apns-priority", "x"), ReceivedPush.Header("apns-push-type", "x"),
            ReceivedPush.Header("apns-collapse-id", String(repeating: "x", count: 65)),
        ]
        seen.append(fixture.answer().reason)
        for name in [
            "authorization", "apns-id", "apns-expiration", "apns-priority", "apns-push-type",
            "apns-topic",
        ] {
            fixture.set(name, good[name])
            seen.append(fixture.answer().reason)
        }
        fixture.set("apns-collapse-id", nil)
        seen.append(fixture.answer().reason)
        fixture.push.body = good.body
        seen.append(fixture.answer().reason)
        #expect(
            seen == [
                "MethodNotAllowed", "BadPath", "DuplicateHeaders", "MissingProviderToken",
                "BadMessageId", "BadExpirationDate", "BadPriority", "InvalidPushType",
                "MissingTopic", "BadCollapseId", "PayloadEmpty", "BadDeviceToken",
            ])
    }

    @Test func aTokenMayBeRenewedAfterTwentyMinutes() throws {
        var fixture = try CheckFixture()
        #expect(fixture.answer().status == 200)
        fixture.now = CheckFixture.now + 1_200_000
        fixture.authorize(CheckFixture.providerToken(at: fixture.now))
        #expect(fixture.answer().status == 200)
        // The renewal counts: the next has to wait again.
        fixture.now = fixture.now + 1_000
        fixture.authorize(CheckFixture.providerToken(at: fixture.now))
        #expect(fixture.answer().reason == "TooManyProviderTokenUpdates")
    }

    @Test func deadTokensAreToldLateAndWithTheirTime() throws {
        var fixture = try CheckFixture()
        let since = CheckFixture.now
        try fixture.state.kill(
            token: CheckFixture.token, since: since, toldFrom: since + 60_000)
        fixture.now = since + 59_999
        let early = fixture.answer()
        #expect(early.status == 200)
        #expect(early.delivery == nil)
        fixture.now = since + 60_000
        let late = fixture.answer()
        #expect(late.status == 410)
        #expect(
            String(decoding: late.body, as: UTF8.self)
                == #"{"reason":"Unregistered","timestamp":1700000000000}"#)
        try fixture.state.kill(
            token: CheckFixture.token, since: since, toldFrom: since, isExpired: true)
        #expect(fixture.answer().reason == "ExpiredToken")
    }

    @Test func burstsEndWithTheirSecond() throws {
        var fixture = try CheckFixture()
        fixture.state.limits.burst = 1
        #expect(fixture.answer().status == 200)
        #expect(fixture.answer().status == 429)
        fixture.now = fixture.now + 1_000
        #expect(fixture.answer().status == 200)
    }

    @Test func boundsAreInclusive() throws {
        var fixture = try CheckFixture()
        fixture.set("apns-collapse-id", String(repeating: "é", count: 32))
        fixture.push.body = Array(#"{"aps":{"badge":1}}"#.utf8)
        fixture.push.body += [UInt8](repeating: 0x20, count: 4_096 - fixture.push.body.count)
        #expect(fixture.answer().status == 200)
        fixture.set("apns-push-type", "voip")
        fixture.set("apns-topic", CheckFixture.topic + ".voip")
        fixture.push.body += [UInt8](repeating: 0x20, count: 1_024)
        #expect(fixture.answer().status == 200)
        fixture.push.body.append(0x20)
        #expect(fixture.answer().status == 413)
    }
}

/// One row of the lint table: accepted, and said.
struct LintRow: Sendable, CustomTestStringConvertible {
    let lint: Lint
    let isDelivered: Bool
    let spoil: @Sendable (inout CheckFixture) -> Void

    init(
        _ lint: Lint, isDelivered: Bool = true,
        _ spoil: @escaping @Sendable (inout CheckFixture) -> Void
    ) {
        self.lint = lint
        self.isDelivered = isDelivered
        self.spoil = spoil
    }

    var testDescription: String { lint.rawValue }

    static func silent(_ fixture: inout CheckFixture) {
        fixture.set("apns-push-type", "background")
        fixture.set("apns-priority", "5")
        fixture.push.body = Array(#"{"aps":{"content-available":1}}"#.utf8)
    }

    static let rows: [LintRow] = [
        LintRow(.backgroundPriority) {
            silent(&$0)
            $0.set("apns-priority", "10")
        },
        LintRow(.backgroundShows) {
            silent(&$0)
            $0.push.body = Array(#"{"aps":{"content-available":1,"badge":1}}"#.utf8)
        },
        LintRow(.backgroundWithoutContentAvailable) {
            silent(&$0)
            $0.push.body = Array(#"{"aps":{}}"#.utf8)
        },
        LintRow(.alertWithoutContent) {
            $0.push.body = Array(#"{"aps":{"content-available":1}}"#.utf8)
        },
        LintRow(.contentAvailableZero) {
            $0.push.body = Array(#"{"aps":{"alert":"Hi","content-available":0}}"#.utf8)
        },
        LintRow(.unknownKeyInAPS) {
            $0.push.body = Array(#"{"aps":{"alert":"Hi","rouse":{}}}"#.utf8)
        },
        LintRow(.missingPushType) { $0.set("apns-push-type", nil) },
        LintRow(.idNotCanonical) {
            $0.set("apns-id", "00000000-0000-0000-0000-0000000000AA")
        },
        LintRow(.issuedAtIsString) {
            $0.authorize(CheckFixture.providerToken(iat: #""1700000000000""#))
        },
        LintRow(.pathIndexed) { $0.push.pathWasIndexed = true },
        LintRow(.payloadNotUsable, isDelivered: false) { $0.push.body = Array("{".utf8) },
        LintRow(.payloadNotUsable, isDelivered: false) { $0.push.body = Array("{}".utf8) },
        LintRow(.payloadNotUsable, isDelivered: false) {
            $0.set("content-encoding", "gzip")
        },
    ]
}

struct LintTests {
    @Test(arguments: LintRow.rows)
    func eachRow(_ row: LintRow) throws {
        var fixture = try CheckFixture()
        row.spoil(&fixture)
        let answer = fixture.answer()
        #expect(answer.status == 200)
        #expect(answer.lints == [row.lint])
        #expect((answer.delivery != nil) == row.isDelivered)
    }

    @Test func ourSilentPushIsClean() throws {
        var fixture = try CheckFixture()
        LintRow.silent(&fixture)
        fixture.push.body = Array(
            #"{"aps":{"content-available":1},"rouse":{"e":"message","w":"abc"}}"#.utf8)
        let answer = fixture.answer()
        #expect(answer.lints.isEmpty)
        #expect(answer.delivery?.content.wake == "abc")
    }

    @Test func everyLintOfTheChecksHasARow() {
        let tested = Set(LintRow.rows.map(\.lint))
        // PRIORITY frames belong to the connection.
        #expect(Set(Lint.allCases).subtracting(tested) == [.priorityFrame])
    }
}
