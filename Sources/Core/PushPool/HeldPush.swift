public import Feed
public import Model
import Wake

/// A claimed push on its way through this process.
public struct HeldPush: Equatable, Sendable {
    public let job: PushJob
    /// When it was claimed, by the monotonic clock, not later than the store did: what is left of
    /// its lease is counted from here, whatever the wall clocks do.
    public let claimedAt: Instant
    /// How often a stream was offered it and did not take it.
    var offers = 0
    /// The provider token it was sent with; `nil`: none.
    public internal(set) var providerToken: String?
    /// Its device has lost its push token: it does not leave, nor again if it comes back.
    var isWithdrawn = false
    /// What APNs called a push that was sent without an id.
    var answeredID: WakeID?

    public init(job: PushJob, claimedAt: Instant) {
        self.job = job
        self.claimedAt = claimedAt
    }

    /// The moment at which so much of its lease is left.
    func leaseEnd(reserve: Milliseconds) -> Instant {
        let usable = WakePolicy.lease > reserve ? WakePolicy.lease - reserve : 0
        return claimedAt + usable
    }

    /// The last moment at which its HEADERS may be written.
    func sendBefore(_ configuration: PushGatewayConfiguration) -> Instant {
        min(leaseEnd(reserve: configuration.leaseReserve), claimedAt + configuration.waitMax)
    }
}
