import Foundation

/// A JSON value that can be compared.
enum JSON: Equatable, Decodable {
    case bool(Bool)
    case number(UInt64)
    case string(String)
    case list([JSON])
    case object([String: JSON])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(UInt64.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSON].self) {
            self = .list(value)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }

    init(text: some StringProtocol) throws {
        self = try JSONDecoder().decode(JSON.self, from: Data(text.utf8))
    }
}

struct NotHex: Error {}

/// The bytes of hexadecimal digits; `-` stands for none.
func bytes(hex: some StringProtocol) throws -> [UInt8] {
    if hex == "-" { return [] }
    var bytes: [UInt8] = []
    var high: UInt8?
    for character in hex {
        guard let digit = character.hexDigitValue else { throw NotHex() }
        if let first = high {
            bytes.append(first << 4 | UInt8(digit))
            high = nil
        } else {
            high = UInt8(digit)
        }
    }
    guard high == nil else { throw NotHex() }
    return bytes
}

func hex(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
        decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}
