import Model
import Wire

extension Work {
    /// Gives the conversation its next revision, stores it with what `store` writes, and brings
    /// the change into the feeds: at once if it concerns few and nothing is on its way before
    /// it, else as a job, which is the acknowledgement (protocol: feed). So no feed gets the
    /// changes of a conversation out of order.
    ///
    /// - Parameter actor: Of a join or a removal, who asks for it.
    func deliver(
        _ change: FanOutKind, object: [UInt8], joining: Int, by actor: Actor = .backend,
        in conversation: inout ConversationRecord,
        storing store: (ConversationRecord) throws(RuleFailure) -> Void
    ) throws(RuleFailure) {
        let waiting =
            conversation.isSettled
            ? nil : try oldestJob(conversation.app, conversation.conversation)
        if let waiting, conversation.revision - waiting.revision >= limits.fanOutQueue {
            throw .refused(.rateLimited, "too many changes of the conversation wait")
        }
        conversation.revision += 1
        var job = FanOutRecord(
            app: conversation.app, conversation: conversation.conversation,
            revision: conversation.revision, change: change, object: object, cursor: "",
            createdAt: now, turnAt: now)
        let isDirect = waiting == nil && isDirect(job, conversation, joining: joining, by: actor)
        // Nearly always it is in all feeds when the request ends.
        if isDirect { conversation.settledRevision = conversation.revision }
        try put(conversation)
        try store(conversation)
        if isDirect {
            // The entries that do not fit into the request wait for the next.
            var budget = isSpent ? 0 : limits.directEntries
            if budget > 0, try serve(&job, conversation, budget: &budget) { return }
            conversation.settledRevision = nil
            try put(conversation)
        }
        try insert(job)
        effects.background.insert(.fanOut)
    }

    /// - Parameter joining: how many join, or leave.
    private func isDirect(
        _ job: FanOutRecord, _ conversation: ConversationRecord, joining: Int, by actor: Actor
    ) -> Bool {
        switch Audience.recipients(of: job, in: conversation) {
        case .joined, .left:
            // A user's own row is locked for the mutation's number afterwards. Where all are
            // told the actor was locked in turn; here it would come after names above it.
            return actor == .backend && joining <= limits.directRecipients
        case .recipients, .everybody: break
        }
        // Both are bounded by the limit of participants.
        let all = Int(clamping: conversation.participants)
        guard all <= limits.directRecipients else { return false }
        return joining * (all + 1) + max(0, all - joining) * joining <= limits.directEntries
    }

    /// The first of the conversation's changes that is not in all feeds yet.
    func oldestJob(
        _ app: AppID, _ conversation: ConversationID
    ) throws(RuleFailure) -> FanOutRecord? {
        try records(
            FanOutRecord.self, Scan(prefix: [.app(app), .identifier(conversation)], limit: 1)
        ).first
    }
}

extension Work {
    /// The name under which the app is kept whose job was served last.
    static let fanOutTurn = "fan_out_turn"

    /// Serves jobs until about `recipients` entries are written: apps take turns, within an app
    /// the conversations.
    func continueFanOut(recipients: Int) throws(RuleFailure) -> StoreAnswer {
        var budget = max(1, recipients)
        // Announcements get half of it, so that neither waits for all of the other.
        var share = (budget + 1) / 2
        let granted = share
        var steps = try continueAnnouncements(&share)
        budget = max(1, budget - (granted - share))
        var isFirst = true
        var held: Set<SortKey> = []
        while budget > 0, held.count < Self.heldMax,
            isFirst && held.count < Self.heldAnyway || !isSpent,
            let row = try nextJob(besides: held)
        {
            guard let work = try advance(row, by: min(budget, limits.fanOutStep)) else {
                held.insert(Self.conversation(of: row))
                if case .text(let app)? = row.first {
                    _ = try stepPassingOver { () throws(RuleFailure) in
                        try self.noteTurn(Self.fanOutTurn, of: AppID(app))
                    }
                }
                continue
            }
            budget -= work
            steps += 1
            isFirst = false
        }
        // What others hold is no reason to come again at once.
        var more = steps > 0
        if more, try nextJob(besides: held) == nil { more = try hasAnnouncements() }
        if more { effects.background.insert(.fanOut) }
        return .progressed(count: steps, more: more)
    }

