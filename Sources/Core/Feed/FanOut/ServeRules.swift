import Model
import Wire

// How a change comes into the feeds: what a fan-out job writes for each participant.
extension Work {
    /// Goes on with the change after the last user served, users ascending, until it is in all
    /// feeds (`true`) or `budget` entries are written.
    func serve(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        // What came before the end of a conversation went with it, but for removals: those who
        // left are not among those who are told of the end (MSG-30).
        let isOver = conversation.deletedAt != nil
        if isOver, job.change != .conversationEnd, job.change != .leave { return true }
        return switch job.change {
        case .message: try serveMessage(&job, conversation, budget: &budget)
        case .join: try serveJoin(&job, conversation, budget: &budget)
        case .metadata: try serveMetadata(&job, conversation, budget: &budget)
        case .leave: try serveLeave(&job, conversation, budget: &budget)
        case .messageChange: try serveMessageChange(&job, conversation, budget: &budget)
        case .conversationEnd: try serveConversationEnd(&job, conversation, budget: &budget)
        }
    }

    /// Runs `body` for each who receives the change; it tells how many entries it wrote. One
    /// step writes at most one recipient's above its budget.
    private func forEachRecipient(
        of job: inout FanOutRecord, in conversation: ConversationRecord, budget: inout Int,
        _ body: (ParticipantRecord) throws(RuleFailure) -> Int
    ) throws(RuleFailure) -> Bool {
        let audience = Audience.recipients(of: job, in: conversation)
        let revision = job.revision
        return try forEach(audience, of: &job, budget: &budget) { recipient throws(RuleFailure) in
            recipient.receives(revision) ? try body(recipient) : 0
        }
    }

    private func forEach(
        _ audience: Audience, of job: inout FanOutRecord, budget: inout Int,
        _ body: (ParticipantRecord) throws(RuleFailure) -> Int
    ) throws(RuleFailure) -> Bool {
        while budget > 0 {
            let limit = min(budget, limits.fanOutStep, Audience.atOnce)
            let recipients = try members(audience, of: job, after: job.cursor, limit: limit)
            for recipient in recipients {
                guard budget > 0 else { return false }
                let written = try body(recipient)
                job.cursor = recipient.user.name
                budget -= max(1, written)
                if isSpent { budget = 0 }
            }
            if recipients.count < limit { return true }
        }
        return false
    }

    func message(of job: FanOutRecord) throws(RuleFailure) -> MessageRecord {
        if let sent, sent.app == job.app, sent.message.bytes == job.object { return sent }
        guard let id = MessageID(job.object),
            let message = try record(MessageRecord.self, [.app(job.app), .identifier(id)])
        else {
            throw .store(.corrupt("fan_out: no message of revision \(job.revision)"))
        }
        return message
    }

    /// The message as it is now: later changes of it find that it has come, and who left before
    /// one of them gets nothing of it any more (MSG-31).
    private func serveMessage(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        let message = try message(of: job)
        let object = FeedObject.present(message)
        let tellsReceipts = try tellsReceipts(conversation)
        return try forEachRecipient(of: &job, in: conversation, budget: &budget) {
            recipient throws(RuleFailure) in
            guard recipient.receives(message.revision),
                recipient.clearedPosition < message.position
            else { return 0 }
            var feed = try self.openFeed(message.app, recipient.user)
            if try self.isUnwanted(message, by: feed.user) {
                try self.note(.senderBlocked, message, recipient.user)
                return 0
            }
            // What the user did since the memberships were read is known once the feed is locked.
            var recipient = try self.locked(recipient)
            let before = recipient
            var written = 1
            if recipient.isGone, message.deletedAt == nil {
                recipient.isGone = false
                recipient.conversationVersion += 1
                written += try self.bringBack(
                    conversation, for: recipient, at: message.revision,
                    with: UserID(message.sender), &feed)
            }
            let attention = try self.receive(message, by: &recipient, feed.user)
            try self.append(
                object, to: &feed, attention: attention,
                tellsReceipts: tellsReceipts && message.deletedAt == nil)
            self.moveToFront(&recipient, in: &feed)
            if recipient != before { try self.put(recipient) }
            try self.close(feed)
            return written
        }
    }

