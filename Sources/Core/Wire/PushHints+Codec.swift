extension PushHints {
    public static var empty: PushHints { PushHints() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.string(tag, &subtitle)
        case 2: try reader.message(tag, &titleKey)
        case 3: try reader.message(tag, &subtitleKey)
        case 4: try reader.message(tag, &bodyKey)
        case 5: try reader.message(tag, &sound)
        case 6: try reader.string(tag, &thread)
        case 7: try reader.string(tag, &category)
        case 8: try reader.enumeration(tag, &interruptionLevel)
        case 9: try reader.uint32(tag, &relevance)
        case 10: try reader.string(tag, &targetContent)
        case 11: try reader.string(tag, &event)
        case 12: try reader.string(tag, &object)
        case 13: try reader.string(tag, &data)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.string(1, subtitle)
        writer.message(2, titleKey)
        writer.message(3, subtitleKey)
        writer.message(4, bodyKey)
        writer.message(5, sound)
        writer.string(6, thread)
        writer.string(7, category)
        writer.enumeration(8, interruptionLevel)
        writer.uint32(9, relevance)
        writer.string(10, targetContent)
        writer.string(11, event)
        writer.string(12, object)
        writer.string(13, data)
    }
}

extension LocalizedText {
    public static var empty: LocalizedText { LocalizedText() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.string(tag, &key)
        case 2: try reader.strings(tag, &arguments)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.string(1, key)
        writer.strings(2, arguments)
    }
}

extension PushSound {
    public static var empty: PushSound { PushSound() }

    public mutating func read(_ tag: FieldTag, from reader: inout BodyReader) throws(WireError) {
        switch tag.number {
        case 1: try reader.enumeration(tag, &kind)
        case 2: try reader.string(tag, &name)
        case 3: try reader.uint32(tag, &volume)
        default: try reader.skip(tag)
        }
    }

    public func write(to writer: inout BodyWriter) {
        writer.enumeration(1, kind)
        writer.string(2, name)
        writer.uint32(3, volume)
    }
}
