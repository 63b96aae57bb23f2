import Glibc
internal import Model

/// The date of an answer (RFC 9110 5.6.7).
enum HTTPDate {
    /// - Parameter skew: milliseconds added to `now`.
    static func text(_ now: Timestamp, skew: Int64) -> String {
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let moment = Int64(clamping: now.milliseconds).addingReportingOverflow(skew).partialValue
        // Within the years that the form has.
        var seconds = time_t(min(max(moment / 1_000, 0), 253_402_300_799))
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(two).joined(separator: ":")
        return "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) "
            + "\(parts.tm_year + 1_900) \(clock) GMT"
    }
}
