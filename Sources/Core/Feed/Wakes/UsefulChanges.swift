import Model
import Wake
import Wire

// A device with a session that counts is owed no wake for what is useful: it hears of it there. If
// the session ends before the device has it, the rows still say what it missed.
extension StoreSnapshot {
    /// Entries looked at for one that the device would like to know of: what is further down is
    /// told with the next sync.
    private static var usefulLook: Int { 8 }

    /// The newest change that is useful to a device and that it has not stored: a passive message
    /// or announcement, or something that it may be showing and that was read on another device or
    /// is gone. What the device read itself is none.
    func usefulPending(_ device: DeviceRecord, now: Timestamp) throws(StoreError)
        -> VisibleChange?
    {
        let user = try record(UserRecord.self, [.app(device.app), .user(device.user)])
        let stored = try device.stored()
        guard let head = user?.usefulHead, head > stored.through else { return nil }
        let entries = try records(
            EntryRecord.self,
            Scan(
                prefix: [.app(device.app), .user(device.user)],
                after: [.unsigned(stored.through)], through: [.unsigned(head)],
                descending: true, limit: Self.usefulLook))
        for entry in entries where !stored.contains(entry.seq) {
            if let change = try useful(entry, to: device, stored, now: now) { return change }
        }
        return nil
    }

    private func useful(
        _ entry: EntryRecord, to device: DeviceRecord, _ stored: PositionSet, now: Timestamp
    ) throws(StoreError) -> VisibleChange? {
        switch entry.kind {
        case .message: try isPassive(entry, now: now) ? entry.visibleChange : nil
        case .announcement: try isPassiveAnnouncement(entry) ? entry.visibleChange : nil
        case .readMark: try readElsewhere(entry, on: device, stored)
        case .tombstone where entry.conversation == .none:
            try isTakenBack(entry, stored) ? entry.visibleChange : nil
        case .tombstone: try isGone(entry, stored, now: now) ? entry.visibleChange : nil
        case .conversation, .participant, .receipt, .metadata, .conversationSettings, .block: nil
        }
    }

    /// The message asked for a silent push at most, as when it came.
    private func isPassive(_ entry: EntryRecord, now: Timestamp) throws(StoreError) -> Bool {
        // What alerts is unread until it is read: it is no passive one.
        guard !entry.isVisible, entry.unreadPosition == nil, entry.firstSeq == entry.seq,
            let message = try message(of: entry), message.isUseful(entry.user),
            !(try readPositions(entry.app, entry.user, entry.conversation)
                .contains(entry.position))
        else { return false }
        return try isHeard(entry, now: now)
    }

    private func isPassiveAnnouncement(_ entry: EntryRecord) throws(StoreError) -> Bool {
        guard !entry.isVisible, entry.version == 1, let id = MessageID(entry.object),
            let announcement = try record(
                AnnouncementRecord.self, [.app(entry.app), .identifier(id)])
        else { return false }
        return announcement.urgency == .passive && announcement.deletedAt == nil
    }

    /// An announcement that the device has and may be showing, for the user had not read it.
    private func isTakenBack(
        _ entry: EntryRecord, _ stored: PositionSet
    ) throws(StoreError) -> Bool {
        guard stored.contains(entry.firstSeq), entry.version == 2,
            let id = MessageID(entry.object)
        else { return false }
        return try record(AnnouncementRecord.self, [.app(entry.app), .identifier(id)])?
            .mayBeShown ?? false
    }

    /// A message of somebody else that was read then and that the device may be showing: one of
    /// the newest, or of the oldest, where the device lacks the newest; `nil` also if it was read
    /// there.
    private func readElsewhere(
        _ entry: EntryRecord, on device: DeviceRecord, _ stored: PositionSet
    ) throws(StoreError) -> VisibleChange? {
        let key: [ColumnValue] = [
            .app(entry.app), .user(entry.user), .identifier(entry.conversation),
        ]
        guard let mark = try record(ReadMarkRecord.self, key),
            let fellAt = mark.fellAt, !stored.contains(fellAt), mark.fellBy != device.device,
            let read = PositionSet(through: mark.through, rangeBytes: mark.ranges)
        else { return nil }
        var messages: [MessageRecord] = []
        for isDescending in [true, false] where messages.count % Self.usefulLook == 0 {
            messages += try records(
                MessageRecord.self,
                Scan(
                    index: "message_by_position",
                    prefix: [.app(entry.app), .identifier(entry.conversation)],
                    after: [.unsigned(mark.fellFrom ?? 0)],
                    through: [.unsigned(read.ranges.last?.last ?? read.through)],
                    descending: isDescending, limit: Self.usefulLook))
        }
        // The mark may have risen since over messages that the device lacks, or the user's own.
        for message in messages
        where message.alerts(entry.user) && read.contains(message.position) {
            let found = try self.entry(
                of: .message, entry.app, entry.user, entry.conversation,
                object: message.message.bytes, position: message.position)
            // It may have been edited since, which the device need not know of to be showing it.
            guard let found, stored.contains(found.firstSeq) || stored.contains(found.seq)
            else { continue }
            var change = found.visibleChange
            change.seq = entry.seq
            return change
        }
        return nil
    }

    /// Somebody else's message that the device has, the user has not read, and is deleted for all.
    private func isGone(
        _ entry: EntryRecord, _ stored: PositionSet, now: Timestamp
    ) throws(StoreError) -> Bool {
        guard stored.contains(entry.firstSeq), let message = try message(of: entry),
            UserID(message.sender) != entry.user, message.deletedAt != nil,
            try isHeard(entry, now: now)
        else { return false }
        return
            !(try readPositions(entry.app, entry.user, entry.conversation)
            .contains(entry.position))
    }

    /// The conversation is not muted.
    private func isHeard(_ entry: EntryRecord, now: Timestamp) throws(StoreError) -> Bool {
        let key: [ColumnValue] = [
            .app(entry.app), .identifier(entry.conversation), .user(entry.user),
        ]
        guard let member = try record(ParticipantRecord.self, key) else { return false }
        return member.mutedUntil <= now
    }

    private func message(of entry: EntryRecord) throws(StoreError) -> MessageRecord? {
        guard let id = MessageID(entry.object) else { return nil }
        return try record(MessageRecord.self, [.app(entry.app), .identifier(id)])
    }
}
