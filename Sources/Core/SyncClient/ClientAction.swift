public import Model
public import Wire

/// What the shell carries out for a `ClientSession`, in the order given.
public enum ClientAction: Equatable, Sendable {
    /// Open a connection with TLS; answer with `connected` or `closed`.
    case connect
    case send(Frame)
    /// WELCOME came: the decoder's limits from here on.
    case raiseLimits(FrameLimits)
    /// Write what was sent, then close the socket. No `closed` is awaited: frames and `closed` of
    /// that connection must not be handed to the session any more.
    case disconnect
    /// `LocalStore.apply`; answer with `committed` or `storeFailed`. Changes are applied in order,
    /// and none after one that failed.
    case apply(LocalChange)
    /// `LocalStore.applyHistory`; answer with `historyCommitted` or `storeFailed`.
    case applyHistory(HistoryChange)
    /// `LocalStore.applySnapshot`; answer with `snapshotCommitted` or `storeFailed`.
    case applySnapshot(SnapshotChange)
    /// `LocalStore.digest`; answer with `digestComputed`. Failing is `storeFailed`.
    case sumUp
    /// `LocalStore.orphans`; answer with `orphansLoaded`. Failing is `storeFailed`.
    case loadOrphans(limit: Int)
    /// `LocalStore.saveResults`; failing is `storeFailed`.
    case saveResults([MutationResult])
    /// `LocalStore.endReads`; answer with `readsEnded` or `storeFailed`.
    case endReads([ReadReceipt])
    /// `LocalStore.saveSession`, before the next action.
    case saveSession(token: [UInt8], user: String)
    /// `LocalStore.forgetSession`.
    case forgetSession
    /// `LocalStore.savePush`.
    case savePush(PushRegistration?)
    /// `LocalStore.mutations`; answer with `mutationsLoaded`.
    case loadMutations(after: UInt64, limit: Int)
    /// `LocalStore.markSent`, before the next action. Failing is `storeFailed`, and nothing that
    /// was to be sent leaves.
    case markSent(through: UInt64)
    /// `LocalStore.markLogoutSent`; answer with `logoutMarked` or `storeFailed`.
    case markLogoutSent(UInt64)
    /// `LocalStore.raiseMutationNumbers`.
    case raiseMutationNumbers(above: UInt64)
    /// `LocalStore.renumberMutations`; answer with `mutationsRenumbered`.
    case renumberMutations(from: UInt64, above: UInt64)
    /// Have the app's backend sign an identity token over the nonce; answer with
    /// `identityToken`.
    case needIdentityToken(nonce: [UInt8], lifetime: Milliseconds)
    case report(ClientEvent)
}

/// What the app may want to know, and the log.
public enum ClientEvent: Equatable, Sendable {
    /// WELCOME came.
    case opened(user: String, node: String)
    /// The server asked once more who this is, and has accepted the answer.
    case reauthenticated
    /// Everything up to the feed's head as of now is applied and acknowledged.
    case synced(Cursor)
    /// How many messages the user has not read, in all: what the app's icon shows now (SYN-27).
    /// Comes when the page that says so is durable, before `synced`.
    case unread(UInt32)
    /// A SYNC_REQUEST came.
    case syncRequested(head: UInt64)
    /// A DELTA was handed to the local store.
    case delta(entries: Int, more: Bool)
    /// The server could not continue this device's cursor.
    case reset(ResetReason)
    /// A page of a snapshot is durable: with the first this device is usable.
    case snapshot(conversations: Int, isFirst: Bool, isLast: Bool)
    /// A FETCH was answered and is durable; complete from `first` to `last` (HIS-6).
    case fetched(ticket: UInt64, first: UInt64, last: UInt64, more: Bool)
    /// A FETCH was refused for good.
    case fetchFailed(ticket: UInt64, code: UInt32)
    /// The newest entries up to the head are durable, or, with `more`, some of them.
    case peeked(head: UInt64, more: Bool)
    /// This device was compared with the server; without `isComparable` that said nothing.
    /// `objects`: how many there are here.
    case digest(isComparable: Bool, isEqual: Bool, objects: UInt64)
    /// The server refused a login.
    case loginRefused(UInt32)
    /// The identity token named this user, and not `ClientConfiguration.user`: nothing was taken.
    case otherUser(String)
    /// The server refused something with ERROR.
    case refused(UInt32, request: UInt16)
    /// Another user began or ceased something: `typing` and `present` begin, `typingEnded` and
    /// `away` end, also by their time being over.
    case signalled(SignalKind, conversation: ConversationID, user: String)
    /// The push token was refused (2010).
    case pushTokenRefused
    /// The server goes away and gave this connection a slot.
    case drained(slot: Milliseconds)
    /// The connection ended: by CLOSE with this code, or without one.
    case closed(UInt32?)
    /// The next attempt comes after this time.
    case retrying(after: Milliseconds)
    /// No attempt before the next foreground, wake or user action.
    case parked
    /// This device was logged out by its own mutation; nothing more is tried until `start`.
    case loggedOut
    /// This client is too old for the server; nothing more is tried.
    case upgradeRequired
    case storeFailed(LocalStoreError)
}

