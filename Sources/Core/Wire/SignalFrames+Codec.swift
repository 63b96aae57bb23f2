extension Signal {
    public static var empty: Signal { Signal() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &conversation)
        case 2: try reader.enumeration(tag, &kind)
        case 3: try reader.uint32(tag, &ttlMs)
        case 4: try reader.string(tag, &user)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, conversation)
        writer.enumeration(2, kind)
        writer.uint32(3, ttlMs)
        writer.string(4, user)
    }
}

extension DigestFrame {
    public static var empty: DigestFrame { DigestFrame() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.cursor(tag, &cursor)
        case 2: try reader.message(tag, &conversations)
        case 3: try reader.message(tag, &readMarks)
        case 4: try reader.message(tag, &messages)
        case 5: try reader.uint32(tag, &positions)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.cursor(1, cursor)
        writer.message(2, conversations)
        writer.message(3, readMarks)
        writer.message(4, messages)
        writer.uint32(5, positions)
    }
}

extension DigestResult {
    public static var empty: DigestResult { DigestResult() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.cursor(tag, &cursor)
        case 2: try reader.bool(tag, &comparable)
        case 3: try reader.message(tag, &conversations)
        case 4: try reader.message(tag, &readMarks)
        case 5: try reader.message(tag, &messages)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.cursor(1, cursor)
        writer.bool(2, comparable)
        writer.message(3, conversations)
        writer.message(4, readMarks)
        writer.message(5, messages)
    }
}

extension DigestSum {
    public static var empty: DigestSum { DigestSum() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &count)
        case 2: try reader.uint64(tag, &hash)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, count)
        writer.uint64(2, hash)
    }
}
