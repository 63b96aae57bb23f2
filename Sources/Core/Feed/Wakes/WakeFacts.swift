import Model
import Wake
import Wire

/// What a device has not seen yet.
struct PendingEntries {
    /// Newest first.
    var entries: [EntryRecord]
    /// So much was looked through that the rest is taken to hold something.
    var isCut: Bool

    var isEmpty: Bool { entries.isEmpty && !isCut }
}

extension SessionRecord {
    /// Whether the wake path sees a socket. After its end the row counts as before until the
    /// device may be expected no longer.
    func counts(now: Timestamp) -> Bool {
        role == .app && !(dormantAt.map { $0 <= now } ?? false)
            && !(expectedUntil.map { $0 <= now } ?? false)
    }
}

extension StoreSnapshot {
    /// Entries looked through for a device that is behind.
    private static var pendingScanMax: Int { 1_024 }

    func isSessionCounted(of device: DeviceRecord, now: Timestamp) throws(StoreError) -> Bool {
        if device.withoutSessionSince != nil { return false }
        let session = try record(
            SessionRecord.self, device.wakeKey + [.unsigned(RoleKind.app.rawValue)])
        return session?.counts(now: now) ?? false
    }

    /// Visible entries the device has neither applied nor acknowledged in a range, and that still
    /// count for the user's icon (`settledPositions`).
    func pending(
        _ device: DeviceRecord, atMost most: Int, now: Timestamp
    ) throws(StoreError) -> PendingEntries {
        var found: [EntryRecord] = []
        let user = try record(UserRecord.self, [.app(device.app), .user(device.user)])
        guard let user, user.visibleHead > device.applied else {
            return PendingEntries(entries: [], isCut: false)
        }
        let stored = try device.stored()
        var marks: [ConversationID: PositionSet] = [:]
        var through = user.visibleHead
        var looked = 0
        while found.count < most, looked < Self.pendingScanMax, through > stored.through {
            // What is stored is passed over, however much it is.
            if let range = stored.ranges.last(where: {
                $0.first <= through && through <= $0.last
            }) {
                through = range.first - 1
                continue
            }
            // The newest entry is mostly one of them.
            let chunk = looked == 0 ? min(64, max(4, most)) : 64
            let limit = min(chunk, Self.pendingScanMax - looked)
            let entries = try records(
                EntryRecord.self,
                Scan(
                    prefix: [.app(device.app), .user(device.user)],
                    after: [.unsigned(stored.through)], through: [.unsigned(through)],
                    descending: true, limit: limit))
            looked += entries.count
            for entry in entries
            where entry.isVisible && found.count < most && !stored.contains(entry.seq) {
                let mark: PositionSet
                if let known = marks[entry.conversation] {
                    mark = known
                } else {
                    mark = try settledPositions(
                        entry.app, entry.user, entry.conversation, now: now)
                    marks[entry.conversation] = mark
                }
                // A visible announcement is unread: reading it supersedes its entry.
                let isRead = entry.kind != .announcement && mark.contains(entry.position)
                if !isRead, !(try isCovered(entry, on: device)) { found.append(entry) }
            }
            guard entries.count == limit, let last = entries.last else {
                return PendingEntries(entries: found, isCut: false)
            }
            through = last.seq - 1
        }
        return PendingEntries(
            entries: found, isCut: found.isEmpty && through > stored.through)
    }

    private func isCovered(_ entry: EntryRecord, on device: DeviceRecord) throws(StoreError)
        -> Bool
    {
        guard let message = MessageID(entry.object) else { return false }
        let alert = try record(AlertRecord.self, device.wakeKey + [.identifier(message)])
        return alert?.phase == .covered
    }

    /// Whether there is nothing to alert of any more.
    ///
    /// - Parameter now: `nil`: neither a mute nor an icon without a number is a reason.
    func isSettled(_ alert: AlertRecord, now: Timestamp?) throws(StoreError) -> Bool {
        if alert.conversation == .none {
            let entry = try announcementEntry(alert.app, alert.user, alert.message)
            return entry.map { $0.version > 1 } ?? true
        }
        return try settledPositions(alert.app, alert.user, alert.conversation, now: now)
            .contains(alert.position)
    }

