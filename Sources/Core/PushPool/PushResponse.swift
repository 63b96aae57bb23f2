public import Model

/// What APNs said: a status, and for all but 200 a JSON body with `reason`, with 410 also
/// `timestamp` in milliseconds (Apple: Handling notification responses from APNs).
public struct PushResponse: Equatable, Sendable {
    public var status: UInt64
    /// Empty if the body gives none that can be read: the status alone tells the class then.
    public var reason: String
    public var timestamp: Timestamp?
    /// APNs' clock, in seconds since 1970, if it tells.
    public var date: Int64?
    /// When APNs wants to hear of the push again, if it says so (RFC 9110 10.2.3).
    public var retryAfter: Milliseconds?
    /// The `apns-id` of the answer: ours, or the one APNs made.
    public var id: WakeID?

    public init(status: UInt64, reason: String = "", timestamp: Timestamp? = nil) {
        self.status = status
        self.reason = reason
        self.timestamp = timestamp
    }
}
