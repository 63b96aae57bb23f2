/// How a simulator is set up.
public struct SimulatorOptions: Sendable {
    /// Numeric address that both environments listen on.
    public var host = "127.0.0.1"
    /// 0: a free one.
    public var productionPort: UInt16 = 0
    public var developmentPort: UInt16 = 0
    /// PEM, leaf first.
    public var certificateChain: [UInt8]
    public var privateKey: [UInt8]
    /// Streams on a connection once a provider token was accepted.
    public var maximumStreams: UInt32 = 1_000
    /// The control socket; a path of at most 107 bytes.
    public var controlPath: String?
    /// A control port on the loopback address beside it; 0: a free one.
    public var controlPort: UInt16?
    /// Where devices keep their stores.
    public var directory: String?
    public var devicesMax = 20_000
    public var logLimit = 65_536
    /// How long, in milliseconds, the devices wait for a subscriber of the log that is to miss
    /// nothing and takes nothing.
    public var subscriberPatience: UInt64 = 60_000

    public init(certificateChain: [UInt8], privateKey: [UInt8]) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
    }
}

/// Where a running simulator listens.
public struct SimulatorPorts: Codable, Equatable, Sendable {
    public var production: UInt16
    public var development: UInt16
    public var control: String?
    public var controlPort: UInt16?
}
