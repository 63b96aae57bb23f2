import Crypto
import Model
import Telemetry

/// What names a signing key at Apple.
struct ProviderKey: Hashable, Comparable {
    var team: String
    var keyID: String
    var pem: String

    static func < (left: Self, right: Self) -> Bool {
        (left.team, left.keyID, left.pem) < (right.team, right.keyID, right.pem)
    }
}

/// Why a credential cannot make provider tokens.
struct UnusableKey: Error, CustomStringConvertible {
    let description: String
}

/// The provider token of one key: a JSON web token that all connections share (Apple:
/// Establishing a token-based connection to APNs). Apple refuses one older than an hour, and
/// more than one in 20 minutes.
struct ProviderToken {
    /// Age at which a token in use is replaced.
    static let renewAfter: Milliseconds = 50 * 60_000
    /// No token is made sooner after the last one.
    static let spacing: Milliseconds = 20 * 60_000

    private let key: PrivateKey
    private let header: [UInt8]
    private let team: String
    private(set) var madeAt: Instant?
    private var token = ""

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

    /// The token to send now. `wall` is milliseconds since 1970.
    mutating func current(now: Instant, wall: UInt64) throws(UnusableKey) -> String {
        if let madeAt, now.since(madeAt) < Self.renewAfter { return token }
        let claims = #"{"iss":"\#(team)","iat":\#(wall / 1000)}"#
        do {
            token = try CompactToken.sign(
                headerJSON: header, payloadJSON: Array(claims.utf8), with: key)
        } catch {
            throw UnusableKey(description: "signing failed: \(error)")
        }
        madeAt = now
        return token
    }

    /// APNs calls the token expired.
    ///
    /// - Returns: 0 if the next `current` makes another, else how long it must be kept.
    mutating func expired(now: Instant) -> Milliseconds {
        guard let madeAt else { return 0 }
        let age = now.since(madeAt)
        guard age >= Self.spacing else { return Self.spacing - age }
        self.madeAt = nil
        return 0
    }

    /// Nothing that JSON would have to escape.
    private static func isPlain(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy {
                $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
            }
    }
}

/// The provider tokens in use, one a key. Loop-confined.
final class ProviderTokens {
    private var tokens: [ProviderKey: ProviderToken] = [:]
    private let clocks: GatewayClocks
    private let metrics: GatewayMetrics

    init(clocks: GatewayClocks, metrics: GatewayMetrics) {
        self.clocks = clocks
        self.metrics = metrics
    }

    private var now: Instant { Instant(milliseconds: clocks.monotonic()) }

    func current(_ key: ProviderKey) throws(UnusableKey) -> String {
        var token: ProviderToken
        if let known = tokens[key] { token = known } else { token = try ProviderToken(key) }
        let before = token.madeAt
        let text = try token.current(now: now, wall: clocks.wall())
        tokens[key] = token
        if token.madeAt != before {
            metrics.tokensMade.add()
            tell()
        }
        return text
    }

    /// See `ProviderToken.expired`.
    func expired(_ key: ProviderKey) -> Milliseconds {
        tokens[key]?.expired(now: now) ?? 0
    }

    /// Forgets what no credential uses any more.
    func keep(_ keys: Set<ProviderKey>) {
        tokens = tokens.filter { keys.contains($0.key) }
        tell()
    }

    private func tell() {
        let oldest = tokens.values.compactMap { $0.madeAt?.milliseconds }.min()
        metrics.oldestToken.set(Int(clamping: oldest ?? 0))
    }
}
