import Model
import Wire

/// The part of a conversation a user sees (HIS-4).
struct HistoryReach {
    var conversation: ConversationRecord
    var participant: ParticipantRecord

    /// Messages above it.
    var above: UInt64 { max(participant.joinedPosition, participant.clearedPosition) }
    /// Messages up to it.
    var through: UInt64 { conversation.position }
}

// FETCH (history.md, HIS-1 to HIS-12).
extension PageReader {
    func history(
        _ query: HistoryQuery, limits: RuleLimits
    ) throws(StoreError) -> HistoryReading? {
        switch query {
        case .fetch(let app, let user, let fetch, let bytes):
            return try self.fetch(fetch, app, user, bytes: bytes, limits)
        case .snapshot(let app, let user, let frame, let bytes):
            return try snapshotPage(frame, app, user, bytes: bytes, limits)
        case .digest: preconditionFailure("a digest is read in parts")
        }
    }

    /// `nil`: out of reach, or there is no such conversation.
    func reach(
        _ app: AppID, _ id: ConversationID, _ user: UserID
    ) throws(StoreError) -> HistoryReach? {
        guard
            let participant = try snapshot.record(
                ParticipantRecord.self, [.app(app), .identifier(id), .user(user)]),
            participant.leftRevision == nil, !participant.isGone,
            let conversation = try snapshot.record(
                ConversationRecord.self, [.app(app), .identifier(id)]),
            conversation.deletedAt == nil
        else { return nil }
        return HistoryReach(conversation: conversation, participant: participant)
    }

    /// The conversation an id stands for: one of two that were made as distinct at the same time
    /// was merged into the other, and who made it may still ask by its id (MSG-24).
    private func target(_ app: AppID, _ id: ConversationID) throws(StoreError) -> ConversationID {
        try snapshot.record(AliasRecord.self, [.app(app), .identifier(id)])?.conversation ?? id
    }

    private static let outOfReach = HistoryReading.refused(.notFound, detail: "no such object")

    private func fetch(
        _ fetch: Fetch, _ app: AppID, _ user: UserID, bytes: Int, _ limits: RuleLimits
    ) throws(StoreError) -> HistoryReading {
        guard fetch.object.isEmpty else {
            return try fetchObject(fetch, app, user, bytes: bytes)
        }
        guard let asked = fetch.conversation else {
            return .refused(.missingField, detail: "no conversation and no object")
        }
        let id = try target(app, asked)
        guard let reach = try reach(app, id, user) else { return Self.outOfReach }
        return .page(try window(fetch, reach, bytes: bytes, limits))
    }

    /// A message by its id, or a conversation with its participants.
    private func fetchObject(
        _ fetch: Fetch, _ app: AppID, _ user: UserID, bytes: Int
    ) throws(StoreError) -> HistoryReading {
        let named: ConversationID? =
            if let asked = fetch.conversation { try target(app, asked) } else { nil }
        let isOfConversation =
            fetch.conversation == nil || fetch.object == named?.bytes
            || fetch.object == fetch.conversation?.bytes
        // Somebody may have given a message the id of a conversation that they do not see.
        if isOfConversation, let page = try fetchConversation(fetch, app, user, bytes: bytes) {
            return page
        }
        if let message = try snapshot.record(
            MessageRecord.self, [.app(app), .blob(fetch.object)])
        {
            guard named == nil || named == message.conversation,
                let reach = try reach(app, message.conversation, user),
                message.position > reach.above, message.position <= reach.through,
                try shown([message], in: reach) == [true]
            else { return Self.outOfReach }
            return .page(
                PageFrame(
                    entries: [try entry(of: message).entry],
                    first: message.position, last: message.position, position: reach.through))
        }
        // By an id that stands for another conversation's.
        if !isOfConversation, let asked = ConversationID(fetch.object),
            try target(app, asked) == named,
            let page = try fetchConversation(fetch, app, user, bytes: bytes)
        {
            return page
        }
        return Self.outOfReach
    }

