import PostgresStore
public import Telemetry

/// How the server runs. One file plus environment; an unknown key or a wrong value is an error
/// that names it.
public struct Configuration: Equatable, Sendable {
    /// Where devices connect.
    public var listenHost = "127.0.0.1"
    /// 0: a free port, told in the log.
    public var listenPort: UInt16 = 7443
    /// Where a balancer that terminates TLS connects.
    public var plainHost = "127.0.0.1"
    /// `nil`: there is no such port. 0: a free one, told in the log.
    public var plainPort: UInt16?
    /// Networks of balancers that speak the PROXY protocol.
    public var proxyNetworks = ""
    public var certificateFile = ""
    public var privateKeyFile = ""
    /// Event loops for device connections; 0: one per core but one, at least one.
    public var loops = 0

    /// Where backends connect. HTTP/1.1 without TLS: keep it on a private address.
    public var apiHost = "127.0.0.1"
    public var apiPort: UInt16 = 7480

    /// Where operators' browsers find the console. Without TLS, like the API.
    public var consoleHost = "127.0.0.1"
    /// `nil`: there is no console. 0: a free port, told in the log.
    public var consolePort: UInt16?

    /// Apps with series of their own in `/metrics`.
    public var metricsApps = Metrics.appsDefault

    public var storePath = "rouse.db"
    /// The address of a PostgreSQL server, as libpq takes it; empty: the file is the store.
    public var postgres = ""
    public var postgresSchema = "rouse"
    /// Whether the start makes tables and brings them to this program's schema.
    public var postgresMigrates = true
    /// Transactions that a node has open at a time, besides its duties.
    public var storeLanes = 1
    /// The socket `rouse app` talks to; empty: the store's path with `.admin`, or `rouse.admin`.
    public var adminSocket = ""
    /// This server's name in WELCOME and metrics; empty: the host's name.
    public var nodeName = ""
    /// Where balancers ask how this node is (HAProxy's agent check).
    public var agentHost = "127.0.0.1"
    /// `nil`: there is no agent. 0: a free port, told in the log.
    public var agentPort: UInt16?

    /// Device connections; 0: the descriptor limit less what the rest of the server needs.
    public var connectionsMax = 0
    public var handshakesMax = 512
    /// Bytes of frames that have begun, over all connections.
    public var receivingBytesMax = 64 << 20
    /// Rates a second; 0: no limit.
    public var addressConnections = 50
    public var addressHandshakes = 32
    public var userMutations = 100
    public var userReads = 20
    public var appRequests = 0
    public var appAPIRequests = 0
    public var keepaliveSeconds: UInt64 = 180
    /// One session in so many is asked for a digest; 0: none.
    public var digestSample = 64
    /// Networks webhooks may be delivered to besides the public Internet.
    public var webhookNetworks = ""
    /// PEM; empty: the system's authorities.
    public var webhookAuthorities = ""
    /// Of one delivery.
    public var webhookTimeoutSeconds: UInt64 = 15
    /// Deliveries under way, of all apps and of one.
    public var webhookDeliveries = 32
    public var webhookAppDeliveries = 4
    /// The first wait after a failure; it doubles up to the second.
    public var webhookRetrySeconds: UInt64 = 5
    public var webhookRetryMaxSeconds: UInt64 = 3600
    public var webhookDeactivateSeconds: UInt64 = 259_200
    /// From SIGTERM to the end.
    public var drainSeconds: UInt64 = 5
    public var logLevel = LogLevel.info
    public var logFormat = LogFormat.text
    /// Whether the log has a line for each request of the API.
    public var logAccess = false
    /// The folder of the file, where its relative paths start: empty, or with a slash at its end.
    public var folder = ""

    /// Names of hosts have at most 64 on Linux.
    static let nodeNameBytesMax = 128

    public init() {}

    /// The admin socket's path in force.
    public var adminSocketPath: String {
        if !adminSocket.isEmpty { return adminSocket }
        return (postgres.isEmpty ? storePath : folder + "rouse") + ".admin"
    }

