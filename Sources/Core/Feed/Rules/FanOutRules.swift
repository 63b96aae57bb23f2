import Model
import Wire

extension Work {
    /// Gives the conversation its next revision, stores it with what `store` writes, and brings
    /// the change into the feeds: at once if it concerns few and nothing is on its way before
    /// it, else as a job, which is the acknowledgement (protocol: feed). So no feed gets the
    /// changes of a conversation out of order.
    func deliver(
        _ change: FanOutKind, object: [UInt8], joining: Int,
        in conversation: inout ConversationRecord,
        storing store: (ConversationRecord) throws(RuleFailure) -> Void
    ) throws(RuleFailure) {
        let waiting = try oldestJob(conversation.app, conversation.conversation)
        if let waiting, conversation.revision - waiting.revision >= limits.fanOutQueue {
            throw .refused(.rateLimited, "too many changes of the conversation wait")
        }
        conversation.revision += 1
        try put(conversation)
        try store(conversation)
        var job = FanOutRecord(
            app: conversation.app, conversation: conversation.conversation,
            revision: conversation.revision, change: change, object: object, cursor: "",
            createdAt: now, turnAt: now)
        if waiting == nil && isDirect(conversation, joining: joining) {
            var budget = Int.max
            _ = try serve(&job, conversation, budget: &budget)
        } else {
            try put(job)
            effects.hasBackgroundWork = true
        }
    }

    /// - Parameter joining: how many join, or leave.
    private func isDirect(_ conversation: ConversationRecord, joining: Int) -> Bool {
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
    private static let turn = "fan_out_turn"

    /// Serves jobs until about `recipients` entries are written: apps take turns, within an app
    /// the conversations.
    func continueFanOut(recipients: Int) throws(RuleFailure) -> StoreAnswer {
        var budget = max(1, recipients)
        // Announcements get half of it, so that neither waits for all of the other.
        var share = (budget + 1) / 2
        let granted = share
        var steps = try continueAnnouncements(&share)
        budget = max(1, budget - (granted - share))
        while budget > 0, let job = try nextJob() {
            let before = budget
            budget = try step { () throws(RuleFailure) in
                var left = min(before, limits.fanOutStep)
                let granted = left
                try serveStep(of: job, budget: &left)
                return before - max(1, granted - left)
            }
            steps += 1
        }
        var more = try nextJob() != nil
        if !more { more = try hasAnnouncements() }
        effects.hasBackgroundWork = effects.hasBackgroundWork || more
        return .progressed(count: steps, more: more)
    }

    private func nextJob() throws(RuleFailure) -> FanOutRecord? {
        let last = try record(MetaRecord.self, [.text(Self.turn)])
        let name = String(decoding: last?.bytes ?? [], as: UTF8.self)
        var next = try records(FanOutRecord.self, Scan(after: [.text(name)], limit: 1))
        if next.isEmpty { next = try records(FanOutRecord.self, Scan(limit: 1)) }
        guard let app = next.first?.app else { return nil }
        let oldest = try records(
            FanOutRecord.self, Scan(index: "fan_out_by_turn", prefix: [.app(app)], limit: 1))
        guard let conversation = oldest.first?.conversation else { return nil }
        return try oldestJob(app, conversation)
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
        try put(MetaRecord(name: Self.turn, bytes: Array(next.app.name.utf8)))
    }
}
