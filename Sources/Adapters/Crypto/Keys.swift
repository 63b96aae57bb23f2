import COpenSSL

/// The kinds of key that sign tokens here. The kind alone decides the algorithm.
public enum KeyKind: Sendable, Equatable {
    /// The NIST curve P-256: ES256.
    case p256
    /// RSA with a modulus of this many bits: RS256.
    case rsa(bits: Int)
    /// Curve25519 for signatures: EdDSA.
    case ed25519

    /// The `alg` of RFC 7518 section 3.1 and RFC 8037 section 3.1.
    public var algorithm: String {
        switch self {
        case .p256: "ES256"
        case .rsa: "RS256"
        case .ed25519: "EdDSA"
        }
    }
}

/// Why a key was refused.
public enum KeyError: Error, Sendable, Equatable {
    /// No unencrypted PEM of the expected sort; the text is the library's reason.
    case unreadable(String)
    /// A key of a kind, curve or size that is not taken; the text names it.
    case unsupported(String)
}

extension KeyError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unreadable(let reason): "no unencrypted key in PEM (\(reason))"
        case .unsupported(let kind): "keys of this kind are not taken: \(kind)"
        }
    }
}

/// The owner of an `EVP_PKEY`.
///
/// Unchecked: the key is never changed after `init`, and openssl-threads(7) allows concurrent use
/// of an object that nobody changes; its reference count is atomic.
final class KeyHandle: @unchecked Sendable {
    let pointer: OpaquePointer
    let kind: KeyKind

    /// Takes ownership of the key, also when it is refused.
    init(adopting pointer: OpaquePointer) throws(KeyError) {
        self.pointer = pointer
        let bits = Int(EVP_PKEY_get_bits(pointer))
        switch EVP_PKEY_get_id(pointer) {
        case EVP_PKEY_RSA:
            // The upper bound keeps the cost of one verification small.
            kind = .rsa(bits: bits)
            guard (2048...8192).contains(bits) else { throw .unsupported("RSA of \(bits) bits") }
        case EVP_PKEY_ED25519:
            kind = .ed25519
        case EVP_PKEY_EC:
            kind = .p256
            var name = [CChar](repeating: 0, count: 64)
            var count = 0
            let known = EVP_PKEY_get_group_name(pointer, &name, name.count, &count) == 1
            let text = name.prefix(count).map { UInt8(bitPattern: $0) }
            let curve = known ? String(decoding: text, as: UTF8.self) : "without a name"
            guard curve == "prime256v1" else { throw .unsupported("curve \(curve)") }
            // RFC 5480 section 2.1.1: a curve is named, never spelled out.
            var explicit: Int32 = 0
            let spelled = OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS
            guard EVP_PKEY_get_int_param(pointer, spelled, &explicit) != 1 || explicit == 0 else {
                throw .unsupported("curve with explicit parameters")
            }
        default:
            kind = .ed25519
            let name = EVP_PKEY_get0_type_name(pointer).map { String(cString: $0) }
            throw .unsupported(name ?? "unknown type")
        }
    }

    deinit {
        EVP_PKEY_free(pointer)
    }

    func withDigestContext<T>(_ body: (OpaquePointer) -> T) -> T {
        ErrorQueue.clear()
        guard let context = EVP_MD_CTX_new() else {
            preconditionFailure("out of memory: EVP_MD_CTX_new")
        }
        defer {
            EVP_MD_CTX_free(context)
            ErrorQueue.clear()
        }
        return body(context)
    }

    /// Ed25519 hashes by itself and refuses to be given a digest.
    var digest: OpaquePointer? {
        kind == .ed25519 ? nil : EVP_sha256()
    }

    func publicPEM() -> String {
        guard let text = PEM.writing({ PEM_write_bio_PUBKEY($0, pointer) == 1 }) else {
            preconditionFailure("a public key cannot be written: \(ErrorQueue.takeText())")
        }
        return text
    }
}

/// A key that verifies signatures. May be used by several threads at once.
public struct PublicKey: Sendable {
    let handle: KeyHandle

    /// The kind of the key and so its algorithm.
    public var kind: KeyKind { handle.kind }

    /// Reads a SubjectPublicKeyInfo in PEM (`BEGIN PUBLIC KEY`).
    public init(pem: [UInt8]) throws(KeyError) {
        guard let pointer = PEM.publicKey(pem) else {
            throw .unreadable(ErrorQueue.takeText())
        }
        handle = try KeyHandle(adopting: pointer)
        let isSound = handle.isSoundPublicKey()
        guard isSound else { throw .unsupported("a key that fails its check") }
    }

    init(handle: KeyHandle) {
        self.handle = handle
    }

    /// The key as SubjectPublicKeyInfo in PEM.
    public var pem: String { handle.publicPEM() }

    /// Whether the signature over the message is this key's, in the form RFC 7518 section 3 gives
    /// it: r and s of 32 bytes each for P-256, PKCS #1 v1.5 for RSA, 64 bytes for Ed25519.
    public func verifies(signature: [UInt8], message: [UInt8]) -> Bool {
        let encoded: [UInt8]
        switch kind {
        case .p256:
            guard let der = ECDSASignature.der(fromRaw: signature) else { return false }
            encoded = der
        case .rsa(let bits):
            guard signature.count == (bits + 7) / 8 else { return false }
            encoded = signature
        case .ed25519:
            guard signature.count == 64 else { return false }
            encoded = signature
        }
        return handle.withDigestContext { context in
            EVP_DigestVerifyInit(context, nil, handle.digest, nil, handle.pointer) == 1
                && EVP_DigestVerify(
                    context, encoded, encoded.count, message, message.count) == 1
        }
    }
}

