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
            ParticipantRecord.self,
            Scan(
                index: "participant_by_unread", prefix: [.app(app), .user(user)],
                through: [.timestamp(now)], limit: Int(UnreadCount.most)))
        return min(rows.reduce(0) { $0 + $1.unread }, UnreadCount.most)
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
            ParticipantRecord.self,
            Scan(index: "participant_by_unread", prefix: prefix, limit: some))
        let muted = rows.firstIndex { $0.mutedUntil > now }
        if muted != nil || rows.count < some {
            let shown = rows[..<(muted ?? rows.count)]
            return (
                min(shown.reduce(0) { $0 + $1.unread }, UnreadCount.most),
                UnreadTime(from: now, until: muted.map { rows[$0].mutedUntil })
            )
        }
        let next = try records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_unread", prefix: prefix, after: [.timestamp(now)],
                limit: 1))
        return (
            try unread(app, user, now: now),
            UnreadTime(from: now, until: next.first?.mutedUntil)
        )
    }

    /// Whether the user has read what is at the position. Nearly always the membership says so
    /// without a look at the read mark.
    func isRead(_ position: UInt64, by member: ParticipantRecord) throws(StoreError) -> Bool {
        guard position <= member.readThrough else { return false }
        return try readPositions(member.app, member.user, member.conversation)
            .contains(position)
    }

    /// Counts the entries that are to be read above everything read, between what was read alone:
    /// no entry is counted that does not count, and no more than the number shows.
    fileprivate func countUnread(
        of member: ParticipantRecord, _ read: PositionSet
    ) throws(StoreError) -> UInt64 {
        guard member.leftRevision == nil, !member.isGone else { return 0 }
        var count: UInt64 = 0
        var after = max(read.through, member.joinedPosition, member.clearedPosition)
        for range in read.ranges where count < UnreadCount.most && range.last > after {
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
                index: "entry_by_place",
                prefix: [
                    .app(member.app), .user(member.user), .identifier(member.conversation),
                    EntryRecord.place(isToBeRead: true),
                ],
                after: [.unsigned(after)], through: [.unsigned(through)],
                limit: Int(UnreadCount.most - known)))
        return UInt64(entries.count)
    }

    /// What the user has read of a conversation.
    func readPositions(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID
    ) throws(StoreError) -> PositionSet {
        let key: [ColumnValue] = [.app(app), .user(user), .identifier(conversation)]
        guard let mark = try record(ReadMarkRecord.self, key) else { return PositionSet() }
        guard let set = PositionSet(through: mark.through, rangeBytes: mark.ranges) else {
            throw .corrupt("read_mark: ranges are not pairs")
        }
        return set
    }
}

extension StoreTransaction {
    /// A message came that is to be read and was not.
    ///
    /// - Parameter member: written by the caller afterwards.
    func addUnread(to member: inout ParticipantRecord) {
        guard member.unread < UnreadCount.most else { return }
        let before = member
        member.unread += 1
        noteUnread(before, member)
    }

    /// The entry at `position` has begun, or ceased, to be one that is to be read; nothing else
    /// has changed. Counts by one where the number before is known, else anew.
    func entryChanged(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, at position: UInt64,
        isToBeRead: Bool, now: Timestamp
    ) throws(StoreError) {
        // At its limit the number stands for itself or more; at zero there is little to count.
        // A user who left the conversation, or deleted it, has nothing to read there.
        guard
            var member = try record(
                ParticipantRecord.self, [.app(app), .identifier(conversation), .user(user)]),
            member.unread > 0, member.unread < UnreadCount.most, member.leftRevision == nil,
            !member.isGone
        else {
            try recountUnread(app, user, conversation, now: now)
            return
        }
        guard position > max(member.joinedPosition, member.clearedPosition),
            try !isRead(position, by: member)
        else { return }
        let before = member
        member.unread = isToBeRead ? member.unread + 1 : member.unread - 1
        noteUnread(before, member)
        try put(member)
    }

    /// Something changed that the number depends on, or a mute or a read mark: counts anew, and
    /// brings what the membership says of both in step.
    ///
    /// - Returns: whether the icon shows less now.
    @discardableResult
    func recountUnread(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, now: Timestamp
    ) throws(StoreError) -> Bool {
        guard
            let before = try record(
                ParticipantRecord.self, [.app(app), .identifier(conversation), .user(user)])
        else { return false }
        var after = before
        let read = try inStep(&after)
        after.unread = try countUnread(of: after, read)
        if after.unread != before.unread || after.mutedUntil != before.mutedUntil {
            noteUnread(before, after)
        }
        if after != before { try put(after) }
        return after.shown(now: now) < before.shown(now: now)
    }

    /// The end of a membership has come into the feed: nothing of the conversation is to be read.
    ///
    /// - Returns: whether the icon shows less now.
    func endUnread(of member: ParticipantRecord, now: Timestamp) throws(StoreError) -> Bool {
        let key: [ColumnValue] = [
            .app(member.app), .identifier(member.conversation), .user(member.user),
        ]
        guard let before = try record(ParticipantRecord.self, key), before.unread > 0
        else { return false }
        var after = before
        after.unread = 0
        try put(after)
        noteUnread(before, after)
        return before.shown(now: now) > 0
    }

    /// Lets the membership say what the user's settings and read mark say.
    ///
    /// - Returns: what is read.
    @discardableResult
    func inStep(_ member: inout ParticipantRecord) throws(StoreError) -> PositionSet {
        let settings = try record(
            SettingsRecord.self,
            [.app(member.app), .user(member.user), .identifier(member.conversation)])
        let read = try readPositions(member.app, member.user, member.conversation)
        member.mutedUntil = settings?.quietUntil ?? .blank
        member.readThrough = read.ranges.last?.last ?? read.through
        return read
    }
}

extension StoreTransaction {
    /// Everything that writes the number tells so here, for sessions that keep it.
    fileprivate func noteUnread(_ before: ParticipantRecord, _ after: ParticipantRecord) {
        (self as? MeteredTransaction)?.note(UnreadStep(before: before, after: after))
    }
}

extension UnreadStep {
    /// By how much the icon's number changes with the conversation's.
    fileprivate func change(now: Timestamp) -> UnreadChange {
        var change = UnreadChange()
        change.by =
            Int(clamping: after.shown(now: now)) - Int(clamping: before.shown(now: now))
        change.muteEnds = [before, after].filter { $0.unread > 0 }
            .map(\.mutedUntil).filter { $0 > now }.min()
        return change
    }
}

extension Work {
    /// What the request did to the numbers of unread messages goes to the users' changes.
    func noteUnread() {
        for step in transaction.unreadSteps {
            let row = step.after
            var change = FeedChange(app: row.app, user: row.user, head: 0, kinds: 0)
            change.unread = step.change(now: now)
            if !change.unread.isNothing { effects.note(change) }
        }
    }
}

extension ParticipantRecord {
    /// What the icon shows of it.
    fileprivate func shown(now: Timestamp) -> UInt64 { mutedUntil <= now ? unread : 0 }
}
