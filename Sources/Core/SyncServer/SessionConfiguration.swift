internal import Feed
public import Model
public import Wire

/// Every number that bounds one connection (connection.md, "Timers and limits"). Sizes are in
/// bytes, times in milliseconds.
public struct SessionLimits: Equatable, Sendable {
    /// HELLO after the TLS handshake; absolute.
    public var helloDeadline: Milliseconds = 10_000
    /// A login after CHALLENGE; absolute, and the nonce's lifetime.
    public var loginDeadline: Milliseconds = 60_000
    /// Refused identity tokens on one connection.
    public var loginRefusals = 3
    /// An identity token.
    public var identityTokenBytes = 8 << 10
    /// How far the clocks of issuer and server may differ.
    public var clockSkew: Milliseconds = 60_000
    /// PINGs and PONGs until WELCOME was sent (CON-18).
    public var pingsBeforeWelcome = RateLimit(perSecond: 1, burst: 16)
    /// PINGs and PONGs after it.
    public var pings = RateLimit(perSecond: 10, burst: 100)
    /// Requests answered with ERROR (CON-19).
    public var errors = RateLimit(perSecond: 1, burst: 100)
    /// Frames until WELCOME was sent.
    public var beforeWelcome = FrameLimits.beforeWelcome
    /// Frames after it.
    public var afterWelcome = FrameLimits.afterWelcome
    /// Unacknowledged bytes of DELTAs.
    public var windowBytes = 256 << 10
    /// Unacknowledged DELTAs.
    public var windowDeltas = 256
    /// The first page; pages double up to the window.
    public var firstPageBytes = 16 << 10
    /// An ACK within this time doubles the page.
    public var quickAck: Milliseconds = 2_000
    /// Mutations without a result.
    public var mutationsUnanswered = 32
    /// Content of mutations without a result; above it nothing more is read from the peer.
    public var mutationBytesUnanswered = 256 << 10
    /// Read receipts and ranges that wait for the store; above it nothing more is read.
    public var receiptsWaiting = 1_024
    /// A message's parts together; told in WELCOME, checked by the store's rules.
    public var messageBytes = RuleLimits().messageBytes
    /// Users named in one mutation; told in WELCOME, checked by the store's rules.
    public var participantsPerRequest = RuleLimits().participantsPerRequest
    /// Read receipts in one SYNC or ACK, ranges in one write, and ranges of one read receipt.
    public var receiptsPerWrite = RuleLimits().rangesPerRequest
    /// Read receipts in one write, no more than the store's rules take: others' requests get
    /// between two writes.
    public var readsPerWrite = RuleLimits().readsPerRequest
    /// FETCH, SNAPSHOT and DIGEST without an answer, together.
    public var historyInFlight = 4
    /// The entries of a PAGE.
    public var historyPageBytes = 64 << 10
    /// The first SNAPSHOT_PAGE: after it the client is usable.
    public var snapshotFirstPageBytes = 32 << 10
    /// The pages after it. Up to 70 KiB of participants may come on top.
    public var snapshotPageBytes = 128 << 10
    /// One session in so many is asked for a DIGEST; 0: none.
    public var digestSample: UInt64 = 64
    /// Bytes the peer has not taken; above it nothing more is read from the peer.
    public var unsentBytes = 64 << 10
    /// Without progress above `unsentBytes`: CLOSE 5009.
    public var slowReader: Milliseconds = 30_000
    /// The keepalive proposed, varied by 10 % per connection.
    public var keepalive: Milliseconds = 180_000
    /// A broken promise is waited for this much longer.
    public var keepaliveGrace: Milliseconds = 30_000
    /// Told, and no sign of life: PING.
    public var suspectAfter: Milliseconds = 10_000
    /// No frame after that PING: CLOSE.
    public var suspectPing: Milliseconds = 5_000
    /// How long PING, PONG, APP_STATE and taken bytes count as signs of life after being told.
    public var suspectPatience: Milliseconds = 60_000
    /// How often the peer's taken bytes are looked at while something told is uncovered.
    public var progressLook: Milliseconds = 2_500
    /// Bytes in flight that may be nothing but a PING.
    public var pingBytes = 256
    /// `applied` that covers nothing visible is persisted within this time.
    public var lazyPersist: Milliseconds = 1_000
    /// A refused write of the session's own is tried again after this time.
    public var storeRetry: Milliseconds = 1_000
    /// Added to a background's run time before the session is dormant.
    public var backgroundSlack: Milliseconds = 2_000
    /// How long a device may take to come back after its connection ended.
    public var returnTime: Milliseconds = 10_000
    /// `retry_after_ms` beside codes whose class is retry-after.
    public var retryAfter: Milliseconds = 5_000
    /// Signals one session sends; more are dropped.
    public var signalsSent = RateLimit(perSecond: 2, burst: 6)
    /// Signals one session is sent; more are dropped.
    public var signalsReceived = RateLimit(perSecond: 10, burst: 20)
    /// A signal's time without one, and at most.
    public var signalTime: Milliseconds = 6_000
    public var signalTimeMax: Milliseconds = 30_000
    /// Conversations whose participants a session remembers, and for how long.
    public var signalAudiences = 2
    public var signalAudienceTime: Milliseconds = 10_000
    /// `client_name` and `client_version`, in characters; the rest is cut.
    public var clientNameLength = 64

    /// The numbers of the protocol's text.
    public init() {}
}

/// What all connections of a process share.
public final class SessionConfiguration: Sendable {
    public let limits: SessionLimits
    /// This run of the server.
    public let boot: BootID
    /// The node's name in WELCOME.
    public let node: String
    /// SHA-256. A pure function that lives outside Core.
    public let sha256: @Sendable ([UInt8]) -> [UInt8]

    public init(
        limits: SessionLimits = SessionLimits(), boot: BootID, node: String,
        sha256: @escaping @Sendable ([UInt8]) -> [UInt8]
    ) {
        self.limits = limits
        self.boot = boot
        self.node = node
        self.sha256 = sha256
    }
}

/// The chance one connection needs, drawn by the shell from the system's secure source.
public struct SessionEntropy: Equatable, Sendable {
    /// The session token of WELCOME: 32 bytes.
    public var sessionToken: [UInt8]
    /// The nonce of CHALLENGE: 32 bytes.
    public var nonce: [UInt8]
    /// For keepalive and epoch halves.
    public var seed: UInt64

    public init(sessionToken: [UInt8], nonce: [UInt8], seed: UInt64) {
        self.sessionToken = sessionToken
        self.nonce = nonce
        self.seed = seed
    }
}
