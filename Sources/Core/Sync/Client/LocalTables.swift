public import Model
import Wire

/// The tables of a device's local store.
public enum LocalSchema {
    static let records: [any Record.Type] = [
        LocalStateRecord.self, LocalEntryRecord.self, LocalMutationRecord.self,
        LocalResultRecord.self, LocalReadRecord.self, LocalWindowRecord.self,
        LocalOrphanRecord.self,
    ]

    public static let tables: [Table] = records.map { $0.table }
}

/// One fact of the device: a number, some bytes, or both.
struct LocalStateRecord: Record, Equatable {
    static let table = Table(
        "local_state", key: [Column("name", .text)],
        values: [Column("number", .integer), Column("bytes", .blob)])

    var name: String
    var number: UInt64 = 0
    var bytes: [UInt8] = []

    init(name: String, number: UInt64 = 0, bytes: [UInt8] = []) {
        self.name = name
        self.number = number
        self.bytes = bytes
    }

    init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        name = try reader.text()
        number = try reader.unsigned()
        bytes = try reader.blob()
    }

    var row: [ColumnValue] { [.text(name), .unsigned(number), .blob(bytes)] }
}

/// The newest known state of one object (SYN-3).
struct LocalEntryRecord: Record, Equatable {
    static let table = Table(
        "local_entry",
        key: [Column("kind", .integer), Column("conversation", .blob), Column("object", .blob)],
        values: [
            Column("version", .integer), Column("position", .integer),
            Column("round", .integer), Column("entry", .blob),
        ],
        indexes: [
            TableIndex("local_entry_by_position", on: "kind", "conversation", "position"),
            TableIndex("local_entry_by_round", on: "round"),
        ])

    /// A number of its own for each kind of object; never renumbered.
    var kind: UInt64
    /// The highest kind there is.
    static let kindMax: UInt64 = 9
    /// No object: up to which position the user deleted the conversation's messages (MSG-36). The
    /// tombstone that said so makes room for the conversation when that returns.
    static let clearedKind: UInt64 = 9
    var conversation: [UInt8]
    /// The message's id, or a user's name in UTF-8; empty for a conversation and a read mark.
    var object: [UInt8]
    var version: UInt64
    /// Of a message, in its conversation; else 0.
    var position: UInt64
    /// The reset in whose course, or after which, the row was met last; it is stale if that is
    /// not the newest one.
    var round: UInt64
    /// `Entry` in protobuf.
    var entry: [UInt8]

    /// `nil` for a body this client does not know.
    init?(_ entry: Entry, round: UInt64) {
        switch entry.body {
        case .conversationState: (kind, object, position) = (0, [], 0)
        case .participant(let state): (kind, object, position) = (1, Array(state.user.utf8), 0)
        case .message(let state): (kind, object, position) = (2, entry.object, state.position)
        case .receipt(let state): (kind, object, position) = (3, Array(state.user.utf8), 0)
        case .readMark: (kind, object, position) = (4, [], 0)
        case .tombstone(let state):
            // In the place of what was deleted.
            (kind, object, position) =
                state.conversation ? (0, [], 0) : (2, entry.object, state.position)
        case .metadata: (kind, object, position) = (5, [], 0)
        case .announcement: (kind, object, position) = (6, entry.object, 0)
        case .conversationSettings: (kind, object, position) = (7, [], 0)
        case .block(let state): (kind, object, position) = (8, Array(state.user.utf8), 0)
        case nil: return nil
        }
        conversation = entry.conversation?.bytes ?? []
        version = entry.version
        self.round = round
        self.entry = entry.encoded
    }

    /// Messages up to `position` were deleted.
    init(cleared conversation: [UInt8], through position: UInt64, round: UInt64) {
        kind = Self.clearedKind
        self.conversation = conversation
        object = []
        version = 0
        self.position = position
        self.round = round
        entry = []
    }

