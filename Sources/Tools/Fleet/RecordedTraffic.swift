import DeviceModel
public import Model

/// Messages as somebody's log has them: every user is one of those who spoke in it, and gets what
/// the others said, each day anew.
public struct RecordedTraffic: Equatable, Sendable {
    public struct Message: Equatable, Sendable {
        /// From the log's beginning.
        public var at: Milliseconds
        public var conversation: UInt64
        /// Who said it: a number of its own in its conversation.
        public var sender: Int

        public init(at: Milliseconds, conversation: UInt64, sender: Int) {
            self.at = at
            self.conversation = conversation
            self.sender = sender
        }
    }

    public let messages: [Message]
    /// The members, as pairs of conversation and sender.
    private let members: [(conversation: UInt64, sender: Int)]
    /// In whole days.
    private let length: Milliseconds

    /// `nil`: there is no message.
    public init?(_ messages: [Message]) {
        guard let last = messages.map(\.at).max() else { return nil }
        self.messages = messages.sorted {
            ($0.at, $0.conversation, $0.sender) < ($1.at, $1.conversation, $1.sender)
        }
        var seen: Set<[Int]> = []
        var members: [(conversation: UInt64, sender: Int)] = []
        for message in self.messages
        where seen.insert([Int(message.conversation), message.sender]).inserted {
            members.append((message.conversation, message.sender))
        }
        self.members = members
        length = (last / DeviceRules.day + 1) * DeviceRules.day
    }

    public static func == (left: Self, right: Self) -> Bool { left.messages == right.messages }

    func add(to events: inout [LifeEvent], _ draws: inout Draws, days: Int) {
        let who = members[Int(draws.number() % UInt64(members.count))]
        let end = fleetStart + UInt64(days) * DeviceRules.day
        var start = fleetStart
        while start < end {
            for message in messages
            where message.conversation == who.conversation && message.sender != who.sender
                && start + message.at < end
            {
                events.append(
                    LifeEvent(
                        at: start + message.at,
                        kind: .message(conversation: message.conversation)))
            }
            start = start + length
        }
    }
}
