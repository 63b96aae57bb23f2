import Model
import Wake
import Wire

// What is published at a time. Rows alone remember it: the transaction that takes a row publishes
// it with everything a publish does, so a restart loses nothing and nobody publishes it twice.
extension Work {
    func carryOut(schedules request: ScheduleRequest) throws(RuleFailure) -> StoreAnswer {
        switch request {
        case .add(let app, let new, let idempotency):
            return try once(app, idempotency) { () throws(RuleFailure) in
                .scheduled(try self.schedule(app, new))
            }
        case .cancel(let app, let id, let idempotency):
            return try once(app, idempotency) { () throws(RuleFailure) in
                try self.cancelScheduled(app, id)
                return .done
            }
        case .publishDue(let rows): return try publishDue(rows: rows)
        }
    }

    // MARK: Asking for it

    /// Everything is checked that would be if it were published now, so that most mistakes are
    /// told to who made them.
    private func schedule(
        _ app: AppID, _ new: NewScheduled
    ) throws(RuleFailure) -> ScheduledRecord {
        guard new.sendAt > now else { throw .refused(.malformed, "send_at has passed") }
        guard new.sendAt <= now + limits.scheduleHorizon else {
            let days = limits.scheduleHorizon / 86_400_000
            throw .refused(.malformed, "send_at is more than \(days) days ahead")
        }
        // Before the conversation, in the order of locks.
        if let id = new.content.id {
            _ = try record(ScheduledRecord.self, [.app(app), .identifier(id)], lock: .wait)
        }
        let made: ScheduledRecord
        switch new.content {
        case .message(let publication): made = try scheduled(app, publication, new.sendAt)
        case .announcement(let request): made = try scheduled(app, request, new.sendAt)
        }
        try changePending(app, by: 1)
        try put(made)
        return made
    }

    private func scheduled(
        _ app: AppID, _ publication: Publication, _ sendAt: Timestamp
    ) throws(RuleFailure) -> ScheduledRecord {
        let message = publication.message
        guard let id = message.message else { throw .refused(.missingField, "no message id") }
        try checkContent(message.parts, message.push, publication.options)
        let conversation = try reachableConversation(app, message.conversation, .backend)
        try checkSender(publication.sender, of: conversation)
        try checkUnused(app, id)
        try checkKind(of: publication.options, in: app)
        try checkEnd(of: publication.options, sendAt: sendAt)
        return ScheduledRecord(
            app: app, message: id, sendAt: sendAt, createdAt: now,
            conversation: conversation.conversation,
            sender: publication.sender.isEmpty ? nil : UserID(publication.sender),
            parts: MessageState(parts: message.parts).encoded,
            pushTitle: message.push?.title ?? "", pushBody: message.push?.body ?? "",
            pushOptions: publication.options.encoded)
    }

    private func scheduled(
        _ app: AppID, _ request: Announcement, _ sendAt: Timestamp
    ) throws(RuleFailure) -> ScheduledRecord {
        let id = request.announcement
        guard id != MessageID(high: 0, low: 0) else {
            throw .refused(.malformed, "an id of zeros")
        }
        try checkContent(request.parts, request.push, request.options)
        let users = try recipients(request.users)
        try checkUnused(app, id)
        try checkKind(of: request.options, in: app)
        try checkEnd(of: request.options, sendAt: sendAt)
        for user in users {
            try insert(ScheduledRecipientRecord(app: app, user: user, message: id))
        }
        return ScheduledRecord(
            app: app, message: id, sendAt: sendAt, createdAt: now, conversation: .none,
            sender: nil, recipients: UInt64(users.count),
            parts: AnnouncementState(parts: request.parts).encoded,
            pushTitle: request.push?.title ?? "", pushBody: request.push?.body ?? "",
            pushOptions: request.options.encoded)
    }

