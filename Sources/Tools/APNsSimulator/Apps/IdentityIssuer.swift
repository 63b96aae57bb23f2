public import Crypto

/// Signs identity tokens as the backend of a device's app would (Protocol/session.md, SES-9).
public struct IdentityIssuer {
    /// Life of a token, in seconds: it is used at once.
    private static let lifetime: UInt64 = 300
    private let issuer: String
    private let keyID: String
    private let key: PrivateKey
    private let app: String

    /// - Parameters:
    ///   - issuer: `iss` of the tokens.
    ///   - keyID: `kid` of the key.
    public init(issuer: String, keyID: String, key: PrivateKey, app: String) {
        self.issuer = issuer
        self.keyID = keyID
        self.key = key
        self.app = app
    }

    /// A token that lets the user in; `nil` if the key cannot sign.
    ///
    /// - Parameters:
    ///   - nonce: of the server's CHALLENGE.
    ///   - now: seconds since 1970.
    public func token(for user: String, nonce: [UInt8], now: UInt64) -> String? {
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
