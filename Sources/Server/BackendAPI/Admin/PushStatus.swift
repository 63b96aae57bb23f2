public import Model

/// How it stands with one push credential, as the admin API tells.
public struct PushStatus: Encodable, Equatable, Sendable {
    /// One class of pushes: connections, streams in use and allowed, and what waits.
    public struct Lane: Encodable, Equatable, Sendable {
        public var name: String
        public var connections: Int
        public var streamsOpen: Int
        public var streamsAllowed: Int
        public var waiting: Int
        public var oldestStreamMs: UInt64
        /// `sending`, or `unreachable`: connections end before they have had an answer.
        public var state: String
        /// How the last one ended; empty while it sends.
        public var reason: String
        /// Connections in a row that came to nothing.
        public var failures: Int
        /// Until another one may be begun; absent while it sends.
        public var retrySeconds: UInt64?

        public init(
            name: String, connections: Int, streamsOpen: Int, streamsAllowed: Int, waiting: Int,
            oldestStreamMs: UInt64, state: String, reason: String, failures: Int,
            retrySeconds: UInt64?
        ) {
            self.name = name
            self.connections = connections
            self.streamsOpen = streamsOpen
            self.streamsAllowed = streamsAllowed
            self.waiting = waiting
            self.oldestStreamMs = oldestStreamMs
            self.state = state
            self.reason = reason
            self.failures = failures
            self.retrySeconds = retrySeconds
        }
    }

    /// A topic that APNs does not take from the credential.
    public struct Topic: Encodable, Equatable, Sendable {
        public var name: String
        /// What APNs said.
        public var reason: String
        /// Until it is tried again.
        public var pausedSeconds: UInt64

        public init(name: String, reason: String, pausedSeconds: UInt64) {
            self.name = name
            self.reason = reason
            self.pausedSeconds = pausedSeconds
        }
    }

    public var app: String
    public var environment: String
    public var name: String
    /// `key` or `certificate`.
    public var kind: String
    /// `sending`, `paused`, `unreachable`: pushes of a class cannot be sent, since its connections
    /// end before they have had an answer, or `tripped`: its tokens are called wrong all at once,
    /// and none of them is dropped.
    public var state: String
    /// APNs' reason of the pause, why the credential cannot be used, or why there is no
    /// connection; empty while it sends.
    public var reason: String
    /// Until it is tried again; absent: it is not paused, or until it is changed.
    public var pausedSeconds: UInt64?
    /// Connections of a class in a row that came to nothing, of the class with the most.
    public var failures: Int
    /// APNs' reason in the last GOAWAY.
    public var lastGoaway: String
    public var topicsPaused: [Topic]
    public var lanes: [Lane]

    public init(
        app: AppID, environment: String, name: String, kind: String, state: String,
        reason: String, pausedSeconds: UInt64?, failures: Int, lastGoaway: String,
        topicsPaused: [Topic], lanes: [Lane]
    ) {
        self.app = app.name
        self.environment = environment
        self.name = name
        self.kind = kind
        self.state = state
        self.reason = reason
        self.pausedSeconds = pausedSeconds
        self.failures = failures
        self.lastGoaway = lastGoaway
        self.topicsPaused = topicsPaused
        self.lanes = lanes
    }
}

struct PushStatusListBody: Encodable {
    let credentials: [PushStatus]
}
