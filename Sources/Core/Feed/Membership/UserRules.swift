import Model
import Wire

// What a user sets for himself: mutes and blocks. Both are entries of the own feed, so that every
// own device shows the same.
extension Work {
    /// MSG-26.
    func muteConversation(
        _ request: MuteConversation, _ session: SessionKey
    ) throws(RuleFailure) {
        let conversation = try reachableConversation(
            session.app, request.conversation, .user(session.user))
        var feed = try openFeed(session.app, session.user)
        let id = conversation.conversation
        var settings =
            try record(SettingsRecord.self, settingsKey(session.app, session.user, id))
            ?? SettingsRecord(app: session.app, user: session.user, conversation: id)
        settings.isMuted = request.muted
        settings.mutedUntil =
            request.muted && request.forMs > 0 ? now + min(request.forMs, .max >> 2) : nil
        settings.version += 1
        try put(settings)
        try append(.settings(settings), to: &feed)
        try close(feed)
        let isLess = try stored(
            try transaction.recountUnread(session.app, session.user, id, now: now))
        if isLess {
            try noteWakes(try wakeRules.unreadFell(session.app, session.user, id))
        } else if !request.muted {
            try noteWakes(try wakeRules.unmuted(session.app, session.user, id))
        }
    }

    /// MSG-27.
    func blockUser(_ request: BlockUser, _ session: SessionKey) throws(RuleFailure) {
        let other = UserID(request.user)
        try require(other.isValid && other != session.user, .malformed, "not another user's name")
        var feed = try openFeed(session.app, session.user)
        var block =
            try record(BlockRecord.self, blockKey(session.app, session.user, other))
            ?? BlockRecord(app: session.app, user: session.user, other: other)
        guard block.isBlocked != request.blocked else { return }
        if block.version == 0 {
            let known = try records(
                BlockRecord.self,
                Scan(prefix: [.app(session.app), .user(session.user)], limit: limits.blocks))
            try require(known.count < limits.blocks, .limit, "more than \(limits.blocks) blocks")
        }
        block.isBlocked = request.blocked
        feed.user.blocksNobody = false
        // Each version was told by an entry: this is above every one of the name, also of a user
        // who was deleted and erased (SYN-5).
        block.version = max(block.version, feed.user.head) + 1
        try put(block)
        effects.audiences.append(.sender(session.app, other))
        try append(.block(block), to: &feed)
        try close(feed)
    }

    /// Who is blocked by one of the users cannot bring that one into a conversation.
    func refuseBlocked(
        _ users: [UserID], by actor: Actor, _ app: AppID
    ) throws(RuleFailure) {
        guard case .user(let actor) = actor else { return }
        for user in users where user != actor {
            if try isBlocked(actor, by: user, app) {
                throw .refused(.forbidden, "the participants cannot be added")
            }
        }
    }

    /// Whether `user` wants nothing of `other`.
    func isBlocked(
        _ other: UserID, by user: UserID, _ app: AppID
    ) throws(RuleFailure) -> Bool {
        try record(BlockRecord.self, blockKey(app, user, other))?.isBlocked ?? false
    }

    private func settingsKey(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID
    ) -> [ColumnValue] {
        [.app(app), .user(user), .identifier(conversation)]
    }

    private func blockKey(_ app: AppID, _ user: UserID, _ other: UserID) -> [ColumnValue] {
        [.app(app), .user(user), .user(other)]
    }
}
