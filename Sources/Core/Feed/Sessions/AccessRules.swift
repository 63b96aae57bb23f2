import Model
import Wire

// Who is let in: revocation, suspension, and a login on a session that is open.
extension Work {
    /// SES-21, SES-23: every session token of the user goes.
    ///
    /// - Parameter reauthenticate: the sessions stay and are asked for an identity token; until
    ///   one is accepted the wake path sees no socket. Otherwise they end, and the devices are
    ///   forgotten as if each had logged out.
    func revokeSessions(
        _ app: AppID, _ user: UserID, reauthenticate: Bool
    ) throws(RuleFailure) {
        _ = try lockKnownUser(app, user)
        for found in try devices(app, user) where found.expiresAt == nil {
            guard
                var device = try record(
                    DeviceRecord.self, [.app(app), .user(user), .identifier(found.device)],
                    lock: .wait)
            else { continue }
            guard reauthenticate else {
                try forget(&device)
                continue
            }
            for token in try tokens(of: app, user, device.device) {
                try delete(SessionTokenRecord.self, [.app(app), .blob(token.hash)])
            }
            for var session in try sessions(of: device) where session.expectedUntil == nil {
                session.dormantAt = min(session.dormantAt ?? now, now)
                try put(session)
                effects.challenged.append(SessionKey(session))
            }
        }
    }

    /// SES-24: closes the user's sessions and lets nobody in as this user. Tokens and devices
    /// stay, for the user may be let in again; pushes wait as long as it lasts (`WakeRules.claim`).
    func suspendUser(_ app: AppID, _ user: UserID) throws(RuleFailure) {
        var row = try lockKnownUser(app, user)
        guard !row.isSuspended else { return }
        row.isSuspended = true
        try put(row)
        for device in try devices(app, user) {
            for session in try sessions(of: device) { try suspend(session) }
        }
    }

    func resumeUser(_ app: AppID, _ user: UserID) throws(RuleFailure) {
        var row = try lockKnownUser(app, user)
        guard row.isSuspended else { return }
        row.isSuspended = false
        try put(row)
        try noteWakes(try wakeRules.resumed(app, user))
        effects.background.insert(.pushes)
    }

    /// The same for everybody of an app, and for its backend.
    func suspendApp(_ app: AppID) throws(RuleFailure) {
        guard var row = try record(AppRecord.self, [.app(app)], lock: .wait) else {
            throw .refused(.notFound, "no such app")
        }
        guard !row.isSuspended else { return }
        row.isSuspended = true
        try put(row)
        try endSessions(SessionEndRecord(app: app, cause: .suspended))
        try note(AppSuspension(since: now), of: app)
    }

    func resumeApp(_ app: AppID) throws(RuleFailure) {
        guard var row = try record(AppRecord.self, [.app(app)], lock: .wait) else {
            throw .refused(.notFound, "no such app")
        }
        let wasSuspended = row.isSuspended
        row.isSuspended = false
        try put(row)
        let ends = SessionEndRecord(app: app, cause: .suspended).key
        _ = try record(SessionEndRecord.self, ends, lock: .wait)
        try delete(SessionEndRecord.self, ends)
        try resumeCampaigns(of: app)
        if wasSuspended {
            let known = try record(MetaRecord.self, AppSuspension.key(of: app), lock: .wait)
            var suspension =
                known.map { AppSuspension($0) } ?? AppSuspension(since: Timestamp(milliseconds: 0))
            suspension.until = now
            try put(suspension.record(of: app))
        }
        effects.background.formUnion([.campaigns, .pushes])
        try resumeWebhooks(of: app)
    }

    private func note(_ suspension: AppSuspension, of app: AppID) throws(RuleFailure) {
        _ = try record(MetaRecord.self, AppSuspension.key(of: app), lock: .wait)
        try put(suspension.record(of: app))
    }

    private func lockKnownUser(_ app: AppID, _ user: UserID) throws(RuleFailure) -> UserRecord {
        guard try record(AppRecord.self, [.app(app)]) != nil,
            let row = try record(UserRecord.self, [.app(app), .user(user)], lock: .wait),
            row.deletingSince == nil
        else { throw .refused(.notFound, "no such user") }
        return row
    }

    private func sessions(of device: DeviceRecord) throws(RuleFailure) -> [SessionRecord] {
        try records(
            SessionRecord.self,
            Scan(
                prefix: [.app(device.app), .user(device.user), .identifier(device.device)],
                limit: 2))
    }

    /// SES-22: a challenged session has shown a new identity token of its own user. It gets a new
    /// session token, the older ones go, and the wake path sees its socket again.
    func reauthenticate(_ request: Reauthenticate) throws(RuleFailure) -> StoreAnswer {
        let session = request.session
        guard let app = try record(AppRecord.self, [.app(session.app)]) else {
            throw .refused(.tokenInvalid, "unknown app")
        }
        var device = try lockDevice(session)
        var row = try current(session)
        let user = try record(UserRecord.self, [.app(session.app), .user(session.user)])
        guard !app.isSuspended, user?.isSuspended != true else {
            throw .refused(.suspended, "the user or the app is suspended")
        }
        try rotateTokens(
            of: session, presented: nil, newHash: request.newTokenHash,
            lifetime: app.sessionTokenLifetime)
        device.lastSeenAt = now
        try put(device)
        row.dormantAt = request.dormantAfter.map { now + $0 }
        try put(row)
        if row.counts(now: now) {
            try stored(try wakeRules.sessionCounts(device))
        }
        let standing = try standing(of: session, results: [], reset: nil, hadPushRows: false)
        return .opened(
            OpenedSession(
                session: session, sync: standing, tokenLifetime: app.sessionTokenLifetime,
                isPushTokenHeld: device.pushToken != nil, isPushRefused: false))
    }
}
