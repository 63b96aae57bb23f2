import Crypto
import Feed
import Model
import Telemetry

/// What names a signing key at Apple.
struct ProviderKey: Hashable, Comparable {
    var team: String
    var keyID: String
    var pem: String

    /// What stands for the key in the store beside its names.
    var fingerprint: [UInt8] { Digest.sha256(Array(pem.utf8)) }

    static func < (left: Self, right: Self) -> Bool {
        (left.team, left.keyID, left.pem) < (right.team, right.keyID, right.pem)
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

    private var token = ""
    /// APNs called this one expired.
    private(set) var refused: String?
    private(set) var madeAt: Instant?

    /// The token to send now; `nil`: none is at hand.
    func current(now: Instant) -> String? {
        guard let madeAt, refused == nil else { return nil }
        return now.since(madeAt) < ProviderTokenRecord.lifetime - Self.margin ? token : nil
    }

    /// Whether the store is to be asked: there is none, or it is due to be replaced.
    func isDue(now: Instant) -> Bool {
        guard let madeAt, refused == nil else { return true }
        return now.since(madeAt) >= ProviderTokenRecord.renewAfter
    }

    /// What the store says. It may be the one that was refused: then that is too young to be
    /// replaced, and is sent again.
    mutating func take(_ kept: KeptProviderToken, now: Instant) {
        token = kept.token
        refused = nil
        madeAt = Instant(
            milliseconds: now.milliseconds > kept.age ? now.milliseconds - kept.age : 0)
    }

    /// APNs calls the token of a push expired. That of many pushes under way is, one after the
    /// other: what it says of the token before this one is known.
    ///
    /// - Returns: 0 if another is asked for now, else how long this one must be kept.
    mutating func expired(sent: String?, now: Instant) -> Milliseconds {
        guard let madeAt, refused == nil, sent == token else { return 0 }
        let age = now.since(madeAt)
        guard age >= ProviderTokenRecord.spacing else { return ProviderTokenRecord.spacing - age }
        refused = token
        return 0
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
    }

    init(clocks: GatewayClocks, metrics: GatewayMetrics, queue: any PushQueue) {
        self.clocks = clocks
        self.metrics = metrics
        self.queue = queue
    }

    private var now: Instant { Instant(milliseconds: clocks.monotonic()) }

    /// The token to send; `nil`: it is asked for, and `onToken` tells when to come again.
    func current(_ key: ProviderKey) throws(UnusableKey) -> String? {
        if held[key] == nil {
            held[key] = Held(
                signer: try ProviderSigner(key), fingerprint: key.fingerprint)
        }
        if let known = held[key], known.token.isDue(now: now), !known.isAsked {
            try ask(key, known)
        }
        return held[key]?.token.current(now: now)
    }

    private func ask(_ key: ProviderKey, _ known: Held) throws(UnusableKey) {
        let signed = try known.signer.sign(wall: clocks.wall())
        held[key]?.isAsked = true
        let request = KeepProviderToken(
            team: key.team, keyID: key.keyID, fingerprint: known.fingerprint, token: signed,
            refused: known.token.refused)
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
        held[key]?.token.take(kept, now: now)
        if kept.token == signed { metrics.tokensMade.add() }
        tell()
        onToken(key)
    }

    /// See `ProviderToken.expired`.
    func expired(_ key: ProviderKey, sent: String?) -> Milliseconds {
        held[key]?.token.expired(sent: sent, now: now) ?? 0
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
