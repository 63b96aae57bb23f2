import Model

extension Work {
    /// Makes a store of a backup. Devices, backends and pushes know a history that went on after
    /// it: nothing they say of that may hold for what is written from now on.
    ///
    /// - The store's half of every epoch is drawn anew: cursors, snapshots and digests of before
    ///   are answered with *epoch changed* (SYN-24).
    /// - Every feed's head is raised far above what it can have reached: numbers without an epoch
    ///   (`applied` and ranges of an ACK) never name an entry of the new history (SYN-15).
    /// - Session tokens are dropped: one revoked since must not let in again.
    /// - Numbers of webhooks' events are raised as far: a receiver that drops ids it has (WHK-10)
    ///   must not take new events for those of the lost history.
    /// - So are those of dropped tokens: a backend's `after` must not pass over what comes.
    /// - Campaigns that were not over are paused: what left after the backup is not known.
    /// - What was scheduled for a time that has passed, or is near, waits for a while, which begins
    ///   with the first turn of a server: the backend may have cancelled it since the backup, and
    ///   can again.
    ///
    /// Mutation floors stay: a number above them was taken in the lost history only, and is taken
    /// again with what the device still has to say (MSG-12). Positions stay: they have no gaps.
    /// Leases and sessions of other boots end with the next start; push ids are drawn by chance.
    func restore(epochHalf: UInt64) throws(RuleFailure) -> StoreAnswer {
        let before = try record(MetaRecord.self, [.text(MetaRecord.epochName)])?.number ?? 0
        let half = epochHalf & .halfMask
        guard half != 0, half != before else {
            throw .store(.corrupt("the epoch drawn is the backup's own"))
        }
        try holdSchedules()
        var users: UInt64 = 0
        var last: UserRecord?
        while true {
            let found = try records(
                UserRecord.self,
                Scan(
                    after: last.map { Array($0.row.prefix(UserRecord.table.keyCount)) },
                    limit: limits.listRows, lock: .wait))
            for var user in found {
                user.head = try raised(user.head)
                try put(user)
                users += 1
            }
            guard found.count == limits.listRows else { break }
            last = found.last
        }
        let tokens = try deleteAll(of: SessionTokenRecord.table)
        // As with sessions: one that was revoked since must not let in again.
        let consoleTokens = try deleteAll(of: ConsoleTokenRecord.table)
        try pauseCampaigns()
        let (epoch, base) = (MetaRecord.epochName, MetaRecord.numberBaseName)
        _ = try record(MetaRecord.self, [.text(epoch)], lock: .wait)
        try put(MetaRecord(name: epoch, number: half))
        let known = try record(MetaRecord.self, [.text(base)], lock: .wait)?.number ?? 0
        try put(MetaRecord(name: base, number: try raised(known)))
        let hold = MetaRecord.schedulesHeldName
        _ = try record(MetaRecord.self, [.text(hold)], lock: .wait)
        let until = now + ScheduledRecord.restoreHold
        try put(
            MetaRecord(
                name: hold, number: until.milliseconds, bytes: ScheduledRecord.holdBegins))
        // Nor what was sealed by keys that lay beside the backup.
        for slot in 0..<TicketKey.slots {
            let name: [ColumnValue] = [.text(MetaRecord.ticketKeyName(slot))]
            guard try record(MetaRecord.self, name, lock: .wait) != nil else { continue }
            try delete(MetaRecord.self, name)
        }
        try raiseEventNumbers()
        return .restored(users: users, tokens: tokens, consoleTokens: consoleTokens)
    }

    private func holdSchedules() throws(RuleFailure) {
        let table = ScheduledRecord.table
        let held = now + ScheduledRecord.restoreHold
        var last: [ColumnValue]?
        while true {
            // In the order of their keys, which this does not change; as they are stored, for a
            // restore does not end at one that cannot be read.
            let found = try rows(table, Scan(after: last, limit: limits.listRows, lock: .wait))
            for var row in found where ScheduledRecord.isDue(row, by: held) {
                try put(.timestamp(held), as: "due", of: &row, in: table)
            }
            guard found.count == limits.listRows, let end = found.last else { return }
            last = Array(end.prefix(table.keyCount))
        }
    }

    private func raiseEventNumbers() throws(RuleFailure) {
        var last: OutboxRecord?
        while true {
            let found = try records(
                OutboxRecord.self,
                Scan(
                    after: last.map { Array($0.row.prefix(OutboxRecord.table.keyCount)) },
                    limit: limits.listRows, lock: .wait))
            for var outbox in found {
                outbox.last = try raised(outbox.last)
                try put(outbox)
            }
            guard found.count == limits.listRows else { return }
            last = found.last
        }
    }

    /// Numbers are stored signed; there is room for two thousand million restores.
    private func raised(_ head: UInt64) throws(RuleFailure) -> UInt64 {
        let (raised, isOver) = head.addingReportingOverflow(limits.restoreHeadStep)
        guard !isOver, raised <= .halfMask else {
            throw .store(.corrupt("no number is left above \(head)"))
        }
        return raised
    }

    /// - Returns: how many rows there were.
    private func deleteAll(of table: Table) throws(RuleFailure) -> UInt64 {
        var (count, last): (UInt64, [ColumnValue]?) = (0, nil)
        while true {
            // Behind what is deleted already: a database would give it again until it is told.
            let scan = Scan(after: last, limit: limits.listRows)
            let found = try rows(table, scan)
            count += UInt64(try deleteRows(of: table, scan) { _ in true })
            guard found.count == limits.listRows, let end = found.last else { return count }
            last = Array(end.prefix(table.keyCount))
        }
    }
}

extension ScheduledRecord {
    /// What is published, or failed, is due no more.
    fileprivate static func isDue(_ row: [ColumnValue], by moment: Timestamp) -> Bool {
        guard let place = table.columns.firstIndex(where: { $0.name.isExactly("due") }),
            case .integer(let due) = row[place]
        else { return false }
        return UInt64(max(0, due)) < moment.milliseconds
    }
}
