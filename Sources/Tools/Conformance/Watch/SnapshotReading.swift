import Model
import Wire

/// The pages of a whole snapshot, held against what a device knows that followed the feed.
struct SnapshotReading {
    let pages: [SnapshotPage]
    /// How many messages of each conversation were asked for.
    let messages: Int
    /// Whether there is room for as many in a page (HIS-17).
    let hasRoom: Bool
    private let feed: [FeedObject: Entry]
    private let unread: UnreadCount

    /// - Parameter log: every entry of the feed that a device followed to its head.
    init(
        _ pages: [SnapshotPage], messages: Int, hasRoom: Bool, user: String, log: [Entry]
    ) {
        self.pages = pages
        self.messages = messages
        self.hasRoom = hasRoom
        var feed: [FeedObject: Entry] = [:]
        var unread = UnreadCount(user: user)
        for entry in log where entry.version > feed[FeedObject(entry)]?.version ?? 0 {
            feed[FeedObject(entry)] = entry
        }
        for entry in feed.values { unread.add(entry) }
        self.feed = feed
        self.unread = unread
    }

    /// Where the two differ.
    var differences: [String] {
        var found: [String] = []
        let alone = feed.values.filter { entry in
            // What was taken back stands on no page (HIS-17).
            if case .tombstone = entry.body { return false }
            return entry.conversation == nil
        }
        found += Self.compare(pages.first?.entries ?? [], with: alone, "beside conversations")
        // Fewer than a page holds at most.
        if pages.first?.announcementsComplete == false {
            found.append("announcements_complete is not set")
        }
        if pages.dropFirst().contains(where: { !$0.entries.isEmpty }) {
            found.append("entries beside conversations on a later page")
        }
        for one in pages.flatMap(\.conversations) { found += differences(in: one) }
        return found
    }

    private func differences(in one: SnapshotConversation) -> [String] {
        guard let id = one.conversation else { return ["a conversation without its id"] }
        let known = feed.values.filter { $0.conversation == id }
        let state = known.filter { FeedObject($0).kind != .message }
        let given = one.entries.filter { FeedObject($0).kind != .message }
        var found = Self.compare(given, with: state, "in \(id)")
        let least = Int(unread.unread(in: id))
        if one.unread != least { found.append("\(id): unread \(one.unread), it is \(least)") }
        if !one.participantsComplete { found.append("\(id): participants_complete is not set") }
        found += messageDifferences(in: one, of: known)
        return found
    }

    private func messageDifferences(in one: SnapshotConversation, of known: [Entry]) -> [String] {
        let within = known.filter(Self.isWithinReach)
            .sorted { Self.position($0) < Self.position($1) }
        let given = one.entries.filter { FeedObject($0).kind == .message }
        let wanted = within.suffix(hasRoom ? messages : max(1, min(given.count, messages)))
        var found = Self.compare(given, with: Array(wanted), "newest messages")
        let positions = given.map(Self.position)
        if positions != positions.sorted() { found.append("messages at \(positions), not rising") }
        let isAll = wanted.count == within.count
        let below = isAll ? 0 : Self.position(within[within.count - wanted.count - 1])
        let first = positions.first ?? 1
        // Above what is left out, and at or below what is there.
        if isAll ? one.completeFrom != 1 : one.completeFrom <= below || one.completeFrom > first {
            found.append("complete_from \(one.completeFrom), messages from \(first) on are there")
        }
        return found
    }

    /// Not what the user deleted for oneself (HIS-24).
    private static func isWithinReach(_ entry: Entry) -> Bool {
        switch entry.body {
        case .message: true
        case .tombstone(let state): !state.conversation && state.forEveryone
        default: false
        }
    }

    private static func position(_ entry: Entry) -> UInt64 {
        switch entry.body {
        case .message(let state): state.position
        case .tombstone(let state): state.position
        default: 0
        }
    }

    private static func compare(
        _ given: [Entry], with wanted: [Entry], _ place: String
    ) -> [String] {
        var found: [String] = []
        var rest = Dictionary(wanted.map { (FeedObject($0), $0) }) { first, _ in first }
        for entry in given {
            let object = FeedObject(entry)
            guard let known = rest.removeValue(forKey: object) else {
                found.append("\(place): \(object.name) is not in the feed, or there twice")
                continue
            }
            if known.version != entry.version || known.body != entry.body {
                found.append("\(place): \(object.name) is not as the feed gave it")
            }
        }
        return found + rest.keys.map { "\(place): no \($0.name)" }
    }
}
