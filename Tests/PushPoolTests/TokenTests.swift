import Feed
import Model
import Testing

@testable import PushPool

/// The provider token of one key, by itself.
@Suite struct TokenTests {
    private func at(_ seconds: UInt64) -> Instant { Instant(milliseconds: seconds * 1_000) }
    /// The wall clock at the same moment.
    private func time(_ seconds: UInt64) -> UInt64 { 60_000_000 + seconds * 1_000 }

    @Test("a provider token is asked for again after 50 minutes, and sent for 59")
    func renewal() {
        var token = ProviderToken()
        func at(_ minutes: UInt64) -> Instant { self.at(5_000 + minutes * 60) }
        #expect(token.isDue(now: at(0)) && token.current(now: at(0)) == nil)
        // Another process made it ten minutes ago.
        token.take(KeptProviderToken(token: "a", age: 600_000), issuedAt: nil, now: at(0))
        #expect(token.current(now: at(39)) == "a" && !token.isDue(now: at(39)))
        #expect(token.isDue(now: at(40)))
        #expect(token.current(now: at(48)) == "a", "it is good until its successor is there")
        #expect(token.current(now: at(49)) == nil)
        token.take(KeptProviderToken(token: "b", age: 0), issuedAt: nil, now: at(49))
        #expect(token.current(now: at(50)) == "b" && !token.isDue(now: at(98)))
    }

    @Test("a token that APNs has taken is not replaced within 20 minutes, but tried again")
    func spacing() {
        var token = ProviderToken()
        func expired(_ sent: String, _ seconds: UInt64) -> ProviderToken.Expiry {
            token.expired(sent: sent, time: time(seconds), now: at(seconds))
        }
        token.take(
            KeptProviderToken(token: "a", age: 0), issuedAt: 60_000_000, now: at(0))
        token.believed("a")
        #expect(expired("a", 60) == .goOn)
        #expect(token.current(now: at(60)) == "a")
        #expect(expired("a", 61) == .rest(60_000))
        #expect(expired("a", 121) == .goOn)
        #expect(token.current(now: at(121)) == "a")
        #expect(expired("a", 1_200) == .goOn)
        #expect(token.refused == "a")
        #expect(token.isDue(now: at(1_200)) && token.current(now: at(1_200)) == nil)
        #expect(!token.isReplacedYoung)
        token.take(
            KeptProviderToken(token: "b", age: 0), issuedAt: 61_260_000, now: at(1_201))
        #expect(token.current(now: at(1_201)) == "b" && !token.isTaken)
        // The last pushes that were sent with the one before it.
        #expect(expired("a", 1_202) == .goOn)
        #expect(token.current(now: at(1_202)) == "b")
    }

    @Test("a token that APNs never took is replaced at once, and then once a minute")
    func neverTaken() {
        var token = ProviderToken()
        var made: [UInt64] = []
        for second in UInt64(0)..<200 {
            if token.isDue(now: at(second)) {
                made.append(second)
                token.take(
                    KeptProviderToken(token: "made at \(second)", age: 0), issuedAt: 60_000_000,
                    now: at(second))
            }
            guard let sent = token.current(now: at(second)) else { continue }
            _ = token.expired(sent: sent, time: time(second), now: at(second))
            #expect(token.refused == nil || token.isReplacedYoung)
        }
        #expect(made == [0, 1, 60, 120, 180])
    }

    @Test("a token whose date is not that of the clock any more is given up, unless it was taken")
    func misdated() {
        var token = ProviderToken()
        func take(_ text: String, minutes: UInt64, _ now: Instant) {
            token.take(
                KeptProviderToken(token: text, age: 0), issuedAt: minutes * 60_000, now: now)
        }
        func isGivenUp(_ minutes: UInt64, _ now: Instant) -> Bool {
            token.checkDate(time: minutes * 60_000, now: now)
        }
        take("a", minutes: 1_000, at(0))
        #expect(!isGivenUp(1_004, at(0)) && !isGivenUp(996, at(0)))
        #expect(isGivenUp(1_006, at(0)) && token.refused != nil)
        take("b", minutes: 1_006, at(0))
        #expect(!isGivenUp(900, at(0)), "not again and again")
        #expect(isGivenUp(900, at(10)))
        take("c", minutes: 900, at(10))
        token.believed("c")
        #expect(!isGivenUp(1_200, at(60)))
    }
}
