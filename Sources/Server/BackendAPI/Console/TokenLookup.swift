import Feed
import Model

/// Looks up the tokens of logins. All that came meanwhile share one reading of the few tokens that
/// live, and there are so many readings a second at most: whoever sends wrong ones costs the store
/// no more than that, and delays a right one by no more than the time to the next.
///
/// Who waits is bounded by the connections of the console. Loop-confined.
final class TokenLookup {
    typealias Found = (Result<ConsoleTokenRecord?, StoreError>) -> Void
    typealias Tokens = Result<[ConsoleTokenRecord], StoreError>

    static let limit = RateLimit(perSecond: 10, burst: 20)

    private let read: (@escaping (Tokens) -> Void) -> Void
    private let later: (Milliseconds) -> Void
    private var bucket: TokenBucket
    private var waiting: [(hash: [UInt8], then: Found)] = []
    /// A reading is under way, or its time is set.
    private var isUnderWay = false
    private var isClosed = false

    /// - Parameters:
    ///   - read: reads the tokens that live, and hands them over once.
    ///   - later: has `go` called after so long.
    init(
        now: Instant, read: @escaping (@escaping (Tokens) -> Void) -> Void,
        later: @escaping (Milliseconds) -> Void
    ) {
        self.read = read
        self.later = later
        bucket = TokenBucket(Self.limit, now: now)
    }

    /// Those who still wait.
    var count: Int { waiting.count }

    /// Looks for the token by a reading that begins from here on: one made just now is found.
    func find(hash: [UInt8], now: Instant, then: @escaping Found) {
        waiting.append((hash, then))
        if !isUnderWay { begin(now) }
    }

    /// The time that was set for the next reading is there.
    func go(now: Instant) { begin(now) }

    /// Nobody is answered any more.
    func close() {
        waiting = []
        isClosed = true
    }

    private func begin(_ now: Instant) {
        guard !isClosed else { return }
        isUnderWay = true
        if let wait = bucket.take(Self.limit, now: now) { return later(wait) }
        let asked = waiting
        waiting = []
        read { [unowned self] tokens in
            for (hash, then) in asked {
                then(tokens.map { all in all.first { $0.hash == hash } })
            }
            isUnderWay = !waiting.isEmpty
            if isUnderWay { later(0) }
        }
    }
}