    /// A conversation that its user had deleted comes whole: a device that took a SNAPSHOT
    /// meanwhile holds nothing of it (HIS-16, MSG-36). Of many participants it gets the user and
    /// the message's sender, as in a SNAPSHOT, of a large conversation's the user alone; FETCH
    /// gives the rest.
    ///
    /// - Returns: how many entries were written.
    private func bringBack(
        _ conversation: ConversationRecord, for recipient: ParticipantRecord,
        at revision: UInt64, with sender: UserID, _ feed: inout OpenFeed
    ) throws(RuleFailure) -> Int {
        let before = feed.user.head
        try append(
            .conversation(conversation, version: recipient.conversationVersion), to: &feed)
        try appendState(of: recipient, in: conversation, to: &feed)
        // Who joined with a later change comes with that; who left is told as the feed has it.
        for member in try shown(to: recipient, of: conversation, at: revision, with: sender)
        where member.leftRevision == nil && member.joinedRevision <= revision {
            var object = FeedObject.participant(member)
            object.mayExist = true
            try append(object, to: &feed)
        }
        return Int(clamping: feed.user.head - before)
    }

    /// A user who makes a distinct conversation again after deleting it has it again, as its next
    /// message would bring it (MSG-24). It is locked.
    func bringBack(
        _ conversation: ConversationRecord, to user: UserID
    ) throws(RuleFailure) {
        guard conversation.deletedAt == nil,
            let known = try participant(conversation.app, conversation.conversation, user),
            known.isGone
        else { return }
        var feed = try openFeed(conversation.app, user)
        var member = try locked(known)
        member.isGone = false
        member.conversationVersion += 1
        _ = try bringBack(
            conversation, for: member, at: conversation.revision, with: user, &feed)
        moveToFront(&member, in: &feed)
        try put(member)
        try close(feed)
    }

