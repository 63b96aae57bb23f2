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

    private func isDirect(_ conversation: ConversationRecord, joining: Int) -> Bool {
        // Both are bounded by the limit of participants.
        let all = Int(clamping: conversation.participants)
        guard all <= limits.directRecipients else { return false }
        return joining * (all + 1) + (all - joining) * joining <= limits.directEntries
    }

    /// The first of the conversation's changes that is not in all feeds yet.
    private func oldestJob(
        _ app: AppID, _ conversation: ConversationID
    ) throws(RuleFailure) -> FanOutRecord? {
        try records(
            FanOutRecord.self, Scan(prefix: [.app(app), .identifier(conversation)], limit: 1)
        ).first
    }

    /// Goes on with the change after the last user served, users ascending, until it is in all
    /// feeds (`true`) or `budget` entries are written.
    private func serve(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        switch job.change {
        case .message: try serveMessage(&job, conversation, budget: &budget)
        case .join: try serveJoin(&job, conversation, budget: &budget)
        case .metadata: try serveMetadata(&job, conversation, budget: &budget)
        }
    }

    private func participants(
        after user: String, in job: FanOutRecord, limit: Int
    ) throws(RuleFailure) -> [ParticipantRecord] {
        try records(
            ParticipantRecord.self,
            Scan(
                prefix: [.app(job.app), .identifier(job.conversation)],
                after: user.isEmpty ? nil : [.text(user)], limit: limit))
    }

    private func serveMessage(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        guard let id = MessageID(job.object),
            let message = try record(MessageRecord.self, [.app(job.app), .identifier(id)])
        else {
            throw .store(.corrupt("fan_out: no message of revision \(job.revision)"))
        }
        let tellsReceipts = try tellsReceipts(conversation)
        while budget > 0 {
            let limit = min(budget, limits.fanOutStep)
            let recipients = try participants(after: job.cursor, in: job, limit: limit)
            for recipient in recipients {
                job.cursor = recipient.user.name
                budget -= 1
                // Who joined with or after the message does not see it.
                guard recipient.joinedRevision < job.revision else { continue }
                if try isUnwanted(message, by: recipient.user) { continue }
                var feed = try openFeed(job.app, recipient.user)
                try append(
                    .message(message), to: &feed,
                    isVisible: try isVisible(message, to: recipient.user),
                    tellsReceipts: tellsReceipts)
                try close(feed)
            }
            if recipients.count < limit { return true }
        }
        return false
    }

    /// MSG-27.
    private func isUnwanted(
        _ message: MessageRecord, by user: UserID
    ) throws(RuleFailure) -> Bool {
        guard !message.sender.isEmpty, message.sender != user.name else { return false }
        return try isBlocked(UserID(message.sender), by: user, message.app)
    }

    /// Everyone gets the present state: a later change's job finds nothing newer to tell.
    private func serveMetadata(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        let metadata = try metadata(of: conversation)
        while budget > 0 {
            let limit = min(budget, limits.fanOutStep)
            let recipients = try participants(after: job.cursor, in: job, limit: limit)
            for recipient in recipients {
                job.cursor = recipient.user.name
                budget -= 1
                // Who joined later was told with the conversation.
                guard recipient.joinedRevision < job.revision else { continue }
                var feed = try openFeed(job.app, recipient.user)
                try append(.metadata(metadata), to: &feed)
                try close(feed)
            }
            if recipients.count < limit { return true }
        }
        return false
    }

    /// A user who joins gets the conversation, its metadata, then every participant; one who was there gets
    /// those who join. One step writes at most one recipient's newcomers above its budget.
    private func serveJoin(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        let joining = try records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_revision",
                prefix: [
                    .app(job.app), .identifier(job.conversation), .unsigned(job.revision),
                ],
                limit: limits.participantsPerRequest + 1))
        while budget > 0 {
            let limit = limits.fanOutStep
            let recipients = try participants(after: job.cursor, in: job, limit: limit)
            for recipient in recipients {
                guard budget > 0 else { return false }
                if recipient.joinedRevision == job.revision {
                    let isServed = try introduce(
                        recipient, to: conversation, &job, budget: &budget)
                    if !isServed { return false }
                } else if recipient.joinedRevision < job.revision {
                    var feed = try openFeed(job.app, recipient.user)
                    for newcomer in joining { try append(.participant(newcomer), to: &feed) }
                    try close(feed)
                    budget -= joining.count
                } else {
                    budget -= 1
                }
                job.cursor = recipient.user.name
            }
            if recipients.count < limit { return true }
        }
        return false
    }

    /// Tells a user who joins of the conversation and its participants as of the job's revision;
    /// resumes after `job.member`. `true` when done.
    private func introduce(
        _ recipient: ParticipantRecord, to conversation: ConversationRecord,
        _ job: inout FanOutRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        var feed = try openFeed(job.app, recipient.user)
        if job.member.isEmpty {
            try append(.conversation(conversation), to: &feed)
            let metadata = try metadata(of: conversation)
            if metadata.version > 0 { try append(.metadata(metadata), to: &feed) }
        }
        while budget > 0 {
            let limit = min(budget, limits.fanOutStep)
            let members = try participants(after: job.member, in: job, limit: limit)
            for member in members {
                job.member = member.user.name
                budget -= 1
                guard member.joinedRevision <= job.revision else { continue }
                try append(.participant(member), to: &feed)
            }
            if members.count < limit {
                job.member = ""
                try close(feed)
                return true
            }
        }
        try close(feed)
        return false
    }
}

extension Work {
    /// The name under which the app is kept whose job was served last.
    private static let turn = "fan_out_turn"

    /// Serves jobs until about `recipients` entries are written: apps take turns, within an app
    /// the conversations.
    func continueFanOut(recipients: Int) throws(RuleFailure) -> StoreAnswer {
        var budget = max(1, recipients)
        var steps = 0
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
        let more = try nextJob() != nil
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
