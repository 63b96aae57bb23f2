import BackendAPI
import Crypto
public import EventLoop
import Failpoints
import Feed
import FoundationEssentials
public import Model
import PostgresStore
import PushGateway
import StoreService
import SyncServer
import SyncService
public import Telemetry
import Webhooks

/// A running server: the only place that names a concrete store. Built top to bottom, stopped in
/// the opposite order.
public final class Server: Sendable {
    /// The addresses in use, once ports of 0 are resolved.
    public struct Addresses: Equatable, Sendable {
        public var devicePort: UInt16
        /// `nil`: there is none.
        public var plainPort: UInt16?
        public var apiPort: UInt16
        /// `nil`: there is no console.
        public var consolePort: UInt16?
        /// `nil`: there is no agent.
        public var agentPort: UInt16?
        public var adminSocket: String
    }

    public let addresses: Addresses
    private let current: CurrentConfiguration
    private let descriptors: Int
    let log: Log
    private let store: StoreService
    /// What other nodes of the store are told; `nil`: there are none.
    private let hints: NodeHints?
    private let sync: SyncService
    private let api: BackendAPI
    private let gateway: PushGateway
    private let webhooks: Webhooks
    private let isDraining: Flag
    /// What operators want of this node; on a file nothing.
    private let desk: NodeDesk
    let certificates: CertificateKeeper

    /// Starts everything; when this returns, devices and backends are served.
    ///
    /// - Parameter supervisor: who may hold the socket of the device port.
    public static func start(
        _ configuration: Configuration, log: Log,
        supervisor: Supervisor = Supervisor(environment: [:])
    ) throws(ServerError) -> Server {
        do {
            return try Server(configuration, log: log, supervisor)
        } catch let error as ServerError {
            throw error
        } catch {
            throw ServerError("\(error)")
        }
    }

