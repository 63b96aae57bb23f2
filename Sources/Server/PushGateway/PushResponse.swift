import Crypto
import Model

/// What APNs said: a status, and for all but 200 a JSON body with `reason`, with 410 also
/// `timestamp` in milliseconds (Apple: Handling notification responses from APNs).
struct PushResponse: Equatable {
    var status: UInt64
    /// Empty if the body gives none that can be read: the status alone tells the class then.
    var reason: String
    var timestamp: Timestamp?
    /// APNs' clock, in seconds since 1970, if it tells.
    var date: Int64?
    /// When APNs wants to hear of the push again, if it says so (RFC 9110 10.2.3).
    var retryAfter: Milliseconds?
    /// It came after the stream's deadline.
    var isLate = false
    /// The `apns-id` of the answer: ours, or the one APNs made.
    var id: WakeID?

    /// No body of APNs comes near this.
    static let bodyBytesMax = 4_096
    private static let reasonBytesMax = 64

    init(status: UInt64, reason: String = "", timestamp: Timestamp? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
    }

    init(status: Int, body: [UInt8]) {
        let members = body.isEmpty ? nil : try? TokenMembers(json: body, maximumMembers: 16)
        self.status = UInt64(max(0, status))
        reason = Self.reason(members)
        if status == 410, let time = members?.integer("timestamp"), time >= 0 {
            timestamp = Timestamp(milliseconds: UInt64(time))
        }
    }

    /// The reason in a GOAWAY's debug data, of the same form; empty if there is none.
    static func reason(goAway debugData: [UInt8]) -> String {
        guard debugData.count <= bodyBytesMax else { return "" }
        return reason(try? TokenMembers(json: debugData, maximumMembers: 16))
    }

    /// It goes into rows and logs: a word of letters and digits, or nothing.
    private static func reason(_ members: TokenMembers?) -> String {
        guard let reason = members?.string("reason"), reason.utf8.count <= reasonBytesMax,
            reason.utf8.allSatisfy({ byte in
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            })
        else { return "" }
        return reason
    }

    /// Seconds, or a date by the clock of the answer's own `date`.
    static func retryAfter(_ text: String, date: Int64?) -> Milliseconds? {
        if let seconds = UInt32(text) { return UInt64(seconds) * 1_000 }
        guard let date, let until = seconds(httpDate: text) else { return nil }
        return UInt64(clamping: until - date) * 1_000
    }

    /// Apple's table, for the labels of metrics: a peer cannot add to them.
    private static let knownReasons: Set<String> = [
        "BadCertificate", "BadCertificateEnvironment", "BadCollapseId", "BadDeviceToken",
        "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken", "BadExpirationDate",
        "BadMessageId", "BadPath", "BadPriority", "BadTopic", "DeviceTokenNotForTopic",
        "DuplicateHeaders", "ExpiredProviderToken", "ExpiredToken", "Forbidden", "IdleTimeout",
        "InternalServerError", "InvalidProviderToken", "InvalidPushType", "MethodNotAllowed",
        "MissingDeviceToken", "MissingProviderToken", "MissingTopic", "PayloadEmpty",
        "PayloadTooLarge", "ServiceUnavailable", "Shutdown", "TooManyProviderTokenUpdates",
        "TooManyRequests", "TopicDisallowed", "Unregistered", "UnrelatedKeyIdInToken",
    ]

    static func label(_ reason: String) -> String {
        reason.isEmpty ? "none" : knownReasons.contains(reason) ? reason : "other"
    }
}
