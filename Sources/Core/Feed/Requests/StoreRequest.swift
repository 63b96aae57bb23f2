public import Model
public import Wake
public import Wire

/// What the shells ask of the store: one value, one savepoint, one answer. `Rules.execute`
/// carries it out on an open transaction; it is the only writer of the server's tables.
///
/// It is indirect, because it is handed from queue to queue on its way to the writer: each step
/// copies one reference, and not each text of a message.
public indirect enum StoreRequest: Equatable, Sendable {
    case openSession(OpenSession)
    case sync(SyncWrite)
    case acknowledge(Acknowledge)
    case changeAppState(ChangeAppState)
    case mutate(Mutate)
    case endSession(EndSession)
    case abandonSession(AbandonSession)
    /// AUTHENTICATE on an open session.
    case reauthenticate(Reauthenticate)

    /// By a backend; one key has one effect and one answer (P2).
    case change(app: AppID, Change, idempotency: Idempotency?)

    case administer(Administration)
    case webhooks(WebhookRequest)
    case schedules(ScheduleRequest)
    case campaigns(CampaignRequest)

    /// Serves at most `recipients` feeds from the oldest fan-out jobs.
    case continueFanOut(recipients: Int)
    /// Goes on deleting users, with about `rows` rows.
    case continueDeletions(rows: Int)
    /// Writes the receipts that are due, of at most `users` users.
    case coalesceReceipts(users: Int)
    /// Deletes rows past their retention and what deletions left behind, about `rows`, and no more
    /// than one turn may take.
    case enforceRetention(rows: Int)
    /// Start of a process: makes the store's epoch half if there is none, and sets
    /// `expectedUntil` on the sessions of every other boot.
    case start(boot: BootID, epochHalf: UInt64)
    /// Of a backup, before it is served: what happened after it is lost, and nothing of that may
    /// be taken for what happens from now on.
    case restore(epochHalf: UInt64)

    /// Pushes that are due, for the gateway; at least every second while a stream is free, and
    /// when a commit says so (`BackgroundWork.pushes`).
    case claimPushes(ClaimPushes)
    case finishPush(FinishPush)
    case keepProviderToken(KeepProviderToken)
    /// Asks for the keys of TLS session tickets, and brings one just drawn, in case one is due.
    case keepTicketKeys(TicketKey)
    /// Each second: sessions whose device did not come back, graces and leases that ended, alerts
    /// past their retention; at most `rows` of each.
    case sweepWakes(rows: Int)
    /// Every 2 s: the store's `alive_at`. A gap in it means that we were away.
    case keepAlive
    /// Before anything else after a rest of the writer, which wrote nothing for so long: that was
    /// no absence. Of a store with one writer.
    case rested(Milliseconds)
    /// Of a store with several nodes, every 2 s: this one is there. Nodes whose lease is over are
    /// taken for gone, as is each session of theirs after `reconnectWindow`.
    case beat(NodeBeat)
    /// An operator's wish for a node, or for all of them; they find it with their next beat.
    case order(NodeOrder)
}

/// Names the session that asks: an answer for a session that is not the newest of its device and
/// role any more is `.ended`.
public struct SessionKey: Hashable, Sendable {
    public var app: AppID
    public var user: UserID
    public var device: DeviceID
    public var role: RoleKind
    public var generation: UInt64

    public init(app: AppID, user: UserID, device: DeviceID, role: RoleKind, generation: UInt64) {
        self.app = app
        self.user = user
        self.device = device
        self.role = role
        self.generation = generation
    }
}

/// The credential a session is opened with.
public enum Credential: Equatable, Sendable {
    /// SHA-256 of the session token the client presented.
    case sessionToken(hash: [UInt8])
    /// A verified identity token's subject.
    case identity(UserID)
}

