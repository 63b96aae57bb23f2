import Crypto
import Foundation
import Wire

/// What all connections of one mutant know together.
final class Shared: Sendable {
    struct State {
        /// The device a session token was given to.
        var owners: [[UInt8]: [UInt8]] = [:]
        /// Messages by their ids, as anybody got them.
        var messages: [[UInt8]: Entry] = [:]
        /// Ids of conversations that exist.
        var conversations: Set<[UInt8]> = []
        /// Numbers each device has used.
        var numbers: [[UInt8]: Set<UInt64>] = [:]
    }

    /// The app's key: a mutant that is content with any token signs it anew.
    let key: PrivateKey
    let state = Guarded()

    /// The state under a lock that ThreadSanitizer knows, as it does not know Mutex.
    final class Guarded: Sendable {
        private let lock = NSLock()
        private nonisolated(unsafe) var state = State()  // guarded by `lock`

        func withLock<Value>(_ body: (inout State) -> Value) -> Value {
            lock.withLock { body(&state) }
        }
    }

    init(key: PrivateKey) { self.key = key }

    /// The token's claims, `nil` if they are none.
    static func claims(of token: String) -> [String: Any]? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = Base64URL.decode(String(parts[1])) else { return nil }
        return (try? JSONSerialization.jsonObject(with: Data(bytes))) as? [String: Any]
    }

    /// Whether the key has signed it, with its own algorithm.
    func isSigned(_ token: String) -> Bool {
        guard let parsed = try? CompactToken(token, maximumBytes: 16_384) else { return false }
        return parsed.keyIdentifier == "conform" && parsed.verify(with: key.publicKey)
    }

    /// A good token with these claims.
    func signed(_ claims: [String: Any]) -> String? {
        guard let payload = try? JSONSerialization.data(withJSONObject: claims) else { return nil }
        let header = #"{"alg":"\#(key.kind.algorithm)","kid":"conform"}"#
        return try? CompactToken.sign(
            headerJSON: Array(header.utf8), payloadJSON: Array(payload), with: key)
    }
}