extension KeyHandle {
    fileprivate func isSoundPublicKey() -> Bool {
        ErrorQueue.clear()
        guard let context = EVP_PKEY_CTX_new(pointer, nil) else { return false }
        defer {
            EVP_PKEY_CTX_free(context)
            ErrorQueue.clear()
        }
        return EVP_PKEY_public_check(context) == 1
    }
}

/// A key that signs. May be used by several threads at once.
public struct PrivateKey: Sendable {
    /// What `generate` makes.
    public enum Generated: Sendable {
        /// For ES256.
        case p256
        /// For EdDSA.
        case ed25519
        /// For RS256; takes tens of milliseconds.
        case rsa2048
    }

    let handle: KeyHandle

    /// The kind of the key and so its algorithm.
    public var kind: KeyKind { handle.kind }

    /// Reads an unencrypted private key in PEM: PKCS #8 (as Apple's .p8 files) or the older forms.
    public init(pem: [UInt8]) throws(KeyError) {
        guard let pointer = PEM.privateKey(pem) else {
            throw .unreadable(ErrorQueue.takeText())
        }
        handle = try KeyHandle(adopting: pointer)
    }

    private init(handle: KeyHandle) {
        self.handle = handle
    }

    /// Makes a new key.
    public static func generate(_ kind: Generated) -> PrivateKey {
        let name =
            switch kind {
            case .p256: "EC"
            case .ed25519: "ED25519"
            case .rsa2048: "RSA"
            }
        ErrorQueue.clear()
        let context = EVP_PKEY_CTX_new_from_name(nil, name, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var ready = EVP_PKEY_keygen_init(context) == 1
        switch kind {
        case .p256: ready = ready && EVP_PKEY_CTX_set_group_name(context, "P-256") == 1
        case .rsa2048: ready = ready && EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2048) == 1
        case .ed25519: break
        }
        var pointer: OpaquePointer?
        guard ready, EVP_PKEY_generate(context, &pointer) == 1, let pointer,
            let handle = try? KeyHandle(adopting: pointer)
        else { preconditionFailure("no key generated: \(ErrorQueue.takeText())") }
        return PrivateKey(handle: handle)
    }

    /// The half that verifies.
    public var publicKey: PublicKey { PublicKey(handle: handle) }

    /// The key as unencrypted PKCS #8 in PEM.
    public var pem: String {
        let text = PEM.writing {
            PEM_write_bio_PKCS8PrivateKey($0, handle.pointer, nil, nil, 0, nil, nil) == 1
        }
        guard let text else {
            preconditionFailure("a private key cannot be written: \(ErrorQueue.takeText())")
        }
        return text
    }

    /// The public half as SubjectPublicKeyInfo in PEM.
    public var publicKeyPEM: String { handle.publicPEM() }

    /// Signs the message; the form is the one `PublicKey.verifies` takes.
    public func sign(_ message: [UInt8]) -> [UInt8] {
        var signature = [UInt8](repeating: 0, count: Int(EVP_PKEY_get_size(handle.pointer)))
        var count = signature.count
        let signed = handle.withDigestContext { context in
            EVP_DigestSignInit(context, nil, handle.digest, nil, handle.pointer) == 1
                && EVP_DigestSign(context, &signature, &count, message, message.count) == 1
        }
        precondition(signed, "a sound key did not sign")
        signature.removeLast(signature.count - count)
        guard kind == .p256 else { return signature }
        guard let raw = ECDSASignature.raw(fromDER: signature) else {
            preconditionFailure("the library's own signature cannot be read")
        }
        return raw
    }
}

/// JWS wants r and s as two 32-byte numbers (RFC 7518 section 3.4), the library wants DER.
private enum ECDSASignature {
    static func der(fromRaw raw: [UInt8]) -> [UInt8]? {
        guard raw.count == 64, let signature = ECDSA_SIG_new() else { return nil }
        defer { ECDSA_SIG_free(signature) }
        let r = BN_bin2bn(Array(raw[..<32]), 32, nil)
        let s = BN_bin2bn(Array(raw[32...]), 32, nil)
        guard ECDSA_SIG_set0(signature, r, s) == 1 else {
            BN_free(r)
            BN_free(s)
            return nil
        }
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = i2d_ECDSA_SIG(signature, &encoded)
        guard count > 0, let encoded else { return nil }
        defer { CRYPTO_free(encoded, #file, #line) }
        return Array(UnsafeBufferPointer(start: encoded, count: Int(count)))
    }

    static func raw(fromDER der: [UInt8]) -> [UInt8]? {
        var raw = [UInt8](repeating: 0, count: 64)
        let isFilled = der.withUnsafeBufferPointer { bytes in
            var cursor = bytes.baseAddress
            guard let signature = d2i_ECDSA_SIG(nil, &cursor, bytes.count) else { return false }
            defer { ECDSA_SIG_free(signature) }
            var r: OpaquePointer?
            var s: OpaquePointer?
            ECDSA_SIG_get0(signature, &r, &s)
            return raw.withUnsafeMutableBufferPointer { target in
                guard let base = target.baseAddress else { return false }
                return BN_bn2binpad(r, base, 32) == 32 && BN_bn2binpad(s, base + 32, 32) == 32
            }
        }
        return isFilled ? raw : nil
    }
}
