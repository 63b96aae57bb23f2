import Model
import Wire

extension Work {
    /// Stores a message at the conversation's next position and brings it into the feeds of all
    /// participants, the sender's own included.
    ///
    /// - Parameter sender: a user's name; empty: the backend itself.
    func sendMessage(
        _ app: AppID, _ request: SendMessage, from sender: String, by actor: Actor
    ) throws(RuleFailure) -> MessageRecord {
        guard let id = request.message else { throw .refused(.missingField, "no message id") }
        try checkContent(of: request)
        var conversation = try reachableConversation(app, request.conversation, actor)
        try checkSender(sender, of: conversation)
        if let existing = try record(
            MessageRecord.self, [.app(app), .identifier(id)], lock: .wait)
        {
            throw try reaches(app, existing.conversation, actor)
                ? .refused(.idInUse, "the message exists")
                : .refused(.forbidden, "the message cannot be sent")
        }
        conversation.position += 1
        let message = MessageRecord(
            app: app, message: id, conversation: conversation.conversation,
            position: conversation.position, sender: sender, sentAt: now,
            parts: MessageState(parts: request.parts).encoded,
            pushTitle: request.push?.title ?? "", pushBody: request.push?.body ?? "", version: 1)
        try deliver(.message, object: id.bytes, joining: 0, in: &conversation) {
            _ throws(RuleFailure) in try self.put(message)
        }
        return message
    }

    private func checkSender(
        _ sender: String, of conversation: ConversationRecord
    ) throws(RuleFailure) {
        guard !sender.isEmpty else { return }
        let user = UserID(sender)
        guard user.isValid else { throw .refused(.malformed, "not a user name") }
        guard try participant(conversation.app, conversation.conversation, user) != nil else {
            throw .refused(.forbidden, "the sender does not take part")
        }
    }

    /// MSG-3.
    private func checkContent(of request: SendMessage) throws(RuleFailure) {
        guard !request.parts.isEmpty else { throw .refused(.missingField, "no parts") }
        guard request.parts.count <= limits.parts else {
            throw .refused(.limit, "more than \(limits.parts) parts")
        }
        var bytes = 0
        for part in request.parts {
            let type = part.mimeType.utf8
            guard !type.isEmpty else { throw .refused(.missingField, "a part without MIME type") }
            guard type.count <= limits.mimeTypeBytes,
                type.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
            else {
                throw .refused(.malformed, "a part whose MIME type is not one")
            }
            bytes += type.count + part.content.count
        }
        guard bytes <= limits.messageBytes else {
            throw .refused(.tooLarge, "more than \(limits.messageBytes) bytes of parts")
        }
        // No engine's text column is sure to hold a zero byte.
        guard !request.hasZeroInPushText else {
            throw .refused(.malformed, "a push text with a zero byte")
        }
        let text = (request.push?.title.utf8.count ?? 0) + (request.push?.body.utf8.count ?? 0)
        guard text <= limits.pushTextBytes else {
            throw .refused(.tooLarge, "more than \(limits.pushTextBytes) bytes of push text")
        }
    }
}

extension SendMessage {
    fileprivate var hasZeroInPushText: Bool {
        push.map { $0.title.utf8.contains(0) || $0.body.utf8.contains(0) } ?? false
    }
}
