/// What bounds the memory one frame can cost its receiver (framing.md, "Limits").
///
/// Nesting needs no number: no message of the schema contains itself, so a decoder goes at most
/// as deep as the schema (6: HELLO, Sync, Mutation, SendMessage, Part, PartReference), and unknown
/// fields are skipped without looking inside.
public struct FrameLimits: Equatable, Sendable {
    /// Largest body, in bytes.
    public var bodyBytes: Int
    /// Most elements of all repeated fields of one frame together. Without it a body of 2-byte
    /// empty elements would grow more than sixtyfold when decoded.
    public var elements: Int

    /// Both numbers are at least 0.
    public init(bodyBytes: Int, elements: Int) {
        self.bodyBytes = bodyBytes
        self.elements = elements
    }

    /// Before WELCOME was sent or received: 16 KiB, 1,024 elements.
    public static let beforeWelcome = FrameLimits(bodyBytes: 16 << 10, elements: 1024)
    /// After it, unless WELCOME names a smaller body limit: 256 KiB, 8,192 elements.
    public static let afterWelcome = FrameLimits(bodyBytes: 256 << 10, elements: 8192)
}
