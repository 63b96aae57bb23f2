import COpenSSL

/// Hashes of byte strings.
public enum Digest {
    /// Looked up in the library's providers once: each digest would look for it again. It never
    /// changes, and any thread may use it.
    private nonisolated(unsafe) static let fetched: OpaquePointer = {
        guard let algorithm = EVP_MD_fetch(nil, "SHA256", nil) else {
            preconditionFailure("no SHA-256: \(ErrorQueue.takeText())")
        }
        return algorithm
    }()

    /// SHA-256 (FIPS 180-4): 32 bytes.
    public static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        let result = EVP_Digest(bytes, bytes.count, &digest, &count, fetched, nil)
        precondition(result == 1 && count == 32, "SHA-256 failed: \(ErrorQueue.takeText())")
        return digest
    }

    /// HMAC with SHA-256 (RFC 2104): 32 bytes.
    public static func hmacSHA256(key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        // A null key would mean "the key of last time" to the library.
        let keyBytes = key.isEmpty ? [0] : key
        let result = HMAC(
            EVP_sha256(), keyBytes, Int32(key.count), bytes, bytes.count, &digest, &count)
        precondition(result != nil && count == 32, "HMAC failed: \(ErrorQueue.takeText())")
        return digest
    }
}

/// Whether two byte strings are equal, in a time that depends on their lengths only, so that a
/// secret cannot be found byte by byte.
public func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
}
