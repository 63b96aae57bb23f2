import Crypto
import Feed
import Model
import PushPool

extension ProviderKey {
    /// What stands for the key in the store beside its names.
    var fingerprint: [UInt8] { Digest.sha256(Array(pem.utf8)) }
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

    /// The time of issue that a token names, in milliseconds since 1970; `nil`: none can be read.
    static func issuedAt(_ token: String) -> UInt64? {
        let claims = try? TokenMembers(
            json: CompactToken(token, maximumBytes: 4_096).payloadJSON)
        guard let seconds = claims?.integer("iat"), (0...(1 << 40)).contains(seconds) else {
            return nil
        }
        return UInt64(seconds) * 1_000
    }

    /// Nothing that JSON would have to escape.
    private static func isPlain(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy {
                $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
            }
    }
}