    /// Nobody keeps the id for it: who takes it meanwhile makes it fail.
    private func checkUnused(_ app: AppID, _ id: MessageID) throws(RuleFailure) {
        let key: [ColumnValue] = [.app(app), .identifier(id)]
        if try record(ScheduledRecord.self, key) != nil {
            throw .refused(.idInUse, "something scheduled has this id")
        }
        if try record(MessageRecord.self, key) != nil {
            throw .refused(.idInUse, "the message exists")
        }
        if try record(AnnouncementRecord.self, key) != nil {
            throw .refused(.idInUse, "an announcement has this id")
        }
    }

    private func changePending(_ app: AppID, by change: Int) throws(RuleFailure) {
        var schedule =
            try record(ScheduleRecord.self, [.app(app)], lock: .wait) ?? ScheduleRecord(app: app)
        if change > 0 {
            guard schedule.pending < limits.scheduled else {
                throw .refused(.limit, "\(limits.scheduled) of the app wait for their time")
            }
            schedule.pending += 1
        } else {
            schedule.pending -= min(schedule.pending, 1)
        }
        if schedule.pending == 0 {
            try delete(ScheduleRecord.self, [.app(app)])
        } else {
            try put(schedule)
        }
    }

    // MARK: Taking it back

    private func cancelScheduled(_ app: AppID, _ id: MessageID) throws(RuleFailure) {
        let known = try record(
            ScheduledRecord.self, [.app(app), .identifier(id)], lock: .wait)
        guard let known else { throw .refused(.notFound, "nothing scheduled has this id") }
        guard known.state != .published else {
            let what = known.isAnnouncement ? "announcement" : "message"
            throw .refused(.conflict, "it was published, as the \(what) \(id)")
        }
        try drop(known)
        if known.state == .pending { effects.schedule.cancelled += 1 }
    }

    private func drop(_ scheduled: ScheduledRecord) throws(RuleFailure) {
        if scheduled.state == .pending { try changePending(scheduled.app, by: -1) }
        try drop(try recipients(of: scheduled))
        try delete(
            ScheduledRecord.self, [.app(scheduled.app), .identifier(scheduled.message)])
    }

    private func recipients(
        of scheduled: ScheduledRecord
    ) throws(RuleFailure) -> [ScheduledRecipientRecord] {
        guard scheduled.isAnnouncement else { return [] }
        return try records(
            ScheduledRecipientRecord.self,
            Scan(
                index: "scheduled_recipient_by_message",
                prefix: [.app(scheduled.app), .identifier(scheduled.message)],
                limit: Int(clamping: scheduled.recipients)))
    }

    private func drop(_ recipients: [ScheduledRecipientRecord]) throws(RuleFailure) {
        for recipient in recipients {
            try delete(ScheduledRecipientRecord.self, recipient.row)
        }
    }

    /// What a user who is deleted was to send; what he was to be told goes with his own rows.
    ///
    /// - Returns: how many were dropped.
    func dropScheduled(
        by user: UserID, _ app: AppID, limit: Int
    ) throws(RuleFailure) -> Int {
        let rows = try records(
            ScheduledRecord.self,
            Scan(index: "scheduled_by_sender", prefix: [.app(app), .user(user)], limit: limit))
        var held: [ScheduledRecord] = []
        for row in rows {
            let known = try record(ScheduledRecord.self, row.rowKey, lock: .wait)
            if let known { held.append(known) }
        }
        for row in held { try drop(row) }
        return rows.count
    }
}

// MARK: Publishing

extension Work {
    /// The name under which the app is kept of which something was published last.
    private static let turn = "schedule_turn"
    /// Apps looked at in one turn.
    private static let appsMax = 1_000
    /// What cannot be published for the time being is tried again after this.
    private static let scheduleDelay: Milliseconds = 1_000

    /// Publishes what is due, each in a step of its own: apps take turns, and each gets its share
    /// of `rows`.
    private func publishDue(rows: Int) throws(RuleFailure) -> StoreAnswer {
        let hold = try restoreHold()
        let apps = try appsWithDue()
        var left = max(1, rows)
        var isMore = false
        // What a turn leaves is the next one's, which begins with the next app.
        for (index, app) in apps.enumerated() where left > 0 {
            if index > 0, isSpent {
                isMore = true
                break
            }
            let share = (left - 1) / (apps.count - index) + 1
            let due = try self.rows(
                ScheduledRecord.table,
                Scan(
                    index: "scheduled_by_due", prefix: [.app(app)], through: [.timestamp(now)],
                    limit: share))
            var count = 0
            for row in due where count == 0 || !isSpent {
                try publish(row, hold)
                count += 1
            }
            left -= count
            isMore = isMore || count == share || count < due.count
            try step { () throws(RuleFailure) in
                try self.noteTurn(Self.turn, of: app)
            }
        }
        effects.schedule.backlog = try backlog()
        return .progressed(count: max(1, rows) - left, more: isMore)
    }

