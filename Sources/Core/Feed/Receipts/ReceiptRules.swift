import Model
import Wire

extension Work {
    /// Changes how far a participant got. The authors are told by the coalescer, unless the
    /// conversation has more participants than the app wants receipts for.
    func raiseReceipt(
        of participant: ParticipantRecord, in conversation: ConversationRecord,
        stored ranges: [InclusiveRange] = [], _ change: (inout ReceiptRecord) -> Void = { _ in }
    ) throws(RuleFailure) {
        let known = try record(
            ReceiptRecord.self,
            [
                .app(participant.app), .identifier(participant.conversation),
                .user(participant.user),
            ])
        let before: ReceiptRecord
        if let known {
            before = known
        } else {
            before = try firstReceipt(of: participant, in: conversation)
        }
        var after = before
        change(&after)
        after.read = max(after.read, before.read)
        // What was read was delivered.
        after.delivered = max(after.delivered, before.delivered, after.read)
        try mergeDelivered(
            &after, above: participant.joinedPosition, adding: ranges,
            limit: conversation.position)
        guard after != before else { return }
        if after.delivered == before.delivered, after.read == before.read {
            // A range behind a gap: nothing to tell yet.
        } else if try tellsReceipts(conversation) {
            after.pendingSince = after.pendingSince ?? now
            try receiptsAreDue(participant.app, participant.user)
        } else {
            after.announcedDelivered = after.delivered
            after.announcedRead = after.read
        }
        try put(after)
    }

    /// Nobody was told of the participant yet. Where another user had the name, who was deleted not
    /// long ago, authors' devices hold how far that one got: what is told now is newer than that
    /// (SYN-5), so it begins there.
    private func firstReceipt(
        of participant: ParticipantRecord, in conversation: ConversationRecord
    ) throws(RuleFailure) -> ReceiptRecord {
        let (app, id, user) = (participant.app, participant.conversation, participant.user)
        var receipt = ReceiptRecord(app: app, conversation: id, user: user)
        guard try record(NameErasureRecord.self, [.app(app), .user(user)]) != nil,
            try tellsReceipts(conversation)
        else { return receipt }
        let members = try records(
            ParticipantRecord.self,
            Scan(prefix: [.app(app), .identifier(id)], limit: Self.formerReceiptsLook))
        for member in members {
            let told = try records(
                EntryRecord.self,
                Scan(
                    index: "entry_by_object",
                    prefix: [
                        .app(app), .user(member.user), .unsigned(EntryKind.receipt.rawValue),
                        .identifier(id), .blob(Array(user.name.utf8)),
                    ], limit: 2))
            for entry in told {
                receipt.delivered = max(receipt.delivered, entry.position)
                receipt.read = max(receipt.read, entry.version - min(entry.version, entry.position))
            }
        }
        (receipt.announcedDelivered, receipt.announcedRead) = (receipt.delivered, receipt.read)
        return receipt
    }

    /// Participants in whose feeds a former user's receipts are looked for.
    private static let formerReceiptsLook = 64

    /// What was stored behind a gap counts when the gap is closed (SYN-28). What the participant
    /// was not there for, up to `joined`, is no gap, and is not delivered by that.
    private func mergeDelivered(
        _ receipt: inout ReceiptRecord, above joined: UInt64, adding ranges: [InclusiveRange],
        limit: UInt64
    ) throws(RuleFailure) {
        guard !ranges.isEmpty || !receipt.deliveredRanges.isEmpty else { return }
        guard
            var stored = PositionSet(
                through: max(receipt.delivered, joined), rangeBytes: receipt.deliveredRanges)
        else { throw .store(.corrupt("receipt: ranges are not pairs")) }
        stored.add(
            through: stored.through, ranges: ranges, limit: limit,
            rangesMax: limits.rangesPerReadMark)
        if stored.through > joined { receipt.delivered = stored.through }
        receipt.deliveredRanges = stored.rangeBytes
    }

    /// Whether delivered and read are told to the authors of the conversation's messages.
    func tellsReceipts(_ conversation: ConversationRecord) throws(RuleFailure) -> Bool {
        if conversation.receiptsOff { return false }
        let app = try app(conversation.app)
        return conversation.participants <= app?.receiptParticipantsMax ?? 0
    }

