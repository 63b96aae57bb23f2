import Model
public import Sync

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
    public var session: SessionConfiguration
    /// Device connections; above it a connection is told 5008.
    public var connectionsMax = 10_000
    /// TLS handshakes in flight; more wait in the kernel's backlog.
    public var handshakesMax = 64
    /// Bytes of half-received bodies over all connections.
    public var receivingBytesMax = 64 << 20
    public var rates = DeviceRates()
    /// A second listener without TLS, for a balancer that terminates it; `nil`: none. Peers must
    /// be of this machine or a private network.
    public var plain: PlainListener?

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

/// What every loop of the service shares.
struct SyncOptions: Sendable {
    let session: SessionConfiguration
    let connectionsMax: Int
    let handshakesMax: Int
    let receiving: ReceivingBudget
    let gates: RateGates
    /// TLS handshake, in milliseconds, absolute.
    let handshakeDeadline: Milliseconds = 10_000
    /// How long a connection that was told CLOSE may take to go, in milliseconds.
    let linger: Milliseconds = 2_000
    /// How often the heads of connected users are looked at in turn, in milliseconds: a hint that
    /// got lost costs no more.
    let headTurn: Milliseconds = 10_000
}
