/// A message of sync.proto.
public protocol WireMessage: Equatable, Sendable {
    /// All fields at their proto3 default.
    static var empty: Self { get }
    /// Takes the field that `reader` stands before, or skips it. Called by `merge`.
    mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError)
    /// Writes the fields that differ from their default, in ascending order.
    func write(to writer: inout BodyWriter)
}

extension WireMessage {
    /// Takes fields up to the reader's end, on top of what is there already.
    mutating func merge(from reader: inout BodyReader) throws(WireError) {
        while let tag = try reader.nextTag() { try read(tag, from: &reader) }
    }

    /// The body: exactly the bytes of protobuf's deterministic serialization.
    public var encoded: [UInt8] {
        var writer = BodyWriter()
        write(to: &writer)
        return writer.bytes
    }

    /// Reads a body of at most `limits.elements` elements; its size is the caller's to bound.
    public init(
        encoded bytes: [UInt8], limits: FrameLimits = .afterWelcome
    ) throws(WireError) {
        var reader = BodyReader(bytes, 0..<bytes.count, elements: limits.elements)
        self = try reader.whole()
    }
}
