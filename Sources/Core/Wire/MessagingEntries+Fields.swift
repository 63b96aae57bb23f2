extension PartReference {
    public static var empty: PartReference { PartReference() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "url", &url)
        try visitor.uint64(2, "size", &size)
        try visitor.bytes(3, "digest", &digest)
        try visitor.uint64(4, "expires_ms", &expiresMs)
    }
}

extension MetadataState {
    public static var empty: MetadataState { MetadataState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "values", &values)
    }
}

extension MetadataValue {
    public static var empty: MetadataValue { MetadataValue() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.strings(1, "path", &path)
        try visitor.string(2, "value", &value)
    }
}

extension TombstoneState {
    public static var empty: TombstoneState { TombstoneState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "position", &position)
        try visitor.bool(2, "conversation", &conversation)
        try visitor.bool(3, "for_everyone", &forEveryone)
        try visitor.string(4, "by", &by)
        try visitor.uint64(5, "deleted_ms", &deletedMs)
    }
}

extension AnnouncementState {
    public static var empty: AnnouncementState { AnnouncementState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "sent_ms", &sentMs)
        try visitor.messages(2, "parts", &parts)
        try visitor.message(3, "push", &push)
        try visitor.bool(4, "read", &read)
        try visitor.message(5, "hints", apart: &heldHints)
    }
}

extension ConversationSettings {
    public static var empty: ConversationSettings { ConversationSettings() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.bool(1, "muted", &muted)
        try visitor.uint64(2, "muted_until_ms", &mutedUntilMs)
    }
}

extension BlockState {
    public static var empty: BlockState { BlockState() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "user", &user)
        try visitor.bool(2, "blocked", &blocked)
    }
}
