public import Model
public import Wire

// Notifications judged by what is stored, so that a process that has just begun knows as much as
// the one that was killed.
extension TableLocalStore {
    /// - Parameters:
    ///   - conversation: of the message; `nil`: an announcement.
    ///   - time: a mute with an end has ended by then.
    public func standing(
        of object: MessageID, in conversation: ConversationID?, at time: Timestamp
    ) throws(LocalStoreError) -> NotificationStanding {
        try standings(of: [(object, conversation)], at: time)[0]
    }

    /// What is stored of a message, or of an announcement, also that it was deleted or taken back.
    ///
    /// - Parameter conversation: of the message; `nil`: an announcement.
    public func entry(
        of object: MessageID, in conversation: ConversationID?
    ) throws(LocalStoreError) -> Entry? {
        try read { snapshot throws(StoreError) in
            try Self.entry(of: object, in: conversation, snapshot)
        }
    }

    static func entry(
        of object: MessageID, in conversation: ConversationID?, _ snapshot: any StoreSnapshot
    ) throws(StoreError) -> Entry? {
        guard let conversation else {
            return try snapshot.entry(.announcement, of: [], object.bytes)
        }
        return try snapshot.entry(.message, of: conversation.bytes, object.bytes)
    }

    /// The same of many, in their order; what is of a conversation is read once.
    public func standings(
        of shown: [(object: MessageID, conversation: ConversationID?)], at time: Timestamp
    ) throws(LocalStoreError) -> [NotificationStanding] {
        var known: [ConversationID: Surroundings] = [:]
        var standings: [NotificationStanding] = []
        for (object, conversation) in shown {
            guard let conversation else {
                standings.append(try standing(ofAnnouncement: object))
                continue
            }
            if known[conversation] == nil {
                known[conversation] = try surroundings(in: conversation, at: time)
            }
            guard let around = known[conversation] else { continue }
            standings.append(try standing(of: object, in: conversation, around))
        }
        return standings
    }

    /// Whether a user's rows were erased, and what the phone shows of them perhaps was not: then
    /// it goes before anything of another user is shown. Only a store that keeps what is owed says
    /// so, for nobody else shows anything.
    public func hasFormerScreen() throws(LocalStoreError) -> Bool {
        try read { snapshot throws(StoreError) in
            try Self.fact(Fact.formerScreen, snapshot) != nil
        }
    }

    /// Nothing of a former user stands on the screen any more.
    public func formerScreenCleared() throws(LocalStoreError) {
        try write { transaction throws(StoreError) in
            try transaction.delete(LocalStateRecord.self, [.text(Fact.formerScreen)])
        }
    }

    /// What a conversation says of all its notifications.
    private struct Surroundings {
        /// Above which position there may be unread messages; `nil`: nowhere.
        var above: UInt64?
        /// The conversation is stored from there on.
        var wholeFrom: UInt64
        var mark: ReadMarkState?
        var isMuted: Bool
    }

    private func surroundings(
        in conversation: ConversationID, at time: Timestamp
    ) throws(LocalStoreError) -> Surroundings {
        Surroundings(
            above: try reach(in: conversation), wholeFrom: try wholeFrom(conversation),
            mark: try markHere(of: conversation), isMuted: try isMuted(conversation, at: time))
    }

    /// The read mark, with what this device has said and the server has not heard of yet.
    private func markHere(
        of conversation: ConversationID
    ) throws(LocalStoreError) -> ReadMarkState? {
        let mark = try readMark(of: conversation)
        let said: ReadReceipt? = try read { snapshot throws(StoreError) in
            let row = try snapshot.record(LocalReadRecord.self, [.blob(conversation.bytes)])
            guard let row else { return nil }
            return try Self.decoded(row.receipt)
        }
        guard let said else { return mark }
        return ReadMarkState(
            through: max(mark?.through ?? 0, said.through),
            ranges: (mark?.ranges ?? []) + said.ranges)
    }

    /// How many messages are unread (SYN-27) by what is on this device; `nil`: it does not hold all
    /// that may be.
    ///
    /// - Parameter time: a mute with an end has ended by then.
    public func unread(at time: Timestamp) throws(LocalStoreError) -> UInt32? {
        var count = 0
        for row in try readConversations(sent: []).map(\.row) {
            switch row.mute {
            case .on: continue
            case .until(let end) where time < end: continue
            case .off, .until: break
            }
            guard !row.hasOlderUnread else { return nil }
            count += row.unread
        }
        return UInt32(clamping: min(count, ConversationRow.unreadMax))
    }

    private func standing(
        of object: MessageID, in conversation: ConversationID, _ around: Surroundings
    ) throws(LocalStoreError) -> NotificationStanding {
        let message = try entry(of: object, in: conversation)
        guard let above = around.above else {
            // Of a message that is not here it may be out of date: the user came back, and was
            // alerted of it.
            guard message == nil else { return .over }
            return try isDeleted(conversation) ? .over : .missing
        }
        guard let message else {
            // A position may be any number, as a mistaken server tells it.
            let isWhole = around.wholeFrom <= max(above, above &+ 1)
            return isWhole ? .missing : .unknown
        }
        guard case .message(let state) = message.body, state.push != nil, state.position > above
        else { return .over }
        if let mark = around.mark {
            let isRead =
                state.position <= mark.through
                || mark.ranges.contains {
                    $0.first <= state.position && state.position <= $0.last
                }
            if isRead { return .over }
        }
        return around.isMuted ? .muted : .shows
    }

    private func standing(
        ofAnnouncement id: MessageID
    ) throws(LocalStoreError) -> NotificationStanding {
        let found = try entry(of: id, in: nil)
        if case .tombstone = found?.body { return .over }
        guard case .announcement(let state) = found?.body else { return .unknown }
        let isReadHere = try read { snapshot throws(StoreError) in
            try Self.isReadHere(id, snapshot)
        }
        return state.read || isReadHere ? .over : .shows
    }

    /// Above which position the user may have unread messages; `nil`: the conversation was
    /// deleted (MSG-36, MSG-37), or the user has left it or was removed from it.
    private func reach(in conversation: ConversationID) throws(LocalStoreError) -> UInt64? {
        if try isDeleted(conversation) { return nil }
        return try read { snapshot throws(StoreError) in
            let user = Array(try Self.user(in: snapshot).utf8)
            return try Self.reach(of: user, in: conversation.bytes, snapshot)
        }
    }

    private func isDeleted(_ conversation: ConversationID) throws(LocalStoreError) -> Bool {
        let state = try entries(Scan(.conversation, of: conversation.bytes)).first
        return if case .tombstone = state?.body { true } else { false }
    }

    private func isMuted(
        _ conversation: ConversationID, at time: Timestamp
    ) throws(LocalStoreError) -> Bool {
        let settings = try entries(Scan(.settings, of: conversation.bytes)).first
        guard case .conversationSettings(let state) = settings?.body, state.muted else {
            return false
        }
        return state.mutedUntilMs == 0 || time.milliseconds < state.mutedUntilMs
    }
}
