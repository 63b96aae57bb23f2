import Model
import Wire

extension Work {
    func administer(_ request: Administration) throws(RuleFailure) -> StoreAnswer {
        switch request {
        case .putApp(let app): try putApp(app)
        case .removeApp(let app): try removeApp(app)
        case .putIssuerKey(let key):
            try requireApp(key.app)
            _ = try record(IssuerKeyRecord.self, key.rowKey)
            try put(key)
        case .removeIssuerKey(let app, let keyID):
            try lockApp(app)
            try remove(IssuerKeyRecord.self, [.app(app), .text(keyID)])
        case .putAPIKey(let key): try putAPIKey(key)
        case .removeAPIKey(let app, let keyID):
            try lockApp(app)
            try remove(APIKeyRecord.self, [.app(app), .text(keyID)])
        case .putPushCredential(let credential, let isNew):
            try putPushCredential(credential, isNew: isNew)
        case .removePushCredential(let key):
            try lockApp(key.app)
            try remove(
                PushCredentialRecord.self,
                [.app(key.app), .unsigned(key.environment.rawValue), .text(key.name)])
        case .removeDevice(let app, let user, let device):
            try removeDevice(app, user, device)
        case .revokeSessions(let app, let user, let reauthenticate):
            try revokeSessions(app, user, reauthenticate: reauthenticate)
        case .suspendUser(let app, let user): try suspendUser(app, user)
        case .resumeUser(let app, let user): try resumeUser(app, user)
        case .suspendApp(let app): try suspendApp(app)
        case .resumeApp(let app): try resumeApp(app)
        case .putConsoleToken(let token): try putConsoleToken(token)
        case .removeConsoleToken(let id): try removeConsoleToken(id)
        case .noteAudit(let note): return try noteAudit(note)
        case .settleAudit(let number, let status): try settleAudit(number, status: status)
        }
        return .done
    }

    private func lockApp(_ app: AppID) throws(RuleFailure) {
        _ = try record(AppRecord.self, [.app(app)], lock: .wait)
    }

    private func requireApp(_ app: AppID) throws(RuleFailure) {
        try require(
            record(AppRecord.self, [.app(app)], lock: .wait) != nil, .notFound, "no such app")
    }

    private func remove<R: Record>(_ type: R.Type, _ key: [ColumnValue]) throws(RuleFailure) {
        try require(record(type, key) != nil, .notFound, "no such row")
        try delete(type, key)
    }

    private func putApp(_ app: AppRecord) throws(RuleFailure) {
        try require(app.app.isValid, .malformed, "not an app name")
        try lockApp(app.app)
        let removed = MetaRecord.removedPrefix + app.app.name
        if let former = try record(MetaRecord.self, [.text(removed)]) {
            guard former.bytes == MetaRecord.rowsAreGone, isKnownToNodes(former) else {
                throw .refused(.conflict, "an app of this name is still being removed")
            }
            try forgetRemoval(of: app.app)
        }
        var app = app
        // Suspending has requests of its own: what somebody read before must not undo it.
        if let known = try record(AppRecord.self, [.app(app.app)]) {
            app.isSuspended = known.isSuspended
        }
        try put(app)
    }

    private func putAPIKey(_ key: APIKeyRecord) throws(RuleFailure) {
        try requireApp(key.app)
        let live = try records(
            APIKeyRecord.self, Scan(prefix: [.app(key.app)], limit: limits.apiKeys + 1))
        guard live.contains(where: { $0.keyID.isExactly(key.keyID) }) || live.count < limits.apiKeys
        else {
            throw .refused(.limit, "\(limits.apiKeys) keys are live")
        }
        _ = try record(APIKeyRecord.self, key.rowKey)
        try put(key)
    }

    private func putPushCredential(
        _ credential: PushCredentialRecord, isNew: Bool
    ) throws(RuleFailure) {
        try requireApp(credential.app)
        let most = PushCredentialRecord.countMax
        let all = try records(
            PushCredentialRecord.self,
            Scan(
                prefix: [.app(credential.app), .unsigned(credential.environment.rawValue)],
                limit: most + 1))
        let isThere = all.contains { $0.name.isExactly(credential.name) }
        try require(
            !isThere || !isNew, .idInUse,
            "the app has a push credential of this name in the environment already: replace "
                + "it, or give another name")
        guard isThere || all.count < most else {
            throw .refused(.limit, "\(most) push credentials are there for the environment")
        }
        _ = try record(PushCredentialRecord.self, credential.rowKey)
        try put(credential)
    }

    /// The app is gone at once: nobody gets in any more. Its rows follow in the background.
    private func removeApp(_ app: AppID) throws(RuleFailure) {
        try requireApp(app)
        try delete(AppRecord.self, [.app(app)])
        try endSessions(SessionEndRecord(app: app, cause: .removed))
        let removed = MetaRecord(
            name: MetaRecord.removedPrefix + app.name, number: now.milliseconds)
        _ = try record(MetaRecord.self, removed.rowKey, lock: .wait)
        try put(removed)
        effects.background.insert(.removals)
    }

    private func removeDevice(
        _ app: AppID, _ user: UserID, _ id: DeviceID
    ) throws(RuleFailure) {
        let key: [ColumnValue] = [.app(app), .user(user), .identifier(id)]
        _ = try record(UserRecord.self, [.app(app), .user(user)], lock: .wait)
        guard var device = try record(DeviceRecord.self, key, lock: .wait),
            device.expiresAt == nil
        else { throw .refused(.notFound, "no such device") }
        try forget(&device)
    }

    /// Makes the store's half of the epoch if there is none. Every session of another boot, but of
    /// a node that is there, has lost its connection: its device may take the usual time to come
    /// back.
    func start(boot: BootID, epochHalf: UInt64) throws(RuleFailure) -> StoreAnswer {
        let half = try step { () throws(RuleFailure) in
            let known = try self.record(
                MetaRecord.self, [.text(MetaRecord.epochName)], lock: .wait)
            if let known, known.number != 0 { return known.number }
            let half = epochHalf & .halfMask
            try self.put(MetaRecord(name: MetaRecord.epochName, number: half))
            return half
        }
        try step { () throws(RuleFailure) in
            try self.endSessions(
                SessionEndRecord(
                    app: AppID(""), cause: .processGone, boot: boot,
                    until: self.now + self.limits.reconnectWindow))
        }
        let nodes = try nodesKnown()
        effects.note(try stored(try wakeRules.started(boot: boot, besides: nodes)))
        try step { () throws(RuleFailure) in try self.releaseDeliveries(besides: nodes + [boot]) }
        return .started(storeEpochHalf: half)
    }
}
