import Model

// A change on its way of which something cannot be read is set aside, whole or for the recipient
// whom that concerns: it keeps no other change, and nobody else, from the feeds.
extension Work {
    func job(_ row: [ColumnValue]) throws(RuleFailure) -> FanOutRecord {
        try stored(try FanOutRecord(row: row))
    }

    /// Whether the job and what it tells of can be read: then it is something of a recipient's
    /// that cannot.
    func isReadable(_ row: [ColumnValue]) throws(RuleFailure) -> Bool {
        do throws(RuleFailure) {
            let job = try job(row)
            let key: [ColumnValue] = [.app(job.app), .identifier(job.conversation)]
            guard try record(ConversationRecord.self, key) != nil else { return false }
            switch job.change {
            case .message, .messageChange:
                guard let id = MessageID(job.object) else { return false }
                return try record(MessageRecord.self, [.app(job.app), .identifier(id)]) != nil
            case .metadata: _ = try record(MetadataRecord.self, key)
            case .join, .leave, .conversationEnd: break
            }
            return true
        } catch {
            guard case .store(.corrupt) = error else { throw error }
            return false
        }
    }

    /// Passes over the recipient whose turn it is, or gives the job up if nobody can be served.
    func setAside(_ row: [ColumnValue], _ detail: String) throws(RuleFailure) {
        guard case .text(let app) = row[0] else { throw .store(.corrupt("fan_out: no app")) }
        let conversation: ConversationID? =
            if case .blob(let bytes) = row[1] { ConversationID(bytes) } else { nil }
        if let conversation { _ = try lockedRow(AppID(app), conversation) }
        let key = Array(row.prefix(FanOutRecord.table.keyCount))
        // Another node may have come before.
        guard let row = try rows(FanOutRecord.table, Scan(prefix: key, limit: 1)).first else {
            return
        }
        try noteTurn(Self.fanOutTurn, of: AppID(app))
        var passedOver = ""
        if try isReadable(row), let next = try recipient(after: row) {
            passedOver = next
            var job = try job(row)
            job.cursor = next
            job.member = ""
            job.turnAt = max(now, job.turnAt)
            try put(job)
        } else {
            _ = try deleteRows(of: FanOutRecord.table, Scan(prefix: key, limit: 1))
        }
        // An app on its way out leaves jobs behind its conversations.
        guard try record(AppRecord.self, [.app(AppID(app))]) != nil else { return }
        var revision = ""
        if case .integer(let number) = row[2] { revision = " \(number)" }
        effects.unreadable.append(
            UnreadableRow(
                app: AppID(app), user: UserID(passedOver), conversation: conversation ?? .none,
                detail: "fan_out\(revision): \(detail)"))
    }

    /// The conversation's lock, whether or not its row can be read.
    private func lockedRow(
        _ app: AppID, _ conversation: ConversationID
    ) throws(RuleFailure) -> [ColumnValue]? {
        try stored(
            try transaction.row(
                ConversationRecord.table, key: [.app(app), .identifier(conversation)],
                lock: .wait))
    }

    /// The user whom the job serves next, also where the membership cannot be read.
    private func recipient(after row: [ColumnValue]) throws(RuleFailure) -> String? {
        let job = try job(row)
        let key: [ColumnValue] = [.app(job.app), .identifier(job.conversation)]
        guard let conversation = try record(ConversationRecord.self, key) else { return nil }
        let next = try memberRows(
            audience(of: job, in: conversation), of: job, after: job.cursor, limit: 1
        ).first
        guard case .text(let user)? = next?[2] else { return nil }
        return user
    }
}
