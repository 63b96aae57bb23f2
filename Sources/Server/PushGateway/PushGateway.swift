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

    /// Devices that have lost their push token, on their way to the gateway; made before the
    /// store, too. From any thread.
    public final class Withdrawals: Sendable {
        private let lock = Lock()
        private nonisolated(unsafe) var devices: [DetachedDevice] = []  // guarded by `lock`

        /// Of more the oldest go. Who takes none for so long sends none either, and whatever was
        /// claimed before is too old to be sent by then.
        private static let most = 65_536

        public init() {}

        /// What waits for them is not sent once the doorbell has rung.
        public func add(_ more: [DetachedDevice]) {
            guard !more.isEmpty else { return }
            lock.withLock {
                devices += more
                if devices.count > Self.most { devices.removeFirst(devices.count - Self.most) }
            }
        }

        func take() -> [DetachedDevice] {
            lock.withLock {
                defer { devices = [] }
                return devices
            }
        }
    }

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
        withdrawals: Withdrawals = Withdrawals(),
        board: PushStatusBoard = PushStatusBoard(), log: Log, metrics: Metrics,
        configuration: PushGatewayConfiguration = PushGatewayConfiguration()
    ) throws -> PushGateway {
        try start(
            GatewayParts(
                boot: boot, configuration: configuration,
                credentials: CredentialSource(store.apps), log: log,
                metrics: GatewayMetrics(metrics), board: board, withdrawals: withdrawals,
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
