import Model
import Wire

// What a user sets for himself: mutes and blocks. Both are entries of the own feed, so that every
// own device shows the same.
extension Work {
    /// MSG-26.
    ///
    /// - Parameter delay: how long the request has waited on the device, in milliseconds: by so
    ///   much the mute is over sooner.
    func mute(
        _ request: MuteConversation, _ session: SessionKey, delay: UInt32
    ) throws(RuleFailure) {
        let left = request.forMs - min(request.forMs, UInt64(delay))
        let until = request.forMs > 0 ? now + min(left, .max >> 2) : nil
        let isOver = request.forMs > 0 && left == 0
        let mute = MuteChange(
            session.user, request.conversation, isMuted: request.muted && !isOver,
            until: until)
        try carryOut(mute, in: session.app) { _ in false }
    }

    /// By the backend: unless it is so already, for a request comes again.
    func mute(_ app: AppID, _ mute: MuteChange) throws(RuleFailure) {
        if mute.isMuted, let until = mute.until, until <= now {
            throw .refused(.malformed, "until has passed")
        }
        let now = self.now
        try carryOut(mute, in: app) { settings in
            mute.isMuted
                ? settings.isMuted && settings.mutedUntil == mute.until
                : !settings.isMuted(now: now)
        }
    }

    private func carryOut(
        _ mute: MuteChange, in app: AppID, unless isSo: (SettingsRecord) -> Bool
    ) throws(RuleFailure) {
        let conversation = try reachableConversation(app, mute.conversation, .user(mute.user))
        var feed = try openOwnFeed(app, mute.user)
        let id = conversation.conversation
        var settings =
            try record(SettingsRecord.self, settingsKey(app, mute.user, id))
            ?? SettingsRecord(app: app, user: mute.user, conversation: id)
        if isSo(settings) { return }
        settings.isMuted = mute.isMuted
        settings.mutedUntil = mute.isMuted ? mute.until : nil
        settings.version += 1
        try put(settings)
        try append(.settings(settings), to: &feed)
        try close(feed)
        let isLess = try stored(try transaction.recountUnread(app, mute.user, id, now: now))
        if isLess {
            try noteWakes(try wakeRules.unreadFell(app, mute.user, id))
        } else if !mute.isMuted {
            try noteWakes(try wakeRules.unmuted(app, mute.user, id))
        }
    }

    /// MSG-27. What is so already stays as it is.
    func block(_ app: AppID, _ asked: BlockChange) throws(RuleFailure) {
        let (user, other) = (asked.user, asked.other)
        try require(other.isValid && other != user, .malformed, "not another user's name")
        var feed = try openOwnFeed(app, user)
        var block =
            try record(BlockRecord.self, blockKey(app, user, other))
            ?? BlockRecord(app: app, user: user, other: other)
        guard block.isBlocked != asked.isBlocked else { return }
        if block.version == 0 {
            let known = try records(
                BlockRecord.self,
                Scan(prefix: [.app(app), .user(user)], limit: limits.blocks))
            try require(known.count < limits.blocks, .limit, "more than \(limits.blocks) blocks")
        }
        block.isBlocked = asked.isBlocked
        feed.user.blocksNobody = false
        // Each version was told by an entry: this is above every one of the name, also of a user
        // who was deleted and erased (SYN-5).
        block.version = max(block.version, feed.user.head) + 1
        try put(block)
        effects.audiences.append(.sender(app, other))
        try append(.block(block), to: &feed)
        try close(feed)
    }

    /// Of a user who sets something: one who is there, and not on the way out.
    private func openOwnFeed(_ app: AppID, _ user: UserID) throws(RuleFailure) -> OpenFeed {
        let feed = try openFeed(app, user)
        try require(
            feed.before != nil && feed.user.deletingSince == nil, .notFound, "no such user")
        return feed
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
