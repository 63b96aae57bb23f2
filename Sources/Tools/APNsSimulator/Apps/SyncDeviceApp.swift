internal import AppLife
internal import Client
internal import Crypto
internal import DeviceModel
internal import EventLoop
internal import Model
internal import SQLiteStore
internal import SyncClient
internal import Wire

/// An app with the real client: it syncs over real sockets into a file of its own.
/// Loop-confined.
final class SyncDeviceApp: DeviceApp {
    /// Who it is and where it connects to.
    struct Configuration {
        var user: String
        var client: ClientConfiguration
        var endpoint: SyncEndpoint
        var tls: TLSContext
        var identity: IdentitySource
        /// The file of the local store.
        var path: String
    }

    static let textMax = 200

    let loop: Loop
    let configuration: Configuration
    let hooks: DeviceAppHooks
    /// The app's own decisions; `nil`: there is no process.
    private(set) var life: AppLife?
    private var waiting: [AppAction] = []
    private var isCarryingOut = false
    private var timer: LoopTimer?
    private var lastTask: UInt64 = 0
    /// Tasks of pushes that made it run: with the last of them the system takes the run time.
    private var woken: Set<UInt64> = []
    private var file: SQLiteStore?
    private var store: TableLocalStore?
    var client: SyncClient?
    /// Whether the system lets it run.
    private(set) var isRunning = false
    private(set) var hasNetwork = true
    private var isHeld = false
    /// The client is to be connected.
    private var isAwake = false
    private var state = AppState(phase: .inactive)
    var lastEnd = ""

    init(loop: Loop, configuration: Configuration, hooks: DeviceAppHooks) {
        self.loop = loop
        self.configuration = configuration
        self.hooks = hooks
    }

    // MARK: What the system calls

    func run(wake: WakeID?, remainingMilliseconds: Milliseconds) {
        process()
        let task = nextTask(remainingMilliseconds)
        woken.insert(task.id)
        give(.pushReceived(task, wake: wake))
    }

    func notify(wake: WakeID?) {
        give(.pushReceived(nextTask(DeviceRules.unlimited.runTime), wake: wake))
    }

    func enterForeground() {
        process()
        woken = []
        // Its user sees every conversation of it at once.
        give(.onScreen(.everything))
        give(.becameActive)
    }

    func tapped(_ notification: ScreenNotification) {
        // The tap leads into the conversation: what is new in others is told.
        guard let conversation = notification.conversation.flatMap({ ConversationID(text: $0) })
        else { return }
        give(.onScreen(.conversation(conversation)))
    }

    func enterBackground(remainingMilliseconds: Milliseconds) {
        give(.enteredBackground(until: now + remainingMilliseconds))
    }

    func suspend() {
        give(.willSuspend)
        isRunning = false
        woken = []
    }

    func terminate() {
        isRunning = false
        isAwake = false
        woken = []
        life = nil
        waiting = []
        timer?.close()
        timer = nil
        dropClient("terminated")
        store = nil
        file?.close()
        file = nil
    }

