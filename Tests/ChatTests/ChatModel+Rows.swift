import Model
import RouseClient
import Wire

@testable import Chat
@testable import SyncClient

extension ChatModel {
    static let room = ConversationID(high: 0, low: 1)

    /// anna looks at a conversation, in sync.
    static func looking(at rows: [MessageRow] = []) -> ChatModel {
        var model = ChatModel(user: "anna")
        model.phase = .front
        model.connection = .inSync
        model.opened = room
        model.window.rows = rows
        return model
    }
}

extension MessageRow {
    /// At a position, and of ben if nothing else is said; without a position it waits.
    static func row(
        _ position: UInt64?, _ text: String, by sender: String = "ben", isUnread: Bool = false,
        delivery: Delivery? = nil
    ) -> MessageRow {
        let isOwn = sender == "anna"
        return MessageRow(
            id: MessageID(high: 1, low: position ?? UInt64(text.count)),
            conversation: ChatModel.room, position: position,
            version: position == nil ? 0 : 1, sender: sender, sentAt: Timestamp(milliseconds: 1),
            editedAt: nil, parts: [Part(text)], push: PushText(title: sender, body: text),
            isOwn: isOwn, isUnread: isUnread,
            delivery: delivery ?? (isOwn ? position == nil ? .queued : .accepted : nil))
    }
}
