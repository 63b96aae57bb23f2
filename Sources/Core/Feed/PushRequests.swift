public import Model
public import Wake

/// Names a push credential: an app has one for each APNs environment.
public struct CredentialKey: Hashable, Comparable, Sendable {
    public var app: AppID
    public var environment: PushEnvironmentKind

    public init(app: AppID, environment: PushEnvironmentKind) {
        self.app = app
        self.environment = environment
    }

    public static func < (left: Self, right: Self) -> Bool {
        (left.app, left.environment.rawValue) < (right.app, right.environment.rawValue)
    }
}

/// Takes pushes that are due, each for one free stream.
public struct ClaimPushes: Equatable, Sendable {
    /// Who claims: only this boot can finish them.
    public var boot: BootID
    /// Free streams: the most jobs given.
    public var streams: Int
    /// Fresh ids, at least one a stream; each becomes the `apns-id` and wake id of a new push.
    /// No more jobs are given than there are ids.
    public var ids: [WakeID]
    /// Credentials that cannot send now: their devices are put off.
    public var paused: [CredentialKey]

    public init(
        boot: BootID, streams: Int, ids: [WakeID], paused: [CredentialKey] = []
    ) {
        self.boot = boot
        self.streams = streams
        self.ids = ids
        self.paused = paused
    }
}

/// One claimed push: everything the gateway needs.
public struct PushJob: Equatable, Sendable {
    public var key: PushJobKey
    /// Its class: queues and connections are apart by it.
    public var kind: PushKind
    public var credential: CredentialKey
    public var request: PushRequest
    /// The answer must be finished before; HEADERS are not written with less than 15 s left,
    /// and the stream's deadline is 10 s.
    public var lease: Timestamp

    public init(
        key: PushJobKey, kind: PushKind, credential: CredentialKey, request: PushRequest,
        lease: Timestamp
    ) {
        self.key = key
        self.kind = kind
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

    public init(key: PushJobKey, id: WakeID, reply: PushReply) {
        self.key = key
        self.id = id
        self.reply = reply
    }
}

/// What a claim came to.
public struct ClaimedPushes: Equatable, Sendable {
    public var jobs: [PushJob]
    /// More is due now: claim again as soon as a stream is free.
    public var more: Bool
    /// When the next push becomes due, as far as it is known; `nil`: none waits.
    public var nextDue: Timestamp?

    public init(jobs: [PushJob], more: Bool, nextDue: Timestamp?) {
        self.jobs = jobs
        self.more = more
        self.nextDue = nextDue
    }
}