    /// Puts the user into the coalescer's queue, not before the interval since the last turn.
    func receiptsAreDue(_ app: AppID, _ user: UserID) throws(RuleFailure) {
        let known = try record(ReceiptDueRecord.self, [.app(app), .user(user)], lock: .wait)
        guard known?.due == nil else { return }
        // A turn that a clock before its time noted holds nothing up.
        let last = min(known?.lastAt ?? Timestamp(milliseconds: 0), now)
        try put(
            ReceiptDueRecord(
                app: app, user: user, due: max(now, last + limits.receiptInterval), lastAt: last))
    }

    /// Messages stored by a peek count as delivered, as far as no message is missing before them;
    /// what lies behind a gap is remembered until that is closed.
    func deliver(_ ranges: [InclusiveRange], _ session: SessionKey) throws(RuleFailure) {
        var positions: [ConversationID: Set<UInt64>] = [:]
        var budget = limits.receiptStep
        for range in ranges.merged where budget > 0 {
            let entries = try records(
                EntryRecord.self,
                Scan(
                    prefix: [.app(session.app), .user(session.user)],
                    after: [.unsigned(range.first - 1)],
                    through: [.unsigned(range.last)], limit: budget))
            budget -= entries.count
            for entry in entries where entry.kind == .message {
                positions[entry.conversation, default: []].insert(entry.position)
            }
        }
        // What is passed over counts when `applied` gets there.
        let first = positions.sorted { $0.key < $1.key }.prefix(limits.receiptConversations)
        for (id, stored) in first {
            guard
                let conversation = try record(
                    ConversationRecord.self, [.app(session.app), .identifier(id)]),
                let participant = try participant(session.app, id, session.user)
            else { continue }
            let ranges = stored.sorted().map { InclusiveRange(first: $0, last: $0) }
            try raiseReceipt(of: participant, in: conversation, stored: ranges)
        }
    }
}

// The coalescer. Each turn of a user: what was applied since the last turn becomes delivered;
// then each conversation with something untold is told to the authors concerned; then the next
// turn is set. Everything is derived from stored rows: a crash delays it, never loses it.
extension Work {
    func coalesceReceipts(users: Int) throws(RuleFailure) -> StoreAnswer {
        try repairTurns(max(1, users))
        let due = try rows(
            ReceiptDueRecord.table,
            Scan(
                index: "receipt_due_by_due", through: [.timestamp(now)], limit: max(1, users)))
        var turns = 0
        var passedOver = 0
        for row in due {
            if try !turn(of: row) { passedOver += 1 }
            turns += 1
            if isSpent { break }
        }
        // What others hold is no reason to come again at once.
        let isDone = turns > passedOver
        return .progressed(
            count: turns, more: isDone && (turns == max(1, users) || turns < due.count))
    }

    /// - Returns: `false`: another transaction holds what ends the turn, which is due as before.
    private func turn(of row: [ColumnValue]) throws(RuleFailure) -> Bool {
        var isUnreadable = false
        func pass(over detail: String) {
            isUnreadable = true
            notePassedOver(row, "receipts: \(detail)")
        }
        var seen = SeenMessages()
        let (app, user) = (AppID(row[0].words), UserID(row[1].words))
        let collected = try stepPassingOver { () throws(RuleFailure) in
            _ = try self.stored(try ReceiptDueRecord(row: row))
            return try self.collectDelivered(app, user, &seen)
        } unreadable: {
            pass(over: $0)
        }
        guard !isUnreadable else { return try putOff(row) }
        guard let isHeld = collected else { return false }
        let pending = try stepPassingOver { () throws(RuleFailure) in
            try self.pendingReceipts(app, user)
        } unreadable: {
            pass(over: $0)
        }
        for (index, receipt) in (pending ?? []).enumerated() where index == 0 || !isSpent {
            _ = try stepPassingOver { () throws(RuleFailure) in
                try self.tell(receipt, seen)
            } unreadable: {
                pass(over: $0)
            }
        }
        guard !isUnreadable else { return try putOff(row) }
        let ended: Void? = try stepPassingOver { () throws(RuleFailure) in
            try self.endTurn(app, user, isHeld)
        } unreadable: {
            pass(over: $0)
        }
        return isUnreadable ? try putOff(row) : ended != nil
    }