    /// One setting: its key, what it is for, and how a value is read and shown.
    struct Field: Sendable {
        let key: String
        let help: String
        let read: @Sendable (inout Configuration, String) -> String?  // what is wrong, or nil
        let show: @Sendable (Configuration) -> String
        /// The values it takes, for people; empty: its help says it.
        var range = ""
        /// Names a file: relative, it starts at the folder of the configuration's file.
        var isPath = false

        /// Whether a running server takes another value with SIGHUP.
        var isLive: Bool {
            ["limits.", "tls.", "log."].contains { key.hasPrefix($0) } || key == "timers.drain"
        }
    }

    /// Every setting there is; `rouse serve --help` and the example file are made from this.
    static let fields: [Field] = [
        text("listen.host", "address devices connect to, in numbers", \.listenHost),
        port("listen.port", "port devices connect to; 0: a free one", \.listenPort),
        text(
            "listen.plain_host",
            "address of the port without TLS; loopback or a private network", \.plainHost),
        optionalPort(
            "listen.plain_port",
            "port without TLS, for a balancer that terminates it; off: none, 0: a free one",
            \.plainPort),
        text(
            "listen.proxy_networks",
            "balancers that begin connections with a PROXY header, as 10.0.0.0/8; empty: none",
            \.proxyNetworks),
        path("tls.certificate_file", "certificate chain, PEM", \.certificateFile),
        path("tls.key_file", "private key of the certificate, PEM", \.privateKeyFile),
        integer("loops", "event loops; 0: cores less one", \.loops, 0...256),
        text("api.host", "address of the backend API; keep it private", \.apiHost),
        port("api.port", "port of the backend API; 0: a free one", \.apiPort),
        text(
            "console.host", "address of the console, for operators' browsers; keep it private",
            \.consoleHost),
        optionalPort(
            "console.port", "port of the console; off: none, 0: a free one", \.consolePort),
        integer(
            "metrics.apps", "apps with series of their own in /metrics; all others share one",
            \.metricsApps, Metrics.appsRange),
        path("store.path", "the SQLite file", \.storePath),
        Field(
            key: "store.postgres",
            help:
                "PostgreSQL in place of the file, as postgresql://rouse@db/rouse; empty: the file",
            read: { configuration, value in
                configuration.postgres = value
                return nil
            }, show: { PostgresOptions.withoutSecrets($0.postgres) }),
        Field(
            key: "store.schema", help: "schema of the database that holds the tables",
            read: { configuration, value in
                guard PostgresOptions.isSchema(value) else {
                    return "must be a name of a-z, 0-9 and _, at most 57 bytes"
                }
                configuration.postgresSchema = value
                return nil
            }, show: { $0.postgresSchema }),
        Field(
            key: "store.migrate",
            help: "whether the start makes the tables or brings them up to date; on or off",
            read: { configuration, value in
                guard value == "on" || value == "off" else { return "must be on or off" }
                configuration.postgresMigrates = value == "on"
                return nil
            }, show: { $0.postgresMigrates ? "on" : "off" }),
        integer(
            "store.lanes", "transactions that a node on PostgreSQL has open, besides its duties'",
            \.storeLanes, 1...8),
        path("admin.socket", "socket of `rouse app`; empty: beside the store", \.adminSocket),
        Field(
            key: "node.name", help: "this server's name, at most 128 bytes; empty: the host's",
            read: { configuration, value in
                guard value.isNodeName else {
                    return "must be at most \(nodeNameBytesMax) bytes, all of them visible"
                }
                configuration.nodeName = value
                return nil
            }, show: { $0.nodeName }),
        text(
            "node.agent_host",
            "address of the agent that balancers ask; loopback or a private network",
            \.agentHost),
        optionalPort(
            "node.agent_port",
            "port of the agent, for HAProxy's agent-check; off: none, 0: a free one",
            \.agentPort),
        integer(
            "limits.connections",
            "device connections; 0: the descriptor limit less what the rest of the server needs",
            \.connectionsMax, 0...1_000_000),
        integer(
            "limits.handshakes", "TLS handshakes in flight; above it the oldest one ends",
            \.handshakesMax, 1...65_536),
        bytes(
            "limits.receiving_bytes",
            "frames half received, all together; above it the oldest one's connection ends",
            \.receivingBytesMax, (1 << 20)...(1 << 34)),
        rate(
            "limits.address_connections",
            "new connections a second from one address but loopback, 10 times that at once; 0: any",
            \.addressConnections, 0...1_000_000),
        integer(
            "limits.address_handshakes",
            "TLS handshakes in flight from one address but loopback; above it its oldest ends",
            \.addressHandshakes, 1...65_536),
        rate(
            "limits.user_mutations",
            "mutations a second of one user (100 entries that a change of members takes count as "
                + "one); 10 times as many at once; 0: any number",
            \.userMutations, 0...1_000_000),
        rate(
            "limits.user_reads",
            "FETCH, SNAPSHOT, peeks and DIGEST a second of one user, each DIGEST as 10; 10 times "
                + "as many at once; 0: any number",
            \.userReads, 0...1_000_000),
        rate(
            "limits.app_requests",
            "logins, mutations and SYNCs that change something, a second, of one app's devices; "
                + "10 times as many at once; 0: any number",
            \.appRequests, 0...1_000_000),
        rate(
            "limits.app_api_requests",
            "requests a second of one app's backend; 10 times as many at once; 0: any number",
            \.appAPIRequests, 0...1_000_000),
        seconds(
            "timers.keepalive", "how long a device may be silent", \.keepaliveSeconds, 10...3600),
        integer(
            "digest.sample",
            "of this many sessions one is asked whether it holds the same; 0: none",
            \.digestSample, 0...1_000_000),
        text(
            "webhooks.allow_networks",
            "private networks webhooks may be delivered to, as 10.0.0.0/8; empty: none",
            \.webhookNetworks),
        path(
            "webhooks.ca_file", "authorities of receivers, PEM; empty: the system's",
            \.webhookAuthorities),
        seconds(
            "webhooks.timeout", "how long one delivery may take", \.webhookTimeoutSeconds,
            1...120),
        integer(
            "webhooks.deliveries", "deliveries under way of all apps", \.webhookDeliveries,
            1...256),
        integer(
            "webhooks.app_deliveries", "deliveries under way of one app",
            \.webhookAppDeliveries, 1...64),
        seconds(
            "webhooks.retry", "from a failure to the next attempt; it doubles",
            \.webhookRetrySeconds, 1...3600),
        seconds(
            "webhooks.retry_max", "the longest time between two attempts",
            \.webhookRetryMaxSeconds, 1...86_400),
        seconds(
            "webhooks.deactivate_after", "how long failures last that deactivate a webhook",
            \.webhookDeactivateSeconds, 1...604_800),
        seconds("timers.drain", "from SIGTERM to the end", \.drainSeconds, 1...3600),
        Field(
            key: "log.level", help: "debug, info, warning or error",
            read: { configuration, value in
                guard let level = LogLevel(name: value) else {
                    return "must be debug, info, warning or error"
                }
                configuration.logLevel = level
                return nil
            }, show: { "\($0.logLevel)" }),
        Field(
            key: "log.format", help: "text, or json: one object a line",
            read: { configuration, value in
                guard let format = LogFormat(name: value) else { return "must be text or json" }
                configuration.logFormat = format
                return nil
            }, show: { "\($0.logFormat)" }),
        Field(
            key: "log.access", help: "a line for each request of the backend API; on or off",
            read: { configuration, value in
                guard ["on", "off"].contains(value) else { return "must be on or off" }
                configuration.logAccess = value == "on"
                return nil
            }, show: { $0.logAccess ? "on" : "off" }),
    ]

