import Model

// What is forgotten of an ended conversation once no device needs its tombstone: who took part, and
// who made and ended it (MSG-37). The id stays in use.
extension Work {
    /// Locks the ended conversations whose tombstones these are, before any user: locks have an
    /// order.
    ///
    /// - Returns: their places. A conversation that goes on, of which a user has deleted the
    ///   messages, need not be kept from others.
    func lockEnded(toldOfBy entries: [EntryRecord]) throws(RuleFailure) -> Set<SortKey> {
        let told = entries.filter(\.tellsOfConversation).map { (place: $0.room, entry: $0) }
        var locked: Set<SortKey> = []
        for (place, entry) in told.sorted(by: { $0.place < $1.place }) {
            let key: [ColumnValue] = [.app(entry.app), .identifier(entry.conversation)]
            guard try record(ConversationRecord.self, key)?.deletedAt != nil else { continue }
            _ = try lockConversation(entry.app, entry.conversation)
            locked.insert(place)
        }
        return locked
    }

    /// The feed tells of the end no more. The conversation and the user are locked.
    ///
    /// A user who left before the end keeps the membership: the own `Participant` entry stays
    /// (SYN-35).
    func forgetMembership(
        toldOfBy entry: EntryRecord, in ended: Set<SortKey>
    ) throws(RuleFailure) {
        guard entry.tellsOfConversation, ended.contains(entry.room) else { return }
        let key: [ColumnValue] = [.app(entry.app), .identifier(entry.conversation)]
        guard var conversation = try record(ConversationRecord.self, key),
            conversation.deletedAt != nil,
            try participant(entry.app, entry.conversation, entry.user) != nil
        else { return }
        try delete(ParticipantRecord.self, key + [.user(entry.user)])
        // Of those whose feed tells of it no more there may be rows: a user who is deleted, or one
        // whose tombstone an earlier version has removed.
        let left = try records(
            ParticipantRecord.self,
            Scan(index: "participant_by_presence", prefix: key, limit: Self.formerMax))
        for member in left where try knows(member) { return }
        guard left.count < Self.formerMax else { return }
        conversation.creator = ""
        conversation.deletedBy = ""
        conversation.forgetDistinct()
        try put(conversation)
    }

    /// Rows of participants that are looked at for one who still has the tombstone.
    private static let formerMax = 64
}

extension ConversationRecord {
    /// One that was made for the same participants stays one; nobody is named.
    mutating func forgetDistinct() {
        if !distinctKey.isEmpty { distinctKey = "\n" }
    }
}

extension EntryRecord {
    /// The place of its conversation among all.
    fileprivate var room: SortKey { SortKey([.app(app), .identifier(conversation)]) }

    /// It says that a conversation is deleted, for the user or for everyone.
    var tellsOfConversation: Bool {
        kind == .tombstone && object.isEmpty && conversation != .none
    }
}
