public import EventLoop
public import Feed
public import Model
public import StoreService
public import Telemetry

/// Delivers what happens to the webhooks of apps: at least once, in order. On a thread of its own.
public final class Webhooks: Sendable {
    /// Rung by the store's writer after each commit that left something to deliver; made before
    /// the store, which starts before the sender.
    public typealias Doorbell = EventLoop.Doorbell

    private let thread: RungThread<WebhookSender>

    private init(_ thread: RungThread<WebhookSender>) { self.thread = thread }

    /// Starts delivering.
    ///
    /// - Parameters:
    ///   - boot: names this run; the same as the store's.
    ///   - render: the body of a delivery; from the sender's thread.
    /// - Throws: a `StreamError` or `HTTPClientError` when the process has no thread or
    ///   descriptor left.
    public static func start(
        store: StoreService, boot: BootID, configuration: WebhooksConfiguration,
        doorbell: Doorbell, log: Log, metrics: Metrics,
        render: @escaping @Sendable (DeliveryJob) -> [UInt8]
    ) throws -> Webhooks {
        let parts = SenderParts(
            boot: boot, configuration: configuration, render: render, log: log,
            metrics: WebhookMetrics(metrics),
            makeQueue: { StoreDeliveryQueue(store, on: $0) })
        return Webhooks(
            try RungThread(
                name: "webhooks", doorbell: doorbell,
                stopSeconds: Int(clamping: configuration.stopDeadline / 1000 + 2),
                make: { try WebhookSender(loop: $0, parts: parts) }, ring: { $0.ring() }))
    }

    /// Claims nothing more, waits for the answers of what is under way (at most
    /// `stopDeadline`), and ends the thread. What has no answer then stays claimed until this
    /// process is known to be gone, and is sent again. Before the store is stopped.
    public func stop() { thread.stop { $0.stop($1) } }
}
