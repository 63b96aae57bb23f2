public import Model
public import Wake

/// Names a push credential of an app.
public struct CredentialKey: Hashable, Comparable, Sendable {
    public var app: AppID
    public var environment: PushEnvironmentKind
    private var exactName: ExactText

    public var name: String { exactName.text }

    public init(
        app: AppID, environment: PushEnvironmentKind,
        name: String = PushCredentialRecord.plainName
    ) {
        self.app = app
        self.environment = environment
        exactName = ExactText(name)
    }

    public init(_ credential: PushCredentialRecord) {
        self.init(
            app: credential.app, environment: credential.environment, name: credential.name)
    }

    public static func < (left: Self, right: Self) -> Bool {
        (left.app, left.environment.rawValue, left.exactName)
            < (right.app, right.environment.rawValue, right.exactName)
    }
}

/// What a credential can send now.
public struct PushRoom: Equatable, Sendable {
    public var credential: CredentialKey
    /// Free streams of each class, in their order.
    private var streams: [Int]
    /// How many pushes of a topic can be sent, over all classes; one that is not among them is
    /// bound by the streams alone.
    private var topics: [String: Int]

    /// - Parameters:
    ///   - topics: those that rest, with 0, or of which few may be sent.
    ///   - free: how many streams of a class are free.
    public init(
        _ credential: CredentialKey, topics: [String: Int] = [:], free: (PushClass) -> Int
    ) {
        self.credential = credential
        self.topics = topics
        streams = PushClass.allCases.map { max(0, free($0)) }
    }

    /// Nothing: pushes of the credential stay where they are.
    public init(paused credential: CredentialKey) {
        self.init(credential) { _ in 0 }
    }

    /// Whether APNs takes pushes of the topic from it, as far as is known.
    public func isOpen(_ topic: String) -> Bool { topics[topic].map { $0 > 0 } ?? true }

    /// How many pushes of a class and topic can be sent.
    public func free(_ lane: PushClass, _ topic: String) -> Int {
        min(self[lane], topics[topic] ?? .max)
    }

    /// So many of them are.
    public mutating func take(_ count: Int, _ lane: PushClass, _ topic: String) {
        self[lane] -= count
        if let left = topics[topic] { topics[topic] = left - count }
    }

    public subscript(_ lane: PushClass) -> Int {
        get { streams[Int(lane.rawValue) - 1] }
        set { streams[Int(lane.rawValue) - 1] = newValue }
    }
}

/// The queue of one credential and class.
public struct PushLane: Hashable, Comparable, Sendable {
    public var credential: CredentialKey
    public var lane: PushClass

    public init(_ credential: CredentialKey, _ lane: PushClass) {
        self.credential = credential
        self.lane = lane
    }

    public static func < (left: Self, right: Self) -> Bool {
        (left.credential, left.lane) < (right.credential, right.lane)
    }
}

/// Takes pushes that are due, each for one free stream.
public struct ClaimPushes: Equatable, Sendable {
    /// Who claims: only this boot can finish them.
    public var boot: BootID
    /// The most jobs given.
    public var streams: Int
    /// Fresh ids, at least one a stream; each becomes the `apns-id` and wake id of a new push.
    /// No more jobs are given than there are ids.
    public var ids: [WakeID]
    /// What each credential can send; one that is not among them is bound by `streams` alone.
    public var rooms: [PushRoom]
    /// Whether `ClaimedPushes.queues` is wanted: counting costs.
    public var countsQueues: Bool

    public init(
        boot: BootID, streams: Int, ids: [WakeID], rooms: [PushRoom] = [],
        countsQueues: Bool = false
    ) {
        self.countsQueues = countsQueues
        self.boot = boot
        self.streams = streams
        self.ids = ids
        self.rooms = rooms
    }
}

/// One claimed push: everything the gateway needs.
public struct PushJob: Equatable, Sendable {
    public var key: PushJobKey
    public var kind: PushKind
    /// Queues and connections are apart by it.
    public var lane: PushClass
    public var credential: CredentialKey
    public var request: PushRequest
    /// The answer must be finished before; HEADERS are not written with less than 15 s left,
    /// and the stream's deadline is 10 s.
    public var lease: Timestamp
    /// When what it tells of was published, if it tells that as soon as it can; `nil`: it does not.
    public var publishedAt: Timestamp?
    /// The trace of what it tells of.
    public var trace: TraceContext?

    public init(
        key: PushJobKey, kind: PushKind, lane: PushClass? = nil, credential: CredentialKey,
        request: PushRequest, lease: Timestamp, publishedAt: Timestamp? = nil,
        trace: TraceContext? = nil
    ) {
        self.key = key
        self.kind = kind
        self.publishedAt = publishedAt
        self.trace = trace
        self.lane = lane ?? PushClass(kind)
        self.credential = credential
        self.request = request
        self.lease = lease
    }
}

/// Names a claim: a later claim of the same device has another attempt.
public struct PushJobKey: Hashable, Sendable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    public var owner: BootID
    public var attempt: UInt64

    public init(app: AppID, user: UserID, device: DeviceID, owner: BootID, attempt: UInt64) {
        self.app = app
        self.user = user
        self.device = device
        self.owner = owner
        self.attempt = attempt
    }
}

/// What came back for a claimed push.
public struct FinishPush: Equatable, Sendable {
    public var key: PushJobKey
    public var id: WakeID
    public var reply: PushReply
    /// So many tokens are called wrong at once that the credential must be: none is dropped.
    public var keepsToken: Bool
    /// The `apns-id` that APNs gave a push which was sent without one; `nil`: it had its own.
    public var answeredID: WakeID?

    public init(
        key: PushJobKey, id: WakeID, reply: PushReply, keepsToken: Bool = false,
        answeredID: WakeID? = nil
    ) {
        self.answeredID = answeredID
        self.key = key
        self.id = id
        self.reply = reply
        self.keepsToken = keepsToken
    }
}

/// What a claim came to.
public struct ClaimedPushes: Equatable, Sendable {
    /// Devices of one class that are counted; more are told as so many.
    public static let depthMax = 10_000
    /// How long a claim waits that met a push of which another transaction holds something.
    static let heldPause: Milliseconds = 250
    /// A row that cannot be read is looked at again after so long: it seldom mends itself.
    static let unreadablePause: Milliseconds = 60_000

    public var jobs: [PushJob]
    /// More is due now, and can be sent: claim again.
    public var more: Bool
    /// More is due in these, and has to wait for streams.
    public var blocked: [PushLane]
    /// What was due in each class before the claim, of credentials that cannot send too;
    /// classes with nothing are left out.
    public var queues: [PushQueueDepth]
    /// When the next push becomes due, as far as it is known; `nil`: none waits.
    public var nextDue: Timestamp?

    public init(
        jobs: [PushJob], more: Bool, blocked: [PushLane] = [], queues: [PushQueueDepth] = [],
        nextDue: Timestamp?
    ) {
        self.jobs = jobs
        self.more = more
        self.blocked = blocked
        self.queues = queues
        self.nextDue = nextDue
    }

    mutating func comeAgain(at time: Timestamp) { nextDue = min(nextDue ?? time, time) }
}

/// How much of one class is due.
public struct PushQueueDepth: Equatable, Sendable {
    public var lane: PushClass
    /// At most `ClaimedPushes.depthMax`.
    public var count: Int
    public var oldest: Timestamp
}

extension ClaimPushes {
    /// Devices looked at in one claim: what they mostly cost is within a turn.
    static let rowsMax = 64

    /// Of each class that has something due, whatever the better ones want.
    static let reserve = 8
}