    /// The turn of a user of whom something cannot be read comes later, and its row is made anew:
    /// it may be the one.
    private func putOff(_ row: [ColumnValue]) throws(RuleFailure) -> Bool {
        let done: Void? = try stepPassingOver { () throws(RuleFailure) in
            let key = Array(row.prefix(2))
            let known = try self.stored(
                try self.transaction.row(ReceiptDueRecord.table, key: key, lock: .wait))
            guard known != nil else { return }
            try self.put(
                ReceiptDueRecord(
                    app: AppID(row[0].words), user: UserID(row[1].words),
                    due: self.now + Self.unreadablePause, lastAt: self.now))
        }
        return done != nil
    }

    /// No turn is further away than the interval, but for one that was put off, and for a clock
    /// that was set back: such a turn is due now.
    private func repairTurns(_ limit: Int) throws(RuleFailure) {
        let far = try rows(
            ReceiptDueRecord.table,
            Scan(
                index: "receipt_due_by_due", after: [.timestamp(now + limits.receiptInterval)],
                limit: limit))
        for row in far {
            let key = Array(row.prefix(2))
            _ = try stepPassingOver { () throws(RuleFailure) in
                let known = try self.record(ReceiptDueRecord.self, key, lock: .wait)
                guard var turn = known, let due = turn.due,
                    due > self.now + self.limits.receiptInterval,
                    turn.lastAt > self.now || due != turn.lastAt + Self.unreadablePause
                else { return }
                turn.due = self.now
                turn.lastAt = min(turn.lastAt, self.now)
                try self.put(turn)
            } unreadable: { (detail) throws(RuleFailure) in
                self.notePassedOver(row, "receipts: \(detail)")
                _ = try self.putOff(row)
            }
        }
    }

    private func pendingReceipts(
        _ app: AppID, _ user: UserID
    ) throws(RuleFailure) -> [ReceiptRecord] {
        try records(
            ReceiptRecord.self,
            Scan(
                index: "receipt_pending", prefix: [.app(app), .user(user)],
                limit: limits.receiptConversations))
    }

    /// The highest `seq` of a message to tell of that any device of the user has stored.
    private func receiptable(of user: UserRecord) throws(RuleFailure) -> UInt64 {
        let devices = try devices(user.app, user.user)
        return user.receiptable(devices.map(\.applied).max() ?? 0)
    }

    /// Whether something delivered could not be told yet.
    private func collectDelivered(
        _ app: AppID, _ name: UserID, _ seen: inout SeenMessages
    ) throws(RuleFailure) -> Bool {
        // A step that is tried again starts from nothing.
        seen = SeenMessages()
        guard
            var user = try record(UserRecord.self, [.app(app), .user(name)], lock: .wait)
        else { return false }
        let applied = try receiptable(of: user)
        guard applied > user.receipted else { return false }
        let entries = try records(
            EntryRecord.self,
            Scan(
                prefix: [.app(app), .user(name)], after: [.unsigned(user.receipted)],
                through: [.unsigned(applied)], limit: limits.receiptStep))
        guard let ceilings = try lowestMoved(above: applied, in: user) else { return true }
        var delivered: [ConversationID: UInt64] = [:]
        var held: UInt64?
        for entry in entries {
            guard try hasCome(entry) else { continue }
            seen.note(entry)
            if let ceiling = ceilings[entry.conversation], entry.position >= ceiling {
                held = held ?? entry.seq
                continue
            }
            // But for edited ones a feed has a conversation's messages in order: what is before
            // this one, is too.
            delivered[entry.conversation] = max(
                delivered[entry.conversation] ?? 0, entry.position)
        }
        for (id, position) in delivered.sorted(by: { $0.key < $1.key }) {
            guard
                let conversation = try record(
                    ConversationRecord.self, [.app(app), .identifier(id)]),
                try tellsReceipts(conversation),
                let participant = try participant(app, id, name)
            else { continue }
            try raiseReceipt(of: participant, in: conversation) { receipt in
                receipt.delivered = max(receipt.delivered, position)
            }
        }
        let last = entries.last?.seq ?? applied
        user.receipted = entries.count < limits.receiptStep ? applied : last
        // Looked at again when `applied` has risen: `advance` puts the user into the queue.
        if let held { user.receipted = min(user.receipted, held - 1) }
        try put(user)
        return held != nil
    }

