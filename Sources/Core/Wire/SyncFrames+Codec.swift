extension SyncFrame {
    public static var empty: SyncFrame { SyncFrame() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.cursor(tag, &cursor)
        case 2: try reader.uint64(tag, &applied)
        case 3: try reader.uint32(tag, &pageBytes)
        case 4: try reader.enumeration(tag, &mode)
        case 5: try reader.messages(tag, &reads)
        case 6: try reader.messages(tag, &mutations)
        case 7: try reader.enumeration(tag, &reason)
        case 8: try reader.uint64(tag, &resetHead)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.cursor(1, cursor)
        writer.uint64(2, applied)
        writer.uint32(3, pageBytes)
        writer.enumeration(4, mode)
        writer.messages(5, reads)
        writer.messages(6, mutations)
        writer.enumeration(7, reason)
        writer.uint64(8, resetHead)
    }
}

extension Delta {
    public static var empty: Delta { Delta() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.messages(tag, &entries)
        case 2: try reader.cursor(tag, &from)
        case 3: try reader.cursor(tag, &to)
        case 4: try reader.uint64(tag, &head)
        case 5: try reader.bool(tag, &more)
        case 6: try reader.messages(tag, &results)
        case 7: try reader.uint64(tag, &mutationFloor)
        case 8: try reader.message(tag, &reset)
        case 9: try reader.uint32(tag, &unread)
        case 10: try reader.bool(tag, &digestWanted)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.messages(1, entries)
        writer.cursor(2, from)
        writer.cursor(3, to)
        writer.uint64(4, head)
        writer.bool(5, more)
        writer.messages(6, results)
        writer.uint64(7, mutationFloor)
        writer.message(8, reset)
        writer.uint32(9, unread)
        writer.bool(10, digestWanted)
    }
}

extension SyncRequest {
    public static var empty: SyncRequest { SyncRequest() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &head)
        case 2: try reader.uint32(tag, &kinds)
        case 3: try reader.bool(tag, &urgent)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, head)
        writer.uint32(2, kinds)
        writer.bool(3, urgent)
    }
}

extension Ack {
    public static var empty: Ack { Ack() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &applied)
        case 2: try reader.messages(tag, &ranges)
        case 3: try reader.messages(tag, &reads)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, applied)
        writer.messages(2, ranges)
        writer.messages(3, reads)
    }
}

extension ReadReceipt {
    public static var empty: ReadReceipt { ReadReceipt() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.identifier(tag, &conversation)
        case 2: try reader.uint64(tag, &through)
        case 3: try reader.messages(tag, &ranges)
        case 4: try reader.identifier(tag, &announcement)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.identifier(1, conversation)
        writer.uint64(2, through)
        writer.messages(3, ranges)
        writer.identifier(4, announcement)
    }
}

extension InclusiveRange {
    public static var empty: InclusiveRange { InclusiveRange() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &first)
        case 2: try reader.uint64(tag, &last)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, first)
        writer.uint64(2, last)
    }
}

extension Reset {
    public static var empty: Reset { Reset() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.enumeration(tag, &reason)
        case 2: try reader.uint32(tag, &retryAfterMs)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.enumeration(1, reason)
        writer.uint32(2, retryAfterMs)
    }
}
