internal import Crypto
internal import Model

/// What one provider token says (Apple: Establishing a token-based connection to APNs).
struct ProviderClaims {
    var keyID: String
    var signing: SimulatorState.SigningKey
    var token: CompactToken
    var members: TokenMembers
    var issuedAt: Timestamp?
    var issuedAtIsText = false
}

extension CheckRun {
    private static let tokenBytesMax = 8 * 1024
    private static let hour: Milliseconds = 3_600_000
    /// A provider token may not be renewed more often.
    static let renewalMinimum: Milliseconds = 20 * 60_000
    /// So long an older token may be on its way beside a newer one.
    private static let overlapMaximum: Milliseconds = 60_000

    /// The checks of the provider token; true: this one fails. Without a bearer token, or with
    /// the connection's own, most have nothing to do.
    mutating func providerTokenFails(_ check: Check) -> Bool {
        if connection.certificate != nil { return false }
        switch check {
        case .credentialsPresent:
            bearer = push["authorization"].flatMap { Self.bearer($0) }
            return bearer == nil
        case .tokenKey where isKnownToken:
            // The signature is known to be good; its key may have changed since.
            return connection.keyID.flatMap { state.keys[$0] }?.isRevoked != false
        case .tokenAge where isKnownToken:
            return now.since(connection.issuedAt) > Self.hour
        case .tokenUpdates where isKnownToken:
            noteOlderToken(connection.keyID)
            return false
        case _ where isKnownToken: return false
        case .tokenForm: return !readToken()
        case .tokenKey: return !findKey()
        case .tokenTeam:
            return claims?.members.string("iss") != claims?.signing.team
        case .tokenSignature: return claims.map { !$0.token.verify(with: $0.signing.key) } ?? true
        case .tokenIssued:
            readIssuedAt()
            // Apple documents only "within one hour of the current time"; the reason for the
            // future is ours.
            guard let issuedAt = claims?.issuedAt else { return true }
            return issuedAt.since(now) > Self.hour
        case .tokenAge: return claims?.issuedAt.map { now.since($0) > Self.hour } ?? true
        case .keyEnvironment:
            return claims?.signing.environment.map { $0 != connection.environment } ?? false
        case .connectionTeam:
            return connection.team.map { $0 != claims?.signing.team } ?? false
        case .connectionKey:
            return connection.keyFamily.map { $0 != claims?.family } ?? false
        default: return isRenewedTooSoon()
        }
    }

    private var isKnownToken: Bool { bearer == connection.providerToken }

    private static func bearer(_ header: String) -> String? {
        let parts = header.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        let token = parts[1].drop { $0 == " " }
        return token.isEmpty ? nil : String(token)
    }

    private mutating func readToken() -> Bool {
        guard let bearer,
            let token = try? CompactToken(bearer, maximumBytes: Self.tokenBytesMax),
            token.declaredAlgorithm == "ES256", token.keyIdentifier != nil,
            (try? TokenMembers(json: token.payloadJSON)) != nil
        else { return false }
        parsed = token
        return true
    }

    private mutating func findKey() -> Bool {
        guard let parsed, let keyID = parsed.keyIdentifier, let signing = state.keys[keyID],
            !signing.isRevoked, let members = try? TokenMembers(json: parsed.payloadJSON)
        else { return false }
        claims = ProviderClaims(
            keyID: keyID, signing: signing, token: parsed, members: members)
        return true
    }

    /// Seconds as a number. Apple's own sample has a string of milliseconds, so that is taken
    /// too, with a lint.
    private mutating func readIssuedAt() {
        guard let members = claims?.members else { return }
        let number: Int64
        if let seconds = members.integer("iat") {
            number = seconds
        } else if let text = members.string("iat"), let value = Int64(text) {
            lints.append(.issuedAtIsString)
            number = value > 100_000_000_000 ? value / 1_000 : value
        } else {
            return
        }
        guard number >= 0 else { return }
        let (milliseconds, overflow) = UInt64(number).multipliedReportingOverflow(by: 1_000)
        claims?.issuedAt = overflow ? nil : Timestamp(milliseconds: milliseconds)
    }

    private mutating func isRenewedTooSoon() -> Bool {
        guard let claims, let bearer else { return true }
        let use = claims.signing.use
        let isEarly =
            use.map { $0.token != bearer && now.since($0.since) < Self.renewalMinimum } ?? false
        if state.options.countsTokenUpdatesPerKey {
            if isEarly { return true }
        } else if let since = connection.tokenSince, now.since(since) < Self.renewalMinimum {
            return true
        }
        if let use, let issuedAt = claims.issuedAt, issuedAt < use.issuedAt {
            noteOlderToken(claims.keyID)
        } else {
            if isEarly { lints.append(.tokenRenewedEarly) }
            state.noteUse(
                of: claims.keyID, SimulatorState.TokenUse(bearer, claims.issuedAt ?? now, now))
        }
        accept(claims, bearer)
        return false
    }

    private mutating func noteOlderToken(_ keyID: String?) {
        guard let use = keyID.flatMap({ state.keys[$0]?.use }), use.token != bearer,
            now.since(use.since) > Self.overlapMaximum
        else { return }
        lints.append(.tokenNotShared)
    }

    /// Binds the connection (Apple: the first push binds team, environment and key).
    private mutating func accept(_ claims: ProviderClaims, _ bearer: String) {
        if connection.team == nil { connection.keyTopics = claims.signing.topics }
        connection.team = claims.signing.team
        connection.keyFamily = claims.family
        connection.providerToken = bearer
        connection.keyID = claims.keyID
        connection.issuedAt = claims.issuedAt ?? now
        connection.tokenSince = now
    }
}

extension ProviderClaims {
    /// Keys of one family may follow each other on a connection; a key alone is a family.
    var family: String { signing.family ?? keyID }
}
