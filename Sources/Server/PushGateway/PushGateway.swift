public import EventLoop
public import Feed
public import Model
public import PushPool
public import StoreService
public import Telemetry

/// The way to APNs: claims pushes that are due, sends each over its credential's connection and
/// writes down what came back. On a thread of its own.
public final class PushGateway: Sendable {
    /// Rung by the store's writer after each commit that left background work; made before the
    /// store, which starts before the gateway.
    public typealias Doorbell = EventLoop.Doorbell

    private let thread: RungThread<GatewayLoop>

    private init(_ thread: RungThread<GatewayLoop>) { self.thread = thread }

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
        PushGateway(
            try RungThread(
                name: "push", doorbell: doorbell,
                stopSeconds: Int(clamping: parts.configuration.stopDeadline / 1000 + 2),
                make: { GatewayLoop(loop: $0, parts: parts) }, ring: { $0.ring() }))
    }

    /// Claims nothing more, waits for the answers of what is under way (at most
    /// `stopDeadline`), closes the connections and ends the thread. Pushes without an answer
    /// then stay claimed until their lease ends; nothing is lost. Before the store is stopped.
    public func stop() { thread.stop { $0.stop($1) } }
}
