extension PushHints {
    public static var empty: PushHints { PushHints() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "subtitle", &subtitle)
        try visitor.message(2, "title_key", &titleKey)
        try visitor.message(3, "subtitle_key", &subtitleKey)
        try visitor.message(4, "body_key", &bodyKey)
        try visitor.message(5, "sound", &sound)
        try visitor.string(6, "thread", &thread)
        try visitor.string(7, "category", &category)
        try visitor.enumeration(8, "interruption_level", &interruptionLevel)
        try visitor.uint32(9, "relevance", &relevance)
        try visitor.string(10, "target_content", &targetContent)
        try visitor.string(11, "event", &event)
        try visitor.string(12, "object", &object)
        try visitor.string(13, "data", &data)
    }
}

extension LocalizedText {
    public static var empty: LocalizedText { LocalizedText() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.string(1, "key", &key)
        try visitor.strings(2, "arguments", &arguments)
    }
}

extension PushSound {
    public static var empty: PushSound { PushSound() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.enumeration(1, "kind", &kind)
        try visitor.string(2, "name", &name)
        try visitor.uint32(3, "volume", &volume)
    }
}
