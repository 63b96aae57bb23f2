import Model
import Wire

extension Work {
    func createConversation(
        _ app: AppID, _ request: CreateConversation, by actor: Actor
    ) throws(RuleFailure) -> ConversationRecord {
        guard let id = request.conversation else {
            throw .refused(.missingField, "no conversation id")
        }
        try require(id != .none, .malformed, "an id of zeros")
        var names = request.participants
        var creator = ""
        if case .user(let user) = actor {
            names.append(user.name)
            creator = user.name
        }
        let users = try validUsers(names, besides: names.count - request.participants.count)
        try refuseBlocked(users, by: actor, app)
        if request.distinct, users.isEmpty {
            throw .refused(.missingField, "a distinct conversation has participants")
        }
        var distinctKey = ""
        if request.distinct {
            distinctKey = try self.distinctKey(users)
            if let existing = try distinct(app, distinctKey, asked: id) {
                if case .user(let user) = actor { try bringBack(existing, to: user) }
                return existing
            }
        }
        let known = try lockConversation(app, id)
        // A device that became another user's stays that user's.
        let holder = try target(app, id)
        if known != nil || holder != id {
            // An id in use cannot be refused without telling that it is in use; to those out of
            // reach nothing more is told (MSG-15).
            throw try reaches(app, holder, actor)
                ? .refused(.idInUse, "the conversation exists")
                : .refused(.forbidden, "the conversation cannot be created")
        }
        // Both are asked for by their ids alone (HIS-7, HIS-8).
        if let message = try record(MessageRecord.self, [.app(app), .identifier(id)]) {
            throw try reaches(app, message.conversation, actor)
                ? .refused(.idInUse, "a message has this id")
                : .refused(.forbidden, "the conversation cannot be created")
        }
        var conversation = ConversationRecord(
            app: app, conversation: id, creator: creator, createdAt: now,
            distinctKey: distinctKey, receiptsOff: request.receiptsOff)
        if request.distinct {
            try put(DistinctRecord(app: app, participants: distinctKey, conversation: id))
        }
        if !request.metadata.isEmpty {
            // Told with the conversation itself.
            var metadata = MetadataRecord(app: app, conversation: id)
            try change(&metadata, by: request.metadata)
            _ = try record(MetadataRecord.self, metadata.rowKey)
            try put(metadata)
        }
        try join(users, &conversation, by: actor)
        note(
            WebhookEventRecord(
                app: app, kind: .conversationCreated, conversation: id, user: actor.name,
                joined: users.map(\.name)))
        return conversation
    }

    func addParticipants(
        _ app: AppID, _ request: AddParticipants, by actor: Actor
    ) throws(RuleFailure) -> ConversationRecord {
        let users = try validUsers(request.users)
        try require(!users.isEmpty, .missingField, "no users")
        var conversation = try reachableConversation(app, request.conversation, actor)
        guard conversation.distinctKey.isEmpty else {
            throw .refused(.conflict, "a distinct conversation keeps its participants")
        }
        try refuseBlocked(users, by: actor, app)
        var added: [UserID] = []
        for user in users {
            let known = try membership(app, conversation.conversation, user)
            if known == nil { added.append(user) }
            guard let left = known?.leftRevision else { continue }
            added.append(user)
            // The row is overwritten: a change from before the leaving would miss the user (P1).
            if let waiting = try oldestJob(app, conversation.conversation),
                waiting.revision <= left
            {
                throw .refused(.rateLimited, "the removal is still on its way")
            }
        }
        guard !added.isEmpty else { return conversation }
        try join(added, &conversation, by: actor)
        note(
            WebhookEventRecord(
                app: app, kind: .participantsChanged, conversation: conversation.conversation,
                user: actor.name, joined: added.map(\.name)))
        return conversation
    }

    /// Sorted, each once.
    ///
    /// - Parameter besides: how many of them the request does not name.
    private func validUsers(
        _ names: [String], besides own: Int = 0
    ) throws(RuleFailure) -> [UserID] {
        guard names.count <= limits.participantsPerRequest + own else {
            throw .refused(.limit, "more than \(limits.participantsPerRequest) users")
        }
        var users: [UserID] = []
        for user in names.map({ UserID($0) }).sorted() where users.last != user {
            try require(user.isValid, .malformed, "not a user name")
            users.append(user)
        }
        return users
    }

    /// Writes the memberships and tells everyone concerned. They see later messages only.
    private func join(
        _ users: [UserID], _ conversation: inout ConversationRecord, by actor: Actor
    ) throws(RuleFailure) {
        try refuseDeleting(users, conversation.app)
        let total = conversation.participants + UInt64(users.count)
        try require(
            total <= UInt64(limits.participantsPerConversation), .limit,
            "more than \(limits.participantsPerConversation) participants")
        conversation.participants = total
        if conversation.largeRevision == nil, total > UInt64(limits.participantsTold) {
            // The one that `deliver` gives this change.
            conversation.largeRevision = conversation.revision + 1
        }
        effects.audiences.append(.conversation(conversation.app, conversation.conversation))
        try deliver(.join, object: [], joining: users.count, by: actor, in: &conversation) {
            conversation throws(RuleFailure) in
            // A membership changes with a revision of its conversation: this version is above
            // every one of the name, also of a user who was deleted and erased (SYN-5).
            for user in users {
                let former = try self.membership(
                    conversation.app, conversation.conversation, user)
                var member = ParticipantRecord(
                    app: conversation.app, conversation: conversation.conversation,
                    user: user, joinedPosition: conversation.position,
                    joinedRevision: conversation.revision, version: conversation.revision)
                if let former {
                    member.clearedPosition = former.clearedPosition
                    member.clearedAt = former.clearedAt
                    member.conversationVersion = former.conversationVersion + 1
                    member.unread = former.unread
                    // What the user had set and read before still holds.
                    _ = try self.stored(try self.transaction.inStep(&member))
                }
                try self.put(member)
            }
        }
    }
}

extension Work {
    /// Ends memberships. Who takes part no longer is passed over: the wish is fulfilled.
    func removeParticipants(
        _ app: AppID, _ request: RemoveParticipants, by actor: Actor
    ) throws(RuleFailure) -> ConversationRecord {
        let users = try validUsers(request.users)
        try require(!users.isEmpty, .missingField, "no users")
        var conversation = try reachableConversation(app, request.conversation, actor)
        guard conversation.distinctKey.isEmpty else {
            throw .refused(.conflict, "a distinct conversation keeps its participants")
        }
        var leaving: [ParticipantRecord] = []
        for user in users {
            if let member = try participant(app, conversation.conversation, user) {
                leaving.append(member)
            }
        }
        if !leaving.isEmpty { try end(leaving, in: &conversation, by: actor) }
        return conversation
    }

    /// Ends memberships of the locked conversation and tells everyone concerned.
    func end(
        _ leaving: [ParticipantRecord], in conversation: inout ConversationRecord,
        by actor: Actor
    ) throws(RuleFailure) {
        conversation.participants -= min(conversation.participants, UInt64(leaving.count))
        effects.audiences.append(.conversation(conversation.app, conversation.conversation))
        try deliver(.leave, object: [], joining: leaving.count, by: actor, in: &conversation) {
            conversation throws(RuleFailure) in
            for var member in leaving {
                member.leftRevision = conversation.revision
                member.leftPosition = conversation.position
                member.version += 1
                try self.put(member)
            }
        }
        note(
            WebhookEventRecord(
                app: conversation.app, kind: .participantsChanged,
                conversation: conversation.conversation, user: actor.name,
                left: leaving.map(\.user.name)))
    }
}
