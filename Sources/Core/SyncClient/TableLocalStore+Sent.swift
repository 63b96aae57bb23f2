public import Model
internal import Wire

/// A message that this device has sent, or is to send, and of which the feed has not told.
struct PendingMessage: Equatable {
    var reference: MessageReference
    var send: SendMessage
    var sentAt: Timestamp
    /// Of its mutation.
    var number: UInt64
    /// The server has taken it, at this place; it is in no feed here yet.
    var position: UInt64?
    var refusal: Refusal?
    /// It waits for an answer.
    var isQueued = false

    /// - Parameter sent: the numbers of the mutations that are on their way.
    func delivery(_ sent: Set<UInt64>) -> Delivery {
        if let refusal { return .refused(refusal) }
        guard isQueued else { return .accepted }
        return sent.contains(number) ? .sent : .queued
    }
}

/// What this device has said and the feed has not told of: as a person sees it, it is done.
struct UntoldChanges: Equatable {
    /// Oldest first.
    var messages: [PendingMessage] = []
    var answered: AnsweredChanges
    /// What the server has not answered.
    var queued = MessageChanges()
    /// What it refused, the last of each message.
    var refused: [MessageID: RefusedChange] = [:]

    /// `nil`: it was deleted here.
    func shown(_ row: MessageRow) -> MessageRow? {
        guard !isDeleted(row.id) else { return nil }
        var row = row
        row.refusedChange = refused[row.id]
        guard let edit = edit(of: row) else { return row }
        let isQueued = queued.edits[row.id] != nil
        (row.parts, row.push, row.isEditQueued) = (edit.parts, edit.push, isQueued)
        // A second edit rests on the first one, whose version nobody knows yet.
        row.version = 0
        return row
    }

    func concerns(_ row: MessageRow) -> Bool {
        isDeleted(row.id) || edit(of: row) != nil || refused[row.id] != nil
    }

    private func isDeleted(_ message: MessageID) -> Bool {
        queued.deleted.contains(message) || answered.changes.deleted.contains(message)
    }

    private func edit(of row: MessageRow) -> EditMessage? {
        queued.edits[row.id] ?? answered.edit(of: row.id, since: row.version)
    }
}

/// What this device has made of messages that others have, or may have.
struct MessageChanges: Equatable {
    /// The last of each message.
    var edits: [MessageID: EditMessage] = [:]
    var deleted: Set<MessageID> = []

    mutating func note(_ operation: Mutation.Operation?) {
        switch operation {
        case .editMessage(let edit):
            if let message = edit.message { edits[message] = edit }
        case .deleteMessage(let deletion):
            if let message = deletion.message { deleted.insert(message) }
        default: break
        }
    }
}

// Messages of this device between their answer and their entry, and those that the server does
// not take: a person who wrote a text does not lose it because a server says no.
extension TableLocalStore {
    /// Kept at a time; of more the oldest go.
    static let sentMax = 256
    /// The newest of the outbox that are shown.
    static let queuedMax = 1_024

    /// Puts a message that was refused into the outbox again, as it is. Its number; `nil`: it is
    /// not there.
    public func resend(
        _ message: MessageReference, at time: Timestamp
    ) throws(LocalStoreError) -> UInt64? {
        try write { transaction throws(StoreError) in
            guard let row = try Self.refused(message, transaction) else { return nil }
            try transaction.delete(LocalSentRecord.self, [.blob(row.message)])
            let send: SendMessage = try Self.decoded(row.send)
            return try Self.enqueue(.sendMessage(send), at: time, transaction)
        }
    }

    /// Forgets a message that was refused; whether it was there.
    public func discard(_ message: MessageReference) throws(LocalStoreError) -> Bool {
        try write { transaction throws(StoreError) in
            guard let row = try Self.refused(message, transaction) else { return false }
            try transaction.delete(LocalSentRecord.self, [.blob(row.message)])
            return true
        }
    }