    func networkChanged(isUp: Bool) {
        hasNetwork = isUp
        if !isUp { dropClient("no coverage") }
        guard isAwake else { return }
        give(.disconnected)
        if isUp { startClient(wake: nil) }
    }

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        client?.isHeld = isHeld
    }

    private func process() {
        isRunning = true
        guard life == nil else { return }
        life = AppLife()
        give(.launched)
    }

    private func nextTask(_ time: Milliseconds) -> SystemTask {
        lastTask += 1
        return SystemTask(id: lastTask, deadline: now + time)
    }

    private var now: Instant { Instant(milliseconds: loop.now) }

    // MARK: What the app decides

    func give(_ input: AppInput) {
        guard let actions = life?.on(input, now: now) else { return }
        // Before what is left of the input that led to this one.
        waiting.insert(contentsOf: actions, at: 0)
        guard !isCarryingOut else { return }
        isCarryingOut = true
        while !waiting.isEmpty { carryOut(waiting.removeFirst()) }
        isCarryingOut = false
        setTimer()
    }

    private func setTimer() {
        guard let deadline = life?.nextDeadline else {
            timer?.close()
            timer = nil
            return
        }
        let timer = timer ?? loop.timer { [weak self] in self?.give(.deadlineReached) }
        timer.start(afterMilliseconds: deadline.since(now))
        self.timer = timer
    }

    private func carryOut(_ action: AppAction) {
        switch action {
        case .openStore:
            do {
                _ = try openStore()
                give(.storeOpened)
            } catch {
                fail("store: \(error)")
                give(.storeLocked)
            }
        case .start(let state, let wake):
            isAwake = true
            self.state = state
            startClient(wake: wake)
        case .tell(let state):
            self.state = state
            client?.appStateChanged(state)
        case .sync(let state, let wake):
            self.state = state
            if let client {
                client.pushReceived(wake: wake, state: state)
            } else {
                startClient(wake: wake)
            }
        case .sleep:
            isAwake = false
            state.phase = .inactive
            let wasOnline = client?.isOpen ?? false
            client?.sleep()
            if wasOnline { tellOffline("asleep") }
        case .look: look()
        case .show(let notice): hooks.showNotification(ScreenNotification(notice))
        case .remove(let identifier): hooks.removeNotification(identifier)
        case .badge(let count): hooks.setBadge(UInt64(count))
        case .settle(let objects):
            do {
                try openStore().settle(objects)
            } catch {
                fail("settling: \(error)")
            }
        case .complete(let task, let result): complete(task, result)
        }
    }

    private func complete(_ task: UInt64, _ result: FetchResult) {
        var event = SimulatorEvent(.completed)
        event.reason = result.rawValue
        hooks.tell(event)
        guard woken.remove(task) != nil, woken.isEmpty else { return }
        hooks.finished()
    }

    // MARK: Client and store

    /// The phone's sockets are gone without a word to anybody.
    private func dropClient(_ why: String) {
        let wasOnline = client?.isOpen ?? false
        client?.terminate()
        client = nil
        if wasOnline { tellOffline(why) }
    }

    private func startClient(wake: WakeID?) {
        guard hasNetwork else { return }
        do {
            try makeClient().start(state, wake: wake)
        } catch {
            fail("start: \(error)")
            give(.storeFailed)
        }
    }

    func openStore() throws -> TableLocalStore {
        if let store { return store }
        var options = SQLiteOptions()
        // Many devices share this process.
        options.cacheSize = 256
        options.readerCacheSize = 256
        options.journalStep = 1 << 20
        // What the system was given survives the end of this process, which is what a phone's
        // app has to survive here; hundreds of devices share one disk.
        options.syncs = false
        options.check = .never
        let file = try SQLiteStore(
            path: configuration.path, tables: LocalSchema.tables, options: options)
        let store = TableLocalStore(store: file, keepsOwed: true)
        self.file = file
        self.store = store
        return store
    }

    func makeClient() throws -> SyncClient {
        if let client { return client }
        var events = SyncClientEvents { [weak self] nonce, answer in
            guard let self else { return answer(nil) }
            self.configuration.identity.token(
                for: self.configuration.user, nonce: nonce, loop: self.loop, answer: answer)
        }
        events.reported = { [weak self] in self?.reported($0) }
        events.applied = { [weak self] in self?.applied($0) }
        events.results = { [weak self] in self?.answered($0) }
        events.connectionEnded = { [weak self] in self?.lastEnd = $0 }
        var seed: UInt64 = 0
        for byte in Random.bytes(8) { seed = seed << 8 | UInt64(byte) }
        let made = try SyncClient(
            loop: loop, endpoint: configuration.endpoint, tls: configuration.tls,
            store: try openStore(), configuration: configuration.client, seed: seed,
            events: events)
        made.isHeld = isHeld
        client = made
        return made
    }
}
