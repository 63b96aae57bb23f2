internal import Model

/// The key of a field: its number and how its value is laid out.
public struct FieldTag: Equatable, Sendable {
    /// Wire types of protobuf. Groups (3 and 4) are not allowed here, 6 and 7 do not exist.
    enum Kind: UInt32 {
        case varint = 0
        case fixed64 = 1
        case delimited = 2
        case fixed32 = 5
    }

    /// 1 to 2^29 - 1.
    let number: UInt32
    let kind: Kind
}

/// Reads protobuf wire format from a range of an array, without copying what it skips.
///
/// Invariant: 0 <= `position` <= `end` <= `bytes.count`. A field whose wire type is not the
/// schema's is skipped like an unknown one, as protobuf libraries do. Every function throws
/// `.malformed` rather than read past `end`.
public struct BodyReader {
    private let bytes: [UInt8]
    private var position: Int
    private var end: Int
    private var elementsLeft: Int
    private let elementsMax: Int

    /// `range` lies within `bytes`.
    init(_ bytes: [UInt8], _ range: Range<Int>, elements: Int) {
        self.bytes = bytes
        position = range.lowerBound
        end = range.upperBound
        elementsLeft = elements
        elementsMax = elements
    }

    /// A message of everything up to the end.
    mutating func whole<Message: WireMessage>() throws(WireError) -> Message {
        var message = Message.empty
        try message.merge(from: &self)
        return message
    }

    // MARK: Wire format

