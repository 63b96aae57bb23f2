import Crypto
import Feed
import Model
import StoreService
import SyncServer
import Wire

/// Checks identity tokens: shape, key, algorithm, signature (session.md, SES-9 and SES-10). What
/// the claims say is the session's to judge. Loop-confined.
final class IdentityVerifier {
    private struct KeyName: Hashable {
        let app: AppID
        let keyID: ExactText
    }

    private let apps: AppDirectory
    private var keys: [KeyName: PublicKey] = [:]
    private var generation: UInt64 = 0

    init(apps: AppDirectory) { self.apps = apps }

    /// The claims of a token that one of the app's issuer keys has signed, or why not.
    func verify(_ text: String, app: AppID, bytesMax: Int) -> Result<IdentityClaims, Refusal> {
        guard let token = try? CompactToken(text, maximumBytes: bytesMax),
            let keyID = token.keyIdentifier,
            let key = key(app: app, keyID: keyID),
            token.verify(with: key),
            let members = try? TokenMembers(json: token.payloadJSON),
            let claims = Self.claims(members)
        else { return .failure(Refusal()) }
        return .success(claims)
    }

    /// All failures look the same from outside (2001): which of them it was helps an attacker
    /// more than a user.
    struct Refusal: Error {}

    private func key(app: AppID, keyID: String) -> PublicKey? {
        if apps.generation != generation {
            generation = apps.generation
            keys = [:]
        }
        let name = KeyName(app: app, keyID: ExactText(keyID))
        if let known = keys[name] { return known }
        guard
            let record = apps[app]?.issuerKeys.first(where: { $0.keyID.isExactly(keyID) }),
            let key = try? PublicKey(pem: Array(record.publicKeyPEM.utf8))
        else { return nil }
        keys[name] = key
        return key
    }

    private static func claims(_ members: TokenMembers) -> IdentityClaims? {
        guard let issuer = members.string("iss"), let subject = members.string("sub"),
            let audience = members.strings("aud"), let nonce = members.string("nonce"),
            let expiresAt = members.integer("exp"),
            members["nbf"] == nil || members.integer("nbf") != nil,
            members["iat"] == nil || members.integer("iat") != nil
        else { return nil }
        return IdentityClaims(
            issuer: issuer, subject: subject, audience: audience, nonce: nonce,
            expiresAt: expiresAt, notBefore: members.integer("nbf"),
            issuedAt: members.integer("iat"))
    }
}
