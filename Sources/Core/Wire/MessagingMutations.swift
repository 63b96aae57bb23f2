public import Model

/// Ends the membership of users; naming oneself is leaving.
public struct RemoveParticipants: WireMessage {
    /// Which conversation.
    public var conversation: ConversationID?
    /// Who leaves it.
    public var users: [String]

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversation: ConversationID? = nil, users: [String] = []
    ) {
        self.conversation = conversation
        self.users = users
    }

    public static var empty: RemoveParticipants { RemoveParticipants() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.strings(2, "users", &users)
    }
}

/// Replaces the content of a message.
public struct EditMessage: WireMessage {
    /// Which message.
    public var message: MessageID?
    /// Its new content.
    public var parts: [Part]
    /// What an alert about it shows from now on.
    public var push: PushText?
    /// The version the edit was made from; another one is a conflict. 0: any.
    public var baseVersion: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        message: MessageID? = nil, parts: [Part] = [], push: PushText? = nil,
        baseVersion: UInt64 = 0
    ) {
        self.message = message
        self.parts = parts
        self.push = push
        self.baseVersion = baseVersion
    }

    public static var empty: EditMessage { EditMessage() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "message", &message)
        try visitor.messages(2, "parts", &parts)
        try visitor.message(3, "push", &push)
        try visitor.uint64(4, "base_version", &baseVersion)
    }
}

/// Deletes a message.
public struct DeleteMessage: WireMessage {
    /// Which message.
    public var message: MessageID?
    /// For all participants; else only for this user, on all the own devices.
    public var forEveryone: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        message: MessageID? = nil, forEveryone: Bool = false
    ) {
        self.message = message
        self.forEveryone = forEveryone
    }

    public static var empty: DeleteMessage { DeleteMessage() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "message", &message)
        try visitor.bool(2, "for_everyone", &forEveryone)
    }
}

/// Deletes a conversation.
public struct DeleteConversation: WireMessage {
    /// Which conversation.
    public var conversation: ConversationID?
    /// For all participants; else its messages so far, for this user only.
    public var forEveryone: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversation: ConversationID? = nil, forEveryone: Bool = false
    ) {
        self.conversation = conversation
        self.forEveryone = forEveryone
    }

    public static var empty: DeleteConversation { DeleteConversation() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.bool(2, "for_everyone", &forEveryone)
    }
}

/// Changes values of a conversation's metadata, all or none.
public struct ChangeMetadata: WireMessage {
    /// Which conversation.
    public var conversation: ConversationID?
    /// Carried out in order.
    public var changes: [MetadataChange]
    /// The version the change was made from; another one is a conflict. 0: any.
    public var baseVersion: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversation: ConversationID? = nil, changes: [MetadataChange] = [], baseVersion: UInt64 = 0
    ) {
        self.conversation = conversation
        self.changes = changes
        self.baseVersion = baseVersion
    }

    public static var empty: ChangeMetadata { ChangeMetadata() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.messages(2, "changes", &changes)
        try visitor.uint64(3, "base_version", &baseVersion)
    }
}

/// Sets or removes one value of a conversation's metadata.
public struct MetadataChange: WireMessage {
    /// Keys from the outermost to the innermost.
    public var path: [String]
    /// The new value, if it is not removed.
    public var value: String
    /// Removes the value and everything below the path.
    public var removed: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        path: [String] = [], value: String = "", removed: Bool = false
    ) {
        self.path = path
        self.value = value
        self.removed = removed
    }

    public static var empty: MetadataChange { MetadataChange() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.strings(1, "path", &path)
        try visitor.string(2, "value", &value)
        try visitor.bool(3, "removed", &removed)
    }
}

/// Mutes a conversation for this user: its messages come, without alerts.
public struct MuteConversation: WireMessage {
    /// Which conversation.
    public var conversation: ConversationID?
    /// Off ends it.
    public var muted: Bool
    /// How long, in milliseconds; 0: until it is ended.
    public var forMs: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversation: ConversationID? = nil, muted: Bool = false, forMs: UInt64 = 0
    ) {
        self.conversation = conversation
        self.muted = muted
        self.forMs = forMs
    }

    public static var empty: MuteConversation { MuteConversation() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.bool(2, "muted", &muted)
        try visitor.uint64(3, "for_ms", &forMs)
    }
}

/// Keeps another user's messages and invitations from this user.
public struct BlockUser: WireMessage {
    /// Who.
    public var user: String
    /// Off ends it.
    public var blocked: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        user: String = "", blocked: Bool = false
    ) {
        self.user = user
        self.blocked = blocked
    }

    public static var empty: BlockUser { BlockUser() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "user", &user)
        try visitor.bool(2, "blocked", &blocked)
    }
}
