/// Any JSON document as a value (RFC 8259), for whoever does not know its members beforehand. It
/// is read and written by any coder of `Codable`.
public enum JSONValue: Codable, Equatable, Sendable {
    case null
    case flag(Bool)
    case number(Int64)
    /// A number that is no `Int64`.
    case fraction(Double)
    case text(String)
    case list([JSONValue])
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(Int64.self) {
            self = .number(number)
        } else if let fraction = try? container.decode(Double.self) {
            self = .fraction(fraction)
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let list = try? container.decode([JSONValue].self) {
            self = .list(list)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .flag(let flag): try container.encode(flag)
        case .number(let number): try container.encode(number)
        case .fraction(let fraction): try container.encode(fraction)
        case .text(let text): try container.encode(text)
        case .list(let list): try container.encode(list)
        case .object(let members): try container.encode(members)
        }
    }

    /// A member of an object; `.null` if there is none.
    public subscript(_ name: String) -> JSONValue { members[name] ?? .null }

    /// The members of an object; else none.
    public var members: [String: JSONValue] {
        guard case .object(let members) = self else { return [:] }
        return members
    }

    /// The items of a list; else none.
    public var items: [JSONValue] {
        guard case .list(let items) = self else { return [] }
        return items
    }

    /// `nil`: it is no text.
    public var text: String? {
        guard case .text(let text) = self else { return nil }
        return text
    }

    /// `nil`: it is no number.
    public var double: Double? {
        switch self {
        case .number(let number): Double(number)
        case .fraction(let fraction): fraction
        default: nil
        }
    }

    /// `nil`: it is no number, or none without a fraction.
    public var integer: Int64? {
        switch self {
        case .number(let number): number
        case .fraction(let fraction): Int64(exactly: fraction)
        default: nil
        }
    }

    /// As a person reads it.
    public var words: String {
        switch self {
        case .null: ""
        case .flag(let flag): flag ? "yes" : "no"
        case .number(let number): String(number)
        case .fraction(let fraction): String(fraction)
        case .text(let text): text
        case .list(let items): items.map(\.words).joined(separator: ", ")
        case .object(let members):
            members.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.words)" }
                .joined(separator: ", ")
        }
    }
}
