import Model
import Wire

// Conversations of which there is one for the same participants (MSG-24). Two who make it at the
// same time, or offline, end in the same one: who comes second gets its id as the result, and what
// still comes under the id he chose goes there.
extension Work {
    func distinctKey(_ users: [UserID]) throws(RuleFailure) -> String {
        guard users.reduce(0, { $0 + $1.name.utf8.count }) <= limits.distinctBytes else {
            throw .refused(
                .limit, "the names of the participants have more than \(limits.distinctBytes) bytes"
            )
        }
        // Names hold no control characters: this is unambiguous.
        return users.map(\.name).joined(separator: "\n")
    }

    /// The conversation there is already, locked; `asked` names it too from now on.
    func distinct(
        _ app: AppID, _ key: String, asked: ConversationID
    ) throws(RuleFailure) -> ConversationRecord? {
        // Waiting for the absent row keeps a second one from being made meanwhile.
        let known = try record(DistinctRecord.self, [.app(app), .text(key)], lock: .wait)
        guard let known else { return nil }
        // Nobody makes a conversation of this id while it becomes an alias of another one.
        var isTaken = false
        if asked < known.conversation { isTaken = try lockConversation(app, asked) != nil }
        let found = try lockConversation(app, known.conversation)
        if known.conversation < asked { isTaken = try lockConversation(app, asked) != nil }
        guard let existing = found else { return nil }
        guard asked != existing.conversation else { return existing }
        if isTaken {
            throw .refused(.forbidden, "the conversation cannot be created")
        }
        let aim = try target(app, asked)
        if aim == existing.conversation { return existing }
        // What comes under an alias of another conversation would go there (MSG-24).
        try require(aim == asked, .forbidden, "the conversation cannot be created")
        try put(
            AliasRecord(
                app: app, alias: asked, conversation: existing.conversation, createdAt: now))
        return existing
    }

    /// Taken before the conversation's own lock, in the order of locks: the row that makes it the
    /// only conversation of its participants is deleted with it.
    func lockDistinct(
        of conversation: ConversationID, _ app: AppID
    ) throws(RuleFailure) {
        let known = try record(ConversationRecord.self, [.app(app), .identifier(conversation)])
        guard let known, !known.distinctKey.isEmpty else { return }
        _ = try record(
            DistinctRecord.self, [.app(app), .text(known.distinctKey)], lock: .wait)
    }

    /// Another one may be made with the same participants.
    func giveUpDistinct(_ conversation: ConversationRecord) throws(RuleFailure) {
        guard !conversation.distinctKey.isEmpty else { return }
        let key: [ColumnValue] = [.app(conversation.app), .text(conversation.distinctKey)]
        let holder = try record(DistinctRecord.self, key)
        guard holder?.conversation == conversation.conversation else { return }
        try delete(DistinctRecord.self, key)
    }
}
