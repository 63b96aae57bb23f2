public import AppLife
public import Model
public import SyncClient
public import Wire

/// The client of one user's feed in an app: keeps its local store in sync, shows what is new, and
/// tells the system when it is done with a push.
///
/// The callbacks of the system go in (`scene`, `woken`, `refreshTask`); the phone, the transport,
/// the clock and the store are the app's, behind protocols, so that a test drives the same code.
public actor Rouse {
    /// Opens the device's store; it throws while the phone was not unlocked since its restart.
    public typealias OpenStore = @Sendable () throws -> TableLocalStore
    /// Asks the app's backend to sign an identity token over the nonce; `nil`: it could not.
    public typealias Identity = @Sendable (_ nonce: [UInt8]) async -> String?

    /// The device's id, made once and kept where no backup goes (SES-14). Asked when the store is
    /// opened: it throws while the phone was not unlocked since its restart, too.
    public typealias Device = @Sendable () throws -> DeviceID

    /// For a log: told in the order in which it happens, before anything that follows from it.
    public typealias Journal = @Sendable (RouseRecord) -> Void

    /// What is carried out next: one thing at a time, so that each is answered before the next.
    enum Step {
        case input(AppInput)
        case effect(ClientReplica.Effect)
        case action(AppAction)
        /// What was durable at a deadline is told.
        case lastCall
        /// What stands on the screen is of a user who is here no more.
        case clearScreen
        /// What stands may be over, though the server has told of nothing.
        case readHere
        /// All that a suspension gave is carried out.
        case asleep(UInt64)
    }

    /// The system waits for the end of a task: it is answered by `end`, whatever hangs then.
    struct Waiter {
        let end: Instant
        let answer: CheckedContinuation<FetchResult, Never>
    }

    /// Somebody waits for the good-bye: until `end`, whatever hangs then.
    struct Suspension {
        let end: Instant
        let isOver: CheckedContinuation<Void, Never>
    }

    /// Of every connection from now on.
    var configuration: ClientConfiguration
    let transport: any RouseTransport
    let phone: any RousePhone
    let clock: any RouseClock
    let openStore: OpenStore
    let device: Device?
    let identity: Identity
    let journal: Journal
    private let seat: any Actor
    let seed: UInt64
    let told: (any ToldRecord)?
    let login: (any LoginRecord)?
    var life = AppLife()
    var store: TableLocalStore?
    /// Why it did not open when it was tried last.
    var openFailure: LocalStoreError?
    var replica: ClientReplica?
    var connection: (any RouseConnection)?
    /// Counts connections; what is told of an older one is not heard.
    var connections: UInt64 = 0
    var decoder = FrameDecoder(limits: .beforeWelcome)
    var timer: (moment: Instant, task: Task<Void, Never>)?
    var steps: [Step] = []
    var isCarryingOut = false
    var carrying: Task<Void, Never>?
    /// Waits for the app's backend.
    var asking: Task<Void, Never>?
    private var hasLaunched = false
    /// It does nothing any more.
    var isClosed = false
    private var lastTask: UInt64 = 0
    var waiting: [UInt64: Waiter] = [:]
    /// A deadline that came while something was carried out: it waits its turn.
    var lastCall: Instant?
    private var lastSuspension: UInt64 = 0
    var suspensions: [UInt64: Suspension] = [:]
    /// Nothing but another file helps.
    var damage: LocalStoreError?
    /// The server wants another push token than it has.
    var isTokenRefused = false
    /// Everything of the user went, as an earlier process had begun.
    var hasLoggedOut = false
    private var listeners: [UInt64: AsyncStream<RouseChange>.Continuation] = [:]
    var stateListeners: [UInt64: AsyncStream<ConnectionState>.Continuation] = [:]
    private var lastListener: UInt64 = 0
    var live = LiveQueries()
    var connectionState = ConnectionState.offline
    /// Why the last connection ended, or never came about, in words for whoever looks for a fault:
    /// a wrong address, a certificate, no route, or what the server said. `nil`: the server has let
    /// this device in since.
    public internal(set) var disconnectReason: String?
    /// What the transport said of a connection that is gone.
    var lostWhy: String?
    /// What the server said when it closed the last connection.
    var lastClose: UInt32?
    /// Why the server lets this device in no more; it has said so as it closed.
    var lastRefusal: Refusal { Refusal(code: lastClose ?? Code.superseded.rawValue) }
    /// The mutations on their way when they were last looked at.
    var lastSent: Set<UInt64> = []
    /// What the system lets the app do; its phase means nothing.
    var switches = AppState()
    /// What `onScreen` has said last.
    private var shown = OnScreen.nothing
    /// What the app has said its person sees; it is read when they do.
    var watched: ConversationID?
    /// Whose rows the live queries show.
    var liveUser = ""
    /// The server tells the feed anew.
    var isResetting = false
    /// What is asked of the server's history, at most `ClientLimits.fetchesPending` at a time.
    var fetching: [UInt64: ConversationID] = [:]
    var lastFetch: UInt64 = 0
    /// From the call that logs out, or from the server's answer to the logout of an earlier
    /// process, to the end.
    var isLoggingOut = false
    /// Waits for the server's part of a logout.
    var loggingOut: CheckedContinuation<Bool, Never>?

    /// - Parameters:
    ///   - openStore: with `keepsOwed`, or nobody is told of anything.
    ///   - seed: chance for back-off; another in every process.
    ///   - told: what the app shares with its notification service extension; `nil`: who has put a
    ///     notification aside may be told of its message again.
    ///   - login: where a notification service extension reads who is logged in; `nil`: there is
    ///     none.
    ///   - device: in place of the configuration's, where that is not known yet.
    ///   - seat: whose executor it runs on, as the main actor's; `nil`: one of its own.
    public init(
        configuration: ClientConfiguration, transport: any RouseTransport,
        phone: any RousePhone, clock: any RouseClock, seed: UInt64,
        told: (any ToldRecord)? = nil, login: (any LoginRecord)? = nil,
        on seat: (any Actor)? = nil, journal: @escaping Journal = { _ in },
        device: Device? = nil, openStore: @escaping OpenStore,
        identity: @escaping Identity
    ) {
        self.seat = seat ?? Seat()
        self.journal = journal
        self.configuration = configuration
        self.transport = transport
        self.phone = phone
        self.clock = clock
        self.seed = seed
        self.told = told
        self.device = device
        self.login = login
        self.openStore = openStore
        self.identity = identity
    }

    // Whoever reads of the connection waits for what comes next, and would wait for ever.
    deinit { connection?.close() }

    /// Has an executor.
    private actor Seat {}

    public nonisolated var unownedExecutor: UnownedSerialExecutor { seat.unownedExecutor }

    // MARK: - The system's callbacks

    /// Returns from `suspending` when the good-bye has left the client: the system may stop the
    /// process then. What the phone does not answer delays it by `AppLife.Limits.margin` at most.
    public func scene(_ phase: ScenePhase) async {
        launch()
        switch phase {
        case .active: give(.becameActive)
        case .inactive: leave(.resignedActive)
        case .background(let remaining):
            leave(.enteredBackground(until: clock.now + remaining))
        case .suspending:
            leave(.willSuspend)
            await asleep()
        }
    }

    /// Until what was said of being suspended is carried out.
    func asleep() async {
        guard !isClosed else { return }
        lastSuspension += 1
        let (number, end) = (lastSuspension, clock.now + life.limits.margin)
        steps.append(.asleep(number))
        carryOutAll()
        await withCheckedContinuation {
            suspensions[number] = Suspension(end: end, isOver: $0)
            setTimer()
        }
    }

    /// A push came. The answer is for the system's completion handler; it comes when everything
    /// the push was about is durable and on the screen, and before the deadline.
    public func woken(by wake: WakeID?, within time: Milliseconds) async -> FetchResult {
        await task(within: time) { .pushReceived($0, wake: wake) }
    }

    /// The system runs the app's background refresh. Where it takes the time back, cancel the task
    /// that this runs in: it is answered at once.
    public func refreshTask(within time: Milliseconds) async -> FetchResult {
        await task(within: time) { .refreshTask($0) }
    }

    /// The phone's files can be read from now on.
    public func unlocked() {
        launch()
        give(.unlocked)
    }

    /// Another network, or one after none.
    public func networkChanged() {
        openAgain()
        hear { $0.networkChanged(now: $1) }
    }

    /// The person asks for news, as by pulling the list down: not after the back-off.
    public func refresh() {
        openAgain()
        hear { $0.userRefresh(now: $1) }
    }

    /// A store that did not open may do so by now.
    private func openAgain() {
        if hasLaunched, store == nil { give(.unlocked) }
    }

    /// A new push token: the server hears of it at once, over a connection of its own if there is
    /// one, or else when there is. The same again does nothing. `nil`: none is presented any more;
    /// the server keeps the one it has until it is dead or the user logs out.
    public func setPush(_ push: PushRegistration?) {
        configuration.push = push
        if push != nil { isTokenRefused = false }
        hear { $0.setPush(push, now: $1) }
    }

    /// The person has another language, or is in another zone: the server, which chooses the texts
    /// of alerts and their hour by it, hears of it as of a push token. The same again does nothing.
    public func setPlace(_ place: ClientPlace) {
        configuration.place = place
        hear { $0.setPlace(place, now: $1) }
    }

    /// What the system lets the app do, as far as the app knows (`nil`: it does not); the server
    /// keeps what it is told.
    public func setSwitches(notifications: Bool?, backgroundRefresh: Bool?, lowPower: Bool?) {
        switches = AppState(
            notifications: Setting(notifications), backgroundRefresh: Setting(backgroundRefresh),
            lowPower: Setting(lowPower))
        let switches = switches
        hear { $0.switchesChanged(switches, now: $1) }
    }

    /// Where it stands with the server.
    public var standing: RouseStanding {
        RouseStanding(
            cursor: replica?.session.cursor, isOpen: replica?.session.isOpen ?? false,
            isInSync: replica?.session.isInSync ?? false,
            hasUnanswered: replica?.session.hasUnanswered ?? false)
    }

    /// Compares this device with the server as soon as it is in sync; the journal is told the
    /// outcome.
    public func checkDigest() { hear { $0.checkDigest(now: $1) } }

    private func task(
        within time: Milliseconds, _ input: (SystemTask) -> AppInput
    ) async -> FetchResult {
        guard !isClosed else { return .failed }
        launch()
        lastTask += 1
        let task = SystemTask(id: lastTask, deadline: clock.now + time)
        let input = input(task)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let end = life.end(of: task) + lastCallTime
                waiting[task.id] = Waiter(end: end, answer: continuation)
                give(input)
                setTimer()
            }
        } onCancel: {
            Task { await self.expired(task.id) }
        }
    }

    /// Returns when everything is in sync and nothing waits to be sent, nor the system for an
    /// answer; false: when the time is over before that, or the client is closed. What an app in
    /// the background has run time for is done then.
    public func settled(within time: Milliseconds) async -> Bool {
        let end = clock.now + time
        let watch = Task { [weak self] in await self?.settles() ?? false }
        let timer = Task { [clock] in
            do { try await clock.sleep(until: end) } catch { return }
            watch.cancel()
        }
        defer { timer.cancel() }
        return await withTaskCancellationHandler {
            await watch.value
        } onCancel: {
            watch.cancel()
        }
    }

    private func settles() async -> Bool {
        let changes = changes()
        if isSettled { return true }
        for await change in changes {
            switch change {
            case .inSync, .results: if isSettled { return true }
            default: break
            }
        }
        return false
    }

    private var isSettled: Bool {
        waiting.isEmpty && standing.isInSync && !standing.hasUnanswered
    }

    /// So long what waits at a deadline may take: half of what is left to the system's own.
    var lastCallTime: Milliseconds { life.limits.margin / 2 }

    func launch() {
        guard !hasLaunched else { return }
        hasLaunched = true
        give(.launched)
    }

    // MARK: - What the app does

    /// Where the person is in the app: nothing is shown of what is on the screen.
    public func onScreen(_ seen: OnScreen) {
        shown = seen
        // At once, and not behind what waits for the phone: what is seen next is not forgotten.
        switch seen {
        case .everything: break
        case .conversation(let shown): if shown != watched { watched = nil }
        case .nothing: watched = nil
        }
        give(.onScreen(seen))
    }

    /// The person has left a part of the app. Nothing is on the screen then, unless `onScreen` has
    /// said by now what came in its place: of two views one may say that it goes after the other
    /// has said that it is there.
    public func offScreen(_ left: OnScreen) {
        if shown == left { onScreen(.nothing) }
    }

    /// Something of the app's own that a wake is to wait for, up to its deadline.
    ///
    /// - Parameter body: whether it has brought something new.
    public func work(_ body: @Sendable () async -> Bool) async {
        give(.workBegan)
        let isNew = await body()
        give(.workEnded(isNew: isNew))
    }

    /// Queues a change durably, and sends it when there is a connection. Returns its number, by
    /// which its result comes.
    @discardableResult
    public func send(_ operation: Mutation.Operation) throws(LocalStoreError) -> UInt64 {
        // It would be erased with all else.
        guard !isLoggingOut else { throw .unavailable("the client is logging out") }
        try usableStore()
        let (now, wall) = (clock.now, clock.wall)
        guard let made = try replica?.enqueue(operation, now: now, wall: wall) else {
            throw isAbsent
        }
        switch operation {
        case .sendMessage(let message):
            if let conversation = message.conversation { follow(.conversation(conversation)) }
        // Of which conversation the message is, the operation does not say.
        case .editMessage, .deleteMessage: follow(.everything)
        default: break
        }
        give(.outbox(isWaiting: true))
        perform(made.effects)
        return made.number
    }

    /// Messages of a conversation above a position, ascending; none while the store is not open.
    public func messages(
        of conversation: ConversationID, after position: UInt64 = 0, limit: Int
    ) throws(LocalStoreError) -> [Entry] {
        try store?.messages(of: conversation, after: position, limit: limit) ?? []
    }

    /// What changes from now on, behind what was told before and still holds: that the store does
    /// not open or is damaged, that the server lets this device in no more or wants another push
    /// token, that an earlier process's logout is done. A listener that takes nothing misses the
    /// oldest of more than 1,024 changes; what is there it reads from the store.
    public func changes() -> AsyncStream<RouseChange> {
        let number = nextListener()
        let (stream, continuation) = AsyncStream.makeStream(
            of: RouseChange.self, bufferingPolicy: .bufferingNewest(1_024))
        for change in holding { continuation.yield(change) }
        guard !isClosed else {
            continuation.finish()
            return stream
        }
        listeners[number] = continuation
        continuation.onTermination = { [weak self] _ in
            guard let self else { return }
            Task { await self.forget(number) }
        }
        return stream
    }

    // MARK: - The end

    /// Says good-bye to the server, answers what the system waits for, and ends every sequence.
    /// What is on this device stays, and the store is let go of: another client of the same user
    /// may open it; `logOut` is for the end of that. Not to be called from within a call to the
    /// app's own `RousePhone`; again does nothing.
    public func close() async {
        guard !isClosed else { return }
        if hasLaunched {
            give(.willSuspend)
            await asleep()
        }
        guard !isClosed else { return }
        isClosed = true
        steps = []
        disconnect()
        timer?.task.cancel()
        timer = nil
        asking?.cancel()
        asking = nil
        for waiter in waiting.values { waiter.answer.resume(returning: .failed) }
        for suspension in suspensions.values { suspension.isOver.resume() }
        (waiting, suspensions) = ([:], [:])
        logOutEnded(false)
        state(.offline)
        for listener in listeners.values { listener.finish() }
        for listener in stateListeners.values { listener.finish() }
        live.finish()
        (listeners, stateListeners) = ([:], [:])
        replica = nil
        store?.close()
        store = nil
    }

    /// Why there is no store to use.
    var isAbsent: LocalStoreError {
        let failure = openFailure ?? .unavailable("it is not open")
        return isClosed ? .unavailable("the client is closed") : failure
    }

    /// The store, opened now if nobody has yet: the system starts a process also for what its
    /// person does, as an answer to a notification, and says nothing else.
    @discardableResult
    func usableStore() throws(LocalStoreError) -> TableLocalStore {
        guard !isClosed else { throw isAbsent }
        launch()
        if store == nil, opened() { give(.unlocked) }
        guard let store else { throw isAbsent }
        return store
    }

    func nextListener() -> UInt64 {
        lastListener += 1
        return lastListener
    }

    func forget(_ listener: UInt64) {
        listeners[listener] = nil
        stateListeners[listener] = nil
        live.remove(listener)
    }

    func tell(_ change: RouseChange) {
        for listener in listeners.values { listener.yield(change) }
    }
}

extension Setting {
    fileprivate init(_ isOn: Bool?) {
        self = isOn.map { $0 ? .on : .off } ?? .unspecified
    }
}
