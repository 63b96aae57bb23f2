extension RemoveParticipants {
    public static var empty: RemoveParticipants { RemoveParticipants() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.strings(2, "users", &users)
    }
}

extension EditMessage {
    public static var empty: EditMessage { EditMessage() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "message", &message)
        try visitor.messages(2, "parts", &parts)
        try visitor.message(3, "push", &push)
        try visitor.uint64(4, "base_version", &baseVersion)
    }
}

extension DeleteMessage {
    public static var empty: DeleteMessage { DeleteMessage() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "message", &message)
        try visitor.bool(2, "for_everyone", &forEveryone)
    }
}

extension DeleteConversation {
    public static var empty: DeleteConversation { DeleteConversation() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.bool(2, "for_everyone", &forEveryone)
    }
}

extension ChangeMetadata {
    public static var empty: ChangeMetadata { ChangeMetadata() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.messages(2, "changes", &changes)
        try visitor.uint64(3, "base_version", &baseVersion)
    }
}

extension MetadataChange {
    public static var empty: MetadataChange { MetadataChange() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.strings(1, "path", &path)
        try visitor.string(2, "value", &value)
        try visitor.bool(3, "removed", &removed)
    }
}

extension MuteConversation {
    public static var empty: MuteConversation { MuteConversation() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.bool(2, "muted", &muted)
        try visitor.uint64(3, "for_ms", &forMs)
    }
}

extension BlockUser {
    public static var empty: BlockUser { BlockUser() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "user", &user)
        try visitor.bool(2, "blocked", &blocked)
    }
}
