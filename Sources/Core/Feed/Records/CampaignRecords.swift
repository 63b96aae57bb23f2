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
}

extension CampaignRecord {
    public static let table = Table(
        "campaign", of: Self.self,
        indexes: [
            TableIndex("campaign_by_expiry", on: "expires_at", present: "expires_at")
        ],
        retention: .until(column: "expires_at", index: "campaign_by_expiry"))

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        campaign = c.key("campaign", row?.campaign)
        name = c.value("name", row?.name)
        pushTitle = c.value("push_title", row?.pushTitle)
        pushBody = c.value("push_body", row?.pushBody)
        pushOptions = c.value("push_options", row?.pushOptions)
        filter = c.value("filter", row?.filter)
        createdAt = c.value("created_at", row?.createdAt)
        plan = CampaignPlan(startsAt: c.value("starts_at", row?.plan.startsAt))
        plan.isLocal = c.value("is_local", row?.plan.isLocal)
        plan.rate = c.value("rate", row?.plan.rate)
        plan.canaryShare = c.value("canary_share", row?.plan.canaryShare)
        plan.canaryWait = c.value("canary_wait", row?.plan.canaryWait)
        plan.stopPercent = c.value("stop_percent", row?.plan.stopPercent)
        plan.expiration = c.value("expiration", row?.plan.expiration)
        expiresAt = c.value("expires_at", row?.expiresAt)
    }
}

/// What has been counted of a campaign.
///
/// Invariant: `audience` is the sum of `waiting`, `flying`, `accepted`, `refused` and
/// `cancelled`; with the devices left out it is at most `seen`. `waiting` and `flying` follow
/// rows that others delete with their users, and are put right when the campaign looks itself.
public struct CampaignCounts: StoredBytes, Equatable {
    /// Devices of the app that were looked at, in all its passes.
    public var seen: UInt64 = 0
    /// Devices of the audience that got a row, without those left out when its turn came.
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
    /// By `CampaignOmission.rawValue - 1`. A node of a later version may have counted reasons that
    /// this one does not know: they stand behind its own, and are written back as they were read.
    private var leftOut = [UInt64](repeating: 0, count: CampaignOmission.allCases.count)

    public init() {}

    public subscript(_ omission: CampaignOmission) -> UInt64 {
        get { leftOut[Int(omission.rawValue) - 1] }
        set { leftOut[Int(omission.rawValue) - 1] = newValue }
    }

    /// The turn of `count` devices in the queue has come, and they get nothing.
    mutating func leaveOut(_ count: UInt64, _ omission: CampaignOmission) {
        waiting -= min(waiting, count)
        audience -= min(audience, count)
        self[omission] += count
    }

    /// Rows of the queue were deleted with their users, and `count` rows are left.
    mutating func lose(waitingDownTo count: UInt64) {
        if waiting > count { leaveOut(waiting - count, .changed) }
    }

    /// Nothing is in the queue or under way any more: what counts as that was deleted.
    mutating func loseAll(isCanary: Bool) {
        let lost = waiting + flying
        (waiting, flying) = (lost, 0)
        lose(waitingDownTo: 0)
        if isCanary { canary -= min(canary, lost) }
    }

    /// The share that went first is looked through again with all others, and what was left out
    /// of it is counted then. Devices that changed stay counted, for their rows may be gone.
    mutating func lookAgain() {
        for omission in CampaignOmission.allCases where omission != .changed {
            self[omission] = 0
        }
    }

    private var numbers: [UInt64] {
        [
            seen, audience, waiting, flying, accepted, refused, cancelled, canary,
            canaryAccepted, canaryRefused,
        ] + leftOut
    }

    /// The numbers before those by reason.
    private static let ownCount = 10

    /// Eight bytes each.
    public var encoded: [UInt8] {
        numbers.flatMap { number in
            (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
        }
    }

    /// Reasons that an earlier version did not know count nothing.
    ///
    /// `nil`: the bytes are of something else.
    public init?(encoded: [UInt8]) {
        guard encoded.count.isMultiple(of: 8), encoded.count >= Self.ownCount * 8 else {
            return nil
        }
        let found = stride(from: 0, to: encoded.count, by: 8).map { start in
            encoded[start..<start + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        (seen, audience, waiting, flying) = (found[0], found[1], found[2], found[3])
        (accepted, refused, cancelled) = (found[4], found[5], found[6])
        (canary, canaryAccepted, canaryRefused) = (found[7], found[8], found[9])
        let reasons = found[Self.ownCount...]
        let unknown = max(0, leftOut.count - reasons.count)
        leftOut = reasons + [UInt64](repeating: 0, count: unknown)
    }
}

/// How far a campaign got.
///
/// Invariants: `due` is null exactly when it is over; `sendingSince` is null while nothing of it
/// may be claimed.
public struct CampaignProgressRecord: Record, Equatable {
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
}

extension CampaignProgressRecord {
    public static let table = Table(
        "campaign_progress", of: Self.self,
        indexes: [
            TableIndex("campaign_by_due", on: "due", present: "due"),
            TableIndex("campaign_sending", on: "sending_since", present: "sending_since"),
            TableIndex("campaign_progress_by_expiry", on: "expires_at", present: "expires_at"),
        ],
        retention: .until(column: "expires_at", index: "campaign_progress_by_expiry"))

    public init(columns c: inout some ColumnVisitor, of row: Self?) {
        app = c.key("app", row?.app)
        campaign = c.key("campaign", row?.campaign)
        stage = c.value("stage", row?.stage)
        hold = c.value("hold", row?.hold)
        reason = c.value("reason", row?.reason)
        since = c.value("since", row?.since)
        due = c.value("due", row?.due)
        sendingSince = c.value("sending_since", row?.sendingSince)
        startedAt = c.value("started_at", row?.startedAt)
        finishedAt = c.value("finished_at", row?.finishedAt)
        reviewUntil = c.value("review_until", row?.reviewUntil)
        turn = c.value("offset", row?.turn)
        isOffsetDone = c.value("is_offset_done", row?.isOffsetDone)
        cursorUser = c.value("cursor_user", row?.cursorUser)
        cursorDevice = c.value("cursor_device", row?.cursorDevice)
        isPassDone = c.value("is_pass_done", row?.isPassDone)
        counts = c.value("counts", row?.counts)
        trend = c.value("trend", row?.trend)
        meterSecond = c.value("meter_second", row?.meterSecond)
        meterCount = c.value("meter_count", row?.meterCount)
        lastStatus = c.value("last_status", row?.lastStatus)
        lastReason = c.value("last_reason", row?.lastReason)
        expiresAt = c.value("expires_at", row?.expiresAt)
    }
}
