import Model
import Wire

// What a row looks like to a client, in a page of the feed, of history and of a snapshot alike.
// `seq` is for the feed to fill in.
extension PageReader {
    /// - Parameter participants: Of a large conversation the number that the user is told; else 0.
    func entry(of record: ConversationRecord, participants: UInt64) -> SizedEntry {
        let state = ConversationState(
            createdMs: record.createdAt.milliseconds, creator: record.creator,
            distinct: !record.distinctKey.isEmpty, receiptsOff: record.receiptsOff,
            participants: UInt32(clamping: participants))
        return SizedEntry(
            Entry(
                conversation: record.conversation, object: record.conversation.bytes, version: 1,
                body: .conversationState(state)),
            bytes: record.creator.utf8.count)
    }

    func entry(of record: ParticipantRecord) -> SizedEntry {
        let state = ParticipantState(
            user: record.user.name, joinedPosition: record.joinedPosition,
            removed: record.leftRevision != nil)
        return SizedEntry(
            Entry(
                conversation: record.conversation, version: record.version,
                body: .participant(state)),
            bytes: record.user.name.utf8.count)
    }

    /// The message, or its tombstone if it was deleted for everyone.
    ///
    /// - Parameter language: of the device that gets it by its feed.
    func entry(
        of record: MessageRecord, in language: DeviceLanguage? = nil
    ) throws(StoreError) -> SizedEntry {
        if let deleted = record.deletedAt {
            let state = TombstoneState(
                position: record.position, forEveryone: true, by: record.deletedBy,
                deletedMs: deleted.milliseconds)
            return SizedEntry(
                Entry(
                    conversation: record.conversation, object: record.message.bytes,
                    version: record.version, body: .tombstone(state)),
                bytes: record.deletedBy.utf8.count)
        }
        var state: MessageState
        do throws(WireError) {
            state = try MessageState(storedParts: record.parts)
        } catch {
            throw .corrupt("message: parts: \(error)")
        }
        state.position = record.position
        state.sender = record.sender
        state.sentMs = record.sentAt.milliseconds
        state.editedMs = record.editedAt?.milliseconds ?? 0
        let push = try PushState(
            title: record.pushTitle, body: record.pushBody, options: record.pushOptions,
            in: language)
        state.push = push.text
        state.hints = push.hints
        return SizedEntry(
            Entry(
                conversation: record.conversation, object: record.message.bytes,
                version: record.version, body: .message(state)),
            bytes: record.parts.count + record.sender.utf8.count + push.bytes)
    }

    func entry(of record: ReceiptRecord) -> SizedEntry {
        let state = ReceiptState(
            user: record.user.name, deliveredThrough: record.announcedDelivered,
            readThrough: record.announcedRead)
        return SizedEntry(
            Entry(
                conversation: record.conversation, version: record.version, body: .receipt(state)),
            bytes: record.user.name.utf8.count)
    }

    func entry(of record: ReadMarkRecord) throws(StoreError) -> SizedEntry {
        guard let set = PositionSet(through: record.through, rangeBytes: record.ranges) else {
            throw .corrupt("read_mark: ranges are not pairs")
        }
        return SizedEntry(
            Entry(
                conversation: record.conversation, version: record.version,
                body: .readMark(ReadMarkState(through: set.through, ranges: set.ranges))),
            bytes: set.ranges.count * 26)
    }
}

// What conversations and users have set.
extension PageReader {
    func entry(of record: MetadataRecord) throws(StoreError) -> SizedEntry {
        var state: MetadataState
        do throws(WireError) {
            state = try MetadataState(encoded: record.state)
        } catch {
            throw .corrupt("metadata: \(error)")
        }
        return SizedEntry(
            Entry(
                conversation: record.conversation, version: record.version, body: .metadata(state)),
            bytes: record.state.count)
    }

    func entry(of record: SettingsRecord) -> SizedEntry {
        let state = ConversationSettings(
            muted: record.isMuted(now: now), mutedUntilMs: record.mutedUntil?.milliseconds ?? 0)
        return SizedEntry(
            Entry(
                conversation: record.conversation, version: record.version,
                body: .conversationSettings(state)),
            bytes: 0)
    }

    func entry(of record: BlockRecord) -> SizedEntry {
        SizedEntry(
            Entry(
                version: record.version,
                body: .block(BlockState(user: record.other.name, blocked: record.isBlocked))),
            bytes: record.other.name.utf8.count)
    }
}

extension PageReader {
    /// The announcement, or its tombstone if it was taken back: with the version of the entry that
    /// is on its way into the feed.
    ///
    /// - Parameters:
    ///   - version: of the entry in the feed it is for: it says whether it was read.
    ///   - language: of the device that gets it by its feed.
    func entry(
        of record: AnnouncementRecord, version: UInt64, in language: DeviceLanguage? = nil
    ) throws(StoreError) -> SizedEntry {
        if let deleted = record.deletedAt {
            return tombstone(of: record, deleted, version: version + 1)
        }
        var state: AnnouncementState
        do throws(WireError) {
            state = try AnnouncementState(encoded: record.parts)
        } catch {
            throw .corrupt("announcement: parts: \(error)")
        }
        state.sentMs = record.sentAt.milliseconds
        let push = try PushState(
            title: record.pushTitle, body: record.pushBody, options: record.pushOptions,
            in: language)
        state.push = push.text
        state.hints = push.hints
        state.read = version > 1
        return SizedEntry(
            Entry(
                object: record.announcement.bytes, version: version, body: .announcement(state)),
            bytes: record.parts.count + push.bytes)
    }

    func tombstone(
        of record: AnnouncementRecord, _ deleted: Timestamp, version: UInt64
    ) -> SizedEntry {
        SizedEntry(
            Entry(
                object: record.announcement.bytes, version: version,
                body: .tombstone(
                    TombstoneState(forEveryone: true, deletedMs: deleted.milliseconds))),
            bytes: 0)
    }
}
