import BackendAPI
import Crypto
public import EventLoop
import Feed
import FoundationEssentials
import Glibc
import Model
import PostgresStore
public import StoreService
import SyncServer
import SyncService
import Telemetry
import Webhooks

// The numbers and facts a server is put together from.
extension Server {
    /// What the store's writer does by itself.
    ///
    /// A turn over receipts has no more users than its 1,024 rows leave room for, at some thirty
    /// rows each: on PostgreSQL the rows of all of them are fetched and locked before the first is
    /// told, and publishes to those who find no room would wait for nothing.
    public static let duties: [StoreDuty] = [
        StoreDuty(
            name: "fan-out", request: .continueFanOut(recipients: 512), interval: 1_000,
            follows: .fanOut),
        StoreDuty(
            name: "deletions", request: .continueDeletions(rows: 512), interval: 1_000,
            follows: .deletions),
        StoreDuty(
            name: "receipts", request: .coalesceReceipts(users: 32), interval: 250),
        StoreDuty(
            name: "retention", request: .enforceRetention(rows: 1_000), interval: 60_000,
            follows: .removals),
        StoreDuty(
            name: "campaigns", request: .campaigns(.advance(devices: 256)), interval: 250,
            follows: .campaigns),
        StoreDuty(
            name: "sessions", request: .sweepWakes(rows: 256), interval: 1_000, follows: .sessions),
        StoreDuty(
            name: "scheduled", request: .schedules(.publishDue(rows: 64)), interval: 1_000),
        StoreDuty(
            name: "alive", request: .keepAlive, interval: 2_000),
    ]

    /// The same where several nodes share the store.
    static func duties(
        of node: NodeBeat?, _ connections: @escaping @Sendable () -> Int,
        ends: @escaping @Sendable () -> Bool
    ) -> [StoreDuty] {
        guard let node else { return duties }
        @Sendable func beat() -> NodeBeat {
            var beat = node
            beat.connections = connections()
            beat.phase = ends() ? .ending : .serving
            return beat
        }
        // One that ends looks whether others do, too, before it sends its devices to them.
        return duties + [
            StoreDuty(name: "beat", request: .beat(beat()), interval: ends() ? 500 : 2_000)
        ]
    }

    static func storeLimits(_ configuration: Configuration) -> StoreServiceLimits {
        var limits = StoreServiceLimits()
        limits.lanes = configuration.storeLanes
        return limits
    }

    /// Opens the store, and logs what that has made of it. That it is a new one is worth a look: a
    /// volume that was not mounted leaves an empty folder.
    static func opened(
        _ place: StorePlace, _ witness: PostgresWitness, _ log: Log
    ) throws(StoreError) -> any Store {
        let upgrades = StoreUpgrades()
        let store = try place.open(witness: witness, upgrades: upgrades)
        switch upgrades.met {
        case nil: break
        case .create: log.warning("store.created", [LogField("store", place.name)])
        case .migrate(let from, let to):
            log.info(
                "store.migrated",
                [LogField("from", from), LogField("to", to), LogField("store", place.name)])
        }
        return store
    }

    /// What works and should not stay so.
    public static func warnings(_ configuration: Configuration) -> [String] {
        var warnings: [String] = []
        if configuration.consolePort != nil,
            PeerAddress(configuration.consoleHost)?.isTrusted != true,
            configuration.consoleHost != "localhost"
        {
            warnings.append(
                "console.host: \(configuration.consoleHost) is not an address of this machine or "
                    + "a private network, and the console has no TLS of its own")
        }
        if !SystemZones().areThere {
            warnings.append(
                "this system has no time zones: alerts at a time of day follow UTC until its "
                    + "package tzdata is installed")
        }
        let path = configuration.privateKeyFile
        var status = stat()
        if stat(path, &status) == 0, status.st_mode & 0o044 != 0 {
            let mode = String(status.st_mode & 0o7777, radix: 8)
            warnings.append("tls.key_file: \(path) can be read by others (mode \(mode))")
        }
        if let few = fewDescriptors(configuration, Descriptors.raiseLimit()) {
            warnings.append("limits.connections: \(few)")
        }
        let wall = SystemClock.wallMilliseconds()
        if let end = try? certificate(configuration).end, end.isNear(wall) {
            warnings.append(
                "tls.certificate_file: the certificate ends in \(end.leftText(wall)), at "
                    + "\(end.text); renew it")
        }
        return warnings
    }

    static func sessionLimits(_ configuration: Configuration) -> SessionLimits {
        var limits = SessionLimits()
        limits.keepalive = configuration.keepaliveSeconds * 1000
        limits.digestSample = UInt64(configuration.digestSample)
        return limits
    }

