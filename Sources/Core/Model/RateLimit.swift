/// How often something may happen: so many at once, and then so many a second.
public struct RateLimit: Hashable, Sendable {
    /// Tokens that come back in a second; 0: there is no limit.
    public var perSecond: UInt64
    /// Tokens there are at most. A request that costs more is let in when all of them are there,
    /// and the rest is owed.
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
    /// Thousandths of a token: each millisecond brings `perSecond` of them. Below 0: they were used
    /// and were not there, and come back first. One number, for each connection has buckets.
    private var level: Int64
    private var at: Instant

    /// A full bucket.
    public init(_ limit: RateLimit, now: Instant) {
        level = Self.full(limit)
        at = now
    }

    /// Takes `count` tokens if they are there.
    ///
    /// - Returns: `nil` if they were taken, else after how long they would be there.
    public mutating func take(
        _ limit: RateLimit, count: UInt64 = 1, now: Instant
    ) -> Milliseconds? {
        guard limit.perSecond > 0 else { return nil }
        refill(limit, now: now)
        let cost = Int64(min(count, limit.burst)) * 1000
        if level >= cost {
            use(limit, count)
            return nil
        }
        return (UInt64(cost - level) + limit.perSecond - 1) / limit.perSecond
    }

    /// Takes `count` tokens, whether they are there or not: what happened before its holder was
    /// known.
    public mutating func charge(_ limit: RateLimit, count: UInt64, now: Instant) {
        guard limit.perSecond > 0 else { return }
        refill(limit, now: now)
        use(limit, count)
    }

    private mutating func use(_ limit: RateLimit, _ count: UInt64) {
        let most = limit.burst + limit.perSecond * Self.owedSeconds
        level = max(level - Int64(min(count, most)) * 1000, -Self.owed(limit))
    }

    private mutating func refill(_ limit: RateLimit, now: Instant) {
        let (gained, isFar) = now.since(at).multipliedReportingOverflow(by: limit.perSecond)
        at = max(at, now)
        // A limit may have been lowered meanwhile.
        let full = Self.full(limit)
        level = min(max(level, -Self.owed(limit)), full)
        level = isFar || gained >= UInt64(full - level) ? full : level + Int64(gained)
    }

    private static func full(_ limit: RateLimit) -> Int64 { Int64(limit.burst) * 1000 }

    /// What comes back in a minute is owed at most, so that nobody waits for ever.
    private static func owed(_ limit: RateLimit) -> Int64 {
        Int64(limit.perSecond * owedSeconds) * 1000
    }

    private static let owedSeconds: UInt64 = 60
}

/// What is remembered of holders, of a bounded number of them.
///
/// Two generations: a holder that comes moves to the younger one; when that is full it becomes the
/// older one, and what was in the older one is forgotten. So the holders that came least recently
/// are forgotten first, without a list in order of use.
public struct RecentTable<Holder: Hashable & Sendable, Value: Sendable>: Sendable {
    private let generationMax: Int
    private var younger: [Holder: Value] = [:]
    private var older: [Holder: Value] = [:]

    /// - Parameter holdersMax: holders remembered at most.
    public init(holdersMax: Int) { generationMax = max(holdersMax / 2, 1) }

    /// Holders remembered now.
    public var count: Int {
        younger.count + older.keys.reduce(0) { younger[$1] == nil ? $0 + 1 : $0 }
    }

    /// What is remembered of a holder; to ask makes it no more recent.
    public subscript(holder: Holder) -> Value? { younger[holder] ?? older[holder] }

    /// Gives what is remembered of a holder, or else `first`, to a body that may change it.
    public mutating func with<Answer>(
        _ holder: Holder, first: @autoclosure () -> Value, _ body: (inout Value) -> Answer
    ) -> Answer {
        if younger[holder] == nil {
            if younger.count >= generationMax {
                older = younger
                younger = [:]
            }
            younger[holder] = older[holder]
        }
        return body(&younger[holder, default: first()])
    }
}

/// Token buckets by holder, of a bounded number of holders. A holder that is forgotten has a full
/// bucket: the table errs in favour of the peer.
public struct RateTable<Holder: Hashable & Sendable>: Sendable {
    private var buckets: RecentTable<Holder, TokenBucket>

    /// - Parameter holdersMax: holders remembered at most.
    public init(holdersMax: Int) { buckets = RecentTable(holdersMax: holdersMax) }

    /// Holders remembered now.
    public var count: Int { buckets.count }

    /// Takes `count` tokens of `holder`, as `TokenBucket.take` does.
    public mutating func take(
        of holder: Holder, _ limit: RateLimit, count: UInt64 = 1, now: Instant
    ) -> Milliseconds? {
        guard limit.perSecond > 0 else { return nil }
        return buckets.with(holder, first: TokenBucket(limit, now: now)) {
            $0.take(limit, count: count, now: now)
        }
    }

    /// After how long `take` would take them; `nil`: now. Takes nothing.
    public func wait(
        of holder: Holder, _ limit: RateLimit, count: UInt64 = 1, now: Instant
    ) -> Milliseconds? {
        var bucket = buckets[holder] ?? TokenBucket(limit, now: now)
        return bucket.take(limit, count: count, now: now)
    }

    /// Takes `count` tokens of `holder`, as `TokenBucket.charge` does.
    public mutating func charge(
        _ holder: Holder, _ limit: RateLimit, count: UInt64, now: Instant
    ) {
        guard limit.perSecond > 0 else { return }
        buckets.with(holder, first: TokenBucket(limit, now: now)) {
            $0.charge(limit, count: count, now: now)
        }
    }
}
