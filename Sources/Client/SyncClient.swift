public import Crypto
public import EventLoop
public import Model
public import SyncClient
public import Wire

/// Where a client connects to.
public struct SyncEndpoint: Equatable, Sendable {
    public var host: String
    public var port: UInt16
    /// The name the server's certificate must hold.
    public var serverName: String
    /// A numeric address of this host to connect from; `nil`: the system's choice.
    public var sourceAddress: String?

    public init(host: String, port: UInt16, serverName: String, sourceAddress: String? = nil) {
        self.host = host
        self.port = port
        self.serverName = serverName
        self.sourceAddress = sourceAddress
    }
}

/// Bytes of a client's sockets, TLS and all, over all its connections.
public final class Traffic {
    public internal(set) var received: UInt64 = 0
    public internal(set) var sent: UInt64 = 0
    /// Connections that went on with the TLS session of an earlier one.
    public internal(set) var resumed: UInt64 = 0
}

/// What a client tells its app. All are called on the client's loop.
public struct SyncClientEvents {
    /// What the protocol reports (opened, synced, closed, …).
    public var reported: (ClientEvent) -> Void = { _ in }
    /// Entries that are new to this device, after they are durable here.
    public var applied: ([Entry]) -> Void = { _ in }
    /// Those of `applied`, after it, of which the user may be notified (Protocol/push.md, PSH-8).
    public var news: ([Entry]) -> Void = { _ in }
    /// Final results of mutations, after they are durable here.
    public var results: ([MutationResult]) -> Void = { _ in }
    /// The app's backend must sign an identity token over this nonce; answer once with it, or
    /// with `nil` if it cannot.
    public var needIdentityToken: (_ nonce: [UInt8], _ answer: @escaping (String?) -> Void) -> Void
    /// Why a connection ended or did not come about, in words.
    public var connectionEnded: (String) -> Void = { _ in }

    public init(
        needIdentityToken:
            @escaping (_ nonce: [UInt8], _ answer: @escaping (String?) -> Void) -> Void
    ) {
        self.needIdentityToken = needIdentityToken
    }
}

/// The client of the sync protocol: keeps a durable local store in sync over as many connections
/// as it takes. Loop-confined; a process can hold thousands on one loop.
///
/// It joins a `ClientReplica`, which decides and stores, to sockets and TLS.
public final class SyncClient {
    private let loop: Loop
    private let endpoint: SyncEndpoint
    private let tls: TLSContext
    private let events: SyncClientEvents
    /// What this client has cost so far.
    public let traffic = Traffic()
    private var replica: ClientReplica
    private var connection: ClientConnection?
    private var decoder = FrameDecoder(limits: .beforeWelcome)
    /// To go on with on the next connection, once.
    private var session: TLSSession?
    private var timer: LoopTimer?
    private var waiting: [ClientReplica.Effect] = []
    private var isRunning = false
    private var isClosed = false
    private var lastFetch: UInt64 = 0

    /// - Parameter seed: chance for back-off; different for every client.
    /// - Throws: when the local store cannot be read.
    public init(
        loop: Loop, endpoint: SyncEndpoint, tls: TLSContext, store: any LocalStore,
        configuration: ClientConfiguration, seed: UInt64, events: SyncClientEvents
    ) throws(LocalStoreError) {
        self.loop = loop
        self.endpoint = endpoint
        self.tls = tls
        self.events = events
        replica = try ClientReplica(store: store, configuration: configuration, seed: seed)
        timer = loop.timer { [unowned self] in self.deadlineReached() }
    }

    public var cursor: Cursor? { replica.session.cursor }
    public var isOpen: Bool { replica.session.isOpen }
    public var isInSync: Bool { replica.session.isInSync }
    public var hasUnanswered: Bool { replica.session.hasUnanswered }

    /// While it is held nothing is read from the server: what comes waits in the kernel, and then
    /// at the server. Deadlines go on.
    public var isHeld = false {
        didSet { connection?.isHeld = isHeld }
    }

    // MARK: - The app's events

    /// The app was started; `wake`: by a push.
    public func start(_ state: AppState, wake: WakeID? = nil) {
        with { $0.start(appState: state, wake: wake, now: $1) }
    }

    public func appStateChanged(_ state: AppState) {
        with { $0.appStateChanged(state, now: $1) }
    }

    /// A push arrived while the app runs or made it run.
    public func pushReceived(wake: WakeID?, state: AppState) {
        with { $0.pushReceived(wake: wake, appState: state, now: $1) }
    }

    /// The app is about to be suspended: says good-bye and closes.
    public func sleep() {
        with { $0.sleep(now: $1) }
    }

    public func refresh() {
        with { $0.userRefresh(now: $1) }
    }

    public func networkChanged() {
        with { $0.networkChanged(now: $1) }
    }

    /// Queues an operation durably and sends it when there is a connection. Returns its number;
    /// the result comes by `events.results`, after however many connections it takes.
    @discardableResult
    public func mutate(_ operation: Mutation.Operation) throws(LocalStoreError) -> UInt64 {
        let (number, effects) = try replica.enqueue(operation, now: now, wall: wall)
        perform(effects)
        return number
    }

    /// The user has read a conversation up to a position.
    public func read(_ conversation: ConversationID, through: UInt64) throws(LocalStoreError) {
        try read(ReadReceipt(conversation: conversation, through: through))
    }