    private init(
        _ configuration: Configuration, log: Log, _ supervisor: Supervisor
    ) throws {
        let current = CurrentConfiguration(configuration)
        self.current = current
        self.log = log
        (log.format, log.logsAccess) = (configuration.logFormat, configuration.logAccess)
        if let point = ProcessInfo.processInfo.environment[Failpoint.variable] {
            try Failpoint.arm(point)
        }
        let descriptors = Descriptors.raiseLimit()
        self.descriptors = descriptors
        let marks = CertificateKeeper.marks(configuration)
        let certificate = try Self.certificate(configuration)
        let metrics = Metrics(appsMax: configuration.metricsApps)
        certificates = CertificateKeeper(certificate, marks, log: log, metrics: metrics)
        let boot = Self.drawnBoot()
        let doorbell = SyncService.Doorbell()
        let pushes = PushGateway.Doorbell()
        let withdrawals = PushGateway.Withdrawals()
        let deliveries = Webhooks.Doorbell()
        let board = PushStatusBoard()
        let wakes = WakeMetrics(metrics)
        let publishes = PublishMetrics(metrics)
        let schedule = ScheduleMetrics(metrics)
        let place = configuration.storePlace
        let node =
            place.isShared
            ? NodeBeat(boot: boot, name: Self.nodeName(configuration), version: Self.version) : nil
        let isDraining = Flag()
        self.isDraining = isDraining
        let desk = NodeDesk(isDraining: isDraining, log: log)
        self.desk = desk
        let witness = PostgresWitness()
        let hints =
            place.isShared
            ? NodeHints(place, witness, boot: boot) { told in
                doorbell.committed(told.effects)
                if told.haveAudiencesChanged { doorbell.audiencesChanged() }
                for signal in told.signals { doorbell.signalled(signal) }
                withdrawals.add(told.effects.detached)
                if told.effects.ringsPushes { pushes.ring() }
                if told.effects.hasDeliveries { deliveries.ring() }
            } onNews: { news in
                Self.report(news, to: log)
                guard news == .back else { return }
                doorbell.lostHints()
                pushes.ring()
                deliveries.ring()
            } : nil
        self.hints = hints
        let unreadable = UnreadableLog(log)
        store = try StoreService.start(
            limits: Self.storeLimits(configuration),
            duties: Self.duties(of: node) {
                doorbell.connections
            } ends: {
                isDraining.has(.end)
            }, boot: boot,
            epochHalf: Self.drawnHalf(), node: node, zones: SystemZones(),
            open: { try Self.opened(place, witness, log) },
            openLane: place.openLane(beside: witness),
            onCommit: { effects in
                doorbell.committed(effects)
                hints?.committed(effects)
                if let standing = effects.node {
                    desk.take(standing)
                    hints?.take(standing)
                }
                wakes.note(effects.wakes)
                publishes.note(effects.published)
                schedule.note(effects.schedule)
                withdrawals.add(effects.detached)
                if effects.ringsPushes { pushes.ring() }
                if effects.hasDeliveries { deliveries.ring() }
            }, onUnreadable: { unreadable.report($0) },
            onNews: { Self.report($0, to: log) })
        hints?.start()
        Self.register(metrics, store: store)
        Self.register(metrics, place: place)
        if let hints { Self.register(metrics, hints: hints) }
        Self.register(metrics, clockOf: store.health)
        var settings = SyncServiceConfiguration(
            host: configuration.listenHost, port: configuration.listenPort,
            loops: Self.loops(configuration),
            session: SessionConfiguration(
                limits: Self.sessionLimits(configuration), boot: boot,
                node: Self.nodeName(configuration),
                sha256: { Digest.sha256($0) }))
        settings.connectionsMax = try Self.connectionsMax(configuration, descriptors)
        let inherited = try Self.inherited(supervisor)
        settings.inherited = inherited.devices
        settings.handshakesMax = configuration.handshakesMax
        settings.receivingBytesMax = configuration.receivingBytesMax
        settings.rates = Self.deviceRates(configuration)
        settings.plain = try Self.plainListener(configuration)
        settings.balancers = try Self.balancers(configuration)
        // What another node does is told by hints, which may be lost.
        if place.isShared { settings.headTurns = 10 }
        if let hints { settings.tellNodes = { hints.signal($0) } }
        do {
            sync = try SyncService.start(
                settings, tls: certificate.material, store: store, doorbell: doorbell, log: log,
                metrics: metrics)
        } catch {
            store.stop()
            // Which of the two was not to be had, the error does not say.
            let plain = configuration.plainPort.map {
                ", or listen.plain_host, listen.plain_port (\(configuration.plainHost), \($0))"
            }
            throw ServerError(
                "listen.host, listen.port (\(configuration.listenHost), "
                    + "\(configuration.listenPort))\(plain ?? ""): \(error)")
        }
        do {
            let shares = Self.shares(configuration, descriptors)
            var settings = BackendAPI.Configuration(
                host: configuration.apiHost, port: configuration.apiPort,
                adminSocket: configuration.adminSocketPath, connections: shares.backends)
            settings.consoleConnections = shares.console
            settings.inherited = inherited.api
            settings.appRequests = Self.rate(configuration.appAPIRequests)
            settings.console = configuration.consolePort.map {
                .init(host: configuration.consoleHost, port: $0)
            }
            settings.agent = try Self.agent(configuration) {
                NodeLoad(
                    connections: doorbell.connections,
                    limit: Self.connectionsLimit(current.value, descriptors))
            }
            api = try BackendAPI.start(
                configuration: settings, store: store,
                notReady: { isDraining.isSet ? ["draining"] : [] },
                pushStatus: { board.current.map { PushStatus($0) } },
                about: Self.facts(configuration, place, boot), examine: Self.doctor(place),
                metrics: metrics, log: log)
        } catch {
            sync.stop()
            store.stop()
            let keys =
                error is AgentFailure
                ? "node.agent_host, node.agent_port"
                : "api.host, api.port (\(configuration.apiHost), \(configuration.apiPort)), "
                    + "admin.socket (\(configuration.adminSocketPath)) or console.host, "
                    + "console.port"
            throw ServerError("\(keys): \(error)")
        }
        Failpoint.hit(.adminSocketMade)
        do {
            gateway = try PushGateway.start(
                store: store, boot: boot, doorbell: pushes, withdrawals: withdrawals,
                board: board, log: log,
                metrics: metrics)
        } catch {
            api.stop()
            sync.stop()
            store.stop()
            throw ServerError("push gateway: \(error)")
        }
        do {
            webhooks = try Webhooks.start(
                store: store, boot: boot, configuration: try Self.webhooks(configuration),
                doorbell: deliveries, log: log, metrics: metrics,
                render: { DeliveryDocument.render($0) })
        } catch {
            gateway.stop()
            api.stop()
            sync.stop()
            store.stop()
            throw ServerError("webhooks: \(error)")
        }
        desk.serve(sync)
        addresses = Addresses(
            devicePort: sync.port, plainPort: sync.plainPort, apiPort: api.port,
            consolePort: api.consolePort, agentPort: api.agentPort,
            adminSocket: configuration.adminSocketPath)
        log.info(
            "server.started",
            [
                LogField("device_port", addresses.devicePort),
                LogField("plain_port", addresses.plainPort.map { String($0) } ?? "off"),
                LogField("api_port", addresses.apiPort), LogField("store", place.name),
                LogField("connections_max", settings.connectionsMax),
                LogField("descriptors", descriptors), LogField("boot", boot),
            ])
        if let few = Self.fewDescriptors(configuration, descriptors) {
            log.warning("server.few_descriptors", [LogField("advice", few)])
        }
        certificates.remind(configuration)
    }

