import EventLoop
import Glibc
public import HTTP1
public import Model
public import StoreService
public import Telemetry

/// The HTTP/1.1 rim: the backend API on a TCP port, and the admin API on a Unix-domain socket; and
/// beside the first, on its thread, the agent that balancers ask.
/// Each has a thread of its own, `http` and `admin`: whatever apps ask for, the operator gets in.
public final class BackendAPI: Sendable {
    /// Where operators' browsers find the console. There is no TLS: keep it private.
    public struct ConsoleAddress: Sendable {
        public var host: String
        /// 0: a free one.
        public var port: UInt16

        public init(host: String = "127.0.0.1", port: UInt16) {
            self.host = host
            self.port = port
        }
    }

    /// Where it listens, and its bounds.
    public struct Configuration: Sendable {
        /// A numeric address or a name of this machine. There is no TLS: keep it private.
        public var host: String
        /// 0: a free one.
        public var port: UInt16
        /// A listening socket that a supervisor holds, in place of `host` and `port`.
        public var inherited: Int32?
        /// Path of the admin API's socket (mode 0600); `nil`: no admin API. What stands there is
        /// replaced: who holds the store's lock owns the path.
        public var adminSocket: String?
        public var limits: HTTPLimits
        /// Where the console is; `nil`: there is none.
        public var console: ConsoleAddress?
        /// What balancers are told, and where; `nil`: there is no agent.
        public var agent: Agent?
        /// Requests of one app; above it 429. 0 a second: no limit.
        public var appRequests = RateLimit.none
        /// Requests of one app that may be under way, until their answers are taken; above it 429.
        public var appCallsMax: Int
        /// Bytes of answers for one app that may be under way, made or not, until their readers
        /// have them; above it 429.
        public var appAnswerBytesMax = 64 << 20

        /// Of browsers: each opens six, and keeps them.
        public var consoleConnections = 128

        /// - Parameter connections: of backends; one app takes half at most.
        public init(
            host: String = "127.0.0.1", port: UInt16 = 0, adminSocket: String? = nil,
            connections: Int = 512
        ) {
            self.host = host
            self.port = port
            self.adminSocket = adminSocket
            // Bodies: above what 64 KiB of parts can become in JSON.
            limits = HTTPLimits(connections: connections, bodyBytes: 512 * 1024)
            appCallsMax = max(1, limits.connections / 2)
        }
    }

    /// The port of the backend API.
    public let port: UInt16
    /// That of the console; `nil`: there is none.
    public let consolePort: UInt16?
    /// That of the agent; `nil`: there is none.
    public let agentPort: UInt16?
    private let floors: [Floor]
    private let appRate: AppRate

    private init(
        port: UInt16, consolePort: UInt16?, agentPort: UInt16?, floors: [Floor],
        appRate: AppRate
    ) {
        self.port = port
        self.consolePort = consolePort
        self.agentPort = agentPort
        self.appRate = appRate
        self.floors = floors
    }

