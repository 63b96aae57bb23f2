import Model
import Wake
import Wire

extension Work {
    /// Carries out a backend's request in one step, or gives the answer its key was given before
    /// (P2).
    ///
    /// A refusal had no effect and is not kept: the same key may be tried again.
    func once(
        _ app: AppID, _ idempotency: Idempotency?, _ body: () throws(RuleFailure) -> StoreAnswer
    ) throws(RuleFailure) -> StoreAnswer {
        try step { () throws(RuleFailure) in
            try self.answer(app, idempotency, body)
        }
    }

    private func answer(
        _ app: AppID, _ idempotency: Idempotency?, _ body: () throws(RuleFailure) -> StoreAnswer
    ) throws(RuleFailure) -> StoreAnswer {
        try require(self.app(app) != nil, .notFound, "no such app")
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
        guard let (status, response) = storable(answer) else { return answer }
        try put(
            IdempotencyRecord(
                app: app, key: idempotency.key, requestHash: idempotency.requestHash,
                status: status, response: response,
                expiresAt: now + limits.idempotencyLifetime))
        return answer
    }

    /// What the same answer is made of again. What is told of a message sent does not change: its
    /// id is enough.
    private func storable(_ answer: StoreAnswer) -> (UInt64, [UInt8])? {
        switch answer {
        case .conversation(let record): (1, record.answerBytes)
        case .published(let record): (2, record.message.bytes)
        case .metadata(let record):
            (
                5,
                record.conversation.bytes
                    + Identifier<Never>(high: 0, low: record.version).bytes + record.state
            )
        case .edited(let record):
            (
                3,
                record.message.bytes
                    + Identifier<Never>(
                        high: record.version, low: record.editedAt?.milliseconds ?? 0
                    ).bytes
            )
        case .done: (4, [])
        case .announced(let record): (6, record.announcement.bytes)
        case .scheduled(let record): (7, record.answerBytes)
        case .campaign(let record): (8, record.campaign.bytes)
        case .campaignState(let id, let state): (9, id.bytes + state.rawValue.utf8)
        default: nil
        }
    }

    private func answer(_ known: IdempotencyRecord) throws(RuleFailure) -> StoreAnswer {
        let bytes = known.response
        if known.status == 1,
            let record = ConversationRecord(answerBytes: bytes, app: known.app)
        {
            return .conversation(record)
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
        if known.status == 5, bytes.count >= 32, let id = ConversationID(bytes[..<16]),
            let version = Identifier<Never>(bytes[16..<32])
        {
            return .metadata(
                MetadataRecord(
                    app: known.app, conversation: id, state: Array(bytes[32...]),
                    version: version.low))
        }
        if known.status == 6, let id = MessageID(bytes),
            let announcement = try record(
                AnnouncementRecord.self, [.app(known.app), .identifier(id)])
        {
            return .announced(announcement)
        }
        if known.status == 7,
            let scheduled = ScheduledRecord(answerBytes: bytes, app: known.app)
        {
            return .scheduled(scheduled)
        }
        if known.status == 8, let id = CampaignID(bytes) {
            guard
                let campaign = try record(
                    CampaignRecord.self, [.app(known.app), .identifier(id)])
            else { throw .refused(.gone, "the campaign was removed since") }
            return .campaign(campaign)
        }
        if known.status == 9, let id = CampaignID(bytes.prefix(16)),
            let state = CampaignState(
                rawValue: String(decoding: bytes.dropFirst(16), as: UTF8.self))
        {
            return .campaignState(id, state)
        }
        throw .store(.corrupt("idempotency: no answer"))
    }
}

extension ConversationRecord {
    /// The row as it was when it was answered: its numbers change, so they are kept.
    fileprivate var answerBytes: [UInt8] {
        let numbers = Identifier<Never>(high: createdAt.milliseconds, low: position)
        let counts = Identifier<Never>(high: revision, low: participants)
        // Neither a name nor the key holds a zero byte.
        return conversation.bytes + numbers.bytes + counts.bytes + [receiptsOff ? 1 : 0]
            + Array(creator.utf8) + [0] + Array(distinctKey.utf8)
    }

    fileprivate init?(answerBytes bytes: [UInt8], app: AppID) {
        guard bytes.count >= 49, let id = ConversationID(bytes[..<16]),
            let numbers = Identifier<Never>(bytes[16..<32]),
            let counts = Identifier<Never>(bytes[32..<48])
        else { return nil }
        let texts = bytes[49...].split(
            separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
        guard texts.count == 2 else { return nil }
        self.init(
            app: app, conversation: id, creator: String(decoding: texts[0], as: UTF8.self),
            createdAt: Timestamp(milliseconds: numbers.high), position: numbers.low,
            revision: counts.high, participants: counts.low,
            distinctKey: String(decoding: texts[1], as: UTF8.self), receiptsOff: bytes[48] != 0)
    }
}