    /// `nil`: there is no conversation within reach under this id.
    private func fetchConversation(
        _ fetch: Fetch, _ app: AppID, _ user: UserID, bytes: Int
    ) throws(StoreError) -> HistoryReading? {
        guard let asked = ConversationID(fetch.object),
            let reach = try reach(app, try target(app, asked), user)
        else { return nil }
        return .page(try participants(fetch, reach, user, bytes: bytes))
    }

    /// The messages between the bounds, in the order asked for, and for which positions they are
    /// all there are.
    private func window(
        _ fetch: Fetch, _ reach: HistoryReach, bytes: Int, _ limits: RuleLimits
    ) throws(StoreError) -> PageFrame {
        var page = PageFrame(position: reach.through)
        var above = max(fetch.above, reach.above)
        var through = fetch.below == 0 ? reach.through : min(fetch.below - 1, reach.through)
        guard fetch.above < through else { return page }
        // Below the reach there is nothing for this user: the page is complete there, too, and
        // whoever holds something from before removes it (HIS-10).
        page.first = fetch.above + 1
        page.last = through
        let asked = fetch.limit == 0 ? limits.historyMessages : Int(clamping: fetch.limit)
        let countMax = min(asked, limits.historyMessagesMax)
        var room = PageRoom(bytes: bytes)
        var budget = ReadBudget(limits)
        var size = min(Self.firstChunk, countMax + 1)
        while above < through {
            let messages = try self.messages(
                of: reach, above: above, through: through, ascending: fetch.ascending, limit: size)
            let shown = try self.shown(messages, in: reach)
            for (message, isShown) in zip(messages, shown) {
                guard isShown, let sized = try readableEntry(of: message, in: reach) else {
                    budget.passOver()
                    if fetch.ascending {
                        above = message.position
                    } else {
                        through = message.position - 1
                    }
                    continue
                }
                guard page.entries.count < countMax, room.fits(sized) || page.entries.isEmpty
                else {
                    page.more = true
                    if fetch.ascending { page.last = above } else { page.first = through + 1 }
                    return page
                }
                room.take(sized)
                page.entries.append(sized.entry)
                if fetch.ascending {
                    above = message.position
                } else {
                    through = message.position - 1
                }
            }
            if messages.count < size { return page }
            if budget.isSpent, above < through {
                page.more = true
                if fetch.ascending { page.last = above } else { page.first = through + 1 }
                return page
            }
            size = min(Self.chunk, size * 2)
        }
        return page
    }

    /// `nil`: its content cannot be read; the others are shown all the same.
    func readableEntry(
        of message: MessageRecord, in reach: HistoryReach
    ) throws(StoreError) -> SizedEntry? {
        try readable(message.app, reach.participant.user, message.conversation) {
            () throws(StoreError) in try self.entry(of: message)
        }
    }

    /// The next messages of a window, at most a chunk.
    func messages(
        of reach: HistoryReach, above: UInt64, through: UInt64, ascending: Bool, limit: Int
    ) throws(StoreError) -> [MessageRecord] {
        try snapshot.records(
            MessageRecord.self,
            Scan(
                index: "message_by_position",
                prefix: [
                    .app(reach.conversation.app), .identifier(reach.conversation.conversation),
                ],
                after: [.unsigned(above)], through: [.unsigned(through)],
                descending: !ascending, limit: limit))
    }

    /// Which of these messages, which follow each other in the conversation, are in the user's
    /// feed: not those that the user deleted; and what was sent by somebody whom the user blocked
    /// at that time did not come (MSG-27), nor is it shown later.
    func shown(_ messages: [MessageRecord], in reach: HistoryReach) throws(StoreError) -> [Bool] {
        guard let first = messages.first, let last = messages.last else { return [] }
        let participant = reach.participant
        let hidden = Set(
            try snapshot.records(
                HiddenRecord.self,
                Scan(
                    prefix: [
                        .app(participant.app), .user(participant.user),
                        .identifier(participant.conversation),
                    ],
                    after: [.unsigned(max(1, min(first.position, last.position)) - 1)],
                    through: [.unsigned(max(first.position, last.position))],
                    limit: messages.count)
            ).map(\.position))
        let blocked = try blocked(by: participant.user, of: participant.app).ever
        var shown: [Bool] = []
        for message in messages {
            if hidden.contains(message.position) {
                shown.append(false)
            } else if blocked.contains(UserID(message.sender)) {
                shown.append(try hasCome(message, to: participant))
            } else {
                shown.append(true)
            }
        }
        return shown
    }

