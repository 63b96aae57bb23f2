/// The first bytes of a connection, until they are a whole record of TLS: the ClientHello. A
/// socket that says nothing, or little, costs no more than these bytes.
struct ClientHello {
    /// A record's header: its type, a version and the length of what follows (RFC 8446, 5.1).
    private static let headerBytes = 5
    private static let handshakeType: UInt8 = 22
    /// The longest record there is.
    private static let recordBytesMax = 1 << 14

    private(set) var bytes: [UInt8] = []

    mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }

    /// A whole record is there, or something that is none: what to say of it is TLS' business.
    var isWhole: Bool {
        guard let type = bytes.first else { return false }
        guard type == Self.handshakeType else { return true }
        guard bytes.count >= Self.headerBytes else { return false }
        let length = Int(bytes[3]) << 8 | Int(bytes[4])
        return length > Self.recordBytesMax || bytes.count >= Self.headerBytes + length
    }
}
