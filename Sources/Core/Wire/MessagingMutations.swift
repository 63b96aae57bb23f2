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
}
