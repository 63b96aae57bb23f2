public import Model

// Numbers stored in rows. They are never reused.

/// How far a campaign got, whether it is held or not.
public enum CampaignStage: UInt64, StoredNumber, CaseIterable {
    /// Its start is ahead.
    case scheduled = 1
    /// The share that goes first.
    case canary = 2
    /// The share has it; somebody should look how it went.
    case review = 3
    case main = 4
    case finished = 5
}

/// What keeps a campaign from going on.
public enum CampaignHold: UInt64, StoredNumber, CaseIterable {
    case none = 0
    case paused = 1
    /// It stopped itself.
    case stopped = 2
    case cancelled = 3
}

/// How a campaign stands: the raw value is its name in the APIs.
public enum CampaignState: String, Sendable, CaseIterable {
    case scheduled
    case canary
    case review
    case running
    case paused
    case stopped
    case cancelled
    case finished

    public init(_ stage: CampaignStage, _ hold: CampaignHold) {
        switch (hold, stage) {
        case (.paused, _): self = .paused
        case (.stopped, _): self = .stopped
        case (.cancelled, _): self = .cancelled
        case (.none, .scheduled): self = .scheduled
        case (.none, .canary): self = .canary
        case (.none, .review): self = .review
        case (.none, .main): self = .running
        case (.none, .finished): self = .finished
        }
    }
}

/// Where a campaign's one push to a device stands.
public enum CampaignPushPhase: UInt64, NamedByCase, StoredNumber {
    case queued = 1
    /// Claimed; APNs has not answered.
    case sending = 2
    /// APNs took it.
    case sent = 3
    /// APNs refused it, or it was tried often enough.
    case refused = 4
    /// It was worth none any more when its turn came.
    case leftOut = 5
    case cancelled = 6

    /// As in the APIs.
    public static let names = caseNames()
}

/// Why a device of the audience gets none.
public enum CampaignOmission: UInt64, NamedByCase, Sendable {
    /// Not heard of for as long as the app's policy says.
    case presumedGone = 1
    case tokenless = 2
    /// The user has switched the app's notifications off on the device.
    case notificationsOff = 3
    /// Its user is suspended, or being deleted.
    case suspended = 4
    /// No push credential names its topic.
    case noCredential = 5
    /// It was in the audience when it was queued, and not when its turn came; or it was deleted
    /// with its user before the answer to its push.
    case changed = 6

    /// As in the APIs.
    public static let names = caseNames()
}

/// What the answer makes of a campaign's push.
public enum CampaignSettlement: Equatable, Sendable {
    case sent
    case queuedAgain(due: Timestamp)
    case refused
}

extension MessageID {
    /// A device's one push in flight names what it is for here; ids of campaigns and messages
    /// are told apart by the push's kind.
    public init(_ campaign: CampaignID) { self.init(high: campaign.high, low: campaign.low) }
}

extension CampaignID {
    init(_ message: MessageID) { self.init(high: message.high, low: message.low) }
}
