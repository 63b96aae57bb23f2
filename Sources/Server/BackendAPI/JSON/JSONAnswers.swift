import Foundation
import HTTP1
import Model

extension HTTPResponse {
    /// An answer in JSON; names become snake case. Nothing of it may be kept by caches.
    static func json(
        _ status: Int, _ body: some Encodable, type: String = "application/json"
    ) -> HTTPResponse {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Only a number that is no number could fail, and no answer holds a floating one.
        guard let data = try? encoder.encode(body) else { return HTTPResponse(status: 500) }
        return HTTPResponse(
            status: status, headers: [("content-type", type), ("cache-control", "no-store")],
            body: Array(data))
    }
}

extension Timestamp {
    /// RFC 3339 in UTC with milliseconds; at most the year 9999.
    var text: String {
        let milliseconds = min(milliseconds, 253_402_300_799_999)
        let date = Date(timeIntervalSince1970: Double(milliseconds / 1000))
        let fraction = String(milliseconds % 1000)
        let zeros = String(repeating: "0", count: 3 - fraction.count)
        return date.formatted(.iso8601).dropLast() + ".\(zeros)\(fraction)Z"
    }
}
