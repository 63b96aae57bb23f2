public import Model
public import Wake

/// What others must be told of what was written. The rules of a request note it, a step that is
/// undone takes back what it noted, and the writer joins what the requests of one commit did and
/// hands that over once it is durable.
public struct Effects: Equatable, Sendable {
    /// What came into feeds, each user's as one.
    public var changes: FeedChanges
    /// Sessions whose connection must end.
    public var ended: [EndedSession] = []
    /// Sessions whose connection must show an identity token.
    public var challenged: [SessionKey] = []
    /// Devices that have lost their push token, perhaps to another user: a push that is claimed for
    /// one of them and has not left must not leave.
    public var detached: [DetachedDevice] = []
    /// The work that may have become due for turns of its own.
    public var background: BackgroundWork = []
    /// A webhook has something to deliver that had nothing before.
    public var hasDeliveries = false
    /// Demotions and recoveries, for the metrics; tokens that were dropped.
    public var wakes = WakeEffects()
    /// Messages and announcements that came to be, for the metrics.
    public var published = PublishEffects()
    /// Of what is published at a time, for the metrics.
    public var schedule = ScheduleEffects()
    /// Whose signals and receipts may reach others than before.
    public var audiences: [AudienceChange] = []
    /// Of a beat: what the node is to do.
    public var node: NodeStanding?
    /// What could not be read and was passed over or set aside, for the log.
    public var unreadable: [UnreadableRow] = []

    /// - Parameter limits: What is handed over of the feeds without a read.
    public init(limits: TailLimits = TailLimits()) { changes = FeedChanges(limits: limits) }

    /// Nobody has anything to be told.
    public var isEmpty: Bool { self == Effects() }

    /// Takes in what the next request of the same commit did. After the last one, `finish` of
    /// `changes`.
    public mutating func join(_ later: Effects) {
        changes.join(later.changes)
        ended += later.ended
        challenged += later.challenged
        detached += later.detached
        background.formUnion(later.background)
        hasDeliveries = hasDeliveries || later.hasDeliveries
        wakes += later.wakes
        published += later.published
        schedule += later.schedule
        audiences += later.audiences
        node = later.node ?? node
        unreadable += later.unreadable
    }

    mutating func note(_ more: WakeEffects) {
        var more = more
        unreadable += more.unreadable
        more.unreadable = []
        wakes += more
        if more.isDue { background.insert(.pushes) }
    }

    mutating func note(_ change: FeedChange) { changes.note(change) }
}

/// A device that has no push token any more: nobody has it, or another device.
public struct DetachedDevice: Hashable, Sendable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID

    public init(app: AppID, user: UserID, device: DeviceID) {
        self.app = app
        self.user = user
        self.device = device
    }

    init(_ record: DeviceRecord) {
        self.init(app: record.app, user: record.user, device: record.device)
    }

    /// The device that a claim is of.
    public init(_ key: PushJobKey) {
        self.init(app: key.app, user: key.user, device: key.device)
    }
}

/// What a rule about wakes did that others count or act on.
public struct WakeEffects: Equatable, Sendable {
    /// A push has become due: the gateway should claim.
    public var isDue = false
    public var demotions = 0
    public var recoveries = 0
    /// Alerts whose time has come.
    public var released = 0
    /// What came of silent pushes.
    public var outcomes: [WakeOutcome] = []
    public var latencies: [WakeLatency] = []
    /// Tokens that were dropped: the app's webhooks are to be told in the same transaction.
    public var dropped: [TokenFeedbackRecord] = []
    /// What came of pushes of campaigns.
    public var campaigns: [CampaignEvent] = []
    /// Campaigns that stopped themselves.
    public var campaignsStopped = 0
    /// Rows that a turn passed over, for they cannot be read.
    public var unreadable: [UnreadableRow] = []

    public init() {}

    mutating func passedOver(_ app: AppID, _ user: UserID, _ detail: String) {
        unreadable.append(
            UnreadableRow(app: app, user: user, conversation: .none, detail: detail))
    }

    /// Rows of users, of a table whose key begins with app and user.
    mutating func passedOver<R: Record>(_ found: ReadableRows<R>) {
        for (row, detail) in found.others {
            passedOver(AppID(row[0].words), UserID(row[1].words), detail)
        }
    }

    public static func += (effects: inout WakeEffects, more: WakeEffects) {
        effects.isDue = effects.isDue || more.isDue
        effects.demotions += more.demotions
        effects.recoveries += more.recoveries
        effects.released += more.released
        effects.outcomes += more.outcomes
        effects.latencies += more.latencies
        effects.dropped += more.dropped
        effects.campaigns += more.campaigns
        effects.campaignsStopped += more.campaignsStopped
        effects.unreadable += more.unreadable
    }
}

/// How long a step of a silent push took, from its last attempt on.
public struct WakeLatency: Equatable, Sendable {
    public enum Stage: String, Sendable, CaseIterable {
        /// APNs took it.
        case accepted
        /// The app said HELLO.
        case connected
        /// The app has what the push was for.
        case synced
    }

    public var stage: Stage
    public var duration: Milliseconds

    public init(_ stage: Stage, _ duration: Milliseconds) {
        self.stage = stage
        self.duration = duration
    }
}
