import Model
import Wake
import Wire

extension Work {
    /// Stores a message at the conversation's next position and brings it into the feeds of all
    /// participants, the sender's own included.
    ///
    /// - Parameter isDue: it was asked for earlier, and taken.
    func sendMessage(
        _ app: AppID, _ publication: Publication, by actor: Actor, isDue: Bool = false
    ) throws(RuleFailure) -> MessageRecord {
        let (request, sender) = (publication.message, publication.sender)
        let options = publication.options
        guard let id = request.message else { throw .refused(.missingField, "no message id") }
        // An id of zeros names nothing (MSG-1).
        try require(id != MessageID(high: 0, low: 0), .malformed, "an id of zeros")
        try checkContent(request.parts, request.push, options)
        var conversation = try reachableConversation(app, request.conversation, actor)
        try checkSender(sender, of: conversation)
        if !publication.isIDFresh { try refuseUsed(id, app, actor) }
        // Whoever repeats it is told that it exists, whatever kinds there are by now.
        try checkKind(of: options, in: app)
        if !isDue { try checkEnd(of: options) }
        conversation.position += 1
        let message = MessageRecord(
            app: app, message: id, conversation: conversation.conversation,
            position: conversation.position, sender: sender, sentAt: now,
            parts: MessageState(parts: request.parts).encoded,
            pushTitle: request.push?.title ?? "", pushBody: request.push?.body ?? "", version: 1,
            revision: conversation.revision + 1, pushOptions: options.encoded)
        sent = message
        defer { sent = nil }
        try deliver(.message, object: id.bytes, joining: 0, in: &conversation) {
            _ throws(RuleFailure) in try self.insert(message)
        }
        note(WebhookEventRecord(.messageCreated, message, by: sender))
        effects.published.messages += 1
        return message
    }

    /// Messages and announcements share their ids.
    private func refuseUsed(
        _ id: MessageID, _ app: AppID, _ actor: Actor
    ) throws(RuleFailure) {
        if let existing = try record(
            MessageRecord.self, [.app(app), .identifier(id)], lock: .wait)
        {
            throw try reaches(app, existing.conversation, actor)
                ? .refused(.idInUse, "the message exists")
                : .refused(.forbidden, "the message cannot be sent")
        }
        if try record(AnnouncementRecord.self, [.app(app), .identifier(id)]) != nil {
            throw actor == .backend
                ? .refused(.idInUse, "an announcement has this id")
                : .refused(.forbidden, "the message cannot be sent")
        }
    }

    func checkSender(
        _ sender: String, of conversation: ConversationRecord
    ) throws(RuleFailure) {
        guard !sender.isEmpty else { return }
        let user = UserID(sender)
        try require(user.isValid, .malformed, "not a user name")
        guard try participant(conversation.app, conversation.conversation, user) != nil else {
            throw .refused(.forbidden, "the sender does not take part")
        }
    }
}
