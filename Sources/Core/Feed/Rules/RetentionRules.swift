import Model

/// What retention does; each kind in a step of its own.
private enum RetentionPart: CaseIterable {
    case expired, removedApps, compaction, purges, erasures, events
}

extension Work {
    /// The number of shares into which the rows of one turn are divided: every part of retention
    /// has one of them.
    private static let sharesPerTurn = 16

    /// Deletes what is past its retention, what deletions left behind, and the rows of removed
    /// apps: about `rows`, and no more than one turn may take. Each round gives every part its
    /// share, so that none waits for all of another.
    func enforceRetention(rows: Int) throws(RuleFailure) -> StoreAnswer {
        let share = max(1, min(rows, limits.rowsPerTurn / Self.sharesPerTurn))
        var count = 0
        var more = true
        while more, count == 0 || (count < rows && !isSpent) {
            more = false
            for part in RetentionPart.allCases {
                let (deleted, isMore) = try step { () throws(RuleFailure) in
                    try self.carryOut(part, share)
                }
                count += deleted
                more = more || isMore
            }
            if count == 0 { break }
        }
        return .progressed(count: count, more: more)
    }

    private func carryOut(
        _ part: RetentionPart, _ limit: Int
    ) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        switch part {
        case .expired: try deleteExpired(limit)
        case .removedApps: try deleteRemovedApp(limit)
        case .compaction: try compact(limit)
        case .purges: try purge(limit)
        case .erasures: try eraseNames(limit)
        case .events: try dropEvents(limit)
        }
    }

    private func deleteExpired(
        _ limit: Int
    ) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        var count = 0
        for table in Schema.tables where count < limit {
            guard case .until(_, let index) = table.retention else { continue }
            count += try deleteRows(
                of: table,
                Scan(index: index, through: [.timestamp(now)], limit: limit - count))
        }
        return (count, count >= limit)
    }

    /// One removed app at a time.
    private func deleteRemovedApp(
        _ limit: Int
    ) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        let removed = try records(
            MetaRecord.self,
            Scan(
                after: [.text(MetaRecord.removedPrefix)],
                through: [.text(MetaRecord.removedEnd)], limit: 1))
        guard let name = removed.first?.name else { return (0, false) }
        let app = String(name.dropFirst(MetaRecord.removedPrefix.count))
        // Its connections are told first.
        let ends = SessionEndRecord(app: AppID(app), cause: .removed)
        if try record(SessionEndRecord.self, ends.key) != nil {
            return (try continueSessionEnds().count, true)
        }
        var count = 0
        for table in Schema.tables
        where table.columns.first?.name == "app" && count < limit {
            count += try deleteRows(of: table, Scan(prefix: [.text(app)], limit: limit - count))
        }
        if count == 0 {
            try delete(MetaRecord.self, [.text(MetaRecord.resetsPrefix + app)])
            try delete(MetaRecord.self, [.text(MetaRecord.latenciesPrefix + app)])
            try delete(MetaRecord.self, [.text(MetaRecord.batchesPrefix + app)])
            try delete(MetaRecord.self, [.text(name)])
        }
        return (count, true)
    }

    func deleteRows(of table: Table, _ scan: Scan) throws(RuleFailure) -> Int {
        do throws(StoreError) {
            let rows = try transaction.rows(table, scan)
            for row in rows {
                try transaction.delete(table, key: Array(row.prefix(table.keyCount)))
            }
            return rows.count
        } catch {
            throw .store(error)
        }
    }
}
