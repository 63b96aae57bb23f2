extension Entry {
    public static var empty: Entry { Entry() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &seq)
        case 2: try reader.identifier(tag, &conversation)
        case 3: try reader.objectID(tag, &object)
        case 4: try reader.uint64(tag, &version)
        case 5: try reader.bool(tag, &alerted)
        case 10:
            var value: ConversationState?
            if case .conversationState(let earlier) = body { value = earlier }
            body.release(for: value)
            try reader.message(tag, &value)
            if let value { body = .conversationState(value) }
        case 11:
            var value: ParticipantState?
            if case .participant(let earlier) = body { value = earlier }
            body.release(for: value)
            try reader.message(tag, &value)
            if let value { body = .participant(value) }
        case 12:
            var value: MessageState?
            if case .message(let earlier) = body { value = earlier }
            body.release(for: value)
            try reader.message(tag, &value)
            if let value { body = .message(value) }
        case 13:
            var value: ReceiptState?
            if case .receipt(let earlier) = body { value = earlier }
            body.release(for: value)
            try reader.message(tag, &value)
            if let value { body = .receipt(value) }
        case 14:
            var value: ReadMarkState?
            if case .readMark(let earlier) = body { value = earlier }
            body.release(for: value)
            try reader.message(tag, &value)
            if let value { body = .readMark(value) }
        case 15:
            var value: TombstoneState?
            if case .tombstone(let earlier) = body { value = earlier }
            body.release(for: value)
            try reader.message(tag, &value)
            if let value { body = .tombstone(value) }
        case 16:
            var value: MetadataState?
            if case .metadata(let earlier) = body { value = earlier }
            body.release(for: value)
            try reader.message(tag, &value)
            if let value { body = .metadata(value) }
        case 17:
            var value: AnnouncementState?
            if case .announcement(let earlier) = body { value = earlier }
            body.release(for: value)
            try reader.message(tag, &value)
            if let value { body = .announcement(value) }
        case 18:
            var value: ConversationSettings?
            if case .conversationSettings(let earlier) = body { value = earlier }
            body.release(for: value)
            try reader.message(tag, &value)
            if let value { body = .conversationSettings(value) }
        case 19:
            var value: BlockState?
            if case .block(let earlier) = body { value = earlier }
            body.release(for: value)
            try reader.message(tag, &value)
            if let value { body = .block(value) }
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, seq)
        if let bytes = shared.bytes {
            writer.append(encoded: bytes)
        } else {
            writeRest(to: &writer)
        }
    }

    /// The fields behind `seq`.
    func writeRest(to writer: inout BodyWriter) {
        writer.identifier(2, conversation)
        writer.objectID(3, object)
        writer.uint64(4, version)
        writer.bool(5, alerted)
        switch body {
        case .conversationState(let value): writer.message(10, value)
        case .participant(let value): writer.message(11, value)
        case .message(let value): writer.message(12, value)
        case .receipt(let value): writer.message(13, value)
        case .readMark(let value): writer.message(14, value)
        case .tombstone(let value): writer.message(15, value)
        case .metadata(let value): writer.message(16, value)
        case .announcement(let value): writer.message(17, value)
        case .conversationSettings(let value): writer.message(18, value)
        case .block(let value): writer.message(19, value)
        case nil: break
        }
    }
}

extension ConversationState {
    public static var empty: ConversationState { ConversationState() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &createdMs)
        case 2: try reader.string(tag, &creator)
        case 3: try reader.bool(tag, &distinct)
        case 4: try reader.bool(tag, &receiptsOff)
        case 5: try reader.uint32(tag, &participants)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, createdMs)
        writer.string(2, creator)
        writer.bool(3, distinct)
        writer.bool(4, receiptsOff)
        writer.uint32(5, participants)
    }
}

extension ParticipantState {
    public static var empty: ParticipantState { ParticipantState() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.string(tag, &user)
        case 2: try reader.uint64(tag, &joinedPosition)
        case 3: try reader.bool(tag, &removed)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.string(1, user)
        writer.uint64(2, joinedPosition)
        writer.bool(3, removed)
    }
}

extension MessageState {
    public static var empty: MessageState { MessageState() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &position)
        case 2: try reader.string(tag, &sender)
        case 3: try reader.uint64(tag, &sentMs)
        case 4: try reader.messages(tag, &parts)
        case 5: try reader.message(tag, &push)
        case 6: try reader.uint64(tag, &editedMs)
        case 7: try reader.message(tag, &hints)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, position)
        writer.string(2, sender)
        writer.uint64(3, sentMs)
        content.write(to: &writer)
        writer.message(5, push)
        writer.uint64(6, editedMs)
        writer.message(7, hints)
    }
}

extension Part {
    public static var empty: Part { Part() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.string(tag, &mimeType)
        case 2: try reader.bytes(tag, &content)
        case 3: try reader.message(tag, &reference)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.string(1, mimeType)
        writer.bytes(2, content)
        writer.message(3, reference)
    }
}

extension PushText {
    public static var empty: PushText { PushText() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.string(tag, &title)
        case 2: try reader.string(tag, &body)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.string(1, title)
        writer.string(2, body)
    }
}

extension ReceiptState {
    public static var empty: ReceiptState { ReceiptState() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.string(tag, &user)
        case 2: try reader.uint64(tag, &deliveredThrough)
        case 3: try reader.uint64(tag, &readThrough)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.string(1, user)
        writer.uint64(2, deliveredThrough)
        writer.uint64(3, readThrough)
    }
}

extension ReadMarkState {
    public static var empty: ReadMarkState { ReadMarkState() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.uint64(tag, &through)
        case 2: try reader.messages(tag, &ranges)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.uint64(1, through)
        writer.messages(2, ranges)
    }
}