    /// Of those that may publish, beginning after the one that was served last. A suspended app
    /// waits; one on its way out takes its rows along.
    private func appsWithDue() throws(RuleFailure) -> [AppID] {
        let turn = try record(MetaRecord.self, [.text(Self.turn)])
        let start = String(decoding: turn?.bytes ?? [], as: UTF8.self)
        var after: [ColumnValue] = [.text(start)]
        var isWrapped = false
        var ready: [AppID] = []
        for _ in 0..<Self.appsMax {
            let next = try rows(
                ScheduledRecord.table,
                Scan(index: "scheduled_by_due", after: after, limit: 1)
            ).first
            guard let next else {
                if isWrapped { break }
                isWrapped = true
                // No app has an empty name.
                after = [.text("")]
                continue
            }
            let name = AppID(next[0].words)
            let isBeyond = !name.name.utf8.lexicographicallyPrecedes(start.utf8)
            if isWrapped, isBeyond, name != AppID(start) { break }
            after = [.app(name)]
            if try mayPublish(name) { ready.append(name) }
        }
        return ready
    }

    private func mayPublish(_ app: AppID) throws(RuleFailure) -> Bool {
        do throws(RuleFailure) {
            let due = try rows(
                ScheduledRecord.table,
                Scan(
                    index: "scheduled_by_due", prefix: [.app(app)], through: [.timestamp(now)],
                    limit: 1))
            guard !due.isEmpty else { return false }
            return try record(AppRecord.self, [.app(app)])?.isSuspended == false
        } catch {
            guard case .store(.corrupt(let detail)) = error else { throw error }
            notePassedOver(app, "schedule: \(detail)")
            return false
        }
    }

    /// Of an app that cannot be read nothing is published either; it is told where its turn comes.
    private func isOpen(_ app: AppID) throws(RuleFailure) -> Bool {
        do throws(RuleFailure) {
            return try record(AppRecord.self, [.app(app)])?.isSuspended == false
        } catch {
            guard case .store(.corrupt) = error else { throw error }
            return false
        }
    }

    private func backlog() throws(RuleFailure) -> ScheduleBacklog {
        var backlog = ScheduleBacklog(pending: 0, lateness: 0)
        let all = try rows(ScheduleRecord.table, Scan(limit: Self.appsMax))
        // What cannot be read is told where it is to be published.
        for schedule in all.compactMap({ try? ScheduleRecord(row: $0) }) {
            backlog.pending += schedule.pending
            // What a suspended app publishes late is late for as long as that is meant to last, and
            // would hide what is late of others.
            guard try isOpen(schedule.app) else { continue }
            let first = try rows(
                ScheduledRecord.table,
                Scan(
                    index: "scheduled_by_state",
                    prefix: [
                        .app(schedule.app), .unsigned(ScheduledRecord.State.pending.rawValue),
                    ], limit: 1)
            ).first
            let oldest = first.flatMap { try? ScheduledRecord(row: $0) }
            backlog.lateness = max(backlog.lateness, oldest.map { now.since($0.sendAt) } ?? 0)
        }
        return backlog
    }

