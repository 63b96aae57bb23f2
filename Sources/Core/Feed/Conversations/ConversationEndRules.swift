import Model
import Wire

extension Work {
    /// For everyone: by who created the conversation, or the backend. Its messages go in the
    /// background.
    func deleteConversation(
        _ app: AppID, _ id: ConversationID?, by actor: Actor
    ) throws(RuleFailure) {
        if let id { try lockDistinct(of: try target(app, id), app) }
        var conversation = try reachableConversation(app, id, actor)
        if case .user(let user) = actor {
            guard try isCreator(user, of: conversation) else {
                throw .refused(.forbidden, "the conversation is another user's")
            }
            conversation.deletedBy = user.name
        }
        conversation.deletedAt = now
        try deliver(.conversationEnd, object: [], joining: 0, in: &conversation) {
            conversation throws(RuleFailure) in
            try self.purgeLater(
                PurgeRecord(
                    app: conversation.app, conversation: conversation.conversation, user: ""))
            try self.giveUpDistinct(conversation)
        }
        note(
            WebhookEventRecord(
                app: app, kind: .conversationDeleted, conversation: conversation.conversation,
                user: actor.name))
    }

    /// A new user of a deleted user's name made nothing of what that one made (MSG-53): the new
    /// one is younger than the conversation, and joined it later.
    private func isCreator(
        _ user: UserID, of conversation: ConversationRecord
    ) throws(RuleFailure) -> Bool {
        guard UserID(conversation.creator) == user else { return false }
        let key: [ColumnValue] = [.app(conversation.app), .user(user)]
        let madeAt = try record(UserRecord.self, key)?.createdAt
        if let madeAt, madeAt <= conversation.createdAt { return true }
        // A clock that was set back may have made a conversation older than its creator.
        let member = try membership(conversation.app, conversation.conversation, user)
        return member?.joinedRevision == Self.firstRevision
    }

    /// The revision of the change that brings the first participants, the creator among them.
    private static let firstRevision: UInt64 = 1

    /// The messages up to now, for this user on all the own devices; the conversation comes back
    /// with its next message. Who was removed may do it too.
    func clearConversation(
        _ app: AppID, _ id: ConversationID?, of user: UserID
    ) throws(RuleFailure) {
        guard let named = id else { throw .refused(.missingField, "no conversation id") }
        let id = try target(app, named)
        guard let conversation = try lockConversation(app, id),
            var member = try membership(app, id, user)
        else { throw .refused(.notFound, "no such conversation") }
        // Whoever left before learns nothing of the end (MSG-31).
        try require(
            conversation.deletedAt == nil, member.leftRevision == nil ? .gone : .notFound,
            member.leftRevision == nil ? "the conversation was deleted" : "no such conversation")
        if let waiting = try oldestJob(app, id),
            waiting.revision <= max(member.joinedRevision, member.leftRevision ?? 0)
        {
            throw .refused(.rateLimited, "the membership is still on its way")
        }
        let through = member.leftRevision == nil ? conversation.position : member.leftPosition
        if member.isGone, member.clearedPosition == through { return }
        member.clearedPosition = through
        member.clearedAt = now
        member.conversationVersion += 1
        member.isGone = true
        try put(member)
        try endConversation(in: member)
        try purgeLater(PurgeRecord(app: app, conversation: id, user: user.name))
    }

    /// The conversation is locked. One that is under way begins anew.
    private func purgeLater(_ purge: PurgeRecord) throws(RuleFailure) {
        _ = try record(PurgeRecord.self, purge.rowKey)
        try put(purge)
    }
}