    /// So many a second, and ten times as many at once; 0: any number.
    static func rate(_ perSecond: Int) -> RateLimit {
        RateLimit(perSecond: UInt64(perSecond), burst: UInt64(perSecond) * 10)
    }

    static func deviceRates(_ configuration: Configuration) -> DeviceRates {
        var rates = DeviceRates()
        rates.addressConnections = rate(configuration.addressConnections)
        rates.addressHandshakes = configuration.addressHandshakes
        rates.userMutations = rate(configuration.userMutations)
        rates.userReads = rate(configuration.userReads)
        rates.appRequests = rate(configuration.appRequests)
        return rates
    }

    /// Whether a server can serve what a supervisor passes: a mistake of the supervisor's settings,
    /// which no other start mends.
    public static func check(_ supervisor: Supervisor) throws(ConfigurationError) {
        _ = try inherited(supervisor)
    }

    /// The sockets that a supervisor passes: those called devices and api, or the only one for
    /// devices, whatever its name.
    ///
    /// - Throws: if a socket would be left at which nobody accepts connections.
    static func inherited(
        _ supervisor: Supervisor
    ) throws(ConfigurationError) -> (devices: Int32?, api: Int32?) {
        let sockets = supervisor.sockets
        for (name, held) in sockets where held.count > 1 {
            throw ConfigurationError(
                "\(held.count) sockets called \(name) were passed (LISTEN_FDS): a server listens "
                    + "at one of each name, so give its unit one ListenStream= (a port alone, or "
                    + "[::]:PORT, is IPv4, too)")
        }
        let known = (devices: sockets["devices"]?.first, api: sockets["api"]?.first)
        if sockets.count == [known.devices, known.api].compactMap({ $0 }).count { return known }
        if sockets.count == 1 { return (sockets.first?.value.first, nil) }
        throw ConfigurationError(
            "\(sockets.count) sockets were passed (LISTEN_FDS), called "
                + sockets.keys.sorted().joined(separator: ", ")
                + ": those of Rouse are devices and api (FileDescriptorName= of the unit)")
    }

    /// What is said there is read by everybody on the way: it may only be a private one.
    static func plainListener(_ configuration: Configuration) throws -> PlainListener? {
        guard let port = configuration.plainPort else { return nil }
        try checkPrivate("listen.plain_host", configuration.plainHost)
        return PlainListener(host: configuration.plainHost, port: port)
    }

    static func checkPrivate(_ key: String, _ host: String) throws {
        guard PeerAddress(host)?.isTrusted == true else {
            throw ServerError(
                "\(key): \(host) is not a numeric address of this "
                    + "machine or a private network; a port without TLS is for these only")
        }
    }

    /// Where balancers ask how this node is, and what for.
    static func agent(
        _ configuration: Configuration, load: @escaping @Sendable () -> NodeLoad
    ) throws -> BackendAPI.Agent? {
        guard let port = configuration.agentPort else { return nil }
        try checkPrivate("node.agent_host", configuration.agentHost)
        return BackendAPI.Agent(host: configuration.agentHost, port: port, load: load)
    }

    /// Balancers whose word is taken for where a connection comes from.
    static func balancers(_ configuration: Configuration) throws -> [Network] {
        guard let networks = Network.list(configuration.proxyNetworks) else {
            throw ServerError(
                "listen.proxy_networks: \(configuration.proxyNetworks) is not a list of networks "
                    + "such as 10.0.0.0/8, fd00::/8")
        }
        return networks
    }

    /// With fewer there would be no room for as many devices as would be worth a server.
    static let descriptorsLeast = 320

    static func shares(_ configuration: Configuration, _ descriptors: Int) -> DescriptorShares {
        DescriptorShares(
            of: descriptors, webhooks: configuration.webhookDeliveries,
            loops: loops(configuration))
    }

    /// Of device connections.
    static func loops(_ configuration: Configuration) -> Int {
        configuration.loops > 0
            ? configuration.loops : max(1, ProcessInfo.processInfo.activeProcessorCount - 1)
    }

    /// A server that has room for fewer devices, though nobody asked for that, says so.
    static let connectionsFew = 1_000

    /// How many devices a server with these settings takes.
    static func connectionsLimit(_ configuration: Configuration, _ descriptors: Int) -> Int {
        configuration.connectionsMax > 0
            ? configuration.connectionsMax : shares(configuration, descriptors).devices
    }

