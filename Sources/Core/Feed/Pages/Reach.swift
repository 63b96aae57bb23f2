import Model
import Wire

/// What of a conversation a user may be shown: an entry shows its object's present state, and
/// who left, or came back, may not see what others changed meanwhile (promise P6, MSG-31).
struct Reach {
    let user: UserRecord
    let snapshot: any StoreSnapshot
    /// One row a conversation of a page is read once.
    private var members: [ConversationID: ParticipantRecord?] = [:]
    private var read: [ConversationID: PositionSet] = [:]

    init(user: UserRecord, snapshot: any StoreSnapshot) {
        self.user = user
        self.snapshot = snapshot
    }

    fileprivate mutating func membership(
        of conversation: ConversationID
    ) throws(StoreError) -> ParticipantRecord? {
        if let known = members[conversation] { return known }
        let found = try snapshot.record(
            ParticipantRecord.self,
            [.app(user.app), .identifier(conversation), .user(user.user)])
        members[conversation] = .some(found)
        return found
    }

    /// Whether the user takes part.
    mutating func isPresent(_ row: EntryRecord) throws(StoreError) -> Bool {
        guard let member = try membership(of: row.conversation) else { return false }
        return member.leftRevision == nil
    }

    /// Whether nobody is alerted of the message: the user has read it, has muted its conversation,
    /// or takes part no more.
    mutating func isSilent(_ row: EntryRecord, now: Timestamp) throws(StoreError) -> Bool {
        guard let member = try membership(of: row.conversation) else { return false }
        if member.leftRevision != nil || now < member.mutedUntil { return true }
        // Nearly always the membership says so.
        guard row.position <= member.readThrough else { return false }
        if let known = read[row.conversation] { return known.contains(row.position) }
        let positions = try snapshot.readPositions(user.app, user.user, row.conversation)
        read[row.conversation] = positions
        return positions.contains(row.position)
    }

    /// The number of participants that the user is told: 0 unless the conversation is large. One
    /// who left learns no more of it than that it was large then (MSG-31, MSG-38).
    mutating func participants(of conversation: ConversationRecord) throws(StoreError) -> UInt64 {
        guard let large = conversation.largeRevision else { return 0 }
        guard let left = try membership(of: conversation.conversation)?.leftRevision else {
            return conversation.participants
        }
        return left < large ? 0 : 1
    }

    /// Whether the membership as it is now is for the user.
    mutating func includes(
        _ row: EntryRecord, _ other: ParticipantRecord
    ) throws(StoreError) -> Bool {
        if row.version >= other.version || other.user == row.user { return true }
        return try membership(of: row.conversation)?.receives(other.changedRevision) ?? false
    }

    /// Whether the message as it is now is for the user. Nearly every entry has the version of
    /// its message and is above every deletion: it needs no look at the membership.
    mutating func includes(
        _ row: EntryRecord, _ message: MessageRecord
    ) throws(StoreError) -> Bool {
        if row.seq <= user.clearedHead, let member = try membership(of: row.conversation),
            message.position <= member.clearedPosition
        {
            return false
        }
        if row.version >= message.version { return true }
        guard let member = try membership(of: row.conversation) else { return false }
        // That it was deleted is also for who came back: it shows nothing.
        let sees = message.deletedAt != nil || member.joinedPosition < message.position
        return member.receives(message.revision) && sees
    }
}

extension PageReader {
    /// What says that a message or conversation is deleted, for this user or for everyone, or that
    /// an announcement was taken back.
    func tombstone(
        _ row: EntryRecord, _ reach: inout Reach
    ) throws(StoreError) -> SizedEntry? {
        if row.object.isEmpty { return try conversationTombstone(row, &reach) }
        if row.conversation == .none { return try announcementTombstone(row) }
        let hidden = try snapshot.record(
            HiddenRecord.self,
            [
                .app(row.app), .user(row.user), .identifier(row.conversation),
                .unsigned(row.position),
            ])
        if let hidden {
            let state = TombstoneState(
                position: row.position, by: row.user.name,
                deletedMs: hidden.hiddenAt.milliseconds)
            return SizedEntry(
                Entry(
                    conversation: row.conversation, object: row.object, version: row.version,
                    body: .tombstone(state)),
                bytes: row.user.name.utf8.count)
        }
        let message = try snapshot.record(
            MessageRecord.self, [.app(row.app), .blob(row.object)])
        guard let message else { return try tombstoneOfEnded(row) }
        return message.deletedAt == nil ? nil : try entry(of: message)
    }

    private func announcementTombstone(_ row: EntryRecord) throws(StoreError) -> SizedEntry? {
        let record = try found(AnnouncementRecord.self, [.app(row.app), .blob(row.object)])
        guard let deleted = record.deletedAt else { return nil }
        return tombstone(of: record, deleted, version: row.version)
    }

    /// Who left before the conversation was deleted for everyone still has the tombstones, whose
    /// messages are cleared away: a device that was away removes what it holds of them (SYN-30).
    private func tombstoneOfEnded(_ row: EntryRecord) throws(StoreError) -> SizedEntry? {
        let conversation = try snapshot.record(
            ConversationRecord.self, [.app(row.app), .identifier(row.conversation)])
        guard let deleted = conversation?.deletedAt else { return nil }
        return SizedEntry(
            Entry(
                conversation: row.conversation, object: row.object, version: row.version,
                body: .tombstone(
                    TombstoneState(
                        position: row.position, forEveryone: true,
                        deletedMs: deleted.milliseconds))),
            bytes: 0)
    }

    private func conversationTombstone(
        _ row: EntryRecord, _ reach: inout Reach
    ) throws(StoreError) -> SizedEntry? {
        guard let member = try reach.membership(of: row.conversation),
            let conversation = try snapshot.record(
                ConversationRecord.self, [.app(row.app), .identifier(row.conversation)])
        else { return nil }
        var state = TombstoneState(
            position: member.clearedPosition, conversation: true, by: row.user.name,
            deletedMs: member.clearedAt.milliseconds)
        if let deleted = conversation.deletedAt, member.leftRevision == nil {
            state = TombstoneState(
                position: conversation.position, conversation: true, forEveryone: true,
                by: conversation.deletedBy, deletedMs: deleted.milliseconds)
        }
        return SizedEntry(
            Entry(
                conversation: row.conversation, object: row.conversation.bytes,
                version: row.version, body: .tombstone(state)),
            bytes: state.by.utf8.count)
    }
}