    /// The positions of a conversation that need no alert, for they are not unread (SYN-27): what
    /// the user has read, has deleted or cannot see since coming back, and everything while the
    /// user does not take part or has muted the conversation, or once that has ended.
    private func settledPositions(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, now: Timestamp?
    ) throws(StoreError) -> PositionSet {
        var settled = try readPositions(app, user, conversation)
        guard conversation != .none else { return settled }
        let key: [ColumnValue] = [.app(app), .identifier(conversation)]
        guard let member = try record(ParticipantRecord.self, key + [.user(user)]) else {
            return settled
        }
        if member.leftRevision != nil { return .everything }
        // Nothing of it is unread, also once it has ended.
        if let now, member.unread == 0 || now < member.mutedUntil { return .everything }
        settled.add(
            through: max(member.joinedPosition, member.clearedPosition), ranges: [],
            limit: .max, rangesMax: .max)
        return settled
    }

    /// The newest message up to a position, at its place in a user's feed; `nil`: it has none.
    func newest(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, through position: UInt64
    ) throws(StoreError) -> EntryRecord? {
        let message = try records(
            MessageRecord.self,
            Scan(
                index: "message_by_position", prefix: [.app(app), .identifier(conversation)],
                through: [.unsigned(position)], descending: true, limit: 1)
        ).first
        guard let message else { return nil }
        return try entry(
            of: .message, app, user, conversation, object: message.message.bytes,
            position: message.position)
    }

    /// Messages looked at for the oldest that is meant: behind more of them than these a phone that
    /// lacks newer ones is told with its next sync.
    private static var oldestLook: Int { 8 }

    /// The entry of a conversation's newest message that counts as unread until it is read.
    func newestToBeRead(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID
    ) throws(StoreError) -> EntryRecord? {
        try toBeRead(app, user, conversation, after: nil, isDescending: true, limit: 1).first
    }

    /// The entry of the oldest such message above a position whose own position `isMeant` takes.
    func oldestToBeRead(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, after position: UInt64,
        where isMeant: (UInt64) -> Bool
    ) throws(StoreError) -> EntryRecord? {
        try toBeRead(
            app, user, conversation, after: [.unsigned(position)], isDescending: false,
            limit: Self.oldestLook
        ).first { isMeant($0.position) }
    }

    private func toBeRead(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, after: [ColumnValue]?,
        isDescending: Bool, limit: Int
    ) throws(StoreError) -> [EntryRecord] {
        try records(
            EntryRecord.self,
            Scan(
                index: "entry_by_place",
                prefix: [
                    .app(app), .user(user), .identifier(conversation),
                    EntryRecord.place(isToBeRead: true),
                ],
                after: after, descending: isDescending, limit: limit))
    }

    private static var noMessage: MessageID { MessageID(high: 0, low: 0) }

    /// What the push of a device names that is so far behind that nobody looks through it all:
    /// the newest message or announcement of its user's feed.
    func newestChange(of user: UserRecord) throws(StoreError) -> VisibleChange {
        let entries = try records(
            EntryRecord.self,
            Scan(
                prefix: [.app(user.app), .user(user.user)],
                through: [.unsigned(user.visibleHead)], descending: true, limit: 64))
        var change =
            entries.first { $0.kind == .message || $0.kind == .announcement }?.visibleChange
            ?? VisibleChange(seq: 0, conversation: .none, message: Self.noMessage)
        change.seq = user.visibleHead
        return change
    }
}

extension EntryRecord {
    /// The message or announcement it is about, at its place in the feed.
    var visibleChange: VisibleChange {
        VisibleChange(
            seq: seq, conversation: conversation,
            message: MessageID(object) ?? MessageID(high: 0, low: 0))
    }
}
