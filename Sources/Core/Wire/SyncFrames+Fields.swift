extension SyncFrame {
    public static var empty: SyncFrame { SyncFrame() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.cursor(1, "cursor", &cursor)
        try visitor.uint64(2, "applied", &applied)
        try visitor.uint32(3, "page_bytes", &pageBytes)
        try visitor.enumeration(4, "mode", &mode)
        try visitor.messages(5, "reads", &reads)
        try visitor.messages(6, "mutations", &mutations)
        try visitor.enumeration(7, "reason", &reason)
        try visitor.uint64(8, "reset_head", &resetHead)
    }
}

extension Delta {
    public static var empty: Delta { Delta() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.messages(1, "entries", &entries)
        try visitor.cursor(2, "from", &from)
        try visitor.cursor(3, "to", &to)
        try visitor.uint64(4, "head", &head)
        try visitor.bool(5, "more", &more)
        try visitor.messages(6, "results", &results)
        try visitor.uint64(7, "mutation_floor", &mutationFloor)
        try visitor.message(8, "reset", &reset)
        try visitor.uint32(9, "unread", &unread)
        try visitor.bool(10, "digest_wanted", &digestWanted)
    }
}

extension SyncRequest {
    public static var empty: SyncRequest { SyncRequest() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "head", &head)
        try visitor.uint32(2, "kinds", &kinds)
        try visitor.bool(3, "urgent", &urgent)
    }
}

extension Ack {
    public static var empty: Ack { Ack() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "applied", &applied)
        try visitor.messages(2, "ranges", &ranges)
        try visitor.messages(3, "reads", &reads)
    }
}

extension ReadReceipt {
    public static var empty: ReadReceipt { ReadReceipt() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "conversation", &conversation)
        try visitor.uint64(2, "through", &through)
        try visitor.messages(3, "ranges", &ranges)
        try visitor.identifier(4, "announcement", &announcement)
    }
}

extension InclusiveRange {
    public static var empty: InclusiveRange { InclusiveRange() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.uint64(1, "first", &first)
        try visitor.uint64(2, "last", &last)
    }
}

extension Reset {
    public static var empty: Reset { Reset() }

    public mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.enumeration(1, "reason", &reason)
        try visitor.uint32(2, "retry_after_ms", &retryAfterMs)
    }
}