    /// What stood in a backup that was restored waits until then; `nil`: it waits no more.
    private func restoreHold() throws(RuleFailure) -> RestoreHold? {
        let key: [ColumnValue] = [.text(MetaRecord.schedulesHeldName)]
        let most = ScheduledRecord.restoreHold
        guard let known = try record(MetaRecord.self, key) else { return nil }
        // It counts from the first turn of a server: hours may lie between the restore and that, in
        // which no backend could cancel anything. Where the clock of that turn was ahead, it counts
        // from when the clock is right.
        func isToBegin(_ hold: MetaRecord) -> Bool {
            hold.bytes == ScheduledRecord.holdBegins || hold.number > (now + most).milliseconds
        }
        if isToBegin(known) {
            let end = now + most
            try step { () throws(RuleFailure) in
                let held = try self.record(MetaRecord.self, key, lock: .wait)
                guard let held, isToBegin(held) else { return }
                try self.put(
                    MetaRecord(
                        name: MetaRecord.schedulesHeldName, number: end.milliseconds))
            }
            return RestoreHold(since: now, until: end)
        }
        let end = Timestamp(milliseconds: known.number)
        return now < end ? RestoreHold(since: end - most, until: end) : nil
    }

    /// One row, whatever comes of it: none keeps those behind it from their turn.
    private func publish(_ row: [ColumnValue], _ hold: RestoreHold?) throws(RuleFailure) {
        do throws(RuleFailure) {
            let found = try stored(try ScheduledRecord(row: row))
            if let hold, found.createdAt < hold.since {
                return try putOff(found, until: hold.until)
            }
            try publish(found)
        } catch {
            guard case .store(.corrupt(let detail)) = error else { throw error }
            notePassedOver(AppID(row[0].words), "scheduled: \(detail)")
            try setAside(row)
        }
    }

    /// It is due no more, whatever else of it cannot be read, and goes like one that has failed.
    private func setAside(_ found: [ColumnValue]) throws(RuleFailure) {
        let table = ScheduledRecord.table
        let key = Array(found.prefix(table.keyCount))
        func settle(counted: Bool) throws(RuleFailure) {
            let held = try stored(try transaction.row(table, key: key, lock: .skip))
            guard var row = held else { return }
            if counted { try changePending(AppID(row[0].words), by: -1) }
            let expires = ColumnValue.timestamp(now + ScheduledRecord.lifetime)
            let failed = ColumnValue.unsigned(ScheduledRecord.State.failed.rawValue)
            try put(failed, as: "state", of: &row, in: table)
            try put(.timestamp(now), as: "settled_at", of: &row, in: table)
            try put(expires, as: "expires_at", of: &row, in: table)
            try put(.null, as: "due", of: &row, in: table)
            effects.schedule.failed += 1
        }
        var isCounted = true
        _ = try stepPassingOver { () throws(RuleFailure) in
            try settle(counted: true)
        } unreadable: { _ in
            isCounted = false
        }
        guard !isCounted else { return }
        _ = try stepPassingOver { () throws(RuleFailure) in
            try settle(counted: false)
        } unreadable: { _ in
        }
    }

    private func publish(_ found: ScheduledRecord) throws(RuleFailure) {
        do throws(RuleFailure) {
            return try step { () throws(RuleFailure) in try self.publishNow(found) }
        } catch {
            switch error {
            case .answer(.refused(.rateLimited, _)), .store(.conflict):
                try putOff(found, until: now + Self.scheduleDelay)
            case .answer(.refused(let code, let detail)):
                try fail(found, UInt64(code.rawValue), detail)
            case .store(.corrupt(let detail)):
                notePassedOver(found.app, "scheduled: \(detail)")
                try fail(found, UInt64(Code.internal.rawValue), detail)
            default: throw error
            }
        }
    }

    /// The row, unless it is gone or settled meanwhile, or another node is at it.
    private func take(_ found: ScheduledRecord) throws(RuleFailure) -> ScheduledRecord? {
        let row = try record(
            ScheduledRecord.self, [.app(found.app), .identifier(found.message)], lock: .skip)
        return row?.state == .pending ? row : nil
    }