    /// Listens from the return on.
    ///
    /// - Parameters:
    ///   - notReady: from any thread: why the server takes no new traffic, such as a drain; empty
    ///     while it does. `/readyz` and the agent add the store's reasons.
    ///   - pushStatus: from any thread: how it stands with each push credential.
    ///   - about: what operators are told of this process.
    ///   - examine: tries push credentials out; `nil`: nobody can here.
    ///   - metrics: what `/metrics` tells; two of its own are added.
    /// - Throws: `HTTPServerError`, for example a port that is taken; `AgentFailure`, the same of
    ///   the agent's; `StreamError`.
    public static func start(
        configuration: Configuration, store: StoreService,
        notReady: @escaping @Sendable () -> [String] = { [] },
        pushStatus: @escaping @Sendable () -> [PushStatus] = { [] },
        about: ServerFacts = ServerFacts(), examine: CredentialExamination? = nil,
        metrics: Metrics, log: Log
    ) throws -> BackendAPI {
        let surroundings = Surroundings(
            apps: store.apps, health: store.health, metrics: metrics, notReady: notReady,
            pushStatus: pushStatus, about: about, examine: examine)
        let instruments = Instruments(metrics, log)
        let appRate = AppRate(configuration.appRequests)
        let listen: @Sendable (Loop) throws -> UInt16? = { loop in
            try configuration.agent.map { agent in
                try AgentPort.listen(on: loop, agent) {
                    AgentAnswer.line(surroundings.readiness, agent.load())
                }
            }
        }
        let backend = try Floor.open(name: "http", beside: listen) { loop in
            let desk = CallDesk(
                loop: loop, table: backendRoutes, store: store, surroundings: surroundings,
                instruments: instruments, appRequests: appRate,
                appCallsMax: configuration.appCallsMax,
                appAnswerBytesMax: configuration.appAnswerBytesMax)
            return try HTTPDoor(loop: loop, desk: desk) { refusal, handler in
                if let inherited = configuration.inherited {
                    return try HTTPServer(
                        inherited: inherited, limits: configuration.limits, refusal: refusal,
                        handler: handler)
                }
                return try HTTPServer(
                    host: configuration.host, port: configuration.port,
                    limits: configuration.limits, refusal: refusal, handler: handler)
            }
        }
        var floors = [backend.floor]
        var consolePort: UInt16?
        do {
            if let path = configuration.adminSocket {
                floors.append(
                    try openAdmin(path, store, surroundings: surroundings, instruments).floor)
            }
            if let address = configuration.console {
                let console = try openConsole(
                    address, connections: configuration.consoleConnections, store,
                    surroundings: surroundings, instruments)
                floors.append(console.floor)
                consolePort = console.port
            }
        } catch {
            for floor in floors { floor.stop(milliseconds: 0) }
            throw error
        }
        log.info(
            "api.listening",
            [
                LogField("host", configuration.host), LogField("port", backend.port),
                LogField("admin", configuration.adminSocket ?? "none"),
                LogField("console", consolePort.map { String($0) } ?? "off"),
                LogField("agent", backend.beside.map { String($0) } ?? "off"),
            ])
        return BackendAPI(
            port: backend.port, consolePort: consolePort, agentPort: backend.beside,
            floors: floors, appRate: appRate)
    }

    /// Another rate of requests of one app from here on.
    public func change(appRequests: RateLimit) { appRate.limit = appRequests }

    private static func openAdmin(
        _ path: String, _ store: StoreService, surroundings: Surroundings,
        _ instruments: Instruments
    ) throws -> (floor: Floor, port: UInt16, beside: UInt16?) {
        try Floor.open(name: "admin") { loop in
            let desk = CallDesk(
                loop: loop, table: adminRoutes, store: store, surroundings: surroundings,
                instruments: instruments, isOneAtATime: true, operatorName: "admin socket")
            return try HTTPDoor(loop: loop, desk: desk) { refusal, handler in
                try HTTPServer(
                    path: path, limits: HTTPLimits(connections: 16), refusal: refusal,
                    handler: handler)
            }
        }
    }

    private static func openConsole(
        _ address: ConsoleAddress, connections: Int, _ store: StoreService,
        surroundings: Surroundings, _ instruments: Instruments
    ) throws -> (floor: Floor, port: UInt16, beside: UInt16?) {
        try Floor.open(name: "console") { loop in
            let desk = ConsoleDesk(
                loop: loop, store: store, surroundings: surroundings, instruments: instruments)
            return try HTTPDoor(loop: loop, desk: desk) { refusal, handler in
                try HTTPServer(
                    host: address.host, port: address.port,
                    limits: HTTPLimits(connections: connections, bodyBytes: 512 * 1024),
                    refusal: refusal, handler: handler)
            }
        }
    }

