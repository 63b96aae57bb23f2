import Feed
import Model
import Testing
import Wake
import Wire

/// Counts what is unread from the entries of a feed alone, as SYN-27 says and as a replica could:
/// written from the clause, without a look at how the server counts.
struct UnreadOracle {
    private struct Message {
        var version: UInt64
        var position: UInt64
        var counts: Bool
    }

    private struct Room {
        var joined: UInt64 = 0
        var takesPart = false
        var isEnded = false
        var cleared: UInt64 = 0
        var mutedUntil: UInt64 = 0
        var readThrough: UInt64 = 0
        var readAlone: [InclusiveRange] = []
        var messages: [[UInt8]: Message] = [:]

        var unread: UInt64 {
            guard takesPart, !isEnded else { return 0 }
            let count = messages.values.count { message in
                message.counts && message.position > max(joined, cleared, readThrough)
                    && !readAlone.contains {
                        $0.first <= message.position && message.position <= $0.last
                    }
            }
            return min(UInt64(count), 999)
        }
    }

    private let user: String
    private var rooms: [ConversationID: Room] = [:]

    init(of user: String, _ entries: [Entry] = []) {
        self.user = user
        apply(entries)
    }

    /// What comes behind the entries before, of the same feed.
    mutating func apply(_ entries: [Entry]) {
        for entry in entries {
            guard let id = entry.conversation else { continue }
            apply(entry, to: &rooms[id, default: Room()])
        }
    }

    private func apply(_ entry: Entry, to room: inout Room) {
        switch entry.body {
        case .participant(let state) where state.user.isExactly(user):
            room.joined = state.joinedPosition
            room.takesPart = !state.removed
        case .message(let state):
            room.messages[entry.object] = Message(
                version: entry.version, position: state.position,
                counts: state.push != nil && !state.sender.isExactly(user))
        case .tombstone(let state) where state.conversation:
            room.isEnded = room.isEnded || state.forEveryone
            room.cleared = max(room.cleared, state.position)
        case .tombstone: room.messages[entry.object] = nil
        case .readMark(let state):
            room.readThrough = state.through
            room.readAlone = state.ranges
        case .conversationSettings(let state):
            room.mutedUntil =
                state.muted ? (state.mutedUntilMs == 0 ? .max : state.mutedUntilMs) : 0
        default: break
        }
    }

    /// Whether the read mark covers the position.
    func hasRead(_ position: UInt64, in conversation: ConversationID) -> Bool {
        guard let room = rooms[conversation] else { return false }
        return position <= room.readThrough
            || room.readAlone.contains { $0.first <= position && position <= $0.last }
    }

    /// By conversation, where there is anything to read.
    var counts: [ConversationID: UInt64] {
        rooms.mapValues(\.unread).filter { $0.value > 0 }
    }

    func unread(in conversation: ConversationID) -> UInt64 { rooms[conversation]?.unread ?? 0 }

    func icon(now: Timestamp) -> UInt64 {
        let counted = rooms.values.filter { $0.mutedUntil <= now.milliseconds }
        return min(counted.reduce(0) { $0 + $1.unread }, 999)
    }
}

extension World {
    /// Compares every number the server gives the user with what its feed says; `nil`: all agree.
    /// Of conversations with a change on its way nothing is expected.
    func unreadFinding(_ user: String) throws -> String? {
        let page = try page(user)
        let oracle = UnreadOracle(of: user, page.entries)
        let moving = Set(try all(FanOutRecord.self).map(\.conversation))
        guard
            case .backend(.user(let view)) = try read(.backend(Self.app, .user(UserID(user))))
        else { return nil }
        if view.unread != page.unread {
            return "\(user): DELTA says \(page.unread), the API \(view.unread)"
        }
        let rows = try unread().filter { $0.user == UserID(user) }
        let counts = Dictionary(uniqueKeysWithValues: rows.map { ($0.conversation, $0.unread) })
        for id in try all(ConversationRecord.self).map(\.conversation) where !moving.contains(id) {
            let expected = oracle.unread(in: id)
            if counts[id] ?? 0 != expected {
                return "\(user) in \(id): \(counts[id] ?? 0) instead of \(expected)"
            }
        }
        guard moving.isEmpty else { return nil }
        if page.unread != oracle.icon(now: now) {
            return "\(user): the icon shows \(page.unread), not \(oracle.icon(now: now))"
        }
        return try snapshotFinding(user, oracle, icon: page.unread)
    }

    private func snapshotFinding(
        _ user: String, _ oracle: UnreadOracle, icon: UInt64
    ) throws -> String? {
        var frame = SnapshotFrame()
        repeat {
            guard
                case .history(.snapshotPage(let page)) = try read(
                    .history(.snapshot(Self.app, UserID(user), frame, bytes: 1 << 16)))
            else { return nil }
            for told in page.conversations {
                guard let id = told.conversation else { continue }
                let expected = oracle.unread(in: id)
                if UInt64(told.unread) != expected {
                    return "\(user) in \(id): the snapshot says \(told.unread), not \(expected)"
                }
            }
            let last = page.continuation.isEmpty ? UInt32(icon) : nil
            if page.unread != last {
                let told = "\(page.unread.map(String.init) ?? "nothing")"
                return "\(user): a page of the snapshot says \(told), DELTA \(icon)"
            }
            frame.continuation = page.continuation
        } while !frame.continuation.isEmpty
        return nil
    }
}
