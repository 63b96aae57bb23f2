/// How many objects each half of a digest counted, and their hashes: two empty replicas are equal
/// and prove nothing.
public struct DigestCounts: Equatable, Sendable {
    /// The conversations that were counted.
    public var conversations: UInt64
    /// The read marks that were counted.
    public var readMarks: UInt64
    /// The messages that were counted.
    public var messages: UInt64
    /// Of the three in that order.
    public var hashes: [UInt64]

    /// A sum that is not there counted nothing.
    public init(conversations: DigestSum?, readMarks: DigestSum?, messages: DigestSum?) {
        self.conversations = conversations?.count ?? 0
        self.readMarks = readMarks?.count ?? 0
        self.messages = messages?.count ?? 0
        hashes = [conversations, readMarks, messages].map { $0?.hash ?? 0 }
    }

    /// What a client counted.
    public init(_ frame: DigestFrame) {
        self.init(
            conversations: frame.conversations, readMarks: frame.readMarks,
            messages: frame.messages)
    }

    /// What a server counted.
    public init(_ result: DigestResult) {
        self.init(
            conversations: result.conversations, readMarks: result.readMarks,
            messages: result.messages)
    }
}
