import Model
import Wire

// The session that asks, and its device: both may be gone, or another's by now.

extension Work {
    /// The row of a session that is the newest of its device and role; else the answer is
    /// `.ended`.
    func current(_ session: SessionKey) throws(RuleFailure) -> SessionRecord {
        let row = try newest(session)
        guard let row, row.generation == session.generation else { throw try ended(session) }
        return row
    }

    private func newest(_ session: SessionKey) throws(RuleFailure) -> SessionRecord? {
        try record(
            SessionRecord.self, session.deviceKey + [.unsigned(session.role.rawValue)])
    }

    /// The answer to a session that is not the newest any more, or whose device is gone: why it
    /// ended. Its own node may not have heard of that yet (SES-23).
    func ended(_ session: SessionKey) throws(RuleFailure) -> RuleFailure {
        let tokens = try records(
            SessionTokenRecord.self,
            Scan(index: "session_token_by_device", prefix: session.deviceKey, limit: 16))
        let standing = SessionStanding.of(
            session, user: try record(UserRecord.self, [.app(session.app), .user(session.user)]),
            app: try record(AppRecord.self, [.app(session.app)]), row: try newest(session),
            hasToken: tokens.contains { $0.role == session.role })
        guard case .ended(let code) = standing else { return .answer(.ended(.revoked)) }
        return .answer(.ended(code))
    }

    /// The session's device, locked, its user's row before it: whoever writes what a device is
    /// owed holds that one.
    func lockDevice(_ session: SessionKey) throws(RuleFailure) -> DeviceRecord {
        _ = try record(UserRecord.self, [.app(session.app), .user(session.user)], lock: .wait)
        return try lockDeviceOnly(session)
    }

    /// The session's device, locked; its user's row is locked already.
    func lockDeviceOnly(_ session: SessionKey) throws(RuleFailure) -> DeviceRecord {
        let found = try record(
            DeviceRecord.self,
            [.app(session.app), .user(session.user), .identifier(session.device)], lock: .wait)
        guard let found else { throw try ended(session) }
        return found
    }
}
