import Model
import Wire

extension MetaRecord {
    /// The number of the newest row of the audit log, and how many were refused and carried out.
    fileprivate static let auditName = "audit"
    fileprivate static let auditRefusedName = "audit_refused"
    fileprivate static let auditTakenName = "audit_taken"
}

// Console tokens and the audit log.
extension Work {
    /// Rows above the bound that one note takes away: more are there only after a restore.
    private static let auditDropped = 8

    func putConsoleToken(_ token: ConsoleTokenRecord) throws(RuleFailure) {
        guard token.expiresAt > now, token.expiresAt <= now + ConsoleTokenRecord.lifetimeMax else {
            throw .refused(.malformed, "a console token lives for at most 30 days")
        }
        let most = ConsoleTokenRecord.countMax
        let all = try records(ConsoleTokenRecord.self, Scan(limit: 2 * most))
        guard all.filter({ $0.expiresAt > now }).count < most else {
            throw .refused(.limit, "\(most) console tokens are live; revoke some first")
        }
        guard try record(ConsoleTokenRecord.self, token.rowKey, lock: .wait) == nil else {
            throw .refused(.conflict, "a console token has this id")
        }
        try put(token)
    }

    func removeConsoleToken(_ id: String) throws(RuleFailure) {
        let key: [ColumnValue] = [.text(id)]
        guard let token = try record(ConsoleTokenRecord.self, key, lock: .wait),
            token.expiresAt > now
        else { throw .refused(.notFound, "no such console token") }
        try delete(ConsoleTokenRecord.self, key)
    }

    func noteAudit(_ note: AuditNote) throws(RuleFailure) -> StoreAnswer {
        let number = try next(MetaRecord.auditName)
        var row = AuditRecord(note, number: number, at: now)
        guard row.status == 0 else {
            let old = try place(&row)
            try put(row, isNew: true, droppingOf: old)
            return .audited(number: number)
        }
        row.pending = number
        // Counted by those that are still open: what was settled since, however much of it was
        // refused, pushes none of them out.
        let most = Int(AuditRecord.pendingMax)
        let open = try records(
            AuditRecord.self,
            Scan(index: "audit_by_pending", limit: most + Self.auditDropped - 1))
        let old = Array(open.prefix(max(0, open.count + 1 - most)))
        try put(row, isNew: true, droppingOf: old)
        return .audited(number: number)
    }

    /// The row may have gone meanwhile: then there is nothing to say.
    func settleAudit(_ number: UInt64, status: UInt64) throws(RuleFailure) {
        guard var row = try record(AuditRecord.self, [.unsigned(number)]) else { return }
        row.status = status
        // Numbers are waited for before rows.
        let old = row.pending == nil ? [] : try place(&row)
        try put(row, droppingOf: old)
    }

    /// Gives the row its place among those carried out, or else among those refused.
    ///
    /// - Returns: the rows that this leaves no room for.
    private func place(_ row: inout AuditRecord) throws(RuleFailure) -> [AuditRecord] {
        row.pending = nil
        if row.status >= 400 {
            let place = try next(MetaRecord.auditRefusedName)
            row.refused = place
            return try rowsBeyond(place, AuditRecord.refusedMax, in: "audit_by_refused")
        }
        let place = try next(MetaRecord.auditTakenName)
        row.taken = place
        return try rowsBeyond(place, AuditRecord.countMax, in: "audit_by_taken")
    }

    private func next(_ name: String) throws(RuleFailure) -> UInt64 {
        let number = (try record(MetaRecord.self, [.text(name)], lock: .wait)?.number ?? 0) + 1
        try put(MetaRecord(name: name, number: number))
        return number
    }

    private func rowsBeyond(
        _ newest: UInt64, _ most: UInt64, in index: String
    ) throws(RuleFailure) -> [AuditRecord] {
        guard newest > most else { return [] }
        return try records(
            AuditRecord.self,
            Scan(index: index, through: [.unsigned(newest - most)], limit: Self.auditDropped))
    }

