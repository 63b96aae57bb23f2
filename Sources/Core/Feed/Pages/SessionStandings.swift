import Model
import Wire

extension PageReader {
    func standings(
        _ sessions: [SessionKey]
    ) throws(StoreError) -> [SessionKey: SessionStanding] {
        var found: [SessionKey: SessionStanding] = [:]
        var known: [AppID: AppRecord?] = [:]
        for session in sessions {
            let user = try snapshot.record(
                UserRecord.self, [.app(session.app), .user(session.user)])
            if known[session.app] == nil {
                known[session.app] = .some(
                    try snapshot.record(AppRecord.self, [.app(session.app)]))
            }
            let own = try standing(of: session, user, known[session.app] ?? nil)
            if own != .current { found[session] = own }
        }
        return found
    }

    /// What the session's connection should have been told.
    func standing(
        of session: SessionKey, _ user: UserRecord?
    ) throws(StoreError) -> SessionStanding {
        try standing(
            of: session, user, try snapshot.record(AppRecord.self, [.app(session.app)]))
    }

    private func standing(
        of session: SessionKey, _ user: UserRecord?, _ app: AppRecord?
    ) throws(StoreError) -> SessionStanding {
        guard let user, let app else { return .ended(.revoked) }
        let row = try snapshot.record(
            SessionRecord.self,
            [
                .app(session.app), .user(session.user), .identifier(session.device),
                .unsigned(session.role.rawValue),
            ])
        let hasToken = try snapshot.records(
            SessionTokenRecord.self,
            Scan(
                index: "session_token_by_device",
                prefix: [
                    .app(session.app), .user(session.user), .identifier(session.device),
                ], limit: 16)
        ).contains { $0.role == session.role }
        return .of(session, user: user, app: app, row: row, hasToken: hasToken)
    }
}
