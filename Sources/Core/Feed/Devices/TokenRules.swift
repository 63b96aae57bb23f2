import Model
import Wire

extension Work {
    /// Whom the credential lets in, and the session token it was, if it was one.
    func admit(_ request: OpenSession) throws(RuleFailure) -> (UserID, SessionTokenRecord?) {
        switch request.credential {
        case .identity(let user):
            try require(user.isValid, .tokenInvalid, "not a user name")
            return (user, nil)
        case .sessionToken(let hash):
            // A token of another app is not found: the key begins with the app.
            guard
                let token = try record(
                    SessionTokenRecord.self, [.app(request.app), .blob(hash)]),
                token.role == .app || request.role == .extension
            else {
                throw .refused(.tokenInvalid, "unknown session token")
            }
            try require(
                token.device == request.device, .deviceMismatch, "another device's session token")
            try require(now < token.expiresAt, .expired, "the session token is too old")
            return (token.user, token)
        }
    }

    /// Issues the session's token. The presented one stays valid until the new one has been used,
    /// for the answer may be lost; all others of the device and role go.
    func rotateTokens(
        of session: SessionKey, presented: SessionTokenRecord?, newHash: [UInt8],
        lifetime: Milliseconds
    ) throws(RuleFailure) {
        for token in try tokens(of: session.app, session.user, session.device)
        where token.role == session.role && token.hash != presented?.hash {
            try delete(SessionTokenRecord.self, [.app(token.app), .blob(token.hash)])
        }
        if var presented, presented.role == session.role, !presented.isUsed {
            presented.isUsed = true
            try put(presented)
        }
        try insert(
            SessionTokenRecord(
                app: session.app, hash: newHash, user: session.user, device: session.device,
                issuedAt: now, expiresAt: now + lifetime, role: session.role))
    }

    /// At most two for each role.
    func tokens(
        of app: AppID, _ user: UserID, _ device: DeviceID
    ) throws(RuleFailure) -> [SessionTokenRecord] {
        try records(
            SessionTokenRecord.self,
            Scan(
                index: "session_token_by_device",
                prefix: [.app(app), .user(user), .identifier(device)], limit: 16))
    }

    /// Takes everything from a device that lets it in or wakes it. Its row stays for a while, so
    /// that its numbers (mutations, session generations) do not begin again.
    func forget(_ device: inout DeviceRecord) throws(RuleFailure) {
        for role in [RoleKind.app, .extension] {
            try endSessionRow(device, role, code: .revoked)
        }
        for token in try tokens(of: device.app, device.user, device.device) {
            try delete(SessionTokenRecord.self, [.app(token.app), .blob(token.hash)])
        }
        try detachPushToken(&device)
        device.expiresAt = now + limits.forgottenLifetime
        try put(device)
    }

    /// Deletes the session's row; its connection, if it is still open, is told.
    func endSessionRow(
        _ device: DeviceRecord, _ role: RoleKind, code: Code
    ) throws(RuleFailure) {
        let key: [ColumnValue] = [
            .app(device.app), .user(device.user), .identifier(device.device),
            .unsigned(role.rawValue),
        ]
        guard let row = try record(SessionRecord.self, key) else { return }
        try delete(SessionRecord.self, key)
        effects.ended.append(EndedSession(session: SessionKey(row), code: code))
    }

    func detachPushToken(_ device: inout DeviceRecord) throws(RuleFailure) {
        guard device.pushToken != nil else { return }
        var detached = device
        effects.detached.append(DetachedDevice(device))
        try stored(try wakeRules.detachToken(&detached))
        device = detached
    }

    /// The APNs environment of a registration that is well formed and whose topic the app has
    /// configured; `nil`: it is refused (SES-18).
    func acceptedEnvironment(
        _ registration: PushRegistration, of app: AppID
    ) throws(RuleFailure) -> PushEnvironmentKind? {
        let environment: PushEnvironmentKind
        switch registration.environment {
        case .unspecified: return nil
        case .production: environment = .production
        case .development: environment = .development
        }
        guard !registration.token.isEmpty, registration.token.count <= limits.pushTokenBytes
        else { return nil }
        let credentials = try records(
            PushCredentialRecord.self,
            Scan(
                prefix: [.app(app), .unsigned(environment.rawValue)],
                limit: PushCredentialRecord.countMax))
        return credentials.contains { $0.hasTopic(registration.topic) } ? environment : nil
    }

    /// The devices that hold the token now. At most one, unless the table was restored wrongly.
    func holders(
        of token: [UInt8], _ environment: PushEnvironmentKind, in app: AppID
    ) throws(RuleFailure) -> [DeviceRecord] {
        try records(
            DeviceRecord.self,
            Scan(
                index: "device_by_token",
                prefix: [.app(app), .unsigned(environment.rawValue), .blob(token)], limit: 16))
    }
}

extension SessionKey {
    init(_ row: SessionRecord) {
        self.init(
            app: row.app, user: row.user, device: row.device, role: row.role,
            generation: row.generation)
    }
}
