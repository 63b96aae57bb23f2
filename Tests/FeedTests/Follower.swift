import Feed
import Model
import Wire

/// A device that reads its user's feed after every step, and counts what is unread.
struct Follower {
    let name: String
    private(set) var replica: Replica
    private(set) var oracle: UnreadOracle
    /// By conversation, where there is anything to read.
    private(set) var counts: [ConversationID: UInt64] = [:]
    /// The half of the epoch that belongs to the user who has the name now; another user of the
    /// name has another feed.
    private(set) var epochHalf: UInt64 = 0

    init(of name: String, epochHalf: UInt64 = 0) {
        self.name = name
        self.epochHalf = epochHalf
        replica = Replica(of: name)
        oracle = UnreadOracle(of: name)
    }

    mutating func apply(_ page: Page) {
        replica.apply(page)
        oracle.apply(page.entries)
        counts = oracle.counts
    }

    func hasRead(_ position: UInt64, in conversation: ConversationID) -> Bool {
        oracle.hasRead(position, in: conversation)
    }

    /// The announcements that a receipt would mark as read, ascending.
    var unreadAnnouncements: [MessageID] {
        let unread = replica.objects.values.filter {
            guard case .announcement(let state) = $0.body else { return false }
            return !state.read
        }
        return unread.compactMap { MessageID($0.object) }.sorted()
    }
}
