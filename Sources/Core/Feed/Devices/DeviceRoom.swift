import Model
import Wire

// A user has a bounded number of devices (connection.md, limits): every message that comes looks
// at each.
extension Work {
    /// Devices given up in one login. More are there only of a time before the bound.
    private static let givenUpMax = 4

    /// All devices of a user, the forgotten ones too.
    func devices(_ app: AppID, _ user: UserID) throws(RuleFailure) -> [DeviceRecord] {
        try stored(try WakeRules.devices(app, user, in: transaction))
    }

    /// Which devices make room for one that the user has not been logged in on: of those that are
    /// logged in the one not heard of for longest, before it all that have no session; of the
    /// forgotten ones the one that was forgotten first.
    func devicesGivenUp(
        for request: OpenSession, _ user: UserID
    ) throws(RuleFailure) -> [DeviceRecord] {
        let all = try devices(request.app, user)
        let isKnown = all.contains { $0.device == request.device && $0.expiresAt == nil }
        guard !isKnown else { return [] }
        let others = all.filter { $0.device != request.device }
        var live: [(device: DeviceRecord, isConnected: Bool)] = []
        for device in others where device.expiresAt == nil {
            let isConnected = try stored(try transaction.isSessionCounted(of: device, now: now))
            live.append((device, isConnected))
        }
        let excess = live.count + 1 - limits.devicesPerUser
        guard request.role == .app || excess <= 0 else {
            // SES-17: it takes nothing from anybody.
            throw .refused(.forbidden, "an extension adds no device above the limit")
        }
        live.sort { left, right in
            if left.isConnected != right.isConnected { return right.isConnected }
            return left.device.lastSeenAt < right.device.lastSeenAt
        }
        let longest = live.prefix(min(max(0, excess), Self.givenUpMax)).map(\.device)
        let forgotten = others.filter { $0.expiresAt != nil }.sorted {
            ($0.expiresAt ?? now) < ($1.expiresAt ?? now)
        }
        let room = limits.devicesPerUser - longest.count
        let oldest = forgotten.prefix(min(max(0, forgotten.count - room), Self.givenUpMax))
        return longest + oldest
    }

    /// A device that makes room is forgotten; one that was goes for good.
    func giveUp(_ device: inout DeviceRecord) throws(RuleFailure) {
        if device.expiresAt == nil { return try forget(&device) }
        try delete(
            DeviceRecord.self,
            [.app(device.app), .user(device.user), .identifier(device.device)])
    }
}
