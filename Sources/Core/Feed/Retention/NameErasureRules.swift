import Model

// A deleted user's name goes where others hold it, once the tombstones that need it are old
// (MSG-53). A new user of the same name keeps what is his.
extension Work {
    /// About the rows that the end of one block takes.
    private static let rowsOfBlock = 8

    /// One step of the erasure that is due first, of about `limit` rows.
    func eraseNames(_ limit: Int) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        let due = try records(
            NameErasureRecord.self,
            Scan(index: "name_erasure_by_due", through: [.timestamp(now)], limit: 1))
        guard let found = due.first else { return (0, false) }
        let key: [ColumnValue] = [.app(found.app), .user(found.user)]
        guard var erasure = try record(NameErasureRecord.self, key, lock: .wait) else {
            return (0, true)
        }
        let membership = try records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_user", prefix: key,
                after: [.identifier(erasure.conversation)], limit: 1)
        ).first
        guard let membership else {
            let (looked, isDone) = try eraseBlocks(of: &erasure, limit)
            if isDone {
                try delete(NameErasureRecord.self, key)
            } else {
                try put(erasure)
            }
            return (looked, true)
        }
        let locked = try lockConversation(membership.app, membership.conversation)
        let looked: Int
        guard let next = try record(ParticipantRecord.self, membership.rowKey) else {
            return (1, true)
        }
        if try isOfNewUser(next, hasEnded: locked?.deletedAt != nil) {
            looked = 1
            erasure.finish(next.conversation)
        } else if let conversation = locked {
            looked = try erase(&erasure, from: conversation, next, limit)
        } else {
            looked = 1
            try delete(
                ParticipantRecord.self,
                [.app(next.app), .identifier(next.conversation), .user(next.user)])
            erasure.finish(next.conversation)
        }
        try put(erasure)
        return (looked, true)
    }

    /// The erasure that is due first, of which something cannot be read, waits: it keeps none
    /// behind it from its turn.
    func putOffErasure() throws(RuleFailure) {
        let due = try rows(
            NameErasureRecord.table,
            Scan(index: "name_erasure_by_due", through: [.timestamp(now)], limit: 1))
        guard let found = due.first else { return }
        let held = try stored(
            try transaction.row(
                NameErasureRecord.table, key: Array(found.prefix(2)), lock: .wait))
        guard var row = held else { return }
        try put(
            .timestamp(now + limits.tombstoneDelay), as: "due", of: &row,
            in: NameErasureRecord.table)
    }

    /// Somebody of this name takes part, or did: the first one's feed is gone.
    ///
    /// - Parameter hasEnded: its end left the membership of everybody as it was.
    private func isOfNewUser(
        _ member: ParticipantRecord, hasEnded: Bool
    ) throws(RuleFailure) -> Bool {
        guard member.leftRevision != nil || hasEnded else { return true }
        return try knows(member)
    }

    private func erase(
        _ erasure: inout NameErasureRecord, from conversation: ConversationRecord,
        _ membership: ParticipantRecord, _ limit: Int
    ) throws(RuleFailure) -> Int {
        let name = erasure.user.name
        let key: [ColumnValue] = [
            .app(conversation.app), .identifier(conversation.conversation),
        ]
        let messages = try records(
            MessageRecord.self,
            Scan(
                index: "message_by_position", prefix: key,
                after: [.unsigned(erasure.position)], limit: limit))
        for var message in messages {
            erasure.position = message.position
            let (wrote, deleted) = (
                message.sender.isExactly(name), message.deletedBy.isExactly(name)
            )
            guard wrote || deleted else { continue }
            guard message.deletedAt != nil else {
                // Those of the user who was deleted are all gone: this one is a new user's, whose
                // own deletion finds it by the membership (MSG-53).
                erasure.finish(membership.conversation)
                return messages.count
            }
            if wrote { message.sender = "" }
            if deleted { message.deletedBy = "" }
            try put(message)
        }
        if messages.count == limit { return limit }
        let members = try records(
            ParticipantRecord.self,
            Scan(
                prefix: key, after: erasure.member.isEmpty ? nil : [.text(erasure.member)],
                limit: max(1, limit - messages.count)))
        for member in members {
            try dropEntries(naming: erasure.user, in: member)
            erasure.member = member.user.name
        }
        let looked = messages.count + members.count
        guard members.count < max(1, limit - messages.count) else { return looked }
        var changed = conversation
        if changed.creator.isExactly(name) { changed.creator = "" }
        if changed.deletedBy.isExactly(name) { changed.deletedBy = "" }
        if !changed.distinctKey.isEmpty {
            let holder = try record(
                DistinctRecord.self, [.app(changed.app), .text(changed.distinctKey)])
            if holder?.conversation != changed.conversation { changed.forgetDistinct() }
        }
        if changed != conversation { try put(changed) }
        try delete(
            ParticipantRecord.self, key + [.user(erasure.user)])
        erasure.finish(membership.conversation)
        return looked + 1
    }

    /// What a feed says of the user in the conversation: that he took part, and how far he got.
    private func dropEntries(
        naming user: UserID, in member: ParticipantRecord
    ) throws(RuleFailure) {
        try lockUser(member.app, member.user)
        for kind in [EntryKind.participant, .receipt] {
            let entries = try records(
                EntryRecord.self,
                Scan(
                    index: "entry_by_object",
                    prefix: [
                        .app(member.app), .user(member.user), .unsigned(kind.rawValue),
                        .identifier(member.conversation), .blob(Array(user.name.utf8)),
                    ], limit: 2))
            try drop(entries, of: member.app, member.user)
        }
    }

    /// As compaction does: a cursor below what went cannot go on.
    private func drop(
        _ entries: [EntryRecord], of app: AppID, _ user: UserID
    ) throws(RuleFailure) {
        guard !entries.isEmpty else { return }
        var feed = try openFeed(app, user)
        for entry in entries {
            try delete(EntryRecord.self, [.app(app), .user(user), .unsigned(entry.seq)])
            feed.user.compactedThrough = max(feed.user.compactedThrough, entry.seq)
        }
        try close(feed)
    }

    /// Who blocked the user blocks nobody any more, unless there is another user of the name: a
    /// block is of a name, and what it kept away of the second one's messages stays away (HIS-4).
    ///
    /// Phones that know of the block hear of its end, as of any other, and the name is erased of
    /// what told them, too, when that is as old as a tombstone has to be.
    private func eraseBlocks(
        of erasure: inout NameErasureRecord, _ limit: Int
    ) throws(RuleFailure) -> (looked: Int, isDone: Bool) {
        let key: [ColumnValue] = [.app(erasure.app), .user(erasure.user)]
        let members = try records(
            ParticipantRecord.self, Scan(index: "participant_by_user", prefix: key, limit: 1))
        let isUser = try record(UserRecord.self, key) != nil
        if isUser || !members.isEmpty { return (0, true) }
        let most = max(1, limit / Self.rowsOfBlock)
        let blocks = try records(
            BlockRecord.self,
            Scan(
                index: "block_by_other", prefix: key,
                after: erasure.member.isEmpty ? nil : [.text(erasure.member)], limit: most))
        for found in blocks {
            try lockUser(found.app, found.user)
            guard let block = try record(BlockRecord.self, found.rowKey) else { continue }
            let blocker = try record(UserRecord.self, [.app(block.app), .user(block.user)])
            if block.isBlocked, let blocker, blocker.deletingSince == nil {
                try self.block(block.app, BlockChange(block.user, block.other, isBlocked: false))
            } else {
                try dropBlock(block)
            }
        }
        erasure.member = blocks.last?.user.name ?? erasure.member
        guard blocks.count < most else { return (blocks.count, false) }
        let left = try records(
            BlockRecord.self, Scan(index: "block_by_other", prefix: key, limit: 1))
        if left.isEmpty { return (blocks.count, true) }
        erasure.member = ""
        erasure.due = now + limits.nameLifetime
        return (blocks.count, false)
    }

    private func dropBlock(_ block: BlockRecord) throws(RuleFailure) {
        let entries = try records(
            EntryRecord.self,
            Scan(
                index: "entry_by_object",
                prefix: [
                    .app(block.app), .user(block.user), .unsigned(EntryKind.block.rawValue),
                    .identifier(ConversationID.none), .blob(Array(block.other.name.utf8)),
                ], limit: 2))
        try drop(entries, of: block.app, block.user)
        try delete(BlockRecord.self, [.app(block.app), .user(block.user), .user(block.other)])
    }
}

extension NameErasureRecord {
    fileprivate mutating func finish(_ conversation: ConversationID) {
        self.conversation = conversation
        position = 0
        member = ""
    }
}
