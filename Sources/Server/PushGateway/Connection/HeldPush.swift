import Feed
import HTTP2
import Model
import Wake

/// A claimed push on its way through this process.
struct HeldPush {
    let job: PushJob
    /// When it was claimed, by the monotonic clock, not later than the store did: what is left of
    /// its lease is counted from here, whatever the wall clocks do.
    let claimedAt: Instant
    /// How often a stream was offered it and did not take it.
    var offers = 0
    /// The provider token it was sent with; `nil`: none.
    var providerToken: String?
    /// What APNs called a push that was sent without an id.
    var answeredID: WakeID?

    /// The moment at which so much of its lease is left.
    func leaseEnd(reserve: Milliseconds) -> Instant {
        let usable = WakePolicy.lease > reserve ? WakePolicy.lease - reserve : 0
        return claimedAt + usable
    }

    /// The last moment at which its HEADERS may be written.
    func sendBefore(_ configuration: PushGatewayConfiguration) -> Instant {
        min(leaseEnd(reserve: configuration.leaseReserve), claimedAt + configuration.waitMax)
    }

    /// The request as Apple wants it (Sending notification requests to APNs). What differs with
    /// each push is kept out of the header table, which is small; the library never puts `:path`
    /// and `authorization` into it.
    ///
    /// - Parameter token: `nil`: the connection is of a client certificate.
    func headers(authority: String, token: String?) -> [HTTP2Header] {
        let request = job.request
        var headers = [
            HTTP2Header(":method", "POST"), HTTP2Header(":scheme", "https"),
            HTTP2Header(":authority", authority), HTTP2Header(":path", request.path),
        ]
        if let token { headers.append(HTTP2Header("authorization", "bearer \(token)")) }
        // All pushes of a campaign share their headers. They are a million, so none has an id of
        // its own: its 35 bytes are an eighth of the push, and APNs answers with one. What makes
        // a repeat show once is the collapse id.
        let isShared = job.lane == .campaign
        for (name, value) in request.headers where !(isShared && name == "apns-id") {
            let differs =
                switch name {
                case "apns-id": true
                case "apns-collapse-id": !isShared
                case "apns-expiration": !isShared && value != "0"
                default: false
                }
            headers.append(HTTP2Header(name, value, indexing: differs ? .never : .always))
        }
        return headers
    }
}
