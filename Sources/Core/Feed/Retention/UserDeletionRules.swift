import Model
import Wire

// Deleting a user with everything that is theirs (MSG-53). The request decides it and lets
// nobody in any more; the rest follows in bounded steps, and is derived from rows alone.
extension Work {
    /// Devices dropped in one step.
    private static let devicesStep = 100
    /// Rows of other kinds looked at in one step.
    private static let lookedStep = 64
    /// Deletions looked at to find some that can go on.
    private static let deletionsMax = 64

    func deleteUser(_ app: AppID, _ user: UserID) throws(RuleFailure) -> StoreAnswer {
        let key: [ColumnValue] = [.app(app), .user(user)]
        try require(user.isValid, .notFound, "no such user")
        _ = try record(UserDeletionRecord.self, key, lock: .wait)
        var known = try openFeed(app, user).user
        if try record(UserRecord.self, key) == nil {
            // Named as a participant, and nothing of it has come into the feed yet.
            let memberships = try records(
                ParticipantRecord.self,
                Scan(index: "participant_by_user", prefix: key, limit: 1))
            try require(!memberships.isEmpty, .notFound, "no such user")
            // The name of a deleted user stands in memberships that are over for a while.
            if try record(NameErasureRecord.self, key) != nil {
                try require(try takesPart(user, app), .notFound, "no such user")
            }
        }
        // Asked again while it is carried out.
        guard known.deletingSince == nil else { return .done }
        known.deletingSince = now
        try put(known)
        _ = try dropDevices(app, user)
        let batches = try records(
            AnnouncementBatchRecord.self, Scan(prefix: [.app(app)], descending: true, limit: 1))
        try put(
            UserDeletionRecord(
                app: app, user: user, requestedAt: now,
                announcements: batches.first?.number ?? 0))
        effects.background.insert(.deletions)
        return .done
    }

    /// Whether a conversation that goes on has the user, also where the joining has not come into
    /// the feed yet.
    private func takesPart(_ user: UserID, _ app: AppID) throws(RuleFailure) -> Bool {
        var after: [ColumnValue]?
        repeat {
            let found = try records(
                ParticipantRecord.self,
                Scan(
                    index: "participant_by_user", prefix: [.app(app), .user(user)], after: after,
                    limit: Self.lookedStep))
            for member in found where member.leftRevision == nil {
                let key: [ColumnValue] = [.app(app), .identifier(member.conversation)]
                if try record(ConversationRecord.self, key)?.deletedAt == nil { return true }
            }
            guard found.count == Self.lookedStep, let last = found.last else { return false }
            after = [.identifier(last.conversation)]
        } while !isSpent
        return false
    }

    /// Goes on with what is decided until about `rows` rows are written or deleted. A deletion
    /// that waits for others' work keeps none behind it from going on.
    func continueDeletions(rows: Int) throws(RuleFailure) -> StoreAnswer {
        var budget = max(1, rows)
        var steps = 0
        var last: [ColumnValue]?
        let waiting = try deletionsInTurn()
        for row in waiting where budget > 0 && (last == nil || !isSpent) {
            last = Array(row.prefix(2))
            while budget > 0, steps == 0 || !isSpent {
                let work = try readableWork(of: row, budget)
                guard work > 0 else { break }
                budget -= work
                steps += 1
            }
        }
        // Those behind are looked at first in the next turn. Once all were looked at, the place is
        // forgotten: it names a user who is deleted (MSG-53).
        let isCut = waiting.count == Self.deletionsMax || budget <= 0 || isSpent
        _ = try stepPassingOver { () throws(RuleFailure) in
            if let last, isCut {
                try self.noteTurn(Self.deletionTurn, at: last)
            } else {
                try self.forgetTurn(Self.deletionTurn)
            }
        }
        return .progressed(count: steps, more: steps > 0 && (budget <= 0 || isSpent))
    }

    /// The name under which the deletion is kept that was looked at last.
    private static let deletionTurn = "deletion_turn"

    /// As they are stored: one that cannot be read keeps none behind it from going on.
    private func deletionsInTurn() throws(RuleFailure) -> [[ColumnValue]] {
        let table = UserDeletionRecord.table
        guard let last = try turnPlace(Self.deletionTurn) else {
            return try rows(table, Scan(limit: Self.deletionsMax))
        }
        let behind = try rows(table, Scan(after: last, limit: Self.deletionsMax))
        guard behind.count < Self.deletionsMax else { return behind }
        return behind
            + (try rows(
                table, Scan(through: last, limit: Self.deletionsMax - behind.count)))
    }

    private func readableWork(
        of row: [ColumnValue], _ limit: Int
    ) throws(RuleFailure) -> Int {
        do throws(RuleFailure) {
            return try advance(AppID(row[0].words), UserID(row[1].words), limit)
        } catch {
            guard case .store(.corrupt(let detail)) = error else { throw error }
            notePassedOver(row, "user_deletion: \(detail)")
            return 0
        }
    }

