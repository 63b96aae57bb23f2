public import EventLoop
public import Feed
public import Model
public import StoreService
public import Telemetry

/// The way to APNs: claims pushes that are due, sends each over its credential's connection and
/// writes down what came back. On a thread of its own.
public final class PushGateway: Sendable {
    /// Rung by the store's writer after each commit that left background work; made before the
    /// store, which starts before the gateway. From any thread.
    public final class Doorbell: Sendable {
        private let lock = Lock()
        private nonisolated(unsafe) var mailbox: Mailbox<Void>?  // guarded by `lock`

        public init() {}

        /// Something may be due. Only posts; a ring that finds another one waiting is dropped.
        public func ring() {
            _ = lock.withLock { mailbox }?.post(())
        }

        func attach(_ mailbox: Mailbox<Void>?) { lock.withLock { self.mailbox = mailbox } }
    }

    private let thread: LoopThread
    private let shell: ShellBox
    private let doorbell: Doorbell
    private let stopSeconds: Int

    /// The loop's shell, named from other threads only to be handed back to its own.
    private struct ShellBox: @unchecked Sendable {
        // @unchecked: used inside `LoopThread.perform` of the same loop only.
        let shell: GatewayLoop
    }

    private init(
        thread: LoopThread, shell: ShellBox, doorbell: Doorbell, stopSeconds: Int
    ) {
        self.thread = thread
        self.shell = shell
        self.doorbell = doorbell
        self.stopSeconds = stopSeconds
    }

    /// Starts sending. Connections are made when the first push of a credential is due.
    ///
    /// - Parameters:
    ///   - boot: names this run; the same as the store's.
    ///   - board: told how it stands, each tick.
    /// - Throws: a `StreamError` when the process has no thread or descriptor left.
    public static func start(
        store: StoreService, boot: BootID, doorbell: Doorbell,
        board: PushStatusBoard = PushStatusBoard(), log: Log, metrics: Metrics,
        configuration: PushGatewayConfiguration = PushGatewayConfiguration()
    ) throws -> PushGateway {
        try start(
            GatewayParts(
                boot: boot, configuration: configuration,
                credentials: CredentialSource(store.apps), log: log,
                metrics: GatewayMetrics(metrics), board: board,
                makeQueue: { StorePushQueue(store, on: $0) }), doorbell: doorbell)
    }

    /// The same without a store: with pushes of another queue, and credentials that stay.
    public static func start(
        credentials: [PushCredentialRecord],
        queue: @escaping @Sendable (Loop) -> any PushQueue, boot: BootID, doorbell: Doorbell,
        board: PushStatusBoard = PushStatusBoard(), log: Log, metrics: Metrics,
        configuration: PushGatewayConfiguration = PushGatewayConfiguration()
    ) throws -> PushGateway {
        try start(
            GatewayParts(
                boot: boot, configuration: configuration,
                credentials: CredentialSource(generation: { 0 }, all: { credentials }),
                log: log, metrics: GatewayMetrics(metrics), board: board, makeQueue: queue),
            doorbell: doorbell)
    }

    static func start(_ parts: GatewayParts, doorbell: Doorbell) throws -> PushGateway {
        let (thread, (shell, rings)) = try LoopThread.startReturning(name: "push") { loop in
            let shell = GatewayLoop(loop: loop, parts: parts)
            // The mailbox keeps the shell alive until the loop ends.
            let rings = Mailbox<Void>(loop: loop, limit: 1) { _ in shell.ring() }
            return (ShellBox(shell: shell), rings)
        }
        doorbell.attach(rings)
        return PushGateway(
            thread: thread, shell: shell, doorbell: doorbell,
            stopSeconds: Int(clamping: parts.configuration.stopDeadline / 1000 + 2))
    }

    /// Claims nothing more, waits for the answers of what is under way (at most
    /// `stopDeadline`), closes the connections and ends the thread. Pushes without an answer
    /// then stay claimed until their lease ends; nothing is lost. Before the store is stopped.
    public func stop() {
        doorbell.attach(nil)
        let ended = Latch()
        let shell = self.shell
        if thread.perform({ _ in shell.shell.stop { ended.arrive() } }) {
            _ = ended.wait(seconds: stopSeconds)
        }
        thread.stop()
        thread.join()
    }
}
