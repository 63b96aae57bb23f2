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
/// It joins a `ClientSession`, which decides, to sockets, TLS and the local store.
public final class SyncClient {
    private let loop: Loop
    private let endpoint: SyncEndpoint
    private let tls: TLSContext
    private let store: any LocalStore
    private let events: SyncClientEvents
    /// What this client has cost so far.
    public let traffic = Traffic()
    private var session: ClientSession
    private var connection: ClientConnection?
    private var timer: LoopTimer?
    private var waiting: [ClientAction] = []
    /// Changes of frames that were read together, in order: applied as one, because a transaction
    /// costs more than what is in it. Bounded by what one read of the socket completes.
    private var gathered: [LocalChange] = []
    private var isGathering = false
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
        self.store = store
        self.events = events
        session = ClientSession(
            configuration: configuration, state: try store.load(), seed: seed)
        timer = loop.timer { [unowned self] in self.deadlineReached() }
    }

    public var cursor: Cursor? { session.cursor }
    public var isOpen: Bool { session.isOpen }
    public var isInSync: Bool { session.isInSync }
    public var hasUnanswered: Bool { session.hasUnanswered }

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
        let now = Timestamp(milliseconds: SystemClock.wallMilliseconds())
        let number = try store.enqueue(operation, at: now)
        with { $0.mutationQueued(number, now: $1) }
        return number
    }

    /// The user has read a conversation up to a position.
    public func read(_ conversation: ConversationID, through: UInt64) throws(LocalStoreError) {
        try read(ReadReceipt(conversation: conversation, through: through))
    }

    /// The user has read an announcement.
    public func read(announcement: MessageID) throws(LocalStoreError) {
        try read(ReadReceipt(announcement: announcement))
    }

    private func read(_ receipt: ReadReceipt) throws(LocalStoreError) {
        try store.addRead(receipt)
        with { $0.readQueued(receipt, now: $1) }
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
        session.configuration.push = push
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

    private func deadlineReached() {
        with { $0.deadlineReached(now: $1) }
    }

    private func heard(_ from: ClientConnection, _ event: ClientConnection.Event) {
        guard from === connection else { return }
        switch event {
        case .connected: with { $0.connected(now: $1) }
        case .frame(let frame):
            isGathering = true
            with { $0.received(frame, now: $1) }
        case .faulty(let error):
            applyGathered()
            events.connectionEnded("the server sent no frame: \(error)")
            with { $0.decodingFailed(error, now: $1) }
        case .allFrames: applyGathered()
        case .closed(let why):
            applyGathered()
            connection = nil
            events.connectionEnded(why)
            with { $0.closed(now: $1) }
        }
    }

    private func with(_ input: (inout ClientSession, Instant) -> [ClientAction]) {
        guard !isClosed else { return }
        waiting += input(&session, now)
        drain()
    }

    private func drain() {
        guard !isRunning, !isClosed else { return }
        isRunning = true
        while !waiting.isEmpty && !isClosed {
            run(waiting.removeFirst())
        }
        waiting = []
        isRunning = false
        guard let deadline = session.nextDeadline else {
            timer?.stop()
            return
        }
        timer?.start(afterMilliseconds: deadline.since(now))
    }

    private func run(_ action: ClientAction) {
        do throws(LocalStoreError) {
            try carryOut(action)
        } catch {
            storeFailed(error)
        }
    }

    private func storeFailed(_ error: LocalStoreError) {
        // None after one that failed: a later page would leave a gap below its cursor.
        gathered = []
        waiting.removeAll { action in
            if case .apply = action { true } else { false }
        }
        with { $0.storeFailed(error, now: $1) }
    }

    private func applyGathered() {
        guard !isClosed else { return }
        do throws(LocalStoreError) {
            try endGathering()
        } catch {
            storeFailed(error)
        }
    }

    private func endGathering() throws(LocalStoreError) {
        isGathering = false
        guard var whole = gathered.first else { return }
        for change in gathered.dropFirst() {
            whole.entries += change.entries
            whole.to = change.to
        }
        let count = gathered.count
        gathered = []
        try apply(whole, standingFor: count)
    }

    private func apply(
        _ change: LocalChange, standingFor count: Int = 1
    ) throws(LocalStoreError) {
        let applied = try store.apply(change)
        tell(applied) { (0..<count).flatMap { _ in session.committed(now: now) } }
    }

    /// Entries first, what follows from them last: an app that is told `synced` calls the system's
    /// completion handler and is suspended, so by then it has been given everything, and its
    /// notifications stand.
    ///
    /// - Parameter commit: tells the session that they are durable; what it answers is carried out
    ///   when the app's handlers have returned, but for the icon's number, which comes first: on a
    ///   phone its change to 0 clears what stands on the screen.
    private func tell(_ applied: [Entry], after commit: () -> [ClientAction]) {
        guard !isClosed else { return }
        var actions = commit()
        if case .report(.unread(let count)) = actions.first {
            actions.removeFirst()
            events.reported(.unread(count))
        }
        waiting += actions
        if !applied.isEmpty {
            // Before the app can go on: what it does may begin another reset.
            let news = session.news(among: applied)
            let wasRunning = isRunning
            isRunning = true
            events.applied(applied)
            if !news.isEmpty, !isClosed { events.news(news) }
            isRunning = wasRunning
        }
        drain()
    }

    private func carryOut(_ action: ClientAction) throws(LocalStoreError) {
        switch action {
        case .apply, .send, .raiseLimits, .saveResults, .loadMutations, .report: break
        default: try endGathering()
        }
        switch action {
        case .connect:
            connection?.leave()
            connection = ClientConnection(
                loop: loop, endpoint: endpoint, tls: tls, traffic: traffic
            ) {
                [weak self] from, event in self?.heard(from, event)
            }
            connection?.isHeld = isHeld
        case .send(let frame): connection?.send(frame)
        case .raiseLimits(let limits): connection?.raise(limits)
        case .disconnect:
            connection?.leave()
            connection = nil
        case .apply(let change):
            if isGathering, !change.marksStale, !change.sweeps {
                gathered.append(change)
            } else {
                try endGathering()
                try apply(change)
            }
        case .applyHistory(let change):
            let applied = try store.applyHistory(change)
            tell(applied) { session.historyCommitted(now: now) }
        case .applySnapshot(let change):
            let wall = Timestamp(milliseconds: SystemClock.wallMilliseconds())
            let (applied, last) = try store.applySnapshot(change, at: wall)
            tell(applied) { session.snapshotCommitted(lastMutation: last, now: now) }
        case .sumUp:
            let digest = try store.digest()
            with { $0.digestComputed(digest, now: $1) }
        case .loadOrphans(let limit):
            let orphans = try store.orphans(limit: limit)
            if !orphans.isEmpty { with { $0.orphansLoaded(orphans, now: $1) } }
        case .saveResults(let results):
            try store.saveResults(results)
            events.results(results)
        case .saveSession(let token, let user): try store.saveSession(token: token, user: user)
        case .forgetSession: try store.forgetSession()
        case .loadMutations(let number, let limit):
            let wall = Timestamp(milliseconds: SystemClock.wallMilliseconds())
            let mutations = try store.mutations(after: number, limit: limit, now: wall)
            with { $0.mutationsLoaded(mutations, now: $1) }
        case .raiseMutationNumbers(let floor): try store.raiseMutationNumbers(above: floor)
        case .renumberMutations(let first, let floor):
            try store.renumberMutations(from: first, above: floor)
            let last = try store.load().lastMutation
            with { $0.mutationsRenumbered(last: last, now: $1) }
        case .needIdentityToken(let nonce, _): askIdentityToken(nonce)
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