/// Commits the session row and everything HELLO carried, in one transaction.
public struct OpenSession: Equatable, Sendable {
    public var app: AppID
    public var device: DeviceID
    public var role: RoleKind
    public var credential: Credential
    /// SHA-256 of the session token that WELCOME will carry.
    public var newTokenHash: [UInt8]
    /// The user's half of an epoch, should one be needed (new user, cursor ahead). 63 bits.
    public var freshEpochHalf: UInt64
    public var boot: BootID
    public var clientName: String
    public var clientVersion: String
    public var appState: AppState?
    public var dormantAfter: Milliseconds?
    public var push: PushRegistration?
    public var wake: WakeID?
    /// The user's language and clock on this device; `nil`: an extension's session.
    public var place: DevicePlace?
    /// The inline SYNC; `nil` if HELLO had none.
    public var sync: SyncFrame?
    /// When the connection was accepted, by the monotonic clock of this boot: a HELLO that was
    /// long on its way takes nothing from a connection that came after it.
    public var connectedAt: UInt64

    public init(
        app: AppID, device: DeviceID, role: RoleKind, credential: Credential,
        newTokenHash: [UInt8], freshEpochHalf: UInt64, boot: BootID, clientName: String = "",
        clientVersion: String = "", appState: AppState? = nil,
        dormantAfter: Milliseconds? = nil, push: PushRegistration? = nil, wake: WakeID? = nil,
        place: DevicePlace? = nil, sync: SyncFrame? = nil, connectedAt: UInt64 = 0
    ) {
        self.app = app
        self.device = device
        self.role = role
        self.credential = credential
        self.newTokenHash = newTokenHash
        self.freshEpochHalf = freshEpochHalf
        self.boot = boot
        self.clientName = clientName
        self.clientVersion = clientVersion
        self.appState = appState
        self.dormantAfter = dormantAfter
        self.push = push
        self.wake = wake
        self.place = place
        self.sync = sync
        self.connectedAt = connectedAt
    }
}

/// What a SYNC has to tell: cursor, `applied`, read receipts, mutations.
public struct SyncWrite: Equatable, Sendable {
    public var session: SessionKey
    public var sync: SyncFrame
    public var freshEpochHalf: UInt64

    public init(session: SessionKey, sync: SyncFrame, freshEpochHalf: UInt64) {
        (self.session, self.sync, self.freshEpochHalf) = (session, sync, freshEpochHalf)
    }
}

/// An ACK, or `applied` persisted later.
public struct Acknowledge: Equatable, Sendable {
    public var session: SessionKey
    public var applied: UInt64
    public var ranges: [InclusiveRange]
    public var reads: [ReadReceipt]
    /// `applied` reached the `to` of a page without `more`: a completed sync.
    public var completesSync: Bool

    public init(
        session: SessionKey, applied: UInt64, ranges: [InclusiveRange] = [],
        reads: [ReadReceipt] = [], completesSync: Bool
    ) {
        self.session = session
        self.applied = applied
        self.ranges = ranges
        self.reads = reads
        self.completesSync = completesSync
    }
}

/// APP_STATE, or the session became suspect (`dormantAfter` 0), or counts again.
public struct ChangeAppState: Equatable, Sendable {
    public var session: SessionKey
    /// The three switches to store; `nil`: unchanged.
    public var appState: AppState?
    /// From now + this on the wake path sees no socket; `nil`: never (foreground).
    public var dormantAfter: Milliseconds?

    public init(session: SessionKey, appState: AppState?, dormantAfter: Milliseconds?) {
        self.session = session
        self.appState = appState
        self.dormantAfter = dormantAfter
    }
}

/// MUTATE outside a SYNC.
public struct Mutate: Equatable, Sendable {
    public var session: SessionKey
    public var mutation: Mutation

    public init(session: SessionKey, mutation: Mutation) {
        self.session = session
        self.mutation = mutation
    }
}

/// An open session was challenged, and its user has shown a new identity token.
public struct Reauthenticate: Equatable, Sendable {
    public var session: SessionKey
    /// SHA-256 of the session token that WELCOME will carry.
    public var newTokenHash: [UInt8]
    /// As in `ChangeAppState`.
    public var dormantAfter: Milliseconds?

    public init(session: SessionKey, newTokenHash: [UInt8], dormantAfter: Milliseconds?) {
        self.session = session
        self.newTokenHash = newTokenHash
        self.dormantAfter = dormantAfter
    }
}