    private static func text(
        _ key: String, _ help: String, _ path: any WritableKeyPath<Configuration, String> & Sendable
    ) -> Field {
        Field(
            key: key, help: help,
            read: { configuration, value in
                configuration[keyPath: path] = value
                return nil
            }, show: { $0[keyPath: path] })
    }

    private static func port(
        _ key: String, _ help: String, _ path: any WritableKeyPath<Configuration, UInt16> & Sendable
    ) -> Field {
        Field(
            key: key, help: help,
            read: { configuration, value in
                guard let port = UInt16(value) else { return "must be a port, 0 to 65535" }
                configuration[keyPath: path] = port
                return nil
            }, show: { String($0[keyPath: path]) })
    }

    private static func optionalPort(
        _ key: String, _ help: String,
        _ path: any WritableKeyPath<Configuration, UInt16?> & Sendable
    ) -> Field {
        Field(
            key: key, help: help,
            read: { configuration, value in
                if value == "off" {
                    configuration[keyPath: path] = nil
                    return nil
                }
                guard let port = UInt16(value) else { return "must be off or a port, 0 to 65535" }
                configuration[keyPath: path] = port
                return nil
            }, show: { $0[keyPath: path].map { String($0) } ?? "off" })
    }

    private static func integer(
        _ key: String, _ help: String, _ path: any WritableKeyPath<Configuration, Int> & Sendable,
        _ range: ClosedRange<Int>
    ) -> Field {
        Field(
            key: key, help: help,
            read: { configuration, value in
                guard let number = Int(value), range.contains(number) else {
                    return "must be a number from \(range.lowerBound) to \(range.upperBound)"
                }
                configuration[keyPath: path] = number
                return nil
            }, show: { String($0[keyPath: path]) },
            range: "\(range.lowerBound) to \(range.upperBound)")
    }

