import Crypto
import Feed
import Model
import Telemetry

/// What names a signing key at Apple.
struct ProviderKey: Hashable, Comparable {
    private let exactTeam: ExactText
    private let exactKeyID: ExactText
    private let exactPEM: ExactText

    init(team: String, keyID: String, pem: String) {
        exactTeam = ExactText(team)
        exactKeyID = ExactText(keyID)
        exactPEM = ExactText(pem)
    }

    var team: String { exactTeam.text }
    var keyID: String { exactKeyID.text }
    var pem: String { exactPEM.text }

    /// What stands for the key in the store beside its names.
    var fingerprint: [UInt8] { Digest.sha256(Array(pem.utf8)) }

    static func < (left: Self, right: Self) -> Bool {
        (left.exactTeam, left.exactKeyID, left.exactPEM)
            < (right.exactTeam, right.exactKeyID, right.exactPEM)
    }
}

/// Why a credential cannot make provider tokens.
struct UnusableKey: Error, CustomStringConvertible {
    let description: String
}

/// Makes the provider tokens of one key: JSON web tokens (Apple: Establishing a token-based
/// connection to APNs).
struct ProviderSigner {
    private let key: PrivateKey
    private let header: [UInt8]
    private let team: String

    init(_ provider: ProviderKey) throws(UnusableKey) {
        guard Self.isPlain(provider.keyID), Self.isPlain(provider.team) else {
            throw UnusableKey(description: "key id or team is not of letters and digits")
        }
        do {
            key = try PrivateKey(pem: Array(provider.pem.utf8))
        } catch {
            throw UnusableKey(description: "signing key: \(error)")
        }
        guard key.kind == .p256 else {
            throw UnusableKey(description: "the signing key is not of the curve P-256")
        }
        header = Array(#"{"alg":"ES256","kid":"\#(provider.keyID)"}"#.utf8)
        team = provider.team
    }

    /// Another token each time. `wall` is milliseconds since 1970.
    func sign(wall: UInt64) throws(UnusableKey) -> String {
        let claims = #"{"iss":"\#(team)","iat":\#(wall / 1000)}"#
        do {
            return try CompactToken.sign(
                headerJSON: header, payloadJSON: Array(claims.utf8), with: key)
        } catch {
            throw UnusableKey(description: "signing failed: \(error)")
        }
    }

    /// Nothing that JSON would have to escape.
    private static func isPlain(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy {
                $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
            }
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
    mutating func take(_ kept: KeptProviderToken, now: Instant) {
        if token != kept.token {
            isTaken = false
            issuedAt = Self.issuedAt(kept.token)
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

    private static func issuedAt(_ token: String) -> UInt64? {
        let claims = try? TokenMembers(
            json: CompactToken(token, maximumBytes: 4_096).payloadJSON)
        guard let seconds = claims?.integer("iat"), (0...(1 << 40)).contains(seconds) else {
            return nil
        }
        return UInt64(seconds) * 1_000
    }
}

/// The provider tokens in use, one a key. Loop-confined.
final class ProviderTokens {
    private var held: [ProviderKey: Held] = [:]
    private let clocks: GatewayClocks
    private let metrics: GatewayMetrics
    private let queue: any PushQueue
    /// A token that was awaited is there, or is to be asked for again.
    var onToken: (ProviderKey) -> Void = { _ in }

    private struct Held {
        let signer: ProviderSigner
        let fingerprint: [UInt8]
        var token = ProviderToken()
        var isAsked = false
        /// What APNs' clock said, and when by the monotonic one.
        var heard: (time: UInt64, at: Instant)?
        var isWrongTold = false
    }

    init(clocks: GatewayClocks, metrics: GatewayMetrics, queue: any PushQueue) {
        self.clocks = clocks
        self.metrics = metrics
        self.queue = queue
    }

    private var now: Instant { Instant(milliseconds: clocks.monotonic()) }

    /// Our own clock, unless APNs has another time: only its counts.
    private func time(_ key: ProviderKey) -> UInt64 {
        let wall = clocks.wall()
        guard let heard = held[key]?.heard else { return wall }
        let told = heard.time + now.since(heard.at)
        return Self.skew(wall, told).magnitude <= ProviderToken.tolerance ? wall : told
    }

    private static func skew(_ wall: UInt64, _ told: UInt64) -> Int64 {
        Int64(clamping: wall) - Int64(clamping: told)
    }

    /// The token to send; `nil`: it is asked for, and `onToken` tells when to come again.
    func current(_ key: ProviderKey) throws(UnusableKey) -> String? {
        if held[key] == nil {
            held[key] = Held(
                signer: try ProviderSigner(key), fingerprint: key.fingerprint)
        }
        checkDate(key)
        if let known = held[key], known.token.isDue(now: now), !known.isAsked {
            try ask(key, known)
        }
        return held[key]?.token.current(now: now)
    }

    private func ask(_ key: ProviderKey, _ known: Held) throws(UnusableKey) {
        let signed = try known.signer.sign(wall: time(key))
        held[key]?.isAsked = true
        let request = KeepProviderToken(
            team: key.team, keyID: key.keyID, fingerprint: known.fingerprint, token: signed,
            refused: known.token.refused, replacesYoung: known.token.isReplacedYoung)
        queue.keepProviderToken(request) { [weak self] result in
            self?.answered(key, signed, result)
        }
    }

    private func answered(
        _ key: ProviderKey, _ signed: String, _ result: Result<KeptProviderToken, StoreError>
    ) {
        // Its credential may have gone meanwhile.
        guard held[key] != nil else { return }
        held[key]?.isAsked = false
        // While the store fails, each tick asks again.
        guard case .success(let kept) = result else { return }
        let now = now
        held[key]?.token.take(kept, now: now)
        if kept.token == signed { metrics.tokensMade.add() }
        tell()
        onToken(key)
    }

    /// See `ProviderToken.expired`.
    func expired(_ key: ProviderKey, sent: String?) -> ProviderToken.Expiry {
        let (time, now) = (time(key), now)
        return held[key]?.token.expired(sent: sent, time: time, now: now) ?? .goOn
    }

    /// See `ProviderToken.believed`.
    func believed(_ key: ProviderKey, sent: String?) { held[key]?.token.believed(sent) }

    /// See `ProviderToken.checkDate`.
    private func checkDate(_ key: ProviderKey) {
        let (time, now) = (time(key), now)
        _ = held[key]?.token.checkDate(time: time, now: now)
    }

    /// Whether a token will not be sent again: there is, or will be, another one.
    func isGivenUp(_ token: String, of key: ProviderKey) -> Bool {
        checkDate(key)
        guard let known = held[key]?.token else { return false }
        return known.token != token || known.refused != nil
    }

    /// APNs has told its time.
    ///
    /// - Returns: by how many seconds this host's clock is ahead of it, if that is news and more
    ///   than a provider token bears.
    func heard(_ key: ProviderKey, seconds: Int64) -> Int64? {
        guard held[key] != nil, seconds > 0 else { return nil }
        let told = UInt64(seconds) * 1_000
        let heard = (time: told, at: now)
        held[key]?.heard = heard
        let skew = Self.skew(clocks.wall(), told)
        let isWrong = skew.magnitude > ProviderToken.tolerance
        let isNews = isWrong && held[key]?.isWrongTold == false
        held[key]?.isWrongTold = isWrong
        return isNews ? skew / 1_000 : nil
    }

    /// Forgets what no credential uses any more.
    func keep(_ keys: Set<ProviderKey>) {
        held = held.filter { keys.contains($0.key) }
        tell()
    }

    private func tell() {
        let oldest = held.values.compactMap { $0.token.madeAt?.milliseconds }.min()
        metrics.oldestToken.set(Int(clamping: oldest ?? 0))
    }
}
