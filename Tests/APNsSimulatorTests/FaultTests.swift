import APNsSimulator
import Crypto
import Foundation
import HTTP2
import Testing

/// Faults as a provider meets them.
struct FaultTests {
    let harness: SimulatorHarness
    let token: String
    let authority: String

    init() throws {
        harness = try SimulatorHarness()
        token = try harness.device("phone")
        authority = try #require(SimulatorHarness.certificates).authorityPEM
    }

    func provider() throws -> Provider {
        try Provider(port: harness.ports.production, authority: authority)
    }

    /// A provider whose token was accepted.
    func proven() throws -> Provider {
        let provider = try provider()
        try provider.answer(try push(provider))
        try provider.wait { $0.limits.count > 1 }
        return provider
    }

    func push(_ provider: Provider) throws -> UInt64 {
        try provider.push(to: token, authorization: harness.providerToken)
    }

    func fault(
        _ kind: ControlRequest.FaultKind, _ change: (inout ControlRequest) -> Void = { _ in }
    ) throws {
        var request = ControlRequest(.fault)
        request.fault = kind
        change(&request)
        try harness.client.call(request)
    }

    @Test func shutdownAnswersAndSaysGoodbye() throws {
        let provider = try proven()
        try fault(.shutdown)
        let tag = try push(provider)
        #expect(try provider.answer(tag)?.body == #"{"reason":"Shutdown"}"#)
        #expect(provider.answers[tag]?.status == 503)
        try provider.wait { $0.goAway != nil }
        #expect(provider.goAway?.debug == #"{"reason":"Shutdown"}"#)
        #expect(provider.unprocessed.isEmpty)
    }

    @Test func goAwayInMidStreamAtTheNthPush() throws {
        let provider = try proven()
        // Two stay open, the third brings the GOAWAY that leaves itself and the second out.
        try fault(.silence) { $0.count = 2 }
        try fault(.goaway) {
            $0.count = 1
            $0.unprocessed = 2
            $0.reason = "InternalServerError"
        }
        let tags = try (0..<3).map { _ in try push(provider) }
        try provider.wait { $0.goAway != nil }
        #expect(provider.unprocessed == Array(tags.suffix(2)))
        #expect(provider.goAway?.debug == #"{"reason":"InternalServerError"}"#)
        #expect(!provider.finished.contains(tags[0]))
    }

    @Test func onlyTheNthOfAnAppIsHit() throws {
        let provider = try proven()
        try fault(.answer) {
            $0.status = 429
            $0.reason = "TooManyRequests"
            $0.topic = CheckFixture.topic
            $0.skip = 2
        }
        var statuses: [Int?] = []
        for _ in 0..<4 { statuses.append(try provider.answer(try push(provider))?.status) }
        #expect(statuses == [200, 200, 429, 200])
    }

    @Test func slowAnswersComeAfterTheOthers() throws {
        let provider = try proven()
        try fault(.slow) { $0.delayMs = 1_500 }
        let slow = try push(provider)
        let quick = try push(provider)
        try provider.answer(quick)
        #expect(!provider.finished.contains(slow))
        #expect(try provider.answer(slow)?.status == 200)
    }

    @Test func aCutConnectionIsGone() throws {
        let provider = try proven()
        try fault(.cut) { $0.count = 1 }
        let tag = try push(provider)
        #expect(try provider.answer(tag) == nil)
        #expect(provider.isEnded)
        #expect(provider.goAway == nil)
    }

    @Test func aHalfClosedConnectionSaysNothingMore() throws {
        let provider = try proven()
        try fault(.halfClose)
        let tag = try push(provider)
        try provider.wait { _ in false }
        #expect(provider.isEnded)
        #expect(!provider.finished.contains(tag))
    }

    @Test func streamsMayBeTakenAndGivenInMidAir() throws {
        let provider = try proven()
        try fault(.streams) { $0.streams = 3 }
        try provider.wait { $0.limits.last == 3 }
        try fault(.streams) { $0.streams = 0 }
        try provider.wait { $0.limits.last == 0 }
        #expect(throws: HTTP2Error.streamsExhausted) { try push(provider) }
        try fault(.streams) { $0.streams = 2 }
        try provider.wait { $0.limits.last == 2 }
        #expect(try provider.answer(try push(provider))?.status == 200)
    }

    @Test func theDoorMayRefuseTLSOrSayNothing() throws {
        try fault(.door) { $0.door = .broken }
        #expect(throws: (any Error).self) { try provider() }
        try fault(.door) { $0.door = .refused }
        #expect(throws: (any Error).self) { try provider() }
        try fault(.clear)
        _ = try proven()
    }

    @Test func aTableOfNoBytesIsObeyed() throws {
        try fault(.headerTable) { $0.bytes = 0 }
        let provider = try proven()
        #expect(try provider.answer(try push(provider))?.status == 200)
    }

    @Test func aStormPasses() throws {
        let provider = try proven()
        try fault(.answer) {
            $0.status = 503
            $0.reason = "ServiceUnavailable"
            $0.count = 20
        }
        let statuses = try (0..<21).map { _ in try provider.answer(try push(provider))?.status }
        #expect(statuses.dropLast().allSatisfy { $0 == 503 })
        #expect(statuses.last == 200)
        let status = try #require(try harness.client.call(ControlRequest(.status)).simulator)
        #expect(status.answers["503 ServiceUnavailable"] == 20)
        #expect(status.answers["200"] == 2)
    }
}
