import EventLoop
public import Feed
public import StoreService
public import Telemetry

/// Delivers what happens to the webhooks of apps: at least once, in order. On a thread of its own.
public final class Webhooks: Sendable {
    /// Rung by the store's writer after each commit that left something to deliver; made before
    /// the store, which starts before the sender. From any thread.
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
        let shell: WebhookSender
    }

    private init(
        thread: LoopThread, shell: ShellBox, doorbell: Doorbell, stopSeconds: Int
    ) {
        self.thread = thread
        self.shell = shell
        self.doorbell = doorbell
        self.stopSeconds = stopSeconds
    }

    /// Starts delivering.
    ///
    /// - Parameter render: the body of a delivery; from the sender's thread.
    /// - Throws: a `StreamError` or `HTTPClientError` when the process has no thread or
    ///   descriptor left.
    public static func start(
        store: StoreService, configuration: WebhooksConfiguration, doorbell: Doorbell,
        log: Log, metrics: Metrics, render: @escaping @Sendable (DeliveryJob) -> [UInt8]
    ) throws -> Webhooks {
        let parts = SenderParts(
            configuration: configuration, render: render, log: log,
            metrics: WebhookMetrics(metrics),
            makeQueue: { StoreDeliveryQueue(store, on: $0) })
        let (thread, (shell, rings)) = try LoopThread.startReturning(name: "webhooks") { loop in
            let shell = try WebhookSender(loop: loop, parts: parts)
            // The mailbox keeps the shell alive until the loop ends.
            let rings = Mailbox<Void>(loop: loop, limit: 1) { _ in shell.ring() }
            return (ShellBox(shell: shell), rings)
        }
        doorbell.attach(rings)
        return Webhooks(
            thread: thread, shell: shell, doorbell: doorbell,
            stopSeconds: Int(clamping: configuration.stopDeadline / 1000 + 2))
    }

    /// Claims nothing more, waits for the answers of what is under way (at most
    /// `stopDeadline`), and ends the thread. What has no answer then stays claimed until its
    /// lease ends, and is sent again. Before the store is stopped.
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
