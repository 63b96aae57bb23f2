import Crypto
import Feed
import Foundation
import HTTP2
import Model
import PushPool
import Telemetry
import Testing
import Wake

@testable import PushGateway

/// A wrong clock of this host, and what APNs says of its provider tokens.
extension GatewayTests {
    /// Refuses as APNs does by the true time, and tells it if `tellsTime`.
    private static func judge(
        _ clocks: TestClocks, tellsTime: Bool
    ) -> ScriptedServer.Script {
        { request in
            let headers =
                tellsTime ? [HTTP2Header("date", date(milliseconds: clocks.truth))] : []
            let claims = try? TokenMembers(
                json: CompactToken(request.token, maximumBytes: 4096).payloadJSON)
            let age = Int64(clocks.truth / 1_000) - (claims?.integer("iat") ?? 0)
            if age > 3_600 {
                return .refusal(403, "ExpiredProviderToken", headers: headers)
            }
            if age < -3_600 {
                return .refusal(403, "InvalidProviderToken", headers: headers)
            }
            return .answer(200, headers: headers)
        }
    }

    /// HTTP's form (RFC 9110 5.6.7).
    private static func date(milliseconds: UInt64) -> String {
        var time = time_t(milliseconds / 1_000)
        var parts = tm()
        gmtime_r(&time, &parts)
        var text = [CChar](repeating: 0, count: 64)
        strftime(&text, 64, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(cString: text)
    }

    @Test("a young token that APNs calls expired: one new token at once, not the key's rest")
    func youngToken() throws {
        let first = FirstOnly()
        let server = try Fixture.server { _ in
            first.isFirst("refused")
                ? .refusal(403, "ExpiredProviderToken") : .answer(200)
        }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.push(Fixture.jobs(1))
        eventually("no answer") { fixture.desk.finished.count == 1 }
        fixture.push(Fixture.jobs(3, from: 2))
        eventually("the key rests") { fixture.desk.accepted.count == 3 }
        #expect(Set(server.seen.map(\.token)).count == 2)
    }

    @Test("tokens that APNs never takes are made once a minute, no more")
    func neverTaken() throws {
        let server = try Fixture.server { _ in .refusal(403, "ExpiredProviderToken") }
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        for number in 1...2 {
            fixture.push(Fixture.jobs(1, from: UInt64(number)))
            eventually("no answer") { fixture.desk.finished.count == number }
        }
        eventually("the key does not rest") { fixture.count("push.paused") == 1 }
        fixture.push(Fixture.jobs(5, from: 10))
        for _ in 0..<20 { shortly() }
        #expect(Set(server.seen.map(\.token)).count == 2 && server.seen.count == 2)
        #expect(fixture.log.contains("is this host's clock right?"))
        #expect(fixture.log.contains("seconds=60"))
    }

    @Test("a token made by a clock that was wrong is replaced as soon as the clock is right")
    func clockPutRight() throws {
        for wrong in [Int64(-120), 120] {
            let clocks = TestClocks()
            let server = try Fixture.server(script: Self.judge(clocks, tellsTime: false))
            clocks.setWall(minutesAhead: wrong)
            let fixture = try Fixture(
                [try Fixture.credential("chat", port: server.port)], clocks: clocks
            ) { $0.pause = 600_000 }
            defer {
                fixture.stop()
                server.stop()
            }
            fixture.push(Fixture.jobs(1))
            eventually("no answer") { fixture.desk.finished.count == 1 }
            clocks.setWall(minutesAhead: 0)
            fixture.push(Fixture.jobs(3, from: 2))
            eventually("\(wrong) minutes: the key rests") { fixture.desk.accepted.count == 3 }
            #expect(Set(server.seen.map(\.token)).count <= 3)
        }
    }

    @Test("where APNs tells the time, a wrong clock costs nothing")
    func dateOfAnswers() throws {
        for wrong in [Int64(-120), 120] {
            let clocks = TestClocks()
            let server = try Fixture.server(script: Self.judge(clocks, tellsTime: true))
            clocks.setWall(minutesAhead: wrong)
            let fixture = try Fixture(
                [try Fixture.credential("chat", port: server.port)], clocks: clocks
            ) { $0.pause = 600_000 }
            defer {
                fixture.stop()
                server.stop()
            }
            fixture.push(Fixture.jobs(1))
            eventually("no answer") { fixture.desk.finished.count == 1 }
            fixture.push(Fixture.jobs(3, from: 2))
            eventually("\(wrong) minutes: the key rests") { fixture.desk.accepted.count == 3 }
            #expect(Set(server.seen.map(\.token)).count == 2)
            #expect(fixture.log.contains("event=push.clock_wrong"))
        }
    }

    @Test("a young token that APNs has taken is not replaced: Apple's twenty minutes")
    func takenToken() throws {
        let server = try Fixture.server()
        let fixture = try Fixture([try Fixture.credential("chat", port: server.port)])
        defer {
            fixture.stop()
            server.stop()
        }
        fixture.warmUp(server)
        let first = FirstOnly()
        server.setScript { _ in
            first.isFirst("fault") ? .refusal(403, "ExpiredProviderToken") : .answer(200)
        }
        fixture.push(Fixture.jobs(1))
        eventually("no answer") { fixture.desk.finished.count == 1 }
        // A fault of APNs: the same token on another connection shows it.
        fixture.push(Fixture.jobs(3, from: 2))
        eventually("the key rests") { fixture.desk.accepted.count == 3 }
        #expect(Set(server.seen.map(\.token)).count == 1)
        #expect(server.accepted == 2)
    }
}
