import Crypto

/// What shows a receiver that a delivery is ours, and fresh (WHK-3).
enum Signature {
    static let header = "rouse-signature"

    /// `t=SECONDS,v1=HEX` with one `v1` for each secret: HMAC-SHA256 of `SECONDS.BODY`, keyed with
    /// the secret's text.
    static func value(_ body: [UInt8], seconds: UInt64, secrets: [String]) -> String {
        let signed = Array("\(seconds).".utf8) + body
        return
            (["t=\(seconds)"]
            + secrets.map { secret in
                "v1=" + Hex.encode(Digest.hmacSHA256(key: Array(secret.utf8), signed))
            }).joined(separator: ",")
    }
}