/// The connection ended.
public struct EndSession: Equatable, Sendable {
    public var session: SessionKey
    /// What was acknowledged and not yet persisted.
    public var applied: UInt64
    /// How long the device may take to come back before it counts as without a socket: the DRAIN
    /// slot + 10 s, 0 if it said it goes to sleep or was dormant, else 10 s.
    public var expectedWithin: Milliseconds
    /// The page of its last SYNC was counted and not sent (SYN-31).
    public var isPageUnsent: Bool

    public init(
        session: SessionKey, applied: UInt64, expectedWithin: Milliseconds,
        isPageUnsent: Bool = false
    ) {
        (self.session, self.applied) = (session, applied)
        (self.expectedWithin, self.isPageUnsent) = (expectedWithin, isPageUnsent)
    }
}

/// Whatever session a connection may have opened ends: the answer to its `OpenSession` was lost,
/// and a row that nobody ends would count for ever.
public struct AbandonSession: Equatable, Sendable {
    public var app: AppID
    public var device: DeviceID
    public var role: RoleKind
    public var boot: BootID
    /// That of the `OpenSession`.
    public var connectedAt: UInt64
    public var expectedWithin: Milliseconds

    public init(
        app: AppID, device: DeviceID, role: RoleKind, boot: BootID, connectedAt: UInt64,
        expectedWithin: Milliseconds
    ) {
        self.app = app
        self.device = device
        self.role = role
        self.boot = boot
        self.connectedAt = connectedAt
        self.expectedWithin = expectedWithin
    }
}

/// What a request came to.
public enum StoreAnswer: Equatable, Sendable {
    case opened(OpenedSession)
    case synced(SyncedSession)
    case acknowledged(head: UInt64)
    case mutated(MutationResult, floor: UInt64)
    case conversation(ConversationRecord)
    case published(MessageRecord)
    /// Of a message edited: what the edit came to, also where later ones followed.
    case edited(MessageRecord)
    /// Of a conversation, after the change.
    case metadata(MetadataRecord)
    case announced(AnnouncementRecord)
    /// As it was asked for, whatever came of it since.
    case scheduled(ScheduledRecord)
    /// How many rows or users were worked on; `more`: call again at once.
    case progressed(count: Int, more: Bool)
    case started(storeEpochHalf: UInt64)
    case restored(users: UInt64, tokens: UInt64, consoleTokens: UInt64)
    case pushes(ClaimedPushes)
    /// The class of the answer; `nil`: the claim was not the newest any more.
    case pushFinished(PushAnswer?)
    case providerToken(KeptProviderToken)
    /// Those in force, the newest first.
    case ticketKeys([KeptTicketKey])
    /// The nodes concerned, as they stand now.
    case ordered([NodeRecord])
    case webhook(WebhookRecord)
    /// The event that tests a webhook.
    case webhookTested(WebhookEventID)
    case deliveries(ClaimedDeliveries)
    /// `nil`: the claim was not the newest any more.
    case deliveryFinished(DeliveryEffect?)
    case campaign(CampaignRecord)
    case campaignState(CampaignID, CampaignState)
    /// The number of the row.
    case audited(number: UInt64)
    case done
    /// Asked by a session that is not the newest of its device and role. Its connection is closed
    /// with the code.
    case ended(Code)
    /// The idempotency key was used for another request.
    case idempotencyMismatch
    /// The peer's fault; nothing was written.
    case refused(Code, detail: String)
    /// A later one of the request's steps could not be carried out: `.conflict` or `.corrupt`.
    /// What the steps before it wrote stands.
    case failed(StoreError)
}

/// The facts WELCOME and the first DELTA are made of.
public struct OpenedSession: Equatable, Sendable {
    public var session: SessionKey
    public var sync: SyncedSession
    public var tokenLifetime: Milliseconds
    public var isPushTokenHeld: Bool
    /// The push registration was refused (2010): topic not configured.
    public var isPushRefused: Bool

    public init(
        session: SessionKey, sync: SyncedSession, tokenLifetime: Milliseconds,
        isPushTokenHeld: Bool, isPushRefused: Bool
    ) {
        self.session = session
        self.sync = sync
        self.tokenLifetime = tokenLifetime
        self.isPushTokenHeld = isPushTokenHeld
        self.isPushRefused = isPushRefused
    }
}

