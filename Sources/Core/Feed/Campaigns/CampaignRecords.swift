public import Model
public import Wake

/// Names a campaign.
struct CampaignKey: Hashable {
    let app: AppID
    let campaign: CampaignID

    var columns: [ColumnValue] { [.app(app), .identifier(campaign)] }
}

extension CampaignRecord {
    var key: CampaignKey { CampaignKey(app: app, campaign: campaign) }
}

extension CampaignProgressRecord {
    var key: CampaignKey { CampaignKey(app: app, campaign: campaign) }
}

/// What a campaign says, to whom and when: never changed. How far it got is a row of its own,
/// which is written again and again.
public struct CampaignRecord: Record, Equatable {
    public static let table = Table(
        "campaign",
        key: [Column("app", .text), Column("campaign", .blob)],
        values: [
            Column("name", .text), Column("push_title", .text), Column("push_body", .text),
            Column("push_options", .blob), Column("filter", .blob),
            Column("created_at", .integer), Column("starts_at", .integer),
            Column("is_local", .integer), Column("rate", .integer),
            Column("canary_share", .integer), Column("canary_wait", .integer, optional: true),
            Column("stop_percent", .integer), Column("expiration", .integer, optional: true),
            Column("expires_at", .integer, optional: true),
        ],
        indexes: [TableIndex("campaign_by_expiry", on: "expires_at", present: "expires_at")],
        retention: .until(column: "expires_at", index: "campaign_by_expiry"))

    public var app: AppID
    public var campaign: CampaignID
    /// For people.
    public var name: String
    public var pushTitle: String
    public var pushBody: String
    /// `PushOptions`, encoded; empty: as usual.
    public var pushOptions: [UInt8]
    /// `CampaignFilter`, encoded.
    public var filter: [UInt8]
    public var createdAt: Timestamp
    public var plan: CampaignPlan
    /// Some time after it is over.
    public var expiresAt: Timestamp?

    public init(
        app: AppID, campaign: CampaignID, name: String, pushTitle: String, pushBody: String,
        pushOptions: [UInt8], filter: [UInt8], createdAt: Timestamp, plan: CampaignPlan
    ) {
        self.app = app
        self.campaign = campaign
        self.name = name
        self.pushTitle = pushTitle
        self.pushBody = pushBody
        self.pushOptions = pushOptions
        self.filter = filter
        self.createdAt = createdAt
        self.plan = plan
    }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        app = AppID(try reader.text())
        campaign = try reader.identifier()
        name = try reader.text()
        pushTitle = try reader.text()
        pushBody = try reader.text()
        pushOptions = try reader.blob()
        filter = try reader.blob()
        createdAt = try reader.timestamp()
        plan = CampaignPlan(startsAt: try reader.timestamp())
        plan.isLocal = try reader.flag()
        plan.rate = try reader.unsigned()
        plan.canaryShare = try reader.unsigned()
        plan.canaryWait = try reader.optional { reader throws(StoreError) in
            try reader.unsigned()
        }
        plan.stopPercent = try reader.unsigned()
        plan.expiration = try reader.optional { reader throws(StoreError) in
            try reader.unsigned()
        }
        expiresAt = try reader.optional { reader throws(StoreError) in try reader.timestamp() }
    }

    public var row: [ColumnValue] {
        [
            .app(app), .identifier(campaign), .text(name), .text(pushTitle), .text(pushBody),
            .blob(pushOptions), .blob(filter), .timestamp(createdAt), .timestamp(plan.startsAt),
            .flag(plan.isLocal), .unsigned(plan.rate), .unsigned(plan.canaryShare),
            .optional(plan.canaryWait) { .unsigned($0) }, .unsigned(plan.stopPercent),
            .optional(plan.expiration) { .unsigned($0) },
            .optional(expiresAt) { .timestamp($0) },
        ]
    }
}

/// What has been counted of a campaign. `waiting` and `flying` follow rows that others delete
/// with their users, and are put right when the campaign looks itself; all others only rise.
public struct CampaignCounts: Equatable, Sendable {
    /// Devices of the app that were looked at, in all its passes.
    public var seen: UInt64 = 0
    /// Devices of the audience that got a row.
    public var audience: UInt64 = 0
    public var waiting: UInt64 = 0
    public var flying: UInt64 = 0
    public var accepted: UInt64 = 0
    public var refused: UInt64 = 0
    public var cancelled: UInt64 = 0
    /// Of the share that went first.
    public var canary: UInt64 = 0
    public var canaryAccepted: UInt64 = 0
    public var canaryRefused: UInt64 = 0
    /// By `CampaignOmission.rawValue - 1`.
    private var leftOut = [UInt64](repeating: 0, count: CampaignOmission.allCases.count)

    public init() {}

    public subscript(_ omission: CampaignOmission) -> UInt64 {
        get { leftOut[Int(omission.rawValue) - 1] }
        set { leftOut[Int(omission.rawValue) - 1] = newValue }
    }

    private var numbers: [UInt64] {
        [
            seen, audience, waiting, flying, accepted, refused, cancelled, canary,
            canaryAccepted, canaryRefused,
        ] + leftOut
    }