    /// The participants that come with a conversation which comes back.
    private func shown(
        to recipient: ParticipantRecord, of conversation: ConversationRecord,
        at revision: UInt64, with sender: UserID
    ) throws(RuleFailure) -> [ParticipantRecord] {
        if conversation.isLarge(at: revision) { return [recipient] }
        let all = try records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_presence",
                prefix: [.app(recipient.app), .identifier(recipient.conversation)],
                limit: limits.snapshotParticipants + 1))
        if all.count <= limits.snapshotParticipants { return all }
        let sender = try membership(recipient.app, recipient.conversation, sender)
        guard let sender, sender.user != recipient.user else { return [recipient] }
        return [recipient, sender]
    }

    /// Metadata, and what the user has set and read.
    private func appendState(
        of member: ParticipantRecord, in conversation: ConversationRecord, to feed: inout OpenFeed
    ) throws(RuleFailure) {
        let metadata = try metadata(of: conversation)
        if metadata.version > 0 { try append(.metadata(metadata), to: &feed) }
        let own: [ColumnValue] = [
            .app(member.app), .user(member.user), .identifier(member.conversation),
        ]
        if let settings = try record(SettingsRecord.self, own) {
            var object = FeedObject.settings(settings)
            object.mayExist = true
            try append(object, to: &feed)
        }
        if let mark = try record(ReadMarkRecord.self, own) {
            var object = FeedObject.readMark(mark)
            object.mayExist = true
            try append(object, to: &feed)
        }
    }

    /// Whether anything of the conversation is in the user's feed.
    func knows(_ member: ParticipantRecord) throws(RuleFailure) -> Bool {
        for kind in [EntryKind.conversation, .tombstone] {
            let found = try records(
                EntryRecord.self,
                Scan(
                    index: "entry_by_object",
                    prefix: [
                        .app(member.app), .user(member.user), .unsigned(kind.rawValue),
                        .identifier(member.conversation), .blob([]),
                    ], limit: 1))
            if !found.isEmpty { return true }
        }
        return false
    }

    /// MSG-27.
    ///
    /// - Parameter user: The recipient, whose row is locked.
    private func isUnwanted(
        _ message: MessageRecord, by user: UserRecord
    ) throws(RuleFailure) -> Bool {
        guard !user.blocksNobody, !message.sender.isEmpty, UserID(message.sender) != user.user
        else { return false }
        return try isBlocked(UserID(message.sender), by: user.user, message.app)
    }

    /// The membership as it is now that the user's row is locked.
    private func locked(_ member: ParticipantRecord) throws(RuleFailure) -> ParticipantRecord {
        try membership(member.app, member.conversation, member.user) ?? member
    }

    /// Everyone gets the present state: a later change's job finds nothing newer to tell. Who has
    /// left since gets none: it may be one he is not to see.
    private func serveMetadata(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        let metadata = try metadata(of: conversation)
        return try forEachRecipient(of: &job, in: conversation, budget: &budget) {
            recipient throws(RuleFailure) in
            guard recipient.leftRevision == nil else { return 0 }
            var feed = try self.openFeed(recipient.app, recipient.user)
            try self.append(.metadata(metadata), to: &feed)
            try self.close(feed)
            return 1
        }
    }

    /// An edit, or a deletion for everyone. Only those get it who have the message; one that came
    /// with this change or a later one already is left alone.
    private func serveMessageChange(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        let message = try message(of: job)
        let object = FeedObject.present(message)
        let revision = job.revision
        let audience = try audience(of: job, in: conversation)
        return try forEach(audience, of: &job, budget: &budget) { recipient throws(RuleFailure) in
            if message.deletedAt != nil, let left = recipient.leftRevision,
                left < message.revision
            {
                return try self.withdrawMessage(message, from: recipient)
            }
            // Who has joined again since sees nothing new of what was before (MSG-4).
            let sees = recipient.joinedPosition < message.position
            guard recipient.receives(revision), recipient.receives(message.revision),
                sees || message.deletedAt != nil
            else { return 0 }
            // The feed is locked in its turn also where nothing is written: a user who changes a
            // message which that user has cleared has the mutation's number stored afterwards.
            var feed = try self.openFeed(message.app, recipient.user)
            // MSG-27: what came before the block stays, and changes; nobody is called to it.
            let isUnwanted = try self.isUnwanted(message, by: feed.user)
            guard recipient.clearedPosition < message.position else { return 0 }
            guard let older = try self.entry(of: .message, like: object, in: feed.user),
                older.version < message.version
            else { return 0 }
            try self.replace(
                older, with: object, isVisible: message.alerts(recipient.user) && !isUnwanted,
                in: &feed)
            try self.close(feed)
            return 1
        }
    }

    /// Who left before a message was deleted is told of nothing (MSG-31). But its entry shows
    /// nothing any more on a device that lacks it: it goes, and with it what it counted and
    /// called for.
    private func withdrawMessage(
        _ message: MessageRecord, from former: ParticipantRecord
    ) throws(RuleFailure) -> Int {
        var feed = try openFeed(message.app, former.user)
        guard let older = try entry(of: .message, like: .present(message), in: feed.user) else {
            return 0
        }
        try withdraw(older, from: &feed)
        try close(feed)
        return 1
    }

    /// A user who joins gets the conversation, its metadata, then every participant; one who was
    /// there gets those who join, or, where the conversation became large with them, that it is.
    /// One step writes at most one recipient's newcomers above its budget.
    private func serveJoin(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        let joining = try records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_revision",
                prefix: [
                    .app(job.app), .identifier(job.conversation), .unsigned(job.revision),
                ],
                limit: limits.participantsPerRequest + 1))
        let audience = Audience.recipients(of: job, in: conversation)
        while budget > 0 {
            let limit = min(budget, limits.fanOutStep, Audience.atOnce)
            let recipients = try members(audience, of: job, after: job.cursor, limit: limit)
            for recipient in recipients {
                guard budget > 0 else { return false }
                if recipient.joinedRevision == job.revision {
                    let isServed = try introduce(
                        recipient, to: conversation, &job, budget: &budget)
                    if !isServed { return false }
                } else if recipient.receives(job.revision),
                    conversation.largeRevision == job.revision
                {
                    try tellLarge(conversation, to: recipient)
                    budget -= 1
                } else if recipient.receives(job.revision) {
                    var feed = try openFeed(job.app, recipient.user)
                    for newcomer in joining { try append(.participant(newcomer), to: &feed) }
                    try close(feed)
                    budget -= joining.count
                } else {
                    budget -= 1
                }
                job.cursor = recipient.user.name
                if isSpent { budget = 0 }
            }
            if recipients.count < limit { return true }
        }
        return false
    }

    /// MSG-38. A conversation that its user deleted tells it with the message that brings it back.
    private func tellLarge(
        _ conversation: ConversationRecord, to recipient: ParticipantRecord
    ) throws(RuleFailure) {
        var feed = try openFeed(conversation.app, recipient.user)
        var member = try locked(recipient)
        if !member.isGone {
            member.conversationVersion += 1
            try append(.conversation(conversation, version: member.conversationVersion), to: &feed)
            try put(member)
        }
        try close(feed)
    }

    /// Tells a user who joins of the conversation and its participants as of the job's revision;
    /// of a large one only the user. Resumes after `job.member`. `true` when done.
    ///
    /// One who comes back has entries of the time before: they are superseded, and who left
    /// meanwhile is told as such, if known.
    private func introduce(
        _ recipient: ParticipantRecord, to conversation: ConversationRecord,
        _ job: inout FanOutRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        let isBack = recipient.isBack
        // Who left before is nothing to somebody who is new.
        let audience = isBack ? .everybody : Audience.recipients(of: job, in: conversation)
        var feed = try openFeed(job.app, recipient.user)
        if job.member.isEmpty {
            try append(
                .conversation(conversation, version: recipient.conversationVersion), to: &feed)
            var moved = try locked(recipient)
            let before = moved
            moveToFront(&moved, in: &feed)
            if moved != before { try put(moved) }
            try appendState(of: recipient, in: conversation, to: &feed)
        }
        if conversation.isLarge(at: job.revision) {
            var object = FeedObject.participant(recipient)
            object.mayExist = object.mayExist || isBack
            try append(object, to: &feed)
            try close(feed)
            budget -= 1
            return true
        }
        var isFirst = true
        while budget > 0 {
            let limit = min(budget, limits.fanOutStep, Audience.atOnce)
            let members = try members(audience, of: job, after: job.member, limit: limit)
            for member in members {
                guard isFirst || !isSpent else {
                    budget = 0
                    try close(feed)
                    return false
                }
                isFirst = false
                job.member = member.user.name
                budget -= 1
                guard member.joinedRevision <= job.revision else { continue }
                var object = FeedObject.participant(member)
                object.mayExist = object.mayExist || isBack
                if let left = member.leftRevision, left < job.revision {
                    guard isBack,
                        try entry(of: .participant, like: object, in: feed.user) != nil
                    else { continue }
                }
                try append(object, to: &feed)
            }
            if members.count < limit {
                job.member = ""
                try close(feed)
                return true
            }
        }
        try close(feed)
        return false
    }

    /// Those who stay are told of all who leave, unless the conversation is large, those who leave
    /// of themselves.
    /// If the conversation ended since, those who stayed are told of that only.
    private func serveLeave(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        let isOver = conversation.deletedAt != nil
        let revision = job.revision
        let leaving = try records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_leaving",
                prefix: [.app(job.app), .identifier(job.conversation), .unsigned(revision)],
                limit: limits.participantsPerRequest + 1))
        return try forEachRecipient(of: &job, in: conversation, budget: &budget) {
            recipient throws(RuleFailure) in
            let isLeaving = recipient.leftRevision == revision
            if isOver {
                // Who was removed before the addition had come was told of neither.
                guard isLeaving, try self.knows(recipient) else { return 0 }
            }
            var feed = try self.openFeed(recipient.app, recipient.user)
            let told = isLeaving ? [recipient] : leaving
            for leaver in told { try self.append(.participant(leaver), to: &feed) }
            try self.close(feed)
            if recipient.leftRevision == revision { try self.endUnread(of: recipient) }
            return told.count
        }
    }

    private func serveConversationEnd(
        _ job: inout FanOutRecord, _ conversation: ConversationRecord, budget: inout Int
    ) throws(RuleFailure) -> Bool {
        try forEachRecipient(of: &job, in: conversation, budget: &budget) {
            recipient throws(RuleFailure) in
            var member = recipient
            member.conversationVersion += 1
            member.isGone = true
            try self.put(member)
            try self.endConversation(in: member)
            return 1
        }
    }

    /// Writes the conversation's tombstone into the member's feed and takes back what was told
    /// and counted of its messages, up to where the membership says they are deleted.
    func endConversation(in member: ParticipantRecord) throws(RuleFailure) {
        var feed = try openFeed(member.app, member.user)
        try append(.conversationTombstone(member), to: &feed)
        feed.user.clearedHead = feed.user.head
        try close(feed)
        try noteWakes(try wakeRules.cleared(member))
    }

    /// The end of a membership has come into the feed: the icon counts none of the conversation.
    private func endUnread(of member: ParticipantRecord) throws(RuleFailure) {
        guard try stored(try transaction.endUnread(of: member, now: now)) else { return }
        try noteWakes(
            try wakeRules.unreadFell(member.app, member.user, member.conversation))
    }
}
