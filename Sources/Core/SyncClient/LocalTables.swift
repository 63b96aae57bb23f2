public import Model
import Wire

/// The tables of a device's local store.
public enum LocalSchema {
    static let records: [any Record.Type] = [
        LocalStateRecord.self, LocalEntryRecord.self, LocalMutationRecord.self,
        LocalResultRecord.self, LocalReadRecord.self, LocalWindowRecord.self,
        LocalOrphanRecord.self, LocalSentRecord.self, LocalRefusedRecord.self,
        LocalLostConversationRecord.self, LocalLostRecord.self,
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

/// The kinds of objects, as rows number them; never renumbered. A row of another kind, of a newer
/// version of the app, can be read.
struct LocalKind: StoredNumber, Equatable {
    let rawValue: UInt64

    static let conversation = LocalKind(rawValue: 0)
    static let participant = LocalKind(rawValue: 1)
    /// Or what is left of one that was deleted.
    static let message = LocalKind(rawValue: 2)
    static let receipt = LocalKind(rawValue: 3)
    static let readMark = LocalKind(rawValue: 4)
    static let metadata = LocalKind(rawValue: 5)
    /// Or what is left of one that was taken back.
    static let announcement = LocalKind(rawValue: 6)
    static let settings = LocalKind(rawValue: 7)
    static let block = LocalKind(rawValue: 8)
    /// No object: up to which position the user deleted the conversation's messages (MSG-36). The
    /// tombstone that said so makes room for the conversation when that returns.
    static let cleared = LocalKind(rawValue: 9)

    static let all = (0...9).map { LocalKind(rawValue: $0) }
}

/// The newest known state of one object (SYN-3).
struct LocalEntryRecord: Record, Equatable {
    var kind: LocalKind
    var conversation: [UInt8]
    /// The message's id, or a user's name in UTF-8; empty for a conversation and a read mark.
    var object: [UInt8] = []
    var version: UInt64
    /// Of a message, in its conversation; else 0.
    var position: UInt64 = 0
    /// The reset in whose course, or after which, the row was met last; it is stale if that is
    /// not the newest one.
    var round: UInt64
    /// `Entry` in protobuf.
    var entry: [UInt8]

    /// `nil` for a body this client does not know.
    init?(_ entry: Entry, round: UInt64) {
        switch entry.body {
        case .conversationState: kind = .conversation
        case .participant(let state): (kind, object) = (.participant, Array(state.user.utf8))
        case .message(let state):
            (kind, object, position) = (.message, entry.object, state.position)
        case .receipt(let state): (kind, object) = (.receipt, Array(state.user.utf8))
        case .readMark: kind = .readMark
        // In the place of what was deleted.
        case .tombstone(let state) where state.conversation: kind = .conversation
        case .tombstone(let state):
            // Of no conversation it is an announcement.
            kind = entry.conversation == nil ? .announcement : .message
            (object, position) = (entry.object, state.position)
        case .metadata: kind = .metadata
        case .announcement: (kind, object) = (.announcement, entry.object)
        case .conversationSettings: kind = .settings
        case .block(let state): (kind, object) = (.block, Array(state.user.utf8))
        case nil: return nil
        }
        conversation = entry.conversation?.bytes ?? []
        version = entry.version
        self.round = round
        self.entry = entry.encoded
    }

    /// Messages up to `position` were deleted.
    init(cleared conversation: [UInt8], through position: UInt64, round: UInt64) {
        kind = .cleared
        self.conversation = conversation
        version = 0
        self.position = position
        self.round = round
        entry = []
    }

    var key: [ColumnValue] { Self.key(kind, conversation, object) }

    static func key(
        _ kind: LocalKind, _ conversation: [UInt8], _ object: [UInt8] = []
    ) -> [ColumnValue] {
        [.unsigned(kind.rawValue), .blob(conversation), .blob(object)]
    }
}

extension Scan {
    /// All rows of a kind, or those of one conversation.
    init(_ kind: LocalKind, of conversation: [UInt8]? = nil, limit: Int = .max) {
        self.init(prefix: [.unsigned(kind.rawValue)], limit: limit)
        if let conversation { prefix.append(.blob(conversation)) }
    }

    /// The rows of a conversation's messages by position.
    init(messagesOf conversation: [UInt8], limit: Int) {
        self.init(.message, of: conversation, limit: limit)
        index = "local_entry_by_position"
    }
}

extension StoreSnapshot {
    /// What is stored of one object; `nil`: nothing.
    func entry(
        _ kind: LocalKind, of conversation: [UInt8], _ object: [UInt8] = []
    ) throws(StoreError) -> Entry? {
        let key = LocalEntryRecord.key(kind, conversation, object)
        guard let row = try record(LocalEntryRecord.self, key) else { return nil }
        return try TableLocalStore.decoded(row.entry) as Entry
    }

    func entries(_ scan: Scan) throws(StoreError) -> [Entry] {
        var entries: [Entry] = []
        for row in try records(LocalEntryRecord.self, scan) {
            entries.append(try TableLocalStore.decoded(row.entry))
        }
        return entries
    }
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
    /// Whether all participants are here, as far as this device has synced; `nil`: the version of
    /// this program that stored it did not say.
    var hasParticipants: Bool? = false
}

extension LocalWindowRecord {
    static let table = Table("local_window", of: Self.self)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        conversation = c.key("conversation", row?.conversation)
        from = c.value("from_position", row?.from)
        round = c.value("round", row?.round)
        hasParticipants = c.value("has_participants", row?.hasParticipants, since: 4)
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

/// What the server refused to change; of messages that were sent it is `LocalSentRecord`.
struct LocalRefusedRecord: Record, Equatable {
    /// Of the mutation.
    var number: UInt64
    var queuedAt: Timestamp
    /// `Mutation` in protobuf.
    var mutation: [UInt8]
    var code: UInt64
}

extension LocalRefusedRecord {
    static let table = Table("local_refused", of: Self.self, since: 4)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        number = c.key("number", row?.number)
        queuedAt = c.value("queued_at", row?.queuedAt)
        mutation = c.value("mutation", row?.mutation)
        code = c.value("code", row?.code)
    }
}

/// A conversation that a restored server has lost, for whose return messages wait (HIS-39).
struct LocalLostConversationRecord: Record, Equatable {
    var conversation: [UInt8]
    /// They wait no longer.
    var until: Timestamp
    /// `Audience` as it is encoded, as of before the restore; empty: it was not known.
    var audience: [UInt8]
}

extension LocalLostConversationRecord {
    static let table = Table("local_lost_conversation", of: Self.self, since: 4)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        conversation = c.key("conversation", row?.conversation)
        until = c.value("until", row?.until)
        audience = c.value("audience", row?.audience)
    }
}

/// A message of this user that waits for the return of its conversation.
struct LocalLostRecord: Record, Equatable {
    var conversation: [UInt8]
    var message: [UInt8]
    var madeAt: Timestamp
    /// As of `LostMessage`.
    var position: UInt64
    /// `SendMessage` in protobuf.
    var send: [UInt8]
}

extension LocalLostRecord {
    static let table = Table("local_lost", of: Self.self, since: 4)

    init(columns c: inout some ColumnVisitor, of row: Self?) {
        conversation = c.key("conversation", row?.conversation)
        message = c.key("message", row?.message)
        madeAt = c.value("made_at", row?.madeAt)
        position = c.value("position", row?.position)
        send = c.value("send", row?.send)
    }
}
