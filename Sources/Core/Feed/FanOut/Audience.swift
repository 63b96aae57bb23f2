import Model

/// The users whom a change that is on its way into feeds may concern.
enum Audience: Equatable {
    /// The members who take part, and the members who left with this revision or a later one.
    /// Members who left before cost nothing.
    case recipients(leavingWith: UInt64, leftLater: Bool)
    /// Every user who ever took part.
    case everybody
    /// The members who joined with this revision, or left with it: in a large conversation nobody
    /// else is told of that (MSG-38).
    case joined(with: UInt64)
    case left(with: UInt64)

    /// The number of members read at a time: those that a turn has no room for are read again in
    /// the next.
    static let atOnce = 64

    static func recipients(
        of job: FanOutRecord, in conversation: ConversationRecord
    ) -> Audience {
        if let large = conversation.largeRevision, large < job.revision {
            switch job.change {
            case .join: return .joined(with: job.revision)
            case .leave: return .left(with: job.revision)
            case .message, .metadata, .messageChange, .conversationEnd: break
            }
        }
        return .recipients(
            leavingWith: job.revision, leftLater: conversation.revision > job.revision)
    }
}

extension Work {
    func audience(
        of job: FanOutRecord, in conversation: ConversationRecord
    ) throws(RuleFailure) -> Audience {
        // A deletion also concerns members who left before it.
        if job.change == .messageChange, try message(of: job).deletedAt != nil {
            return .everybody
        }
        return .recipients(of: job, in: conversation)
    }

    /// The next members whom the job concerns, in the order of their names. Fewer than `limit`:
    /// there are no more.
    func members(
        _ audience: Audience, of job: FanOutRecord, after user: String, limit: Int
    ) throws(RuleFailure) -> [ParticipantRecord] {
        var members: [ParticipantRecord] = []
        for row in try memberRows(audience, of: job, after: user, limit: limit) {
            members.append(try stored(try ParticipantRecord(row: row)))
        }
        return members
    }

    /// The members' rows undecoded: one that cannot be decoded keeps no other from being found.
    func memberRows(
        _ audience: Audience, of job: FanOutRecord, after user: String, limit: Int
    ) throws(RuleFailure) -> [[ColumnValue]] {
        let conversation: [ColumnValue] = [.app(job.app), .identifier(job.conversation)]
        let after: [ColumnValue]? = user.isEmpty ? nil : [.text(user)]
        let all = Scan(prefix: conversation, after: after, limit: limit)
        let (revision, leftLater): (UInt64, Bool)
        switch audience {
        case .everybody: return try rows(ParticipantRecord.table, all)
        case .joined(let revision):
            return try rows(
                ParticipantRecord.table,
                Scan(
                    index: "participant_by_revision",
                    prefix: conversation + [.unsigned(revision)], after: after, limit: limit))
        case .left(let revision):
            return try rows(
                ParticipantRecord.table,
                Scan(
                    index: "participant_by_leaving",
                    prefix: conversation + [.unsigned(revision)], after: after, limit: limit))
        case .recipients(let leavingWith, let others): (revision, leftLater) = (leavingWith, others)
        }
        var found = try rows(
            ParticipantRecord.table,
            Scan(
                index: "participant_by_presence", prefix: conversation, after: after,
                limit: limit))
        if job.change == .leave {
            found += try rows(
                ParticipantRecord.table,
                Scan(
                    index: "participant_by_leaving",
                    prefix: conversation + [.unsigned(revision)], after: after, limit: limit))
        }
        if leftLater {
            // In the order in which they left. From some number on it is cheaper to read all rows
            // and pass over those of members who left.
            let later = try rows(
                ParticipantRecord.table,
                Scan(
                    index: "participant_by_leaving", prefix: conversation,
                    after: [.unsigned(revision)], limit: Audience.atOnce))
            guard later.count < Audience.atOnce else {
                return try rows(ParticipantRecord.table, all)
            }
            found += later.filter { Self.user(of: $0) > UserID(user) }
        }
        let sorted = found.sorted { Self.user(of: $0) < Self.user(of: $1) }
        return Array(sorted.prefix(limit))
    }

    private static func user(of row: [ColumnValue]) -> UserID {
        guard case .text(let name) = row[2] else { return UserID("") }
        return UserID(name)
    }
}