    /// What is said where the descriptors leave room for few devices; `nil`: they do not.
    static func fewDescriptors(_ configuration: Configuration, _ descriptors: Int) -> String? {
        let limit = connectionsLimit(configuration, descriptors)
        guard configuration.connectionsMax == 0, limit < connectionsFew else { return nil }
        return "the descriptor limit \(descriptors) leaves room for \(limit) devices; raise the "
            + "hard limit (ulimit -Hn, LimitNOFILE= of systemd), or say with limits.connections "
            + "that so few are meant"
    }

    /// The same, where the descriptors suffice for it.
    static func connectionsMax(
        _ configuration: Configuration, _ descriptors: Int
    ) throws -> Int {
        guard descriptors >= descriptorsLeast else {
            throw ServerError(
                "limits.connections: the descriptor limit is \(descriptors), and a server needs "
                    + "\(descriptorsLeast) at least; raise the hard limit (ulimit -Hn, "
                    + "LimitNOFILE= of systemd)")
        }
        let room = shares(configuration, descriptors).devices
        let limit = connectionsLimit(configuration, descriptors)
        guard limit <= room else {
            throw ServerError(
                "limits.connections is \(configuration.connectionsMax), but the descriptor limit "
                    + "\(descriptors) leaves room for \(room); raise it (ulimit -n) or lower this")
        }
        return limit
    }

    /// Where webhooks may be delivered to.
    static func webhookAddresses(_ configuration: Configuration) throws -> AddressPolicy {
        guard let addresses = AddressPolicy(allowing: configuration.webhookNetworks) else {
            throw ServerError(
                "webhooks.allow_networks: \(configuration.webhookNetworks) is not a list of "
                    + "networks such as 10.0.0.0/8, fd00::/8")
        }
        return addresses
    }

    /// `nil`: the system's.
    static func webhookAuthorities(_ configuration: Configuration) throws -> [UInt8]? {
        let path = configuration.webhookAuthorities
        if path.isEmpty { return nil }
        switch FileReading.read(path) {
        case .success(let bytes): return bytes
        case .failure(let reason):
            throw ServerError("webhooks.ca_file: cannot read \(path): \(reason)")
        }
    }

    /// How webhooks are delivered.
    static func webhooks(_ configuration: Configuration) throws -> WebhooksConfiguration {
        var settings = WebhooksConfiguration(addresses: try webhookAddresses(configuration))
        settings.timeout = configuration.webhookTimeoutSeconds * 1000
        settings.openMax = configuration.webhookDeliveries
        settings.openPerApp = configuration.webhookAppDeliveries
        settings.policy.retryFirst = configuration.webhookRetrySeconds * 1000
        settings.policy.retryMax = configuration.webhookRetryMaxSeconds * 1000
        settings.policy.deactivateAfter = configuration.webhookDeactivateSeconds * 1000
        if let authorities = try webhookAuthorities(configuration) {
            settings.trustedCertificates = authorities
        }
        return settings
    }

    /// What operators are told of this process.
    static func facts(
        _ configuration: Configuration, _ place: StorePlace, _ boot: BootID
    ) -> ServerFacts {
        ServerFacts(
            name: nodeName(configuration), boot: "\(boot)", store: place.name,
            isShared: place.isShared,
            startedAt: Timestamp(milliseconds: SystemClock.wallMilliseconds()))
    }

    static func drawnBoot() -> BootID {
        guard let boot = BootID(Random.bytes(16)) else { preconditionFailure("16 bytes") }
        return boot
    }

    /// 63 bits: rows hold signed numbers.
    static func drawnHalf() -> UInt64 {
        Random.bytes(8).reduce(0) { $0 << 8 | UInt64($1) } >> 1
    }

    static func report(_ news: StoreNews, to log: Log) {
        switch news {
        case .failed(let error): log.error("store.failed", [LogField("error", "\(error)")])
        case .works: log.info("store.works")
        case .clockOff(let ahead):
            log.warning(
                "node.clock_off",
                [
                    LogField("ahead_ms", ahead),
                    LogField(
                        "advice",
                        "this machine's clock and the database's differ: webhooks and provider "
                            + "tokens are signed, and identity tokens judged, by this machine's; "
                            + "set the clocks (NTP)"),
                ])
        case .clockInStep: log.info("node.clock_in_step")
        }
    }

    static func report(_ news: PostgresHints.News, to log: Log) {
        switch news {
        case .lost(let error): log.warning("node.hints_lost", [LogField("error", "\(error)")])
        case .back: log.info("node.hints_back")
        }
    }