    /// What a user has deleted for themselves had come, too: a tombstone stands in its place.
    private func hasCome(_ entry: EntryRecord) throws(RuleFailure) -> Bool {
        if entry.kind == .message { return true }
        guard entry.kind == .tombstone, !entry.object.isEmpty else { return false }
        let key: [ColumnValue] = [
            .app(entry.app), .user(entry.user), .identifier(entry.conversation),
            .unsigned(entry.position),
        ]
        return try record(HiddenRecord.self, key) != nil
    }

    /// An edited message stands higher in the feed than its position says: while no device has
    /// got there, the user may lack it, and nothing from it on counts as delivered. By
    /// conversation the lowest such position; `nil`: the devices are so far behind the newest
    /// edit that it is not looked for, and nothing counts until they are nearer.
    private func lowestMoved(
        above applied: UInt64, in user: UserRecord
    ) throws(RuleFailure) -> [ConversationID: UInt64]? {
        var lowest: [ConversationID: UInt64] = [:]
        var after = applied
        var steps = 0
        while after < user.movedHead {
            guard steps < limits.movedSteps else { return nil }
            steps += 1
            let entries = try records(
                EntryRecord.self,
                Scan(
                    prefix: [.app(user.app), .user(user.user)], after: [.unsigned(after)],
                    through: [.unsigned(user.movedHead)], limit: limits.receiptStep))
            for entry in entries
            where entry.kind == .message && entry.firstSeq < entry.seq
                && entry.firstSeq <= applied
            {
                lowest[entry.conversation] = min(
                    lowest[entry.conversation] ?? .max, entry.position)
            }
            guard entries.count == limits.receiptStep, let last = entries.last else { break }
            after = last.seq
        }
        return lowest
    }

    /// Tells the authors of the messages that are newly covered, and only these.
    private func tell(_ pending: ReceiptRecord, _ seen: SeenMessages) throws(RuleFailure) {
        let room = try record(
            ConversationRecord.self, [.app(pending.app), .identifier(pending.conversation)])
        // Of a conversation that has ended nobody is told any more.
        let isOver = room?.deletedAt != nil
        let (authors, delivered, read) =
            isOver
            ? ([], pending.delivered, pending.read) : try newlyCovered(pending, seen)
        var feeds: [OpenFeed] = []
        // The reader, who is none of the authors, is locked too: it orders this with the reader's
        // own reports.
        for user in (authors + [pending.user]).sorted() {
            let feed = try openFeed(pending.app, user)
            if user != pending.user { feeds.append(feed) }
        }
        let key = Array(pending.row.prefix(ReceiptRecord.table.keyCount))
        guard var receipt = try record(ReceiptRecord.self, key) else { return }
        let before = receipt
        receipt.announcedDelivered = max(receipt.announcedDelivered, delivered)
        receipt.announcedRead = max(receipt.announcedRead, read)
        let isDone =
            receipt.delivered <= receipt.announcedDelivered
            && receipt.read <= receipt.announcedRead
        receipt.pendingSince = isDone ? nil : now
        try put(receipt)
        for var feed in feeds {
            try append(.receipt(receipt), to: &feed)
            try close(feed)
        }
        if !isOver { noteProgress(of: receipt, since: before) }
    }

    /// Webhooks hear of watermarks, as often as authors do (WHK-8).
    private func noteProgress(
        of receipt: ReceiptRecord, since before: ReceiptRecord
    ) {
        for (kind, was, position) in [
            (
                WebhookEventKind.messageDelivered, before.announcedDelivered,
                receipt.announcedDelivered
            ), (.messageRead, before.announcedRead, receipt.announcedRead),
        ] where position > was {
            note(
                WebhookEventRecord(
                    app: receipt.app, kind: kind, conversation: receipt.conversation,
                    position: position, user: receipt.user.name))
        }
    }

