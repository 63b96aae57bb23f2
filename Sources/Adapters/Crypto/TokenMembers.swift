/// The members of one JSON object: a token's header or its claims set.
///
/// Reads only what tokens need and refuses what lets two readers of one token disagree: members
/// named twice (RFC 7515 section 4, RFC 7519 section 4), invalid UTF-8, lone surrogates, bytes
/// after the object. Nested values are checked and skipped.
public struct TokenMembers: Sendable, Equatable {
    /// The value of one member.
    public enum Value: Sendable, Equatable {
        /// A string.
        case string(String)
        /// A number without exponent; a fraction is cut off (NumericDate, RFC 7519 section 2).
        case integer(Int64)
        /// `true` or `false`.
        case boolean(Bool)
        /// An array of nothing but strings, as `aud` may be.
        case strings([String])
        /// Any other value.
        case other
    }

    /// The bytes are no acceptable object, from this offset on.
    public struct Malformed: Error, Sendable, Equatable {
        /// Bytes before the one that is wrong.
        public let offset: Int
    }

    private let names: [String]
    private let values: [Value]

    /// Reads one object.
    ///
    /// - Parameters:
    ///   - json: the bytes; the caller bounds their number.
    ///   - maximumMembers: members of the object and elements of a string array.
    public init(json: [UInt8], maximumMembers: Int = 64) throws(Malformed) {
        var reader = JSONReader(bytes: json, maximumElements: maximumMembers)
        (names, values) = try reader.readObject()
    }

    /// The value of a member; nil if it is absent.
    public subscript(_ name: String) -> Value? {
        names.firstIndex { Array($0.utf8) == Array(name.utf8) }.map { values[$0] }
    }

    /// The value of a member that must be a string.
    public func string(_ name: String) -> String? {
        guard case .string(let text) = self[name] else { return nil }
        return text
    }

    /// The value of a member that must be a number.
    public func integer(_ name: String) -> Int64? {
        guard case .integer(let number) = self[name] else { return nil }
        return number
    }

    /// The value of a member that is one string or an array of strings.
    public func strings(_ name: String) -> [String]? {
        switch self[name] {
        case .string(let text): [text]
        case .strings(let texts): texts
        default: nil
        }
    }
}

/// A strict reader of RFC 8259 with a bounded depth.
private struct JSONReader {
    private static let maximumDepth = 16
    let bytes: [UInt8]
    let maximumElements: Int
    var offset = 0

    init(bytes: [UInt8], maximumElements: Int) {
        self.bytes = bytes
        self.maximumElements = maximumElements
    }

    mutating func readObject() throws(TokenMembers.Malformed) -> ([String], [TokenMembers.Value]) {
        var names: [String] = []
        var values: [TokenMembers.Value] = []
        var seen: Set<[UInt8]> = []
        skipSpace()
        try expect(UInt8(ascii: "{"))
        skipSpace()
        if !take(UInt8(ascii: "}")) {
            repeat {
                skipSpace()
                let name = try readString()
                // By bytes: Swift's == would take two canonically equivalent names for one.
                guard seen.insert(Array(name.utf8)).inserted, names.count < maximumElements else {
                    throw malformed
                }
                skipSpace()
                try expect(UInt8(ascii: ":"))
                names.append(name)
                values.append(try readValue(depth: 1))
                skipSpace()
            } while take(UInt8(ascii: ","))
            try expect(UInt8(ascii: "}"))
        }
        skipSpace()
        guard offset == bytes.count else { throw malformed }
        return (names, values)
    }

    private mutating func readValue(depth: Int) throws(TokenMembers.Malformed)
        -> TokenMembers.Value
    {
        guard depth <= Self.maximumDepth else { throw malformed }
        skipSpace()
        switch peek {
        case UInt8(ascii: "\""): return .string(try readString())
        case UInt8(ascii: "{"): return try skipObject(depth: depth)
        case UInt8(ascii: "["): return try readArray(depth: depth)
        case UInt8(ascii: "t"): return try readWord("true", .boolean(true))
        case UInt8(ascii: "f"): return try readWord("false", .boolean(false))
        case UInt8(ascii: "n"): return try readWord("null", .other)
        default: return try readNumber()
        }
    }

