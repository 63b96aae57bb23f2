public import DeviceModel

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
    /// A port for HTTP on the loopback address: the control API, the log and a page for people;
    /// 0: a free one.
    public var httpPort: UInt16?
    /// Strictness, and choices where Apple's words leave some.
    public var checks = CheckOptions()
    /// Milliseconds added to the machine's clock.
    public var clockOffset: Int64 = 0
    /// Where devices keep their stores.
    public var directory: String?
    /// Budgets and run times of new devices.
    public var deviceRules = DeviceRules.unlimited
    public var devicesMax = 20_000
    public var logLimit = 65_536
    /// How long, in milliseconds, the devices wait for a subscriber of the log that is to miss
    /// nothing and takes nothing.
    public var subscriberPatience: UInt64 = 60_000

    public init(certificateChain: [UInt8], privateKey: [UInt8]) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
    }

    /// New devices have the silent budget of an everyday phone, not that of one under Xcode.
    public mutating func limitDevices() { deviceRules = .everyday }
}

/// Where a running simulator listens.
public struct SimulatorPorts: Codable, Equatable, Sendable {
    public var production: UInt16
    public var development: UInt16
    public var control: String?
    public var controlPort: UInt16?
    public var httpPort: UInt16?
}
