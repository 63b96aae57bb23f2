import Foundation
import Model
import Testing

@testable import BackendAPI

/// Bodies and answers through our own reader and writer, held against Foundation's.
@Suite struct JSONCodingTests {
    private struct Answer: Encodable {
        struct Inner: Encodable {
            let messageId: String
            let count: Int?
        }

        let conversationID = "x/y"
        let aURLOfIt = "\"\\\u{8}\t\n\u{c}\r\u{1}\u{1f}\u{7f} é 😀"
        let position = UInt64.max
        let offset = Int64.min
        let flag = false
        let nothing: String? = nil
        let inner = [Inner(messageId: "b", count: 1), Inner(messageId: "a", count: nil)]
        let empty: [String] = []
        let byName = [
            "camelCase": Inner(messageId: "c", count: 0), "b": .init(messageId: "", count: 2),
        ]
        let nested = [[1, 2], []]
        let half = 0.5
        let whole = 3.0
    }

    @Test("answers are what Foundation writes, byte by byte")
    func writes() throws {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        #expect(
            String(decoding: try JSONWriter.write(Answer()), as: UTF8.self)
                == String(decoding: try encoder.encode(Answer()), as: UTF8.self))
        #expect(throws: (any Error).self) { try JSONWriter.write([Double.nan]) }
    }

    @Test("each character that is escaped is, if it is the only one", arguments: 0...0x7F)
    func escapes(byte: UInt8) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes]
        let texts = ["a" + String(UnicodeScalar(byte)), String(UnicodeScalar(byte)) + "é"]
        #expect(try JSONWriter.write(texts) == Array(try encoder.encode(texts)))
    }

    /// More fields than are looked at one by one.
    private struct Wide: Decodable, Equatable {
        enum Key: String, CodingKey, CaseIterable { case a, b, c, d, e, f, g, h, i, j }

        let values: [String?]

        init(from decoder: any Decoder) throws {
            let fields = try Fields<Key>(decoder)
            values = try Key.allCases.map { try fields.optional($0) }
        }
    }

    @Test("each field of an object is found, of few and of many", arguments: 0...10)
    func fields(count: Int) throws {
        let names = Wide.Key.allCases.prefix(count).map(\.rawValue)
        let text = "{" + names.map { "\"\($0)\":\"\($0)\"" }.joined(separator: ",") + "}"
        let wide = try StrictJSON.read(Wide.self, Array(text.utf8))
        #expect(wide.values == names + [String?](repeating: nil, count: 10 - count))
        let more = text.dropLast() + (count == 0 ? "" : ",") + "\"z\":\"\",\"y\":\"\"}"
        #expect {
            try StrictJSON.read(Wide.self, Array(more.utf8))
        } throws: {
            "\($0)".contains("y: is not known here")
        }
    }

    private struct Body: Decodable, Equatable {
        enum Kind: String, Decodable { case plain, urgent }

        let name: String
        let kind: Kind?
        let numbers: [UInt32]
        let parts: [String: [Int]]
        let flag: Bool?
        let deep: [Body]?
    }

    private func read(_ text: String) throws -> Body {
        try StrictJSON.read(Body.self, Array(text.utf8))
    }

    @Test("bodies are read as Foundation reads them")
    func reads() throws {
        let text = #"""
            {"name":"\u00e9\n","kind":"urgent","numbers":[0,1.0,1e3,4294967295],
             "parts":{"a":[-1],"é":[]},"deep":[{"name":"","numbers":[],"parts":{}}]}
            """#
        #expect(try read(text) == JSONDecoder().decode(Body.self, from: Data(text.utf8)))
    }

    @Test(
        "what is wrong is told by its place and what must be there",
        arguments: [
            (#"{"numbers":[],"parts":{}}"#, "name: is missing"),
            (#"{"name":1,"numbers":[],"parts":{}}"#, "name: must be a string"),
            (#"{"name":null,"numbers":[],"parts":{}}"#, "name: must be a string, not null"),
            (#"{"name":"","numbers":{},"parts":{}}"#, "numbers: must be an array"),
            (#"{"name":"","numbers":[1,"2"],"parts":{}}"#, "numbers[1]: must be a whole number"),
            (#"{"name":"","numbers":[-1],"parts":{}}"#, "numbers[0]: must be a whole number"),
            (#"{"name":"","numbers":[1.5],"parts":{}}"#, "numbers[0]: must be a whole number"),
            (#"{"name":"","numbers":[1e10],"parts":{}}"#, "numbers[0]: must be a whole number"),
            (#"{"name":"","numbers":[],"parts":[]}"#, "parts: must be an object"),
            (
                #"{"name":"","numbers":[],"parts":{"a":[true]}}"#,
                "parts.a[0]: must be a whole number"
            ),
            (#"{"name":"","numbers":[],"parts":{},"flag":"x"}"#, "flag: must be true or false"),
            (#"{"name":"","numbers":[],"parts":{},"deep":[{}]}"#, "deep[0].name: is missing"),
            ("[]", "the body must be an object"),
        ])
    func faults(_ text: String, _ expected: String) {
        #expect { try read(text) } throws: { ($0 as? Problem)?.detail == expected }
    }

    @Test("moments are read and written as Foundation does, and no other text is one")
    func moments() throws {
        var generator = SystemRandomNumberGenerator()
        let moments =
            [0, 951_782_400_000, 253_402_300_799_999]
            + (0..<200).map { _ in UInt64.random(in: 0...253_402_300_799_999, using: &generator) }
        for milliseconds in moments {
            let moment = Timestamp(milliseconds: milliseconds)
            let date = Date(timeIntervalSince1970: Double(milliseconds / 1000))
            let seconds = date.formatted(.iso8601).dropLast()
            #expect(moment.text.hasPrefix(seconds))
            #expect(Timestamp(text: moment.text) == moment)
            #expect(Timestamp(text: seconds + "Z")?.milliseconds == milliseconds / 1000 * 1000)
        }
        for text in [
            "", "2026-02-30T10:00:00Z", "2026-13-01T10:00:00Z", "2026-01-01T24:00:00Z",
            "2026-01-01T10:00:60Z", "1969-12-31T23:59:59Z", "2026-01-01t10:00:00Z",
            "2026-01-01T10:00:00+00:00", "2026-01-01T10:00:00.1Z", "2026-01-01 10:00:00Z",
            "+026-01-01T10:00:00Z", "2026-00-01T10:00:00Z", "２026-01-01T10:00Z",
        ] {
            #expect(Timestamp(text: text) == nil, "\(text)")
        }
        #expect(Timestamp(milliseconds: .max).text == "9999-12-31T23:59:59.999Z")
    }
}