    /// 0 also where the fan-out of a conversation has to catch up first, and where another
    /// transaction holds something of it.
    private func workOfStep(
        _ body: () throws(RuleFailure) -> Int
    ) throws(RuleFailure) -> Int {
        do throws(RuleFailure) {
            return try step(body)
        } catch {
            switch error {
            case .answer(.refused(.rateLimited, _)), .store(.conflict): return 0
            default: throw error
            }
        }
    }

    /// - Returns: how much was done; 0: it waits, or is over.
    private func advance(
        _ app: AppID, _ user: UserID, _ limit: Int
    ) throws(RuleFailure) -> Int {
        let key: [ColumnValue] = [.app(app), .user(user)]
        guard let deletion = try record(UserDeletionRecord.self, key) else { return 0 }
        if deletion.stage == .messages { return try deleteMessages(deletion, limit) }
        return try workOfStep { () throws(RuleFailure) in
            try self.advanceInOneStep(app, user, limit)
        }
    }

    private func advanceInOneStep(
        _ app: AppID, _ user: UserID, _ limit: Int
    ) throws(RuleFailure) -> Int {
        let key: [ColumnValue] = [.app(app), .user(user)]
        // Another node may have worked on it before this lock was taken.
        guard var deletion = try record(UserDeletionRecord.self, key, lock: .wait) else {
            return 0
        }
        switch deletion.stage {
        case .devices:
            _ = try record(UserRecord.self, key, lock: .wait)
            let dropped = try dropDevices(app, user)
            if dropped < Self.devicesStep { deletion.begin(.memberships) }
            try put(deletion)
            return max(1, dropped)
        case .memberships: return try endMemberships(&deletion)
        // Each message is deleted in a step of its own.
        case .messages: return 0
        case .settling: return try settle(&deletion)
        case .rows: return try deleteRows(of: deletion, limit)
        }
    }

    /// The user's row is locked.
    private func dropDevices(_ app: AppID, _ user: UserID) throws(RuleFailure) -> Int {
        let devices = try records(
            DeviceRecord.self,
            Scan(prefix: [.app(app), .user(user)], limit: Self.devicesStep))
        for known in devices {
            let key: [ColumnValue] = [.app(app), .user(user), .identifier(known.device)]
            guard var device = try record(DeviceRecord.self, key, lock: .wait) else { continue }
            try forget(&device)
            try delete(DeviceRecord.self, key)
        }
        return devices.count
    }