    /// In force now.
    var configuration: Configuration { current.value }

    static func nodeName(_ configuration: Configuration) -> String {
        configuration.nodeName.isEmpty
            ? ProcessInfo.processInfo.hostName : configuration.nodeName
    }

    /// Reads the settings and the certificate files again. What can be changed while the server
    /// runs is in force then; what cannot is named in the log. Any mistake changes nothing.
    public func reload(_ read: () throws -> ConfigurationReading) {
        do {
            var reading = try read()
            reading.look()
            if let error = reading.error { throw error }
            try apply(reading.configuration)
        } catch {
            let problems = (error as? ConfigurationError)?.problems ?? ["\(error)"]
            for problem in problems.prefix(ConfigurationError.toldMax) {
                log.error("settings.wrong", [LogField("problem", problem)])
            }
            log.error(
                "settings.reload_failed",
                [LogField("mistakes", problems.count), LogField("kept", "the old settings")])
        }
    }

    /// New connections get this certificate from now on.
    func use(_ certificate: ServerCertificate, _ marks: [FileMark?]) throws {
        try sync.reload(certificate.material)
        certificates.took(certificate, marks)
    }

    private func apply(_ wanted: Configuration) throws {
        let before = current.value
        let change = ConfigurationChange(from: before, to: wanted)
        let now = change.live
        let marks = CertificateKeeper.marks(now)
        try use(try Self.certificate(now), marks)
        sync.change(
            SyncLimits(
                connectionsMax: try Self.connectionsMax(now, descriptors),
                handshakesMax: now.handshakesMax, receivingBytesMax: now.receivingBytesMax,
                rates: Self.deviceRates(now)))
        api.change(appRequests: Self.rate(now.appAPIRequests))
        current.value = now
        (log.format, log.logsAccess) = (now.logFormat, now.logAccess)
        // Told also where the new level leaves it out.
        log.level = min(log.level, now.logLevel)
        defer { log.level = now.logLevel }
        log.info(
            "settings.reloaded",
            [
                LogField("changed", change.applied.joined(separator: ", ")),
                LogField("certificates", "read again"),
            ])
        certificates.remind(now)
        if !change.waiting.isEmpty {
            log.warning(
                "settings.restart_needed",
                [LogField("keys", change.waiting.joined(separator: ", "))])
        }
    }

    /// Tells every client when to come back, serves on until the deadline, and ends. `done` is
    /// called when no connection is left, or at the deadline.
    public func drain(done: @escaping @Sendable () -> Void) {
        isDraining.raise(.end)
        Failpoint.hit(.drainBegun)
        store.beatNow()
        let seconds = current.value.drainSeconds
        let isElsewhere = desk.hasOthers
        log.info(
            "drain.started",
            [LogField("seconds", seconds), LogField("elsewhere", isElsewhere)])
        // Nodes that are told to end together find out of each other.
        let settling = isElsewhere ? min(Self.settlingTime, seconds * 1000 / 4) : 0
        sync.drain(
            within: seconds * 1000, settling: settling, isElsewhere: { [desk] in desk.hasOthers },
            done: done)
    }

    /// Milliseconds in which a node that ends says so, and finds the others that do.
    private static let settlingTime: UInt64 = 1_500

    /// Calls `done` on another thread, at least once, if everything that serves devices still
    /// moves.
    public func whenAllTurned(_ done: @escaping @Sendable () -> Void) { sync.whenAllTurned(done) }

    /// Ends at once; everything acknowledged is on disk.
    public func stop() {
        api.stop()
        sync.stop()
        Failpoint.hit(.sessionsStopped)
        gateway.stop()
        Failpoint.hit(.gatewayStopped)
        webhooks.stop()
        hints?.stop()
        store.stop()
        log.info("server.stopped")
        log.flush()
    }
}

/// The server cannot start: what, and what to do.
public struct ServerError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String
    /// It may be over at another time, with nobody doing anything: a certificate that is not good
    /// yet, or not any more, where the host's clock is wrong or the certificate is renewed.
    public let isOfTime: Bool

    public init(_ description: String, isOfTime: Bool = false) {
        (self.description, self.isOfTime) = (description, isOfTime)
    }
}
