internal import AppLife
internal import Client
internal import Crypto
internal import DeviceModel
internal import EventLoop
internal import FoundationEssentials
internal import Model
internal import RouseClient
internal import SQLiteStore
internal import SyncClient
internal import Wire

/// An app on the client library: it syncs over real sockets into a file of its own. This is the
/// system's side of it, and what its user does; what it does about a push is the library's.
/// Loop-confined.
final class SyncDeviceApp: DeviceApp, @unchecked Sendable {
    // @unchecked: what the library calls is called on its process's executor, which is the loop.

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
    let door: LoopDoor
    let configuration: Configuration
    let hooks: DeviceAppHooks
    private(set) var life: Life?
    /// Tasks of pushes that made it run: with the last of them the system takes the run time.
    private var woken: Set<UInt64> = []
    /// Of the process there is: the system waits for their end.
    private var open: Set<UInt64> = []
    private var lastTask: UInt64 = 0
    private(set) var file: SQLiteStore?
    private(set) var store: TableLocalStore?
    private(set) var hasNetwork = true
    private var isHeld = false
    /// Its user sees it, or what lies over it.
    private var isInFront = false
    /// The conversation that its user has come to by a tap.
    private(set) var place: ConversationID?
    /// A session is open.
    var isOnline = false
    var lastEnd = ""

    /// One process, from its launch to its end.
    struct Life {
        let process: AppProcess
        let transport: SocketTransport
        let rouse: Rouse
    }

    init(loop: Loop, door: LoopDoor, configuration: Configuration, hooks: DeviceAppHooks) {
        self.loop = loop
        self.door = door
        self.configuration = configuration
        self.hooks = hooks
    }

    /// Whether the system lets it run.
    var isRunning: Bool { life?.process.state == .running }

    // MARK: What the system calls

    func run(wake: WakeID?, remainingMilliseconds: Milliseconds) {
        let life = launch()
        lastTask += 1
        woken.insert(lastTask)
        began(lastTask, in: life, wake: wake, within: remainingMilliseconds)
    }

    var hasExtension: Bool { true }
    var told: (any ToldRecord)? { ToldFile(path: configuration.path + ".told") }

    func willPresent(_ notification: ScreenNotification) {
        guard let life else { return }
        perform(in: life) { [self] rouse in
            let shown = presented(notification, by: rouse.presents(.init(notification)))
            guard life.process.state == .running, let shown else { return }
            hooks.presentNotification(shown)
        }
    }

    /// What the system shows of a notification that comes while the app is in front.
    private func presented(
        _ notification: ScreenNotification, by presentation: Presentation
    ) -> ScreenNotification? {
        switch presentation {
        case .nothing: return nil
        case .list:
            var quiet = notification
            quiet.look.quieten()
            return quiet
        case .all: return notification
        }
    }

    /// The app shows one of its own; in front the system asks it about these, too.
    nonisolated(nonsending) func show(_ notice: AppNotice, from process: AppProcess) async {
        let notification = ScreenNotification(notice)
        guard isInFront, let rouse = life?.rouse else {
            return hooks.showNotification(notification)
        }
        let presentation = await rouse.presents(.init(notification))
        guard process.state == .running,
            let shown = presented(notification, by: presentation)
        else { return }
        hooks.showNotification(shown)
    }

    func notify(wake: WakeID?) {
        guard let life else { return }
        lastTask += 1
        began(lastTask, in: life, wake: wake, within: DeviceRules.unlimited.runTime)
    }

    private func began(
        _ task: UInt64, in life: Life, wake: WakeID?, within time: Milliseconds
    ) {
        open.insert(task)
        perform(in: life) { rouse in
            let result = await rouse.woken(by: wake, within: time)
            guard life.process.state != .dead else { return }
            self.completed(task, result)
        }
    }

    private func completed(_ task: UInt64, _ result: FetchResult) {
        var event = SimulatorEvent(.completed)
        event.reason = result.rawValue
        open.remove(task)
        event.open = open.isEmpty ? nil : open.count
        hooks.tell(event)
        guard woken.remove(task) != nil, woken.isEmpty else { return }
        hooks.finished()
    }