/// Where a SYNC stands after its writes.
public struct SyncedSession: Equatable, Sendable {
    public var epoch: Epoch
    public var head: UInt64
    public var applied: UInt64
    public var mutationFloor: UInt64
    public var results: [MutationResult]
    /// The cursor cannot be continued: the feed is sent from its start.
    public var reset: ResetReason?
    /// Others are being reset: how long to wait before the first page.
    public var resetAfter: Milliseconds
    public var hadPushRows: Bool
    /// Of the device: above `RuleLimits.deliveryTries` pages of one entry are sent.
    public var deliveryFailures: UInt64

    public init(
        epoch: Epoch, head: UInt64, applied: UInt64, mutationFloor: UInt64,
        results: [MutationResult] = [], reset: ResetReason? = nil, resetAfter: Milliseconds = 0,
        hadPushRows: Bool = false, deliveryFailures: UInt64 = 0
    ) {
        self.epoch = epoch
        self.head = head
        self.applied = applied
        self.mutationFloor = mutationFloor
        self.results = results
        self.reset = reset
        self.resetAfter = resetAfter
        self.hadPushRows = hadPushRows
        self.deliveryFailures = deliveryFailures
    }
}

/// A feed that got longer: what the hub is told after the commit.
public struct FeedChange: Equatable, Sendable {
    public var app: AppID
    public var user: UserID
    public var head: UInt64
    /// Bits by `EntryKind.rawValue`.
    public var kinds: UInt32
    /// An alert leaves soon unless the change is acknowledged before.
    public var isUrgent: Bool
    /// What was appended; `nil`: it is read.
    public var tail: FeedTail?
    /// What was done to the number of unread messages; where no entry came (`kinds` is 0), the
    /// change is told for this alone.
    public var unread = UnreadChange()
    /// The trace to which a message among it belongs: the first one of it that has any.
    public var trace: TraceContext?
    /// The highest entry that was taken away, or another put into its place; 0: none.
    var replacedThrough: UInt64 = 0

    public init(
        app: AppID, user: UserID, head: UInt64, kinds: UInt32, isUrgent: Bool = false
    ) {
        self.app = app
        self.user = user
        self.head = head
        self.kinds = kinds
        self.isUrgent = isUrgent
    }
}

/// A session whose row went or was taken over: its connection, if it is still open, is closed.
public struct EndedSession: Equatable, Sendable {
    public var session: SessionKey
    public var code: Code

    public init(session: SessionKey, code: Code) {
        self.session = session
        self.code = code
    }
}

/// Who gets signals may be others from now on: in a conversation, whoever sends them, or of a
/// sender, wherever.
public enum AudienceChange: Hashable, Sendable {
    case conversation(AppID, ConversationID)
    case sender(AppID, UserID)
}

/// What the shells read: carried out by `Rules.read` on one snapshot.
public enum StoreQuery: Equatable, Sendable {
    case page(PageQuery)
    /// History, a snapshot or a digest, for a client.
    case history(HistoryQuery)
    /// Heads of these users (the turn over connected users).
    case heads(AppID, [UserID])
    /// Which of these sessions are not what their connections take them for.
    case standings([SessionKey])
    case apps
    case apiKey(hash: [UInt8])
    case devices(AppID, UserID)
    case device(AppID, DeviceID)
    case conversation(AppID, ConversationID)
    /// The newest pushes of a device, with times and outcomes.
    case wakes(AppID, DeviceID, limit: Int)
    /// What a backend looks at.
    case backend(AppID, BackendQuery)
    /// What waits for the webhooks of all apps.
    case webhookBacklog
    /// Who gets a signal of this user in this conversation.
    case audience(AppID, UserID, ConversationID)
    /// Why devices were pushed to for a message, or were not.
    case explain(AppID, ExplainQuery)
    case campaigns(AppID, CampaignQuery)
    case operators(OperatorQuery)
}

/// An app with everything the shells need to know of it.
public struct AppConfiguration: Equatable, Sendable {
    public var app: AppRecord
    public var issuerKeys: [IssuerKeyRecord]
    public var apiKeys: [APIKeyRecord]
    public var pushCredentials: [PushCredentialRecord]
}

