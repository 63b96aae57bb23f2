public import Model
import Wire

/// The tables of a device's local store.
public enum LocalSchema {
    static let records: [any Record.Type] = [
        LocalStateRecord.self, LocalEntryRecord.self, LocalMutationRecord.self,
        LocalResultRecord.self, LocalReadRecord.self, LocalWindowRecord.self,
        LocalOrphanRecord.self, LocalSentRecord.self,
    ]

    public static let tables: [Table] = records.map { $0.table }
}

/// One fact of the device: a number, some bytes, or both.
struct LocalStateRecord: Record, Equatable {
    var name: String
    var number: UInt64 = 0
    var bytes: [UInt8] = []
}

extension LocalStateRecord {
    static let table = Table("local_state", of: Self.self)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        name = c.key("name", row?.name)
        number = c.value("number", row?.number)
        bytes = c.value("bytes", row?.bytes)
    }
}

/// The newest known state of one object (SYN-3).
struct LocalEntryRecord: Record, Equatable {
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
            // In the place of what was deleted: of no conversation it is an announcement.
            let message: UInt64 = entry.conversation == nil ? 6 : 2
            (kind, object, position) =
                state.conversation ? (0, [], 0) : (message, entry.object, state.position)
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

    var key: [ColumnValue] { [.unsigned(kind), .blob(conversation), .blob(object)] }
}

extension LocalEntryRecord {
    static let table = Table(
        "local_entry", of: Self.self,
        indexes: [
            TableIndex("local_entry_by_position", on: "kind", "conversation", "position"),
            TableIndex("local_entry_by_round", on: "round"),
        ])

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        kind = c.key("kind", row?.kind)
        conversation = c.key("conversation", row?.conversation)
        object = c.key("object", row?.object)
        version = c.value("version", row?.version)
        position = c.value("position", row?.position)
        round = c.value("round", row?.round)
        entry = c.value("entry", row?.entry)
    }
}

/// A mutation without a result.
struct LocalMutationRecord: Record, Equatable {
    var number: UInt64
    var queuedAt: Timestamp
    /// `Mutation` in protobuf.
    var mutation: [UInt8]
    /// Of a logout: whether it left, or was about to (MSG-7). `nil`: it was queued by a version of
    /// this program that did not say, and may have.
    var wasSent: Bool? = false
}

extension LocalMutationRecord {
    static let table = Table("local_mutation", of: Self.self)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        number = c.key("number", row?.number)
        queuedAt = c.value("queued_at", row?.queuedAt)
        mutation = c.value("mutation", row?.mutation)
        wasSent = c.value("was_sent", row?.wasSent, since: 3)
    }
}

/// The result of a mutation.
struct LocalResultRecord: Record, Equatable {
    var number: UInt64
    /// `MutationResult` in protobuf.
    var result: [UInt8]
}

extension LocalResultRecord {
    static let table = Table("local_result", of: Self.self)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        number = c.key("number", row?.number)
        result = c.value("result", row?.result)
    }
}

/// A read receipt whose read mark, or announcement, has not come back.
struct LocalReadRecord: Record, Equatable {
    /// As of the receipt.
    var subject: [UInt8]
    /// `ReadReceipt` in protobuf.
    var receipt: [UInt8]
}

extension LocalReadRecord {
    static let table = Table("local_read", of: Self.self)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        subject = c.key("subject", row?.subject)
        receipt = c.value("receipt", row?.receipt)
    }
}

/// From which position on a conversation's messages are all here, up to the cursor's; without a
/// row all of them are, as the feed brings them.
struct LocalWindowRecord: Record, Equatable {
    var conversation: [UInt8]
    var from: UInt64
    /// The reset whose snapshot said so.
    var round: UInt64
}

extension LocalWindowRecord {
    static let table = Table("local_window", of: Self.self)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        conversation = c.key("conversation", row?.conversation)
        from = c.value("from_position", row?.from)
        round = c.value("round", row?.round)
    }
}

/// A conversation of which entries are here, but not its state.
struct LocalOrphanRecord: Record, Equatable {
    var conversation: [UInt8]
}

extension LocalOrphanRecord {
    static let table = Table("local_orphan", of: Self.self)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        conversation = c.key("conversation", row?.conversation)
        c.derived("is_asked", false)
    }
}

/// A message of this device that was answered and of which the feed has not told.
struct LocalSentRecord: Record, Equatable {
    var message: [UInt8]
    var conversation: [UInt8]
    /// Of its mutation.
    var number: UInt64
    var queuedAt: Timestamp
    /// `SendMessage` in protobuf.
    var send: [UInt8]
    /// 0: the server has taken it.
    var code: UInt64
    /// 0: none is known.
    var position: UInt64
}

extension LocalSentRecord {
    static let table = Table("local_sent", of: Self.self, since: 2)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        message = c.key("message", row?.message)
        conversation = c.value("conversation", row?.conversation)
        number = c.value("number", row?.number)
        queuedAt = c.value("queued_at", row?.queuedAt)
        send = c.value("send", row?.send)
        code = c.value("code", row?.code)
        position = c.value("position", row?.position)
    }
}
