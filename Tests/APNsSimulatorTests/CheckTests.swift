import APNsSimulator
import Crypto
import Model
import Testing

/// One row of the check table: what is wrong with an otherwise good request, and the answer.
struct CheckCase: Sendable, CustomTestStringConvertible {
    let check: Check
    let name: String
    let status: Int
    let reason: String
    let spoil: @Sendable (inout CheckFixture) -> Void

    init(
        _ check: Check, _ name: String, _ status: Int, _ reason: String,
        _ spoil: @escaping @Sendable (inout CheckFixture) -> Void
    ) {
        self.check = check
        self.name = name
        self.status = status
        self.reason = reason
        self.spoil = spoil
    }

    var testDescription: String { "\(check.rawValue): \(name)" }

    static let requests: [CheckCase] = [
        CheckCase(.method, "GET", 405, "MethodNotAllowed") { $0.push.method = "GET" },
        CheckCase(.path, "another version", 404, "BadPath") { $0.push.path = "/4/device/ab" },
        CheckCase(.path, "no device path", 404, "BadPath") { $0.push.path = "/3/device" },
        CheckCase(.deviceTokenPresent, "none", 400, "MissingDeviceToken") {
            $0.push.path = "/3/device/"
        },
        CheckCase(.duplicateHeaders, "apns-topic", 400, "DuplicateHeaders") {
            $0.push.headers.append(ReceivedPush.Header("apns-topic", CheckFixture.topic))
        },
        CheckCase(.duplicateHeaders, "authorization", 400, "DuplicateHeaders") {
            $0.push.headers.append($0.push.headers[0])
        },
        CheckCase(.messageID, "a number", 400, "BadMessageId") { $0.set("apns-id", "17") },
        CheckCase(.messageID, "without dashes", 400, "BadMessageId") {
            $0.set("apns-id", "000000000000000000000000000000aa")
        },
        CheckCase(.expiration, "negative", 400, "BadExpirationDate") {
            $0.set("apns-expiration", "-1")
        },
        CheckCase(.expiration, "empty", 400, "BadExpirationDate") {
            $0.set("apns-expiration", "")
        },
        CheckCase(.expiration, "with a sign", 400, "BadExpirationDate") {
            $0.set("apns-expiration", "+1")
        },
        CheckCase(.priority, "6", 400, "BadPriority") { $0.set("apns-priority", "6") },
        CheckCase(.priority, "0", 400, "BadPriority") { $0.set("apns-priority", "0") },
        CheckCase(.pushType, "silent", 400, "InvalidPushType") {
            $0.set("apns-push-type", "silent")
        },
        CheckCase(.topicPresent, "none", 400, "MissingTopic") { $0.set("apns-topic", nil) },
        CheckCase(.topicPresent, "empty", 400, "MissingTopic") { $0.set("apns-topic", "") },
        CheckCase(.topicForm, "a space", 400, "BadTopic") { $0.set("apns-topic", "org example") },
        CheckCase(.topicSuffix, "voip", 400, "BadTopic") { $0.set("apns-push-type", "voip") },
        CheckCase(.topicSuffix, "voip, by choice", 400, "DeviceTokenNotForTopic") {
            $0.state.options.refusesSuffixAsToken = true
            $0.set("apns-push-type", "voip")
        },
        CheckCase(.topicAllowed, "another team's", 400, "TopicDisallowed") {
            $0.set("apns-topic", "org.example.foreign")
        },
        CheckCase(.topicAllowed, "unknown", 400, "TopicDisallowed") {
            $0.set("apns-topic", "org.example.nobody")
        },
        CheckCase(.topicAllowed, "a key for another topic", 400, "TopicDisallowed") {
            $0.authorize(
                CheckFixture.providerToken(kid: "KEY0000006", with: CheckFixture.otherKey))
        },
        CheckCase(.topicAllowed, "not in the certificate", 400, "TopicDisallowed") {
            $0.present(["org.example.other"])
        },
        CheckCase(.topicPresent, "a certificate with two", 400, "MissingTopic") {
            $0.present([CheckFixture.topic, CheckFixture.topic + ".voip"])
            $0.set("apns-topic", nil)
        },
        CheckCase(.topicAllowed, "location by certificate", 400, "TopicDisallowed") {
            $0.present([CheckFixture.topic, CheckFixture.topic + ".voip"])
            $0.set("apns-push-type", "location")
            $0.set("apns-topic", CheckFixture.topic + ".location-query")
        },
        CheckCase(.collapseID, "65 bytes", 400, "BadCollapseId") {
            $0.set("apns-collapse-id", String(repeating: "é", count: 32) + "x")
        },
        CheckCase(.payloadPresent, "none", 400, "PayloadEmpty") { $0.push.body = [] },
        CheckCase(.payloadSize, "4097 bytes", 413, "PayloadTooLarge") {
            $0.push.body = [UInt8](repeating: 0x20, count: 4_097)
        },
        CheckCase(.payloadSize, "beyond what is read", 413, "PayloadTooLarge") {
            $0.push.body = []
            $0.push.bodyIsTooLong = true
        },
        CheckCase(.deviceToken, "no hexadecimal", 400, "BadDeviceToken") {
            $0.push.path = "/3/device/zz"
        },
        CheckCase(.deviceToken, "not issued here", 400, "BadDeviceToken") {
            $0.push.path = "/3/device/" + Hex.encode([UInt8](repeating: 1, count: 32))
        },
        CheckCase(.deviceToken, "of the other environment", 400, "BadDeviceToken") {
            $0.push.path = "/3/device/" + CheckFixture.developmentToken
        },
        CheckCase(.deviceTokenTopic, "another app's", 400, "DeviceTokenNotForTopic") {
            $0.push.path = "/3/device/" + CheckFixture.otherTopicToken
        },
        CheckCase(.deviceTokenAlive, "gone", 410, "Unregistered") {
            try? $0.state.kill(
                token: CheckFixture.token, since: CheckFixture.now, toldFrom: CheckFixture.now)
        },
        CheckCase(.deviceTokenAlive, "expired", 410, "ExpiredToken") {
            try? $0.state.kill(
                token: CheckFixture.token, since: CheckFixture.now, toldFrom: CheckFixture.now,
                isExpired: true)
        },
        CheckCase(.rate, "the third in its second", 429, "TooManyRequests") {
            $0.state.limits.burst = 2
            _ = $0.answer()
            _ = $0.answer()
        },
        CheckCase(.lint, "strict", 400, "BadPriority") {
            $0.state.options.strict = true
            LintRow.silent(&$0)
            $0.set("apns-priority", "10")
        },
    ]

