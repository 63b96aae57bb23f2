import Model
import Wire

extension Work {
    /// Carries out a backend's request, or gives the answer its key was given before (P2).
    ///
    /// A refusal had no effect and is not kept: the same key may be tried again.
    func once(
        _ app: AppID, _ idempotency: Idempotency?, _ body: () throws(RuleFailure) -> StoreAnswer
    ) throws(RuleFailure) -> StoreAnswer {
        guard try record(AppRecord.self, [.app(app)]) != nil else {
            throw .refused(.notFound, "no such app")
        }
        guard let idempotency else { return try body() }
        guard (1...limits.idempotencyKeyBytes).contains(idempotency.key.utf8.count) else {
            throw .refused(.malformed, "an idempotency key that is empty or too long")
        }
        let key: [ColumnValue] = [.app(app), .text(idempotency.key)]
        if let known = try record(IdempotencyRecord.self, key, lock: .wait),
            now < known.expiresAt
        {
            guard known.requestHash == idempotency.requestHash else {
                throw .answer(.idempotencyMismatch)
            }
            return try answer(known)
        }
        let answer = try body()
        guard let (status, response) = stored(answer) else { return answer }
        try put(
            IdempotencyRecord(
                app: app, key: idempotency.key, requestHash: idempotency.requestHash,
                status: status, response: response,
                expiresAt: now + limits.idempotencyLifetime))
        return answer
    }

    /// What the same answer is made of again. What is told of a
    /// message sent does not change: its id is enough.
    private func stored(_ answer: StoreAnswer) -> (UInt64, [UInt8])? {
        switch answer {
        case .conversation(let record):
            let numbers = Identifier<Never>(
                high: record.createdAt.milliseconds, low: record.position)
            let counts = Identifier<Never>(high: record.revision, low: record.participants)
            return (
                1,
                record.conversation.bytes + numbers.bytes + counts.bytes
                    + Array(record.creator.utf8)
            )
        case .published(let record): return (2, record.message.bytes)
        case .edited(let record):
            let numbers = Identifier<Never>(
                high: record.version, low: record.editedAt?.milliseconds ?? 0)
            return (3, record.message.bytes + numbers.bytes)
        case .done: return (4, [])
        default: return nil
        }
    }

    private func answer(_ known: IdempotencyRecord) throws(RuleFailure) -> StoreAnswer {
        let bytes = known.response
        if known.status == 1, bytes.count >= 48, let id = ConversationID(bytes[..<16]),
            let numbers = Identifier<Never>(bytes[16..<32]),
            let counts = Identifier<Never>(bytes[32..<48])
        {
            return .conversation(
                ConversationRecord(
                    app: known.app, conversation: id,
                    creator: String(decoding: bytes[48...], as: UTF8.self),
                    createdAt: Timestamp(milliseconds: numbers.high), position: numbers.low,
                    revision: counts.high, participants: counts.low))
        }
        if known.status == 2 || known.status == 3, let id = MessageID(bytes.prefix(16)) {
            guard
                var message = try record(MessageRecord.self, [.app(known.app), .identifier(id)])
            else { throw .refused(.gone, "the conversation was deleted since") }
            if known.status == 2 { return .published(message) }
            if let numbers = Identifier<Never>(bytes.dropFirst(16)) {
                message.version = numbers.high
                message.editedAt = Timestamp(milliseconds: numbers.low)
                return .edited(message)
            }
        }
        if known.status == 4 { return .done }
        throw .store(.corrupt("idempotency: no answer"))
    }
}
