public import Feed
public import Model

/// How deliveries are paced. Durations in milliseconds.
public struct WebhooksConfiguration: Sendable {
    /// From the start of an attempt to the whole answer.
    public var timeout: Milliseconds = 15_000
    /// Deliveries under way, of all apps and of one.
    public var openMax = 32
    public var openPerApp = 4
    public var policy = WebhookPolicy()
    /// Addresses that may be connected to.
    public var addresses: AddressPolicy
    /// PEM, instead of the system's authorities; `nil`: these.
    public var trustedCertificates: [UInt8]?
    /// The longest time between two looks at the store.
    public var tick: Milliseconds = 1_000
    /// Between two counts of what waits.
    public var countInterval: Milliseconds = 5_000
    /// How long `stop()` waits for answers.
    public var stopDeadline: Milliseconds = 5_000

    public init(addresses: AddressPolicy) { self.addresses = addresses }

    /// With a lease that is longer than any attempt and its writing down take.
    var leased: WebhookPolicy {
        var policy = policy
        policy.lease = 2 * timeout + 1_000
        return policy
    }
}
