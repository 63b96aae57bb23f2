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

    /// The last moment at which its HEADERS may be written.
    func sendBefore(reserve: Milliseconds) -> Instant {
        let usable = WakePolicy.lease > reserve ? WakePolicy.lease - reserve : 0
        return claimedAt + usable
    }

    /// The request as Apple wants it (Sending notification requests to APNs). What differs with
    /// each push is kept out of the header table, which is small; the library never puts `:path`
    /// and `authorization` into it.
    func headers(authority: String, token: String) -> [HTTP2Header] {
        let request = job.request
        var headers = [
            HTTP2Header(":method", "POST"), HTTP2Header(":scheme", "https"),
            HTTP2Header(":authority", authority), HTTP2Header(":path", request.path),
            HTTP2Header("authorization", "bearer \(token)"),
        ]
        for (name, value) in request.headers {
            let differs =
                name == "apns-id" || name == "apns-collapse-id"
                || (name == "apns-expiration" && value != "0")
            headers.append(HTTP2Header(name, value, indexing: differs ? .never : .always))
        }
        return headers
    }
}
