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
    /// Of the year 9999: four digits hold no more.
    private static let last: UInt64 = 253_402_300_799_999

    /// Reads RFC 3339 in UTC, with milliseconds or without; from 1970 to the year 9999.
    init?(text: String) {
        guard text.hasSuffix("Z"), text.utf8.count == 20 || text.utf8.count == 24 else {
            return nil
        }
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: text.utf8.count == 24)
        guard let date = try? style.parse(text) else { return nil }
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        guard milliseconds >= 0, milliseconds <= Double(Self.last) else { return nil }
        self.init(milliseconds: UInt64(milliseconds))
        // The parser would take the 30th of February for a day in March.
        guard self.text == (text.utf8.count == 20 ? text.dropLast() + ".000Z" : text) else {
            return nil
        }
    }

    /// RFC 3339 in UTC with milliseconds; at most the year 9999.
    var text: String {
        let milliseconds = min(milliseconds, Self.last)
        let date = Date(timeIntervalSince1970: Double(milliseconds / 1000))
        let fraction = String(milliseconds % 1000)
        let zeros = String(repeating: "0", count: 3 - fraction.count)
        return date.formatted(.iso8601).dropLast() + ".\(zeros)\(fraction)Z"
    }
}
