public import Model

/// The provider token of a signing key: what every node and every start sends, because APNs
/// punishes more than one in 20 minutes (Apple: Establishing a token-based connection to APNs).
/// With ES256 no two signatures are alike, so the token itself is kept. It is a secret for the
/// hour for which APNs takes it.
public struct ProviderTokenRecord: Record, Equatable {
    /// Age from which another one takes its place when it is asked for.
    public static let renewAfter: Milliseconds = 50 * 60_000
    /// None is made sooner after another.
    public static let spacing: Milliseconds = 20 * 60_000
    /// APNs takes none that is older.
    public static let lifetime: Milliseconds = 60 * 60_000

    public var team: String
    public var keyID: String
    /// SHA-256 of the private key's PEM: another key under the same names is another one.
    public var fingerprint: [UInt8]
    public var token: String
    public var madeAt: Timestamp
    public var expiresAt: Timestamp

    init(_ request: KeepProviderToken, now: Timestamp) {
        team = request.team
        keyID = request.keyID
        fingerprint = request.fingerprint
        token = request.token
        madeAt = now
        expiresAt = now + Self.lifetime
    }
}

extension ProviderTokenRecord {
    public static let table = Table(
        "provider_token", of: Self.self,
        indexes: [
            TableIndex("provider_token_by_expiry", on: "expires_at")
        ],
        retention: .until(column: "expires_at", index: "provider_token_by_expiry"))

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        team = c.key("team", row?.team)
        keyID = c.key("key_id", row?.keyID)
        fingerprint = c.key("fingerprint", row?.fingerprint)
        token = c.value("token", row?.token)
        madeAt = c.value("made_at", row?.madeAt)
        expiresAt = c.value("expires_at", row?.expiresAt)
    }
}

/// Asks for the provider token of a key, and brings one that was just signed, in case none is kept.
public struct KeepProviderToken: Equatable, Sendable {
    public var team: String
    public var keyID: String
    public var fingerprint: [UInt8]
    /// Signed now.
    public var token: String
    /// One that APNs called expired; `nil`: none. It is replaced unless it is younger than
    /// `spacing`.
    public var refused: String?
    /// It is replaced all the same: APNs has never taken it.
    public var replacesYoung: Bool

    public init(
        team: String, keyID: String, fingerprint: [UInt8], token: String, refused: String? = nil,
        replacesYoung: Bool = false
    ) {
        self.replacesYoung = replacesYoung
        self.team = team
        self.keyID = keyID
        self.fingerprint = fingerprint
        self.token = token
        self.refused = refused
    }
}

/// The provider token to send.
public struct KeptProviderToken: Equatable, Sendable {
    public var token: String
    /// Since it was signed.
    public var age: Milliseconds

    public init(token: String, age: Milliseconds) {
        self.token = token
        self.age = age
    }
}
