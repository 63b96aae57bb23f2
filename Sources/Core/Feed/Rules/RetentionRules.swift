import Model

extension Work {
    /// Deletes what is past its retention, and the rows of removed apps, at most `rows` of each
    /// table.
    func enforceRetention(rows: Int) throws(RuleFailure) -> StoreAnswer {
        let limit = max(1, rows)
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
        return .progressed(count: count + removed, more: more || isMore)
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
        var count = 0
        for table in Schema.tables where table.columns.first?.name == "app" {
            count += try deleteRows(of: table, Scan(prefix: [.text(app)], limit: limit))
        }
        if count == 0 { try delete(MetaRecord.self, [.text(name)]) }
        return (count, true)
    }

    private func deleteRows(of table: Table, _ scan: Scan) throws(RuleFailure) -> Int {
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
