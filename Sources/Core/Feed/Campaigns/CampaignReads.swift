import Model
import Wake

// What a backend reads of campaigns. `nil`: there is no such campaign, user or device.
extension PageReader {
    /// Devices of one user looked at.
    private static let devicesMax = 100

    func readCampaigns(
        _ query: CampaignQuery, of app: AppID, _ limits: RuleLimits
    ) throws(StoreError) -> CampaignReading? {
        switch query {
        case .list(let before, let limit): return try list(app, before, min(limit, 200))
        case .show(let id): return try view(app, id).map { .show($0) }
        case .count(let new, let after, let devices):
            return try count(new, after, min(devices, limits.listRows * 4))
        case .explain(let id, let user): return try explain(app, id, user)
        case .tags(let user, let device):
            guard try known(app, user, device) else { return nil }
            let prefix: [ColumnValue] = [
                .app(app), .user(user), .identifier(device ?? .zero),
            ]
            return .tags(
                try snapshot.records(TagRecord.self, Scan(prefix: prefix, limit: limits.tags))
                    .map(\.tag))
        }
    }

    private func known(
        _ app: AppID, _ user: UserID, _ device: DeviceID?
    ) throws(StoreError) -> Bool {
        let key: [ColumnValue] = [.app(app), .user(user)]
        guard let found = try snapshot.record(UserRecord.self, key), found.deletingSince == nil
        else { return false }
        guard let device else { return true }
        let row = try snapshot.record(DeviceRecord.self, key + [.identifier(device)])
        return row.map { $0.expiresAt == nil } ?? false
    }

    private func view(_ app: AppID, _ id: CampaignID) throws(StoreError) -> CampaignView? {
        let key: [ColumnValue] = [.app(app), .identifier(id)]
        guard let campaign = try snapshot.record(CampaignRecord.self, key),
            let progress = try snapshot.record(CampaignProgressRecord.self, key)
        else { return nil }
        return CampaignView(
            campaign: campaign, progress: progress, filter: try campaign.decodedFilter(),
            options: try campaign.decodedOptions())
    }

    private func list(
        _ app: AppID, _ before: CampaignID?, _ limit: Int
    ) throws(StoreError) -> CampaignReading {
        // The bound is inclusive: one more, and without itself.
        let rows = try snapshot.records(
            CampaignProgressRecord.self,
            Scan(
                prefix: [.app(app)], through: before.map { [.identifier($0)] }, descending: true,
                limit: limit + 2)
        ).filter { $0.campaign != before }
        var views: [CampaignView] = []
        for row in rows.prefix(limit) {
            if let view = try view(app, row.campaign) { views.append(view) }
        }
        let last = rows.prefix(limit).last?.campaign
        return .list(views, next: rows.count > limit ? last : nil)
    }

    private func count(
        _ new: NewCampaign, _ after: CampaignPlace?, _ limit: Int
    ) throws(StoreError) -> CampaignReading? {
        guard let app = try snapshot.record(AppRecord.self, [.app(new.app)]) else { return nil }
        var audience = CampaignAudience(of: app, new.filter, in: snapshot, now: now)
        let devices = try snapshot.records(
            DeviceRecord.self,
            Scan(
                prefix: [.app(new.app)],
                after: after.map { [.user($0.user), .identifier($0.device)] }, limit: limit))
        var tally = CampaignTally()
        for device in devices {
            tally.seen += 1
            switch try audience.verdict(on: device) {
            case nil, .outside: continue
            case .leftOut(let omission): tally[omission] += 1
            case .takes:
                tally.devices += 1
                if new.plan.isCanary(device.device, of: new.campaign) { tally.canary += 1 }
            }
        }
        let last = devices.count == limit ? devices.last : nil
        return .count(
            tally, next: last.map { CampaignPlace(user: $0.user, device: $0.device) })
    }

    private func explain(
        _ app: AppID, _ id: CampaignID, _ user: UserID
    ) throws(StoreError) -> CampaignReading? {
        guard
            let campaign = try snapshot.record(CampaignRecord.self, [.app(app), .identifier(id)]),
            let own = try snapshot.record(AppRecord.self, [.app(app)]),
            try known(app, user, nil)
        else { return nil }
        var audience = CampaignAudience(
            of: own, try campaign.decodedFilter(), in: snapshot, now: now)
        var fates: [CampaignFate] = []
        let devices = try snapshot.records(
            DeviceRecord.self, Scan(prefix: [.app(app), .user(user)], limit: Self.devicesMax))
        for device in devices {
            guard let verdict = try audience.verdict(on: device) else { continue }
            let key = device.wakeKey + [.identifier(id)]
            fates.append(
                CampaignFate(
                    device: device.device,
                    push: try snapshot.record(CampaignPushRecord.self, key), verdict: verdict))
        }
        return .explain(fates)
    }
}