    private mutating func skipObject(depth: Int) throws(TokenMembers.Malformed)
        -> TokenMembers.Value
    {
        try expect(UInt8(ascii: "{"))
        skipSpace()
        if take(UInt8(ascii: "}")) { return .other }
        repeat {
            skipSpace()
            _ = try readString()
            skipSpace()
            try expect(UInt8(ascii: ":"))
            _ = try readValue(depth: depth + 1)
            skipSpace()
        } while take(UInt8(ascii: ","))
        try expect(UInt8(ascii: "}"))
        return .other
    }

    private mutating func readArray(depth: Int) throws(TokenMembers.Malformed)
        -> TokenMembers.Value
    {
        try expect(UInt8(ascii: "["))
        skipSpace()
        if take(UInt8(ascii: "]")) { return .strings([]) }
        var strings: [String]? = []
        repeat {
            let value = try readValue(depth: depth + 1)
            if case .string(let text) = value, (strings?.count ?? 0) < maximumElements {
                strings?.append(text)
            } else {
                strings = nil
            }
            skipSpace()
        } while take(UInt8(ascii: ","))
        try expect(UInt8(ascii: "]"))
        return strings.map { .strings($0) } ?? .other
    }

    private mutating func readWord(
        _ word: String, _ value: TokenMembers.Value
    ) throws(TokenMembers.Malformed) -> TokenMembers.Value {
        for byte in word.utf8 { try expect(byte) }
        return value
    }

    private mutating func readNumber() throws(TokenMembers.Malformed) -> TokenMembers.Value {
        let isNegative = take(UInt8(ascii: "-"))
        var number: Int64? = 0
        if !take(UInt8(ascii: "0")) {
            guard let first = peek, (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(first) else {
                throw malformed
            }
            while let digit = takeDigit() {
                number = number.flatMap { Self.append(digit, to: $0) }
            }
        }
        if take(UInt8(ascii: ".")) { try skipDigits() }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            number = nil
            _ = take(UInt8(ascii: "+")) || take(UInt8(ascii: "-"))
            try skipDigits()
        }
        return number.map { .integer(isNegative ? -$0 : $0) } ?? .other
    }

    private static func append(_ digit: UInt8, to number: Int64) -> Int64? {
        let (scaled, overflow) = number.multipliedReportingOverflow(by: 10)
        let (sum, carry) = scaled.addingReportingOverflow(Int64(digit))
        return overflow || carry ? nil : sum
    }

    private mutating func skipDigits() throws(TokenMembers.Malformed) {
        guard takeDigit() != nil else { throw malformed }
        while takeDigit() != nil {}
    }

    private mutating func takeDigit() -> UInt8? {
        guard let byte = peek, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else {
            return nil
        }
        offset += 1
        return byte - UInt8(ascii: "0")
    }

    private mutating func readString() throws(TokenMembers.Malformed) -> String {
        try expect(UInt8(ascii: "\""))
        var text: [UInt8] = []
        while true {
            guard let byte = peek, byte >= 0x20 else { throw malformed }
            offset += 1
            if byte == UInt8(ascii: "\"") { break }
            if byte == UInt8(ascii: "\\") {
                try readEscape(into: &text)
            } else {
                text.append(byte)
            }
        }
        guard let string = String(validating: text, as: UTF8.self) else { throw malformed }
        return string
    }

    private mutating func readEscape(into text: inout [UInt8]) throws(TokenMembers.Malformed) {
        guard let byte = peek else { throw malformed }
        offset += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var value = try readHex()
            if (0xD800..<0xDC00).contains(value) {
                try expect(UInt8(ascii: "\\"))
                try expect(UInt8(ascii: "u"))
                let low = try readHex()
                guard (0xDC00..<0xE000).contains(low) else { throw malformed }
                value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(value) else { throw malformed }
            text += Array(String(Character(scalar)).utf8)
        default: throw malformed
        }
    }

    private mutating func readHex() throws(TokenMembers.Malformed) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = peek, let digit = Character(Unicode.Scalar(byte)).hexDigitValue,
                byte < 0x80
            else { throw malformed }
            offset += 1
            value = value << 4 | UInt32(digit)
        }
        return value
    }

    private var malformed: TokenMembers.Malformed { TokenMembers.Malformed(offset: offset) }

    private var peek: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        offset += 1
        return true
    }

    private mutating func expect(_ byte: UInt8) throws(TokenMembers.Malformed) {
        guard take(byte) else { throw malformed }
    }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
            offset += 1
        }
    }
}
