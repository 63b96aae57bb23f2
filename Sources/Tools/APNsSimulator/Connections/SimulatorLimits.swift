public import Model

/// Numbers that Apple does not publish: all of them are ours.
public struct SimulatorLimits: Equatable, Codable, Sendable {
    public var apps = 1_000
    public var keys = 10_000
    public var tokens = 1_000_000
    /// Requests to one token in `burstMilliseconds`; more are TooManyRequests.
    public var burst = 200
    public var burstMilliseconds: Milliseconds = 1_000
    /// Streams on a connection before a provider token was accepted: Apple's one, or more for
    /// load tools that do not wait.
    public var unprovenStreams: UInt32 = 1
    /// Streams on a connection once a provider token was accepted, or with a client certificate.
    public var streams: UInt32 = 1_000
    /// After a 4xx other than 410 a connection is held to one stream until the next 200.
    public var throttlesErrors = true
    /// A 4xx other than 410 costs one, a 200 gives one back; the connection ends at nothing left.
    public var errorBudget = 1_000
    /// What BadDeviceToken costs.
    public var badDeviceTokenCost = 5
    /// PINGs without a request between them that are a lint, and that end the connection.
    public var pingsNoted = 4
    public var pingsMax = 60
    /// The time in which these many count.
    public var pingMilliseconds: Milliseconds = 60_000
    /// A connection without a word for so long, then used without a PING, is a lint.
    public var idleMilliseconds: Milliseconds = 3_600_000
    /// A connection without a word for so long ends with IdleTimeout; `nil`: never.
    public var idleTimeout: Milliseconds?
    /// Connections that one address opens and ends within `churnMilliseconds`: so many are a
    /// lint, and so many have it shut out for `blockMilliseconds`.
    public var churnNoted = 10
    public var churnMax = 200
    public var churnMilliseconds: Milliseconds = 60_000
    public var blockMilliseconds: Milliseconds = 60_000

    public init() {}

    /// What is not named is as in `init()`.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init()
        func set<Value: Decodable>(
            _ path: WritableKeyPath<Self, Value>, _ key: CodingKeys
        ) throws {
            if let value = try values.decodeIfPresent(Value.self, forKey: key) {
                self[keyPath: path] = value
            }
        }
        try set(\.apps, .apps)
        try set(\.keys, .keys)
        try set(\.tokens, .tokens)
        try set(\.burst, .burst)
        try set(\.burstMilliseconds, .burstMilliseconds)
        try set(\.unprovenStreams, .unprovenStreams)
        try set(\.streams, .streams)
        try set(\.throttlesErrors, .throttlesErrors)
        try set(\.errorBudget, .errorBudget)
        try set(\.badDeviceTokenCost, .badDeviceTokenCost)
        try set(\.pingsNoted, .pingsNoted)
        try set(\.pingsMax, .pingsMax)
        try set(\.pingMilliseconds, .pingMilliseconds)
        try set(\.idleMilliseconds, .idleMilliseconds)
        idleTimeout = try values.decodeIfPresent(Milliseconds.self, forKey: .idleTimeout)
        try set(\.churnNoted, .churnNoted)
        try set(\.churnMax, .churnMax)
        try set(\.churnMilliseconds, .churnMilliseconds)
        try set(\.blockMilliseconds, .blockMilliseconds)
    }
}
