import APNsSimulator
import Crypto
import Foundation
import HTTP2
import Model
import Testing

/// The rules of connections, as APNs has them beyond RFC 9113: those that are a plain value.
struct ConnectionStateTests {
    let now = Timestamp(milliseconds: 1_700_000_000_000)
    var limits = SimulatorLimits()

    func open(_ limits: SimulatorLimits) -> ConnectionState {
        var state = ConnectionState(environment: .production)
        let streams = state.opened(
            certificate: SimulatorState.Certificate(topics: ["a.b"]), limits: limits, now: now)
        #expect(streams == limits.streams)
        return state
    }

    @Test func aRefusalLeavesOneStreamUntilTheNextSuccess() {
        var state = open(limits)
        #expect(
            state.answered(400, "BadPriority", limits: limits) == [.allow(streams: 1)])
        #expect(state.answered(403, "Forbidden", limits: limits) == [])
        #expect(state.answered(503, "Shutdown", limits: limits) == [])
        #expect(state.answered(200, nil, limits: limits) == [.allow(streams: 1_000)])
        // 410 is no error.
        #expect(state.answered(410, "Unregistered", limits: limits) == [])
    }

    @Test func theThrottleCanBeTakenAway() {
        var limits = limits
        limits.throttlesErrors = false
        var state = open(limits)
        #expect(state.answered(400, "BadPriority", limits: limits) == [])
    }

    @Test func badTokensCostMost() {
        var limits = limits
        limits.errorBudget = 10
        limits.throttlesErrors = false
        var state = open(limits)
        #expect(state.answered(400, "BadDeviceToken", limits: limits) == [])
        let end = ConnectionReaction.end(.errorBudget, reason: "BadDeviceToken", isCalm: true)
        #expect(state.answered(400, "BadDeviceToken", limits: limits) == [end])
        state = open(limits)
        for _ in 0..<9 { #expect(state.answered(400, "BadPriority", limits: limits) == []) }
        // A success gives one back.
        #expect(state.answered(200, nil, limits: limits) == [])
        #expect(state.answered(400, "BadPriority", limits: limits) == [])
        #expect(state.answered(400, "BadPriority", limits: limits).count == 1)
    }

    @Test func pingsAreCountedWithinTheirTime() {
        var state = open(limits)
        var reactions: [ConnectionReaction] = []
        for _ in 0..<59 { reactions += state.pinged(limits: limits, now: now) }
        #expect(reactions == [.lint(.pingTooOften)])
        #expect(
            state.pinged(limits: limits, now: now) == [
                .end(.pingFlood, reason: "", isCalm: true)
            ])
        state = open(limits)
        for minute in 0..<100 as Range<UInt64> {
            #expect(state.pinged(limits: limits, now: now + minute * 60_000) == [])
        }
    }

    @Test func silenceEndsAConnectionIfTheLimitsSaySo() {
        var limits = limits
        #expect(open(limits).idleEnd(limits) == nil)
        limits.idleTimeout = 1_000
        #expect(open(limits).idleEnd(limits) == now + 1_000)
    }

    @Test func addressesThatComeAndGoAreShutOut() {
        var limits = limits
        limits.churnNoted = 2
        limits.churnMax = 3
        var churn = ConnectionChurn()
        func end(_ address: String, after life: UInt64) -> Bool {
            churn.ended(address, openedAt: now, limits: limits, now: now + life)
        }
        #expect(!end("a", after: 10))
        #expect(end("a", after: 20))
        // One that lived long is none.
        #expect(!end("b", after: 60_000))
        #expect(!churn.isBlocked("a", now: now + 20))
        #expect(!end("a", after: 30))
        #expect(churn.isBlocked("a", now: now + 30))
        #expect(!churn.isBlocked("b", now: now + 30))
        #expect(churn.isBlocked("a", now: now + 60_029))
        #expect(!churn.isBlocked("a", now: now + 60_030))
    }
}

/// The same and the rest over real sockets.
struct ConnectionRuleTests {
    let authority: String

    init() throws {
        authority = try #require(SimulatorHarness.certificates).authorityPEM
    }

    func provider(
        _ harness: SimulatorHarness, certificate: IssuedCertificate? = nil
    ) throws -> Provider {
        try Provider(
            port: harness.ports.production, authority: authority, certificate: certificate)
    }

