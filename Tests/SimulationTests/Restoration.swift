import Feed
import Model
import Wire

// Phones and servers that go back to an earlier copy of themselves.
extension Simulation {
    /// Phones are backed up; now and then one is set up from its backup.
    func phoneBackups() {
        clock.after(1_000 + chance.upTo(9_000)) { [unowned self] in
            guard !self.isCalm else { return }
            if let device = self.chance.one(of: self.devices) {
                if self.chance.once(in: 4) {
                    try device.restore { conversations in
                        (0..<2).compactMap { _ in self.message(to: conversations, of: device) }
                    }
                } else {
                    try device.backUp()
                }
            }
            self.phoneBackups()
        }
    }

    /// The server's machine is backed up and, now and then, lost.
    func serverBackups() {
        clock.after(5_000 + chance.upTo(30_000)) { [unowned self] in
            guard !self.isCalm else { return }
            if self.chance.once(in: 3) {
                try self.restoreServer()
            } else {
                try self.server.backUp()
            }
            self.serverBackups()
        }
    }

    private func restoreServer() throws {
        let lost = try audiences()
        guard try server.restore() else { return }
        losses.note(
            lost, stored: Set(try rows(MessageRecord.self).map(\.message)),
            members: try rows(ParticipantRecord.self),
            conversations: Set(try rows(ConversationRecord.self).map(\.conversation)))
        reached.count("the server restored")
        // It takes a while: nothing of before is still on its way. Of the numbers that icons were
        // sent since the copy was made, it knows nothing.
        for device in devices {
            device.cutLink(silently: false)
            device.doubtIcon()
        }
        forget(allBut: Set(try rows(MessageRecord.self).map(\.message)))
        try server.start()
        for user in Set(devices.map(\.user)).subtracting(suspended).sorted() {
            administer(.resumeUser(Self.app, UserID(user)))
        }
    }
}

extension Simulation {
    /// Who was to see each message that a phone of its sender would send again: one that the feed
    /// had told it of, so that it knows who took part then.
    private func audiences() throws -> [MessageID: Set<String>] {
        let members = Dictionary(grouping: try rows(ParticipantRecord.self), by: \.conversation)
        let publishedAlso = Set(published.values.map(\.message))
        var held: [String: Set<String>] = [:]
        for device in devices {
            let words = try device.held().values.joined()
            held[device.user, default: []].formUnion(
                words.compactMap { $0.split(separator: " ").dropFirst().first.map(String.init) })
        }
        var audiences: [MessageID: Set<String>] = [:]
        for message in try rows(MessageRecord.self)
        where !publishedAlso.contains(message.message)
            && held[message.sender]?.contains("\(message.message)") == true
        {
            let seen = (members[message.conversation] ?? []).filter { member in
                member.joinedPosition < message.position
                    && (member.leftRevision == nil || message.position <= member.leftPosition)
            }
            audiences[message.message] = Set(seen.map(\.user.name))
        }
        return audiences
    }
}

/// What restored servers have lost, and who was to see it (HIS-38).
struct Losses {
    private var audiences: [MessageID: Set<String>] = [:]
    private var hearers: [MessageID: Set<String>] = [:]
    /// As of the last restore: since when each took part, by "conversation user".
    private var joined: [String: UInt64] = [:]
    private var conversations: Set<ConversationID> = []

    mutating func note(
        _ all: [MessageID: Set<String>], stored: Set<MessageID>, members: [ParticipantRecord],
        conversations: Set<ConversationID>
    ) {
        audiences = audiences.filter { !stored.contains($0.key) }
        for (message, audience) in all where !stored.contains(message) {
            audiences[message] = audience.union(hearers[message] ?? [])
        }
        joined = [:]
        for member in members where member.leftRevision == nil {
            joined["\(member.conversation) \(member.user.name)"] = member.joinedRevision
        }
        self.conversations = conversations
    }

    mutating func heard(_ message: MessageID, by user: String) {
        hearers[message, default: []].insert(user)
    }

    /// Whether the message was lost and is another's. Who was added since the restore is another
    /// matter: that is known only to a phone that has heard of it.
    func isBreach(_ message: MessageID, of member: ParticipantRecord) -> Bool {
        guard let audience = audiences[message], !audience.contains(member.user.name) else {
            return false
        }
        // Made again, with whoever took part.
        guard conversations.contains(member.conversation) else { return member.joinedRevision == 1 }
        return joined["\(member.conversation) \(member.user.name)"] == member.joinedRevision
    }
}
