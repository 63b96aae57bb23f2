/// Cuts a byte stream into frames and reads their bodies (framing.md).
///
/// Use: `append` what came from the socket, then call `next` until it gives `nil`. An error is
/// terminal: everything buffered is dropped, `append` does nothing from then on, and `next`
/// throws the same error again.
///
/// Memory: at most one header, one body within the limit and one appended chunk; between frames
/// a small buffer or none. Bytes are kept as they come, never reserved on the word of a header.
public struct FrameDecoder: Sendable {
    /// Between frames, a buffer larger than this is given back.
    static let idleBytesMax = 1024

    /// Limits for frames whose header has not been looked at yet. A client or server raises them
    /// at WELCOME.
    public var limits: FrameLimits
    /// What the peer may send now. Any other frame ends the stream at its header: neither its
    /// body is kept, nor is work spent on it.
    public var accepted = FrameTypes.all
    private var buffer: [UInt8] = []
    /// Where the next unread byte of `buffer` is.
    private var start = 0
    /// Bytes of a skipped frame that are still to come. Invariant: if > 0, the buffer is empty.
    private var skipping = 0
    /// The header at `start`, once looked at; its body is not complete.
    private var header: Header?
    private var failure: WireError?

    private struct Header {
        var type: FrameType
        var bodyBytes: Int
        var request: UInt16
        var more: Bool
    }

    /// A decoder at the start of a stream.
    public init(limits: FrameLimits = .beforeWelcome) { self.limits = limits }

    /// Largest body accepted, in bytes.
    public var bodyBytesMax: Int {
        get { limits.bodyBytes }
        set { limits.bodyBytes = newValue }
    }

    /// Bytes held that belong to no frame given yet.
    public var bufferedBytes: Int { buffer.count - start }

    /// Memory held for the stream, in bytes.
    public var heldBytes: Int { buffer.capacity }

    /// Takes the next bytes of the stream.
    public mutating func append(_ bytes: some Collection<UInt8>) {
        guard failure == nil else { return }
        let skipped = min(skipping, bytes.count)
        skipping -= skipped
        guard skipped < bytes.count else { return }
        buffer.append(contentsOf: bytes.dropFirst(skipped))
    }

    /// Takes the next bytes of the stream.
    public mutating func append(_ bytes: Span<UInt8>) {
        guard failure == nil else { return }
        let skipped = min(skipping, bytes.count)
        skipping -= skipped
        for index in skipped..<bytes.count { buffer.append(bytes[index]) }
    }

    /// The next frame, or `nil` if it is not complete.
    public mutating func next() throws(WireError) -> Frame? {
        if let failure { throw failure }
        do throws(WireError) {
            return try decode()
        } catch {
            failure = error
            buffer = []
            start = 0
            header = nil
            throw error
        }
    }

    private mutating func decode() throws(WireError) -> Frame? {
        if header == nil { header = try readHeader() }
        // Asked again for a header that was looked at before: the state may have changed.
        if let header, !accepted.contains(header.type) { throw .unexpectedFrame(header.type) }
        guard let header, bufferedBytes - Frame.headerBytes >= header.bodyBytes
        else {
            compact()
            return nil
        }
        self.header = nil
        let body = start + Frame.headerBytes
        start = body + header.bodyBytes
        var reader = BodyReader(buffer, body..<start, elements: limits.elements)
        return Frame(
            try FrameBody.read(header.type, from: &reader), request: header.request,
            more: header.more)
    }

    /// Looks at the header at `start`, stepping over frames to be skipped; `nil` if it is not
    /// complete.
    private mutating func readHeader() throws(WireError) -> Header? {
        while bufferedBytes >= Frame.headerBytes {
            let length =
                Int(buffer[start]) << 16 | Int(buffer[start + 1]) << 8 | Int(buffer[start + 2])
            let flags = FrameFlags(rawValue: buffer[start + 4])
            guard flags.isSubset(of: .allowed) else { throw .unknownFlags(flags.rawValue) }
            guard buffer[start + 5] == 0 else { throw .reservedByte(buffer[start + 5]) }
            let type = FrameType(rawValue: buffer[start + 3])
            guard type != nil || flags.contains(.ignorable) else {
                throw .unknownFrame(buffer[start + 3])
            }
            guard length <= limits.bodyBytes else {
                throw .tooLarge(bytes: length, limit: limits.bodyBytes)
            }
            if let type {
                return Header(
                    type: type, bodyBytes: length,
                    request: UInt16(buffer[start + 6]) << 8 | UInt16(buffer[start + 7]),
                    more: flags.contains(.more))
            }
            let there = min(length, bufferedBytes - Frame.headerBytes)
            start += Frame.headerBytes + there
            skipping = length - there
        }
        return nil
    }

    /// Gives memory back, or moves the unread bytes to the front. Called once per appended chunk
    /// at most, when no whole frame is left, so that each byte is moved at most once: afterwards
    /// its frame starts at 0.
    private mutating func compact() {
        if start == buffer.count {
            if buffer.capacity > Self.idleBytesMax {
                buffer = []
            } else {
                buffer.removeAll(keepingCapacity: true)
            }
        } else if start > 0 {
            buffer = Array(buffer[start...])
        }
        start = 0
    }
}
