public import EventLoop
import Model
public import SyncServer
import Telemetry

/// The certificate and key of the device port, PEM.
public struct TLSMaterial: Equatable, Sendable {
    public var certificateChain: [UInt8]
    public var privateKey: [UInt8]

    public init(certificateChain: [UInt8], privateKey: [UInt8]) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
    }
}

/// How the device port runs.
public struct SyncServiceConfiguration: Sendable {
    public var host: String
    /// 0: a free port.
    public var port: UInt16
    public var loops: Int
    /// A listening socket that a supervisor holds, in place of `host` and `port`.
    public var inherited: Int32?
    public var session: SessionConfiguration
    /// Device connections; above it a connection is told 5008.
    public var connectionsMax = 10_000
    /// TLS handshakes in flight; above it the oldest of the network with most ends.
    public var handshakesMax = 512
    /// Bytes of frames that have begun, over all connections; above it who holds some for longest
    /// is told 5008.
    public var receivingBytesMax = 64 << 20
    public var rates = DeviceRates()
    /// A second listener without TLS, for a balancer that terminates it; `nil`: none. Peers must
    /// be of this machine or a private network.
    public var plain: PlainListener?
    /// Balancers that begin each connection with a PROXY header, on both ports. From everybody
    /// else such a header is refused.
    public var balancers: [Network] = []
    /// In how many seconds each connected user's head is looked at once. Hints of this process are
    /// not lost; those of other nodes may be.
    public var headTurns = 60
    /// Hands a signal to the other nodes of the store; called on loops' threads. `nil`: there are
    /// none.
    public var tellNodes: (@Sendable (NodeSignal) -> Void)?

    public init(host: String, port: UInt16, loops: Int, session: SessionConfiguration) {
        self.host = host
        self.port = port
        self.loops = loops
        self.session = session
    }
}

/// Where device connections without TLS are taken.
public struct PlainListener: Equatable, Sendable {
    public var host: String
    /// 0: a free port.
    public var port: UInt16

    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }
}

/// What of the device port can be changed while it runs.
public struct SyncLimits: Equatable, Sendable {
    public var connectionsMax: Int
    public var handshakesMax: Int
    public var receivingBytesMax: Int
    public var rates: DeviceRates

    public init(
        connectionsMax: Int, handshakesMax: Int, receivingBytesMax: Int, rates: DeviceRates
    ) {
        self.connectionsMax = connectionsMax
        self.handshakesMax = handshakesMax
        self.receivingBytesMax = receivingBytesMax
        self.rates = rates
    }
}

/// What every loop of the service shares; `connectionsMax` and what follows it may be changed.
struct SyncOptions: Sendable {
    let session: SessionConfiguration
    /// For connections that are accepted while places run short.
    let crowdedSession: SessionConfiguration
    var connectionsMax: Int
    var handshakesMax: Int
    var receivingBytesMax: Int
    /// Bytes of frames that have begun now. For metrics.
    let receiving = Gauge()
    let gates: RateGates
    /// TLS handshake, in milliseconds, absolute.
    let handshakeDeadline: Milliseconds = 10_000
    /// The ClientHello of a connection that is accepted while places run short.
    let crowdedHandshakeDeadline: Milliseconds = 3_000
    /// From the first byte of a frame to its last.
    let frameDeadline: Milliseconds = 120_000
    /// How long a connection that was told CLOSE may take to go, in milliseconds.
    let linger: Milliseconds = 2_000
    /// How often the heads of connected users are looked at, in milliseconds: of all after a hint
    /// was dropped, else of those who are due.
    let headTurn: Milliseconds = 1_000
    /// In how many turns each user is looked at once: nothing that this process does is left to
    /// it, and what an idle connection costs is mostly this.
    let headTurns: Int
    let tellNodes: (@Sendable (NodeSignal) -> Void)?
    private let balancers: [Network]
    /// Frames of one connection that are taken before the others' turns.
    let framesPerTurn = 64
    /// How long turns are given before the loop looks at everything else, in milliseconds.
    static let turnsTime: UInt64 = 5

    init(_ configuration: SyncServiceConfiguration) {
        session = configuration.session
        var limits = configuration.session.limits
        limits.helloDeadline = min(limits.helloDeadline, 5_000)
        limits.loginDeadline = min(limits.loginDeadline, 15_000)
        crowdedSession = SessionConfiguration(
            limits: limits, boot: session.boot, node: session.node, sha256: session.sha256)
        connectionsMax = configuration.connectionsMax
        handshakesMax = configuration.handshakesMax
        receivingBytesMax = configuration.receivingBytesMax
        gates = RateGates(configuration.rates)
        headTurns = configuration.headTurns
        tellNodes = configuration.tellNodes
        balancers = configuration.balancers
    }

    /// Whether connections from there begin with a PROXY header.
    func isBalancer(_ peer: String) -> Bool {
        guard !balancers.isEmpty, let address = NumericAddress.bytes(peer) else { return false }
        return balancers.contains { $0.contains(address) }
    }

    /// One loop's share of the bytes of begun frames: at least what some whole frames take.
    func receivingMax(_ loopCount: Int) -> Int { max(1 << 20, receivingBytesMax / loopCount) }

    /// What one user, or one network before the login, may hold of it.
    func ownerReceivingMax(_ loopCount: Int) -> Int {
        max(512 << 10, receivingMax(loopCount) / 16)
    }
}

/// Whom the bytes of a begun frame are counted against.
enum BytesOwner: Hashable {
    case user(AppID, UserID)
    case network(PeerNetwork)
}
