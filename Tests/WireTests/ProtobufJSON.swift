import Foundation
import Model

@testable import Wire

/// A message in protobuf's JSON form, made from the names and values of its properties. It knows
/// nothing of field numbers or wire types, so that a mistake in the codec cannot hide in it.
func protobufJSON(_ message: any WireMessage) -> JSON { object(message) }

extension FrameBody {
    /// The message inside.
    var message: any WireMessage {
        guard let message = Mirror(reflecting: self).children.first?.value as? any WireMessage
        else { preconditionFailure("a case of FrameBody without a message") }
        return message
    }
}

private protocol SixteenBytes { var bytes: [UInt8] { get } }
extension Identifier: SixteenBytes {}

private func object(_ value: Any) -> JSON {
    var fields: [String: JSON] = [:]
    for child in Mirror(reflecting: value).children {
        guard let label = child.label, let present = unwrapped(child.value),
            // No field: the others, encoded.
            !(present is SharedEncoding)
        else { continue }
        let mirror = Mirror(reflecting: present)
        if mirror.displayStyle == .enum, !(present is any WireEnumeration) {
            // A oneof: its case is the field.
            guard let member = mirror.children.first, let name = member.label else { continue }
            fields[name] = object(member.value)
        } else if let number = present as? UInt32, isOptional(child.value) {
            fields[label] = .number(UInt64(number))
        } else if let json = unlessDefault(present) {
            fields[label] = json
        }
    }
    return .object(fields)
}

private func unwrapped(_ value: Any) -> Any? {
    isOptional(value) ? Mirror(reflecting: value).children.first?.value : value
}

/// A field of which 0 is not absence, if it is a number.
private func isOptional(_ value: Any) -> Bool {
    Mirror(reflecting: value).displayStyle == .optional
}

private func unlessDefault(_ value: Any) -> JSON? {
    switch value {
    case let value as String: value.isEmpty ? nil : .string(value)
    case let value as Bool: value ? .bool(true) : nil
    case let value as UInt32: value == 0 ? nil : .number(UInt64(value))
    case let value as UInt64: value == 0 ? nil : .string(String(value))
    case let value as [UInt8]: value.isEmpty ? nil : base64(value)
    case let value as any SixteenBytes: base64(value.bytes)
    case let value as any WireEnumeration: value.rawValue == 0 ? nil : name(value)
    case let value as [String]: .list(value.map { .string($0) })
    case let value as [any WireMessage]: .list(value.map { object($0) })
    default: object(value)
    }
}

private func base64(_ bytes: [UInt8]) -> JSON { .string(Data(bytes).base64EncodedString()) }

/// `AppPhase.foreground` is APP_PHASE_FOREGROUND in the schema.
private func name(_ value: any WireEnumeration) -> JSON {
    .string(upperSnake("\(type(of: value))") + "_" + upperSnake("\(value)"))
}

/// `elsewhereNow` is ELSEWHERE_NOW in the schema.
func upperSnake(_ name: String) -> String {
    var result = ""
    for character in name {
        if character.isUppercase, !result.isEmpty { result += "_" }
        result += character.uppercased()
    }
    return result
}