    static func register(_ metrics: Metrics, store: StoreService) {
        let health = store.health
        metrics.reading("rouse_store_commits_total", "Transactions committed.", isCounter: true) {
            Double(health.counts.commits)
        }
        metrics.reading(
            "rouse_store_requests_total", "Requests in committed transactions.", isCounter: true
        ) { Double(health.counts.requests) }
        metrics.reading(
            "rouse_store_failed_commits_total", "Transactions that failed.", isCounter: true
        ) { Double(health.counts.failedCommits) }
        metrics.reading(
            "rouse_store_commit_seconds_total", "Time spent in transactions.", isCounter: true
        ) { Double(health.counts.commitMilliseconds) / 1000 }
        registerEffort(metrics, health)
        metrics.reading(
            "rouse_store_unreadable_rows_total",
            "Rows passed over or set aside because they cannot be read.", isCounter: true
        ) { Double(health.counts.unreadableRows) }
        metrics.reading(
            "rouse_store_rows_read_total", "Rows that requests read.", isCounter: true
        ) { Double(health.counts.rows.read) }
        metrics.reading(
            "rouse_store_rows_written_total", "Rows that requests wrote.", isCounter: true
        ) { Double(health.counts.rows.written) }
        metrics.reading(
            "rouse_store_request_rows_max", "The most rows one request read and wrote."
        ) { Double(health.counts.largestRequestRows) }
        metrics.reading("rouse_store_writable", "1 while the last write worked.") {
            health.isWritable ? 1 : 0
        }
        metrics.reading("rouse_store_readable", "0 while reading has failed for 5 s.") {
            health.readingFailure == nil ? 1 : 0
        }
        metrics.reading("rouse_store_waiting_requests", "Requests waiting for the writer.") {
            [weak store] in Double(store?.waitingRequests ?? 0)
        }
        metrics.reading("rouse_store_waiting_queries", "Queries waiting for the reader.") {
            [weak store] in Double(store?.waitingQueries ?? 0)
        }
        metrics.reading(
            "rouse_store_queries_total", "Queries, or parts of them, read.", isCounter: true
        ) { Double(health.counts.queries) }
        metrics.reading(
            "rouse_store_query_rows_total", "Rows looked at for them.", isCounter: true
        ) { Double(health.counts.rowsRead) }
    }

    static func register(_ metrics: Metrics, clockOf health: StoreHealth) {
        metrics.reading(
            "rouse_node_clock_ahead_seconds",
            "By how much this machine's clock is ahead of the database's; negative: behind. "
                + "Of a file it is 0."
        ) { Double(health.clockAhead) / 1000 }
    }

    static func register(_ metrics: Metrics, hints: NodeHints) {
        metrics.reading(
            "rouse_node_hints_untold_total",
            "Hints to other nodes that were dropped: too many waited, or one was too long.",
            isCounter: true
        ) { [weak hints] in Double(hints?.drops.untold ?? 0) }
        metrics.reading(
            "rouse_node_hints_unread_total",
            "Hints of other nodes that were dropped: this version does not know them.",
            isCounter: true
        ) { [weak hints] in Double(hints?.drops.unread ?? 0) }
        metrics.reading(
            "rouse_node_hints_connection_losses_total",
            "How often the connection that carries hints was lost.", isCounter: true
        ) { [weak hints] in Double(hints?.losses ?? 0) }
    }

    private static func registerEffort(_ metrics: Metrics, _ health: StoreHealth) {
        metrics.reading(
            "rouse_store_commit_seconds_max", "The longest of the transactions."
        ) { Double(health.counts.longestCommit) / 1000 }
        metrics.reading(
            "rouse_store_statements_total", "Statements that the writer's engine ran.",
            isCounter: true
        ) { Double(health.counts.effort.statements) }
        metrics.reading(
            "rouse_store_round_trips_total",
            "How often the writer waited for an answer of PostgreSQL, COMMIT among it.",
            isCounter: true
        ) { Double(health.counts.effort.roundTrips) }
        metrics.reading(
            "rouse_store_journal_bytes_total", "Bytes written to the journal.", isCounter: true
        ) { Double(health.counts.effort.journalBytes) }
        metrics.reading("rouse_store_journal_size_bytes", "Bytes that the journal holds.") {
            Double(health.counts.effort.journalSize)
        }
        metrics.reading(
            "rouse_store_known_reads_total",
            "Reads and scans of requests answered from rows in memory.", isCounter: true
        ) { Double(health.counts.knownReads) }
        metrics.reading(
            "rouse_store_engine_reads_total",
            "Reads and scans of requests that the engine answered.", isCounter: true
        ) { Double(health.counts.engineReads) }
        metrics.reading(
            "rouse_store_known_bytes", "Bytes of rows in memory, about."
        ) { Double(health.counts.knownBytes) }
    }
}

extension Effects {
    /// The gateway has something to claim, or to keep back.
    var ringsPushes: Bool { background.contains(.pushes) || !detached.isEmpty }
}
