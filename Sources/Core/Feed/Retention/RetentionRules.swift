import Model

/// What retention does; each kind in a step of its own.
private enum RetentionPart: CaseIterable {
    case removedApps, compaction, erasures, events
}

extension Work {
    /// The number of shares into which the rows of one turn are divided: every part of retention
    /// has one of them.
    private static let sharesPerTurn = 16
    private static let devicesPerStep = 8

    /// Deletes what is past its retention, what deletions left behind, and the rows of removed
    /// apps: about `rows`, and no more than one turn may take. Each round gives every part its
    /// share, so that none waits for all of another.
    func enforceRetention(rows: Int) throws(RuleFailure) -> StoreAnswer {
        let share = max(1, min(rows, limits.rowsPerTurn / Self.sharesPerTurn))
        var count = 0
        var more = true
        while more, count == 0 || (count < rows && !isSpent) {
            let (deleted, isMore) = try deleteExpired(share)
            count += deleted
            more = isMore
            var parts = try [purge(share)]
            for part in RetentionPart.allCases {
                if let done = try carryOutPassingOver(part, share) { parts.append(done) }
            }
            for (deleted, isMore) in parts {
                count += deleted
                more = more || isMore
            }
            if count == 0 { break }
        }
        return .progressed(count: count, more: more)
    }

    /// What cannot be read keeps no other part from its turn, and is moved out of the way of its
    /// own.
    private func carryOutPassingOver(
        _ part: RetentionPart, _ limit: Int
    ) throws(RuleFailure) -> (deleted: Int, isMore: Bool)? {
        var problem: String?
        let done = try stepPassingOver { () throws(RuleFailure) in
            try self.carryOut(part, limit)
        } unreadable: {
            problem = $0
        }
        guard let problem else { return done }
        notePassedOver(AppID(""), "retention, \(part): \(problem)")
        let moved: Void? = try stepPassingOver { () throws(RuleFailure) in
            switch part {
            case .compaction: try self.putOffCompaction(limit)
            case .erasures: try self.putOffErasure()
            case .removedApps, .events: break
            }
        } unreadable: { _ in
        }
        return moved == nil ? nil : (0, false)
    }

