public import Model
public import Wake

/// A campaign's push to one device: the key is what makes it one, whatever happens. While it is
/// under way the lease and the fencing are those of the device's wake row.
public struct CampaignPushRecord: Record, Equatable {
    public static let table = Table(
        "campaign_push",
        key: [
            Column("app", .text), Column("user", .text), Column("device", .blob),
            Column("campaign", .blob),
        ],
        values: [
            Column("phase", .integer), Column("due", .integer, optional: true),
            Column("sending_since", .integer, optional: true), Column("lane", .integer),
            Column("environment", .integer), Column("topic", .text),
            Column("is_canary", .integer), Column("queued_at", .integer),
            Column("settled_at", .integer, optional: true), Column("attempts", .integer),
            Column("push", .blob, optional: true), Column("status", .integer),
            Column("reason", .text), Column("expires_at", .integer),
        ],
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

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        device = try reader.identifier()
        campaign = try reader.identifier()
        phase = try reader.value(CampaignPushPhase.self)
        due = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        sendingSince = try reader.optional { reader throws(StoreError) in
            try reader.timestamp()
        }
        lane = try reader.value(PushClass.self)
        environment = try reader.unsigned()
        topic = try reader.text()
        isCanary = try reader.flag()
        queuedAt = try reader.timestamp()
        settledAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        attempts = try reader.unsigned()
        push = try reader.optional { reader throws(StoreError) in try reader.identifier() }
        status = try reader.unsigned()
        reason = try reader.text()
        expiresAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [
            .app(app), .user(user), .identifier(device), .identifier(campaign),
            .unsigned(phase.rawValue), .optional(due) { .timestamp($0) },
            .optional(sendingSince) { .timestamp($0) }, .unsigned(lane.rawValue),
            .unsigned(environment), .text(topic), .flag(isCanary), .timestamp(queuedAt),
            .optional(settledAt) { .timestamp($0) }, .unsigned(attempts),
            .optional(push) { .identifier($0) }, .unsigned(status), .text(reason),
            .timestamp(expiresAt),
        ]
    }
}

extension DeviceID {
    /// No device: in a tag's key, all of its user's.
    static var zero: DeviceID { DeviceID(high: 0, low: 0) }
}

/// A word that the backend put on a user, or on one device: campaigns choose by it. Gone with
/// the user.
public struct TagRecord: Record, Equatable {
    public static let table = Table(
        "tag",
        key: [
            Column("app", .text), Column("user", .text), Column("device", .blob),
            Column("tag", .text),
        ],
        values: [Column("tagged_at", .integer)])

    public var app: AppID
    public var user: UserID
    /// Zero: all devices of the user.
    public var device: DeviceID
    public var tag: String
    public var taggedAt: Timestamp

    public init(app: AppID, user: UserID, device: DeviceID, tag: String, taggedAt: Timestamp) {
        self.app = app
        self.user = user
        self.device = device
        self.tag = tag
        self.taggedAt = taggedAt
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        user = UserID(try reader.text())
        device = try reader.identifier()
        tag = try reader.text()
        taggedAt = try reader.timestamp()
    }

    public var row: [ColumnValue] {
        [.app(app), .user(user), .identifier(device), .text(tag), .timestamp(taggedAt)]
    }
}