    private func publishNow(_ found: ScheduledRecord) throws(RuleFailure) {
        guard var scheduled = try take(found) else { return }
        guard let options = PushOptions(encoded: scheduled.pushOptions) else {
            throw .store(.corrupt("scheduled: push options"))
        }
        let push =
            scheduled.pushTitle.isEmpty && scheduled.pushBody.isEmpty
            ? nil : PushText(title: scheduled.pushTitle, body: scheduled.pushBody)
        if scheduled.isAnnouncement {
            let recipients = try recipients(of: scheduled)
            try announce(scheduled, to: recipients, push, options)
            try drop(recipients)
        } else {
            scheduled.position = try send(scheduled, push, options)
        }
        try changePending(scheduled.app, by: -1)
        effects.schedule.published.append(now.since(scheduled.sendAt))
        scheduled.state = .published
        // What it says stands in the message now.
        scheduled.parts = []
        scheduled.pushTitle = ""
        scheduled.pushBody = ""
        scheduled.pushOptions = []
        try settle(scheduled)
    }

    private func send(
        _ scheduled: ScheduledRecord, _ push: PushText?, _ options: PushOptions
    ) throws(RuleFailure) -> UInt64 {
        if let sender = scheduled.sender { try refuseDeleting([sender], scheduled.app) }
        let parts = try decoded { () throws(WireError) in
            try MessageState(encoded: scheduled.parts).parts
        }
        let request = SendMessage(
            conversation: scheduled.conversation, message: scheduled.message, parts: parts,
            push: push)
        let publication = Publication(
            message: request, sender: scheduled.sender?.name ?? "", options: options)
        return try sendMessage(scheduled.app, publication, by: .backend, isDue: true).position
    }

    private func announce(
        _ scheduled: ScheduledRecord, to recipients: [ScheduledRecipientRecord],
        _ push: PushText?, _ options: PushOptions
    ) throws(RuleFailure) {
        // Nobody is brought back by being told something. Users are looked at only where somebody
        // of the app is being deleted: there may be 1,000 of them.
        let isDeleting = try !rows(
            UserDeletionRecord.table, Scan(prefix: [.app(scheduled.app)], limit: 1)
        ).isEmpty
        var users: [String] = []
        for recipient in recipients {
            let key: [ColumnValue] = [.app(recipient.app), .user(recipient.user)]
            if isDeleting, try record(UserRecord.self, key)?.deletingSince != nil { continue }
            users.append(recipient.user.name)
        }
        guard !users.isEmpty else { throw .refused(.gone, "everybody it was for is deleted") }
        let parts = try decoded { () throws(WireError) in
            try AnnouncementState(encoded: scheduled.parts).parts
        }
        _ = try announce(
            scheduled.app,
            Announcement(
                announcement: scheduled.message, users: users, parts: parts, push: push,
                options: options), isDue: true)
    }

    private func decoded(
        _ read: () throws(WireError) -> [Part]
    ) throws(RuleFailure) -> [Part] {
        do throws(WireError) {
            return try read()
        } catch {
            throw .store(.corrupt("scheduled: parts: \(error)"))
        }
    }

    private func putOff(
        _ found: ScheduledRecord, until time: Timestamp
    ) throws(RuleFailure) {
        try step { () throws(RuleFailure) in
            guard var scheduled = try self.take(found) else { return }
            scheduled.due = time
            try self.put(scheduled)
        }
    }

    private func fail(
        _ found: ScheduledRecord, _ code: UInt64, _ detail: String
    ) throws(RuleFailure) {
        try step { () throws(RuleFailure) in
            guard var scheduled = try self.take(found) else { return }
            scheduled.state = .failed
            scheduled.code = code
            scheduled.detail = detail
            try self.drop(try self.recipients(of: scheduled))
            try self.changePending(scheduled.app, by: -1)
            self.effects.schedule.failed += 1
            try self.settle(scheduled)
        }
    }

    private func settle(_ scheduled: ScheduledRecord) throws(RuleFailure) {
        var scheduled = scheduled
        scheduled.due = nil
        scheduled.settledAt = now
        try put(scheduled)
    }
}

/// A server has started on a backup that was restored: what it holds waits, and nothing new does.
private struct RestoreHold {
    let since: Timestamp
    let until: Timestamp
}

extension NewScheduled.Content {
    fileprivate var id: MessageID? {
        switch self {
        case .message(let publication): publication.message.message
        case .announcement(let request): request.announcement
        }
    }
}