    /// The most conversations that one turn passes over because other transactions hold something
    /// of them, and the most jobs that it looks at to find another one.
    private static let heldMax = 64
    /// The number of these that are passed over although the turn is spent: behind them may be one
    /// that can be served.
    private static let heldAnyway = 8
    private static let lookedMax = 256

    private static func conversation(of row: [ColumnValue]) -> SortKey {
        SortKey(Array(row.prefix(2)))
    }

    /// The row of the job whose turn it is, as stored: one that cannot be read has its turn too.
    private func nextJob(
        besides held: Set<SortKey>
    ) throws(RuleFailure) -> [ColumnValue]? {
        let table = FanOutRecord.table
        let last = try record(MetaRecord.self, [.text(Self.fanOutTurn)])
        var after: [ColumnValue]? = [.text(String(decoding: last?.bytes ?? [], as: UTF8.self))]
        // Behind the app that was served last, from the start, and on behind those that are held.
        for _ in 0...held.count + 1 {
            guard let app = try rows(table, Scan(after: after, limit: 1)).first?.prefix(1) else {
                if after == nil { return nil }
                after = nil
                continue
            }
            let oldest = try rows(
                table,
                Scan(
                    index: "fan_out_by_turn", prefix: Array(app),
                    limit: held.isEmpty ? 1 : Self.lookedMax))
            let free = oldest.first { !held.contains(Self.conversation(of: $0)) }
            if let conversation = free?.prefix(2) {
                return try rows(table, Scan(prefix: Array(conversation), limit: 1)).first
            }
            if let row = try nextJob(of: Array(app), besides: held) { return row }
            after = Array(app)
        }
        return nil
    }

    /// In the order of the conversations: one that is held may have more jobs than are looked at in
    /// the order of their turns.
    private func nextJob(
        of app: [ColumnValue], besides held: Set<SortKey>
    ) throws(RuleFailure) -> [ColumnValue]? {
        var after: [ColumnValue]?
        for _ in 0...held.count {
            let next = try rows(
                FanOutRecord.table, Scan(prefix: app, after: after, limit: 1)
            ).first
            guard let next, held.contains(Self.conversation(of: next)) else { return next }
            after = [next[1]]
        }
        return nil
    }

    /// One step of a job. If something of it cannot be read, fewer recipients are served at once,
    /// until the one that it concerns is left: that one is passed over.
    ///
    /// - Returns: how much was done, at least 1: what failed counts too; `nil`: it was passed over.
    private func advance(_ row: [ColumnValue], by granted: Int) throws(RuleFailure) -> Int? {
        do throws(RuleFailure) {
            return try step { () throws(RuleFailure) in
                let job = try self.job(row)
                var left = granted
                try self.serveStep(of: job, budget: &left)
                return max(1, granted - left)
            }
        } catch {
            if case .store(.conflict) = error {
                // Those before the one whom another transaction holds need not wait.
                return granted > 1 ? try advance(row, by: granted / 2) : nil
            }
            guard case .store(.corrupt(let detail)) = error else { throw error }
            if granted > 1, try isReadable(row) {
                return granted + (try advance(row, by: granted / 2) ?? 0)
            }
            try step { () throws(RuleFailure) in try self.setAside(row, detail) }
            return granted
        }
    }

    private func serveStep(of next: FanOutRecord, budget: inout Int) throws(RuleFailure) {
        guard let conversation = try lockConversation(next.app, next.conversation) else {
            throw .store(.corrupt("fan_out: no conversation"))
        }
        // Another node may have served it before the lock was ours.
        if var job = try oldestJob(next.app, next.conversation), job.revision == next.revision {
            if try serve(&job, conversation, budget: &budget) {
                try delete(
                    FanOutRecord.self,
                    [.app(job.app), .identifier(job.conversation), .unsigned(job.revision)])
            } else {
                job.turnAt = max(now, job.turnAt)
                try put(job)
            }
        }
        try noteTurn(Self.fanOutTurn, of: next.app)
    }
}
