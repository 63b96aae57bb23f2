/// A message of sync.proto, whose fields are declared once: its reader, its writer and the test
/// that compares it with sync.proto follow from `fields`.
public protocol WireMessage: Equatable, Sendable {
    /// All fields at their proto3 default.
    static var empty: Self { get }
    /// Shows each field to `visitor`, in ascending order of number.
    mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure)
    // Both have one implementation, below. They are requirements because a call from another module
    // then finds what was specialised for the message, and does not look up each field's visitor.
    /// Takes fields up to the reader's end, on top of what is there already.
    mutating func merge(from reader: inout BodyReader) throws(WireError)
    /// Writes the fields that differ from their default.
    func write(to writer: inout BodyWriter)
}

extension WireMessage {
    public mutating func merge(from reader: inout BodyReader) throws(WireError) {
        try reader.start()
        while !reader.isAtEnd {
            let place = reader.position
            try fields(&reader)
            if reader.position == place { try reader.skip() }
        }
    }

    public func write(to writer: inout BodyWriter) {
        var message = self
        message.fields(&writer)
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
