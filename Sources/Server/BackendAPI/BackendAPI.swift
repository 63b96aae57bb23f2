import EventLoop
import Glibc
public import HTTP1
public import Model
public import StoreService
public import Telemetry

/// The HTTP/1.1 rim: the backend API on a TCP port, and the admin API on a Unix-domain socket.
/// One thread, `http`, carries both.
public final class BackendAPI: Sendable {
    /// Where it listens, and its bounds.
    public struct Configuration: Sendable {
        /// A numeric address or a name of this machine. There is no TLS: keep it private.
        public var host: String
        /// 0: a free one.
        public var port: UInt16
        /// Path of the admin API's socket (mode 0600); `nil`: no admin API. What stands there is
        /// replaced: who holds the store's lock owns the path.
        public var adminSocket: String?
        public var limits: HTTPLimits
        /// Requests of one app; above it 429. 0 a second: no limit.
        public var appRequests = RateLimit.none
        /// Requests of one app that may be under way; above it 429.
        public var appCallsMax: Int

        /// - Parameter limits: the body's is above what 64 KiB of parts can become in JSON.
        public init(
            host: String = "127.0.0.1", port: UInt16 = 0, adminSocket: String? = nil,
            limits: HTTPLimits = HTTPLimits(connections: 512, bodyBytes: 512 * 1024)
        ) {
            self.host = host
            self.port = port
            self.adminSocket = adminSocket
            self.limits = limits
            appCallsMax = max(1, limits.connections / 2)
        }
    }

    /// The port of the backend API.
    public let port: UInt16
    private let thread: LoopThread
    private let stopper: Mailbox<Int>
    private let finished: Latch
    private let adminSocket: String?

    private init(
        port: UInt16, thread: LoopThread, stopper: Mailbox<Int>, finished: Latch,
        adminSocket: String?
    ) {
        self.port = port
        self.thread = thread
        self.stopper = stopper
        self.finished = finished
        self.adminSocket = adminSocket
    }

    /// Listens from the return on.
    ///
    /// - Parameters:
    ///   - notReady: from any thread: why the server takes no new traffic, such as a drain; empty
    ///     while it does. `/readyz` adds the store's reasons.
    ///   - pushStatus: from any thread: how it stands with each push credential.
    ///   - metrics: what `/metrics` tells; two of its own are added.
    /// - Throws: `HTTPServerError`, for example a port that is taken; `StreamError`.
    public static func start(
        configuration: Configuration, store: StoreService,
        notReady: @escaping @Sendable () -> [String] = { [] },
        pushStatus: @escaping @Sendable () -> [PushStatus] = { [] }, metrics: Metrics, log: Log
    ) throws -> BackendAPI {
        let surroundings = Surroundings(
            apps: store.apps, health: store.health, metrics: metrics, notReady: notReady,
            pushStatus: pushStatus)
        let instruments = Instruments(metrics, log)
        let finished = Latch()
        let (thread, made) = try LoopThread.startReturning(name: "http") { loop in
            let doors = try openDoors(loop, configuration, store, surroundings, instruments)
            let stopper = Mailbox<Int>(loop: loop, limit: 1) { [unowned loop] batch in
                Ending(loop: loop, doors: doors, finished: finished).begin(
                    milliseconds: batch.first ?? 0)
            }
            return (port: doors[0].port, stopper: stopper)
        }
        log.info(
            "api.listening",
            [
                LogField("host", configuration.host), LogField("port", made.port),
                LogField("admin", configuration.adminSocket ?? "none"),
            ])
        return BackendAPI(
            port: made.port, thread: thread, stopper: made.stopper, finished: finished,
            adminSocket: configuration.adminSocket)
    }

    private static func openDoors(
        _ loop: Loop, _ configuration: Configuration, _ store: StoreService,
        _ surroundings: Surroundings, _ instruments: Instruments
    ) throws -> [HTTPDoor] {
        let desk = CallDesk(
            loop: loop, table: backendRoutes, store: store, surroundings: surroundings,
            instruments: instruments, appRequests: configuration.appRequests,
            appCallsMax: configuration.appCallsMax)
        let backend = try HTTPDoor(loop: loop, desk: desk) { refusal, handler in
            try HTTPServer(
                host: configuration.host, port: configuration.port, limits: configuration.limits,
                refusal: refusal, handler: handler)
        }
        guard let path = configuration.adminSocket else { return [backend] }
        let adminDesk = CallDesk(
            loop: loop, table: adminRoutes, store: store, surroundings: surroundings,
            instruments: instruments, isOneAtATime: true)
        do {
            let admin = try HTTPDoor(loop: loop, desk: adminDesk) { refusal, handler in
                try HTTPServer(
                    path: path, limits: HTTPLimits(connections: 16), refusal: refusal,
                    handler: handler)
            }
            return [backend, admin]
        } catch {
            backend.close()
            throw error
        }
    }

    static let backendRoutes = RouteTable(
        routes: ConversationRoutes.all + AnnouncementRoutes.all + ScheduleRoutes.all
            + UserRoutes.all + ReadRoutes.all
            + DeviceRoutes.all + AccessRoutes.all + WebhookRoutes.keyed + FeedbackRoutes.all
            + ExplainRoutes.all + CampaignRoutes.keyed
            + HealthRoutes.all)
    static let adminRoutes = RouteTable(
        routes: AppRoutes.all + KeyRoutes.all + PushRoutes.all + AdminDeviceRoutes.all
            + AdminAccessRoutes.all + WebhookRoutes.admin + CampaignRoutes.admin)

    /// Refuses new requests, waits for the answers that are under way, at most `milliseconds`,
    /// and ends. Call it before the store is stopped. Again does nothing.
    public func stop(milliseconds: Int = 5_000) {
        if stopper.post(milliseconds) { finished.wait() }
        thread.stop()
        thread.join()
        if let adminSocket { unlink(adminSocket) }
    }
}

/// The last moments of the doors: waits for the answers that are under way. Loop-confined; its
/// timer holds it.
private final class Ending {
    private static let interval: UInt64 = 10
    private let doors: [HTTPDoor]
    private let finished: Latch
    private let loop: Loop
    private var timer: LoopTimer?
    private var deadline: UInt64 = 0

    init(loop: Loop, doors: [HTTPDoor], finished: Latch) {
        self.loop = loop
        self.doors = doors
        self.finished = finished
    }

    func begin(milliseconds: Int) {
        for door in doors { door.refuse() }
        deadline = loop.now + UInt64(max(0, milliseconds))
        timer = loop.timer { self.look() }
        timer?.start(afterMilliseconds: 0, repeatingMilliseconds: Self.interval)
    }

    private func look() {
        guard doors.allSatisfy(\.isIdle) || loop.now >= deadline else { return }
        timer?.close()
        timer = nil
        for door in doors { door.close() }
        finished.arrive()
    }
}
