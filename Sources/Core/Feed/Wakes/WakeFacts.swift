import Model
import Wake

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
        let session = try record(
            SessionRecord.self, device.wakeKey + [.unsigned(RoleKind.app.rawValue)])
        return session?.counts(now: now) ?? false
    }

    /// Visible entries the device has neither applied nor acknowledged in a range, and that the
    /// user has not read elsewhere.
    func pending(_ device: DeviceRecord, atMost most: Int) throws(StoreError) -> PendingEntries {
        var found: [EntryRecord] = []
        let user = try record(UserRecord.self, [.app(device.app), .user(device.user)])
        guard let user, user.visibleHead > device.applied else {
            return PendingEntries(entries: [], isCut: false)
        }
        var marks: [ConversationID: PositionSet] = [:]
        var through = user.visibleHead
        var looked = 0
        while found.count < most, looked < Self.pendingScanMax, through > device.applied {
            let limit = min(64, Self.pendingScanMax - looked)
            let entries = try records(
                EntryRecord.self,
                Scan(
                    prefix: [.app(device.app), .user(device.user)],
                    after: [.unsigned(device.applied)], through: [.unsigned(through)],
                    descending: true, limit: limit))
            looked += entries.count
            for entry in entries where entry.isVisible && found.count < most {
                let mark: PositionSet
                if let known = marks[entry.conversation] {
                    mark = known
                } else {
                    mark = try readPositions(entry.app, entry.user, entry.conversation)
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
            entries: found, isCut: found.isEmpty && through > device.applied)
    }

    private func isCovered(_ entry: EntryRecord, on device: DeviceRecord) throws(StoreError)
        -> Bool
    {
        guard let message = MessageID(entry.object) else { return false }
        let alert = try record(AlertRecord.self, device.wakeKey + [.identifier(message)])
        return alert?.phase == .covered
    }

    func isRead(_ alert: AlertRecord) throws(StoreError) -> Bool {
        if alert.conversation == .none {
            let entry = try announcementEntry(alert.app, alert.user, alert.message)
            return entry.map { $0.version > 1 } ?? true
        }
        return try readPositions(alert.app, alert.user, alert.conversation).contains(alert.position)
    }

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

    /// Of one conversation.
    func unreadCount(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID
    ) throws(StoreError) -> UInt64 {
        try record(UnreadRecord.self, [.app(app), .user(user), .identifier(conversation)])?.count
            ?? 0
    }

    /// Where the newest message up to a position stands in a user's feed; `nil`: it does not.
    func newestSeq(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, through position: UInt64
    ) throws(StoreError) -> UInt64? {
        let message = try records(
            MessageRecord.self,
            Scan(
                index: "message_by_position", prefix: [.app(app), .identifier(conversation)],
                through: [.unsigned(position)], descending: true, limit: 1)
        ).first
        guard let message else { return nil }
        return try records(
            EntryRecord.self,
            Scan(
                index: "entry_by_object",
                prefix: [
                    .app(app), .user(user), .unsigned(EntryKind.message.rawValue),
                    .identifier(conversation), .blob(message.message.bytes),
                ],
                limit: 1)
        ).first?.seq
    }

    /// The number for the icon: unread visible messages of all conversations.
    func unread(_ app: AppID, _ user: UserID) throws(StoreError) -> UInt64 {
        let rows = try records(
            UnreadRecord.self,
            Scan(prefix: [.app(app), .user(user)], limit: Int(UnreadRecord.countMax)))
        return min(rows.reduce(0) { $0 + $1.count }, UnreadRecord.countMax)
    }
}

extension StoreTransaction {
    /// Batches of messages one recount looks at.
    private static var recountRounds: Int { 16 }

    /// A visible entry was appended: one more to read, unless it was counted already.
    func countUnread(_ entry: EntryRecord) throws(StoreError) {
        // Announcements are not counted (MSG-51).
        guard entry.kind == .message else { return }
        let key: [ColumnValue] = [
            .app(entry.app), .user(entry.user), .identifier(entry.conversation),
        ]
        var row =
            try record(UnreadRecord.self, key)
            ?? UnreadRecord(
                app: entry.app, user: entry.user, conversation: entry.conversation, count: 0,
                through: 0)
        guard entry.position > row.through else { return }
        row.count = min(row.count + 1, UnreadRecord.countMax)
        row.through = entry.position
        try put(row)
    }

    private func blockedUsers(_ app: AppID, _ user: UserID) throws(StoreError) -> Set<UserID> {
        let blocks = try records(
            BlockRecord.self, Scan(prefix: [.app(app), .user(user)], limit: RuleLimits().blocks))
        return Set(blocks.filter(\.isBlocked).map(\.other))
    }

    /// The read mark moved: counts what is left above it, at most as much as a badge shows.
    func recountUnread(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, read: PositionSet,
        now: Timestamp
    ) throws(StoreError) {
        let key: [ColumnValue] = [.app(app), .user(user), .identifier(conversation)]
        guard try record(UnreadRecord.self, key) != nil else { return }
        // A muted conversation counts nothing, and who is blocked does not either.
        let settings = try record(
            SettingsRecord.self, [.app(app), .user(user), .identifier(conversation)])
        if settings?.isMuted(now: now) == true { return try delete(UnreadRecord.self, key) }
        let blocked = try blockedUsers(app, user)
        let participant = try record(
            ParticipantRecord.self, [.app(app), .identifier(conversation), .user(user)])
        var row = UnreadRecord(
            app: app, user: user, conversation: conversation, count: 0, through: 0)
        row.through = max(
            read.through, participant?.joinedPosition ?? 0, participant?.clearedPosition ?? 0)
        let last = participant?.leftRevision == nil ? .max : participant?.leftPosition ?? 0
        for _ in 0..<Self.recountRounds where row.count < UnreadRecord.countMax {
            let messages = try records(
                MessageRecord.self,
                Scan(
                    index: "message_by_position", prefix: [.app(app), .identifier(conversation)],
                    after: [.unsigned(row.through)], limit: 128))
            let hidden = try hiddenPositions(
                app, user, conversation, after: row.through, through: messages.last?.position ?? 0)
            for message in messages where message.position <= last {
                row.through = message.position
                if message.alerts(user), !read.contains(message.position),
                    !blocked.contains(UserID(message.sender)),
                    !hidden.contains(message.position)
                {
                    row.count += 1
                }
            }
            if messages.count < 128 { break }
        }
        row.count = min(row.count, UnreadRecord.countMax)
        if row.count == 0 {
            try delete(UnreadRecord.self, key)
        } else {
            try put(row)
        }
    }
}

extension StoreSnapshot {
    /// Positions between the bounds, `through` included, that the user deleted for the own
    /// devices. Called for as many messages at most.
    func hiddenPositions(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, after: UInt64,
        through: UInt64
    ) throws(StoreError) -> Set<UInt64> {
        guard through > after else { return [] }
        let rows = try records(
            HiddenRecord.self,
            Scan(
                prefix: [.app(app), .user(user), .identifier(conversation)],
                after: [.unsigned(after)], through: [.unsigned(through)],
                limit: Int(clamping: through - after)))
        return Set(rows.map(\.position))
    }
}

extension MessageRecord {
    /// Whether it has something an alert could show.
    var hasPushText: Bool {
        !(pushTitle.isEmpty && pushBody.isEmpty)
            || PushOptions(encoded: pushOptions)?.hasKeyText ?? false
    }

    var urgency: Urgency { PushOptions.urgency(of: pushOptions) }
    var timing: AlertTiming { PushOptions.timing(of: pushOptions) }

    /// Whether it may alert the user: somebody else's, with a push text, and not passive.
    func alerts(_ user: UserID) -> Bool {
        UserID(sender) != user && hasPushText && urgency != .passive
    }

    /// Whether it is worth a silent push and no more: somebody else's, passive.
    func isUseful(_ user: UserID) -> Bool {
        UserID(sender) != user && urgency == .passive && deletedAt == nil
    }
}
