import Feed
import MemoryStore
import Model
import Testing
import Wire
import WorkingSet

// What a backend asks beyond sending.
extension World {
    @discardableResult
    func remove(_ users: [String], from conversation: ConversationID) throws -> StoreAnswer {
        try ask(
            .removeParticipants(
                app: Self.app, RemoveParticipants(conversation: conversation, users: users),
                idempotency: nil))
    }

    @discardableResult
    func edit(
        _ message: MessageID, _ text: String, push: String? = nil, base: UInt64 = 0
    ) throws -> StoreAnswer {
        try ask(
            .editMessage(
                app: Self.app,
                EditMessage(
                    message: message,
                    parts: [Part(mimeType: "text/plain", content: Array(text.utf8))],
                    push: PushText(title: "", body: push ?? text), baseVersion: base),
                idempotency: nil))
    }

    @discardableResult
    func delete(_ message: MessageID) throws -> StoreAnswer {
        try ask(.deleteMessage(app: Self.app, message, idempotency: nil))
    }

    @discardableResult
    func end(_ conversation: ConversationID) throws -> StoreAnswer {
        try ask(.deleteConversation(app: Self.app, conversation, idempotency: nil))
    }

    /// What the user's feed holds, in order: messages with their text.
    func texts(_ user: String, after: UInt64 = 0) throws -> [String] {
        try page(user, after: after).entries.map(\.text)
    }

    /// The newest entries, newest first.
    func peek(_ user: String) throws -> Page {
        let query = PageQuery(
            app: Self.app, user: UserID(user), device: DeviceID(high: 0, low: 0), after: 0,
            bytes: 1 << 20, newestFirst: true)
        guard case .page(let page) = try read(.page(query)) else {
            throw Unexpected(answer: .done)
        }
        return page
    }

    func history(_ query: HistoryQuery) throws -> HistoryReading {
        guard case .history(let reading) = try read(.history(query)) else {
            throw Unexpected(answer: .done)
        }
        return reading
    }

    /// Writes rows behind the rules' back: what a damaged file, or a newer program, leaves.
    func tamper(
        _ body: (any StoreTransaction) throws(StoreError) -> Void
    ) throws {
        try store.arrange(body)
        try mirror?.tamper(body)
        known.forgetAll()
    }

    func retain() throws {
        while case .progressed(_, let more) = try ask(.enforceRetention(rows: 3)), more {}
    }
}

extension Entry {
    /// As `word`, with the text of a message and what a tombstone is of.
    var text: String {
        switch body {
        case .message(let state):
            "message \(state.position) "
                + String(decoding: state.parts.first?.content ?? [], as: UTF8.self)
                + (state.editedMs > 0 ? " edited" : "")
        case .conversationState(let state) where state.participants > 0:
            "conversation of \(state.participants)"
        case .participant(let state): state.removed ? "removed \(state.user)" : word
        case .tombstone(let state):
            "tombstone \(state.conversation ? "conversation " : "")\(state.position)"
                + (state.forEveryone ? " everyone" : "")
        default: word
        }
    }
}
