import Model
import Wire

// DIGEST (history.md, HIS-29 to HIS-36).
extension PageReader {
    /// The next part of a digest.
    func digest(
        _ frame: DigestFrame, _ app: AppID, _ user: UserID, _ progress: DigestProgress,
        _ limits: RuleLimits
    ) throws(StoreError) -> PartialReading {
        guard let (epoch, head) = try standing(app, user) else { return .whole(.nothing) }
        let cursor = Cursor(epoch: epoch, seq: head)
        var result = DigestResult(cursor: cursor)
        guard frame.cursor == cursor else { return .whole(.history(.digest(result))) }
        let asked = frame.positions == 0 ? UInt32(limits.digestPositions) : frame.positions
        let positions = min(UInt64(asked), UInt64(limits.digestPositions))
        var progress = progress
        let end = progress.examined + limits.digestPart
        if progress.after == 0, progress.inside == nil, try isAwaited(app, user) {
            return .whole(.history(.digest(result)))
        }
        while true {
            let rows = try snapshot.records(
                ParticipantRecord.self,
                Scan(
                    index: "participant_by_activity", prefix: [.app(app), .user(user)],
                    after: [.unsigned(progress.after)], limit: Self.chunk))
            for row in rows {
                let isTooMuch =
                    progress.inside == nil
                    && progress.conversations.count >= UInt64(limits.digestConversations)
                    || progress.examined >= limits.digestMessages
                // One out of reach may be within it still, as the feed tells, or be so again.
                guard try !isOnItsWay(row.conversation, of: app) else {
                    return .whole(.history(.digest(result)))
                }
                if let reach = try reach(app, row.conversation, user) {
                    guard !isTooMuch else { return .whole(.history(.digest(result))) }
                    if progress.inside == nil { try addState(reach, to: &progress) }
                    try addMessages(reach, positions, to: &progress, end: end)
                    guard progress.inside == nil else {
                        return .rest(.history(.digest(app, user, frame, from: progress)))
                    }
                }
                progress.after = row.activity
                progress.examined += limits.digestConversation
                if progress.examined >= end {
                    return .rest(.history(.digest(app, user, frame, from: progress)))
                }
            }
            if rows.count < Self.chunk { break }
        }
        result.comparable = true
        result.conversations = progress.conversations
        result.readMarks = progress.readMarks
        result.messages = progress.messages
        return .whole(.history(.digest(result)))
    }

    /// The user joins a conversation that is not in the feed yet.
    private func isAwaited(_ app: AppID, _ user: UserID) throws(StoreError) -> Bool {
        let rows = try snapshot.records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_activity",
                prefix: [.app(app), .user(user), .unsigned(0)], limit: Self.chunk))
        for row in rows where try isOnItsWay(row.conversation, of: app) { return true }
        return rows.count == Self.chunk
    }

    /// A change of the conversation is not in all feeds yet: this user's may lack it.
    private func isOnItsWay(
        _ conversation: ConversationID, of app: AppID
    ) throws(StoreError) -> Bool {
        try !snapshot.records(
            FanOutRecord.self, Scan(prefix: [.app(app), .identifier(conversation)], limit: 1)
        ).isEmpty
    }

    private func addState(
        _ reach: HistoryReach, to progress: inout DigestProgress
    ) throws(StoreError) {
        let id = reach.conversation.conversation.bytes
        for sized in try state(of: reach) {
            switch sized.entry.body {
            case .conversationState:
                progress.conversations.add(.conversation, id: id, version: sized.entry.version)
            case .readMark:
                progress.readMarks.add(.readMark, id: id, version: sized.entry.version)
            default: break
            }
        }
    }

    /// From the newest message that is not deleted down (HIS-30), or on from where the part
    /// before ended. `inside` is `nil` after all of them.
    private func addMessages(
        _ reach: HistoryReach, _ positions: UInt64, to progress: inout DigestProgress, end: Int
    ) throws(StoreError) {
        var (through, lowest) = progress.inside ?? (reach.through, nil)
        progress.inside = nil
        while through > max(reach.above, lowest ?? 0) {
            if progress.examined >= end {
                progress.inside = (through, lowest)
                return
            }
            let messages = try self.messages(
                of: reach, above: max(reach.above, lowest ?? 0), through: through,
                ascending: false, limit: Self.chunk)
            let shown = try self.shown(messages, in: reach)
            progress.examined += messages.count
            for (message, isShown) in zip(messages, shown) {
                through = message.position - 1
                guard message.deletedAt == nil, isShown else { continue }
                let last = message.position > positions ? message.position - positions : 0
                if lowest == nil { lowest = last }
                guard message.position > lowest ?? 0 else { return }
                progress.messages.add(.message, id: message.message.bytes, version: message.version)
            }
            if messages.count < Self.chunk { return }
        }
    }
}