    /// At most `bytesMax` bytes; longer than needed is accepted, more than 64 bits is not.
    private mutating func varint(bytesMax: Int = 10) throws(WireError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        for _ in 0..<bytesMax {
            guard position < end else { throw .malformed }
            let byte = bytes[position]
            position += 1
            guard shift < 63 || byte <= 1 else { throw .malformed }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw .malformed
    }

    /// `nil` at the end. Keys take at most 5 bytes and 32 bits, as protobuf libraries have it.
    mutating func nextTag() throws(WireError) -> FieldTag? {
        guard position < end else { return nil }
        guard let key = UInt32(exactly: try varint(bytesMax: 5)),
            let kind = FieldTag.Kind(rawValue: key & 7), key >> 3 != 0
        else { throw .malformed }
        return FieldTag(number: key >> 3, kind: kind)
    }

    /// Steps over `count` bytes and gives their range.
    private mutating func advance(_ count: UInt64) throws(WireError) -> Range<Int> {
        guard count <= UInt64(end - position) else { throw .malformed }
        let start = position
        position += Int(count)
        return start..<position
    }

    private mutating func delimited() throws(WireError) -> Range<Int> {
        try advance(varint(bytesMax: 5))
    }

    /// Steps over the value of a field.
    mutating func skip(_ tag: FieldTag) throws(WireError) {
        switch tag.kind {
        case .varint: _ = try varint()
        case .fixed64: _ = try advance(8)
        case .delimited: _ = try delimited()
        case .fixed32: _ = try advance(4)
        }
    }

    /// Whether the field's value can be read as `kind`; if not, it has been skipped.
    private mutating func expects(
        _ kind: FieldTag.Kind, _ tag: FieldTag
    ) throws(WireError) -> Bool {
        if tag.kind == kind { return true }
        try skip(tag)
        return false
    }

    private mutating func countElement() throws(WireError) {
        guard elementsLeft > 0 else { throw .tooManyElements(limit: elementsMax) }
        elementsLeft -= 1
    }

    // MARK: Values of fields; a later occurrence replaces or, for messages, merges

    mutating func uint64(_ tag: FieldTag, _ value: inout UInt64) throws(WireError) {
        if try expects(.varint, tag) { value = try varint() }
    }

    /// Keeps the lower 32 bits, as protobuf does.
    mutating func uint32(_ tag: FieldTag, _ value: inout UInt32) throws(WireError) {
        if try expects(.varint, tag) { value = UInt32(truncatingIfNeeded: try varint()) }
    }

    mutating func bool(_ tag: FieldTag, _ value: inout Bool) throws(WireError) {
        if try expects(.varint, tag) { value = try varint() != 0 }
    }

    mutating func enumeration<Value: WireEnumeration>(
        _ tag: FieldTag, _ value: inout Value
    ) throws(WireError) {
        guard try expects(.varint, tag) else { return }
        value = Value(rawValue: UInt32(truncatingIfNeeded: try varint())) ?? .unspecified
    }

    mutating func bytes(_ tag: FieldTag, _ value: inout [UInt8]) throws(WireError) {
        if try expects(.delimited, tag) { value = Array(bytes[try delimited()]) }
    }

    /// 16 bytes, or none.
    mutating func objectID(_ tag: FieldTag, _ value: inout [UInt8]) throws(WireError) {
        guard try expects(.delimited, tag) else { return }
        let range = try delimited()
        guard range.isEmpty || range.count == 16 else { throw .malformed }
        value = Array(bytes[range])
    }

    /// 16 bytes, or none for `nil`.
    mutating func identifier<Noun>(
        _ tag: FieldTag, _ value: inout Identifier<Noun>?
    ) throws(WireError) {
        guard try expects(.delimited, tag) else { return }
        let range = try delimited()
        value = Identifier(bytes[range])
        guard value != nil || range.isEmpty else { throw .malformed }
    }

    private mutating func text() throws(WireError) -> String {
        let bytes = bytes[try delimited()]
        let text = String(decoding: bytes, as: UTF8.self)
        // Mostly ASCII, and this loop takes many bytes at a time.
        var bits: UInt8 = 0
        for byte in bytes { bits |= byte }
        // What is no UTF-8 was decoded as U+FFFD. As slices: an iterator over the text takes twice
        // as long.
        guard bits < 0x80 || ArraySlice(text.utf8) == bytes else { throw .malformed }
        return text
    }

    mutating func string(_ tag: FieldTag, _ value: inout String) throws(WireError) {
        if try expects(.delimited, tag) { value = try text() }
    }

    mutating func strings(_ tag: FieldTag, _ values: inout [String]) throws(WireError) {
        guard try expects(.delimited, tag) else { return }
        try countElement()
        values.append(try text())
    }

    mutating func message<Message: WireMessage>(
        _ tag: FieldTag, _ value: inout Message?
    ) throws(WireError) {
        guard try expects(.delimited, tag) else { return }
        // A message that comes in pieces costs what an element costs: pieces may be of 2 bytes.
        if value != nil { try countElement() }
        var message = value ?? Message.empty
        value = nil
        let outer = try enter()
        try message.merge(from: &self)
        end = outer
        value = message
    }

    mutating func messages<Message: WireMessage>(
        _ tag: FieldTag, _ values: inout [Message]
    ) throws(WireError) {
        guard try expects(.delimited, tag) else { return }
        try countElement()
        let outer = try enter()
        values.append(try whole())
        end = outer
    }

    /// Message `Cursor`: after each occurrence the epoch has its 16 bytes.
    mutating func cursor(_ tag: FieldTag, _ value: inout Cursor?) throws(WireError) {
        guard try expects(.delimited, tag) else { return }
        var epoch = value?.epoch
        var seq = value?.seq ?? 0
        let outer = try enter()
        while let inner = try nextTag() {
            switch inner.number {
            case 1: try identifier(inner, &epoch)
            case 2: try uint64(inner, &seq)
            default: try skip(inner)
            }
        }
        end = outer
        guard let epoch else { throw .malformed }
        value = Cursor(epoch: epoch, seq: seq)
    }

    /// Narrows the end to the nested message that follows; gives the end to go back to.
    private mutating func enter() throws(WireError) -> Int {
        let outer = end
        let start = try delimited().lowerBound
        end = position
        position = start
        return outer
    }
}

extension Optional {
    /// Gives up the choice of a oneof whose value is about to be merged with a later piece. With
    /// two references to it, each piece would copy all elements of those before it.
    mutating func release<Value>(for value: Value?) {
        if value != nil { self = nil }
    }
}