    private static func refused(
        _ message: MessageReference, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> LocalSentRecord? {
        let row = try snapshot.record(LocalSentRecord.self, [.blob(message.message.bytes)])
        guard let row, row.code != 0, row.conversation == message.conversation.bytes else {
            return nil
        }
        return row
    }

    /// What this device has said and the feed has not told of.
    func untold(_ snapshot: any StoreSnapshot) throws(StoreError) -> UntoldChanges {
        var found = UntoldChanges(answered: answered)
        func add(
            _ number: UInt64, _ send: SendMessage, _ time: Timestamp,
            _ change: (inout PendingMessage) -> Void
        ) throws(StoreError) {
            guard let conversation = send.conversation, let message = send.message,
                try snapshot.record(
                    LocalEntryRecord.self, Self.entryKey(conversation, message)) == nil
            else { return }
            var one = PendingMessage(
                reference: MessageReference(conversation: conversation, message: message),
                send: send, sentAt: time, number: number)
            change(&one)
            found.messages.append(one)
        }
        for row in try snapshot.records(LocalSentRecord.self, Scan(limit: Self.sentMax)) {
            try add(row.number, try Self.decoded(row.send), row.queuedAt) { one in
                if row.code != 0 { one.refusal = Refusal(code: UInt32(clamping: row.code)) }
                if row.position > 0 { one.position = row.position }
            }
        }
        found.messages.sort { $0.number < $1.number }
        for change in try Self.refused(in: snapshot) {
            if let message = change.message { found.refused[message] = change }
        }
        for row in try snapshot.records(
            LocalMutationRecord.self, Scan(descending: true, limit: Self.queuedMax)
        ).reversed() {
            let mutation: Mutation = try Self.decoded(row.mutation)
            found.queued.note(mutation.operation)
            if case .sendMessage(let send) = mutation.operation {
                try add(row.number, send, row.queuedAt) { $0.isQueued = true }
            }
        }
        return found
    }

    /// A mutation of the outbox was answered for good.
    static func noteAnswer(
        _ result: MutationResult, to row: LocalMutationRecord, _ mutation: Mutation,
        _ transaction: any StoreTransaction
    ) throws(StoreError) {
        try noteRefusal(result, of: row, mutation.operation, transaction)
        guard case .sendMessage(let send) = mutation.operation,
            let conversation = send.conversation, let message = send.message,
            try transaction.record(LocalEntryRecord.self, entryKey(conversation, message)) == nil
        else { return }
        // The server has it since an earlier time that it was sent (HIS-21, MSG-12): it is in the
        // feed, or comes by FETCH.
        guard result.code != Code.idInUse.rawValue else { return }
        // Answered too long ago, and taken then (MSG-12).
        let isTaken = result.code == 0 || result.position > 0
        try transaction.put(
            LocalSentRecord(
                message: message.bytes, conversation: conversation.bytes, number: row.number,
                queuedAt: row.queuedAt, send: send.encoded,
                code: isTaken ? 0 : UInt64(result.code), position: result.position))
        let kept = try transaction.records(LocalSentRecord.self, Scan(limit: sentMax + 1))
        // The feed will tell of those that were accepted; nobody else has a text that was refused.
        func order(_ row: LocalSentRecord) -> (Int, UInt64) { (row.code == 0 ? 0 : 1, row.number) }
        guard kept.count > sentMax, let oldest = kept.min(by: { order($0) < order($1) }) else {
            return
        }
        try transaction.delete(LocalSentRecord.self, [.blob(oldest.message)])
    }

    /// The feed tells of these messages itself.
    static func confirm(
        _ messages: [[UInt8]], _ transaction: any StoreTransaction
    ) throws(StoreError) {
        guard !messages.isEmpty else { return }
        let kept = try transaction.records(LocalSentRecord.self, Scan(limit: sentMax))
        guard !kept.isEmpty else { return }
        let told = Set(messages)
        for row in kept where told.contains(row.message) {
            try transaction.delete(LocalSentRecord.self, [.blob(row.message)])
        }
    }

    /// The server has taken these, and the feed has not told of them.
    static func accepted(_ snapshot: any StoreSnapshot) throws(StoreError) -> [LocalSentRecord] {
        try snapshot.records(LocalSentRecord.self, Scan(limit: sentMax)).filter { $0.code == 0 }
    }

    /// The messages that the server refused, oldest first, whatever became of their conversations:
    /// one that was deleted, or never came about, is listed nowhere else.
    public func refusedMessages() throws(LocalStoreError) -> [MessageRow] {
        try read { snapshot throws(StoreError) in
            let user = try Self.user(in: snapshot)
            return try untold(snapshot).messages.filter { $0.refusal != nil }.map {
                MessageRow($0, sender: user, delivery: $0.delivery([]))
            }
        }
    }

    /// A conversation was deleted up to `position`, or, without one, the feed told everything anew:
    /// what the server had taken and the feed did not tell of was lost there. A text that was
    /// refused is nowhere else: it goes only with a conversation that its own user has deleted.
    static func dropSent(
        of conversation: [UInt8]? = nil, through position: UInt64 = .max,
        keepsRefused: Bool = true, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        for row in try transaction.records(LocalSentRecord.self, Scan(limit: sentMax)) {
            let isOfIt = conversation.map { $0 == row.conversation } ?? true
            let isGone = row.code == 0 ? row.position <= position : !keepsRefused
            guard isOfIt, isGone else { continue }
            try transaction.delete(LocalSentRecord.self, [.blob(row.message)])
        }
    }

    private static func entryKey(
        _ conversation: ConversationID, _ message: MessageID
    ) -> [ColumnValue] {
        LocalEntryRecord.key(.message, conversation.bytes, message.bytes)
    }
}
