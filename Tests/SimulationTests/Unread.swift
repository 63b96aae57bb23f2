import Feed
import MemoryStore
import Model
import Wake
import Wire

// What is unread (SYN-27), counted from the rows by the clause, without the server's own count.
extension Simulation {
    /// Looks again and again while the faults last.
    func watchUnread() {
        clock.after(3_000) { [unowned self] in
            try self.checkUnread()
            if !self.isCalm { self.watchUnread() }
        }
    }

    func checkUnread() throws {
        // The number of a change that is on its way may be the one before it.
        guard try rows(FanOutRecord.self).isEmpty else { return }
        let truth = try UnreadTruth(self)
        let settings = try rows(SettingsRecord.self)
        var icons: [UserID: UInt64] = [:]
        for member in truth.members {
            let unread = truth.unread(of: member).count
            guard member.unread == UInt64(unread) else {
                throw Violation(
                    "SYN-27: \(unread) unread for \(member.user) in \(member.conversation), "
                        + "counted as \(member.unread)")
            }
            if unread > 0 { reached.count("unread compared") }
            let isMuted = settings.contains {
                $0.user == member.user && $0.conversation == member.conversation && $0.isMuted
                    && ($0.mutedUntil.map { clock.wall < $0 } ?? true)
            }
            icons[member.user, default: 0] += isMuted ? 0 : UInt64(unread)
        }
        for (user, icon) in icons.sorted(by: { $0.key < $1.key }) {
            let shown = try shown(to: user)
            guard shown == min(icon, 999) else {
                throw Violation("SYN-27: the icon of \(user) shows \(shown), not \(icon)")
            }
        }
    }
}

/// The rows that decide what is unread, read together.
struct UnreadTruth {
    let members: [ParticipantRecord]
    private let messages: [[UInt8]: MessageRecord]
    private let entries: [EntryRecord]
    private let marks: [ReadMarkRecord]
    private let ended: Set<ConversationID>

    init(_ simulation: any SimulatedWorld) throws {
        members = try simulation.rows(ParticipantRecord.self)
        messages = Dictionary(
            uniqueKeysWithValues: try simulation.rows(MessageRecord.self).map {
                ($0.message.bytes, $0)
            })
        entries = try simulation.rows(EntryRecord.self).filter { $0.kind == .message }
        marks = try simulation.rows(ReadMarkRecord.self)
        ended = Set(
            try simulation.rows(ConversationRecord.self).filter { $0.deletedAt != nil }
                .map(\.conversation))
    }

    /// The messages of one conversation that one participant has not read.
    func unread(of member: ParticipantRecord) -> [MessageRecord] {
        guard member.leftRevision == nil, !ended.contains(member.conversation) else { return [] }
        let mark = marks.first {
            $0.user == member.user && $0.conversation == member.conversation
        }
        let above = max(mark?.through ?? 0, member.joinedPosition, member.clearedPosition)
        let alone = Self.pairs(mark?.ranges ?? [])
        return entries.compactMap { entry in
            guard entry.user == member.user, entry.conversation == member.conversation,
                let message = messages[entry.object], message.deletedAt == nil,
                message.position > above, message.sender != member.user.name,
                !(message.pushTitle + message.pushBody).isEmpty,
                !alone.contains(where: {
                    $0.first <= message.position && message.position <= $0.last
                })
            else { return nil }
            return message
        }
    }

    /// All that one user has not read.
    func unread(of user: String) -> [MessageRecord] {
        members.filter { $0.user.name == user }.flatMap { unread(of: $0) }
    }

    /// When the message came into the user's feed.
    func seq(of message: MessageRecord, _ user: String) -> UInt64 {
        entries.first { $0.user.name == user && $0.object == message.message.bytes }?.firstSeq ?? 0
    }

    private static func pairs(_ bytes: [UInt8]) -> [InclusiveRange] {
        stride(from: 0, to: bytes.count, by: 16).compactMap { start in
            let pair = Identifier<Never>(bytes[start..<start + 16])
            return pair.map { InclusiveRange(first: $0.high, last: $0.low) }
        }
    }
}
