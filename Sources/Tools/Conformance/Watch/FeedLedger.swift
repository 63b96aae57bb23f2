import Model
import Wire

/// What a trial's devices have seen of one user's feed in one epoch, taken together.
struct FeedLedger {
    /// Entries by their numbers, as they came first.
    private var entries: [UInt64: Entry] = [:]
    /// What an object came as.
    private var comings: [FeedObject: [Entry]] = [:]
    /// The highest version of each object that was seen.
    private(set) var versions: [FeedObject: UInt64] = [:]
    private var newest: [FeedObject: Entry] = [:]
    /// Tombstones of conversations, which stay beside one that came back (MSG-36).
    private var ended: [Entry] = []
    /// Up to here every entry was seen that was there.
    private(set) var complete: UInt64 = 0
    /// The highest number heard of.
    private(set) var head: UInt64 = 0

    mutating func heard(of seq: UInt64) { head = max(head, seq) }

    /// Everything above `from`, up to `to`, has come.
    mutating func covered(from: UInt64, to: UInt64) {
        if from <= complete { complete = max(complete, to) }
    }

    /// - Returns: what the entry breaks.
    mutating func add(_ entry: Entry) -> String? {
        heard(of: entry.seq)
        let object = FeedObject(entry)
        if let known = entries[entry.seq] {
            guard FeedObject(known) == object, known.version == entry.version else {
                return "entry \(entry.seq) is \(object.name), version \(entry.version), and was "
                    + "\(FeedObject(known).name), version \(known.version)"
            }
            return nil
        }
        entries[entry.seq] = entry
        guard object.kind != .unknown else { return nil }
        if object.kind == .conversation, case .tombstone = entry.body { ended.append(entry) }
        let before = comings[object, default: []]
        comings[object, default: []].append(entry)
        if entry.version > versions[object] ?? 0 {
            versions[object] = entry.version
            newest[object] = entry
        }
        for other in before {
            let isLater = other.seq < entry.seq
            let (old, new) = isLater ? (other, entry) : (entry, other)
            guard !Self.isNewer(new, than: old) else { continue }
            return "\(object.name): entry \(entry.seq) has version \(entry.version), and entry "
                + "\(other.seq) has \(other.version)"
        }
        return entry.version == 0 ? "\(object.name): entry \(entry.seq) has no version" : nil
    }

    /// What did not change may come again as it is, with a conversation that came back (MSG-36).
    private static func isNewer(_ entry: Entry, than other: Entry) -> Bool {
        entry.version > other.version || entry.version == other.version && entry.body == other.body
    }

    /// The object as the feed gave it in its newest version.
    func newest(_ object: FeedObject) -> Entry? { newest[object] }

    /// What is unread at this head (SYN-27); `nil`: it cannot be told from what was seen, or a
    /// time decides it that is too near to be judged from here.
    func unread(of user: String, head: UInt64, at now: UInt64) -> UInt32? {
        // An object that went on has left its older state behind.
        guard head == complete, comings.values.allSatisfy({ $0.allSatisfy { $0.seq <= head } })
        else { return nil }
        var feed = UnreadCount(user: user)
        for entry in newest.values { feed.add(entry) }
        for entry in ended { feed.add(entry) }
        return feed.total(at: now)
    }
}

/// SYN-27, by its text.
struct UnreadCount {
    private struct Room {
        var messages: [(position: UInt64, sender: String)] = []
        var joined: UInt64?
        var deletedThrough: UInt64 = 0
        var mark = ReadMarkState()
        var settings = ConversationSettings()
    }

    private let user: String
    private var rooms: [ConversationID: Room] = [:]

    init(user: String) { self.user = user }

    mutating func add(_ entry: Entry) {
        guard let id = entry.conversation else { return }
        var room = rooms[id, default: Room()]
        switch entry.body {
        case .participant(let state) where state.user == user:
            room.joined = state.removed ? nil : state.joinedPosition
        case .message(let message) where message.push != nil:
            room.messages.append((message.position, message.sender))
        case .readMark(let mark): room.mark = mark
        case .conversationSettings(let settings): room.settings = settings
        case .tombstone(let state) where state.conversation:
            let through = state.forEveryone ? UInt64.max : state.position
            room.deletedThrough = max(room.deletedThrough, through)
        default: break
        }
        rooms[id] = room
    }

    func total(at now: UInt64) -> UInt32? {
        var count = 0
        for room in rooms.values {
            let until = room.settings.mutedUntilMs
            if room.settings.muted, until != 0 {
                // Clocks differ, and the answer was on its way.
                guard until > now + 10_000 || until + 10_000 < now else { return nil }
            }
            if room.settings.muted, until == 0 || until > now { continue }
            count += unread(in: room)
        }
        return UInt32(min(count, 999))
    }

    /// Of one conversation, muted or not (HIS-17).
    func unread(in conversation: ConversationID) -> Int {
        rooms[conversation].map { unread(in: $0) } ?? 0
    }

    private func unread(in room: Room) -> Int {
        guard let joined = room.joined else { return 0 }
        let least = max(joined, room.deletedThrough, room.mark.through)
        return room.messages.count { message in
            message.position > least && message.sender != user
                && !room.mark.ranges.contains {
                    $0.first <= message.position && message.position <= $0.last
                }
        }
    }
}
