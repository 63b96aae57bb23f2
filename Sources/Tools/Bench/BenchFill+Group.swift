import Feed
import Model
import Wake

extension StoreBench {
    /// A large conversation of the crowd with one message. Its members hold the conversation,
    /// their own membership and the message; of each other they have been told nothing, for that
    /// would be an entry for each pair.
    func fillGroup() throws -> BenchGroup {
        let members = try writer.read { snapshot throws(StoreError) in
            try snapshot.records(
                UserRecord.self, Scan(prefix: [.app(Self.crowd)], limit: scale.participants)
            ).map(\.user)
        }
        guard members.count == scale.participants else { throw BenchError("no crowd") }
        let conversation = try world.converse(Self.crowd, Array(members[..<2]))
        try world.ask(
            world.publishing(
                world.message(to: conversation), Self.crowd, from: members[0].name))
        try settle("fan-out")
        let template = try memberRows(conversation, members[1])
        for first in stride(from: 2, to: members.count, by: 1_000) {
            options.progress("fill: \(first) of \(members.count) participants")
            try world.stayAlive()
            try writer.fill { transaction throws(StoreError) in
                for user in members[first..<min(first + 1_000, members.count)] {
                    try template.put(as: user, in: transaction)
                }
            }
        }
        let count = UInt64(members.count)
        try writer.fill { transaction throws(StoreError) in
            let key: [ColumnValue] = [.app(Self.crowd), .identifier(conversation)]
            guard var row = try transaction.record(ConversationRecord.self, key) else { return }
            row.participants = count
            try transaction.put(row)
        }
        return BenchGroup(conversation: conversation, members: members)
    }

    private func memberRows(_ conversation: ConversationID, _ user: UserID) throws -> BenchMember {
        try writer.read { snapshot throws(StoreError) in
            let own: [ColumnValue] = [.app(Self.crowd), .user(user)]
            guard
                let participant = try snapshot.record(
                    ParticipantRecord.self,
                    [.app(Self.crowd), .identifier(conversation), .user(user)])
            else { throw .corrupt("no participant to copy") }
            var entries: [EntryRecord] = []
            for index in ["entry_by_object", "entry_by_place"] {
                let found = try snapshot.records(
                    EntryRecord.self, Scan(index: index, prefix: own, limit: 1_000))
                entries += found.filter { $0.conversation == conversation }
            }
            let name = Array(user.name.utf8)
            return BenchMember(
                participant: participant,
                entries: entries.filter {
                    [.conversation, .message].contains($0.kind)
                        || $0.kind == .participant && $0.object == name
                }
                .sorted { $0.seq < $1.seq })
        }
    }
}

/// The rows that make a user one of a conversation.
private struct BenchMember {
    let participant: ParticipantRecord
    let entries: [EntryRecord]

    func put(as user: UserID, in transaction: any StoreTransaction) throws(StoreError) {
        let key: [ColumnValue] = [.app(participant.app), .user(user)]
        guard var row = try transaction.record(UserRecord.self, key) else {
            throw .corrupt("no user to take part")
        }
        for template in entries {
            row.head += 1
            var entry = template
            entry.user = user
            entry.seq = row.head
            entry.firstSeq = row.head
            if entry.kind == .participant { entry.object = Array(user.name.utf8) }
            if entry.isVisible { row.visibleHead = row.head }
            try transaction.put(entry)
        }
        row.activeConversation = participant.conversation.bytes
        try transaction.put(row)
        var member = participant
        member.user = user
        member.activity = row.head
        try transaction.put(member)
    }
}
