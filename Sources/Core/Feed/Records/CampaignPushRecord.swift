public import Model
public import Wake

/// A campaign's push to one device: the key is what makes it one, whatever happens. While it is
/// under way the lease and the fencing are those of the device's wake row.
public struct CampaignPushRecord: Record, Equatable {
    /// As long as a campaign lasts, and then some: while it goes on, the row says who has it.
    public static let lifetime: Milliseconds = CampaignPlan.lifetime + 60 * 86_400_000

    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    public var campaign: CampaignID
    public var phase = CampaignPushPhase.queued
    /// When it may leave, while it waits.
    public var due: Timestamp?
    /// When it was claimed, while it is under way.
    public var sendingSince: Timestamp?
    /// The queue in which it waits, as in `WakeRecord`.
    public var lane: PushClass
    public var environment: UInt64
    public var topic: String
    public var isCanary: Bool
    public var queuedAt: Timestamp
    public var settledAt: Timestamp?
    /// Claims whose push may have reached APNs.
    public var attempts: UInt64 = 0
    /// The id that APNs gave it.
    public var push: WakeID?
    /// APNs' answer where it refused.
    public var status: UInt64 = 0
    /// APNs' reason, or the name of a `CampaignOmission`.
    public var reason = ""
    public var expiresAt: Timestamp

    init(
        _ device: DeviceRecord, of campaign: CampaignID, isCanary: Bool, now: Timestamp
    ) {
        app = device.app
        user = device.user
        self.device = device.device
        self.campaign = campaign
        self.isCanary = isCanary
        lane = .campaign
        environment = 0
        topic = ""
        due = now
        queuedAt = now
        expiresAt = now + Self.lifetime
        place(device)
    }

    /// Into the queue of the token that the device has now.
    mutating func place(_ device: DeviceRecord) {
        // Many tokens that APNs has never accepted may be wrong, and it slows connections down
        // that are told so.
        lane = device.tokenProvenAt == nil ? .probe : .campaign
        environment = device.pushEnvironment.rawValue
        topic = device.pushTopic
    }

    mutating func settle(_ phase: CampaignPushPhase, _ reason: String = "", now: Timestamp) {
        self.phase = phase
        if !reason.isEmpty { self.reason = reason }
        due = nil
        sendingSince = nil
        settledAt = now
    }

    var key: [ColumnValue] { Array(row.prefix(Self.table.keyCount)) }
}

extension CampaignPushRecord {
    public static let table = Table(
        "campaign_push", of: Self.self,
        indexes: [
            TableIndex(
                "campaign_push_queued", on: "app", "campaign", "lane", "environment", "topic",
                "due", present: "due"),
            TableIndex(
                "campaign_push_sending", on: "app", "campaign", "sending_since",
                present: "sending_since"),
            TableIndex("campaign_push_by_expiry", on: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "campaign_push_by_expiry"))

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        device = c.key("device", row?.device)
        campaign = c.key("campaign", row?.campaign)
        phase = c.value("phase", row?.phase)
        due = c.value("due", row?.due)
        sendingSince = c.value("sending_since", row?.sendingSince)
        lane = c.value("lane", row?.lane)
        environment = c.value("environment", row?.environment)
        topic = c.value("topic", row?.topic)
        isCanary = c.value("is_canary", row?.isCanary)
        queuedAt = c.value("queued_at", row?.queuedAt)
        settledAt = c.value("settled_at", row?.settledAt)
        attempts = c.value("attempts", row?.attempts)
        push = c.value("push", row?.push)
        status = c.value("status", row?.status)
        reason = c.value("reason", row?.reason)
        expiresAt = c.value("expires_at", row?.expiresAt)
    }
}

extension DeviceID {
    /// No device: in a tag's key, all of its user's.
    static var zero: DeviceID { DeviceID(high: 0, low: 0) }
}

/// A word that the backend put on a user, or on one device: campaigns choose by it. Gone with
/// the user.
public struct TagRecord: Record, Equatable {
    public var app: AppID
    public var user: UserID
    /// Zero: all devices of the user.
    public var device: DeviceID
    public var tag: String
    public var taggedAt: Timestamp
}

extension TagRecord {
    public static let table = Table("tag", of: Self.self)

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        user = c.key("user", row?.user)
        device = c.key("device", row?.device)
        tag = c.key("tag", row?.tag)
        taggedAt = c.value("tagged_at", row?.taggedAt)
    }
}
