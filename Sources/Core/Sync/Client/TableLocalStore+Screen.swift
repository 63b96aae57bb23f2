public import Model
internal import Wire

/// What an app may show of a message or an announcement.
public enum NotificationStanding: Equatable, Sendable {
    /// It is not stored here: the app cannot tell.
    case unknown
    /// Unread, and not in a conversation that the user has muted.
    case shows
    /// Unread, in a muted conversation: nothing new is shown, what stands may stand.
    case muted
    /// Read or deleted on whichever device: a notification of it is removed.
    case over
}

// Notifications judged by what is stored, so that a process that has just begun knows as much as
// the one that was killed.
extension TableLocalStore {
    /// - Parameters:
    ///   - conversation: of the message; `nil`: an announcement.
    ///   - time: a mute with an end has ended by then.
    public func standing(
        of object: MessageID, in conversation: ConversationID?, at time: Timestamp
    ) throws(LocalStoreError) -> NotificationStanding {
        guard let conversation else { return try standing(ofAnnouncement: object) }
        let message = try entries(
            Scan(prefix: [.unsigned(2), .blob(conversation.bytes), .blob(object.bytes)], limit: 1)
        ).first
        guard let message else {
            // MSG-36, MSG-37: deleted with its conversation.
            return try isDeleted(conversation) ? .over : .unknown
        }
        guard case .message(let state) = message.body else { return .over }
        if let mark = try readMark(of: conversation) {
            let isRead =
                state.position <= mark.through
                || mark.ranges.contains {
                    $0.first <= state.position && state.position <= $0.last
                }
            if isRead { return .over }
        }
        return try isMuted(conversation, at: time) ? .muted : .shows
    }

    private func standing(
        ofAnnouncement id: MessageID
    ) throws(LocalStoreError) -> NotificationStanding {
        let found = try entries(
            Scan(prefix: [.unsigned(6), .blob([]), .blob(id.bytes)], limit: 1)
        ).first
        guard case .announcement(let state) = found?.body else { return .unknown }
        return state.read ? .over : .shows
    }

    private func isDeleted(_ conversation: ConversationID) throws(LocalStoreError) -> Bool {
        let state = try entries(
            Scan(prefix: [.unsigned(0), .blob(conversation.bytes)], limit: 1)
        ).first
        if case .tombstone = state?.body { return true }
        return false
    }

    private func isMuted(
        _ conversation: ConversationID, at time: Timestamp
    ) throws(LocalStoreError) -> Bool {
        let settings = try entries(
            Scan(prefix: [.unsigned(7), .blob(conversation.bytes)], limit: 1)
        ).first
        guard case .conversationSettings(let state) = settings?.body, state.muted else {
            return false
        }
        return state.mutedUntilMs == 0 || time.milliseconds < state.mutedUntilMs
    }
}
