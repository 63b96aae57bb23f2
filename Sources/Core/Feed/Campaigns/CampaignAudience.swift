import Model
import Wake

/// Decides for one device after another whether a campaign is for it, as rows say now. Remembers
/// what neighbours share; used within one snapshot or transaction.
struct CampaignAudience {
    let filter: CampaignFilter
    private let app: AppRecord
    private let snapshot: any StoreSnapshot
    private let now: Timestamp
    private var topics: [Scope: Bool] = [:]
    private var user: (id: UserID, isOut: Bool)?

    private struct Scope: Hashable {
        let environment: UInt64
        let topic: ExactText
    }

    /// Topics and environments remembered.
    private static let scopesMax = 256

    init(
        of app: AppRecord, _ filter: CampaignFilter, in snapshot: any StoreSnapshot,
        now: Timestamp
    ) {
        self.app = app
        self.filter = filter
        self.snapshot = snapshot
        self.now = now
    }

    /// `nil`: the device was forgotten.
    mutating func verdict(on device: DeviceRecord) throws(StoreError) -> CampaignVerdict? {
        guard device.expiresAt == nil else { return nil }
        if let criterion = try mismatch(device) { return .outside(criterion) }
        if try isOut(device.user) { return .leftOut(.suspended) }
        guard device.pushToken != nil else { return .leftOut(.tokenless) }
        if device.notifications == .off { return .leftOut(.notificationsOff) }
        // The rule asks for rows: only of those that may be.
        if app.adaptive.goneAfter > 0, device.lastSeenAt + app.adaptive.goneAfter <= now,
            try WakeRules.isPresumedGone(device, in: snapshot, now: now)
        {
            return .leftOut(.presumedGone)
        }
        return try hasCredential(device) ? .takes : .leftOut(.noCredential)
    }

    private func mismatch(_ device: DeviceRecord) throws(StoreError) -> CampaignCriterion? {
        let facts = CampaignFacts(
            topic: device.pushTopic, client: device.clientName, version: device.clientVersion,
            locale: device.locale, timeZone: device.timeZone, lastSeenAt: device.lastSeenAt)
        let (snapshot, now) = (snapshot, now)
        return try filter.mismatch(
            facts, now: now,
            state: { () throws(StoreError) in
                try WakeRules.state(of: device, in: snapshot, now: now)
            },
            hasTag: { tag throws(StoreError) in
                for owner in [DeviceID.zero, device.device] {
                    let key: [ColumnValue] = [
                        .app(device.app), .user(device.user), .identifier(owner), .text(tag),
                    ]
                    if try snapshot.record(TagRecord.self, key) != nil { return true }
                }
                return false
            })
    }

    private mutating func isOut(_ name: UserID) throws(StoreError) -> Bool {
        if let user, user.id == name { return user.isOut }
        let known = try snapshot.record(UserRecord.self, [.app(app.app), .user(name)])
        let isOut = known.map { $0.isSuspended || $0.deletingSince != nil } ?? false
        user = (name, isOut)
        return isOut
    }

    /// They are read for everybody.
    mutating func requireCredentials(of device: DeviceRecord) throws(StoreError) {
        _ = try hasCredential(device)
    }

    private mutating func hasCredential(_ device: DeviceRecord) throws(StoreError) -> Bool {
        let scope = Scope(
            environment: device.pushEnvironment.rawValue, topic: ExactText(device.pushTopic))
        if let known = topics[scope] { return known }
        let (credentials, problem) = try snapshot.pushCredentials(of: app.app, scope.environment)
        let has = credentials.contains { $0.hasTopic(device.pushTopic) }
        // Nobody knows whether that one names it.
        if !has, let problem { throw .corrupt(problem) }
        if topics.count < Self.scopesMax { topics[scope] = has }
        return has
    }
}

extension CampaignRecord {
    func decodedFilter() throws(StoreError) -> CampaignFilter {
        guard let filter = CampaignFilter(encoded: filter) else {
            throw .corrupt("campaign: a filter that is cut off")
        }
        return filter
    }

    func decodedOptions() throws(StoreError) -> PushOptions {
        guard let options = PushOptions(encoded: pushOptions) else {
            throw .corrupt("campaign: push options that are cut off")
        }
        return options
    }
}
