import Model
import Wire

extension MetaRecord {
    /// The number of the newest row of the audit log.
    static let auditName = "audit"
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
        let name: [ColumnValue] = [.text(MetaRecord.auditName)]
        let number = (try record(MetaRecord.self, name, lock: .wait)?.number ?? 0) + 1
        try put(MetaRecord(name: MetaRecord.auditName, number: number))
        if number > AuditRecord.countMax {
            let old = try records(
                AuditRecord.self,
                Scan(
                    through: [.unsigned(number - AuditRecord.countMax)], limit: Self.auditDropped))
            for row in old {
                _ = try record(AuditRecord.self, row.rowKey, lock: .wait)
                try delete(AuditRecord.self, row.rowKey)
            }
        }
        let row = AuditRecord(note, number: number, at: now)
        _ = try record(AuditRecord.self, row.rowKey, lock: .wait)
        try put(row)
        return .audited(number: number)
    }

    /// The row may have gone meanwhile: then there is nothing to say.
    func settleAudit(_ number: UInt64, status: UInt64) throws(RuleFailure) {
        guard var row = try record(AuditRecord.self, [.unsigned(number)], lock: .wait) else {
            return
        }
        row.status = status
        try put(row)
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
        case .nodes:
            return .nodes(try snapshot.records(NodeRecord.self, Scan(limit: limits.listRows)))
        }
    }
}
