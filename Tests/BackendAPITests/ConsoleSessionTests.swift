import Feed
import Model
import Testing

@testable import BackendAPI

/// Sessions and guesses, by a clock of their own.
@Suite struct ConsoleSessionTests {
    private let wall = Timestamp(milliseconds: 1_000_000)

    private func token(
        _ lifetime: Milliseconds = 8 * 3_600_000, number: Int = 1
    ) -> ConsoleTokenRecord {
        ConsoleTokenRecord(
            tokenID: "ct_\(number)", hash: [UInt8(number)], label: "", role: .admin,
            createdAt: wall,
            expiresAt: wall + lifetime)
    }

    @Test("a session ends after an hour without a request; live numbers are none")
    func idle() {
        var sessions = ConsoleSessions()
        let (_, cookie) = sessions.open(token(), now: 0, wall: wall)
        #expect(sessions.find(cookie, now: 3_599_999, counts: false) != nil)
        #expect(sessions.find(cookie, now: 3_599_999, counts: true) != nil)
        #expect(sessions.find(cookie, now: 7_199_998, counts: false) != nil)
        #expect(sessions.find(cookie, now: 7_199_999, counts: true) == nil)
        #expect(sessions.count == 0)
    }

    @Test("however busy, it ends with its token")
    func token() {
        var sessions = ConsoleSessions()
        let (_, cookie) = sessions.open(token(5_000), now: 100, wall: wall)
        #expect(sessions.find(cookie, now: 5_099, counts: true) != nil)
        #expect(sessions.find(cookie, now: 5_100, counts: true) == nil)
    }

    @Test("of too many the one longest unused ends, and no two have a cookie in common")
    func many() {
        var sessions = ConsoleSessions()
        let first = (0..<ConsoleSessions.countMax).map { number in
            sessions.open(
                token(number: number % 64), now: UInt64(number), wall: wall
            ).cookie
        }
        #expect(Set(first).count == ConsoleSessions.countMax)
        #expect(sessions.find(first[0], now: 1_000, counts: true) != nil)
        let (_, last) = sessions.open(token(), now: 1_001, wall: wall)
        #expect(sessions.count == ConsoleSessions.countMax)
        #expect(sessions.find(first[0], now: 1_002, counts: true) != nil)
        #expect(sessions.find(first[1], now: 1_002, counts: true) == nil)
        #expect(sessions.find(last, now: 1_002, counts: true) != nil)
        sessions.end(last)
        #expect(sessions.find(last, now: 1_002, counts: true) == nil)
    }

    @Test("who logs in again and again ends only sessions of the same token")
    func own() {
        var sessions = ConsoleSessions()
        let (_, other) = sessions.open(token(number: 2), now: 0, wall: wall)
        for number in 0..<(2 * ConsoleSessions.countMax) {
            _ = sessions.open(token(), now: 1 + UInt64(number), wall: wall)
        }
        #expect(sessions.count == 1 + ConsoleSessions.tokenMax)
        #expect(sessions.find(other, now: 1_000, counts: true) != nil)
    }

    @Test("ten wrong tokens a minute of one address, a hundred of all")
    func gate() {
        var gate = LoginGate()
        for number in 0..<LoginGate.perAddress {
            #expect(gate.note("a", now: UInt64(number)) == nil)
        }
        #expect(gate.note("a", now: 100) == 59_900)
        // One that was too many does not count.
        #expect(gate.note("a", now: 59_999) == 1)
        #expect(gate.note("b", now: 100) == nil)
        #expect(gate.note("a", now: 60_000) == nil)
        #expect(gate.note("a", now: 60_000) == 1)
        gate.forgive("a")
        #expect(gate.note("a", now: 60_000) == nil)
        gate.forgive("a")
        gate.forgive("b")
        for number in 0..<LoginGate.ofAll { #expect(gate.note("\(number)", now: 70_000) == nil) }
        #expect(gate.note("fresh", now: 70_010) == 59_990)
    }
}