/// Every number of the client's side. Times in milliseconds, sizes in bytes.
public struct ClientLimits: Equatable, Sendable {
    /// Back-off: the first bound.
    public var backoffFirst: Milliseconds = 1_000
    /// The highest bound in the foreground.
    public var backoffForeground: Milliseconds = 30_000
    /// The highest bound in the background.
    public var backoffBackground: Milliseconds = 300_000
    /// The first attempt after a healthy session comes within this time.
    public var backoffHealthy: Milliseconds = 5_000
    /// A connection attempt, and a HELLO without an answer.
    public var answerTimeout: Milliseconds = 30_000
    /// A SYNC without a DELTA, and a login without a WELCOME.
    public var syncTimeout: Milliseconds = 60_000
    /// An unanswered SYNC or MUTATE and no frame: PING.
    public var answerPing: Milliseconds = 15_000
    /// A PING without any frame.
    public var pingTimeout: Milliseconds = 30_000
    /// The same after the network has changed: a connection of the former one is most likely dead,
    /// and the person looks at the screen.
    public var networkTimeout: Milliseconds = 5_000
    /// More 5002 than this in a minute: log in anew.
    public var supersededPerMinute = 5
    /// After the first 5002 in a minute a client in the foreground tries again in this time, at
    /// most doubled.
    public var supersededRetry: Milliseconds = 5_000
    /// Mutations held in memory, sent and not answered; WELCOME may lower it.
    public var mutationsUnanswered = 32
    /// Mutations inside HELLO, in bytes; its body is at most 16 KiB.
    public var helloMutationBytes = 10 << 10
    /// Read receipts inside HELLO, and their bytes: beside the mutations and all else there is room
    /// for no more, and elements are at most 1,024 (FRM-15).
    public var helloReads = 64
    public var helloReadBytes = 3 << 10
    /// Read receipts inside a SYNC or an ACK, and their bytes; one goes in any case.
    public var syncReads = 256
    public var syncReadBytes = 64 << 10
    /// FETCHes that may wait, and those sent without an answer; the server takes 4 (HIS-12).
    public var fetchesPending = 64
    public var fetchesOpen = 3
    /// Participants of a conversation that are asked for; no server lets in more.
    public var participantsListed = 10_000
    /// Messages of each conversation of a snapshot.
    public var snapshotMessages: UInt32 = 20
    /// A refused mutation is sent again after at least this time.
    public var mutationRetry: Milliseconds = 1_000
    /// No wait that a server asks for counts for longer (CON-15): what one answer said by mistake
    /// must not keep the user from the server for weeks.
    public var longestWait: Milliseconds = 3_600_000
    /// A server that asks for frames in a shorter interval gets them in this one (CON-7).
    public var keepaliveLeast: Milliseconds = 1_000
    /// A second DRAIN within a minute has a slot after at least this time.
    public var drainedAgain: Milliseconds = 5_000
    /// The number of CHALLENGEs answered in a minute; at the next one the connection is given up.
    public var challengesPerMinute = 8
    /// Resets that one connection may bring before it is given up: each costs a whole snapshot.
    public var resetsOfConnection = 4
    /// The same signal is not sent again within this time.
    public var signalInterval: Milliseconds = 2_000
    /// A signal's time if it names none, and at most.
    public var signalTime: Milliseconds = 6_000
    public var signalTimeMax: Milliseconds = 30_000
    /// Signals of others that hold at a time; beyond it the oldest ends.
    public var liveSignals = 64

    public init() {}
}

/// Who connects.
public struct ClientConfiguration: Equatable, Sendable {
    public var app: String
    public var device: DeviceID
    /// Whose device it is, by the app's own login: what the store holds of another user is erased
    /// before anything of it is seen or sent. `nil`: whoever the identity token names.
    public var user: String?
    public var clientName: String
    public var clientVersion: String
    /// Ask for pushed DELTAs.
    public var wantsLive: Bool
    /// Take a snapshot where the feed cannot be continued, instead of the whole feed.
    public var wantsSnapshots: Bool
    /// Woken in the background, look at the newest first.
    public var peeksOnWake: Bool
    /// An extension peeks once and closes.
    public var role: Role
    /// Take part in signals: typing, presence.
    public var wantsSignals: Bool
    /// Presented in every HELLO.
    public var push: PushRegistration?
    /// By which the server chooses the texts of alerts and their hour.
    public var place: ClientPlace
    public var limits: ClientLimits

    /// - Parameter device: left out where it can be read only when the store can: then the client
    ///   is given a function that does.
    public init(
        app: String, device: DeviceID = DeviceID(high: 0, low: 0), user: String? = nil,
        clientName: String,
        clientVersion: String, wantsLive: Bool = true, wantsSignals: Bool = false,
        wantsSnapshots: Bool = false, peeksOnWake: Bool = false, role: Role = .app,
        push: PushRegistration? = nil, place: ClientPlace = ClientPlace(),
        limits: ClientLimits = ClientLimits()
    ) {
        self.app = app
        self.device = device
        self.user = user
        self.clientName = clientName
        self.clientVersion = clientVersion
        self.wantsLive = wantsLive
        self.wantsSnapshots = wantsSnapshots
        self.peeksOnWake = peeksOnWake
        self.role = role
        self.wantsSignals = wantsSignals
        self.push = push
        self.place = place
        self.limits = limits
    }
}