    /// The user has read one message, and none before it.
    public func read(_ conversation: ConversationID, only position: UInt64) throws(LocalStoreError)
    {
        let one = InclusiveRange(first: position, last: position)
        try read(ReadReceipt(conversation: conversation, ranges: [one]))
    }

    /// The user has read an announcement.
    public func read(announcement: MessageID) throws(LocalStoreError) {
        try read(ReadReceipt(announcement: announcement))
    }

    private func read(_ receipt: ReadReceipt) throws(LocalStoreError) {
        perform(try replica.read(receipt, now: now, wall: wall))
    }

    /// Asks for history or an object; `.fetched` or `.fetchFailed` comes by `events.reported` with
    /// this number, what is new by `events.applied`.
    @discardableResult
    public func fetch(_ fetch: Fetch) -> UInt64 {
        lastFetch += 1
        let ticket = lastFetch
        with { $0.fetch(fetch, ticket: ticket, now: $1) }
        return ticket
    }

    /// Looks at the newest entries now; `.peeked` comes by `events.reported`.
    public func peek() {
        with { $0.peek(now: $1) }
    }

    /// Compares this device with the server as soon as it is in sync; `.digest` comes by
    /// `events.reported`.
    public func checkDigest() {
        with { $0.checkDigest(now: $1) }
    }

    /// The user types in a conversation, looks at it, or does so no longer. Never stored: without
    /// a connection it is dropped. Call it as often as it happens.
    public func signal(_ kind: SignalKind, in conversation: ConversationID) {
        with { $0.signal(kind, in: conversation, now: $1) }
    }

    /// A changed push registration; presented with the next HELLO.
    public func setPush(_ push: PushRegistration?) {
        replica.session.configuration.push = push
    }

    /// As when the process is killed: no good-bye, nothing more happens. Durable state stays.
    public func terminate() {
        guard !isClosed else { return }
        isClosed = true
        connection?.vanish()
        connection = nil
        timer?.close()
        timer = nil
    }

    // MARK: - Carrying out

    private var now: Instant { Instant(milliseconds: loop.now) }

    private var wall: Timestamp { Timestamp(milliseconds: SystemClock.wallMilliseconds()) }

    private func deadlineReached() {
        with { $0.deadlineReached(now: $1) }
    }

    private func heard(_ from: ClientConnection, _ event: ClientConnection.Event) {
        guard from === connection, !isClosed else { return }
        switch event {
        case .connected:
            if from.isResumed { traffic.resumed += 1 }
            with { $0.connected(now: $1) }
        case .received(let bytes):
            received(bytes, from)
            if let offered = from.takeSession() { session = offered }
        case .closed(let why):
            framesEnded()
            connection = nil
            events.connectionEnded(why)
            with { $0.closed(now: $1) }
        }
    }

    private func received(_ bytes: [UInt8], _ from: ClientConnection) {
        decoder.append(bytes)
        do {
            while from === connection, !isClosed, let frame = try decoder.next() {
                perform(replica.received(frame, now: now, wall: wall))
            }
            framesEnded()
        } catch {
            framesEnded()
            events.connectionEnded("the server sent no frame: \(error)")
            with { $0.decodingFailed(error, now: $1) }
        }
    }

    private func framesEnded() {
        guard !isClosed else { return }
        perform(replica.framesEnded(now: now, wall: wall))
    }

    private func with(_ input: (inout ClientSession, Instant) -> [ClientAction]) {
        guard !isClosed else { return }
        perform(replica.on(now: now, wall: wall, input))
    }

    /// Carries effects out in their order; what an app's handler asks for meanwhile comes after.
    private func perform(_ effects: [ClientReplica.Effect]) {
        waiting += effects
        guard !isRunning, !isClosed else { return }
        isRunning = true
        while !waiting.isEmpty && !isClosed {
            carryOut(waiting.removeFirst())
        }
        waiting = []
        isRunning = false
        guard let deadline = replica.session.nextDeadline else {
            timer?.stop()
            return
        }
        timer?.start(afterMilliseconds: deadline.since(now))
    }

    private func carryOut(_ effect: ClientReplica.Effect) {
        switch effect {
        case .connect:
            connection?.leave()
            decoder = FrameDecoder(limits: .beforeWelcome)
            connection = ClientConnection(
                loop: loop, endpoint: endpoint, tls: tls, resuming: session, traffic: traffic
            ) {
                [weak self] from, event in self?.heard(from, event)
            }
            session = nil
            connection?.isHeld = isHeld
        case .send(let frame): connection?.send(frame.encoded)
        case .raiseLimits(let limits): decoder.limits = limits
        case .disconnect:
            connection?.leave()
            connection = nil
        case .applied(let entries, let news):
            events.applied(entries)
            if !news.isEmpty, !isClosed { events.news(news) }
        case .results(let results): events.results(results)
        case .needIdentityToken(let nonce): askIdentityToken(nonce)
        case .report(let event): events.reported(event)
        }
    }

    private func askIdentityToken(_ nonce: [UInt8]) {
        let asking = connection
        events.needIdentityToken(nonce) { [weak self] token in
            // A token over the nonce of an older connection helps nobody.
            guard let self, asking != nil, self.connection === asking else { return }
            self.with { $0.identityToken(token, now: $1) }
        }
    }
}
