import Model
import Wake
import Wire

// SYN-27: what is unread follows from the feed, the read mark and the settings of the user alone,
// so that a replica that holds them counts the same. Whatever changes one of them calls this file.
extension StoreSnapshot {
    /// The number for the icon: what is unread in all conversations that are not muted now.
    func unread(_ app: AppID, _ user: UserID, now: Timestamp) throws(StoreError) -> UInt64 {
        // A row counts one at least: more of them cannot change the number.
        let rows = try records(
            UnreadRecord.self,
            Scan(
                index: "unread_by_mute", prefix: [.app(app), .user(user)],
                through: [.timestamp(now)], limit: Int(UnreadRecord.countMax)))
        return min(rows.reduce(0) { $0 + $1.count }, UnreadRecord.countMax)
    }

    /// The same, and for which time it holds: a mute may end.
    func unreadShown(
        _ app: AppID, _ user: UserID, now: Timestamp
    ) throws(StoreError) -> (count: UInt64, time: UnreadTime) {
        let prefix: [ColumnValue] = [.app(app), .user(user)]
        // In the order in which their mutes end, those without one first: nearly always this is
        // all of them.
        let some = 32
        let rows = try records(
            UnreadRecord.self, Scan(index: "unread_by_mute", prefix: prefix, limit: some))
        let muted = rows.firstIndex { $0.mutedUntil > now }
        if muted != nil || rows.count < some {
            let shown = rows[..<(muted ?? rows.count)]
            return (
                min(shown.reduce(0) { $0 + $1.count }, UnreadRecord.countMax),
                UnreadTime(from: now, until: muted.map { rows[$0].mutedUntil })
            )
        }
        let next = try records(
            UnreadRecord.self,
            Scan(
                index: "unread_by_mute", prefix: prefix, after: [.timestamp(now)], limit: 1))
        return (
            try unread(app, user, now: now),
            UnreadTime(from: now, until: next.first?.mutedUntil)
        )
    }

    /// The number of one conversation, muted or not.
    func unreadCount(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID
    ) throws(StoreError) -> UInt64 {
        try record(UnreadRecord.self, [.app(app), .user(user), .identifier(conversation)])?.count
            ?? 0
    }

    /// Counts the entries that are to be read above everything read, between what was read alone:
    /// no entry is counted that does not count, and no more than the number shows.
    fileprivate func countUnread(of member: ParticipantRecord) throws(StoreError) -> UInt64 {
        guard member.leftRevision == nil, !member.isGone else { return 0 }
        let read = try readPositions(member.app, member.user, member.conversation)
        var count: UInt64 = 0
        var after = max(read.through, member.joinedPosition, member.clearedPosition)
        for range in read.ranges where count < UnreadRecord.countMax && range.last > after {
            if range.first > after + 1 {
                count += try countUnread(of: member, after, range.first - 1, less: count)
            }
            after = range.last
        }
        return try count + countUnread(of: member, after, .max >> 1, less: count)
    }

    private func countUnread(
        of member: ParticipantRecord, _ after: UInt64, _ through: UInt64, less known: UInt64
    ) throws(StoreError) -> UInt64 {
        let entries = try records(
            EntryRecord.self,
            Scan(
                index: "entry_by_unread",
                prefix: [.app(member.app), .user(member.user), .identifier(member.conversation)],
                after: [.unsigned(after)], through: [.unsigned(through)],
                limit: Int(UnreadRecord.countMax - known)))
        return UInt64(entries.count)
    }
}

extension StoreTransaction {
    /// A message came that is to be read and was not.
    ///
    /// - Parameter mutedUntil: `nil`: the user has set nothing for the conversation.
    func addUnread(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, mutedUntil: Timestamp?
    ) throws(StoreError) {
        let key: [ColumnValue] = [.app(app), .user(user), .identifier(conversation)]
        var row =
            try record(UnreadRecord.self, key)
            ?? UnreadRecord(
                app: app, user: user, conversation: conversation, count: 0,
                mutedUntil: mutedUntil ?? Timestamp(milliseconds: 0))
        guard row.count < UnreadRecord.countMax else { return }
        let before = row
        row.count += 1
        try put(row)
        noteUnread(before, row)
    }

