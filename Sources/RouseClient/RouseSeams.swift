public import AppLife
public import Model
public import SyncClient
public import Wire

/// What happens on a connection, in order.
public enum TransportEvent: Sendable {
    /// TLS is up, with the protocol `rouse/1`.
    case connected
    /// Bytes of the server, in any pieces.
    case received([UInt8])
    /// The connection is gone, or never came about; nothing comes after it.
    case closed(why: String)
}

/// One connection, from dialling to its end.
public protocol RouseConnection: Sendable {
    /// What happens on it; iterated once, and asked for the next when the last was dealt with. One
    /// made with `unfolding` reads no more of the socket than that.
    var events: AsyncStream<TransportEvent> { get }
    /// Queues bytes and returns at once; a failure comes as `.closed`.
    func send(_ bytes: [UInt8])
    /// What was sent still leaves. Nothing of its events is looked at any more.
    func close()
}

/// Opens TLS connections to the server.
public protocol RouseTransport: Sendable {
    /// Begins to dial and returns at once; what comes of it is in the connection's `events`.
    func connect() -> any RouseConnection
}

/// A notification of this app that stands in the system's list.
public struct DeliveredNotification: Equatable, Sendable {
    /// The system's, by which it is removed or replaced.
    public var identifier: String
    /// `o` and `c` of the payload (PSH-2), or of the notice that the app has shown itself.
    public var object: MessageID?
    public var conversation: ConversationID?
    /// `q` of its `userInfo`: the app has it take the place of one that stands
    /// (`AppNotice.isQuiet`).
    public var isQuiet: Bool

    public init(
        identifier: String, object: MessageID? = nil, conversation: ConversationID? = nil,
        isQuiet: Bool = false
    ) {
        self.identifier = identifier
        self.object = object
        self.conversation = conversation
        self.isQuiet = isQuiet
    }
}

/// The phone's screen. Each call returns when the system has taken it.
public protocol RousePhone: Sendable {
    /// Oldest first.
    func delivered() async -> [DeliveredNotification]
    /// Adds a notification, or puts it in the place of the one with its identifier.
    func show(_ notice: AppNotice) async
    /// Takes a notification from the list; one that is not there is passed over.
    func remove(identifier: String) async
    /// The icon's number. What stands in the list stays: iOS takes the whole list away when the
    /// number changes to 0, so a phone puts back what stood, without a sound.
    func setBadge(_ count: UInt32) async
}

/// Both clocks of the device.
public protocol RouseClock: Sendable {
    /// Goes on also while the device sleeps; never back.
    var now: Instant { get }
    /// The calendar's time.
    var wall: Timestamp { get }
    /// - Throws: when the task is cancelled.
    func sleep(until moment: Instant) async throws
}

/// What becomes of the app's window.
public enum ScenePhase: Equatable, Sendable {
    /// In front, and the person sees it.
    case active
    /// In front, but covered, or on its way to or from there.
    case inactive
    /// The system lets the app run on for so long.
    case background(remaining: Milliseconds)
    /// The run time is over.
    case suspending
}

/// What changed on this device, for whatever shows it. A change is told after it is durable.
public enum RouseChange: Equatable, Sendable {
    /// New here.
    case entries([Entry])
    case unread(UInt32)
    /// Everything up to the feed's head is here; all that it brought was told before.
    case inSync
    /// The server's answers to what this device sent.
    case results([MutationResult])
    /// The server's older messages that were asked for are here, and in the windows; `more`: it
    /// has still older ones.
    case olderFetched(in: ConversationID, more: Bool)
    /// The server does not give them, or too many are asked for at once (4006).
    case olderRefused(in: ConversationID, Refusal)
    /// Another user began something just now: `typing` and `present`; or ended it: `typingEnded`
    /// and `away`, also by its time being over.
    case signal(SignalKind, conversation: ConversationID, user: String)
    /// The server does not take the push token, or APNs called it dead (SES-18): no push will come
    /// until the app has registered with the system anew and said so with `setPush`.
    case pushTokenRefused
    /// The logout that an earlier process began is done: everything of the user goes from the
    /// screen and from here, and the client closes. To go on, make another.
    case loggedOut
    /// The server lets this device in no more: the user is suspended (2005), another installation
    /// with the same id has taken its place (5002), the app is too old (5005), or the server found
    /// a fault in this client (as 5004). It is tried again when the app comes to the front or is
    /// woken, or its person asks for news; an app that is too old is not.
    case refused(Refusal)
    /// The store cannot be opened, read or written: the phone was not unlocked since its restart,
    /// or another process has the file (`.unavailable`), its disk is `.full`, the file is damaged
    /// (`.corrupt`), which may be met only while it is read, or a newer version of the app has used
    /// it (`.newer`). It is tried again with whatever comes next: a push, the app in front, a
    /// change of the network; a damaged file only another takes the place of.
    case storeFailed(LocalStoreError)
    /// The server refused the login, or the backend vouched for another user.
    case trouble(String)
}

/// Whether the server is reached.
public enum ConnectionState: Equatable, Sendable {
    /// There is no connection; if the app runs, it is tried again. `Rouse.disconnectReason` says
    /// why.
    case offline
    case connecting
    /// Something of the feed is still to come.
    case syncing
    /// Everything up to the feed's head is on this device.
    case inSync
    /// There is no connection, and none is tried before the app comes to the front or is woken, or
    /// its person asks for news: the server lets this device in no more. With 5005, an app that is
    /// too old, none is ever tried.
    case refused(Refusal)
}

/// What happens in a client, for its app's log.
public enum RouseRecord: Sendable {
    /// What the protocol reports.
    case event(ClientEvent)
    /// Entries that are new here, and durable.
    case applied([Entry])
    /// Final results of mutations, durable.
    case results([MutationResult])
    /// The client has ended a connection, or never had it made.
    case left
    /// A connection is gone, or never came about.
    case lost(why: String)
    /// The store could not do it.
    case storeFailed(String)
}

/// Where a client stands with its server.
public struct RouseStanding: Equatable, Sendable {
    /// Up to where the feed is stored here.
    public var cursor: Cursor?
    /// It holds an open session.
    public var isOpen: Bool
    /// Everything it was told of is stored and acknowledged.
    public var isInSync: Bool
    /// Mutations without a result.
    public var hasUnanswered: Bool
}
