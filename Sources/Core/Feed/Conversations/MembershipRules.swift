import Model
import Wire

extension Work {
    /// Ends memberships. Who takes part no longer is passed over: the wish is fulfilled.
    func removeParticipants(
        _ app: AppID, _ request: RemoveParticipants, by actor: Actor
    ) throws(RuleFailure) -> ConversationRecord {
        let users = try validUsers(request.users)
        guard !users.isEmpty else { throw .refused(.missingField, "no users") }
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
        var event = WebhookEvent(.participantsChanged, conversation.conversation, by: actor.name)
        event.left = leaving.map(\.user.name)
        note(event, conversation.app)
    }
}