    /// The entry at `position` has begun, or ceased, to be one that is to be read; nothing else
    /// has changed. Counts by one where the number before is known, else anew.
    func entryChanged(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, at position: UInt64,
        isToBeRead: Bool, now: Timestamp
    ) throws(StoreError) {
        let key: [ColumnValue] = [.app(app), .user(user), .identifier(conversation)]
        // At its most the number stands for more than it says; without a row there is little to
        // count. Who left, or deleted the conversation, has nothing to read there.
        guard var row = try record(UnreadRecord.self, key), row.count > 0,
            row.count < UnreadRecord.countMax,
            let member = try record(
                ParticipantRecord.self, [.app(app), .identifier(conversation), .user(user)]),
            member.leftRevision == nil, !member.isGone
        else {
            try recountUnread(app, user, conversation, now: now)
            return
        }
        guard position > max(member.joinedPosition, member.clearedPosition),
            try !readPositions(app, user, conversation).contains(position)
        else { return }
        let before = row
        row.count = isToBeRead ? row.count + 1 : row.count - 1
        noteUnread(before, row)
        if row.count == 0 { return try delete(UnreadRecord.self, key) }
        try put(row)
    }

    /// Something changed that the number depends on: counts anew.
    ///
    /// - Returns: whether the icon shows less now.
    @discardableResult
    func recountUnread(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, now: Timestamp
    ) throws(StoreError) -> Bool {
        let key: [ColumnValue] = [.app(app), .user(user), .identifier(conversation)]
        let before = try record(UnreadRecord.self, key)
        let member = try record(
            ParticipantRecord.self, [.app(app), .identifier(conversation), .user(user)])
        let settings = try record(SettingsRecord.self, key)
        var after = UnreadRecord(
            app: app, user: user, conversation: conversation, count: 0,
            mutedUntil: settings?.quietUntil ?? Timestamp(milliseconds: 0))
        if let member { after.count = try countUnread(of: member) }
        if after != before { noteUnread(before, after) }
        if after.count == 0 {
            if before != nil { try delete(UnreadRecord.self, key) }
        } else if after != before {
            try put(after)
        }
        return after.shown(now: now) < before?.shown(now: now) ?? 0
    }
}

/// A row of unread messages before and after it was written; one that counts nothing is as good as
/// none.
struct UnreadStep {
    var before: UnreadRecord?
    var after: UnreadRecord?
}

extension StoreTransaction {
    /// Everything that writes such a row tells so here, for sessions that keep the number.
    fileprivate func noteUnread(_ before: UnreadRecord?, _ after: UnreadRecord?) {
        (self as? MeteredTransaction)?.note(UnreadStep(before: before, after: after))
    }
}

extension UnreadStep {
    /// What the icon shows more, or less, of the row.
    func change(now: Timestamp) -> UnreadChange {
        var change = UnreadChange()
        change.by =
            Int(clamping: after?.shown(now: now) ?? 0) - Int(clamping: before?.shown(now: now) ?? 0)
        change.muteEnds = [before, after].compactMap { $0 }.filter { $0.count > 0 }
            .map(\.mutedUntil).filter { $0 > now }.min()
        return change
    }
}

extension Work {
    /// What the request did to the numbers of unread messages goes to the users' changes.
    func noteUnread() {
        for step in transaction.unreadSteps {
            guard let row = step.after ?? step.before else { continue }
            var change = FeedChange(app: row.app, user: row.user, head: 0, kinds: 0)
            change.unread = step.change(now: now)
            if !change.unread.isNothing { effects.note(change) }
        }
    }
}

extension UnreadRecord {
    /// What the icon shows of it.
    fileprivate func shown(now: Timestamp) -> UInt64 { mutedUntil <= now ? count : 0 }
}

extension Work {
    /// The end of a membership has come into the feed: nothing of the conversation is to be read.
    func endUnread(of member: ParticipantRecord) throws(RuleFailure) {
        effects.note(
            try waking { () throws(StoreError) in
                let key: [ColumnValue] = [
                    .app(member.app), .user(member.user), .identifier(member.conversation),
                ]
                guard let before = try self.transaction.record(UnreadRecord.self, key) else {
                    return WakeEffects()
                }
                try self.transaction.delete(UnreadRecord.self, key)
                self.transaction.noteUnread(before, nil)
                guard before.shown(now: self.now) > 0 else { return WakeEffects() }
                return try WakeRules.unreadFell(
                    member.app, member.user, member.conversation, in: self.transaction,
                    now: self.now)
            })
    }
}