    /// Eight bytes each.
    var encoded: [UInt8] {
        numbers.flatMap { number in
            (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
        }
    }

    /// `nil`: the bytes are of something else.
    init?(encoded: [UInt8]) {
        guard encoded.count == numbers.count * 8 else { return nil }
        let found = stride(from: 0, to: encoded.count, by: 8).map { start in
            encoded[start..<start + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        (seen, audience, waiting, flying) = (found[0], found[1], found[2], found[3])
        (accepted, refused, cancelled) = (found[4], found[5], found[6])
        (canary, canaryAccepted, canaryRefused) = (found[7], found[8], found[9])
        leftOut = Array(found[10...])
    }
}

/// How far a campaign got.
///
/// Invariants: `due` is null exactly while only somebody else's doing can bring it further;
/// `sendingSince` is null exactly while nothing of it may be claimed.
public struct CampaignProgressRecord: Record, Equatable {
    public static let table = Table(
        "campaign_progress",
        key: [Column("app", .text), Column("campaign", .blob)],
        values: [
            Column("stage", .integer), Column("hold", .integer), Column("reason", .text),
            Column("since", .integer), Column("due", .integer, optional: true),
            Column("sending_since", .integer, optional: true),
            Column("started_at", .integer, optional: true),
            Column("finished_at", .integer, optional: true),
            Column("review_until", .integer, optional: true),
            Column("offset", .integer, optional: true), Column("is_offset_done", .integer),
            Column("cursor_user", .text), Column("cursor_device", .blob),
            Column("is_pass_done", .integer), Column("counts", .blob), Column("trend", .blob),
            Column("meter_second", .integer), Column("meter_count", .integer),
            Column("last_status", .integer), Column("last_reason", .text),
            Column("expires_at", .integer, optional: true),
        ],
        indexes: [
            TableIndex("campaign_by_due", on: "due", present: "due"),
            TableIndex("campaign_sending", on: "sending_since", present: "sending_since"),
            TableIndex("campaign_progress_by_expiry", on: "expires_at", present: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "campaign_progress_by_expiry"))

    public var app: AppID
    public var campaign: CampaignID
    public var stage = CampaignStage.scheduled
    public var hold = CampaignHold.none
    /// In words, why it is held; empty: its app said so.
    public var reason = ""
    /// When it came into this stage or hold.
    public var since: Timestamp
    /// When it is looked at next.
    public var due: Timestamp?
    /// Derived: pushes of it may be claimed.
    public var sendingSince: Timestamp?
    public var startedAt: Timestamp?
    public var finishedAt: Timestamp?
    /// It goes on by itself then.
    public var reviewUntil: Timestamp?
    /// The turn of a campaign with a local start: whose clocks it is about.
    public var turn: CampaignTurn?
    public var isOffsetDone = false
    /// The last device looked at in this pass; an empty user: none yet.
    public var cursorUser = UserID("")
    public var cursorDevice = DeviceID.zero
    /// All devices of this pass were looked at.
    public var isPassDone = false
    public var counts = CampaignCounts()
    public var trend = RejectionTrend()
    /// Pushes claimed in this second.
    public var meterSecond: UInt64 = 0
    public var meterCount: UInt64 = 0
    /// The newest rejection.
    public var lastStatus: UInt64 = 0
    public var lastReason = ""
    public var expiresAt: Timestamp?

    public init(app: AppID, campaign: CampaignID, due: Timestamp, now: Timestamp) {
        self.app = app
        self.campaign = campaign
        self.due = due
        since = now
    }

    public var state: CampaignState { CampaignState(stage, hold) }
    public var isOver: Bool { stage == .finished || hold == .cancelled }

    public init(row: [ColumnValue]) throws(StoreError) {
        var reader = try RowReader(row, of: Self.table)
        func timestamp(_ reader: inout RowReader) throws(StoreError) -> Timestamp? {
            try reader.optional { reader throws(StoreError) in try reader.timestamp() }
        }
        app = AppID(try reader.text())
        campaign = try reader.identifier()
        stage = try reader.value(CampaignStage.self)
        hold = try reader.value(CampaignHold.self)
        reason = try reader.text()
        since = try reader.timestamp()
        due = try timestamp(&reader)
        sendingSince = try timestamp(&reader)
        startedAt = try timestamp(&reader)
        finishedAt = try timestamp(&reader)
        reviewUntil = try timestamp(&reader)
        turn = try reader.optional { reader throws(StoreError) in
            CampaignTurn(encoded: try reader.unsigned())
        }
        isOffsetDone = try reader.flag()
        cursorUser = UserID(try reader.text())
        cursorDevice = try reader.identifier()
        isPassDone = try reader.flag()
        guard let counts = CampaignCounts(encoded: try reader.blob()),
            let trend = RejectionTrend(encoded: try reader.blob())
        else { throw .corrupt("campaign_progress: counts") }
        self.counts = counts
        self.trend = trend
        meterSecond = try reader.unsigned()
        meterCount = try reader.unsigned()
        lastStatus = try reader.unsigned()
        lastReason = try reader.text()
        expiresAt = try timestamp(&reader)
    }

    public var row: [ColumnValue] {
        [
            .app(app), .identifier(campaign), .unsigned(stage.rawValue), .unsigned(hold.rawValue),
            .text(reason), .timestamp(since), .optional(due) { .timestamp($0) },
            .optional(sendingSince) { .timestamp($0) }, .optional(startedAt) { .timestamp($0) },
            .optional(finishedAt) { .timestamp($0) },
            .optional(reviewUntil) { .timestamp($0) }, .optional(turn) { .unsigned($0.encoded) },
            .flag(isOffsetDone), .user(cursorUser), .identifier(cursorDevice),
            .flag(isPassDone), .blob(counts.encoded), .blob(trend.encoded),
            .unsigned(meterSecond), .unsigned(meterCount), .unsigned(lastStatus),
            .text(lastReason), .optional(expiresAt) { .timestamp($0) },
        ]
    }
}
