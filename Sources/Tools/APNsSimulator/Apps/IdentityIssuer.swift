internal import Crypto

/// Signs identity tokens as the backend of a device's app would (Protocol/session.md, SES-9).
struct IdentityIssuer {
    /// Life of a token, in seconds: it is used at once.
    private static let lifetime: UInt64 = 300
    let issuer: String
    let keyID: String
    let key: PrivateKey
    let app: String

    /// - Parameters:
    ///   - nonce: of the server's CHALLENGE.
    ///   - now: seconds since 1970.
    func token(for user: String, nonce: [UInt8], now: UInt64) -> String? {
        let header = #"{"alg":\#(Self.quoted(key.kind.algorithm)),"kid":\#(Self.quoted(keyID))}"#
        let claims =
            #"{"iss":\#(Self.quoted(issuer)),"sub":\#(Self.quoted(user)),"#
            + #""aud":\#(Self.quoted(app)),"nonce":"\#(Base64URL.encode(nonce))","#
            + #""iat":\#(now),"exp":\#(now + Self.lifetime)}"#
        return try? CompactToken.sign(
            headerJSON: Array(header.utf8), payloadJSON: Array(claims.utf8), with: key)
    }

    /// A JSON string (RFC 8259 section 7).
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += #"\""#
            case "\\": quoted += #"\\"#
            case _ where scalar.value < 0x20:
                let digits = Hex.encode([UInt8(truncatingIfNeeded: scalar.value)])
                quoted += #"\u00"# + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
