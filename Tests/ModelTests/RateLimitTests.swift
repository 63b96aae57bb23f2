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

    @Test func whatCostsMoreThanTheBurstIsLetInAndOwed() {
        let limit = RateLimit(perSecond: 10, burst: 5)
        var bucket = TokenBucket(limit, now: at(0))
        #expect(bucket.take(limit, count: 25, now: at(0)) == nil)
        #expect(bucket.take(limit, count: 100, now: at(0)) == 2_500)
        #expect(bucket.take(limit, now: at(2_000)) == 100)
        #expect(bucket.take(limit, count: 100, now: at(2_500)) == nil)
        // Of which a minute's are owed.
        #expect(bucket.take(limit, count: 0, now: at(2_500)) == 9_500)
        #expect(bucket.take(limit, count: .max, now: at(12_500)) == nil)
        #expect(bucket.take(limit, count: 0, now: at(12_500)) == 60_000)
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

    @Test("what was charged and was not there is paid back before anything is taken")
    func charged() {
        let limit = RateLimit(perSecond: 10, burst: 5)
        var bucket = TokenBucket(limit, now: at(0))
        bucket.charge(limit, count: 3, now: at(0))
        #expect(bucket.take(limit, count: 0, now: at(0)) == nil)
        bucket.charge(limit, count: 4, now: at(0))
        #expect(bucket.take(limit, count: 0, now: at(0)) == 200)
        #expect(bucket.take(limit, now: at(100)) == 200)
        #expect(bucket.take(limit, count: 0, now: at(200)) == nil)
        #expect(bucket.take(limit, now: at(300)) == nil)
        // A minute's tokens are owed at most.
        for _ in 0..<9 { bucket.charge(limit, count: .max, now: at(300)) }
        #expect(bucket.take(limit, count: 0, now: at(300)) == 60_000)
        #expect(bucket.take(limit, count: 5, now: at(60_800)) == nil)
        bucket.charge(limit, count: 1, now: at(60_800))
        #expect(bucket.take(limit, count: 5, now: at(.max)) == nil)
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