    /// The user's next memberships, those that ended too.
    private func memberships(
        _ deletion: UserDeletionRecord, limit: Int = Work.lookedStep
    ) throws(RuleFailure) -> [ParticipantRecord] {
        try records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_user",
                prefix: [.app(deletion.app), .user(deletion.user)],
                after: [.identifier(deletion.conversation)], limit: limit))
    }

    /// Ends one membership, and passes over those that ended.
    private func endMemberships(
        _ deletion: inout UserDeletionRecord
    ) throws(RuleFailure) -> Int {
        let rows = try memberships(deletion)
        for row in rows {
            deletion.conversation = row.conversation
            let key: [ColumnValue] = [.app(row.app), .identifier(row.conversation)]
            guard row.leftRevision == nil,
                try record(ConversationRecord.self, key)?.deletedAt == nil
            else { continue }
            try lockDistinct(of: row.conversation, row.app)
            guard
                var conversation = try lockConversation(row.app, row.conversation),
                conversation.deletedAt == nil,
                let member = try participant(row.app, row.conversation, row.user)
            else {
                // It ended before this lock was taken: the next step goes on behind it.
                try put(deletion)
                return 1
            }
            let others = Int(clamping: conversation.participants)
            try end([member], in: &conversation, by: .backend)
            // The members who stay may make a conversation without the user, and the user a new
            // one.
            try giveUpDistinct(conversation)
            try put(deletion)
            return others + 1
        }
        if rows.count < Self.lookedStep { deletion.begin(.messages) }
        try put(deletion)
        return max(1, rows.count)
    }

    /// Looks at the next messages of a conversation and deletes the user's own for everyone, each
    /// in a step of its own, until about `limit` entries are written. If something goes wrong on
    /// the way, what is deleted is passed over the next time.
    private func deleteMessages(
        _ deletion: UserDeletionRecord, _ limit: Int
    ) throws(RuleFailure) -> Int {
        var place = deletion
        guard let member = try memberships(deletion, limit: 1).first else {
            place.begin(.settling)
            return try keep(place, after: deletion)
        }
        let conversation = try record(
            ConversationRecord.self, [.app(member.app), .identifier(member.conversation)])
        let messages =
            conversation?.deletedAt == nil
            ? try records(
                MessageRecord.self,
                Scan(
                    index: "message_by_position",
                    prefix: [.app(member.app), .identifier(member.conversation)],
                    after: [.unsigned(deletion.position)], limit: Self.lookedStep)) : []
        let each = Int(clamping: conversation?.participants ?? 0) + 1
        var work = 0
        var looked = 0
        for message in messages {
            if UserID(message.sender) == deletion.user, message.deletedAt == nil {
                guard work == 0 || (work < limit && !isSpent) else { break }
                let done = try workOfStep { () throws(RuleFailure) in
                    try self.deleteMessage(message.app, message.message, by: .backend)
                    return each
                }
                guard done > 0 else { break }
                work += done
            }
            place.position = message.position
            looked += 1
        }
        if looked == messages.count, looked < Self.lookedStep {
            place.conversation = member.conversation
            place.position = 0
        } else if looked == 0 {
            return 0
        }
        let kept = try keep(place, after: deletion)
        // Another node is at it, or somebody holds its row: the next turn looks again.
        return kept == 0 ? 0 : max(kept, work, looked)
    }

    /// Where the next step begins, unless another node has come further.
    private func keep(
        _ place: UserDeletionRecord, after before: UserDeletionRecord
    ) throws(RuleFailure) -> Int {
        try workOfStep { () throws(RuleFailure) in
            let known = try self.record(UserDeletionRecord.self, place.rowKey, lock: .wait)
            guard known == before else { return 0 }
            try self.put(place)
            return 1
        }
    }

    /// Waits until no job knows of the user any more. How far he got goes with the last one.
    private func settle(_ deletion: inout UserDeletionRecord) throws(RuleFailure) -> Int {
        try lockUser(deletion.app, deletion.user)
        let rows = try memberships(deletion)
        var work = 0
        for row in rows {
            guard
                let conversation = try record(
                    ConversationRecord.self, [.app(row.app), .identifier(row.conversation)])
            else { continue }
            if row.leftRevision == nil, conversation.deletedAt == nil {
                // Added between the decision and the end of the memberships before.
                deletion.begin(.memberships)
                try put(deletion)
                return work + 1
            }
            let job = try oldestJob(row.app, row.conversation)
            if let job, job.revision <= row.leftRevision ?? .max { return try keep(deletion, work) }
            try delete(
                ReceiptRecord.self,
                [.app(row.app), .identifier(row.conversation), .user(row.user)])
            deletion.conversation = row.conversation
            work += 1
        }
        if rows.count < Self.lookedStep {
            let batch = try records(
                AnnouncementBatchRecord.self, Scan(prefix: [.app(deletion.app)], limit: 1)
            ).first
            if let batch, batch.number <= deletion.announcements {
                return try keep(deletion, work)
            }
            deletion.begin(.rows)
            work += 1
        }
        try put(deletion)
        return work
    }

    private func keep(_ deletion: UserDeletionRecord, _ work: Int) throws(RuleFailure) -> Int {
        if work > 0 { try put(deletion) }
        return work
    }

    /// All that is kept under the user's name, by the keys of the tables; the row itself last.
    private func deleteRows(
        of deletion: UserDeletionRecord, _ limit: Int
    ) throws(RuleFailure) -> Int {
        let key: [ColumnValue] = [.app(deletion.app), .user(deletion.user)]
        _ = try record(NameErasureRecord.self, key, lock: .wait)
        // Before the user's lock, in the order of locks: a step of its own.
        var scheduled = try deleteRows(
            of: ScheduledRecipientRecord.table, Scan(prefix: key, limit: limit)
        ) { _ in true }
        if scheduled == 0 {
            scheduled = try dropScheduled(by: deletion.user, deletion.app, limit: limit)
        }
        if scheduled > 0 { return scheduled }
        try lockUser(deletion.app, deletion.user)
        _ = try record(ReceiptDueRecord.self, key, lock: .wait)
        var deleted = try deleteRows(
            of: SessionTokenRecord.table,
            Scan(index: "session_token_by_device", prefix: key, limit: limit))
        deleted += try deleteRows(
            of: TokenFeedbackRecord.table,
            Scan(index: "token_feedback_by_user", prefix: key, limit: limit))
        for table in Schema.tables where table.isOfUsers && deleted < limit {
            deleted += try deleteRows(of: table, Scan(prefix: key, limit: limit - deleted))
        }
        if deleted == 0 {
            try delete(UserRecord.self, key)
            try delete(UserDeletionRecord.self, key)
            try put(
                NameErasureRecord(
                    app: deletion.app, user: deletion.user, due: now + limits.nameLifetime))
            note(
                WebhookEventRecord(
                    app: deletion.app, kind: .userDeleted, user: deletion.user.name))
        }
        return max(1, deleted)
    }
}

extension UserDeletionRecord {
    fileprivate mutating func begin(_ stage: Stage) {
        self.stage = stage
        conversation = .none
        position = 0
    }
}

extension Table {
    /// Its rows are a user's own, beside the user's row and the deletion itself.
    fileprivate var isOfUsers: Bool {
        columns.count > 1 && columns[0].name == "app" && columns[1].name == "user"
            && keyCount > 1 && name != UserRecord.table.name
            && name != UserDeletionRecord.table.name
            && name != NameErasureRecord.table.name
            && name != ScheduledRecipientRecord.table.name
    }
}