    func enterForeground() {
        let life = launch()
        isInFront = true
        woken = []
        place = nil
        perform(in: life) { rouse in
            // Its user sees every conversation of it at once.
            await rouse.onScreen(.everything)
            await rouse.scene(.active)
        }
    }

    func resignActive() {
        guard let life else { return }
        perform(in: life) { await $0.scene(.inactive) }
    }

    func unlocked() {
        guard let life else { return }
        perform(in: life) { await $0.unlocked() }
    }

    func tapped(_ notification: ScreenNotification) {
        // The tap leads into the conversation: what is new in others is told.
        guard let conversation = notification.conversation.flatMap({ ConversationID(text: $0) }),
            let life
        else { return }
        place = conversation
        perform(in: life) { await $0.onScreen(.conversation(conversation)) }
    }

    func enterBackground(remainingMilliseconds: Milliseconds) {
        isInFront = false
        guard let life else { return }
        perform(in: life) { await $0.scene(.background(remaining: remainingMilliseconds)) }
    }

    func suspend() {
        isInFront = false
        woken = []
        guard let life, life.process.state == .running else { return }
        life.process.state = .leaving
        perform(in: life) { rouse in
            await rouse.scene(.suspending)
            if life.process.state == .leaving { life.process.state = .frozen }
        }
    }

    func terminate() {
        isInFront = false
        (woken, open) = ([], [])
        guard let life else { return }
        self.life = nil
        life.process.state = .dead
        life.transport.drop()
        store = nil
        file?.close()
        file = nil
        place = nil
        if isOnline { tellOffline("terminated") }
        isOnline = false
        // Nobody hears of it; with it what the process waited for is over. Perhaps it is in the
        // middle of something now.
        loop.nextTurn { [self] in perform(in: life) { await $0.scene(.suspending) } }
    }

    func networkChanged(isUp: Bool) {
        hasNetwork = isUp
        guard let life else { return }
        life.transport.network(isUp: isUp)
        if isUp { perform(in: life) { await $0.networkChanged() } }
    }

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        life?.transport.hold(isHeld)
    }

    /// Within the process, after what was asked for before.
    private func perform(
        in life: Life, _ body: @escaping @Sendable (isolated Rouse) async -> Void
    ) {
        life.rouse.assumeIsolated { rouse in
            _ = Task { await body(rouse) }
        }
    }

    // MARK: The process

    /// The process that there is, running; or a new one.
    private func launch() -> Life {
        if let life {
            life.process.state = .running
            return life
        }
        let process = AppProcess(loop: loop, door: door)
        let transport = SocketTransport(
            configuration.endpoint, on: door, tls: configuration.tls)
        if !hasNetwork { transport.network(isUp: false) }
        if isHeld { transport.hold(true) }
        let seed = Random.bytes(8).reduce(0) { $0 << 8 | UInt64($1) }
        let screen = PhoneLink(process, of: self)
        let rouse = Rouse(
            configuration: configuration.client, transport: transport, phone: screen,
            clock: DeviceClock(), seed: seed,
            told: ProcessRecord(process: process, file: configuration.path + ".told"), on: screen,
            journal: { [weak self] record in
                guard process.state != .dead else { return }
                self?.noted(record)
            },
            openStore: { [weak self] in
                guard process.state != .dead, let self else {
                    throw DeviceAppError("the process is gone")
                }
                return try self.openStore()
            },
            identity: { [weak self] nonce in await self?.token(nonce) })
        let life = Life(process: process, transport: transport, rouse: rouse)
        self.life = life
        return life
    }

    private func token(_ nonce: [UInt8]) async -> String? {
        await withCheckedContinuation { continuation in
            let isAsked = door.perform { [self] loop in
                configuration.identity.token(
                    for: configuration.user, nonce: nonce, loop: loop
                ) { continuation.resume(returning: $0) }
            }
            if !isAsked { continuation.resume(returning: nil) }
        }
    }

    func openStore() throws -> TableLocalStore {
        guard !hooks.isLocked() else { throw DeviceAppError("the phone is locked") }
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
}