    private func put(
        _ row: AuditRecord, isNew: Bool = false, droppingOf old: [AuditRecord]
    ) throws(RuleFailure) {
        let others = old.filter { $0.number != row.number }
        for each in (others + [row]).sorted(by: { $0.number < $1.number }) {
            let known = try record(AuditRecord.self, each.rowKey, lock: .wait)
            guard each.number == row.number else {
                if known != nil { try delete(AuditRecord.self, each.rowKey) }
                continue
            }
            if isNew || known != nil { try put(row) }
        }
    }
}

extension PageReader {
    func read(
        _ query: OperatorQuery, _ limits: RuleLimits
    ) throws(StoreError) -> OperatorReading {
        switch query {
        case .consoleTokens:
            let all = try snapshot.records(
                ConsoleTokenRecord.self, Scan(limit: 2 * ConsoleTokenRecord.countMax))
            return .consoleTokens(all.filter { $0.expiresAt > now })
        case .consoleToken(let hash):
            let token = try snapshot.records(
                ConsoleTokenRecord.self,
                Scan(index: "console_token_by_hash", prefix: [.blob(hash)], limit: 1)
            ).first
            return .consoleToken(token.flatMap { $0.expiresAt > now ? $0 : nil })
        case .audit(let before, let limit):
            let limit = max(1, min(limit, limits.listRows))
            // Numbers begin at 1.
            if let before, before <= 1 { return .audit([], next: nil) }
            let rows = try snapshot.records(
                AuditRecord.self,
                Scan(
                    through: before.map { [.unsigned($0 - 1)] }, descending: true,
                    limit: limit + 1))
            let next = rows.count > limit ? rows[limit - 1].number : nil
            return .audit(Array(rows.prefix(limit)), next: next)
        case .nodes: return .nodes(try nodes(limits))
        case .users(let app, let prefix, let after, let limit):
            let limit = max(1, min(limit, limits.listRows))
            let (rows, next) = try users(of: app, prefix: prefix, after: after, limit)
            return .users(rows, next: next)
        case .user(let app, let user): return .user(try person(user, app, limits))
        }
    }

    /// Sessions that are counted, of all nodes together.
    private static let sessionsMax = 1_000

    /// Nodes that are there come first, so that those kept for their orders hide none.
    private func nodes(_ limits: RuleLimits) throws(StoreError) -> [NodeView] {
        let index = "node_by_until"
        let rows = try snapshot.records(
            NodeRecord.self, Scan(index: index, descending: true, limit: limits.listRows))
        let drains = try DrainOrder.standing(in: snapshot, for: rows)
        var left = Self.sessionsMax
        var views: [NodeView] = []
        for row in rows {
            let found = try snapshot.records(
                SessionRecord.self,
                Scan(index: "session_by_boot", prefix: [.identifier(row.boot)], limit: left + 1))
            views.append(
                NodeView(
                    node: row, sessions: min(found.count, left),
                    hasMoreSessions: found.count > left, drain: drains[row.boot]))
            left -= min(found.count, left)
        }
        return views
    }

    private func person(
        _ user: UserID, _ app: AppID, _ limits: RuleLimits
    ) throws(StoreError) -> PersonView? {
        guard let view = try view(of: user, app, limits) else { return nil }
        let most = limits.listRows
        let key: [ColumnValue] = [.app(app), .user(user)]
        let conversations = try snapshot.records(
            ParticipantRecord.self,
            Scan(index: "participant_by_user", prefix: key, limit: most))
        let settings = try snapshot.records(SettingsRecord.self, Scan(prefix: key, limit: most))
        let blocks = try snapshot.records(BlockRecord.self, Scan(prefix: key, limit: most))
        let here = conversations.filter { $0.leftRevision == nil }
        let muted = settings.filter { $0.isMuted && $0.mutedUntil.map { $0 > now } != false }
        let mutedIDs = Set(muted.map(\.conversation))
        return PersonView(
            user: view, conversations: here.count,
            muted: here.count { mutedIDs.contains($0.conversation) },
            blocked: blocks.count { $0.isBlocked },
            isCut: [conversations.count, settings.count, blocks.count].contains(most))
    }
}
