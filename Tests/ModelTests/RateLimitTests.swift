import Model
import Testing

@Suite struct RateLimitTests {
    private func at(_ milliseconds: UInt64) -> Instant { Instant(milliseconds: milliseconds) }

    @Test func aBurstAndThenTheRate() {
        let limit = RateLimit(perSecond: 2, burst: 3)
        var bucket = TokenBucket(limit, now: at(1_000))
        let taken = (0..<3).map { _ in bucket.take(limit, now: at(1_000)) }
        #expect(taken == [nil, nil, nil])
        #expect(bucket.take(limit, now: at(1_000)) == 500)
        #expect(bucket.take(limit, now: at(1_499)) == 1)
        #expect(bucket.take(limit, now: at(1_500)) == nil)
        // Left alone it is full again, and not more than full.
        let later = (0..<4).map { _ in bucket.take(limit, now: at(900_000)) }
        #expect(later == [nil, nil, nil, 500])
    }

    @Test func whatCostsMoreThanTheBurstCostsTheBurst() {
        let limit = RateLimit(perSecond: 10, burst: 5)
        var bucket = TokenBucket(limit, now: at(0))
        #expect(bucket.take(limit, count: .max, now: at(0)) == nil)
        #expect(bucket.take(limit, count: 100, now: at(0)) == 500)
        #expect(bucket.take(limit, count: 100, now: at(500)) == nil)
    }

    @Test func extremesDoNotTrap() {
        let limit = RateLimit(perSecond: .max, burst: .max)
        var bucket = TokenBucket(limit, now: at(.max))
        #expect(bucket.take(limit, count: .max, now: at(0)) == nil)
        #expect(bucket.take(limit, count: .max, now: at(.max)) != nil)
        var table = RateTable<Int>(holdersMax: 0)
        #expect(table.take(of: 1, limit, now: at(.max)) == nil)
    }

    @Test func noLimitTakesNothingAndRemembersNobody() {
        var table = RateTable<Int>(holdersMax: 4)
        for holder in 0..<100 {
            #expect(table.take(of: holder, .none, count: 1_000, now: at(0)) == nil)
        }
        #expect(table.count == 0)
    }

    @Test func holdersAreApart() {
        let limit = RateLimit(perSecond: 1, burst: 1)
        var table = RateTable<String>(holdersMax: 100)
        #expect(table.take(of: "a", limit, now: at(0)) == nil)
        #expect(table.take(of: "a", limit, now: at(0)) == 1_000)
        #expect(table.take(of: "b", limit, now: at(0)) == nil)
    }

    @Test("the table stays bounded, and forgets whoever came least recently")
    func bounded() {
        let limit = RateLimit(perSecond: 1, burst: 1)
        var table = RateTable<Int>(holdersMax: 10)
        for holder in 0..<1_000 {
            _ = table.take(of: holder, limit, now: at(0))
            // Kept, for it comes all the time.
            if holder > 0 {
                #expect(table.take(of: -1, limit, now: at(0)) == (holder == 1 ? nil : 1_000))
            }
            #expect(table.count <= 10)
        }
        #expect(table.take(of: 0, limit, now: at(0)) == nil)
    }
}
