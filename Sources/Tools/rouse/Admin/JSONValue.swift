import Foundation

/// Any JSON: what the admin API is asked and answers.
enum JSONValue: Codable, Equatable, Sendable {
    case null
    case flag(Bool)
    case number(Int64)
    case text(String)
    case list([JSONValue])
    case object([String: JSONValue])

    init(bytes: [UInt8]) throws {
        self = try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(Int64.self) {
            self = .number(number)
        } else if let text = try? container.decode(String.self) {
            self = .text(text)
        } else if let list = try? container.decode([JSONValue].self) {
            self = .list(list)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .flag(let flag): try container.encode(flag)
        case .number(let number): try container.encode(number)
        case .text(let text): try container.encode(text)
        case .list(let list): try container.encode(list)
        case .object(let members): try container.encode(members)
        }
    }

    var bytes: [UInt8] {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return Array(try encoder.encode(self))
        }
    }

    /// A member of an object; `.null` if there is none.
    subscript(_ name: String) -> JSONValue {
        guard case .object(let members) = self else { return .null }
        return members[name] ?? .null
    }

    /// The items of a list; else none.
    var items: [JSONValue] {
        guard case .list(let items) = self else { return [] }
        return items
    }

    /// As a person reads it.
    var words: String {
        switch self {
        case .null: ""
        case .flag(let flag): flag ? "yes" : "no"
        case .number(let number): String(number)
        case .text(let text): text
        case .list(let items): items.map(\.words).joined(separator: ", ")
        case .object(let members):
            members.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.words)" }
                .joined(separator: ", ")
        }
    }
}
