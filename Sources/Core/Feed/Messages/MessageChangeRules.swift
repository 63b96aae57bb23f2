import Model
import Wake
import Wire

extension Work {
    /// The message, its conversation locked before it; what does not exist and what is out of
    /// reach are refused alike (MSG-15).
    private func reachableMessage(
        _ app: AppID, _ id: MessageID?, _ actor: Actor
    ) throws(RuleFailure) -> (ConversationRecord, MessageRecord) {
        guard let id else { throw .refused(.missingField, "no message id") }
        let missing = RuleFailure.refused(.notFound, "no such message")
        let key: [ColumnValue] = [.app(app), .identifier(id)]
        // Where a message is never changes: it says what to lock first.
        guard let known = try record(MessageRecord.self, key),
            let conversation = try lockConversation(app, known.conversation)
        else { throw missing }
        if case .user(let user) = actor {
            guard let member = try participant(app, known.conversation, user),
                member.joinedPosition < known.position
            else { throw missing }
        }
        try require(conversation.deletedAt == nil, .gone, "the conversation was deleted")
        guard let message = try record(MessageRecord.self, key, lock: .wait) else {
            throw missing
        }
        return (conversation, message)
    }

    /// Only who sent it, and the backend, change a message for others.
    private func checkAuthor(
        _ message: MessageRecord, _ actor: Actor
    ) throws(RuleFailure) {
        if case .user(let user) = actor, UserID(message.sender) != user {
            throw .refused(.forbidden, "the message is another user's")
        }
    }

    func editMessage(
        _ app: AppID, _ request: EditMessage, by actor: Actor
    ) throws(RuleFailure) -> MessageRecord {
        try checkContent(request.parts, request.push)
        var (conversation, message) = try reachableMessage(app, request.message, actor)
        try checkAuthor(message, actor)
        try require(message.deletedAt == nil, .gone, "the message was deleted")
        guard request.baseVersion == 0 || request.baseVersion == message.version else {
            throw .refused(.versionConflict, "the message has version \(message.version)")
        }
        message.parts = MessageState(parts: request.parts).encoded
        message.pushTitle = request.push?.title ?? ""
        message.pushBody = request.push?.body ?? ""
        message.pushOptions = try presentation(of: message).encoded
        message.editedAt = now
        let edited = try change(message, in: &conversation)
        note(WebhookEventRecord(.messageEdited, edited, by: actor.name))
        return edited
    }

    /// How the message shows itself stays; its texts go with the old content.
    private func presentation(of message: MessageRecord) throws(RuleFailure) -> PushOptions {
        guard var options = PushOptions(encoded: message.pushOptions) else {
            throw .store(.corrupt("message: push options"))
        }
        options.subtitle = ""
        options.texts = []
        options.titleKey = nil
        options.subtitleKey = nil
        options.bodyKey = nil
        options.moreKey = ""
        return options
    }

    /// For everyone. What was deleted before stays as it is: the wish is fulfilled.
    func deleteMessage(
        _ app: AppID, _ id: MessageID?, by actor: Actor
    ) throws(RuleFailure) {
        var (conversation, message) = try reachableMessage(app, id, actor)
        try checkAuthor(message, actor)
        guard message.deletedAt == nil else { return }
        message.parts = []
        message.pushTitle = ""
        message.pushBody = ""
        message.pushOptions = []
        message.deletedAt = now
        if case .user(let user) = actor { message.deletedBy = user.name }
        let deleted = try change(message, in: &conversation)
        note(WebhookEventRecord(.messageDeleted, deleted, by: actor.name))
    }

    private func change(
        _ message: MessageRecord, in conversation: inout ConversationRecord
    ) throws(RuleFailure) -> MessageRecord {
        var message = message
        message.version += 1
        message.revision = conversation.revision + 1
        let changed = message
        effects.changes.noteChanged(message.message, version: message.version)
        try deliver(
            .messageChange, object: message.message.bytes, joining: 0, in: &conversation
        ) { _ throws(RuleFailure) in try self.put(changed) }
        return message
    }

    /// On all devices of this user: a tombstone in the own feed only. Who was removed may do it
    /// too, for what came before.
    func hideMessage(
        _ app: AppID, _ id: MessageID?, of user: UserID
    ) throws(RuleFailure) {
        guard let id else { throw .refused(.missingField, "no message id") }
        let missing = RuleFailure.refused(.notFound, "no such message")
        let key: [ColumnValue] = [.app(app), .identifier(id)]
        guard let known = try record(MessageRecord.self, key),
            let conversation = try lockConversation(app, known.conversation),
            let member = try membership(app, known.conversation, user)
        else { throw missing }
        guard let message = try record(MessageRecord.self, key, lock: .wait) else {
            throw missing
        }
        var feed = try openFeed(app, user)
        let object = FeedObject.tombstone(message, version: message.version + 1)
        guard let older = try entry(of: .message, like: object, in: feed.user) else {
            let isThere = member.leftRevision == nil && member.joinedPosition < message.position
            guard isThere else { throw missing }
            try require(conversation.deletedAt == nil, .gone, "the conversation was deleted")
            if let waiting = try oldestJob(app, conversation.conversation),
                waiting.revision <= message.revision
            {
                throw .refused(.rateLimited, "the message is still on its way")
            }
            // It is deleted already, for this user or for all.
            return
        }
        let hidden = HiddenRecord(
            app: app, user: user, conversation: message.conversation,
            position: message.position, message: message.message, hiddenAt: now)
        _ = try record(HiddenRecord.self, hidden.rowKey)
        try put(hidden)
        try replace(older, with: object, isVisible: false, isHidden: true, in: &feed)
        try close(feed)
    }
}
