import Crypto
import Foundation
import Wire

/// Why a JSON body was not taken: the place in it, and what must be there.
struct FieldError: Error {
    let path: [any CodingKey]
    let text: String
    var isMissing = false
}

/// JSON read by its schema, not by its good will: an unknown field is an error that names it.
enum StrictJSON {
    /// Under it decoders hold the bytes they read from.
    static var text: CodingUserInfoKey {
        guard let key = CodingUserInfoKey(rawValue: "text") else { preconditionFailure("a key") }
        return key
    }

    static func read<Body: Decodable>(
        _ type: Body.Type, _ bytes: [UInt8]
    ) throws(Problem) -> Body {
        // What is taken here costs the decoder little, whoever wrote it.
        if let fault = JSONText.fault(in: bytes) { throw .malformed("the body \(fault.text)") }
        do {
            let decoder = JSONDecoder()
            decoder.userInfo[text] = bytes
            return try decoder.decode(type, from: Data(bytes))
        } catch let error as FieldError {
            throw problem(error.path, error.text, isMissing: error.isMissing)
        } catch let error as DecodingError {
            throw problem(error)
        } catch {
            throw .malformed("the body cannot be read")
        }
    }

    private static func problem(_ error: DecodingError) -> Problem {
        switch error {
        case .typeMismatch(let type, let context):
            return problem(context.codingPath, "must be \(name(of: type))")
        case .valueNotFound(let type, let context):
            return problem(context.codingPath, "must be \(name(of: type)), not null")
        case .keyNotFound(let key, let context):
            return problem(context.codingPath + [key], "is missing", isMissing: true)
        case .dataCorrupted:
            return .malformed("the body is not JSON in UTF-8")
        @unknown default:
            return .malformed("the body cannot be read")
        }
    }

    private static func problem(
        _ path: [any CodingKey], _ text: String, isMissing: Bool = false
    ) -> Problem {
        var place = ""
        for key in path {
            if let index = key.intValue {
                place += "[\(index)]"
            } else {
                place += place.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
        return Problem(
            isMissing ? .missingField : .malformed,
            place.isEmpty ? "the body \(text)" : "\(place): \(text)")
    }

    private static func name(of type: any Any.Type) -> String {
        if type == String.self { return "a string" }
        if type == Bool.self { return "true or false" }
        if type is any BinaryInteger.Type { return "a whole number" }
        if type is any Sequence.Type {
            return type is any ExpressibleByDictionaryLiteral.Type ? "an object" : "an array"
        }
        return "an object"
    }
}

/// The fields of one JSON object. Making it refuses unknown ones.
struct Fields<Key: CodingKey & CaseIterable> {
    private let container: KeyedDecodingContainer<Key>

    init(_ decoder: any Decoder, _ keys: Key.Type = Key.self) throws {
        let names = Set(keys.allCases.map(\.stringValue))
        let all = try decoder.container(keyedBy: AnyKey.self).allKeys
        let unknown = all.filter { !names.contains($0.stringValue) }
            .min { $0.stringValue < $1.stringValue }
        if let unknown {
            throw FieldError(path: decoder.codingPath + [unknown], text: "is not known here")
        }
        container = try decoder.container(keyedBy: keys)
    }

    func required<Value: Decodable>(_ key: Key, _ type: Value.Type = Value.self) throws -> Value {
        try container.decode(type, forKey: key)
    }

    /// `nil`: absent. A null is an error: leaving out is the one way to say nothing.
    func optional<Value: Decodable>(_ key: Key, _ type: Value.Type = Value.self) throws -> Value? {
        container.contains(key) ? try container.decode(type, forKey: key) : nil
    }

    /// A whole number in a range.
    func number(_ key: Key, in range: ClosedRange<UInt64>) throws -> UInt64? {
        let number: UInt64?
        do {
            number = try optional(key)
        } catch let error as DecodingError {
            throw error
        } catch {
            // Negative, with a fraction, or beyond 64 bits: an error of the parser's own.
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
    func refusal(_ key: Key, _ text: String) -> FieldError {
        FieldError(path: container.codingPath + [key], text: text)
    }

    func missing(_ key: Key) -> FieldError {
        FieldError(path: container.codingPath + [key], text: "is missing", isMissing: true)
    }
}

private struct AnyKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}
