import Model

extension Work {
    /// Deletes what is past its retention, what deletions left behind, and the rows of removed
    /// apps, at most `rows` of each table; each kind in a step of its own.
    func enforceRetention(rows: Int) throws(RuleFailure) -> StoreAnswer {
        let limit = max(1, rows)
        var (count, more) = try step { () throws(RuleFailure) in try self.deleteExpired(limit) }
        let compacted = try step { () throws(RuleFailure) in try self.compact(limit) }
        let purged = try step { () throws(RuleFailure) in try self.purge(limit) }
        let erased = try step { () throws(RuleFailure) in try self.eraseNames(limit) }
        let dropped = try step { () throws(RuleFailure) in try self.dropEvents(limit) }
        for part in [compacted, purged, erased, dropped] {
            count += part.deleted
            more = more || part.isMore
        }
        return .progressed(count: count, more: more)
    }

    private func deleteExpired(
        _ limit: Int
    ) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        var count = 0
        var more = false
        for table in Schema.tables {
            guard case .until(_, let index) = table.retention else { continue }
            let deleted = try deleteRows(
                of: table, Scan(index: index, through: [.timestamp(now)], limit: limit))
            count += deleted
            more = more || deleted == limit
        }
        let (removed, isMore) = try deleteRemovedApp(limit)
        return (count + removed, more || isMore)
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
        for table in Schema.tables where table.columns.first?.name == "app" {
            count += try deleteRows(of: table, Scan(prefix: [.text(app)], limit: limit))
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
