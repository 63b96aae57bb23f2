import Model
import Wake
import Wire

// Bodies are `Decodable`, and read out of the document that `JSONText` has checked. An error is a
// `FieldError`: the place, and what must be there.

/// A number that the wanted type does not hold: negative, with a fraction, or too large.
struct NumberError: Error {
    let path: [any CodingKey]
}

/// One value of a document, and its place.
struct JSONReader: Decoder {
    let value: CustomValue
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(JSONMembers(members: try members(), codingPath: codingPath))
    }

    func members() throws -> [ExactText: CustomValue] {
        guard case .object(let members) = value else { throw mismatch("an object") }
        return members
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .list(let elements) = value else { throw mismatch("an array") }
        return JSONElements(elements: elements, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    fileprivate func mismatch(_ wanted: String) -> FieldError {
        let isNull = if case .null = value { true } else { false }
        return FieldError(
            path: codingPath, text: isNull ? "must be \(wanted), not null" : "must be \(wanted)")
    }

    static func read<Body: Decodable>(
        _ type: Body.Type, _ value: CustomValue, _ path: @autoclosure () -> [any CodingKey]
    ) throws -> Body {
        // Most values are these; they need no decoder.
        switch value {
        case .text(let text): if let body = text as? Body { return body }
        case .flag(let flag): if let body = flag as? Body { return body }
        default: break
        }
        return try Body(from: JSONReader(value: value, codingPath: path()))
    }
}

extension JSONReader: SingleValueDecodingContainer {
    func decodeNil() -> Bool { if case .null = value { true } else { false } }

    func decode(_ type: Bool.Type) throws -> Bool {
        guard case .flag(let flag) = value else { throw mismatch("true or false") }
        return flag
    }

    func decode(_ type: String.Type) throws -> String {
        guard case .text(let text) = value else { throw mismatch("a string") }
        return text
    }

    func decode(_ type: Double.Type) throws -> Double {
        switch value {
        case .integer(let number): return Double(number)
        case .number(let text): return Double(text) ?? .nan
        default: throw mismatch("a number")
        }
    }

    func decode(_ type: Float.Type) throws -> Float { Float(try decode(Double.self)) }
    func decode(_ type: Int.Type) throws -> Int { try whole(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try whole(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try whole(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try whole(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try whole(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try whole(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try whole(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try whole(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try whole(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try whole(type) }

    func decode<Body: Decodable>(_ type: Body.Type) throws -> Body { try Body(from: self) }

    /// Also of `1.0` and `1e3`, as other programs write whole numbers.
    private func whole<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        let number: Number?
        switch value {
        case .integer(let integer): number = Number(exactly: integer)
        case .number(let text): number = Number(text) ?? Double(text).flatMap(Number.init(exactly:))
        default: throw mismatch("a whole number")
        }
        guard let number else { throw NumberError(path: codingPath) }
        return number
    }
}

/// The members of an object.
private struct JSONMembers<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let members: [ExactText: CustomValue]
    let codingPath: [any CodingKey]

    var allKeys: [Key] { members.keys.compactMap { Key(stringValue: $0.text) } }

    func contains(_ key: Key) -> Bool { members[ExactText(key.stringValue)] != nil }

    private func value(_ key: Key) throws -> CustomValue {
        guard let value = members[ExactText(key.stringValue)] else {
            throw FieldError(path: codingPath + [key], text: "is missing", code: .missingField)
        }
        return value
    }

    private func reader(_ key: any CodingKey, _ value: CustomValue) -> JSONReader {
        JSONReader(value: value, codingPath: codingPath + [key])
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        if case .null = try value(key) { true } else { false }
    }

    func decode<Body: Decodable>(_ type: Body.Type, forKey key: Key) throws -> Body {
        try JSONReader.read(type, try value(key), codingPath + [key])
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try reader(key, try value(key)).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try reader(key, try value(key)).unkeyedContainer()
    }

    func superDecoder() -> any Decoder {
        JSONReader(value: .object(members), codingPath: codingPath)
    }

    func superDecoder(forKey key: Key) throws -> any Decoder { reader(key, try value(key)) }
}

/// The elements of an array, one after the other.
private struct JSONElements: UnkeyedDecodingContainer {
    let elements: [CustomValue]
    let codingPath: [any CodingKey]
    private(set) var currentIndex = 0

    init(elements: [CustomValue], codingPath: [any CodingKey]) {
        self.elements = elements
        self.codingPath = codingPath
    }

    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex >= elements.count }

    private mutating func next() throws -> JSONReader {
        let path = codingPath + [Place(intValue: currentIndex)]
        guard !isAtEnd else {
            throw FieldError(path: path, text: "is missing", code: .missingField)
        }
        defer { currentIndex += 1 }
        return JSONReader(value: elements[currentIndex], codingPath: path)
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd, case .null = elements[currentIndex] else { return false }
        currentIndex += 1
        return true
    }

    mutating func decode<Body: Decodable>(_ type: Body.Type) throws -> Body {
        let reader = try next()
        return try JSONReader.read(type, reader.value, reader.codingPath)
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try next().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try next().unkeyedContainer()
    }

    mutating func superDecoder() throws -> any Decoder { try next() }
}

private struct Place: CodingKey {
    let intValue: Int?
    var stringValue: String { "" }

    init(intValue: Int) { self.intValue = intValue }
    init?(stringValue: String) { nil }
}
