extension Mutation {
    public static var empty: Mutation { Mutation() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &number)
        case 2: try reader.uint32(tag, &delayMs)
        case 10:
            var value: CreateConversation?
            if case .createConversation(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .createConversation(value) }
        case 11:
            var value: AddParticipants?
            if case .addParticipants(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .addParticipants(value) }
        case 12:
            var value: SendMessage?
            if case .sendMessage(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .sendMessage(value) }
        case 13:
            var value: ForgetDevice?
            if case .forgetDevice(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .forgetDevice(value) }
        case 14:
            var value: RemoveParticipants?
            if case .removeParticipants(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .removeParticipants(value) }
        case 15:
            var value: EditMessage?
            if case .editMessage(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .editMessage(value) }
        case 16:
            var value: DeleteMessage?
            if case .deleteMessage(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .deleteMessage(value) }
        case 17:
            var value: DeleteConversation?
            if case .deleteConversation(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .deleteConversation(value) }
        case 18:
            var value: ChangeMetadata?
            if case .changeMetadata(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .changeMetadata(value) }
        case 19:
            var value: MuteConversation?
            if case .muteConversation(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .muteConversation(value) }
        case 20:
            var value: BlockUser?
            if case .blockUser(let earlier) = operation { value = earlier }
            operation.release(for: value)
            try reader.message(tag, &value)
            if let value { operation = .blockUser(value) }
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, number)
        writer.uint32(2, delayMs)
        switch operation {
        case .createConversation(let value): writer.message(10, value)
        case .addParticipants(let value): writer.message(11, value)
        case .sendMessage(let value): writer.message(12, value)
        case .forgetDevice(let value): writer.message(13, value)
        case .removeParticipants(let value): writer.message(14, value)
        case .editMessage(let value): writer.message(15, value)
        case .deleteMessage(let value): writer.message(16, value)
        case .deleteConversation(let value): writer.message(17, value)
        case .changeMetadata(let value): writer.message(18, value)
        case .muteConversation(let value): writer.message(19, value)
        case .blockUser(let value): writer.message(20, value)
        case nil: break
        }
    }
}

extension CreateConversation {
    public static var empty: CreateConversation { CreateConversation() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &conversation)
        case 2: try reader.strings(tag, &participants)
        case 3: try reader.bool(tag, &distinct)
        case 4: try reader.messages(tag, &metadata)
        case 5: try reader.bool(tag, &receiptsOff)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, conversation)
        writer.strings(2, participants)
        writer.bool(3, distinct)
        writer.messages(4, metadata)
        writer.bool(5, receiptsOff)
    }
}

extension AddParticipants {
    public static var empty: AddParticipants { AddParticipants() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &conversation)
        case 2: try reader.strings(tag, &users)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, conversation)
        writer.strings(2, users)
    }
}

extension SendMessage {
    public static var empty: SendMessage { SendMessage() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &conversation)
        case 2: try reader.identifier(tag, &message)
        case 3: try reader.messages(tag, &parts)
        case 4: try reader.message(tag, &push)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, conversation)
        writer.identifier(2, message)
        writer.messages(3, parts)
        writer.message(4, push)
    }
}

extension ForgetDevice {
    public static var empty: ForgetDevice { ForgetDevice() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        try reader.skip(tag)
    }

    public func write(to writer: inout BodyWriter) {
    }
}

extension MutationResult {
    public static var empty: MutationResult { MutationResult() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &number)
        case 2: try reader.uint32(tag, &code)
        case 3: try reader.enumeration(tag, &retry)
        case 4: try reader.uint32(tag, &retryAfterMs)
        case 5: try reader.objectID(tag, &object)
        case 6: try reader.uint64(tag, &position)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, number)
        writer.uint32(2, code)
        writer.enumeration(3, retry)
        writer.uint32(4, retryAfterMs)
        writer.objectID(5, object)
        writer.uint64(6, position)
    }
}
