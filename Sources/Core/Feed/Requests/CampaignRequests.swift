public import Model
public import Wake

/// What is asked of an app's campaigns, by its backend and by the writer itself.
public enum CampaignRequest: Equatable, Sendable {
    case create(NewCampaign, idempotency: Idempotency?)
    case control(AppID, CampaignID, CampaignControl, idempotency: Idempotency?)
    case tag(ChangeTags, idempotency: Idempotency?)
    /// Brings campaigns that are due further: looks at about so many devices.
    case advance(devices: Int)

    /// Whose share of the writer it takes; `nil`: the server's own.
    public var app: AppID? {
        switch self {
        case .create(let new, _): new.app
        case .control(let app, _, _, _): app
        case .tag(let change, _): change.app
        case .advance: nil
        }
    }
}

/// A campaign to be made.
public struct NewCampaign: Equatable, Sendable {
    public var app: AppID
    public var campaign: CampaignID
    public var name: String
    public var title: String
    public var body: String
    public var options: PushOptions
    public var filter: CampaignFilter
    public var plan: CampaignPlan

    public init(
        app: AppID, campaign: CampaignID, name: String, title: String, body: String,
        options: PushOptions = PushOptions(), filter: CampaignFilter = CampaignFilter(),
        plan: CampaignPlan
    ) {
        self.app = app
        self.campaign = campaign
        self.name = name
        self.title = title
        self.body = body
        self.options = options
        self.filter = filter
        self.plan = plan
    }
}

public enum CampaignControl: UInt64, Sendable, CaseIterable {
    case pause = 1
    /// Goes on, also past the look at the canary share, and after it stopped itself.
    case resume = 2
    case cancel = 3
}

/// Tags put on a user (`device` `nil`) or a device, and taken off.
public struct ChangeTags: Equatable, Sendable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID?
    public var add: [String]
    public var remove: [String]

    public init(
        app: AppID, user: UserID, device: DeviceID?, add: [String], remove: [String]
    ) {
        self.app = app
        self.user = user
        self.device = device
        self.add = add
        self.remove = remove
    }
}

/// A campaign and how far it got.
public struct CampaignView: Equatable, Sendable {
    public var campaign: CampaignRecord
    public var progress: CampaignProgressRecord
    public var filter: CampaignFilter
    public var options: PushOptions
}

/// What an app's backend reads of campaigns and tags.
public enum CampaignQuery: Equatable, Sendable {
    /// By id, from the highest: newest first where ids are made as usual.
    case list(before: CampaignID?, limit: Int)
    case show(CampaignID)
    /// Part of a dry run: so many devices after that one.
    case count(NewCampaign, after: CampaignPlace?, devices: Int)
    /// Why each device of a user got it, or did not.
    case explain(CampaignID, UserID)
    case tags(UserID, DeviceID?)
}

/// A device as a place in the order of all of them.
public struct CampaignPlace: Equatable, Sendable {
    public var user: UserID
    public var device: DeviceID
}

/// What a campaign would come to if all of it were sent now.
public struct CampaignTally: Equatable, Sendable {
    public var seen: UInt64 = 0
    /// Devices it would be sent to.
    public var devices: UInt64 = 0
    /// Those of them that would get it first.
    public var canary: UInt64 = 0
    public private(set) var leftOut = [UInt64](
        repeating: 0, count: CampaignOmission.allCases.count)

    public init() {}

    public subscript(_ omission: CampaignOmission) -> UInt64 {
        get { leftOut[Int(omission.rawValue) - 1] }
        set { leftOut[Int(omission.rawValue) - 1] = newValue }
    }

    public static func += (tally: inout CampaignTally, more: CampaignTally) {
        tally.seen += more.seen
        tally.devices += more.devices
        tally.canary += more.canary
        for omission in CampaignOmission.allCases { tally[omission] += more[omission] }
    }
}

/// Why one device got a campaign, or did not.
public struct CampaignFate: Equatable, Sendable {
    public var device: DeviceID
    /// Of its row; `nil`: it has none.
    public var push: CampaignPushRecord?
    /// As it would be decided now, without a row.
    public var verdict: CampaignVerdict
}

/// Whether a device is sent a campaign.
public enum CampaignVerdict: Equatable, Sendable {
    case takes
    case outside(CampaignCriterion)
    case leftOut(CampaignOmission)
}

public enum CampaignReading: Equatable, Sendable {
    case list([CampaignView], next: CampaignID?)
    case show(CampaignView)
    /// `next`: there are more devices.
    case count(CampaignTally, next: CampaignPlace?)
    case explain([CampaignFate])
    case tags([String])
}

/// What came of a campaign's push, for its counts: applied at the end of a step.
public struct CampaignEvent: Equatable, Sendable {
    public enum Kind: Equatable, Sendable {
        case accepted
        /// For good.
        case refused
        /// It waits again.
        case again
    }

    public var app: AppID
    public var campaign: CampaignID
    public var kind: Kind
    public var isCanary: Bool
    /// APNs rejected it: its answer.
    public var rejection: Rejection?

    public struct Rejection: Equatable, Sendable {
        public var status: UInt64
        public var reason: String

        public init(status: UInt64, reason: String) {
            self.status = status
            self.reason = reason
        }
    }
}
