public import Model

/// How the gateway paces itself. Durations in milliseconds, of the monotonic clock.
public struct PushGatewayConfiguration: Equatable, Sendable {
    /// The longest time between two looks at the store; timers of connections are as exact.
    public var tick: Milliseconds = 500
    /// Pushes asked for in one claim at most.
    public var claimMax = 256
    /// Pushes that wait for a stream of one credential; more are not claimed for it.
    public var waitingMax = 256
    /// Streams on one connection, whatever its server allows.
    public var streamsMax = 1_000
    /// From HEADERS to the whole answer; then the connection is asked whether it lives.
    public var streamDeadline: Milliseconds = 10_000
    /// From HEADERS on, for how long a late answer is still waited for while no push that was
    /// sent after it has been answered in time: APNs is slow then, and has not lost this one.
    public var lateDeadline: Milliseconds = 20_000
    /// What must be left of the lease when a late answer is waited for no more.
    public var lateReserve: Milliseconds = 5_000
    /// How long a claimed push may wait for a stream; then it goes back to the store, which looks
    /// again whether it is still wanted.
    public var waitMax: Milliseconds = 3_000
    /// What must be left of a push's lease when its HEADERS are written.
    public var leaseReserve: Milliseconds = 15_000
    /// From the look-up of the name to the end of the TLS handshake.
    public var connectDeadline: Milliseconds = 10_000
    /// Silence after which an idle connection is probed with a PING (Apple: an hour).
    public var idlePing: Milliseconds = 3_600_000
    /// Silence after which a connection must answer a PING before it gets a push.
    public var verifyAfter: Milliseconds = 300_000
    /// How long a PING may take.
    public var pingDeadline: Milliseconds = 5_000
    /// Streams in a row without an answer after which a connection is replaced.
    public var silentStreamsMax = 3
    /// How often one push is offered to streams that do not take it, before it goes back.
    public var offersMax = 3
    /// How long APNs may allow no stream on a connection while pushes wait, before it is given up.
    public var shutMax: Milliseconds = 10_000
    /// The first wait after pushes of a connection were refused twice in a row; it doubles.
    public var refusalDelay: Milliseconds = 500
    public var refusalDelayMax: Milliseconds = 30_000
    /// The first wait after a connection that came to nothing; it doubles.
    public var reconnectDelay: Milliseconds = 500
    public var reconnectDelayMax: Milliseconds = 30_000
    /// Connections of a class that came to nothing, in a row, after which its pushes are no longer
    /// claimed until the next try.
    public var reconnectPatience = 3
    /// Connections of a credential, of all classes, that may be begun at once; then there is one
    /// in each `connectSpacing`: 35 in a minute at most.
    public var connectsBurst = 15
    public var connectSpacing: Milliseconds = 3_000
    /// Between two replacements of a connection that still works: APNs takes a pattern of
    /// connects and disconnects for an attack.
    public var replaceSpacing: Milliseconds = 30_000
    /// A connection that worked for so long and then ends is no failure.
    public var soundAge: Milliseconds = 30_000
    /// Connections of one class of one credential at most.
    public var connectionsMax = 4
    /// How long all streams of a class must be taken before it gets another connection.
    public var growAfter: Milliseconds = 1_000
    /// Between two connections that a class gets for its load.
    public var growSpacing: Milliseconds = 10_000
    /// Age at which a connection is replaced, so that names are looked up again.
    public var connectionAge: Milliseconds = 86_400_000
    /// Idle time after which a class gives up all connections but one.
    public var surplusIdle: Milliseconds = 3_600_000
    /// Refused tokens that APNs had accepted before, in `breakerWindow`, which pause the
    /// credential if they are at least one in `breakerShare` of its answers: it is not the
    /// tokens that are wrong then.
    public var breakerCount = 5
    public var breakerShare = 4
    public var breakerWindow: Milliseconds = 300_000
    /// How long the verdict over such a token waits for others like it.
    public var verdictDelay: Milliseconds = 2_000
    /// Between two counts of what waits in the store.
    public var queueCount: Milliseconds = 5_000
    /// The first pause of a credential that APNs refuses; it doubles.
    public var pause: Milliseconds = 60_000
    public var pauseMax: Milliseconds = 900_000
    /// How long `stop()` waits for what is in flight: longer than an answer may take.
    public var stopDeadline: Milliseconds = 12_000

    public init() {}
}
