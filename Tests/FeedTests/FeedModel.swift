import Feed
import Model
import Wire

/// SplitMix64: schedules are named by their seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
        // Neighbours must not be the same sequence one step apart.
        state = next() ^ 0x5851_f42d_4c95_7f2d
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

/// What a check found wrong.
enum Finding: Hashable {
    /// The device has passed a number whose object it lacks, or has an older version of it.
    case missed(String)
    /// Numbers of a page do not rise above the cursor, or end above `to`.
    case unordered(String)
    /// A conversation's messages did not come one after the other.
    case positions(String)
    /// A participant or message came before its conversation.
    case orphan(String)
    /// Something came that was changed, or sent, while the user did not take part.
    case overshared(String)
    /// Two entries of one object.
    case doubled(String)
    /// An entry of a feed cannot be read: its object is gone.
    case unjoined(String)
    /// Nobody told a device that its user takes part no longer, or that a conversation ended.
    case untold(String)
    /// A conversation came, or came back, without all that belongs to it.
    case partial(String)

    var kind: String {
        switch self {
        case .missed: "missed"
        case .unordered: "unordered"
        case .positions: "positions"
        case .orphan: "orphan"
        case .overshared: "overshared"
        case .doubled: "doubled"
        case .unjoined: "unjoined"
        case .untold: "untold"
        case .partial: "partial"
        }
    }
}

/// A device that follows a feed by pages and keeps what it got, checking each page.
struct ModelDevice {
    let user: String
    var cursor: UInt64 = 0
    private(set) var objects: [String: Entry] = [:]
    /// The highest position of a message that came unchanged.
    private(set) var positions: [ConversationID: UInt64] = [:]
    /// The user was removed and came back, or the conversation was deleted: what is from before
    /// comes before the conversation or its tombstone.
    var returned: Set<ConversationID> = []
    /// Where its snapshot stood: what was below is there as far as it still mattered.
    private var base: UInt64 = 0
    var isNew: Bool { base > 0 }

    init(user: String) { self.user = user }

    /// SYN-3.
    static func key(_ entry: Entry) -> String {
        let conversation = entry.conversation?.description ?? "none"
        return switch entry.body {
        case .conversationState: "c \(conversation)"
        case .participant(let state): "p \(conversation) \(state.user)"
        case .message: "m \(entry.object)"
        case .receipt(let state): "r \(conversation) \(state.user)"
        case .readMark: "d \(conversation)"
        case .tombstone(let state):
            state.conversation ? "c \(conversation)" : "m \(entry.object)"
        case .metadata: "k \(conversation)"
        case .announcement: "a \(entry.object)"
        case .conversationSettings: "s \(conversation)"
        case .block(let state): "b \(state.user)"
        case nil: "none"
        }
    }

    /// - Parameter judge: what is wrong with an entry's content.
    mutating func apply(_ page: Page, _ judge: (Entry) -> Finding?) -> Finding? {
        var last = page.from
        for entry in page.entries {
            let word = "\(user) \(entry.word)"
            guard entry.seq > last, entry.seq <= page.to else { return .unordered(word) }
            last = entry.seq
            if let finding = check(entry, word) ?? judge(entry) { return finding }
            let key = Self.key(entry)
            if let held = objects[key], held.version > entry.version { continue }
            objects[key] = entry
        }
        cursor = page.to
        return nil
    }

    private mutating func check(_ entry: Entry, _ word: String) -> Finding? {
        guard let id = entry.conversation else { return .orphan(word) }
        switch entry.body {
        case .participant, .message, .receipt: break
        default: return nil
        }
        guard objects["c \(id)"] != nil || returned.contains(id) else { return .orphan(word) }
        if case .participant(let state) = entry.body, state.user == user {
            positions[id] = positions[id] ?? state.joinedPosition
        }
        // A changed one stands where it changed.
        guard case .message(let state) = entry.body, entry.version == 1,
            objects[Self.key(entry)] == nil
        else { return nil }
        // The own membership stands higher once it ended.
        let before = positions[id] ?? 0
        guard state.position > before else { return .positions("\(word) after \(before)") }
        positions[id] = state.position
        return nil
    }

    /// Begins anew with a snapshot, as a device does that was away for too long, or is new.
    ///
    /// - Parameter unknown: conversations the user takes part in that it does not hold.
    mutating func begin(_ pages: [SnapshotPage], unknown: Set<ConversationID>) {
        for page in pages {
            cursor = page.start?.seq ?? cursor
            base = cursor
            let entries = page.entries + page.conversations.flatMap(\.entries)
            for entry in entries {
                objects[Self.key(entry)] = entry
                guard let id = entry.conversation else { continue }
                switch entry.body {
                case .message(let state):
                    positions[id] = max(positions[id] ?? 0, state.position)
                case .participant(let state) where state.user == user:
                    positions[id] = max(positions[id] ?? 0, state.joinedPosition)
                default: break
                }
            }
        }
        returned.formUnion(unknown)
    }

    /// Whether everything at or below the cursor has been seen, given the feed's rows now.
    func missing(of rows: [EntryRecord], where isShown: (EntryRecord) -> Bool) -> Finding? {
        for row in rows where row.seq > base && row.seq <= cursor && isShown(row) {
            guard let held = objects[Self.key(row)], held.version >= row.version else {
                return .missed("\(user) \(row.seq) \(row.kind)")
            }
        }
        return nil
    }

    static func key(_ row: EntryRecord) -> String {
        let name = String(decoding: row.object, as: UTF8.self)
        return switch row.kind {
        case .conversation: "c \(row.conversation)"
        case .participant: "p \(row.conversation) \(name)"
        case .message: "m \(row.object)"
        case .receipt: "r \(row.conversation) \(name)"
        case .readMark: "d \(row.conversation)"
        case .tombstone:
            row.object.isEmpty ? "c \(row.conversation)" : "m \(row.object)"
        case .metadata: "k \(row.conversation)"
        case .announcement: "a \(row.object)"
        case .conversationSettings: "s \(row.conversation)"
        case .block: "b \(name)"
        }
    }
}
