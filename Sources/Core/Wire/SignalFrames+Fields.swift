extension Signal {
    public static var empty: Signal { Signal() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.enumeration(2, "kind", &kind)
        try visitor.uint32(3, "ttl_ms", &ttlMs)
        try visitor.string(4, "user", &user)
    }
}

extension DigestFrame {
    public static var empty: DigestFrame { DigestFrame() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.cursor(1, "cursor", &cursor)
        try visitor.message(2, "conversations", &conversations)
        try visitor.message(3, "read_marks", &readMarks)
        try visitor.message(4, "messages", &messages)
        try visitor.uint32(5, "positions", &positions)
    }
}

extension DigestResult {
    public static var empty: DigestResult { DigestResult() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.cursor(1, "cursor", &cursor)
        try visitor.bool(2, "comparable", &comparable)
        try visitor.message(3, "conversations", &conversations)
        try visitor.message(4, "read_marks", &readMarks)
        try visitor.message(5, "messages", &messages)
    }
}

extension DigestSum {
    public static var empty: DigestSum { DigestSum() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "count", &count)
        try visitor.uint64(2, "hash", &hash)
    }
}
