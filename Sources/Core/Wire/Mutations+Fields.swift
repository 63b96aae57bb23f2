extension Mutation {
    public static var empty: Mutation { Mutation() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "number", &number)
        try visitor.uint32(2, "delay_ms", &delayMs)
        try visitor.oneof("operation", &operation)
    }
}

extension Mutation.Operation: WireOneof {
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

extension CreateConversation {
    public static var empty: CreateConversation { CreateConversation() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.strings(2, "participants", &participants)
        try visitor.bool(3, "distinct", &distinct)
        try visitor.messages(4, "metadata", &metadata)
        try visitor.bool(5, "receipts_off", &receiptsOff)
    }
}

extension AddParticipants {
    public static var empty: AddParticipants { AddParticipants() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.strings(2, "users", &users)
    }
}

extension SendMessage {
    public static var empty: SendMessage { SendMessage() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.identifier(2, "message", &message)
        try visitor.messages(3, "parts", &parts)
        try visitor.message(4, "push", &push)
    }
}

extension ForgetDevice {
    public static var empty: ForgetDevice { ForgetDevice() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {}
}

extension MutationResult {
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