    init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        kind = try reader.unsigned()
        conversation = try reader.blob()
        object = try reader.blob()
        version = try reader.unsigned()
        position = try reader.unsigned()
        round = try reader.unsigned()
        entry = try reader.blob()
    }

    /// The same state. A message sent again to a restored server has its old version at another
    /// position.
    func isSame(as other: LocalEntryRecord) -> Bool {
        version == other.version && position == other.position
    }

    var key: [ColumnValue] { [.unsigned(kind), .blob(conversation), .blob(object)] }

    var row: [ColumnValue] {
        key + [.unsigned(version), .unsigned(position), .unsigned(round), .blob(entry)]
    }
}

/// A mutation without a result.
struct LocalMutationRecord: Record, Equatable {
    static let table = Table(
        "local_mutation", key: [Column("number", .integer)],
        values: [Column("queued_at", .integer), Column("mutation", .blob)])

    var number: UInt64
    var queuedAt: Timestamp
    /// `Mutation` in protobuf.
    var mutation: [UInt8]

    init(number: UInt64, queuedAt: Timestamp, mutation: [UInt8]) {
        self.number = number
        self.queuedAt = queuedAt
        self.mutation = mutation
    }

    init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        number = try reader.unsigned()
        queuedAt = try reader.timestamp()
        mutation = try reader.blob()
    }

    var row: [ColumnValue] { [.unsigned(number), .timestamp(queuedAt), .blob(mutation)] }
}

/// The result of a mutation.
struct LocalResultRecord: Record, Equatable {
    static let table = Table(
        "local_result", key: [Column("number", .integer)], values: [Column("result", .blob)])

    var number: UInt64
    /// `MutationResult` in protobuf.
    var result: [UInt8]

    init(number: UInt64, result: [UInt8]) {
        self.number = number
        self.result = result
    }

    init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        number = try reader.unsigned()
        result = try reader.blob()
    }

    var row: [ColumnValue] { [.unsigned(number), .blob(result)] }
}

/// A read receipt whose read mark, or announcement, has not come back.
struct LocalReadRecord: Record, Equatable {
    static let table = Table(
        "local_read", key: [Column("subject", .blob)], values: [Column("receipt", .blob)])

    /// As of the receipt.
    var subject: [UInt8]
    /// `ReadReceipt` in protobuf.
    var receipt: [UInt8]

    init(subject: [UInt8], receipt: [UInt8]) {
        self.subject = subject
        self.receipt = receipt
    }

    init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        subject = try reader.blob()
        receipt = try reader.blob()
    }

    var row: [ColumnValue] { [.blob(subject), .blob(receipt)] }
}

/// From which position on a conversation's messages are all here, up to the cursor's; without a
/// row all of them are, as the feed brings them.
struct LocalWindowRecord: Record, Equatable {
    static let table = Table(
        "local_window", key: [Column("conversation", .blob)],
        values: [Column("from_position", .integer), Column("round", .integer)])

    var conversation: [UInt8]
    var from: UInt64
    /// The reset whose snapshot said so.
    var round: UInt64

    init(conversation: [UInt8], from: UInt64, round: UInt64) {
        self.conversation = conversation
        self.from = from
        self.round = round
    }

    init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        conversation = try reader.blob()
        from = try reader.unsigned()
        round = try reader.unsigned()
    }

    var row: [ColumnValue] { [.blob(conversation), .unsigned(from), .unsigned(round)] }
}

/// A conversation of which entries are here, but not its state.
struct LocalOrphanRecord: Record, Equatable {
    static let table = Table(
        "local_orphan", key: [Column("conversation", .blob)],
        values: [Column("is_asked", .integer)])

    var conversation: [UInt8]

    init(conversation: [UInt8]) { self.conversation = conversation }

    init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        conversation = try reader.blob()
        _ = try reader.flag()
    }

    var row: [ColumnValue] { [.blob(conversation), .flag(false)] }
}
