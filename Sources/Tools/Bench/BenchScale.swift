/// How much is in the store, and how often each kind is driven.
public struct BenchScale: Codable, Equatable, Sendable {
    /// Sessions of all apps; messages of the user who is deleted.
    public let sessions: Int
    public let messages: Int
    /// The devices of the app that is suspended or removed.
    public let devicesOfApp: Int
    /// The participants of the large conversation.
    public let participants: Int
    /// The entries of the feed whose device is far behind.
    public let entries: Int
    /// Pairs of users who write to each other.
    public let pairs: Int
    /// Requests in one run of an ordinary kind, at most.
    public let requests: Int

    public static let small = BenchScale(2_000)
    public static let full = BenchScale(1_000_000)
    public static let range = 2_000...10_000_000

    /// The range in which each size may be set: the smallest still shows the work, the largest is
    /// what the server allows.
    public static let devicesRange = 100...1_000_000
    /// Above 256 members a change is spread by a job.
    public static let participantsRange = 300...10_000
    public static let entriesRange = 2_000...10_000_000

    /// - Parameter size: The number of sessions and messages; sizes that are not set are in
    ///   proportion to it.
    public init(
        _ size: Int, devicesOfApp: Int? = nil, participants: Int? = nil, entries: Int? = nil
    ) {
        func within(_ range: ClosedRange<Int>, _ value: Int) -> Int {
            min(range.upperBound, max(range.lowerBound, value))
        }
        sessions = size
        messages = size
        self.devicesOfApp = within(Self.devicesRange, devicesOfApp ?? size / 10)
        self.participants = within(Self.participantsRange, participants ?? size / 100)
        self.entries = within(Self.entriesRange, entries ?? size / 10)
        pairs = min(1_000, max(8, size / 1_000))
        requests = min(1_000, max(8, size / 1_000))
    }

    /// Messages of one of the conversations of the user who is deleted.
    var messagesOfConversation: Int { min(1_000, messages / 2) }
}
