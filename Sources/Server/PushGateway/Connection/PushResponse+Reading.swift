import Crypto
import Glibc
import Model
import PushPool

/// How answers of APNs are read.
extension PushResponse {
    /// No body of APNs comes near this.
    static let bodyBytesMax = 4_096
    private static let reasonBytesMax = 64

    init(status: Int, body: [UInt8]) {
        let members = body.isEmpty ? nil : try? TokenMembers(json: body, maximumMembers: 16)
        self.init(status: UInt64(max(0, status)), reason: Self.reason(members))
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

    /// Seconds since 1970 of an HTTP date (RFC 9110 5.6.7).
    static func seconds(httpDate text: String) -> Int64? {
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let words = text.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let day = Int32(words[1]),
            let month = months.firstIndex(of: String(words[2])), let year = Int32(words[3]),
            (1970...9999).contains(year)
        else { return nil }
        let time = words[4].split(separator: ":").compactMap { Int32($0) }
        guard time.count == 3, (1...31).contains(day), time.allSatisfy({ (0...60).contains($0) })
        else { return nil }
        var parts = tm()
        parts.tm_year = year - 1900
        parts.tm_mon = Int32(month)
        parts.tm_mday = day
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (time[0], time[1], time[2])
        return Int64(timegm(&parts))
    }
}
