import COpenSSL

/// Bytes that nobody can guess, for tokens, nonces and keys.
public enum Random {
    /// `count` bytes of the library's generator, which seeds itself from the kernel.
    public static func bytes(_ count: Int) -> [UInt8] {
        precondition((0...1 << 20).contains(count), "random bytes by the million: \(count)")
        var bytes = [UInt8](repeating: 0, count: count)
        let result = bytes.withUnsafeMutableBytes { raw in
            RAND_bytes(raw.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(count))
        }
        // A generator without entropy must never be taken for one with some.
        precondition(count == 0 || result == 1, "no randomness: \(ErrorQueue.takeText())")
        return bytes
    }
}