    func set(_ harness: SimulatorHarness, _ change: (inout SimulatorLimits) -> Void) throws {
        var request = ControlRequest(.limits)
        var limits = SimulatorLimits()
        change(&limits)
        request.limits = limits
        try harness.client.call(request)
    }

    func advance(_ harness: SimulatorHarness, milliseconds: Int64) throws {
        var request = ControlRequest(.clock)
        request.advanceMs = milliseconds
        try harness.client.call(request)
    }

    func certificate(
        _ harness: SimulatorHarness, _ environment: APNsEnvironment? = nil,
        topics: [String] = [CheckFixture.topic]
    ) throws -> IssuedCertificate {
        // Not ours to sign: of an authority that nobody here trusts.
        let made = try DevelopmentCertificates(names: ["elsewhere"]).issuePushClient(
            topics: topics, isForDevelopment: environment == .development,
            isForProduction: environment == .production)
        var request = ControlRequest(.certificateAdd)
        request.certificate = made.certificatePEM
        try harness.client.call(request)
        return made
    }

    // MARK: TLS

    @Test func oldTLSIsRefused() throws {
        let harness = try SimulatorHarness()
        func connect(_ version: String) throws -> Bool {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
            process.arguments = [
                "s_client", "-connect", "127.0.0.1:\(harness.ports.production)", "-alpn", "h2",
                "-cipher", "DEFAULT@SECLEVEL=0", version,
            ]
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            return process.terminationStatus == 0
        }
        #expect(try connect("-tls1_2"))
        #expect(try connect("-tls1_3"))
        #expect(try !connect("-tls1_1"))
    }

    @Test func aKnownCertificateHasAllStreamsAndNeedsNoToken() throws {
        let harness = try SimulatorHarness(maximumStreams: 7)
        let token = try harness.device("phone")
        let provider = try provider(harness, certificate: try certificate(harness))
        try provider.wait { !$0.limits.isEmpty }
        #expect(provider.limits == [7])
        let tag = try provider.push(to: token, authorization: nil)
        #expect(try provider.answer(tag)?.status == 200)
    }