    /// Whether a message of somebody who is blocked now came before.
    private func hasCome(
        _ message: MessageRecord, to participant: ParticipantRecord
    ) throws(StoreError) -> Bool {
        let kind: EntryKind = message.deletedAt == nil ? .message : .tombstone
        return try snapshot.entry(
            of: kind, message.app, participant.user, message.conversation,
            object: message.message.bytes, position: message.position) != nil
    }

    /// What a client holds of a conversation beside participants, receipts and messages.
    func state(of reach: HistoryReach) throws(StoreError) -> [SizedEntry] {
        let number = reach.conversation.participants
        var conversation = entry(
            of: reach.conversation,
            participants: reach.conversation.largeRevision == nil ? 0 : number)
        conversation.entry.version = reach.participant.conversationVersion
        var state = [conversation]
        let participant = reach.participant
        func add(_ read: () throws(StoreError) -> SizedEntry) throws(StoreError) {
            let sized = try readable(
                participant.app, participant.user, participant.conversation, read)
            if let sized { state.append(sized) }
        }
        if let metadata = try snapshot.record(
            MetadataRecord.self, [.app(participant.app), .identifier(participant.conversation)]),
            metadata.version > 0
        {
            try add { () throws(StoreError) in try self.entry(of: metadata) }
        }
        if let settings = try snapshot.record(
            SettingsRecord.self,
            [.app(participant.app), .user(participant.user), .identifier(participant.conversation)])
        {
            state.append(entry(of: settings))
        }
        if let mark = try snapshot.record(
            ReadMarkRecord.self,
            [.app(participant.app), .user(participant.user), .identifier(participant.conversation)])
        {
            try add { () throws(StoreError) in try self.entry(of: mark) }
        }
        return state
    }

    /// The conversation (on the first page) and its participants after a user, each with how far
    /// it got if that is asked for.
    private func participants(
        _ fetch: Fetch, _ reach: HistoryReach, _ user: UserID, bytes: Int
    ) throws(StoreError) -> PageFrame {
        var page = PageFrame(position: reach.through)
        var room = PageRoom(bytes: bytes)
        if fetch.after.isEmpty {
            for sized in try state(of: reach) {
                room.take(sized)
                page.entries.append(sized.entry)
            }
        }
        var after = fetch.after
        var count = 0
        while true {
            let rows = try participants(of: reach, after: after, limit: Self.chunk)
            for row in rows {
                var sized = [entry(of: row)]
                if fetch.receipts, !reach.conversation.receiptsOff,
                    let receipt = try receipt(of: row)
                {
                    sized.append(receipt)
                }
                var left = room
                for one in sized { left.take(one) }
                if left.bytes < 0 || left.elements < 0, count > 0 {
                    page.more = true
                    return page
                }
                room = left
                page.entries += sized.map(\.entry)
                count += 1
                after = row.user.name
            }
            if rows.count < Self.chunk { return page }
        }
    }

    /// The members who take part.
    func participants(
        of reach: HistoryReach, after user: String, limit: Int
    ) throws(StoreError) -> [ParticipantRecord] {
        try snapshot.records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_presence",
                prefix: [
                    .app(reach.conversation.app), .identifier(reach.conversation.conversation),
                ],
                after: user.isEmpty ? nil : [.text(user)], limit: limit))
    }

    private func receipt(of participant: ParticipantRecord) throws(StoreError) -> SizedEntry? {
        try snapshot.record(
            ReceiptRecord.self,
            [
                .app(participant.app), .identifier(participant.conversation),
                .user(participant.user),
            ]
        ).map { entry(of: $0) }
    }
}
