extension Fetch {
    public static var empty: Fetch { Fetch() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.uint64(2, "above", &above)
        try visitor.uint64(3, "below", &below)
        try visitor.bool(4, "ascending", &ascending)
        try visitor.uint32(5, "limit", &limit)
        try visitor.objectID(6, "object", &object)
        try visitor.bool(7, "receipts", &receipts)
        try visitor.string(8, "after", &after)
    }
}

extension PageFrame {
    public static var empty: PageFrame { PageFrame() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "entries", &entries)
        try visitor.uint64(2, "first", &first)
        try visitor.uint64(3, "last", &last)
        try visitor.bool(4, "more", &more)
        try visitor.uint64(5, "position", &position)
    }
}

extension SnapshotFrame {
    public static var empty: SnapshotFrame { SnapshotFrame() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint32(1, "messages", &messages)
        try visitor.uint32(2, "page_bytes", &pageBytes)
        try visitor.bytes(3, "continuation", &continuation)
    }
}

extension SnapshotPage {
    public static var empty: SnapshotPage { SnapshotPage() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "conversations", &conversations)
        try visitor.messages(2, "entries", &entries)
        try visitor.cursor(3, "start", &start)
        try visitor.bytes(4, "continuation", &continuation)
        try visitor.uint32(5, "unread", optional: &unread)
    }
}

extension SnapshotConversation {
    public static var empty: SnapshotConversation { SnapshotConversation() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.messages(2, "entries", &entries)
        try visitor.uint64(3, "complete_from", &completeFrom)
        try visitor.uint32(4, "unread", &unread)
        try visitor.bool(5, "participants_complete", &participantsComplete)
    }
}
