public import Model

/// `MUTATE` (0x20, client; also inside `SYNC`): one change the device asks for.
public struct Mutation: WireMessage {
    /// The kinds of mutation.
    public enum Operation: WireOneof {
        /// Make a conversation.
        case createConversation(CreateConversation)
        /// Add users to a conversation.
        case addParticipants(AddParticipants)
        /// Send a message.
        case sendMessage(SendMessage)
        /// Log this device out.
        case forgetDevice(ForgetDevice)
        /// End memberships, or leave.
        case removeParticipants(RemoveParticipants)
        /// Replace the content of a message.
        case editMessage(EditMessage)
        /// Delete a message.
        case deleteMessage(DeleteMessage)
        /// Delete a conversation.
        case deleteConversation(DeleteConversation)
        /// Change metadata of a conversation.
        case changeMetadata(ChangeMetadata)
        /// Mute a conversation for this user.
        case muteConversation(MuteConversation)
        /// Block another user, or no longer.
        case blockUser(BlockUser)

        public static func members<V: FieldVisitor>(
            of operation: inout Self?, _ visitor: inout V
        ) throws(V.Failure) {
            try visitor.member(10, "create_conversation", &operation, Self.createConversation) {
                if case .createConversation(let value) = $0 { value } else { nil }
            }
            try visitor.member(11, "add_participants", &operation, Self.addParticipants) {
                if case .addParticipants(let value) = $0 { value } else { nil }
            }
            try visitor.member(12, "send_message", &operation, Self.sendMessage) {
                if case .sendMessage(let value) = $0 { value } else { nil }
            }
            try visitor.member(13, "forget_device", &operation, Self.forgetDevice) {
                if case .forgetDevice(let value) = $0 { value } else { nil }
            }
            try visitor.member(14, "remove_participants", &operation, Self.removeParticipants) {
                if case .removeParticipants(let value) = $0 { value } else { nil }
            }
            try visitor.member(15, "edit_message", &operation, Self.editMessage) {
                if case .editMessage(let value) = $0 { value } else { nil }
            }
            try visitor.member(16, "delete_message", &operation, Self.deleteMessage) {
                if case .deleteMessage(let value) = $0 { value } else { nil }
            }
            try visitor.member(17, "delete_conversation", &operation, Self.deleteConversation) {
                if case .deleteConversation(let value) = $0 { value } else { nil }
            }
            try visitor.member(18, "change_metadata", &operation, Self.changeMetadata) {
                if case .changeMetadata(let value) = $0 { value } else { nil }
            }
            try visitor.member(19, "mute_conversation", &operation, Self.muteConversation) {
                if case .muteConversation(let value) = $0 { value } else { nil }
            }
            try visitor.member(20, "block_user", &operation, Self.blockUser) {
                if case .blockUser(let value) = $0 { value } else { nil }
            }
        }
    }

    /// Per device; greater than the last one taken, gaps are allowed.
    public var number: UInt64
    /// How long it waited on the device, in milliseconds.
    public var delayMs: UInt32
    /// What to do; `nil`: missing, or an operation this side does not know.
    public var operation: Operation?

    /// A body with these fields; those left out keep their proto3 default.
    public init(number: UInt64 = 0, delayMs: UInt32 = 0, operation: Operation? = nil) {
        self.number = number
        self.delayMs = delayMs
        self.operation = operation
    }

    public static var empty: Mutation { Mutation() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "number", &number)
        try visitor.uint32(2, "delay_ms", &delayMs)
        try visitor.oneof("operation", &operation)
    }
}

/// Makes a conversation.
public struct CreateConversation: WireMessage {
    /// Id of the new conversation.
    public var conversation: ConversationID?
    /// Users who take part; the creator does in any case.
    public var participants: [String]
    /// At most one conversation has exactly these participants: if there is one, it is the result.
    public var distinct: Bool
    /// Its first metadata.
    public var metadata: [MetadataChange]
    /// Nobody is told how far others got.
    public var receiptsOff: Bool

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversation: ConversationID? = nil, participants: [String] = [], distinct: Bool = false,
        metadata: [MetadataChange] = [], receiptsOff: Bool = false
    ) {
        self.conversation = conversation
        self.participants = participants
        self.distinct = distinct
        self.metadata = metadata
        self.receiptsOff = receiptsOff
    }

    public static var empty: CreateConversation { CreateConversation() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.strings(2, "participants", &participants)
        try visitor.bool(3, "distinct", &distinct)
        try visitor.messages(4, "metadata", &metadata)
        try visitor.bool(5, "receipts_off", &receiptsOff)
    }
}

/// Adds users to a conversation.
public struct AddParticipants: WireMessage {
    /// Which conversation.
    public var conversation: ConversationID?
    /// Who joins.
    public var users: [String]

    /// A body with these fields; those left out keep their proto3 default.
    public init(conversation: ConversationID? = nil, users: [String] = []) {
        self.conversation = conversation
        self.users = users
    }

    public static var empty: AddParticipants { AddParticipants() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.strings(2, "users", &users)
    }
}

/// Sends a message.
public struct SendMessage: WireMessage {
    /// Where to.
    public var conversation: ConversationID?
    /// Id of the new message.
    public var message: MessageID?
    /// Its content.
    public var parts: [Part]
    /// What an alert about it shows.
    public var push: PushText?

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        conversation: ConversationID? = nil, message: MessageID? = nil, parts: [Part] = [],
        push: PushText? = nil
    ) {
        self.conversation = conversation
        self.message = message
        self.parts = parts
        self.push = push
    }

    public static var empty: SendMessage { SendMessage() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.identifier(2, "message", &message)
        try visitor.messages(3, "parts", &parts)
        try visitor.message(4, "push", &push)
    }
}

/// Logs this device out: the server forgets its session and push token.
public struct ForgetDevice: WireMessage {
    /// The only value.
    public init() {}

    public static var empty: ForgetDevice { ForgetDevice() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}

/// `MUTATION_RESULT` (0x21, server; also inside `DELTA`): stored, and given again on retry.
public struct MutationResult: WireMessage {
    /// Number of the mutation.
    public var number: UInt64
    /// 0: done; else a code of the registry (`Code`).
    public var code: UInt32
    /// What the client may do if it was not done.
    public var retry: RetryClass
    /// Not again before this time has passed, in milliseconds.
    public var retryAfterMs: UInt32
    /// Id of the object made or changed: 16 bytes, or empty.
    public var object: [UInt8]
    /// Position of the message sent.
    public var position: UInt64

    /// A body with these fields; those left out keep their proto3 default.
    public init(
        number: UInt64 = 0, code: UInt32 = 0, retry: RetryClass = .none, retryAfterMs: UInt32 = 0,
        object: [UInt8] = [], position: UInt64 = 0
    ) {
        self.number = number
        self.code = code
        self.retry = retry
        self.retryAfterMs = retryAfterMs
        self.object = object
        self.position = position
    }

    public static var empty: MutationResult { MutationResult() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "number", &number)
        try visitor.uint32(2, "code", &code)
        try visitor.enumeration(3, "retry", &retry)
        try visitor.uint32(4, "retry_after_ms", &retryAfterMs)
        try visitor.objectID(5, "object", &object)
        try visitor.uint64(6, "position", &position)
    }
}
