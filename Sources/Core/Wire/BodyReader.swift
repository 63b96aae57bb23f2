public import Model

/// How the value of a field is laid out. Groups (3 and 4) are not allowed here, 6 and 7 do not
/// exist.
enum WireType: UInt32 {
    case varint = 0
    case fixed64 = 1
    case delimited = 2
    case fixed32 = 5

    /// The key before a field of this type.
    @inline(__always)
    func key(_ number: UInt32) -> UInt32 { number << 3 | rawValue }

    /// Whether the lowest 3 bits of a key are one of these: asked for every field.
    @inline(__always)
    static func isOne(ofKey key: UInt64) -> Bool { 0b0010_0111 >> (key & 7) & 1 != 0 }
}

/// Reads protobuf wire format from a range of an array, without copying what it skips.
///
/// As a visitor it takes the fields of a body as they come: one round through the declaration reads
/// all that stand in ascending order, which is how everybody writes them, so that a field costs no
/// search. What a whole round leaves is skipped: an unknown field, or one whose wire type is not
/// the schema's, as protobuf libraries do.
///
/// Invariant: 0 <= `position` <= `end` <= `bytes.count`. Every function throws `.malformed` rather
/// than read past `end`.
public struct BodyReader {
    private let bytes: [UInt8]
    /// Where the value of the field is that comes next.
    private(set) var position: Int
    private var end: Int
    /// Number of the field that comes next, and in the lowest 3 bits its wire type. 0: no more.
    private var key: UInt32 = 0
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
        guard position < end else { throw .malformed }
        var value = UInt64(bytes[position])
        position += 1
        if value < 0x80 { return value }
        value &= 0x7F
        var shift: UInt64 = 7
        for _ in 1..<bytesMax {
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

    /// Looks at the key of the first field.
    mutating func start() throws(WireError) { try step() }

    /// Whether no field is left.
    var isAtEnd: Bool { key == 0 }

    /// Looks at the next key. Keys take at most 5 bytes and 32 bits, as protobuf libraries have it.
    private mutating func step() throws(WireError) {
        guard position < end else {
            key = 0
            return
        }
        let next = try varint(bytesMax: 5)
        guard next >> 3 != 0, next <= UInt32.max, WireType.isOne(ofKey: next) else {
            throw .malformed
        }
        key = UInt32(truncatingIfNeeded: next)
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

    /// Steps over the field that comes next.
    mutating func skip() throws(WireError) {
        switch WireType(rawValue: key & 7) {
        case .varint: _ = try varint()
        case .fixed64: _ = try advance(8)
        case .delimited: _ = try delimited()
        case .fixed32: _ = try advance(4)
        case nil: preconditionFailure("a key that step() does not give")
        }
        try step()
    }

    private mutating func countElement() throws(WireError) {
        guard elementsLeft > 0 else { throw .tooManyElements(limit: elementsMax) }
        elementsLeft -= 1
    }

    // MARK: Values, each with a step to the key behind it

    private mutating func takeVarint() throws(WireError) -> UInt64 {
        let value = try varint()
        try step()
        return value
    }

    private mutating func takeBytes() throws(WireError) -> [UInt8] {
        let value = Array(bytes[try delimited()])
        try step()
        return value
    }

    private mutating func takeObjectID() throws(WireError) -> [UInt8] {
        let value = try takeBytes()
        guard value.isEmpty || value.count == 16 else { throw .malformed }
        return value
    }

    private mutating func takeIdentifier<Noun>() throws(WireError) -> Identifier<Noun>? {
        let range = try delimited()
        let value = Identifier<Noun>(bytes[range])
        guard value != nil || range.isEmpty else { throw .malformed }
        try step()
        return value
    }

    private mutating func takeText() throws(WireError) -> String {
        let bytes = bytes[try delimited()]
        let text = String(decoding: bytes, as: UTF8.self)
        // Mostly ASCII, and this loop takes many bytes at a time.
        var bits: UInt8 = 0
        for byte in bytes { bits |= byte }
        // What is no UTF-8 was decoded as U+FFFD. As slices: an iterator over the text takes twice
        // as long.
        guard bits < 0x80 || ArraySlice(text.utf8) == bytes else { throw .malformed }
        try step()
        return text
    }

    /// Merges the nested message that follows into `message`.
    private mutating func take<Message: WireMessage>(
        _ message: inout Message
    ) throws(WireError) {
        let outer = end
        let start = try delimited().lowerBound
        end = position
        position = start
        try message.merge(from: &self)
        end = outer
        try step()
    }

    private mutating func takePiece<Message: WireMessage>(
        of value: inout Message?
    ) throws(WireError) {
        // A message that comes in pieces costs what an element costs: pieces may be of 2 bytes.
        if value == nil { value = .empty } else { try countElement() }
        try take(&value!)
    }

    private mutating func takePiece<Message: WireMessage>(
        of value: inout [Message]
    ) throws(WireError) {
        if value.isEmpty { value.append(.empty) } else { try countElement() }
        try take(&value[0])
    }

    private mutating func takeElement<Message: WireMessage>(
        _ values: inout [Message]
    ) throws(WireError) {
        try countElement()
        values.append(.empty)
        // Where it is to stay: moving it there afterwards is what reading it costs otherwise.
        try take(&values[values.count - 1])
    }

    private mutating func takeCursor(_ value: inout Cursor?) throws(WireError) {
        var fields = CursorFields(value)
        try take(&fields)
        guard let cursor = fields.cursor else { throw .malformed }
        value = cursor
    }
}

// What stands here is inlined into each declaration, where numbers are constants: of a field that
// is not the next one, a comparison is left. A later occurrence replaces or, for messages, merges.
extension BodyReader: FieldVisitor {
    @inline(__always)
    private func isNext(_ number: UInt32, _ type: WireType) -> Bool { key == type.key(number) }

    @inline(__always)
    public mutating func uint64(
        _ number: UInt32, _ name: StaticString, _ value: inout UInt64
    ) throws(WireError) {
        if isNext(number, .varint) { value = try takeVarint() }
    }

    /// Keeps the lower 32 bits, as protobuf does.
    @inline(__always)
    public mutating func uint32(
        _ number: UInt32, _ name: StaticString, _ value: inout UInt32
    ) throws(WireError) {
        if isNext(number, .varint) { value = UInt32(truncatingIfNeeded: try takeVarint()) }
    }

    @inline(__always)
    public mutating func uint32(
        _ number: UInt32, _ name: StaticString, optional value: inout UInt32?
    ) throws(WireError) {
        if isNext(number, .varint) { value = UInt32(truncatingIfNeeded: try takeVarint()) }
    }

    @inline(__always)
    public mutating func bool(
        _ number: UInt32, _ name: StaticString, _ value: inout Bool
    ) throws(WireError) {
        if isNext(number, .varint) { value = try takeVarint() != 0 }
    }

    @inline(__always)
    public mutating func string(
        _ number: UInt32, _ name: StaticString, _ value: inout String
    ) throws(WireError) {
        if isNext(number, .delimited) { value = try takeText() }
    }

    @inline(__always)
    public mutating func bytes(
        _ number: UInt32, _ name: StaticString, _ value: inout [UInt8]
    ) throws(WireError) {
        if isNext(number, .delimited) { value = try takeBytes() }
    }

    @inline(__always)
    public mutating func objectID(
        _ number: UInt32, _ name: StaticString, _ value: inout [UInt8]
    ) throws(WireError) {
        if isNext(number, .delimited) { value = try takeObjectID() }
    }

    @inline(__always)
    public mutating func identifier<Noun>(
        _ number: UInt32, _ name: StaticString, _ value: inout Identifier<Noun>?
    ) throws(WireError) {
        if isNext(number, .delimited) { value = try takeIdentifier() }
    }

    @inline(__always)
    public mutating func enumeration<Value: WireEnumeration>(
        _ number: UInt32, _ name: StaticString, _ value: inout Value
    ) throws(WireError) {
        guard isNext(number, .varint) else { return }
        value = Value(rawValue: UInt32(truncatingIfNeeded: try takeVarint())) ?? .unspecified
    }

    @inline(__always)
    public mutating func strings(
        _ number: UInt32, _ name: StaticString, _ values: inout [String]
    ) throws(WireError) {
        while isNext(number, .delimited) {
            try countElement()
            values.append(try takeText())
        }
    }

    @inline(__always)
    public mutating func message<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ value: inout Message?
    ) throws(WireError) {
        if isNext(number, .delimited) { try takePiece(of: &value) }
    }

    @inline(__always)
    public mutating func message<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, apart value: inout [Message]
    ) throws(WireError) {
        if isNext(number, .delimited) { try takePiece(of: &value) }
    }

    @inline(__always)
    public mutating func messages<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ values: inout [Message]
    ) throws(WireError) {
        while isNext(number, .delimited) { try takeElement(&values) }
    }

    @inline(__always)
    public mutating func cursor(
        _ number: UInt32, _ name: StaticString, _ value: inout Cursor?
    ) throws(WireError) {
        if isNext(number, .delimited) { try takeCursor(&value) }
    }

    @inline(__always)
    public mutating func oneof<Choice: WireOneof>(
        _ name: StaticString, _ choice: inout Choice?
    ) throws(WireError) {
        try Choice.members(of: &choice, &self)
    }

    @inline(__always)
    public mutating func member<Choice: WireOneof, Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ choice: inout Choice?,
        _ choose: (Message) -> Choice, _ chosen: (Choice) -> Message?
    ) throws(WireError) {
        guard isNext(number, .delimited) else { return }
        var value: Message?
        if let choice { value = chosen(choice) }
        // With two references to it, each piece would copy all elements of those before it.
        if value != nil { choice = nil }
        try takePiece(of: &value)
        if let value { choice = choose(value) }
    }
}
