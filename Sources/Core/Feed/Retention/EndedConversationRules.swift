import Model

// What is forgotten of an ended conversation once no device needs its tombstone: who took part, and
// who made and ended it (MSG-37). The id stays in use.
extension Work {
    /// Locks the conversations whose tombstones these are, before any user: locks have an order.
    func lockConversations(toldOfBy entries: [EntryRecord]) throws(RuleFailure) {
        let told = entries.filter(\.tellsOfConversation).map {
            (place: SortKey([.app($0.app), .identifier($0.conversation)]), entry: $0)
        }.sorted { $0.place < $1.place }
        for (_, entry) in told { _ = try lockConversation(entry.app, entry.conversation) }
    }

    /// The feed tells of the end no more. The conversation and the user are locked.
    ///
    /// A user who left before the end keeps the membership: the own `Participant` entry stays
    /// (SYN-35).
    func forgetMembership(toldOfBy entry: EntryRecord) throws(RuleFailure) {
        let key: [ColumnValue] = [.app(entry.app), .identifier(entry.conversation)]
        guard var conversation = try record(ConversationRecord.self, key),
            conversation.deletedAt != nil,
            try participant(entry.app, entry.conversation, entry.user) != nil
        else { return }
        try delete(ParticipantRecord.self, key + [.user(entry.user)])
        let left = try records(
            ParticipantRecord.self,
            Scan(index: "participant_by_presence", prefix: key, limit: 1))
        guard left.isEmpty else { return }
        conversation.creator = ""
        conversation.deletedBy = ""
        // It stays one that was made for those who took part; nobody is named.
        if !conversation.distinctKey.isEmpty { conversation.distinctKey = "\n" }
        try put(conversation)
    }
}

extension EntryRecord {
    /// It says that a conversation is deleted, for the user or for everyone.
    var tellsOfConversation: Bool {
        kind == .tombstone && object.isEmpty && conversation != .none
    }
}