    /// Looks at a bounded number of messages.
    ///
    /// - Returns: their authors without the reader, and up to where they were looked at.
    private func newlyCovered(
        _ receipt: ReceiptRecord, _ seen: SeenMessages
    ) throws(RuleFailure) -> (authors: [UserID], delivered: UInt64, read: UInt64) {
        // Only where something is new, so that a bounded look gets on.
        let isDelivered = receipt.delivered > receipt.announcedDelivered
        let isRead = receipt.read > receipt.announcedRead
        let told = min(
            isDelivered ? receipt.announcedDelivered : .max, isRead ? receipt.announcedRead : .max)
        // Who wrote before the reader came hears nothing (MSG-4).
        let reader = try membership(receipt.app, receipt.conversation, receipt.user)
        let first = max(told, reader?.joinedPosition ?? 0)
        let last = max(receipt.delivered, receipt.read)
        let messages = try messages(of: receipt, after: first, through: last, seen)
        var authors: Set<UserID> = []
        for message in messages where !message.sender.isEmpty {
            let isNew =
                message.position > receipt.announcedDelivered
                && message.position <= receipt.delivered
                || message.position > receipt.announcedRead && message.position <= receipt.read
            let author = UserID(message.sender)
            guard isNew, author != receipt.user, !authors.contains(author) else { continue }
            // Who left learns no more of the conversation (MSG-30).
            if try participant(receipt.app, receipt.conversation, author) != nil {
                authors.insert(author)
            }
        }
        let end = messages.count < limits.receiptStep ? last : messages.last?.position ?? last
        return (authors.sorted(), min(receipt.delivered, end), min(receipt.read, end))
    }

    private func messages(
        of receipt: ReceiptRecord, after first: UInt64, through last: UInt64,
        _ seen: SeenMessages
    ) throws(RuleFailure) -> [MessageRecord] {
        if let ids = seen.all(in: receipt.conversation, after: first, through: last) {
            var found: [MessageRecord] = []
            for id in ids {
                let key: [ColumnValue] = [.app(receipt.app), .identifier(id)]
                if let message = try record(MessageRecord.self, key) { found.append(message) }
            }
            return found
        }
        return try records(
            MessageRecord.self,
            Scan(
                index: "message_by_position",
                prefix: [.app(receipt.app), .identifier(receipt.conversation)],
                after: [.unsigned(first)], through: [.unsigned(last)],
                limit: limits.receiptStep))
    }

    /// What was reported since the turn began is due after the interval.
    private func endTurn(
        _ app: AppID, _ name: UserID, _ isHeld: Bool
    ) throws(RuleFailure) {
        _ = try record(ReceiptDueRecord.self, [.app(app), .user(name)], lock: .wait)
        guard let user = try record(UserRecord.self, [.app(app), .user(name)]) else { return }
        let isPending = try !pendingReceipts(app, name).isEmpty
        let isLeft = try receiptable(of: user) > user.receipted
        let isMore = isLeft && !isHeld || isPending
        try put(
            ReceiptDueRecord(
                app: app, user: name, due: isMore ? now + limits.receiptInterval : nil,
                lastAt: now))
    }
}

/// The messages whose entries a turn has read, by their positions. The turn mostly tells of these:
/// it reads them by their ids, under which the working set still knows them.
private struct SeenMessages {
    private static let most: UInt64 = 8
    private var ids: [ConversationID: [UInt64: MessageID]] = [:]

    mutating func note(_ entry: EntryRecord) {
        guard let id = MessageID(entry.object) else { return }
        ids[entry.conversation, default: [:]][entry.position] = id
    }

    /// - Returns: one for each position above `first` up to `last`; `nil`: one is not known, or
    ///   they are many.
    func all(
        in conversation: ConversationID, after first: UInt64, through last: UInt64
    ) -> [MessageID]? {
        guard first < last, last - first <= Self.most, let known = ids[conversation] else {
            return nil
        }
        var found: [MessageID] = []
        for position in (first + 1)...last {
            guard let id = known[position] else { return nil }
            found.append(id)
        }
        return found
    }
}
