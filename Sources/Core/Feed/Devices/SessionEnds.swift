import Model
import Wire

// Sessions that end together: of an app that is suspended or removed, and of a process that is
// gone. There may be a million of them, so a row says what ends, and turns in the background carry
// it out; the first turn is taken at once. Meanwhile a dead process' sessions count as before,
// which is what they are to do for `reconnectWindow` anyway.
extension Work {
    /// Jobs that share one turn.
    private static let jobsMax = 4
    /// Sessions read and ended before it is seen what is left of the turn.
    private static let sessionsAtOnce = 32

    func endSessions(_ job: SessionEndRecord) throws(RuleFailure) {
        _ = try record(SessionEndRecord.self, job.key, lock: .wait)
        try put(job)
        do throws(RuleFailure) {
            try savepoint { () throws(RuleFailure) in
                _ = try self.endSessions(job, atMost: self.limits.sessionsPerTurn)
            }
        } catch {
            // Another transaction holds something of it: the turns in the background go on.
            guard case .store(.conflict) = error else { throw error }
            effects.background.insert(.sessions)
        }
    }

    /// One turn, each job in a step of its own.
    ///
    /// - Returns: how many sessions were looked at, and whether there are more.
    func continueSessionEnds() throws(RuleFailure) -> (count: Int, more: Bool) {
        let jobs = try records(SessionEndRecord.self, Scan(limit: Self.jobsMax))
        var count = 0
        var more = false
        for job in jobs {
            let share = max(1, limits.sessionsPerTurn / jobs.count)
            let done = try stepPassingOver { () throws(RuleFailure) in
                try self.continueSessionEnd(job, atMost: share)
            } unreadable: { detail in
                self.notePassedOver(job.app, "session_end: \(detail)")
            }
            guard let ended = done else { continue }
            count += ended.count
            more = more || ended.more
        }
        return (count, more)
    }

    /// Goes on with the job from where it is by now, unless another transaction is at it.
    func continueSessionEnd(
        _ found: SessionEndRecord, atMost most: Int
    ) throws(RuleFailure) -> (count: Int, more: Bool) {
        let job = try record(SessionEndRecord.self, found.key, lock: .skip)
        guard let job else { return (0, false) }
        return try endSessions(job, atMost: most)
    }

    private func endSessions(
        _ job: SessionEndRecord, atMost most: Int
    ) throws(RuleFailure) -> (count: Int, more: Bool) {
        var job = job
        var count = 0
        // The other half of the turn is for what else is done in it.
        while count < most, count == 0 || !transaction.hasSpent(1, of: 2) {
            let limit = min(most - count, Self.sessionsAtOnce)
            let sessions = try rows(
                SessionRecord.table,
                Scan(
                    prefix: job.app.name.isEmpty ? [] : [.app(job.app)], after: job.after,
                    limit: limit))
            for session in sessions { try endReadable(session, for: job) }
            count += sessions.count
            // The next look begins behind the last session of which the key can be read.
            let last = sessions.reversed().lazy.compactMap { SessionPlace($0) }.first
            guard sessions.count == limit, let last else {
                try delete(SessionEndRecord.self, job.key)
                return (count, false)
            }
            job.last = last
        }
        try put(job)
        effects.background.insert(.sessions)
        return (count, true)
    }

    /// A session that cannot be read keeps none behind it from its end. It serves nobody: a
    /// connection that asks for it cannot read it, either.
    private func endReadable(
        _ row: [ColumnValue], for job: SessionEndRecord
    ) throws(RuleFailure) {
        do throws(RuleFailure) {
            // What it reads it reads before it writes: there is nothing to undo.
            try end(try stored(try SessionRecord(row: row)), for: job)
        } catch {
            guard case .store(.corrupt(let detail)) = error else { throw error }
            notePassedOver(row, "session: \(detail)")
        }
    }

    private func end(
        _ found: SessionRecord, for job: SessionEndRecord
    ) throws(RuleFailure) {
        try lockUser(found.app, found.user)
        // The device may have come back, or gone, since the row was found.
        guard let session = try record(SessionRecord.self, found.rowKey) else { return }
        switch job.cause {
        case .processGone:
            guard session.boot != job.boot, session.expectedUntil == nil,
                try record(NodeRecord.self, [.identifier(session.boot)])?.isGone ?? true
            else { return }
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

    /// The row goes as that of any connection that ended: who is behind is owed a wake, which
    /// waits.
    func suspend(_ session: SessionRecord) throws(RuleFailure) {
        var session = session
        if session.expectedUntil == nil {
            effects.ended.append(EndedSession(session: SessionKey(session), code: .suspended))
        }
        session.expectedUntil = min(session.expectedUntil ?? now, now)
        try put(session)
        effects.background.insert(.sessions)
    }
}