    static let providerTokens: [CheckCase] = [
        CheckCase(.credentialsPresent, "none", 403, "MissingProviderToken") {
            $0.set("authorization", nil)
        },
        CheckCase(.credentialsPresent, "empty bearer", 403, "MissingProviderToken") {
            $0.set("authorization", "bearer ")
        },
        CheckCase(.credentialsPresent, "another scheme", 403, "MissingProviderToken") {
            $0.set("authorization", "basic YWJj")
        },
        CheckCase(.tokenForm, "two parts", 403, "InvalidProviderToken") { $0.authorize("YQ.YQ") },
        CheckCase(.tokenForm, "alg of another key kind", 403, "InvalidProviderToken") {
            let key = PrivateKey.generate(.ed25519)
            let header = Array(#"{"alg":"EdDSA","kid":"KEY0000001"}"#.utf8)
            let payload = Array(#"{"iss":"TEAM000001","iat":1700000000}"#.utf8)
            let token = try? CompactToken.sign(
                headerJSON: header, payloadJSON: payload, with: key)
            $0.authorize(token ?? "")
        },
        CheckCase(.tokenForm, "no kid", 403, "InvalidProviderToken") {
            let payload = Array(#"{"iss":"TEAM000001","iat":1700000000}"#.utf8)
            let token = try? CompactToken.sign(
                headerJSON: Array(#"{"alg":"ES256"}"#.utf8), payloadJSON: payload,
                with: CheckFixture.key)
            $0.authorize(token ?? "")
        },
        CheckCase(.tokenKey, "unknown", 403, "InvalidProviderToken") {
            $0.authorize(CheckFixture.providerToken(kid: "KEY9999999"))
        },
        CheckCase(.tokenKey, "revoked", 403, "InvalidProviderToken") {
            try? $0.state.revokeKey(CheckFixture.keyID)
        },
        CheckCase(.tokenKey, "revoked on an open connection", 403, "InvalidProviderToken") {
            _ = $0.answer()
            try? $0.state.revokeKey(CheckFixture.keyID)
        },
        CheckCase(.tokenTeam, "another", 403, "InvalidProviderToken") {
            $0.authorize(CheckFixture.providerToken(iss: "TEAM000002"))
        },
        CheckCase(.tokenSignature, "by another key", 403, "InvalidProviderToken") {
            $0.authorize(CheckFixture.providerToken(with: CheckFixture.otherKey))
        },
        CheckCase(.tokenIssued, "no iat", 403, "InvalidProviderToken") {
            $0.authorize(CheckFixture.providerToken(iat: "null"))
        },
        CheckCase(.tokenIssued, "over an hour ahead", 403, "InvalidProviderToken") {
            $0.authorize(CheckFixture.providerToken(iat: "1700003601"))
        },
        CheckCase(.tokenAge, "over an hour", 403, "ExpiredProviderToken") {
            $0.authorize(CheckFixture.providerToken(iat: "1699996399"))
        },
        CheckCase(.tokenAge, "grown on its connection", 403, "ExpiredProviderToken") {
            _ = $0.answer()
            $0.now = CheckFixture.now + 3_601_000
        },
        CheckCase(.keyEnvironment, "the other", 403, "BadEnvironmentKeyIdInToken") {
            $0.authorize(
                CheckFixture.providerToken(kid: "KEY0000003", with: CheckFixture.otherKey))
        },
        CheckCase(.keyEnvironment, "as on the wire", 403, "BadEnvironmentKeyInToken") {
            $0.state.options.usesWireSpelling = true
            $0.authorize(
                CheckFixture.providerToken(kid: "KEY0000003", with: CheckFixture.otherKey))
        },
        CheckCase(.connectionTeam, "another", 403, "InvalidProviderToken") {
            _ = $0.answer()
            $0.authorize(
                CheckFixture.providerToken(
                    kid: "KEY0000002", iss: "TEAM000002", with: CheckFixture.otherKey))
        },
        CheckCase(.connectionTeam, "another, by choice", 403, "Forbidden") {
            $0.state.options.forbidsOtherTeams = true
            _ = $0.answer()
            $0.authorize(
                CheckFixture.providerToken(
                    kid: "KEY0000002", iss: "TEAM000002", with: CheckFixture.otherKey))
        },
        CheckCase(.connectionKey, "unrelated", 403, "UnrelatedKeyIdInToken") {
            _ = $0.answer()
            $0.authorize(
                CheckFixture.providerToken(kid: "KEY0000004", with: CheckFixture.otherKey))
        },
        CheckCase(.tokenUpdates, "before 20 minutes", 429, "TooManyProviderTokenUpdates") {
            _ = $0.answer()
            $0.now = CheckFixture.now + 1_199_999
            $0.authorize(CheckFixture.providerToken(at: $0.now))
        },
        CheckCase(.tokenUpdates, "on another connection", 429, "TooManyProviderTokenUpdates") {
            $0.state.options.countsTokenUpdatesPerKey = true
            _ = $0.answer()
            $0.connection = ConnectionState(environment: .production)
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

    @Test(arguments: CheckCase.requests + CheckCase.providerTokens)
    func eachRowOfTheTable(_ row: CheckCase) throws {
        var fixture = try CheckFixture()
        row.spoil(&fixture)
        let answer = fixture.answer()
        #expect(answer.status == row.status)
        #expect(answer.reason == row.reason)
        #expect(answer.check == row.check)
        #expect(answer.delivery == nil)
        let time = row.status == 410 ? #","timestamp":1700000000000"# : ""
        #expect(
            String(decoding: answer.body, as: UTF8.self) == #"{"reason":"\#(row.reason)"\#(time)}"#)
        let isFresh = row.reason == "BadMessageId"
        #expect(
            answer.apnsID
                == (isFresh
                    ? CheckFixture.freshID.description : "00000000-0000-0000-0000-0000000000aa"))
    }

    @Test func everyCheckHasARow() {
        let tested = Set((CheckCase.requests + CheckCase.providerTokens).map(\.check))
        #expect(Set(Check.allCases).subtracting(tested).isEmpty)
        // Without a choice the rows say what the table of checks says.
        for row in CheckCase.requests + CheckCase.providerTokens where row.check != .lint {
            if row.name.contains("choice") || row.name.contains("wire") { continue }
            if row.reason == "ExpiredToken" { continue }
            #expect(row.check.refusal.rawValue == row.reason)
            #expect(row.check.refusal.status == row.status)
        }
    }

    @Test func relatedKeysMayFollowEachOther() throws {
        var fixture = try CheckFixture()
        fixture.authorize(
            CheckFixture.providerToken(kid: "KEY0000004", with: CheckFixture.otherKey))
        #expect(fixture.answer().status == 200)
        fixture.now = CheckFixture.now + 1_200_000
        fixture.authorize(
            CheckFixture.providerToken(
                kid: "KEY0000005", with: CheckFixture.otherKey, at: fixture.now))
        #expect(fixture.answer().status == 200)
    }

    @Test func aCertificateNeedsNoTokenAndGivesTheTopic() throws {
        var fixture = try CheckFixture()
        fixture.present([CheckFixture.topic])
        // What is in the header is not looked at.
        fixture.authorize("nonsense")
        fixture.set("apns-topic", nil)
        let answer = fixture.answer()
        #expect(answer.status == 200)
        #expect(answer.delivery?.topic == CheckFixture.topic)
        fixture.present([CheckFixture.topic, CheckFixture.topic + ".voip"])
        fixture.set("apns-topic", CheckFixture.topic + ".voip")
        fixture.set("apns-push-type", "voip")
        #expect(fixture.answer().status == 200)
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
        LintRow(.tokenNotShared) {
            _ = $0.answer()
            let (older, connection) = ($0.push["authorization"], $0.connection)
            $0.connection = ConnectionState(environment: .production)
            $0.now = CheckFixture.now + 1_200_000
            $0.authorize(CheckFixture.providerToken(at: $0.now))
            _ = $0.answer()
            $0.set("authorization", older)
            $0.connection = connection
            $0.now = CheckFixture.now + 1_260_001
        },
        LintRow(.tokenRenewedEarly) {
            _ = $0.answer()
            $0.connection = ConnectionState(environment: .production)
            $0.now = CheckFixture.now + 1_199_999
            $0.authorize(CheckFixture.providerToken(at: $0.now))
        },
        LintRow(.expirationPast) { $0.set("apns-expiration", "1699999999") },
        LintRow(.expirationInMilliseconds) { $0.set("apns-expiration", "1700000001000") },
        LintRow(.backgroundMayBeStored) {
            silent(&$0)
            $0.set("apns-expiration", nil)
        },
        LintRow(.alertPriorityOne) { $0.set("apns-priority", "1") },
        LintRow(.idleWithoutPing) {
            _ = $0.answer()
            $0.state.limits.idleMilliseconds = 600_000
            _ = $0.connection.pinged(limits: $0.state.limits, now: $0.now)
            $0.now = $0.now + 600_001
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

    @Test(arguments: LintRow.rows)
    func strictRefusesEach(_ row: LintRow) throws {
        var fixture = try CheckFixture()
        row.spoil(&fixture)
        fixture.state.options.strict = true
        let answer = fixture.answer()
        #expect(answer.check == .lint)
        #expect(answer.reason == row.lint.strictRefusal?.rawValue)
        #expect(answer.status == row.lint.strictRefusal?.status)
        #expect(answer.delivery == nil)
        // The same without what was spoiled is as good as ever.
        var good = try CheckFixture()
        good.state.options.strict = true
        #expect(good.answer().status == 200)
    }

    @Test func aDeadTokenThatWasToldOf() throws {
        var fixture = try CheckFixture()
        try fixture.state.kill(
            token: CheckFixture.token, since: CheckFixture.now, toldFrom: CheckFixture.now)
        #expect(fixture.answer().lints == [])
        let again = fixture.answer()
        #expect(again.status == 410)
        #expect(again.lints == [.deadTokenAgain])
    }

    @Test func aPINGInTheHourIsEnough() throws {
        var fixture = try CheckFixture()
        _ = fixture.answer()
        fixture.now = CheckFixture.now + 1_800_000
        _ = fixture.connection.pinged(limits: fixture.state.limits, now: fixture.now)
        fixture.now = CheckFixture.now + 3_599_000 + 1_500
        #expect(fixture.answer().lints == [])
    }

    @Test func everyLintOfTheChecksHasARow() {
        let tested = Set(LintRow.rows.map(\.lint) + [.deadTokenAgain])
        // The rest belongs to the connection.
        #expect(
            Set(Lint.allCases).subtracting(tested)
                == Set(Lint.allCases.filter { $0.strictRefusal == nil }))
    }
}