/// A device and its sessions, as administrators and backends see it.
public struct DeviceView: Equatable, Sendable {
    public var device: DeviceRecord
    public var head: UInt64
    public var visibleHead: UInt64
    public var sessions: [SessionRecord]
    public var reachability: ReachabilityState
    /// Not heard of for as long as the app's policy says.
    public var isPresumedGone: Bool
    /// What it has of its own, or of the app.
    public var policy: WakePolicy
    /// Whose wakes its grace is learned from.
    public var graceSource: GraceSource
}

/// What a query found.
public enum StoreReading: Equatable, Sendable {
    case page(Page)
    case history(HistoryReading)
    case heads([FeedChange])
    /// Of those that were asked for and are not `.current`.
    case standings([SessionKey: SessionStanding])
    case apps([AppConfiguration])
    case apiKey(APIKeyRecord?)
    case devices([DeviceView])
    case device(DeviceView?)
    case conversation(ConversationRecord?, participants: [ParticipantRecord])
    /// Newest first.
    case wakes([WakeHistoryRecord])
    case backend(BackendReading)
    case webhookBacklog(WebhookBacklog)
    /// Ascending; empty also where the user takes no part.
    case audience([UserID])
    case explained(Explanation)
    case campaigns(CampaignReading)
    case operators(OperatorReading)
    /// The user or object is unknown.
    case nothing
}

/// Which process says that it is there.
public struct NodeBeat: Equatable, Sendable {
    public var boot: BootID
    public var name: String
    /// The program's.
    public var version: String
    /// Device connections now.
    public var connections: Int
    public var phase: NodePhase

    public init(
        boot: BootID, name: String, version: String = "", connections: Int = 0,
        phase: NodePhase = .serving
    ) {
        self.boot = boot
        self.name = name
        self.version = version
        self.connections = connections
        self.phase = phase
    }
}

/// How far a node's process is.
public enum NodePhase: Equatable, Sendable {
    case serving
    /// It sends its devices away, and takes none of others.
    case ending
    /// This is the last that it says.
    case over
}

/// What an operator wants of nodes.
public enum NodeOrder: Equatable, Sendable {
    /// The nodes of this name send their devices to the others, and take no new ones.
    case drain(name: String)
    /// They take devices again.
    case resume(name: String)
    /// Nodes with more connections than the mean send their surplus away.
    case rebalance

    /// Why an order is not carried out.
    public enum Refusal: Equatable, Sendable {
        /// No node of the name is there.
        case nobody
        /// One of the name is of a version that does not look for orders.
        case tooOld
    }

    /// - Parameter nodes: those that were found concerned.
    public func refusal(of nodes: [NodeRecord]) -> Refusal? {
        guard self != .rebalance else { return nil }
        if nodes.isEmpty { return .nobody }
        return nodes.contains { $0.version == nil } ? .tooOld : nil
    }
}

/// How a node stands among the others, as its beat finds it.
public struct NodeStanding: Equatable, Sendable {
    /// It is to have no devices.
    public var drains: Bool
    /// Devices to send away now.
    public var surplus: Int
    /// Another node is there and takes devices.
    public var hasOthers: Bool
    /// No other node is there, not even one that takes no devices.
    public var isAlone: Bool
    /// Another process goes on under this node's name: orders are given by name.
    public var hasNamesake: Bool

    public init(
        drains: Bool = false, surplus: Int = 0, hasOthers: Bool = false, isAlone: Bool = false,
        hasNamesake: Bool = false
    ) {
        (self.drains, self.surplus) = (drains, surplus)
        (self.hasOthers, self.isAlone) = (hasOthers, isAlone)
        self.hasNamesake = hasNamesake
    }

    /// It sends its devices away: not as long as nobody else would take them.
    public var leaves: Bool { drains && hasOthers }
    /// It is told to, and nobody else would take them.
    public var waits: Bool { drains && !hasOthers }
}

extension SessionKey {
    /// The key of the session's device.
    var deviceKey: [ColumnValue] { [.app(app), .user(user), .identifier(device)] }
}
