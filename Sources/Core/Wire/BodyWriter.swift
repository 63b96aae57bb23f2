public import Model

/// Writes protobuf wire format. A field that has its default is left out, and the others stand in
/// the order of the declaration, so that equal values give equal bytes.
public struct BodyWriter {
    var bytes: [UInt8] = []

    private mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    private mutating func varint(_ number: UInt32, _ value: UInt64) {
        varint(UInt64(WireType.varint.key(number)))
        varint(value)
    }

    private mutating func delimited(_ number: UInt32, _ value: some Collection<UInt8>) {
        varint(UInt64(WireType.delimited.key(number)))
        varint(UInt64(value.count))
        bytes.append(contentsOf: value)
    }

    private mutating func sixteen(_ number: UInt32, _ value: [UInt8]) {
        varint(UInt64(WireType.delimited.key(number)))
        bytes.append(16)
        bytes.append(contentsOf: value)
    }

    private mutating func texts(_ number: UInt32, _ values: [String]) {
        for value in values { delimited(number, value.utf8) }
    }

    private mutating func elements(_ number: UInt32, _ values: [some WireMessage]) {
        for var value in values { nested(number, &value) }
    }

    /// The length comes before the content but is known after it: one byte is kept free and, for
    /// content of 128 bytes or more, widened. A byte is moved at most once per level of nesting.
    private mutating func nested(_ number: UInt32, _ message: inout some WireMessage) {
        varint(UInt64(WireType.delimited.key(number)))
        let place = bytes.count
        bytes.append(0)
        message.fields(&self)
        var rest = bytes.count - place - 1
        if rest >= 0x80 {
            let wider = (rest.bitWidth - rest.leadingZeroBitCount + 6) / 7 - 1
            bytes.insert(contentsOf: repeatElement(0, count: wider), at: place)
        }
        var next = place
        while rest >= 0x80 {
            bytes[next] = UInt8(truncatingIfNeeded: rest) | 0x80
            rest >>= 7
            next += 1
        }
        bytes[next] = UInt8(truncatingIfNeeded: rest)
    }
}

// Inlined into each declaration: no value is copied to be looked at.
extension BodyWriter: FieldVisitor {
    @inline(__always)
    public mutating func uint64(_ number: UInt32, _ name: StaticString, _ value: inout UInt64) {
        if value != 0 { varint(number, value) }
    }

    @inline(__always)
    public mutating func uint32(_ number: UInt32, _ name: StaticString, _ value: inout UInt32) {
        if value != 0 { varint(number, UInt64(value)) }
    }

    @inline(__always)
    public mutating func uint32(
        _ number: UInt32, _ name: StaticString, optional value: inout UInt32?
    ) {
        if let value { varint(number, UInt64(value)) }
    }

    @inline(__always)
    public mutating func bool(_ number: UInt32, _ name: StaticString, _ value: inout Bool) {
        if value { varint(number, 1) }
    }

    @inline(__always)
    public mutating func string(_ number: UInt32, _ name: StaticString, _ value: inout String) {
        if !value.isEmpty { delimited(number, value.utf8) }
    }

    @inline(__always)
    public mutating func bytes(_ number: UInt32, _ name: StaticString, _ value: inout [UInt8]) {
        if !value.isEmpty { delimited(number, value) }
    }

    @inline(__always)
    public mutating func objectID(_ number: UInt32, _ name: StaticString, _ value: inout [UInt8]) {
        bytes(number, name, &value)
    }

    @inline(__always)
    public mutating func identifier<Noun>(
        _ number: UInt32, _ name: StaticString, _ value: inout Identifier<Noun>?
    ) {
        if let value { sixteen(number, value.bytes) }
    }

    @inline(__always)
    public mutating func enumeration<Value: WireEnumeration>(
        _ number: UInt32, _ name: StaticString, _ value: inout Value
    ) {
        if value.rawValue != 0 { varint(number, UInt64(value.rawValue)) }
    }

    @inline(__always)
    public mutating func strings(_ number: UInt32, _ name: StaticString, _ values: inout [String]) {
        texts(number, values)
    }

    @inline(__always)
    public mutating func message<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ value: inout Message?
    ) {
        if value != nil { nested(number, &value!) }
    }

    @inline(__always)
    public mutating func message<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, apart value: inout [Message]
    ) {
        messages(number, name, &value)
    }

    @inline(__always)
    public mutating func messages<Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ values: inout [Message]
    ) {
        elements(number, values)
    }

    @inline(__always)
    public mutating func cursor(_ number: UInt32, _ name: StaticString, _ value: inout Cursor?) {
        guard value != nil else { return }
        var fields = CursorFields(value)
        nested(number, &fields)
    }

    @inline(__always)
    public mutating func oneof<Choice: WireOneof>(
        _ name: StaticString, _ choice: inout Choice?
    ) {
        Choice.members(of: &choice, &self)
    }

    @inline(__always)
    public mutating func member<Choice: WireOneof, Message: WireMessage>(
        _ number: UInt32, _ name: StaticString, _ choice: inout Choice?,
        _ choose: (Message) -> Choice, _ chosen: (Choice) -> Message?
    ) {
        if let choice, var value = chosen(choice) { nested(number, &value) }
    }

    @inline(__always)
    public mutating func writes(_ encoded: [UInt8]?) -> Bool {
        guard let encoded else { return false }
        bytes.append(contentsOf: encoded)
        return true
    }
}
