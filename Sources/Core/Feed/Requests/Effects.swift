import Model

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
    /// The work that may have become due for turns of its own.
    public var background: BackgroundWork = []
    /// A webhook has something to deliver that had nothing before.
    public var hasDeliveries = false
    /// Demotions and recoveries, for the metrics; tokens that were dropped.
    public var wakes = WakeEffects()
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
        background.formUnion(later.background)
        hasDeliveries = hasDeliveries || later.hasDeliveries
        wakes += later.wakes
        schedule += later.schedule
        audiences += later.audiences
        node = later.node ?? node
        unreadable += later.unreadable
    }

    mutating func note(_ more: WakeEffects) {
        wakes += more
        if more.isDue { background.insert(.pushes) }
    }

    mutating func note(_ change: FeedChange) { changes.note(change) }
}