    private static func path(
        _ key: String, _ help: String, _ path: any WritableKeyPath<Configuration, String> & Sendable
    ) -> Field {
        var field = text(key, help, path)
        field.isPath = true
        return field
    }

    private static func bytes(
        _ key: String, _ help: String, _ path: any WritableKeyPath<Configuration, Int> & Sendable,
        _ range: ClosedRange<UInt64>
    ) -> Field {
        Field(
            key: key, help: help,
            read: { configuration, value in
                guard let number = Measure.bytes(value), range.contains(number) else {
                    let (least, most) = (range.lowerBound, range.upperBound)
                    return "must be from \(Measure.text(bytes: least)) to "
                        + "\(Measure.text(bytes: most)), as 64MiB"
                }
                configuration[keyPath: path] = Int(number)
                return nil
            }, show: { Measure.text(bytes: UInt64($0[keyPath: path])) },
            range: "\(Measure.text(bytes: range.lowerBound)) to "
                + Measure.text(bytes: range.upperBound))
    }

    private static func rate(
        _ key: String, _ help: String, _ path: any WritableKeyPath<Configuration, Int> & Sendable,
        _ range: ClosedRange<UInt64>
    ) -> Field {
        Field(
            key: key, help: help,
            read: { configuration, value in
                guard let number = Measure.rate(value), range.contains(number) else {
                    return "must be from \(range.lowerBound) to \(range.upperBound) a second, "
                        + "as 50/s"
                }
                configuration[keyPath: path] = Int(number)
                return nil
            }, show: { $0[keyPath: path] == 0 ? "0" : "\($0[keyPath: path])/s" },
            range: "\(range.lowerBound) to \(range.upperBound)/s")
    }

    private static func seconds(
        _ key: String, _ help: String,
        _ path: any WritableKeyPath<Configuration, UInt64> & Sendable,
        _ range: ClosedRange<UInt64>
    ) -> Field {
        Field(
            key: key, help: help,
            read: { configuration, value in
                guard let number = Measure.seconds(value), range.contains(number) else {
                    let (least, most) = (range.lowerBound, range.upperBound)
                    return "must be a time from \(Measure.text(seconds: least)) to "
                        + "\(Measure.text(seconds: most)), as 90s, 15m or 2h"
                }
                configuration[keyPath: path] = number
                return nil
            }, show: { Measure.text(seconds: $0[keyPath: path]) },
            range: "\(Measure.text(seconds: range.lowerBound)) to "
                + Measure.text(seconds: range.upperBound))
    }
}
