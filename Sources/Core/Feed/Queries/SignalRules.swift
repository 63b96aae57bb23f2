import Model

extension PageReader {
    /// Who gets a signal of `user` in a conversation (SIG-3, SIG-5): the other participants that
    /// do not block that one. Empty for whoever takes no part, and in a conversation so large that
    /// a signal says nothing.
    func audience(
        _ app: AppID, _ user: UserID, _ conversation: ConversationID, limits: RuleLimits
    ) throws(StoreError) -> [UserID] {
        let key: [ColumnValue] = [.app(app), .identifier(conversation)]
        let own = try snapshot.record(ParticipantRecord.self, key + [.user(user)])
        guard let own, own.leftRevision == nil, !own.isGone else { return [] }
        let participants = try snapshot.records(
            ParticipantRecord.self,
            Scan(
                index: "participant_by_presence", prefix: key,
                limit: limits.signalParticipants + 1))
        guard participants.count <= limits.signalParticipants else { return [] }
        var audience: [UserID] = []
        for participant in participants where participant.user != user {
            let block = try snapshot.record(
                BlockRecord.self, [.app(app), .user(participant.user), .user(user)])
            if block?.isBlocked != true { audience.append(participant.user) }
        }
        return audience
    }
}
