import Model
import Wire

// Sessions that end together: of an app that is suspended or removed, and of a process that is
// gone. There may be a million of them, so a row says what ends, and turns in the background carry
// it out; the first turn is taken at once. Meanwhile a dead process' sessions count as before,
// which is what they are to do for `reconnectWindow` anyway.
extension Work {
    /// Jobs that share one turn.
    private static let jobsMax = 4

    func endSessions(_ job: SessionEndRecord) throws(RuleFailure) {
        try put(job)
        _ = try endSessions(job, atMost: limits.sessionsPerTurn)
    }

    /// One turn.
    ///
    /// - Returns: how many sessions were looked at, and whether there are more.
    func continueSessionEnds() throws(RuleFailure) -> (count: Int, more: Bool) {
        let jobs = try records(SessionEndRecord.self, Scan(limit: Self.jobsMax))
        var count = 0
        var more = false
        for job in jobs {
            let share = max(1, limits.sessionsPerTurn / jobs.count)
            let looked = try endSessions(job, atMost: share)
            count += looked
            more = more || looked == share
        }
        return (count, more)
    }

    private func endSessions(
        _ job: SessionEndRecord, atMost most: Int
    ) throws(RuleFailure) -> Int {
        let sessions = try records(
            SessionRecord.self,
            Scan(
                prefix: job.app.name.isEmpty ? [] : [.app(job.app)], after: job.after,
                limit: most))
        for session in sessions { try end(session, for: job) }
        guard sessions.count == most, let last = sessions.last else {
            try delete(SessionEndRecord.self, job.key)
            return sessions.count
        }
        var job = job
        job.last = SessionPlace(last)
        try put(job)
        effects.hasBackgroundWork = true
        return sessions.count
    }

    private func end(
        _ session: SessionRecord, for job: SessionEndRecord
    ) throws(RuleFailure) {
        switch job.cause {
        case .processGone:
            guard session.boot != job.boot, session.expectedUntil == nil else { return }
            var session = session
            session.expectedUntil = job.until
            try put(session)
        case .suspended: try suspend(session)
        case .removed:
            effects.ended.append(EndedSession(session: SessionKey(session), code: .revoked))
            try delete(
                SessionRecord.self, Array(session.row.prefix(SessionRecord.table.keyCount)))
        }
    }
}
