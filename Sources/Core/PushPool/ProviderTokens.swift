public import Feed
import Model

/// What a token is to be like that is signed and brought to the store.
public struct TokenRequest: Equatable, Sendable {
    public let key: ProviderKey
    /// Its time of issue, in milliseconds since 1970.
    public let issuedAt: UInt64
    /// See `KeepProviderToken`.
    public let refused: String?
    public let replacesYoung: Bool
}

/// What came of asking for a token.
public enum TokenAnswer: Equatable, Sendable {
    /// This one is to be sent. Its time of issue is in milliseconds since 1970; `nil`: it cannot
    /// be read.
    case kept(KeptProviderToken, issuedAt: UInt64?)
    /// The store failed; each tick asks again.
    case failed
    /// The key cannot sign.
    case unusable(String)
}

/// The provider tokens in use, one a key; the store says which one that is.
struct ProviderTokens {
    private var held: [ProviderKey: Held] = [:]

    private struct Held {
        var token = ProviderToken()
        var isAsked = false
        /// Why the key cannot sign.
        var problem: String?
        /// What APNs' clock said, and when.
        var heard: (time: UInt64, at: Instant)?
        var isWrongTold = false
    }

    /// What makes APNs take a push of a key.
    enum Authority: Equatable {
        case token(String)
        /// The store is being asked for it.
        case awaited
        /// Nothing can be sent until the credential is changed.
        case unusable(String)
    }

    /// When the oldest token was made; `nil`: there is none.
    var oldest: Instant? { held.values.compactMap(\.token.madeAt).min() }

    /// This host's clock, unless APNs has another time: only its counts.
    private func time(_ key: ProviderKey, _ moment: PushMoment) -> UInt64 {
        guard let heard = held[key]?.heard else { return moment.wall }
        let told = heard.time + moment.uptime.since(heard.at)
        let isClose = Self.skew(moment.wall, told).magnitude <= ProviderToken.tolerance
        return isClose ? moment.wall : told
    }

    private static func skew(_ wall: UInt64, _ told: UInt64) -> Int64 {
        Int64(clamping: wall) - Int64(clamping: told)
    }

    /// The token to send. One that is due is asked for.
    mutating func current(_ key: ProviderKey, _ turn: inout PushTurn) -> Authority {
        checkDate(key, turn.moment)
        let known = held[key, default: Held()]
        if let problem = known.problem { return .unusable(problem) }
        let now = turn.moment.uptime
        if known.token.isDue(now: now), !known.isAsked {
            held[key, default: Held()].isAsked = true
            turn.actions.append(
                .keepToken(
                    TokenRequest(
                        key: key, issuedAt: time(key, turn.moment), refused: known.token.refused,
                        replacesYoung: known.token.isReplacedYoung)))
        }
        return known.token.current(now: now).map { .token($0) } ?? .awaited
    }

    /// The answer to what was asked. Its credential may have gone meanwhile.
    mutating func take(_ answer: TokenAnswer, of key: ProviderKey, _ moment: PushMoment) {
        guard held[key] != nil else { return }
        held[key]?.isAsked = false
        switch answer {
        case .kept(let kept, let issuedAt):
            held[key]?.token.take(kept, issuedAt: issuedAt, now: moment.uptime)
        case .failed: break
        case .unusable(let problem): held[key]?.problem = problem
        }
    }

    /// See `ProviderToken.expired`.
    mutating func expired(
        _ key: ProviderKey, sent: String?, _ moment: PushMoment
    ) -> ProviderToken.Expiry {
        let time = time(key, moment)
        return held[key]?.token.expired(sent: sent, time: time, now: moment.uptime) ?? .goOn
    }

    /// See `ProviderToken.believed`.
    mutating func believed(_ key: ProviderKey, sent: String?) {
        held[key]?.token.believed(sent)
    }

    /// See `ProviderToken.checkDate`.
    private mutating func checkDate(_ key: ProviderKey, _ moment: PushMoment) {
        let time = time(key, moment)
        _ = held[key]?.token.checkDate(time: time, now: moment.uptime)
    }

    /// Whether a token will not be sent again: there is, or will be, another one.
    mutating func isGivenUp(
        _ token: String, of key: ProviderKey, _ moment: PushMoment
    ) -> Bool {
        checkDate(key, moment)
        guard let known = held[key]?.token else { return false }
        return known.token != token || known.refused != nil
    }

    /// APNs has told its time.
    ///
    /// - Returns: by how many seconds this host's clock is ahead of it, if that is news and more
    ///   than a provider token bears.
    mutating func heard(_ key: ProviderKey, seconds: Int64, _ moment: PushMoment) -> Int64? {
        guard held[key] != nil, seconds > 0 else { return nil }
        let told = UInt64(seconds) * 1_000
        held[key]?.heard = (told, moment.uptime)
        let skew = Self.skew(moment.wall, told)
        let isWrong = skew.magnitude > ProviderToken.tolerance
        let isNews = isWrong && held[key]?.isWrongTold == false
        held[key]?.isWrongTold = isWrong
        return isNews ? skew / 1_000 : nil
    }

    /// Forgets what no credential uses any more. A key that is being asked about is known until
    /// the answer is there: it could come back, and be asked about twice at once.
    mutating func keep(_ keys: Set<ProviderKey>) {
        held = held.filter { keys.contains($0.key) || $0.value.isAsked }
    }
}
