extension PartReference {
    public static var empty: PartReference { PartReference() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.string(tag, &url)
        case 2: try reader.uint64(tag, &size)
        case 3: try reader.bytes(tag, &digest)
        case 4: try reader.uint64(tag, &expiresMs)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.string(1, url)
        writer.uint64(2, size)
        writer.bytes(3, digest)
        writer.uint64(4, expiresMs)
    }
}

extension MetadataState {
    public static var empty: MetadataState { MetadataState() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.messages(tag, &values)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.messages(1, values)
    }
}

extension MetadataValue {
    public static var empty: MetadataValue { MetadataValue() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.strings(tag, &path)
        case 2: try reader.string(tag, &value)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.strings(1, path)
        writer.string(2, value)
    }
}

extension TombstoneState {
    public static var empty: TombstoneState { TombstoneState() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &position)
        case 2: try reader.bool(tag, &conversation)
        case 3: try reader.bool(tag, &forEveryone)
        case 4: try reader.string(tag, &by)
        case 5: try reader.uint64(tag, &deletedMs)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, position)
        writer.bool(2, conversation)
        writer.bool(3, forEveryone)
        writer.string(4, by)
        writer.uint64(5, deletedMs)
    }
}

extension AnnouncementState {
    public static var empty: AnnouncementState { AnnouncementState() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &sentMs)
        case 2: try reader.messages(tag, &parts)
        case 3: try reader.message(tag, &push)
        case 4: try reader.bool(tag, &read)
        case 5: try reader.message(tag, &hints)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, sentMs)
        writer.messages(2, parts)
        writer.message(3, push)
        writer.bool(4, read)
        writer.message(5, hints)
    }
}

extension ConversationSettings {
    public static var empty: ConversationSettings { ConversationSettings() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.bool(tag, &muted)
        case 2: try reader.uint64(tag, &mutedUntilMs)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.bool(1, muted)
        writer.uint64(2, mutedUntilMs)
    }
}

extension BlockState {
    public static var empty: BlockState { BlockState() }

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
