/// Why a token was refused before or without a look at its signature.
public enum TokenError: Error, Sendable, Equatable {
    /// Longer than the caller allows.
    case tooLong
    /// Not three parts of strict base64url, or a header that is no sound JSON object.
    case malformed
    /// The header lacks `alg` as a string, or has a `kid` that is no string.
    case headerIncomplete
    /// The header has `crit`: extensions that must be understood (RFC 7515 section 4.1.11).
    case criticalExtension
    /// The header to be signed names another algorithm than the key's.
    case algorithmMismatch
}

extension TokenError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .tooLong: "the token is too long"
        case .malformed: "that is no token"
        case .headerIncomplete: "the token's header names no algorithm"
        case .criticalExtension: "the token's header asks for an extension"
        case .algorithmMismatch: "the token's algorithm is not the key's"
        }
    }
}

/// A JSON Web Signature in compact form (RFC 7515 section 3.1), parsed but not believed.
///
/// The algorithm is always the key's; the one that the token names must be the same and never
/// chooses anything (RFC 8725 section 3.1).
public struct CompactToken: Sendable {
    /// The protected header as JSON.
    public let headerJSON: [UInt8]
    /// The payload, for example a claims set as JSON. Believe nothing in it before `verify`.
    public let payloadJSON: [UInt8]
    /// What the signature covers.
    public let signingInput: [UInt8]
    /// The signature as sent.
    public let signature: [UInt8]
    /// The members of the header.
    public let header: TokenMembers
    /// The algorithm that the token claims.
    public let declaredAlgorithm: String
    /// The key that the token claims, for choosing among the keys of its issuer.
    public let keyIdentifier: String?

    /// Parses a token of at most `maximumBytes` bytes.
    public init(_ bytes: [UInt8], maximumBytes: Int) throws(TokenError) {
        guard bytes.count <= maximumBytes else { throw .tooLong }
        let dot = UInt8(ascii: ".")
        let parts = bytes.split(separator: dot, maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, let headerJSON = Base64URL.decode(parts[0]),
            let payloadJSON = Base64URL.decode(parts[1]),
            let signature = Base64URL.decode(parts[2])
        else { throw .malformed }
        let header: TokenMembers
        do {
            header = try TokenMembers(json: headerJSON)
        } catch {
            throw .malformed
        }
        guard header["crit"] == nil else { throw .criticalExtension }
        guard let declaredAlgorithm = header.string("alg"),
            header["kid"] == nil || header.string("kid") != nil
        else { throw .headerIncomplete }
        self.headerJSON = headerJSON
        self.payloadJSON = payloadJSON
        self.signature = signature
        self.header = header
        self.declaredAlgorithm = declaredAlgorithm
        keyIdentifier = header.string("kid")
        signingInput = Array(bytes[..<(parts[1].endIndex)])
    }

    /// Parses a token held as text.
    public init(_ text: String, maximumBytes: Int) throws(TokenError) {
        try self.init(Array(text.utf8), maximumBytes: maximumBytes)
    }

    /// Whether the key signed this token with the key's own algorithm and the token says so too.
    public func verify(with key: PublicKey) -> Bool {
        declaredAlgorithm == key.kind.algorithm
            && key.verifies(signature: signature, message: signingInput)
    }

    /// Makes a token.
    ///
    /// - Parameter headerJSON: must name the key's algorithm as `alg`.
    public static func sign(
        headerJSON: [UInt8], payloadJSON: [UInt8], with key: PrivateKey
    ) throws(TokenError) -> String {
        let header: TokenMembers
        do {
            header = try TokenMembers(json: headerJSON)
        } catch {
            throw .malformed
        }
        guard header["crit"] == nil else { throw .criticalExtension }
        guard header.string("alg") == key.kind.algorithm else { throw .algorithmMismatch }
        let input = "\(Base64URL.encode(headerJSON)).\(Base64URL.encode(payloadJSON))"
        return "\(input).\(Base64URL.encode(key.sign(Array(input.utf8))))"
    }
}
