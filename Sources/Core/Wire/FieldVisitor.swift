public import Model

/// Goes through the fields of a body, once each, in ascending order of number: to read the one that
/// comes next, to write all of them or to list them. Names, numbers and types are sync.proto's.
///
/// A visitor that writes or lists changes no value.
public protocol FieldVisitor {
    /// `Never` of a visitor that reads no bytes of a peer.
    associatedtype Failure: Error
    /// Type `uint64`.
    mutating func uint64(
        _ number: UInt32, _ name: StaticString, _ value: inout UInt64
    ) throws(Failure)
    /// Type `uint32`.
    mutating func uint32(
        _ number: UInt32, _ name: StaticString, _ value: inout UInt32
    ) throws(Failure)
    /// Type `optional uint32`: 0 is not absence.
    mutating func uint32(
        _ number: UInt32, _ name: StaticString, optional value: inout UInt32?
    ) throws(Failure)
    /// Type `bool`.
    mutating func bool(
        _ number: UInt32, _ name: StaticString, _ value: inout Bool
    ) throws(Failure)
    /// Type `string`.
    mutating func string(
        _ number: UInt32, _ name: StaticString, _ value: inout String
    ) throws(Failure)
    /// Type `bytes`.
    mutating func bytes(
        _ number: UInt32, _ name: StaticString, _ value: inout [UInt8]
    ) throws(Failure)
    /// Type `bytes`: 16 of them, or none.
    mutating func objectID(
        _ number: UInt32, _ name: StaticString, _ value: inout [UInt8]
    ) throws(Failure)
    /// Type `bytes`: 16 of them, or none for `nil`.
    mutating func identifier<Noun>(
        _ number: UInt32, _ name: StaticString, _ value: inout Identifier<Noun>?
    ) throws(Failure)
    /// An enumeration.
    mutating func enumeration<Value: WireEnumeration>(
        _ number: UInt32, _ name: StaticString, _ value: inout Value
    ) throws(Failure)
    /// Type `repeated string`.
    mutating func strings(
        _ number: UInt32, _ name: StaticString, _ values: inout [String]
    ) throws(Failure)
    /// A message.
    mutating func message<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ value: inout Message?
    ) throws(Failure)
    /// A message that is held in an array of at most one, because few bodies have it and each would
    /// have to have room for it.
    mutating func message<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, apart value: inout [Message]
    ) throws(Failure)
    /// A repeated message.
    mutating func messages<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ values: inout [Message]
    ) throws(Failure)
    /// Message `Cursor`, whose epoch is never absent.
    mutating func cursor(
        _ number: UInt32, _ name: StaticString, _ value: inout Cursor?
    ) throws(Failure)
    /// A oneof: its members stand where its name does.
    mutating func oneof<Choice: WireOneof>(
        _ name: StaticString, _ choice: inout Choice?
    ) throws(Failure)
    /// One member of a oneof. `chosen` gives its value, if it is the one that is set.
    mutating func member<Choice: WireOneof, Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ choice: inout Choice?,
        _ choose: (Message) -> Choice, _ chosen: (Choice) -> Message?
    ) throws(Failure)
    /// Whether it has written the fields that follow from `encoded`, which holds them.
    mutating func writes(_ encoded: [UInt8]?) -> Bool
}

extension FieldVisitor {
    /// Only what writes has a use for fields that are encoded.
    @inline(__always)
    public mutating func writes(_ encoded: [UInt8]?) -> Bool { false }
}

/// The values of a oneof of sync.proto: each case has the message of one member.
public protocol WireOneof: Equatable, Sendable {
    /// Shows each member to `visitor`, as `fields` of the message that has the oneof does.
    static func members<V: FieldVisitor>(
        of choice: inout Self?, _ visitor: inout V
    ) throws(V.Failure)
}
