extension Fetch {
    public static var empty: Fetch { Fetch() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &conversation)
        case 2: try reader.uint64(tag, &above)
        case 3: try reader.uint64(tag, &below)
        case 4: try reader.bool(tag, &ascending)
        case 5: try reader.uint32(tag, &limit)
        case 6: try reader.objectID(tag, &object)
        case 7: try reader.bool(tag, &receipts)
        case 8: try reader.string(tag, &after)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, conversation)
        writer.uint64(2, above)
        writer.uint64(3, below)
        writer.bool(4, ascending)
        writer.uint32(5, limit)
        writer.objectID(6, object)
        writer.bool(7, receipts)
        writer.string(8, after)
    }
}

extension PageFrame {
    public static var empty: PageFrame { PageFrame() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.messages(tag, &entries)
        case 2: try reader.uint64(tag, &first)
        case 3: try reader.uint64(tag, &last)
        case 4: try reader.bool(tag, &more)
        case 5: try reader.uint64(tag, &position)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.messages(1, entries)
        writer.uint64(2, first)
        writer.uint64(3, last)
        writer.bool(4, more)
        writer.uint64(5, position)
    }
}

extension SnapshotFrame {
    public static var empty: SnapshotFrame { SnapshotFrame() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint32(tag, &messages)
        case 2: try reader.uint32(tag, &pageBytes)
        case 3: try reader.bytes(tag, &continuation)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint32(1, messages)
        writer.uint32(2, pageBytes)
        writer.bytes(3, continuation)
    }
}

extension SnapshotPage {
    public static var empty: SnapshotPage { SnapshotPage() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.messages(tag, &conversations)
        case 2: try reader.messages(tag, &entries)
        case 3: try reader.cursor(tag, &start)
        case 4: try reader.bytes(tag, &continuation)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.messages(1, conversations)
        writer.messages(2, entries)
        writer.cursor(3, start)
        writer.bytes(4, continuation)
    }
}

extension SnapshotConversation {
    public static var empty: SnapshotConversation { SnapshotConversation() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &conversation)
        case 2: try reader.messages(tag, &entries)
        case 3: try reader.uint64(tag, &completeFrom)
        case 4: try reader.uint32(tag, &unread)
        case 5: try reader.bool(tag, &participantsComplete)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, conversation)
        writer.messages(2, entries)
        writer.uint64(3, completeFrom)
        writer.uint32(4, unread)
        writer.bool(5, participantsComplete)
    }
}
