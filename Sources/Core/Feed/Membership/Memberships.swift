import Model
import Wire

// Who takes part in a conversation, and which conversations an actor reaches.

extension Work {
    /// Locks the conversation: first of all locks. Waiting for an absent row keeps others from
    /// making it meanwhile, where the engine needs that.
    func lockConversation(
        _ app: AppID, _ conversation: ConversationID
    ) throws(RuleFailure) -> ConversationRecord? {
        try record(
            ConversationRecord.self, [.app(app), .identifier(conversation)], lock: .wait)
    }

    /// The membership of a user who takes part.
    func participant(
        _ app: AppID, _ conversation: ConversationID, _ user: UserID
    ) throws(RuleFailure) -> ParticipantRecord? {
        let found = try membership(app, conversation, user)
        return found?.leftRevision == nil ? found : nil
    }

    /// The membership of a user who takes part, or did.
    func membership(
        _ app: AppID, _ conversation: ConversationID, _ user: UserID
    ) throws(RuleFailure) -> ParticipantRecord? {
        try record(
            ParticipantRecord.self, [.app(app), .identifier(conversation), .user(user)])
    }

    /// Whether the conversation is within the actor's reach.
    func reaches(
        _ app: AppID, _ conversation: ConversationID, _ actor: Actor
    ) throws(RuleFailure) -> Bool {
        switch actor {
        case .backend: true
        case .user(let user): try participant(app, conversation, user) != nil
        }
    }

    /// The locked conversation; one that does not exist and one out of reach are refused alike
    /// (MSG-15).
    func reachableConversation(
        _ app: AppID, _ conversation: ConversationID?, _ actor: Actor
    ) throws(RuleFailure) -> ConversationRecord {
        guard let conversation else {
            throw .refused(.missingField, "no conversation id")
        }
        guard let found = try lockTarget(app, conversation),
            try reaches(app, found.conversation, actor)
        else {
            throw .refused(.notFound, "no such conversation")
        }
        try require(found.deletedAt == nil, .gone, "the conversation was deleted")
        return found
    }

    /// The conversation that an id stands for, locked: nearly always that of the id itself. It is
    /// looked at before, for of the two ids only one is locked: locks have an order.
    private func lockTarget(
        _ app: AppID, _ id: ConversationID
    ) throws(RuleFailure) -> ConversationRecord? {
        let key: [ColumnValue] = [.app(app), .identifier(id)]
        let isThere = try stored(
            try transaction.row(ConversationRecord.table, key: key, lock: .none) != nil)
        if isThere { return try lockConversation(app, id) }
        let target = try target(app, id)
        return target == id ? nil : try lockConversation(app, target)
    }

    /// The conversation an id stands for: itself, unless it was merged into another. No
    /// conversation has such an id.
    func target(_ app: AppID, _ id: ConversationID) throws(RuleFailure) -> ConversationID {
        try record(AliasRecord.self, [.app(app), .identifier(id)])?.conversation ?? id
    }

    /// As stored, or empty with version 0.
    func metadata(of conversation: ConversationRecord) throws(RuleFailure) -> MetadataRecord {
        try record(
            MetadataRecord.self,
            [.app(conversation.app), .identifier(conversation.conversation)])
            ?? MetadataRecord(app: conversation.app, conversation: conversation.conversation)
    }

    /// Refuses to bring a user back into anything while he is being deleted.
    func refuseDeleting(_ users: [UserID], _ app: AppID) throws(RuleFailure) {
        for user in users {
            let known = try record(UserRecord.self, [.app(app), .user(user)])
            try require(known?.deletingSince == nil, .forbidden, "a user named is being deleted")
        }
    }
}
