import Model
import Wire

extension PageReader {
    func answer(_ query: StoreQuery, limits: RuleLimits) throws(StoreError) -> StoreReading {
        switch query {
        case .page(let query):
            guard let page = try page(query, limits) else { return .nothing }
            return .page(page)
        case .history(let query):
            guard let reading = try history(query, limits: limits) else { return .nothing }
            return .history(reading)
        case .heads(let app, let users):
            return .heads(try heads(app, users))
        case .standings(let sessions):
            return .standings(try standings(sessions))
        case .apps:
            return .apps(try apps(limits))
        case .apiKey(let hash):
            return .apiKey(
                try snapshot.records(
                    APIKeyRecord.self,
                    Scan(index: "api_key_by_hash", prefix: [.blob(hash)], limit: 1)
                ).first)
        case .devices(let app, let user):
            let devices = try snapshot.records(
                DeviceRecord.self,
                Scan(prefix: [.app(app), .user(user)], limit: limits.listRows))
            return .devices(try views(of: devices))
        case .device(let app, let device):
            let devices = try snapshot.records(
                DeviceRecord.self,
                Scan(
                    index: "device_by_id", prefix: [.app(app), .identifier(device)],
                    limit: limits.listRows))
            return .device(try views(of: devices).first)
        case .conversation(let app, let id):
            let key: [ColumnValue] = [.app(app), .identifier(id)]
            let participants = try present(key)
            return .conversation(
                try snapshot.record(ConversationRecord.self, key), participants: participants)
        case .audience(let app, let user, let conversation):
            return .audience(try audience(app, user, conversation, limits: limits))
        case .explain(let app, let query):
            guard let explanation = try explain(query, of: app, limits) else { return .nothing }
            return .explained(explanation)
        case .wakes(let app, let id, let limit):
            let devices = try snapshot.records(
                DeviceRecord.self,
                Scan(
                    index: "device_by_id", prefix: [.app(app), .identifier(id)],
                    limit: limits.listRows))
            guard let device = devices.first(where: { $0.expiresAt == nil }) else {
                return .nothing
            }
            return .wakes(
                try WakeRules.wakes(
                    of: device, limit: min(limit, limits.listRows), in: snapshot))
        case .backend(let app, let query):
            guard let reading = try read(query, of: app, limits) else { return .nothing }
            return .backend(reading)
        case .campaigns(let app, let query):
            guard let reading = try readCampaigns(query, of: app, limits) else { return .nothing }
            return .campaigns(reading)
        case .operators(let query): return .operators(try read(query, limits))
        case .webhookBacklog: return .webhookBacklog(try webhookBacklog(limits))
        }
    }

    /// The members who take part.
    private func present(_ key: [ColumnValue]) throws(StoreError) -> [ParticipantRecord] {
        var found: [ParticipantRecord] = []
        var last: ParticipantRecord?
        while true {
            let rows = try snapshot.records(
                ParticipantRecord.self,
                Scan(
                    index: "participant_by_presence", prefix: key,
                    after: last.map { [.user($0.user)] }, limit: 1000))
            found += rows
            if rows.count < 1000 { return found }
            last = rows.last
        }
    }

    /// Users the store does not know are left out.
    private func heads(_ app: AppID, _ users: [UserID]) throws(StoreError) -> [FeedChange] {
        var heads: [FeedChange] = []
        for user in users {
            guard let known = try snapshot.record(UserRecord.self, [.app(app), .user(user)])
            else { continue }
            heads.append(FeedChange(app: app, user: user, head: known.head, kinds: 0))
        }
        return heads
    }

    private func apps(_ limits: RuleLimits) throws(StoreError) -> [AppConfiguration] {
        var apps: [AppConfiguration] = []
        while true {
            let after = apps.last.map { [ColumnValue.app($0.app.app)] }
            let rows = try snapshot.records(
                AppRecord.self, Scan(after: after, limit: limits.listRows))
            for app in rows {
                let scan = Scan(prefix: [.app(app.app)], limit: limits.listRows)
                apps.append(
                    AppConfiguration(
                        app: app, issuerKeys: try snapshot.records(IssuerKeyRecord.self, scan),
                        apiKeys: try snapshot.records(APIKeyRecord.self, scan),
                        pushCredentials: try snapshot.records(PushCredentialRecord.self, scan)))
            }
            if rows.count < limits.listRows { return apps }
        }
    }

    /// Without those that were forgotten.
    private func views(of devices: [DeviceRecord]) throws(StoreError) -> [DeviceView] {
        var views: [DeviceView] = []
        for device in devices where device.expiresAt == nil {
            let user = try snapshot.record(
                UserRecord.self, [.app(device.app), .user(device.user)])
            let sessions = try snapshot.records(
                SessionRecord.self,
                Scan(
                    prefix: [
                        .app(device.app), .user(device.user), .identifier(device.device),
                    ],
                    limit: 2))
            let (policy, graceSource) = try WakeRules.policy(of: device, in: snapshot)
            views.append(
                DeviceView(
                    device: device, head: user?.head ?? 0, visibleHead: user?.visibleHead ?? 0,
                    sessions: sessions,
                    reachability: try WakeRules.state(of: device, in: snapshot, now: now),
                    isPresumedGone: try WakeRules.isPresumedGone(device, in: snapshot, now: now),
                    policy: policy, graceSource: graceSource))
        }
        return views
    }
}

extension PageReader {
    /// Who gets a signal of `user` in a conversation (SIG-3, SIG-5): the other participants that
    /// do not block that one. Empty for whoever takes no part, and in a conversation so large that
    /// a signal says nothing.
    private func audience(
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
