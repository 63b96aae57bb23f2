public import Model
import Wire

/// A message of this user that a restored server has lost (HIS-21).
struct LostMessage: Comparable {
    /// In the place of the position of one that was never sent: everybody who takes part was to
    /// see it.
    static let unsent = UInt64.max >> 1

    /// When; of one that was never sent by this device's clock.
    var made: UInt64
    /// That the lost history had given it; 0: not known.
    var position: UInt64
    var send: SendMessage

    /// In the order they were made: those of one commit have one time, and clocks differ.
    static func < (one: LostMessage, other: LostMessage) -> Bool {
        func order(_ message: LostMessage) -> (Int, UInt64, UInt64) {
            (message.position == unsent ? 1 : 0, message.made, message.position)
        }
        return order(one) < order(other)
    }
}

// Messages that a restored server has lost and that are not sent again by themselves: because
// others would see them, or because their conversation is not there.
extension TableLocalStore {
    /// How long they wait for their conversation.
    private static let awaitedFor: Milliseconds = 7 * 86_400_000

    public func sendAwaited(at time: Timestamp) throws(LocalStoreError) -> UInt64? {
        guard mayAwait else { return nil }
        let (isEmpty, ready) = try read {
            snapshot throws(StoreError) -> (Bool, [LocalLostConversationRecord]) in
            let rows = try snapshot.records(LocalLostConversationRecord.self, Scan(limit: .max))
            var ready: [LocalLostConversationRecord] = []
            for row in rows {
                let isReady = try Self.takesPart(in: row.conversation, snapshot)
                if isReady || row.until <= time { ready.append(row) }
            }
            return (rows.isEmpty, ready)
        }
        if isEmpty { mayAwait = false }
        guard !ready.isEmpty else { return nil }
        return try write { transaction throws(StoreError) in
            for row in ready { try Self.end(row, at: time, transaction) }
            return try Self.fact(Fact.lastMutation, transaction)?.number
        }
    }

    /// Keeps messages until their conversation comes.
    ///
    /// - Parameter audiences: who took part in it, where that is known.
    static func keepAwaited(
        _ messages: [LostMessage], of audiences: [[UInt8]: Audience], at time: Timestamp,
        _ transaction: any StoreTransaction
    ) throws(StoreError) {
        for message in messages {
            guard let conversation = message.send.conversation, let id = message.send.message else {
                continue
            }
            // Of one that waits already, since an earlier loss, it is known who saw it.
            let known = try transaction.record(
                LocalLostConversationRecord.self, [.blob(conversation.bytes)])
            let kept = try transaction.record(
                LocalLostRecord.self, [.blob(conversation.bytes), .blob(id.bytes)])
            try transaction.put(
                LocalLostConversationRecord(
                    conversation: conversation.bytes, until: known?.until ?? time + awaitedFor,
                    audience: known?.audience ?? audiences[conversation.bytes]?.encoded ?? []))
            try transaction.put(
                LocalLostRecord(
                    conversation: conversation.bytes, message: id.bytes,
                    madeAt: Timestamp(milliseconds: message.made),
                    position: min(kept?.position ?? .max, message.position),
                    send: message.send.encoded))
        }
    }

    /// Keeps messages as if the server had refused them: their user sees them, and may send them
    /// again or throw them away.
    static func withhold(
        _ messages: [LostMessage], because why: Refusal, _ transaction: any StoreTransaction
    ) throws(StoreError) {
        guard !messages.isEmpty else { return }
        for message in messages.sorted() {
            guard let conversation = message.send.conversation, let id = message.send.message else {
                continue
            }
            // A number of their own, under which nothing is sent, gives them their order.
            let number = (try fact(Fact.lastMutation, transaction)?.number ?? 0) + 1
            try transaction.put(LocalStateRecord(name: Fact.lastMutation, number: number))
            try transaction.put(
                LocalSentRecord(
                    message: id.bytes, conversation: conversation.bytes, number: number,
                    queuedAt: Timestamp(milliseconds: message.made), send: message.send.encoded,
                    code: UInt64(why.code), position: 0))
        }
        let kept = try transaction.records(LocalSentRecord.self, Scan(limit: .max))
        // A text that the server has refused is nowhere else; one that is withheld may be there.
        func order(_ row: LocalSentRecord) -> (Int, UInt64) {
            let isWithheld = row.code == UInt64(Refusal.audienceChanged.code)
            return (row.code == 0 ? 0 : isWithheld ? 1 : 2, row.number)
        }
        for row in kept.sorted(by: { order($0) < order($1) }).dropLast(sentMax) {
            try transaction.delete(LocalSentRecord.self, [.blob(row.message)])
        }
    }

    /// The conversation has come, or its time is over.
    private static func end(
        _ row: LocalLostConversationRecord, at time: Timestamp,
        _ transaction: any StoreTransaction
    ) throws(StoreError) {
        let id = row.conversation
        let isHere = try takesPart(in: id, transaction)
        var above: UInt64?
        if isHere, !row.audience.isEmpty, let now = try Audience(of: id, transaction) {
            let user = try fact(Fact.user, transaction)?.bytes ?? []
            above = try Audience(encoded: row.audience).sawAll(now, without: user)
        }
        var (again, withheld): ([LostMessage], [LostMessage]) = ([], [])
        for lost in try transaction.records(
            LocalLostRecord.self, Scan(prefix: [.blob(id)], limit: .max))
        {
            try transaction.delete(LocalLostRecord.self, [.blob(id), .blob(lost.message)])
            // Another device of this user was earlier.
            guard try transaction.entry(.message, of: id, lost.message) == nil else { continue }
            let message = LostMessage(
                made: lost.madeAt.milliseconds, position: lost.position,
                send: try decoded(lost.send))
            if let above, max(lost.position, 1) > above {
                again.append(message)
            } else {
                withheld.append(message)
            }
        }
        try transaction.delete(LocalLostConversationRecord.self, [.blob(id)])
        for message in again.sorted() {
            let number = try enqueue(.sendMessage(message.send), at: time, transaction)
            // It had left once, perhaps by another device as well.
            if message.position != LostMessage.unsent { try noteSent(number, transaction) }
        }
        let why = isHere ? Refusal.audienceChanged : Refusal(code: Code.notFound.rawValue)
        try withhold(withheld, because: why, transaction)
    }

    /// Whether the conversation is here and says that the user takes part.
    private static func takesPart(
        in conversation: [UInt8], _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Bool {
        guard
            case .conversationState = try snapshot.entry(.conversation, of: conversation)?.body,
            case .participant(let own) = try snapshot.entry(
                .participant, of: conversation, try fact(Fact.user, snapshot)?.bytes ?? [])?.body
        else { return false }
        return !own.removed
    }
}
