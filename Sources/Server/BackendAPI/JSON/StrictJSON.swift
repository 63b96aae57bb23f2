import Model
import Wake
import Wire

/// Why a JSON body was not taken: the place in it, and what must be there.
struct FieldError: Error {
    let path: [any CodingKey]
    let text: String
    var code = Code.malformed
}

/// JSON read by its schema, not by its good will: an unknown field is an error that names it.
enum StrictJSON {
    static func read<Body: Decodable>(
        _ type: Body.Type, _ bytes: [UInt8]
    ) throws(Problem) -> Body {
        let document: CustomValue
        do throws(JSONFault) {
            document = try JSONText.document(bytes)
        } catch {
            throw .malformed("the body \(error.text)")
        }
        do {
            return try Body(from: JSONReader(value: document, codingPath: []))
        } catch let error as FieldError {
            throw problem(error.path, error.text, error.code)
        } catch let error as NumberError {
            throw problem(error.path, "must be a whole number")
        } catch {
            throw .malformed("the body cannot be read")
        }
    }

    private static func problem(
        _ path: [any CodingKey], _ text: String, _ code: Code = .malformed
    ) -> Problem {
        var place = ""
        for key in path {
            if let index = key.intValue {
                place += "[\(index)]"
            } else {
                place += place.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
        return Problem(code, place.isEmpty ? "the body \(text)" : "\(place): \(text)")
    }
}

/// The fields of one JSON object. Making it refuses unknown ones.
///
/// They are looked up in the document itself: a keyed container of the standard library would box
/// itself and each key, for two dozen fields of a push of which most are absent.
struct Fields<Key: CodingKey & CaseIterable> {
    private let members: [ExactText: CustomValue]
    private let path: [any CodingKey]
    /// The members once more where they are few. Most keys that are looked for are absent, which
    /// the lengths of a few names show with less work than a hash.
    private var few: [(name: ExactText, value: CustomValue)] = []

    private static var fewMax: Int { 8 }

    init(_ decoder: any Decoder, _ keys: Key.Type = Key.self) throws {
        guard let reader = decoder as? JSONReader else {
            throw FieldError(path: decoder.codingPath, text: "is of no document that was checked")
        }
        (members, path) = (try reader.members(), reader.codingPath)
        var unknown: String?
        for (name, value) in members {
            if Key(stringValue: name.text) == nil {
                unknown = unknown.map { min($0, name.text) } ?? name.text
            }
            if members.count <= Self.fewMax { few.append((name, value)) }
        }
        if let unknown {
            throw FieldError(
                path: path + [UnknownKey(stringValue: unknown)], text: "is not known here")
        }
    }

    private func value(_ key: Key) -> CustomValue? {
        let name = ExactText(key.stringValue)
        if few.isEmpty { return members.isEmpty ? nil : members[name] }
        for field in few where field.name == name { return field.value }
        return nil
    }

    func required<Value: Decodable>(_ key: Key, _ type: Value.Type = Value.self) throws -> Value {
        guard let value = try optional(key, type) else { throw missing(key) }
        return value
    }

    /// `nil`: absent. A null is an error: leaving out is the one way to say nothing.
    func optional<Value: Decodable>(_ key: Key, _ type: Value.Type = Value.self) throws -> Value? {
        guard let value = value(key) else { return nil }
        return try JSONReader.read(type, value, path + [key])
    }

    /// A whole number in a range.
    func number(_ key: Key, in range: ClosedRange<UInt64>) throws -> UInt64? {
        let number: UInt64?
        do {
            number = try optional(key)
        } catch is NumberError {
            number = .max
        }
        guard let number else { return nil }
        guard range.contains(number) else {
            throw refusal(
                key, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// A string of so many bytes, without control characters unless `lines`.
    func text(_ key: Key, bytes: ClosedRange<Int>, lines: Bool = false) throws -> String? {
        guard let text = try optional(key, String.self) else { return nil }
        guard bytes.contains(text.utf8.count) else {
            throw refusal(
                key, "must have \(bytes.lowerBound) to \(bytes.upperBound) bytes in UTF-8")
        }
        guard lines || text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw refusal(key, "must not hold control characters")
        }
        return text
    }

    /// An error that names the field.
    func refusal(_ key: Key, _ text: String, _ code: Code = .malformed) -> FieldError {
        FieldError(path: path + [key], text: text, code: code)
    }

    /// An error that names the object itself.
    func refusal(_ text: String, _ code: Code) -> FieldError {
        FieldError(path: path, text: text, code: code)
    }

    func missing(_ key: Key) -> FieldError {
        FieldError(path: path + [key], text: "is missing", code: .missingField)
    }
}

private struct UnknownKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
