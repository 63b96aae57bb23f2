import Model
import Wire

extension Work {
    private func positions(of mark: ReadMarkRecord) throws(RuleFailure) -> PositionSet {
        guard let set = PositionSet(through: mark.through, rangeBytes: mark.ranges) else {
            throw .store(.corrupt("read_mark: ranges are not pairs"))
        }
        return set
    }

    /// Merges read receipts into the user's read marks; a mark that changed goes into the own
    /// feed, for the other devices. A conversation out of reach is passed over: ACK has no
    /// answer, and the rest of it counts.
    ///
    /// - Parameter device: the session's. What was read changes what every device of the user is
    ///   owed, this one included, so its row is written before and read again after.
    func read(
        _ receipts: [ReadReceipt], _ session: SessionKey, _ feed: inout OpenFeed,
        _ device: inout DeviceRecord
    ) throws(RuleFailure) {
        guard !receipts.isEmpty else { return }
        try put(device)
        try read(receipts, session, &feed)
        device = try record(DeviceRecord.self, session.deviceKey) ?? device
    }

    private func read(
        _ receipts: [ReadReceipt], _ session: SessionKey, _ feed: inout OpenFeed
    ) throws(RuleFailure) {
        guard receipts.count <= limits.readsPerRequest,
            receipts.allSatisfy({ $0.ranges.count <= limits.rangesPerRequest })
        else { throw .refused(.limit, "too many read receipts") }
        for receipt in receipts {
            if let announcement = receipt.announcement {
                try readAnnouncement(announcement, &feed)
                continue
            }
            guard let id = receipt.conversation,
                let conversation = try readConversation(id, session),
                conversation.deletedAt == nil,
                let participant = try membership(
                    session.app, conversation.conversation, session.user)
            else { continue }
            try read(receipt, conversation, participant, session, &feed)
        }
    }

    /// That of the id, or the one that the conversation of this id was merged into (MSG-24), which
    /// is looked for only where there is none.
    private func readConversation(
        _ id: ConversationID, _ session: SessionKey
    ) throws(RuleFailure) -> ConversationRecord? {
        let key: [ColumnValue] = [.app(session.app), .identifier(id)]
        if let conversation = try record(ConversationRecord.self, key) { return conversation }
        let target = try target(session.app, id)
        guard target != id else { return nil }
        return try record(ConversationRecord.self, [.app(session.app), .identifier(target)])
    }

    private func read(
        _ receipt: ReadReceipt, _ conversation: ConversationRecord,
        _ participant: ParticipantRecord, _ session: SessionKey, _ feed: inout OpenFeed
    ) throws(RuleFailure) {
        var mark =
            try record(
                ReadMarkRecord.self,
                [
                    .app(participant.app), .user(participant.user),
                    .identifier(conversation.conversation),
                ])
            ?? ReadMarkRecord(
                app: participant.app, user: participant.user,
                conversation: conversation.conversation, through: 0, version: 0)
        let before = try positions(of: mark)
        var after = before
        // Who was removed reads what came before; the authors are told no more.
        let isPresent = participant.leftRevision == nil
        after.add(
            through: receipt.through, ranges: receipt.ranges,
            limit: isPresent ? conversation.position : participant.leftPosition,
            rangesMax: limits.rangesPerReadMark)
        guard after != before else { return }
        mark.through = after.through
        mark.ranges = after.rangeBytes
        mark.version += 1
        try put(mark)
        try append(.readMark(mark), to: &feed)
        try noteWakes(
            try wakeRules.readElsewhere(
                mark, before: before, head: feed.user.head, on: session.device))
        let joined = participant.joinedPosition
        let read = after.through(whereSeenAbove: joined)
        if isPresent, read > before.through(whereSeenAbove: joined) {
            try raiseReceipt(of: participant, in: conversation) { $0.read = read }
        }
    }

    /// MSG-52: on all own devices, once. One that never came to this user, and one that was taken
    /// back, is passed over.
    private func readAnnouncement(
        _ id: MessageID, _ feed: inout OpenFeed
    ) throws(RuleFailure) {
        let (app, user) = (feed.user.app, feed.user.user)
        guard let announcement = try record(AnnouncementRecord.self, [.app(app), .identifier(id)]),
            announcement.deletedAt == nil,
            let entry = try stored(try transaction.announcementEntry(app, user, id)),
            entry.version == 1
        else { return }
        try append(.announcement(announcement, isRead: true), to: &feed)
        try noteWakes(
            try wakeRules.announcementRead(
                app, user, id, from: entry.seq, head: feed.user.head))
    }
}
