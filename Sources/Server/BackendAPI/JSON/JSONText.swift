import Model
import Wake

/// Why bytes are not taken as JSON.
struct JSONFault: Error, Equatable {
    let text: String
}

/// The bytes of one JSON document (RFC 8259), read strictly and in one pass: UTF-8, no name twice
/// in an object, nothing after the document, bounded depth and number of values. Numbers keep their
/// digits, which no C library for JSON does: an app gets its own back as they came.
struct JSONText {
    /// The 16 levels of custom data, and those around it.
    static let depthMax = CustomData.depthMax + 4
    /// More than any request of the APIs holds.
    static let valuesMax = 16_384

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0
    private var values = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The whole document.
    static func document(_ bytes: [UInt8]) throws(JSONFault) -> CustomValue {
        guard (try? UTF8Span(validating: bytes.span)) != nil else {
            throw JSONFault(text: "is not UTF-8")
        }
        var text = JSONText(bytes)
        let document = try text.value()
        text.skipSpace()
        guard text.position == bytes.count else {
            throw JSONFault(text: "goes on after its end, at byte \(text.position)")
        }
        return document
    }

    // MARK: Values

    private mutating func value() throws(JSONFault) -> CustomValue {
        skipSpace()
        values += 1
        guard values <= Self.valuesMax else {
            throw JSONFault(text: "holds more than \(Self.valuesMax) values")
        }
        switch peek {
        case UInt8(ascii: "{"):
            try descend()
            let members = try members()
            depth -= 1
            return .object(members)
        case UInt8(ascii: "["):
            try descend()
            let elements = try elements()
            depth -= 1
            return .list(elements)
        case UInt8(ascii: "\""): return .text(try string())
        case UInt8(ascii: "t"): return try word("true", .flag(true))
        case UInt8(ascii: "f"): return try word("false", .flag(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func descend() throws(JSONFault) {
        position += 1
        depth += 1
        guard depth <= Self.depthMax else {
            throw JSONFault(text: "is more than \(Self.depthMax) levels deep")
        }
    }

    private mutating func members() throws(JSONFault) -> [ExactText: CustomValue] {
        var object: [ExactText: CustomValue] = [:]
        var isASCII = true
        skipSpace()
        if take("}") { return object }
        repeat {
            skipSpace()
            guard peek == UInt8(ascii: "\"") else { throw unexpected }
            let name = try string()
            skipSpace()
            guard take(":") else { throw unexpected }
            guard object.updateValue(try value(), forKey: ExactText(name)) == nil else {
                throw Self.twice(name)
            }
            isASCII = isASCII && Self.isASCII(name)
            skipSpace()
        } while take(",")
        guard take("}") else { throw unexpected }
        // As `String` compares: decoders take equivalent names for one, such as K and the sign for
        // kelvins.
        var names: Set<String> = []
        for name in object.keys where !isASCII {
            guard names.insert(name.text).inserted else { throw Self.twice(name.text) }
        }
        return object
    }

    private static func isASCII(_ name: String) -> Bool {
        let bytes = name.utf8.span
        for offset in bytes.indices where bytes[offset] >= 0x80 { return false }
        return true
    }

    private static func twice(_ name: String) -> JSONFault {
        JSONFault(text: "has the name \(name) twice in one object")
    }

    private mutating func elements() throws(JSONFault) -> [CustomValue] {
        var list: [CustomValue] = []
        skipSpace()
        if take("]") { return list }
        repeat {
            list.append(try value())
            skipSpace()
        } while take(",")
        guard take("]") else { throw unexpected }
        return list
    }

    private mutating func word(
        _ word: StaticString, _ value: CustomValue
    ) throws(JSONFault) -> CustomValue {
        for byte in "\(word)".utf8 {
            guard peek == byte else { throw unexpected }
            position += 1
        }
        return value
    }

    // MARK: Strings

    /// Unescaped. The document is UTF-8 as a whole.
    private mutating func string() throws(JSONFault) -> String {
        position += 1
        let start = position
        while let byte = peek, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20
        {
            position += 1
        }
        if take("\"") { return String(decoding: bytes[start..<position - 1], as: UTF8.self) }
        var unescaped = Array(bytes[start..<position])
        while let byte = peek, byte >= 0x20 {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: unescaped, as: UTF8.self)
            case UInt8(ascii: "\\"): unescaped += try escaped()
            default: unescaped.append(byte)
            }
        }
        throw unexpected
    }

    private mutating func escaped() throws(JSONFault) -> [UInt8] {
        guard let byte = peek else { throw unexpected }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
        case UInt8(ascii: "b"): return [0x08]
        case UInt8(ascii: "f"): return [0x0C]
        case UInt8(ascii: "n"): return [0x0A]
        case UInt8(ascii: "r"): return [0x0D]
        case UInt8(ascii: "t"): return [0x09]
        case UInt8(ascii: "u"):
            var code = try hexadecimal()
            if (0xD800..<0xDC00).contains(code) {
                guard take("\\"), take("u") else { throw unexpected }
                let low = try hexadecimal()
                guard (0xDC00..<0xE000).contains(low) else { throw unexpected }
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
            // Half a pair is no character.
            guard let scalar = Unicode.Scalar(code) else { throw unexpected }
            return Array(String(Character(scalar)).utf8)
        default: throw unexpected
        }
    }

    private mutating func hexadecimal() throws(JSONFault) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = peek, let digit = Character(Unicode.Scalar(byte)).hexDigitValue
            else { throw unexpected }
            code = code << 4 | UInt32(digit)
            position += 1
        }
        return code
    }

    // MARK: Numbers

    /// RFC 8259 section 6. What no `Int64` holds stays as its digits.
    private mutating func number() throws(JSONFault) -> CustomValue {
        let start = position
        _ = take("-")
        let leadsWithZero = peek == UInt8(ascii: "0")
        let whole = digits()
        guard whole > 0, !leadsWithZero || whole == 1 else { throw unexpected }
        if take(".") {
            guard digits() > 0 else { throw unexpected }
        }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            guard digits() > 0 else { throw unexpected }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if let number = Int64(text) { return .integer(number) }
        guard Double(text)?.isFinite == true else {
            throw JSONFault(text: "holds a number that no program reads")
        }
        return .number(text)
    }

    private mutating func digits() -> Int {
        let start = position
        while let byte = peek, (0x30...0x39).contains(byte) { position += 1 }
        return position - start
    }

    // MARK: Bytes

    private var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard peek == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while let byte = peek, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D {
            position += 1
        }
    }

    private var unexpected: JSONFault {
        JSONFault(
            text: position < bytes.count
                ? "is not JSON at byte \(position)" : "is not JSON: it ends in the middle")
    }
}
