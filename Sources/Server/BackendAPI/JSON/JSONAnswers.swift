import Glibc
import HTTP1
import Model

extension HTTPResponse {
    /// An answer in JSON; names become snake case. Nothing of it may be kept by caches.
    static func json(
        _ status: Int, _ body: some Encodable, type: String = "application/json"
    ) -> HTTPResponse {
        // Only a number that is no number could fail, and no answer holds a floating one.
        guard let bytes = try? JSONWriter.write(body) else { return HTTPResponse(status: 500) }
        return json(status, written: bytes, type: type)
    }

    private static func json(
        _ status: Int, written bytes: [UInt8], type: String = "application/json"
    ) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: [("content-type", type), ("cache-control", "no-store")],
            body: bytes)
    }

    /// Of the rows of one piece of a list: in JSON a control character has six bytes, and the
    /// answer is built as a whole.
    static let listBytesMax = 1 << 20

    /// One piece of a list: of `rows` as many as `listBytesMax` holds, and one at least. What is
    /// left over comes with the next piece.
    ///
    /// - Parameters:
    ///   - next: where the list goes on after the last of `rows`; `nil`: it ends there.
    ///   - place: where it goes on after a row.
    static func list<Row, Body: Encodable>(
        _ name: String, _ rows: [Row], next: String?, after place: (Row) -> String,
        body: (Row) throws(Problem) -> Body
    ) throws(Problem) -> HTTPResponse {
        var next = next
        var bytes = Array("{\"\(name)\":[".utf8)
        for (index, row) in rows.enumerated() {
            let end = bytes.count
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            let body = try body(row)
            guard (try? JSONWriter.write(body, to: &bytes)) != nil else {
                return HTTPResponse(status: 500)
            }
            if index > 0, bytes.count > listBytesMax {
                bytes.removeLast(bytes.count - end)
                next = place(rows[index - 1])
                break
            }
        }
        bytes.append(UInt8(ascii: "]"))
        if let next { bytes += ",\"next\":\"\(next)\"".utf8 }
        bytes.append(UInt8(ascii: "}"))
        return json(200, written: bytes)
    }
}

extension Timestamp {
    /// Of the year 9999: four digits hold no more.
    private static let last: UInt64 = 253_402_300_799_999

    /// Reads RFC 3339 in UTC, with milliseconds or without; from 1970 to the year 9999.
    init?(text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count == 20 || bytes.count == 24 else { return nil }
        var numbers: [UInt64] = []
        for (index, byte) in bytes.enumerated() {
            let mark = Self.form[bytes.count == 20 && index == 19 ? 23 : index]
            if mark == UInt8(ascii: "0") {
                guard (0x30...0x39).contains(byte) else { return nil }
                numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + UInt64(byte - 0x30)
            } else if mark == UInt8(ascii: "1") {
                guard (0x30...0x39).contains(byte) else { return nil }
                numbers.append(UInt64(byte - 0x30))
            } else if mark != byte {
                return nil
            }
        }
        var time = tm()
        time.tm_year = Int32(numbers[0]) - 1900
        time.tm_mon = Int32(numbers[1]) - 1
        time.tm_mday = Int32(numbers[2])
        (time.tm_hour, time.tm_min) = (Int32(numbers[3]), Int32(numbers[4]))
        time.tm_sec = Int32(numbers[5])
        let seconds = timegm(&time)
        guard seconds >= 0 else { return nil }
        let fraction = numbers.count > 6 ? numbers[6] : 0
        self.init(milliseconds: UInt64(seconds) * 1000 + fraction)
        // The 30th of February would be a day in March.
        guard self.text == (bytes.count == 20 ? text.dropLast() + ".000Z" : text) else {
            return nil
        }
    }

    /// Where a number begins is a 1.
    private static let form = Array("1000-10-10T10:10:10.100Z".utf8)

    /// RFC 3339 in UTC with milliseconds; at most the year 9999.
    var text: String {
        let milliseconds = min(milliseconds, Self.last)
        var seconds = time_t(milliseconds / 1000)
        var time = tm()
        gmtime_r(&seconds, &time)
        var text: [UInt8] = []
        text.reserveCapacity(24)
        func append(_ number: Int, _ highest: Int, _ mark: Unicode.Scalar) {
            var unit = highest
            while unit > 0 {
                text.append(0x30 + UInt8(number / unit % 10))
                unit /= 10
            }
            text.append(UInt8(ascii: mark))
        }
        append(Int(time.tm_year) + 1900, 1_000, "-")
        append(Int(time.tm_mon) + 1, 10, "-")
        append(Int(time.tm_mday), 10, "T")
        append(Int(time.tm_hour), 10, ":")
        append(Int(time.tm_min), 10, ":")
        append(Int(time.tm_sec), 10, ".")
        append(Int(milliseconds % 1000), 100, "Z")
        return String(decoding: text, as: UTF8.self)
    }
}
