internal import Crypto
internal import Model

extension SimulatorState {
    private static let tokenBytesMax = 8 * 1024
    private static let hour: Milliseconds = 3_600_000
    /// A provider token may not be renewed more often on one connection.
    static let renewalMinimum: Milliseconds = 20 * 60_000

    /// Checks the provider token of a request (Apple: Establishing a token-based connection to
    /// APNs). Accepting one binds the connection to its team.
    func checkProviderToken(
        _ header: String?, _ connection: inout ConnectionState, _ lints: inout [Lint],
        now: Timestamp
    ) -> Refusal? {
        guard let header, let text = Self.bearer(header) else { return .missingProviderToken }
        if text == connection.providerToken {
            // The signature is known to be good; its key and age may have changed since.
            guard let id = connection.keyID, keys[id]?.isRevoked == false else {
                return .invalidProviderToken
            }
            return Self.checkAge(connection.issuedAt, now: now)
        }
        guard let token = try? CompactToken(text, maximumBytes: Self.tokenBytesMax),
            token.declaredAlgorithm == "ES256", let keyID = token.keyIdentifier,
            let signing = keys[keyID], !signing.isRevoked,
            let claims = try? TokenMembers(json: token.payloadJSON),
            claims.string("iss") == signing.team,
            token.verify(with: signing.key),
            let issuedAt = Self.issuedAt(claims, &lints)
        else { return .invalidProviderToken }
        if let refusal = Self.checkAge(issuedAt, now: now) { return refusal }
        if let bound = signing.environment, bound != connection.environment {
            return .badEnvironmentKeyID
        }
        // Apple says only that this is an error; the reason is ours.
        if let team = connection.team, team != signing.team { return .invalidProviderToken }
        if let since = connection.tokenSince, now.since(since) < Self.renewalMinimum {
            return .tooManyProviderTokenUpdates
        }
        connection.team = signing.team
        connection.providerToken = text
        connection.keyID = keyID
        connection.issuedAt = issuedAt
        connection.tokenSince = now
        return nil
    }

    private static func bearer(_ header: String) -> String? {
        let parts = header.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        let token = parts[1].drop { $0 == " " }
        return token.isEmpty ? nil : String(token)
    }

    /// Seconds as a number. Apple's own sample has a string of milliseconds, so that is taken
    /// too, with a lint.
    private static func issuedAt(_ claims: TokenMembers, _ lints: inout [Lint]) -> Timestamp? {
        let number: Int64
        if let seconds = claims.integer("iat") {
            number = seconds
        } else if let text = claims.string("iat"), let value = Int64(text) {
            lints.append(.issuedAtIsString)
            number = value > 100_000_000_000 ? value / 1_000 : value
        } else {
            return nil
        }
        guard number >= 0 else { return nil }
        let (milliseconds, overflow) = UInt64(number).multipliedReportingOverflow(by: 1_000)
        return overflow ? nil : Timestamp(milliseconds: milliseconds)
    }

    private static func checkAge(_ issuedAt: Timestamp, now: Timestamp) -> Refusal? {
        if now.since(issuedAt) > hour { return .expiredProviderToken }
        // Apple documents only "within one hour of the current time"; the reason is ours.
        if issuedAt.since(now) > hour { return .invalidProviderToken }
        return nil
    }
}
