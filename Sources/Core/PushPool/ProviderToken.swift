import Feed
import Model

/// What names a signing key at Apple.
public struct ProviderKey: Hashable, Comparable, Sendable {
    private let exactTeam: ExactText
    private let exactKeyID: ExactText
    private let exactPEM: ExactText

    public init(team: String, keyID: String, pem: String) {
        exactTeam = ExactText(team)
        exactKeyID = ExactText(keyID)
        exactPEM = ExactText(pem)
    }

    public var team: String { exactTeam.text }
    public var keyID: String { exactKeyID.text }
    public var pem: String { exactPEM.text }

    public static func < (left: Self, right: Self) -> Bool {
        (left.exactTeam, left.exactKeyID, left.exactPEM)
            < (right.exactTeam, right.exactKeyID, right.exactPEM)
    }
}

/// The provider token of one key as this process knows it. The store decides which one it is: all
/// connections, nodes and starts share it.
struct ProviderToken: Equatable {
    /// So long before its end it is not sent any more: it has a way to go.
    static let margin: Milliseconds = 60_000
    /// A token is dated wrongly if the clocks say so by more.
    static let tolerance: Milliseconds = 5 * 60_000
    /// Between two tokens that APNs does not take, and two tries of one that it took before.
    static let retry: Milliseconds = 60_000
    /// Between two looks at the clock that replace a token.
    static let datingSpacing: Milliseconds = 5_000

    /// What to do after APNs called a token expired.
    enum Expiry: Equatable {
        /// Go on, on another connection: with a new token, or with the same one again.
        case goOn
        /// Send nothing for so long.
        case rest(Milliseconds)
    }

    private(set) var token = ""
    /// APNs called this one expired, or it is dated wrongly.
    private(set) var refused: String?
    private(set) var madeAt: Instant?
    /// Its `iat` in milliseconds since 1970; `nil`: it cannot be read.
    private var issuedAt: UInt64?
    /// Whether APNs has taken it. Apple's twenty minutes are between tokens that were.
    private(set) var isTaken = false
    /// When the store may be asked again after a refusal.
    private var askAt: Instant?
    private var replacedAt: Instant?
    private var triedAgainAt: Instant?
    private var datedAt: Instant?

    /// The token to send now; `nil`: none is at hand.
    func current(now: Instant) -> String? {
        guard let madeAt, refused == nil else { return nil }
        return now.since(madeAt) < ProviderTokenRecord.lifetime - Self.margin ? token : nil
    }

    /// Whether the store is to be asked: there is none, or it is due to be replaced.
    func isDue(now: Instant) -> Bool {
        guard let madeAt else { return true }
        if refused != nil { return askAt.map { $0 <= now } ?? true }
        return now.since(madeAt) >= ProviderTokenRecord.renewAfter
    }

    /// Whether another may take its place before twenty minutes are over.
    var isReplacedYoung: Bool { refused != nil && !isTaken }

    /// What the store says. It may be the one that was refused: then that is too young to be
    /// replaced, and is sent again.
    ///
    /// - Parameter issuedAt: its `iat`; `nil`: it cannot be read.
    mutating func take(_ kept: KeptProviderToken, issuedAt: UInt64?, now: Instant) {
        if token != kept.token {
            isTaken = false
            self.issuedAt = issuedAt
        }
        token = kept.token
        refused = nil
        askAt = nil
        madeAt = Instant(
            milliseconds: now.milliseconds > kept.age ? now.milliseconds - kept.age : 0)
    }

    /// APNs believed the token of a push, whatever it said of the push.
    mutating func believed(_ sent: String?) {
        guard !isTaken || triedAgainAt != nil, let sent, sent == token else { return }
        isTaken = true
        triedAgainAt = nil
    }

    /// Gives up a token that APNs has not taken and whose time of issue is not that of the clocks:
    /// one of them was put right since it was made.
    ///
    /// - Parameter time: the best that is known, in milliseconds since 1970.
    /// - Returns: whether it was given up now.
    mutating func checkDate(time: UInt64, now: Instant) -> Bool {
        guard let madeAt, let issuedAt, refused == nil, !isTaken else { return false }
        if let datedAt, now.since(datedAt) < Self.datingSpacing { return false }
        let told = Int64(clamping: time) - Int64(clamping: issuedAt)
        guard (told - Int64(clamping: now.since(madeAt))).magnitude > Self.tolerance else {
            return false
        }
        datedAt = now
        refused = token
        return true
    }

    /// APNs calls the token of a push expired. That of many pushes under way is, one after the
    /// other: what it says of the token before this one is known.
    mutating func expired(sent: String?, time: UInt64, now: Instant) -> Expiry {
        guard let madeAt, refused == nil, sent == token else { return .goOn }
        let isOld =
            issuedAt.map { time >= $0 + ProviderTokenRecord.lifetime - Self.margin } ?? false
        if isOld || now.since(madeAt) >= ProviderTokenRecord.spacing {
            // What APNs will not take again does not count as taken.
            isTaken = isTaken && !isOld
            refused = token
            return .goOn
        }
        if isTaken {
            // Nothing but APNs has changed, and a new token would be punished.
            if let triedAgainAt, now.since(triedAgainAt) < Self.retry { return .rest(Self.retry) }
            triedAgainAt = now
            return .goOn
        }
        refused = token
        if let replacedAt, now.since(replacedAt) < Self.retry {
            askAt = replacedAt + Self.retry
            self.replacedAt = askAt
            return .rest(Self.retry - now.since(replacedAt))
        }
        replacedAt = now
        return .goOn
    }
}
