import Crypto
import Feed
import Model

/// An operator who is in. Sessions live in memory: a restart asks for the token again.
struct ConsoleSession {
    let tokenID: String
    let tokenHash: [UInt8]
    let label: String
    let role: ConsoleRole
    /// What a request that changes something has to carry besides the cookie.
    let csrf: String
    let expiresAt: Timestamp
    /// By the monotonic clock: the end of the token, and when something was last asked.
    fileprivate let endsAt: UInt64
    fileprivate var usedAt: UInt64

    /// As the audit log names it.
    var callerName: String { label.isEmpty ? tokenID : "\(tokenID) (\(label))" }
}

/// Sessions of the console, by the hash of their cookies. Loop-confined.
struct ConsoleSessions {
    /// Of more, the one that was longest unused ends.
    static let countMax = 256
    /// Of one token.
    static let tokenMax = 16
    /// Milliseconds without a request, live numbers aside.
    static let idleMax: UInt64 = 3_600_000

    private var all: [[UInt8]: ConsoleSession] = [:]

    var count: Int { all.count }

    /// - Returns: the session, and the cookie that opens it: 256 bits of chance.
    mutating func open(
        _ token: ConsoleTokenRecord, now: UInt64, wall: Timestamp
    ) -> (session: ConsoleSession, cookie: String) {
        all = all.filter { Self.isLive($0.value, now) }
        if all.count >= Self.countMax,
            let oldest = all.min(by: { $0.value.usedAt < $1.value.usedAt })
        {
            all[oldest.key] = nil
        }
        // Nobody pushes the others out by logging in again and again.
        let own = all.filter { $0.value.tokenHash == token.hash }
        if own.count >= Self.tokenMax,
            let oldest = own.min(by: { $0.value.usedAt < $1.value.usedAt })
        {
            all[oldest.key] = nil
        }
        let cookie = Base64URL.encode(Random.bytes(32))
        let session = ConsoleSession(
            tokenID: token.tokenID, tokenHash: token.hash, label: token.label, role: token.role,
            csrf: Base64URL.encode(Random.bytes(32)), expiresAt: token.expiresAt,
            endsAt: now + token.expiresAt.since(wall), usedAt: now)
        all[Self.key(cookie)] = session
        return (session, cookie)
    }

    /// - Parameter counts: whether it is then taken for used.
    mutating func find(_ cookie: String, now: UInt64, counts: Bool) -> ConsoleSession? {
        let key = Self.key(cookie)
        guard let session = all[key] else { return nil }
        guard Self.isLive(session, now) else {
            all[key] = nil
            return nil
        }
        if counts { all[key]?.usedAt = now }
        return session
    }

    mutating func end(_ cookie: String) { all[Self.key(cookie)] = nil }

    private static func isLive(_ session: ConsoleSession, _ now: UInt64) -> Bool {
        now < session.endsAt && now < session.usedAt + idleMax
    }

    /// Looked up by its hash, so that the time it takes tells nothing of other cookies.
    private static func key(_ cookie: String) -> [UInt8] { Digest.sha256(Array(cookie.utf8)) }
}

/// How many wrong tokens are looked at as such: ten a minute of one address, and a hundred of all.
/// Above that, a wrong one is told to wait; a right one is let in all the same. A token has 256
/// bits of chance, so that nobody guesses it, and whoever sends wrong ones keeps no operator out.
struct LoginGate {
    static let perAddress = 10
    static let ofAll = 100
    private static let window: UInt64 = 60_000

    /// At most `ofAll`.
    private var failures: [(address: String, at: UInt64)] = []

    /// Counts a wrong token.
    ///
    /// - Returns: how long to wait, in milliseconds, if it is one too many, which does not count;
    ///   else `nil`.
    mutating func note(_ address: String, now: UInt64) -> UInt64? {
        failures.removeAll { $0.at + Self.window <= now }
        let own = failures.filter { $0.address == address }
        let first =
            own.count >= Self.perAddress
            ? own.first : failures.count >= Self.ofAll ? failures.first : nil
        if let first { return first.at + Self.window - now }
        failures.append((address, now))
        return nil
    }

    /// One who had a right token is no guesser.
    mutating func forgive(_ address: String) { failures.removeAll { $0.address == address } }
}