    @Test func aCertificatePushesToTheTopicsItNames() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        let named = try provider(
            harness,
            certificate: try certificate(
                harness, topics: ["org.example.other", CheckFixture.topic]))
        func answer(
            _ provider: Provider, _ topic: String
        ) throws -> (status: Int?, body: String) {
            let tag = try provider.push(to: token, topic: topic, authorization: nil)
            let answer = try provider.answer(tag)
            return (answer?.status, answer?.body ?? "")
        }
        #expect(try answer(named, CheckFixture.topic).status == 200)
        var app = ControlRequest(.appAdd)
        app.topic = "org.example.third"
        app.team = "TEAM000001"
        try harness.client.call(app)
        let refused = try answer(named, "org.example.third")
        #expect(refused.status == 400 && refused.body.contains("TopicDisallowed"))
        // Ours to be named in the certificate, and no app's: the same reason.
        #expect(try answer(named, "org.example.other").body.contains("TopicDisallowed"))
        // One that names none is of no use.
        var request = ControlRequest(.certificateAdd)
        request.certificate =
            try DevelopmentCertificates(names: ["elsewhere"]).issueClient(name: "chat")
            .certificatePEM
        #expect(throws: (any Error).self) { try harness.client.call(request) }
    }

    @Test func unknownAndForeignCertificatesEndWithGOAWAY() throws {
        let harness = try SimulatorHarness()
        let unknown = try DevelopmentCertificates(names: ["elsewhere"]).issueClient(name: "chat")
        let revoked = try certificate(harness)
        var request = ControlRequest(.certificateRevoke)
        request.certificate = revoked.certificatePEM
        try harness.client.call(request)
        let foreign = try certificate(harness, .development)
        for (certificate, reason) in [
            (unknown, "BadCertificate"), (revoked, "BadCertificate"),
            (foreign, "BadCertificateEnvironment"),
        ] {
            let provider = try provider(harness, certificate: certificate)
            try provider.wait { $0.goAway != nil }
            #expect(provider.goAway?.last == 0)
            #expect(provider.goAway?.code == .noError)
            #expect(provider.goAway?.debug == #"{"reason":"\#(reason)"}"#)
            try provider.wait { _ in false }
            #expect(provider.isEnded)
        }
    }

    // MARK: Streams

    static let fields = [
        (":method", "POST"), (":scheme", "https"), (":authority", "localhost"),
        (":path", "/3/device/ab"),
    ]

    @Test func streamsBeforeSettingsAreKnownAreRefusedWithoutPunishment() throws {
        let harness = try SimulatorHarness()
        let provider = try RawProvider(port: harness.ports.production, authority: authority)
        for stream in [1, 3, 5] as [UInt32] { try provider.open(stream, Self.fields) }
        for stream in [3, 5] as [UInt32] {
            let reset = try provider.frame { $0.type == RawProvider.reset }
            #expect(reset?.stream == stream)
            #expect(reset?.code == 7)
        }
        // The connection lives.
        try provider.send(
            .init(type: RawProvider.ping, flags: 0, stream: 0, payload: Array("12345678".utf8)))
        let answer = try provider.frame { $0.type == RawProvider.ping || $0.type == 7 }
        #expect(answer?.type == RawProvider.ping)
        #expect(answer?.flags == 1)
    }

    @Test func streamsAboveTheKnownLimitEndTheConnection() throws {
        let harness = try SimulatorHarness()
        let provider = try RawProvider(port: harness.ports.production, authority: authority)
        _ = try provider.frame { $0.type == RawProvider.settings && $0.flags == 0 }
        try provider.acknowledge()
        try provider.open(1, Self.fields)
        try provider.open(3, Self.fields)
        let end = try provider.frame { $0.type == RawProvider.goAway }
        #expect(end?.code == 1)
        #expect(try provider.frame { _ in false } == nil)
    }

    @Test func hostStandsForAuthorityAndOneOfThemMustBeThere() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        let provider = try provider(harness)
        func headers(_ host: [HTTP2Header]) -> [HTTP2Header] {
            [
                HTTP2Header(":method", "POST"), HTTP2Header(":scheme", "https"),
                HTTP2Header(":path", "/3/device/" + token, indexing: .never),
            ] + host + [
                HTTP2Header("authorization", "bearer " + harness.providerToken),
                HTTP2Header("apns-topic", CheckFixture.topic),
                HTTP2Header("apns-push-type", "alert"),
            ]
        }
        let body = #"{"aps":{"alert":"Hi"}}"#
        let good = try provider.send(headers([HTTP2Header("host", "localhost")]), body: body)
        #expect(try provider.answer(good)?.status == 200)
        let bad = try provider.send(headers([]), body: body)
        #expect(try provider.answer(bad) == nil)
        #expect(provider.resets[bad]?.code == .protocolError)
    }

    @Test func hugeHeadersAreReset() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        let provider = try provider(harness)
        let tag = try provider.push(
            to: token, authorization: harness.providerToken,
            headers: [("x-long", String(repeating: "x", count: 20_000))])
        #expect(try provider.answer(tag) == nil)
        #expect(provider.resets[tag]?.code == .enhanceYourCalm)
    }

    @Test func refusalsThrottleAndSuccessLifts() throws {
        let harness = try SimulatorHarness(maximumStreams: 7)
        let token = try harness.device("phone")
        let provider = try provider(harness)
        let authorization = harness.providerToken
        for (target, status) in [(token, 200), ("00", 400), ("00", 400), (token, 200)] {
            let tag = try provider.push(to: target, authorization: authorization)
            #expect(try provider.answer(tag)?.status == status)
        }
        #expect(provider.limits == [1, 7, 1, 7])
        var kill = ControlRequest(.tokenKill)
        kill.token = token
        try harness.client.call(kill)
        let tag = try provider.push(to: token, authorization: authorization)
        #expect(try provider.answer(tag)?.status == 410)
        #expect(provider.limits == [1, 7, 1, 7])
    }

    @Test func tooManyBadTokensEndTheConnection() throws {
        let harness = try SimulatorHarness()
        try set(harness) { $0.errorBudget = 10 }
        let provider = try provider(harness)
        for _ in 0..<2 {
            let tag = try provider.push(to: "00", authorization: harness.providerToken)
            #expect(try provider.answer(tag)?.status == 400)
        }
        try provider.wait { $0.goAway != nil }
        #expect(provider.goAway?.code == .enhanceYourCalm)
        #expect(provider.goAway?.debug == #"{"reason":"BadDeviceToken"}"#)
    }

    // MARK: Time

    @Test func hoursPassInNoTime() throws {
        let harness = try SimulatorHarness()
        let token = try harness.device("phone")
        let provider = try provider(harness)
        let old = harness.providerToken
        func reason(_ authorization: String) throws -> String? {
            let tag = try provider.push(to: token, authorization: authorization)
            return try provider.answer(tag)?.body
        }
        #expect(try reason(old) == "")
        try advance(harness, milliseconds: 19 * 60_000)
        let early = CheckFixture.providerToken(
            iat: String(harness.seconds + 19 * 60), with: harness.key)
        #expect(try reason(early) == #"{"reason":"TooManyProviderTokenUpdates"}"#)
        try advance(harness, milliseconds: 2 * 60_000)
        let fresh = CheckFixture.providerToken(
            iat: String(harness.seconds + 21 * 60), with: harness.key)
        #expect(try reason(fresh) == "")
        try advance(harness, milliseconds: 62 * 60_000)
        #expect(try reason(fresh) == #"{"reason":"ExpiredProviderToken"}"#)
        let last = try harness.event { $0.check == .tokenAge }
        #expect(last?.lints == [.idleWithoutPing])
    }

    @Test func aSilentConnectionEndsWithIdleTimeout() throws {
        let harness = try SimulatorHarness()
        try set(harness) { $0.idleTimeout = 7_200_000 }
        let provider = try provider(harness)
        try provider.wait { !$0.limits.isEmpty }
        try advance(harness, milliseconds: 7_100_000)
        try provider.ping()
        try provider.wait { $0.pings == 1 }
        try advance(harness, milliseconds: 7_100_000)
        try provider.ping()
        try provider.wait { $0.pings == 2 }
        try advance(harness, milliseconds: 7_200_000)
        try provider.wait { $0.goAway != nil }
        #expect(provider.goAway?.debug == #"{"reason":"IdleTimeout"}"#)
        #expect(provider.goAway?.code == .noError)
    }

    @Test func aFloodOfPINGsEndsTheConnection() throws {
        let harness = try SimulatorHarness()
        try set(harness) { $0.pingsMax = 6 }
        let provider = try provider(harness)
        for count in 1...5 {
            try provider.ping()
            try provider.wait { $0.pings == count }
        }
        #expect(try harness.event { $0.lints == [.pingTooOften] } != nil)
        try provider.ping()
        try provider.wait { $0.goAway != nil }
        #expect(provider.goAway?.code == .enhanceYourCalm)
    }

    @Test func whoComesAndGoesIsShutOut() throws {
        let harness = try SimulatorHarness()
        try set(harness) {
            $0.churnNoted = 2
            $0.churnMax = 3
        }
        for _ in 0..<3 {
            let head = try harness.client.call(ControlRequest(.status)).simulator?.head ?? 0
            _ = try provider(harness)
            _ = try harness.event(after: head) { $0.text?.hasPrefix("closed") ?? false }
        }
        #expect(try harness.event { $0.lints == [.connectionChurn] } != nil)
        #expect(throws: (any Error).self) { try self.provider(harness) }
        #expect(try harness.event { $0.rule == .churn } != nil)
        try advance(harness, milliseconds: 61_000)
        _ = try provider(harness)
    }

    // MARK: Strict

    @Test func strictMakesALintAnError() throws {
        let harness = try SimulatorHarness { $0.checks.strict = true }
        let token = try harness.device("phone")
        let provider = try provider(harness)
        let authorization = harness.providerToken
        let good = try provider.push(to: token, authorization: authorization)
        #expect(try provider.answer(good)?.status == 200)
        let bad = try provider.push(
            to: token, authorization: authorization, headers: [("apns-priority", "10")])
        #expect(try provider.answer(bad)?.body == #"{"reason":"BadPriority"}"#)
        for _ in 0..<4 { try provider.ping() }
        try provider.wait { $0.goAway != nil }
        #expect(provider.goAway?.debug == #"{"reason":"ping_too_often"}"#)
    }
}
