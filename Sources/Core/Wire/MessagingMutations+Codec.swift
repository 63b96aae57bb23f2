extension RemoveParticipants {
    public static var empty: RemoveParticipants { RemoveParticipants() }

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

extension EditMessage {
    public static var empty: EditMessage { EditMessage() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &message)
        case 2: try reader.messages(tag, &parts)
        case 3: try reader.message(tag, &push)
        case 4: try reader.uint64(tag, &baseVersion)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, message)
        writer.messages(2, parts)
        writer.message(3, push)
        writer.uint64(4, baseVersion)
    }
}

extension DeleteMessage {
    public static var empty: DeleteMessage { DeleteMessage() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &message)
        case 2: try reader.bool(tag, &forEveryone)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, message)
        writer.bool(2, forEveryone)
    }
}

extension DeleteConversation {
    public static var empty: DeleteConversation { DeleteConversation() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &conversation)
        case 2: try reader.bool(tag, &forEveryone)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, conversation)
        writer.bool(2, forEveryone)
    }
}

extension ChangeMetadata {
    public static var empty: ChangeMetadata { ChangeMetadata() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &conversation)
        case 2: try reader.messages(tag, &changes)
        case 3: try reader.uint64(tag, &baseVersion)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, conversation)
        writer.messages(2, changes)
        writer.uint64(3, baseVersion)
    }
}

extension MetadataChange {
    public static var empty: MetadataChange { MetadataChange() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.strings(tag, &path)
        case 2: try reader.string(tag, &value)
        case 3: try reader.bool(tag, &removed)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.strings(1, path)
        writer.string(2, value)
        writer.bool(3, removed)
    }
}

extension MuteConversation {
    public static var empty: MuteConversation { MuteConversation() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &conversation)
        case 2: try reader.bool(tag, &muted)
        case 3: try reader.uint64(tag, &forMs)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, conversation)
        writer.bool(2, muted)
        writer.uint64(3, forMs)
    }
}

extension BlockUser {
    public static var empty: BlockUser { BlockUser() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.string(tag, &user)
        case 2: try reader.bool(tag, &blocked)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.string(1, user)
        writer.bool(2, blocked)
    }
}
