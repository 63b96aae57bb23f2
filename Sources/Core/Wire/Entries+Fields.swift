extension Entry {
    public static var empty: Entry { Entry() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "seq", &seq)
        if visitor.writes(shared.bytes) { return }
        try visitor.identifier(2, "conversation", &conversation)
        try visitor.objectID(3, "object", &object)
        try visitor.uint64(4, "version", &version)
        try visitor.bool(5, "alerted", &alerted)
        try visitor.oneof("body", &body)
    }
}

extension Entry.Body: WireOneof {
    public static func members<V: FieldVisitor>(
        of body: inout Self?, _ visitor: inout V
    ) throws(V.Failure) {
        try visitor.member(10, "conversation_state", &body, Self.conversationState) {
            if case .conversationState(let value) = $0 { value } else { nil }
        }
        try visitor.member(11, "participant", &body, Self.participant) {
            if case .participant(let value) = $0 { value } else { nil }
        }
        try visitor.member(12, "message", &body, Self.message) {
            if case .message(let value) = $0 { value } else { nil }
        }
        try visitor.member(13, "receipt", &body, Self.receipt) {
            if case .receipt(let value) = $0 { value } else { nil }
        }
        try visitor.member(14, "read_mark", &body, Self.readMark) {
            if case .readMark(let value) = $0 { value } else { nil }
        }
        try visitor.member(15, "tombstone", &body, Self.tombstone) {
            if case .tombstone(let value) = $0 { value } else { nil }
        }
        try visitor.member(16, "metadata", &body, Self.metadata) {
            if case .metadata(let value) = $0 { value } else { nil }
        }
        try visitor.member(17, "announcement", &body, Self.announcement) {
            if case .announcement(let value) = $0 { value } else { nil }
        }
        try visitor.member(18, "conversation_settings", &body, Self.conversationSettings) {
            if case .conversationSettings(let value) = $0 { value } else { nil }
        }
        try visitor.member(19, "block", &body, Self.block) {
            if case .block(let value) = $0 { value } else { nil }
        }
    }
}

extension ConversationState {
    public static var empty: ConversationState { ConversationState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "created_ms", &createdMs)
        try visitor.string(2, "creator", &creator)
        try visitor.bool(3, "distinct", &distinct)
        try visitor.bool(4, "receipts_off", &receiptsOff)
        try visitor.uint32(5, "participants", &participants)
    }
}

extension ParticipantState {
    public static var empty: ParticipantState { ParticipantState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "user", &user)
        try visitor.uint64(2, "joined_position", &joinedPosition)
        try visitor.bool(3, "removed", &removed)
    }
}

extension MessageState {
    public static var empty: MessageState { MessageState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "position", &position)
        try visitor.string(2, "sender", &sender)
        try visitor.uint64(3, "sent_ms", &sentMs)
        if !visitor.writes(content.encoded) { try visitor.messages(4, "parts", &parts) }
        try visitor.message(5, "push", &push)
        try visitor.uint64(6, "edited_ms", &editedMs)
        try visitor.message(7, "hints", apart: &heldHints)
    }
}

extension Part {
    public static var empty: Part { Part() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "mime_type", &mimeType)
        try visitor.bytes(2, "content", &content)
        try visitor.message(3, "reference", &reference)
    }
}

extension PushText {
    public static var empty: PushText { PushText() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "title", &title)
        try visitor.string(2, "body", &body)
    }
}

extension ReceiptState {
    public static var empty: ReceiptState { ReceiptState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "user", &user)
        try visitor.uint64(2, "delivered_through", &deliveredThrough)
        try visitor.uint64(3, "read_through", &readThrough)
    }
}

extension ReadMarkState {
    public static var empty: ReadMarkState { ReadMarkState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "through", &through)
        try visitor.messages(2, "ranges", &ranges)
    }
}