    private func carryOut(
        _ part: RetentionPart, _ limit: Int
    ) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        switch part {
        case .removedApps: try deleteRemovedApp(limit)
        case .compaction: try compact(limit)
        case .erasures: try eraseNames(limit)
        case .events: try dropEvents(limit)
        }
    }

    /// Each table is looked through in a step of its own.
    private func deleteExpired(
        _ limit: Int
    ) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        var count = 0
        for table in Schema.tables where count < limit {
            guard case .until(let name, let index) = table.retention,
                let column = table.columns.firstIndex(where: { $0.name.isExactly(name) })
            else { continue }
            // Each device has tags that go with it.
            let most = table == DeviceRecord.table ? Self.devicesPerStep : limit
            var found = 0
            repeat {
                let scan = Scan(
                    index: index, through: [.timestamp(now)], limit: min(most, limit - count))
                let step = try deleteExpired(of: table, column, scan)
                found = step.found
                count += step.rows
            } while found == most && count < limit && !isSpent
        }
        return (count, count >= limit)
    }

    /// - Returns: the number of rows found, and of these and those deleted with them.
    private func deleteExpired(
        of table: Table, _ column: Int, _ scan: Scan
    ) throws(RuleFailure) -> (found: Int, rows: Int) {
        let done = try stepPassingOver { () throws(RuleFailure) in
            var devices: [[ColumnValue]] = []
            let found = try self.deleteRows(of: table, scan) { row in
                // It may have been given more time since it was found.
                guard case .integer(let until) = row[column],
                    UInt64(max(0, until)) <= self.now.milliseconds
                else { return false }
                if table == DeviceRecord.table { devices.append(Array(row.prefix(3))) }
                return true
            }
            var rows = found
            for device in devices { rows += try self.deleteTags(of: device) }
            return (found: found, rows: rows)
        } unreadable: { detail in
            self.notePassedOver(AppID(""), "retention, \(table.name): \(detail)")
        }
        return done ?? (0, 0)
    }

    /// The device is forgotten: nobody asks for what it was tagged with. Its user is locked.
    private func deleteTags(of device: [ColumnValue]) throws(RuleFailure) -> Int {
        let tags = try records(TagRecord.self, Scan(prefix: device, limit: limits.tags))
        for tag in tags { try delete(TagRecord.self, tag.rowKey) }
        return tags.count
    }

    /// Removed apps whose rows are gone, and of which a node may not know yet, at most: behind so
    /// many of them the next one waits.
    private static let removedAtOnce = 16

    /// First what the app itself holds, so that nothing more is done in its name, and what is still
    /// to be done in many feeds, which other apps would wait for; webhooks before the outbox that
    /// they cannot be without. Then from the end of the schema, so that what belongs to users goes
    /// before the users themselves: a user who is served meanwhile has a row that says where the
    /// feed stands.
    private static let removalOrder: [Table] = {
        let own = Schema.tables.filter { $0.columns.first?.name == "app" }
        let held = [
            IssuerKeyRecord.table, APIKeyRecord.table, PushCredentialRecord.table,
            FanOutRecord.table, AnnouncementBatchRecord.table, AnnouncementAudienceRecord.table,
            WebhookRecord.table,
        ]
        return held + own.reversed().filter { !held.contains($0) }
    }()

    /// One removed app at a time.
    private func deleteRemovedApp(
        _ limit: Int
    ) throws(RuleFailure) -> (deleted: Int, isMore: Bool) {
        let removed = try records(
            MetaRecord.self,
            Scan(
                after: [.text(MetaRecord.removedPrefix)],
                through: [.text(MetaRecord.removedEnd)], limit: Self.removedAtOnce))
        let next = removed.first { $0.bytes != MetaRecord.rowsAreGone || isKnownToNodes($0) }
        guard var next else { return (0, false) }
        let app = String(next.name.dropFirst(MetaRecord.removedPrefix.count))
        // Its connections are told first.
        let ends = SessionEndRecord(app: AppID(app), cause: .removed)
        if try record(SessionEndRecord.self, ends.key) != nil {
            return (try continueSessionEnd(ends, atMost: limits.sessionsPerTurn).count, true)
        }
        // One table a step, in the order of the rows that protect its own.
        for table in Self.removalOrder {
            let count = try deleteRows(of: table, Scan(prefix: [.text(app)], limit: limit)) { _ in
                true
            }
            if count > 0 { return (count, true) }
        }
        let isShared = try records(NodeRecord.self, Scan(limit: 2)).count > 1
        guard isShared, !isKnownToNodes(next) else {
            try forgetRemoval(of: AppID(app))
            return (0, true)
        }
        // Other nodes go by the apps that they read with their last beat: until they have read
        // again, the removed app's keys would be taken for those of a new app of its name.
        guard try record(MetaRecord.self, next.rowKey, lock: .wait) != nil else { return (0, true) }
        next.bytes = MetaRecord.rowsAreGone
        try put(next)
        return (0, true)
    }

    /// Whether each node that may still use the store has read that this app is no more.
    func isKnownToNodes(_ removed: MetaRecord) -> Bool {
        now >= Timestamp(milliseconds: removed.number) + limits.nodeLease
    }

    /// The name is free again. A backend that remembers the number of a dropped token of it hears
    /// of those of a new app of that name, for they go on above it.
    func forgetRemoval(of app: AppID) throws(RuleFailure) {
        let prefixes = [
            MetaRecord.batchesPrefix, MetaRecord.latenciesPrefix, MetaRecord.resetsPrefix,
            MetaRecord.suspensionsPrefix,
            MetaRecord.removedPrefix, MetaRecord.tokenFeedbackPrefix,
        ]
        let base = MetaRecord.numberBaseName
        let feedback = try record(
            MetaRecord.self, [.text(MetaRecord.tokenFeedbackPrefix + app.name)])
        let names = prefixes.map { $0 + app.name } + (feedback == nil ? [] : [base])
        // In the order in which rows of this table are locked.
        for name in names.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
            let known = try record(MetaRecord.self, [.text(name)], lock: .wait)
            if name == base {
                let number = max(known?.number ?? 0, feedback?.number ?? 0)
                try put(MetaRecord(name: name, number: number))
            } else {
                try delete(MetaRecord.self, [.text(name)])
            }
        }
    }
}
