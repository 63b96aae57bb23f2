internal import Model

/// Writes protobuf wire format. Every function leaves a field out that has its default, and each
/// message calls them in ascending order of field number, so that equal values give equal bytes.
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

    private mutating func tag(_ number: UInt32, _ kind: FieldTag.Kind) {
        varint(UInt64(number) << 3 | UInt64(kind.rawValue))
    }

    /// Fields that were encoded before.
    mutating func append(encoded fields: [UInt8]) { bytes.append(contentsOf: fields) }

    mutating func uint64(_ number: UInt32, _ value: UInt64) {
        guard value != 0 else { return }
        tag(number, .varint)
        varint(value)
    }

    mutating func uint32(_ number: UInt32, _ value: UInt32) { uint64(number, UInt64(value)) }

    mutating func bool(_ number: UInt32, _ value: Bool) { uint64(number, value ? 1 : 0) }

    mutating func enumeration(_ number: UInt32, _ value: some WireEnumeration) {
        uint32(number, value.rawValue)
    }

    private mutating func delimited(_ number: UInt32, _ value: some Collection<UInt8>) {
        tag(number, .delimited)
        varint(UInt64(value.count))
        bytes.append(contentsOf: value)
    }

    mutating func bytes(_ number: UInt32, _ value: [UInt8]) {
        if !value.isEmpty { delimited(number, value) }
    }

    mutating func objectID(_ number: UInt32, _ value: [UInt8]) { bytes(number, value) }

    mutating func string(_ number: UInt32, _ value: String) {
        if !value.isEmpty { delimited(number, value.utf8) }
    }

    mutating func strings(_ number: UInt32, _ values: [String]) {
        for value in values { delimited(number, value.utf8) }
    }

    mutating func identifier<Noun>(_ number: UInt32, _ value: Identifier<Noun>?) {
        guard let value else { return }
        tag(number, .delimited)
        bytes.append(16)
        append(bigEndian: value.high)
        append(bigEndian: value.low)
    }

    private mutating func append(bigEndian value: UInt64) {
        for shift in stride(from: 56, through: 0, by: -8) {
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(shift)))
        }
    }

    mutating func message(_ number: UInt32, _ value: (some WireMessage)?) {
        guard let value else { return }
        nested(number) { writer in value.write(to: &writer) }
    }

    mutating func messages(_ number: UInt32, _ values: [some WireMessage]) {
        for value in values { message(number, value) }
    }

    /// Fields that are encoded already, in the place that their numbers have.
    mutating func fields(_ encoded: [UInt8]) { bytes.append(contentsOf: encoded) }

    mutating func cursor(_ number: UInt32, _ value: Cursor?) {
        guard let value else { return }
        nested(number) { writer in
            writer.identifier(1, value.epoch)
            writer.uint64(2, value.seq)
        }
    }

    /// The length comes before the content but is known after it: one byte is kept free and, for
    /// content of 128 bytes or more, widened. A byte is moved at most once per level of nesting.
    private mutating func nested(_ number: UInt32, _ content: (inout BodyWriter) -> Void) {
        tag(number, .delimited)
        let place = bytes.count
        bytes.append(0)
        content(&self)
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
