internal import Model

/// Message `Cursor` while it is read or written: after each occurrence the epoch has its 16 bytes.
struct CursorFields: WireMessage {
    private var epoch: Epoch?
    private var seq: UInt64

    static var empty: CursorFields { CursorFields(nil) }

    init(_ cursor: Cursor?) {
        epoch = cursor?.epoch
        seq = cursor?.seq ?? 0
    }

    /// `nil` without an epoch.
    var cursor: Cursor? { epoch.map { Cursor(epoch: $0, seq: seq) } }

    mutating func fields<V: FieldVisitor>(_ visitor: inout V) throws(V.Failure) {
        try visitor.identifier(1, "epoch", &epoch)
        try visitor.uint64(2, "seq", &seq)
    }
}
