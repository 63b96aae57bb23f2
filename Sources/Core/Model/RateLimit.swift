/// How often something may happen: so many at once, and then so many a second.
public struct RateLimit: Hashable, Sendable {
    /// Tokens that come back in a second; 0: there is no limit.
    public var perSecond: UInt64
    /// Tokens there are at most. A request that costs more is taken to cost this much.
    public var burst: UInt64

    public init(perSecond: UInt64, burst: UInt64) {
        self.perSecond = min(perSecond, Self.countMax)
        self.burst = min(max(burst, 1), Self.countMax)
    }

    /// Keeps products of a count and a thousandth within 64 bits.
    private static let countMax: UInt64 = 1 << 40

    public static let none = RateLimit(perSecond: 0, burst: 1)
}

/// Tokens of one holder under a `RateLimit`. A bucket that was left alone is full again.
public struct TokenBucket: Hashable, Sendable {
    /// Thousandths of a token: each millisecond brings `perSecond` of them.
    private var level: UInt64
    private var at: Instant

    /// A full bucket.
    public init(_ limit: RateLimit, now: Instant) {
        level = limit.burst * 1000
        at = now
    }

    /// Takes `count` tokens if they are there.
    ///
    /// - Returns: `nil` if they were taken, else after how long they would be there.
    public mutating func take(
        _ limit: RateLimit, count: UInt64 = 1, now: Instant
    ) -> Milliseconds? {
        guard limit.perSecond > 0 else { return nil }
        let full = limit.burst * 1000
        let (gained, isFar) = now.since(at).multipliedReportingOverflow(by: limit.perSecond)
        level = isFar || gained >= full ? full : min(full, level + gained)
        at = max(at, now)
        let cost = min(count, limit.burst) * 1000
        if level >= cost {
            level -= cost
            return nil
        }
        return (cost - level + limit.perSecond - 1) / limit.perSecond
    }
}

/// Token buckets by holder, of a bounded number of holders.
///
/// Two generations: a holder that comes moves to the younger one; when that is full it becomes the
/// older one, and what was in the older one is forgotten. So the holders that came least recently
/// are forgotten first, without a list in order of use. Who is forgotten has a full bucket: the
/// table errs in favour of the peer.
public struct RateTable<Holder: Hashable & Sendable>: Sendable {
    private let generationMax: Int
    private var younger: [Holder: TokenBucket] = [:]
    private var older: [Holder: TokenBucket] = [:]

    /// - Parameter holdersMax: holders remembered at most.
    public init(holdersMax: Int) { generationMax = max(holdersMax / 2, 1) }

    /// Holders remembered now.
    public var count: Int {
        younger.count + older.keys.reduce(0) { younger[$1] == nil ? $0 + 1 : $0 }
    }

    /// Takes `count` tokens of `holder`, as `TokenBucket.take` does.
    public mutating func take(
        of holder: Holder, _ limit: RateLimit, count: UInt64 = 1, now: Instant
    ) -> Milliseconds? {
        guard limit.perSecond > 0 else { return nil }
        if younger[holder] == nil {
            if younger.count >= generationMax {
                older = younger
                younger = [:]
            }
            younger[holder] = older[holder] ?? TokenBucket(limit, now: now)
        }
        return younger[holder]?.take(limit, count: count, now: now)
    }
}