    static let backendRoutes = RouteTable(
        routes: ConversationRoutes.all + AnnouncementRoutes.all + ScheduleRoutes.all
            + UserRoutes.all + SettingRoutes.all + ReadRoutes.all
            + DeviceRoutes.all + AccessRoutes.all + WebhookRoutes.keyed + FeedbackRoutes.all
            + ExplainRoutes.all + CampaignRoutes.keyed
            + HealthRoutes.all + DescriptionRoutes.all)
    /// Of the console.
    static let operatorRoutes = RouteTable(
        routes: AppRoutes.all + KeyRoutes.all + PushRoutes.all + AdminDeviceRoutes.all
            + AdminAccessRoutes.all + WebhookRoutes.admin + CampaignRoutes.admin
            + AdminUserRoutes.all + NodeRoutes.all + OperatorRoutes.all)
    static let adminRoutes = RouteTable(
        routes: operatorRoutes.routes + [OperatorRoutes.socketOnly])

    /// Refuses new requests, waits for the answers that are under way, at most `milliseconds`,
    /// and ends. Call it before the store is stopped. Again does nothing.
    public func stop(milliseconds: Int = 5_000) {
        for floor in floors { floor.refuse(milliseconds: milliseconds) }
        for floor in floors { floor.stop(milliseconds: milliseconds) }
    }
}

/// One door on a thread of its own. From any thread.
private final class Floor: Sendable {
    private let thread: LoopThread
    private let stopper: Mailbox<Int>
    private let finished: Latch

    private init(thread: LoopThread, stopper: Mailbox<Int>, finished: Latch) {
        self.thread = thread
        self.stopper = stopper
        self.finished = finished
    }

    /// - Parameter listen: listens for something else on the same thread, and gives its port.
    static func open(
        name: String, beside listen: @escaping @Sendable (Loop) throws -> UInt16? = { _ in nil },
        _ make: @escaping @Sendable (Loop) throws -> HTTPDoor
    ) throws -> (floor: Floor, port: UInt16, beside: UInt16?) {
        let finished = Latch()
        let (thread, made) = try LoopThread.startReturning(name: name) { loop in
            let beside = try listen(loop)
            let door = try make(loop)
            let ending = Ending(loop: loop, door: door, finished: finished)
            // Room for `refuse` and `stop`.
            let stopper = Mailbox<Int>(loop: loop, limit: 2) { batch in
                ending.begin(milliseconds: batch.first ?? 0)
            }
            return (port: door.port, beside: beside, stopper: stopper)
        }
        let floor = Floor(thread: thread, stopper: made.stopper, finished: finished)
        return (floor, made.port, made.beside)
    }

    /// New requests are refused from now on.
    func refuse(milliseconds: Int) { _ = stopper.post(milliseconds) }

    /// Waits for the answers that are under way, and ends. Again does nothing.
    func stop(milliseconds: Int) {
        if stopper.post(milliseconds) { finished.wait() }
        thread.stop()
        thread.join()
    }
}

/// The last moments of a door: waits for the answers that are under way. Loop-confined; its timer
/// holds it.
private final class Ending {
    private static let interval: UInt64 = 10
    private let door: HTTPDoor
    private let finished: Latch
    private unowned let loop: Loop
    private var timer: LoopTimer?
    private var deadline: UInt64 = 0
    private var hasBegun = false

    init(loop: Loop, door: HTTPDoor, finished: Latch) {
        self.loop = loop
        self.door = door
        self.finished = finished
    }

    func begin(milliseconds: Int) {
        guard !hasBegun else { return }
        hasBegun = true
        door.refuse()
        deadline = loop.now + UInt64(max(0, milliseconds))
        timer = loop.timer { self.look() }
        timer?.start(afterMilliseconds: 0, repeatingMilliseconds: Self.interval)
    }

    private func look() {
        guard door.isIdle || loop.now >= deadline else { return }
        timer?.close()
        timer = nil
        door.close()
        finished.arrive()
    }
}
